"""Codex CLI: ``codex exec --json -``.

Read for this: "Non-interactive mode" of its documentation, and of its public source the events of
``codex exec --json`` (``exec_events.rs``) and the flags of ``codex exec`` and ``codex exec resume``. The
usage of ``turn.completed`` is that of the whole thread so far, and no price is told.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

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
    session_at,
    text_at,
)
from attractor_nb.model.outcome import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.backends.agents.agent_failures import FailureKind
    from attractor_nb.backends.agents.dialect import AgentCall

_COMMAND: Final = "command_execution"
_PASSING: Final = re.compile("reconnecting|retrying|falling back", re.IGNORECASE)
"""Of errors that codex itself goes on from; all others are said to be unrecoverable."""
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
        """Flags of ``exec`` stand before ``resume``, which has few of its own.

        Codex refuses to work outside a repository of git, where nothing could be taken back. What may only
        read has nothing to take back.
        """
        arguments = ["exec", "--json", *_permissions(call)]
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
        """What an event says."""
        match line.get("type"):
            case "thread.started":
                return [Began(session_at(line, "thread_id"))]
            case "item.started":
                return _started(mapping_at(line, "item"))
            case "item.completed":
                return _completed(mapping_at(line, "item"))
            case "turn.completed":
                usage, error = mapping_at(line, "usage"), error_at(line, "error")
                return [Ended(is_failure=bool(error), error=error, usage=_usage(usage), tokens=_tokens(usage))]
            case "turn.failed":
                return [Ended(is_failure=True, error=error_at(line, "error"))]
            case "error":
                message = error_at(line, "message")
                return [Complained(message, is_final=_PASSING.search(message) is None)]
            case _:
                return []


def _permissions(call: AgentCall) -> list[str]:
    if call.is_unrestricted:
        return ["--dangerously-bypass-approvals-and-sandbox"]
    if call.may_write:
        return ["--sandbox=workspace-write"]
    return ["--sandbox=read-only", "--skip-git-repo-check"]


def _started(item: Mapping[str, Any]) -> list[AgentEvent]:
    call = _call(item)
    if call is None:
        return []
    # A command may go on when the turn has ended; then it is ended with it.
    is_command = item.get("type") == _COMMAND
    return [call, WorkBegan(call.call_id, text_at(item, "command"), is_background=True)] if is_command else [call]


def _completed(item: Mapping[str, Any]) -> list[AgentEvent]:
    if item.get("type") == "agent_message":
        return [TextWritten(text)] if (text := text_at(item, "text")) else []
    call = _call(item)
    if call is None:
        return []
    is_command = item.get("type") == _COMMAND
    return [_answered(item, call), WorkEnded(call.call_id)] if is_command else [_answered(item, call)]


def _call(item: Mapping[str, Any]) -> ToolCalled | None:
    kind = item.get("type")
    names = _TOOLS.get(kind) if isinstance(kind, str) else None
    if names is None:
        return None
    tool = text_at(item, "tool") or str(kind)
    arguments: dict[str, Any] = {name: item[name] for name in names if name != "tool" and name in item}
    return ToolCalled(text_at(item, "id"), tool, arguments)


def _answered(item: Mapping[str, Any], call: ToolCalled) -> ToolAnswered:
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


def _usage(usage: Mapping[str, Any]) -> Usage | None:
    """What was read from the cache is part of ``input_tokens``, reasoning part of ``output_tokens``."""
    if not usage:
        return None
    return Usage(count_at(usage, "input_tokens"), count_at(usage, "output_tokens"), None, 1)


def _tokens(usage: Mapping[str, Any]) -> tuple[Tokens, ...]:
    if not usage:
        return ()
    read = count_at(usage, "cached_input_tokens")
    return (Tokens("", count_at(usage, "input_tokens"), count_at(usage, "output_tokens"), read),)
