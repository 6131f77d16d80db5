"""Agents of the command line: what each is called with, what its lines mean, and which are installed."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

from attractor_nb.backends.agents.agent_events import (
    AgentEvent,
    Began,
    Complained,
    Ended,
    TextWritten,
    Tokens,
    ToolAnswered,
    ToolCalled,
    WorkBegan,
    WorkEnded,
    count_at,
    error_at,
    mapping_at,
    mappings_at,
    plain_text,
    session_at,
    text_at,
    words_at,
)
from attractor_nb.backends.agents.agent_failures import FailureKind
from attractor_nb.model.outcome import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


# The dialect of an agent: its command line and the meaning of its lines.


@dataclass(frozen=True, slots=True)
class AgentCall:
    """The parameters of one call of an agent."""

    task: str  #: The whole text for the agent.
    model: str = ""  #: The model; empty for the agent's own choice.
    effort: str = ""  #: ``low``, ``medium`` or ``high``; empty for the agent's own choice.
    system_prompt: str = ""  #: Text for the system prompt, or empty.
    #: Of ``read``, ``write``, ``list`` and ``run``: what it may do. Reading it always may.
    tools: frozenset[str] = field(default_factory=frozenset[str])
    named: tuple[str, ...] = ()  #: Its own tools by their names, such as ``Bash(git:*)``: what it may do besides.
    session: str = ""  #: The session to continue; empty for a fresh one.
    #: A directory beside its working directory in which it may write, if it may write at all.
    directory: Path | None = None
    schema: str = ""  #: JSON Schema of the object that its answer has to be, as text; empty for none.
    #: A file with a schema as OpenAI's strict mode takes it (``strict_schema``); None for none.
    schema_file: Path | None = None
    is_unrestricted: bool = False  #: It may do everything, unasked.
    more: tuple[str, ...] = ()  #: More flags, which are behind ours.

    @property
    def may_write(self) -> bool:
        """True if it may change files."""
        return self.is_unrestricted or "write" in self.tools

    @property
    def whole_text(self) -> str:
        """The task behind the system prompt, for an agent that takes no system prompt of its own."""
        return f"{self.system_prompt}\n\n{self.task}" if self.system_prompt else self.task


class Dialect(Protocol):
    """One agent."""

    name: ClassVar[str]  #: Its name, which is that of its program, too.
    title: ClassVar[str]  #: Name that its makers use.
    install: ClassVar[str]  #: The command that installs it.
    keys: ClassVar[tuple[str, ...]]  #: Environment variables that can hold its key.
    #: Prefix of its environment variables. It gets these; commands inherit no keys and nothing of any
    #: provider.
    own_variables: ClassVar[tuple[str, ...]]
    exit_kinds: ClassVar[Mapping[int, FailureKind]]  #: Kind of failure of each documented exit code.
    #: The usage that it tells is that of the session so far, and not of this call.
    counts_whole_sessions: ClassVar[bool]
    tells_price: ClassVar[bool]  #: It says what a call cost.
    price_provider: ClassVar[str]  #: Provider whose list prices apply to its tokens if it reports no price; or empty.
    takes_schema_file: ClassVar[bool]  #: It is told by a file what its answer has to be, in OpenAI's strict form.
    #: The names of its own tools that `allowed_tools` may use, with patterns; empty for none.
    tool_names: ClassVar[frozenset[str]]

    def arguments(self, call: AgentCall) -> list[str]:
        """Its command line without the program."""
        ...

    def stdin(self, call: AgentCall) -> str:
        """The text for its stdin."""
        ...

    def read(self, line: Mapping[str, Any]) -> list[AgentEvent]:
        """The events of a line of its stdout; empty for an irrelevant or unknown line."""
        ...


# Codex CLI: ``codex exec --json -``.
#
# Sources: "Non-interactive mode" of its documentation, and in its public source the events of
# ``codex exec --json`` (``exec_events.rs``) and the flags of ``codex exec`` and ``codex exec resume``. The
# usage of ``turn.completed`` is that of the whole thread so far, and no price is reported.

_COMMAND: Final = "command_execution"
_PASSING: Final = re.compile("reconnecting|retrying|falling back", re.IGNORECASE)
"""Of errors that codex itself continues from; all others are said to be unrecoverable."""
_TOOLS: Final = {
    _COMMAND: ("command",),
    "file_change": ("changes",),
    "mcp_tool_call": ("server", "tool", "arguments"),
    "web_search": ("query",),
}
"""The items that are calls of tools, and what of them are the arguments."""


@dataclass(frozen=True, slots=True)
class Codex:
    """Codex CLI (``dialect.Dialect``)."""

    name: ClassVar[str] = "codex"
    title: ClassVar[str] = "Codex CLI"
    install: ClassVar[str] = "npm install -g @openai/codex"
    keys: ClassVar[tuple[str, ...]] = ("CODEX_API_KEY", "OPENAI_API_KEY")
    own_variables: ClassVar[tuple[str, ...]] = ("OPENAI_", "CODEX_")
    exit_kinds: ClassVar[Mapping[int, FailureKind]] = {}
    counts_whole_sessions: ClassVar[bool] = True
    tells_price: ClassVar[bool] = False
    price_provider: ClassVar[str] = "openai"
    takes_schema_file: ClassVar[bool] = True
    tool_names: ClassVar[frozenset[str]] = frozenset()

    def arguments(self, call: AgentCall) -> list[str]:
        """Flags of ``exec`` are before ``resume``, which has few of its own.

        Codex refuses to work outside a repository of git, where nothing could be taken back. What may only
        read has nothing to take back.
        """
        arguments = ["exec", "--json", *_codex_permissions(call)]
        if call.directory is not None and call.may_write:
            arguments.append(f"--add-dir={call.directory}")
        if call.model:
            arguments.append(f"--model={call.model}")
        if call.effort:
            arguments.append(f"--config=model_reasoning_effort={json.dumps(call.effort)}")
        if call.schema_file is not None:
            arguments.append(f"--output-schema={call.schema_file}")
        arguments += call.more
        return [*arguments, "resume", call.session, "-"] if call.session else [*arguments, "-"]

    def stdin(self, call: AgentCall) -> str:
        """System prompt and task: ``-`` says that they come here."""
        return call.whole_text

    def read(self, line: Mapping[str, Any]) -> list[AgentEvent]:
        """The events of a line."""
        match line.get("type"):
            case "thread.started":
                return [Began(session_at(line, "thread_id"))]
            case "item.started":
                return _started(mapping_at(line, "item"))
            case "item.completed":
                return _completed(mapping_at(line, "item"))
            case "turn.completed":
                usage, error = mapping_at(line, "usage"), error_at(line, "error")
                return [
                    Ended(is_failure=bool(error), error=error, usage=_codex_usage(usage), tokens=_codex_tokens(usage))
                ]
            case "turn.failed":
                return [Ended(is_failure=True, error=error_at(line, "error"))]
            case "error":
                message = error_at(line, "message")
                return [Complained(message, is_final=_PASSING.search(message) is None)]
            case _:
                return []


def _codex_permissions(call: AgentCall) -> list[str]:
    if call.is_unrestricted:
        return ["--dangerously-bypass-approvals-and-sandbox"]
    if call.may_write:
        return ["--sandbox=workspace-write"]
    return ["--sandbox=read-only", "--skip-git-repo-check"]


def _started(item: Mapping[str, Any]) -> list[AgentEvent]:
    call = _call(item)
    if call is None:
        return []
    # A command may continue when the turn has ended; then it is ended with it.
    is_command = item.get("type") == _COMMAND
    return [call, WorkBegan(call.call_id, text_at(item, "command"), is_background=True)] if is_command else [call]


def _completed(item: Mapping[str, Any]) -> list[AgentEvent]:
    if item.get("type") == "agent_message":
        return [TextWritten(text)] if (text := text_at(item, "text")) else []
    call = _call(item)
    if call is None:
        return []
    is_command = item.get("type") == _COMMAND
    return [_codex_answered(item, call), WorkEnded(call.call_id)] if is_command else [_codex_answered(item, call)]


def _call(item: Mapping[str, Any]) -> ToolCalled | None:
    kind = item.get("type")
    names = _TOOLS.get(kind) if isinstance(kind, str) else None
    if names is None:
        return None
    tool = text_at(item, "tool") or str(kind)
    arguments: dict[str, Any] = {name: item[name] for name in names if name != "tool" and name in item}
    return ToolCalled(text_at(item, "id"), tool, arguments)


def _codex_answered(item: Mapping[str, Any], call: ToolCalled) -> ToolAnswered:
    result = text_at(item, "aggregated_output")
    parts = mappings_at(mapping_at(item, "result"), "content")
    result = result or "".join(text_at(part, "text") for part in parts)
    error = text_at(mapping_at(item, "error"), "message")
    status, exit_code = item.get("status"), item.get("exit_code")
    if not error and type(exit_code) is int and exit_code != 0:
        error = f"exit code {exit_code}"
    if not error and status in ("failed", "declined"):
        error = str(status)
    return ToolAnswered(call.call_id, result, error, call, is_denied=status == "declined")


def _codex_usage(usage: Mapping[str, Any]) -> Usage | None:
    """The usage of a turn. ``input_tokens`` include those from the cache, ``output_tokens`` those of reasoning."""
    if not usage:
        return None
    return Usage(count_at(usage, "input_tokens"), count_at(usage, "output_tokens"), None, 1)


def _codex_tokens(usage: Mapping[str, Any]) -> tuple[Tokens, ...]:
    if not usage:
        return ()
    read = count_at(usage, "cached_input_tokens")
    return (Tokens("", count_at(usage, "input_tokens"), count_at(usage, "output_tokens"), read),)


# Gemini CLI: ``gemini --prompt … --output-format stream-json``.
#
# Sources: "Headless mode" and the CLI reference of its documentation, and in its public source the types of the
# stream (``output/types.ts``), ``nonInteractiveCli.ts`` and the exit codes. No price is reported.

_DENIALS: Final = frozenset({"policy_violation", "tool_not_registered"})
"""Errors of a tool that was not called, because calls that need approval are not offered."""
_STOPPED: Final = re.compile(r"loop detected|stopping execution|execution stopped", re.IGNORECASE)
_HARMLESS: Final = frozenset({"warning", "warn", "info"})
_PROMPT: Final = "Do the task above."
"""``--prompt`` keeps it from asking, whatever the version; it is put behind what stdin holds."""


@dataclass(frozen=True, slots=True)
class Gemini:
    """Gemini CLI (``dialect.Dialect``)."""

    name: ClassVar[str] = "gemini"
    title: ClassVar[str] = "Gemini CLI"
    install: ClassVar[str] = "npm install -g @google/gemini-cli"
    keys: ClassVar[tuple[str, ...]] = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    own_variables: ClassVar[tuple[str, ...]] = ("GEMINI_", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS")
    exit_kinds: ClassVar[Mapping[int, FailureKind]] = {
        41: FailureKind.ACCESS,
        42: FailureKind.REQUEST,
        52: FailureKind.REQUEST,
        53: FailureKind.TURNS,
        55: FailureKind.TRUST,
    }
    counts_whole_sessions: ClassVar[bool] = False
    tells_price: ClassVar[bool] = False
    price_provider: ClassVar[str] = "google"
    takes_schema_file: ClassVar[bool] = False
    tool_names: ClassVar[frozenset[str]] = frozenset()

    def arguments(self, call: AgentCall) -> list[str]:
        """It has no flag for reasoning effort, so none is passed."""
        arguments = [f"--prompt={_PROMPT}", "--output-format=stream-json", *_gemini_permissions(call)]
        if call.directory is not None and call.may_write:
            arguments.append(f"--include-directories={call.directory}")
        if call.model:
            arguments.append(f"--model={call.model}")
        if call.session:
            arguments.append(f"--resume={call.session}")
        return [*arguments, *call.more]

    def stdin(self, call: AgentCall) -> str:
        """System prompt and task."""
        return call.whole_text

    def read(self, line: Mapping[str, Any]) -> list[AgentEvent]:
        """The events of a line."""
        match line.get("type"):
            case "init":
                return [Began(session_at(line, "session_id"), text_at(line, "model"))]
            case "message" if line.get("role") == "assistant":
                text = text_at(line, "content")
                return [TextWritten(text, is_whole=line.get("delta") is not True)] if text else []
            case "tool_use":
                return [
                    ToolCalled(text_at(line, "tool_id"), text_at(line, "tool_name"), mapping_at(line, "parameters"))
                ]
            case "tool_result":
                return [_gemini_answered(line)]
            case "error":
                return _complained(line)
            case "result":
                return [_gemini_ended(line)]
            case _:
                return []


def _gemini_permissions(call: AgentCall) -> list[str]:
    """Without a person to ask, what would have to be approved is refused."""
    if call.is_unrestricted:
        return ["--approval-mode=yolo"]
    flags = [f"--approval-mode={'auto_edit' if call.may_write else 'default'}"]
    return [*flags, "--allowed-tools=run_shell_command"] if "run" in call.tools else flags


def _gemini_answered(line: Mapping[str, Any]) -> ToolAnswered:
    error = text_at(mapping_at(line, "error"), "message")
    if line.get("status") == "error":
        error = error or "failed"
    is_denied = text_at(mapping_at(line, "error"), "type").lower() in _DENIALS
    return ToolAnswered(text_at(line, "tool_id"), text_at(line, "output"), error, is_denied=is_denied)


def _complained(line: Mapping[str, Any]) -> list[AgentEvent]:
    """An error is the end, though a result follows that says otherwise; so is what stopped it as a warning."""
    message = error_at(line, "message")
    is_final = words_at(line, "severity") not in _HARMLESS or _STOPPED.search(message) is not None
    return [Complained(message, is_final=True)] if is_final else []


def _gemini_ended(line: Mapping[str, Any]) -> Ended:
    stats = mapping_at(line, "stats")
    usage = None
    if stats:
        usage = Usage(count_at(stats, "input_tokens"), count_at(stats, "output_tokens"), None, 1)
    error = error_at(line, "error")
    if line.get("status") == "success" and not error:
        return Ended(usage=usage, tokens=_gemini_tokens(stats))
    return Ended(is_failure=True, error=error, usage=usage, tokens=_gemini_tokens(stats))


def _gemini_tokens(stats: Mapping[str, Any]) -> tuple[Tokens, ...]:
    """Tokens by model where the stream tells them so, else all of them together."""
    by_model = mapping_at(stats, "models")
    entries = {plain_text(name): mapping_at(by_model, name) for name in by_model}
    if not entries:
        entries = {"": stats} if stats else {}
    return tuple(
        Tokens(name, count_at(entry, "input_tokens"), count_at(entry, "output_tokens"), count_at(entry, "cached"))
        for name, entry in entries.items()
    )
