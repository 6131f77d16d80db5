"""What spans say of their events, as attributes of plain types: facts, and content where it is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.model.bounded_json import read_bounded_json
from attractor_nb.model.events import InterviewCompleted, InterviewStarted, InterviewTimeout
from attractor_nb.model.vocabulary.shapes import DEFAULT_TYPE
from attractor_nb.redaction import redacted, redacted_value
from attractor_nb.tracing import names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.model.events import Event, ModelCallEnded, StageEnd, StageEvent, StageStarted, ToolCallEnded

MAX_TEXT_CHARS: Final = 1000
"""Of the text of a status or a note: traces are kept by others, and read in lists."""
_TALK: Final = (InterviewStarted, InterviewCompleted, InterviewTimeout)

StageReader = Callable[[str, str, str], str | None]
"""Reads a file of a stage: node id, file name and branch to its text, or None."""
MAX_CONTENT_CHARS: Final = 20_000


def of_run(pipeline: str, run_id: str) -> dict[str, Any]:
    """Of a run."""
    return {names.OPERATION: names.INVOKE_WORKFLOW, names.WORKFLOW: pipeline, names.RUN: run_id}


def of_stage(event: StageStarted) -> dict[str, Any]:
    """Of a visit to a node."""
    return {**_place(event), names.HANDLER: event.handler_type}


def of_attempt(event: StageStarted, run_id: str) -> dict[str, Any]:
    """Of an attempt. That of a model's stage is what the conventions call an agent, under the node's name."""
    is_agent = event.handler_type == DEFAULT_TYPE
    return {
        names.OPERATION: names.INVOKE_AGENT if is_agent else None,
        names.AGENT: event.name if is_agent else None,
        **_place(event),
        names.ATTEMPT: event.attempt,
        names.FIDELITY: event.fidelity,
        names.CONVERSATION: names.conversation(run_id, event.thread),
    }


def of_end(event: StageEnd) -> dict[str, Any]:
    """Of the end of an attempt.

    What it consumed has names of its own: who adds up the calls does not add it a second time. No price is no
    attribute, and never zero.
    """
    found: dict[str, Any] = {names.OUTCOME: event.outcome.status.value}
    if (usage := event.outcome.usage) is not None:
        found |= {
            names.ATTEMPT_INPUT_TOKENS: usage.input_tokens,
            names.ATTEMPT_OUTPUT_TOKENS: usage.output_tokens,
            names.ATTEMPT_COST: usage.cost_usd,
            names.ATTEMPT_UNPRICED: usage.unpriced_calls or None,
        }
    return found


def of_commit(event: StageEnd) -> dict[str, Any]:
    """Of the end of a visit."""
    return {
        names.OUTCOME: event.outcome.status.value,
        names.CACHED: event.is_cached or None,
        names.NEXT_NODE: event.next_node,
        names.ROUTE: event.route,
    }


def of_model_call(event: ModelCallEnded, run_id: str) -> dict[str, Any]:
    """Of a model call."""
    provider, model = names.provider_and_model(event.model)
    found: dict[str, Any] = {
        names.OPERATION: names.CHAT,
        names.PROVIDER: provider,
        names.REQUEST_MODEL: model,
        names.RESPONSE_MODEL: event.answered_by,
        names.CONVERSATION: names.conversation(run_id, event.thread),
        names.FINISH_REASONS: (event.finish,) if event.finish else (),
    }
    if event.usage is not None:
        found |= {
            names.INPUT_TOKENS: event.usage.input_tokens,
            names.OUTPUT_TOKENS: event.usage.output_tokens,
            names.CACHED_TOKENS: event.usage.cached_tokens or None,
            names.CALL_COST: event.usage.cost_usd,
        }
    return found


def of_tool_call(event: ToolCallEnded) -> dict[str, Any]:
    """Of a tool call."""
    return {
        names.OPERATION: names.EXECUTE_TOOL,
        names.TOOL_NAME: event.tool,
        names.TOOL_CALL: event.call_id,
        names.SKIPPED: bool(event.skipped) or None,
    }


def of_note(event: Event) -> dict[str, Any]:
    """Of something that happened on the way; what people were asked and said is content."""
    message = "" if isinstance(event, _TALK) else event.description
    return clean({names.NODE: event.node_id, "attractor.message": plain_text(message)})


def clean(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that say something, without secrets."""
    return {
        name: redacted(value) if isinstance(value, str) else value
        for name, value in attributes.items()
        if value is not None and value not in ("", ())
    }


def plain_text(text: str) -> str:
    """A short text without secrets."""
    return redacted(text)[:MAX_TEXT_CHARS]


def _place(event: StageEvent) -> dict[str, Any]:
    return {names.NODE: event.name, names.VISIT: event.visit, names.BRANCH: event.branch}


def content_of_attempt(event: StageEnd, read: StageReader) -> dict[str, Any]:
    """What an attempt sent and got, as its files say; nothing when they are another attempt's by now."""
    node = event.name, event.branch
    texts = [_read(read, *node, name) for name in ("prompt.md", "response.md")]
    if not any(texts) or not _is_of(event, _read(read, *node, "status.json")):
        return {}
    sent, got = texts
    messages: dict[str, dict[str, Any]] = {}
    if sent:
        messages[names.INPUT_MESSAGES] = _message("user", sent)
    if got:  # without a reason it is no message of the conventions
        reason = "error" if event.outcome.status.is_failure else "stop"
        messages[names.OUTPUT_MESSAGES] = {**_message("assistant", got), "finish_reason": reason}
    return {name: json.dumps([message], ensure_ascii=False) for name, message in messages.items()}


def content_of_tool_call(event: ToolCallEnded) -> dict[str, Any]:
    """Return the arguments and the result of a tool call."""
    arguments = json.dumps(redacted_value(dict(event.arguments)), ensure_ascii=False, default=str)
    return {names.TOOL_ARGUMENTS: arguments[:MAX_CONTENT_CHARS], names.TOOL_RESULT: event.result}


def _read(read: StageReader, node_id: str, branch: str, name: str) -> str:
    return read(node_id, name, branch) or ""


def _is_of(event: StageEnd, status: str) -> bool:
    """Whether a status.json is that of this attempt: files of earlier ones are moved away before the next."""
    try:
        plain: Any = read_bounded_json(status)
    except ValueError:  # an agent may write anything there
        return False
    if not isinstance(plain, dict):
        return False
    entries = cast("dict[str, Any]", plain)
    return (entries.get("visit"), entries.get("attempt")) == (event.visit, event.attempt)


def _message(role: str, text: str) -> dict[str, Any]:
    """A message in the form of OpenTelemetry's GenAI conventions."""
    return {"role": role, "parts": [{"type": "text", "content": redacted(text)[:MAX_CONTENT_CHARS]}]}
