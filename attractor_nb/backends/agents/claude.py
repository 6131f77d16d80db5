"""Claude Code: ``claude -p --output-format stream-json --verbose``.

Read for this: the CLI reference and "Run Claude Code programmatically" of its documentation, and the types
and the command line of its public Python SDK (messages ``system``/``init``, ``assistant``, ``user``,
``result``). Reported cost and usage are those of one call, also in a session that is continued.
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
    Consumed,
    Ended,
    TextWritten,
    Tokens,
    ToolAnswered,
    ToolCalled,
    WorkBegan,
    WorkEnded,
    cost_at,
    count_at,
    error_at,
    is_said_at,
    mapping_at,
    mappings_at,
    plain_text,
    session_at,
    text_at,
    texts_at,
    words_at,
)
from attractor_nb.backends.agents.agent_failures import FailureKind
from attractor_nb.model.allowed_tools import CLAUDE_TOOLS, agent_tool
from attractor_nb.model.outcome import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.backends.agents.dialects import AgentCall

MAX_SCHEMA_BYTES: Final = 100_000
"""Linux takes no longer argument than 128 KiB; a larger schema is in the prompt alone."""
_COMMAND_TOOL: Final = "Bash"
_READING_TOOLS: Final = ("Glob", "Grep", "LS", "NotebookRead", "Read")
_WRITING_TOOLS: Final = ("Edit", "MultiEdit", "Write", "NotebookEdit")
_STATUS_OF_ERROR: Final = {
    "authentication_failed": 401,
    "billing_error": 402,
    "invalid_request": 400,
    "rate_limit": 429,
    "server_error": 500,
    "overloaded": 529,
}
"""HTTP status for each ``error`` of an assistant message."""
_REFUSAL: Final = "refusal"
_WELL: Final = ("", "success", "completed")
_BAD_END: Final = re.compile("error|abort|limit|refus|too_long|max_turns|breaker|stopped|prevented")
"""``terminal_reason`` of a result that is not a success."""
_DONE: Final = frozenset({"completed", "failed"})
"""Ways in which work ends that the agent is notified of, such as a tool call."""
_STOPPED: Final = frozenset({"stopped", "killed"})
_ENDING_TOOLS: Final = frozenset({"TaskStop", "KillShell", "KillBash"})
_WORK_IDS: Final = ("task_id", "shell_id", "bash_id")
_INPUTS: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_MODEL_INPUTS: Final = ("inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens")


@dataclass(frozen=True, slots=True)
class Claude:
    """Claude Code (``dialect.Dialect``)."""

    name: ClassVar[str] = "claude"
    title: ClassVar[str] = "Claude Code"
    install: ClassVar[str] = "npm install -g @anthropic-ai/claude-code"
    keys: ClassVar[tuple[str, ...]] = ("ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN")
    own_variables: ClassVar[tuple[str, ...]] = ("ANTHROPIC_", "CLAUDE_")
    exit_kinds: ClassVar[Mapping[int, FailureKind]] = {}
    counts_whole_sessions: ClassVar[bool] = False
    tells_price: ClassVar[bool] = True
    price_provider: ClassVar[str] = "anthropic"
    takes_schema_file: ClassVar[bool] = False
    tool_names: ClassVar[frozenset[str]] = CLAUDE_TOOLS

    def arguments(self, call: AgentCall) -> list[str]:
        """Values are behind ``=``, so that none of them can be read as a flag.

        A session that is continued is forked: the one that a committed stage left stays as it is, and an
        attempt that is made again does not find its own words in it.
        """
        arguments = ["-p", "--output-format=stream-json", "--verbose", "--include-partial-messages"]
        arguments += _permissions(call)
        if call.directory is not None and call.may_write:
            arguments.append(f"--add-dir={call.directory}")
        if call.model:
            arguments.append(f"--model={call.model}")
        if call.effort:
            arguments.append(f"--effort={call.effort}")
        if call.system_prompt:
            arguments.append(f"--append-system-prompt={call.system_prompt}")
        if call.schema and len(call.schema.encode()) < MAX_SCHEMA_BYTES:
            arguments.append(f"--json-schema={call.schema}")
        if call.session:
            arguments += [f"--resume={call.session}", "--fork-session"]
        return [*arguments, *call.more]

    def stdin(self, call: AgentCall) -> str:
        """The task: in print mode it is read where no argument holds it."""
        return call.task

    def read(self, line: Mapping[str, Any]) -> list[AgentEvent]:
        """The events of a message. Agents that the agent started contribute only their tool calls."""
        match line.get("type"):
            case "system" if line.get("subtype") == "init":
                return [Began(session_at(line, "session_id"), text_at(line, "model"))]
            case "system":
                return _work(line)
            case "stream_event":
                return _piece(line)
            case "assistant":
                return _assistant(line)
            case "user":
                return [_answered(block) for block in _blocks(line) if block.get("type") == "tool_result"]
            case "result":
                return [Began(session_at(line, "session_id")), _ended(line)]
            case _:
                return []


def _permissions(call: AgentCall) -> list[str]:
    """The permission flags. Tools that are not allowed are denied by name: a denial overrides the user's settings."""
    if call.is_unrestricted:
        return ["--permission-mode=bypassPermissions"]
    named = set(map(agent_tool, call.named))
    allowed = [*((_COMMAND_TOOL,) if "run" in call.tools else ()), *call.named]
    denied = [] if "run" in call.tools or _COMMAND_TOOL in named else [_COMMAND_TOOL]
    if not call.may_write:
        denied += [name for name in _WRITING_TOOLS if name not in named]
    if named:
        known = {_COMMAND_TOOL, *_WRITING_TOOLS, *named, *(_READING_TOOLS if call.tools else ())}
        denied += sorted(CLAUDE_TOOLS - known)
    flags = [f"--permission-mode={'acceptEdits' if call.may_write else 'default'}"]
    if allowed:
        flags.append(f"--allowedTools={','.join(allowed)}")
    return [*flags, f"--disallowedTools={','.join(denied)}"] if denied else flags


