"""Gemini CLI: ``gemini --prompt … --output-format stream-json``.

Read for this: "Headless mode" and the CLI reference of its documentation, and of its public source the
types of the stream (``output/types.ts``), ``nonInteractiveCli.ts`` and the exit codes. No price is told.
"""

from __future__ import annotations

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
    count_at,
    error_at,
    mapping_at,
    plain_text,
    session_at,
    text_at,
    words_at,
)
from attractor_nb.backends.agents.agent_failures import FailureKind
from attractor_nb.model.outcome import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.backends.agents.dialect import AgentCall

_DENIALS: Final = frozenset({"policy_violation", "tool_not_registered"})
"""What the error of a tool is called that was not made: what would have to be approved is not offered."""
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
        arguments = [f"--prompt={_PROMPT}", "--output-format=stream-json", *_permissions(call)]
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
        """What an event says."""
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
                return [_answered(line)]
            case "error":
                return _complained(line)
            case "result":
                return [_ended(line)]
            case _:
                return []


def _permissions(call: AgentCall) -> list[str]:
    """Without a person to ask, what would have to be approved is refused."""
    if call.is_unrestricted:
        return ["--approval-mode=yolo"]
    flags = [f"--approval-mode={'auto_edit' if call.may_write else 'default'}"]
    return [*flags, "--allowed-tools=run_shell_command"] if "run" in call.tools else flags


def _answered(line: Mapping[str, Any]) -> ToolAnswered:
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


def _ended(line: Mapping[str, Any]) -> Ended:
    stats = mapping_at(line, "stats")
    usage = None
    if stats:
        usage = Usage(count_at(stats, "input_tokens"), count_at(stats, "output_tokens"), None, 1)
    error = error_at(line, "error")
    if line.get("status") == "success" and not error:
        return Ended(usage=usage, tokens=_tokens(stats))
    return Ended(is_failure=True, error=error, usage=usage, tokens=_tokens(stats))


def _tokens(stats: Mapping[str, Any]) -> tuple[Tokens, ...]:
    """Tokens by model where the stream tells them so, else all of them together."""
    by_model = mapping_at(stats, "models")
    entries = {plain_text(name): mapping_at(by_model, name) for name in by_model}
    if not entries:
        entries = {"": stats} if stats else {}
    return tuple(
        Tokens(name, count_at(entry, "input_tokens"), count_at(entry, "output_tokens"), count_at(entry, "cached"))
        for name, entry in entries.items()
    )
