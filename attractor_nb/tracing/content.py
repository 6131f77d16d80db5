"""Prompts, responses, and arguments and results of tools, for spans with content."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.redaction import redacted, redacted_value
from attractor_nb.tracing import names

if TYPE_CHECKING:
    from attractor_nb.model.events import StageEnd, ToolCallEnded

StageReader = Callable[[str, str, str], str | None]
"""Reads a file of a stage: node id, file name and branch to its text, or None."""
MAX_CONTENT_CHARS: Final = 20_000


def of_attempt(event: StageEnd, read: StageReader) -> dict[str, Any]:
    """What an attempt sent and got, as its files say; nothing when they are another attempt's by now."""
    node = event.name, event.branch
    texts = [_read(read, *node, name) for name in ("prompt.md", "response.md")]
    if not any(texts) or not _is_of(event, _read(read, *node, "status.json")):
        return {}
    roles = ("user", "assistant")
    keys = (names.INPUT_MESSAGES, names.OUTPUT_MESSAGES)
    return {
        key: json.dumps([_message(role, text)], ensure_ascii=False)
        for key, role, text in zip(keys, roles, texts, strict=True)
        if text
    }


def of_tool_call(event: ToolCallEnded) -> dict[str, Any]:
    """Return the arguments and the result of a tool call."""
    arguments = json.dumps(redacted_value(dict(event.arguments)), ensure_ascii=False, default=str)
    return {names.TOOL_ARGUMENTS: arguments[:MAX_CONTENT_CHARS], names.TOOL_RESULT: event.result}


def _read(read: StageReader, node_id: str, branch: str, name: str) -> str:
    return read(node_id, name, branch) or ""


def _is_of(event: StageEnd, status: str) -> bool:
    """Whether a status.json is that of this attempt: files of earlier ones are moved away before the next."""
    try:
        plain = json.loads(status)
    except ValueError:
        return False
    return (plain.get("visit"), plain.get("attempt")) == (event.visit, event.attempt)


def _message(role: str, text: str) -> dict[str, Any]:
    """A message in the form of OpenTelemetry's GenAI conventions."""
    return {"role": role, "parts": [{"type": "text", "content": redacted(text)[:MAX_CONTENT_CHARS]}]}