def _blocks(line: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return mappings_at(mapping_at(line, "message"), "content")


def _piece(line: Mapping[str, Any]) -> list[AgentEvent]:
    """A piece of a message that is being written; the message itself follows when it is whole."""
    event = mapping_at(line, "event")
    delta = mapping_at(event, "delta")
    if line.get("parent_tool_use_id"):
        return []
    if event.get("type") == "message_start":
        return _consumed(mapping_at(event, "message"))
    if event.get("type") == "message_delta":
        return _consumed(event)
    if event.get("type") != "content_block_delta":
        return []
    text = text_at(delta, "text") if delta.get("type") == "text_delta" else ""
    return [TextWritten(text, is_whole=False)] if text else []


def _assistant(line: Mapping[str, Any]) -> list[AgentEvent]:
    blocks = _blocks(line)
    text = "".join(text_at(block, "text") for block in blocks if block.get("type") == "text")
    is_own = not line.get("parent_tool_use_id")
    if (error := line.get("error")) or is_said_at(line, "is_api_error_message"):
        status = _STATUS_OF_ERROR.get(error, 0) if isinstance(error, str) else 0
        return [Complained(text or error_at(line, "error") or "an error of the API", status, is_final=is_own)]
    events = _consumed(mapping_at(line, "message"))
    if text and is_own:
        events.append(TextWritten(text))
    if is_own and _REFUSAL in words_at(mapping_at(line, "message"), "stop_reason"):
        events.append(Complained(_refused(text), is_final=True, kind=FailureKind.REFUSAL))
    return [*events, *(_called(block) for block in blocks if block.get("type") == "tool_use")]


def _consumed(message: Mapping[str, Any]) -> list[AgentEvent]:
    """The usage that a message reports."""
    usage = mapping_at(message, "usage")
    if not usage:
        return []
    sent = sum(count_at(usage, name) for name in _INPUTS)
    tokens = Tokens(
        text_at(message, "model"), sent, count_at(usage, "output_tokens"), count_at(usage, "cache_read_input_tokens")
    )
    return [Consumed(text_at(message, "id"), tokens)]


def _called(call: Mapping[str, Any]) -> ToolCalled:
    tool, given = text_at(call, "name"), mapping_at(call, "input")
    ends = next((id_ for name in _WORK_IDS if (id_ := text_at(given, name))), "") if tool in _ENDING_TOOLS else ""
    return ToolCalled(text_at(call, "id"), tool, given, is_said_at(given, "run_in_background"), ends)


def _work(line: Mapping[str, Any]) -> list[AgentEvent]:
    """The events of work that may continue after the agent's last message."""
    work_id, what = text_at(line, "task_id"), text_at(line, "description") or text_at(line, "summary")
    told = line
    match line.get("subtype"):
        case "task_started":
            is_background = is_said_at(line, "is_backgrounded")
            return [WorkBegan(work_id, what, text_at(line, "tool_use_id"), is_background)]
        case "task_updated":
            told = mapping_at(line, "patch")
        case "task_notification":
            pass
        case _:
            return []
    if (status := text_at(told, "status")) in _DONE | _STOPPED:
        return [WorkEnded(work_id, status in _STOPPED, what)]
    return [WorkBegan(work_id, what, is_background=True)] if is_said_at(told, "is_backgrounded") else []


def _refused(text: str) -> str:
    return f"it refused to answer: {text}" if text else "it refused to answer"


def _answered(block: Mapping[str, Any]) -> ToolAnswered:
    content = block.get("content")
    text = plain_text(content) if isinstance(content, str) else ""
    if isinstance(content, list):
        text = "".join(text_at(part, "text") for part in mappings_at(block, "content"))
    call_id = text_at(block, "tool_use_id")
    if block.get("is_error") is True:
        return ToolAnswered(call_id, error=text or "failed")
    return ToolAnswered(call_id, text)


def _ended(line: Mapping[str, Any]) -> Ended:
    usage, text = _usage(line), text_at(line, "result")
    denied = tuple(text_at(entry, "tool_name") or "a tool" for entry in mappings_at(line, "permission_denials"))
    stop_reason = words_at(line, "stop_reason")
    if _REFUSAL in stop_reason:
        return Ended(is_failure=True, error=_refused(text), usage=usage, denied=denied, kind=FailureKind.REFUSAL)
    if _says_failure(line):
        kinds = [word for word in (text_at(line, "subtype"), text_at(line, "terminal_reason")) if word not in _WELL]
        reason = text or "; ".join(texts_at(line, "errors")) or error_at(line, "error")
        error = ": ".join(part for part in (*kinds[:1], reason) if part)
        status = count_at(line, "api_error_status")
        return Ended(is_failure=True, error=error, status=status, usage=usage, denied=denied)
    answer = text or None
    if isinstance(line.get("structured_output"), dict):
        answer = plain_text(json.dumps(line["structured_output"], ensure_ascii=False))
    return Ended(answer, usage=usage, is_truncated="max_tokens" in stop_reason, denied=denied)


def _says_failure(line: Mapping[str, Any]) -> bool:
    """True if any field of a result says that it is none, whatever the others say (ruling 47)."""
    status = line.get("api_error_status")
    has_status = status >= 400 if type(status) is int else is_said_at(line, "api_error_status")
    is_error = has_status or is_said_at(line, "is_error") or text_at(line, "subtype") != "success"
    has_error = bool(line.get("errors") or line.get("error"))
    return is_error or has_error or _BAD_END.search(words_at(line, "terminal_reason")) is not None


def _usage(line: Mapping[str, Any]) -> Usage | None:
    """Tokens by model, which count agents that the agent started; else those of the agent alone."""
    by_model = mapping_at(line, "modelUsage")
    models = [mapping_at(by_model, name) for name in by_model]
    own = mapping_at(line, "usage")
    if not models and not own:
        return None
    entries, names, output = [own], _INPUTS, "output_tokens"
    if models:
        entries, names, output = models, _MODEL_INPUTS, "outputTokens"
    return Usage(
        sum(count_at(entry, name) for entry in entries for name in names),
        sum(count_at(entry, output) for entry in entries),
        cost_at(line, "total_cost_usd"),
        max(1, count_at(line, "num_turns")),
    )
