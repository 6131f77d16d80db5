"""What stands where in a message, in the two plain forms in which backends keep them.

Messages of chats (``role`` and ``content``) and of pydantic-ai (``kind`` and ``parts``), as JSON values. A
form that is not known has no text: it is left as it is.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.model.bounded_json import read_bounded_json
from attractor_nb.model.calls.tokens import estimated_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Message = dict[str, Any]
MESSAGE_TOKENS: Final = 4
"""What a message costs beside its text."""
OMITTED: Final = "[output of {count} characters left out]"
_SYSTEM_ROLES: Final = frozenset({"system", "developer"})


def prompt_of(message: Mapping[str, Any]) -> str | None:
    """What a person or a stage says in it; None when it begins no turn."""
    if "kind" in message:
        prompts = [part for part in _parts(message) if part.get("part_kind") == "user-prompt"]
        return "\n\n".join(_text(part.get("content")) for part in prompts) if prompts else None
    return _text(message.get("content")) if message.get("role") == "user" else None


def answer_of(message: Mapping[str, Any]) -> str:
    """What the model says in it; empty when it says nothing."""
    if "kind" in message:
        texts = [part for part in _parts(message) if part.get("part_kind") == "text"]
        return "\n".join(_text(part.get("content")) for part in texts)
    return _text(message.get("content")) if message.get("role") == "assistant" else ""


def system_of(message: Mapping[str, Any]) -> Message | None:
    """The part of it that is a system prompt, as a message of its own; None without one."""
    if "kind" in message:
        parts = [part for part in _parts(message) if part.get("part_kind") == "system-prompt"]
        return {**message, "parts": parts} if parts else None
    return dict(message) if message.get("role") in _SYSTEM_ROLES else None


def without_system(message: Message) -> Message | None:
    """It without its system prompt; None when nothing else is in it."""
    if "kind" in message:
        parts = [part for part in _parts(message) if part.get("part_kind") != "system-prompt"]
        return {**message, "parts": parts} if parts else None
    return None if message.get("role") in _SYSTEM_ROLES else message


def without_outputs(message: Message) -> tuple[Message, int]:
    """It with a short line in place of each output of a tool that is longer, and how many those were."""
    if "kind" in message:
        count, parts = 0, list[Message]()
        for part in _parts(message):
            is_output = part.get("part_kind") == "tool-return"
            short = _omitted(part.get("content")) if is_output else None
            count += short is not None
            parts.append(part if short is None else {**part, "content": short})
        return ({**message, "parts": parts}, count) if count else (message, 0)
    short = _omitted(message.get("content")) if message.get("role") == "tool" else None
    return (message, 0) if short is None else ({**message, "content": short}, 1)


def with_prompt_before(message: Message, text: str) -> Message:
    """It with a text before what is said in it, for a message that begins a turn."""
    if "kind" in message:
        return {**message, "parts": [{"part_kind": "user-prompt", "content": text}, *_parts(message)]}
    return {**message, "content": f"{text}\n\n{_text(message.get('content'))}"}


def prompt_like(message: Mapping[str, Any], text: str) -> Message:
    """A message of the form of another one that says a text."""
    if "kind" in message:
        return {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": text}]}
    return {"role": "user", "content": text}


def message_tokens(messages: Iterable[Message]) -> int:
    """Estimate of what messages take of a window.

    >>> message_tokens([{"role": "user", "content": "Four words are here."}])
    9
    """
    return sum(MESSAGE_TOKENS + sum(map(estimated_tokens, texts_of(message))) for message in messages)


def messages_of(text: str) -> list[Message] | None:
    """The messages of a conversation that is kept as a JSON list of them; None when it is something else."""
    try:
        found: Any = read_bounded_json(text)
    except ValueError:
        return None
    is_list = isinstance(found, list) and all(isinstance(item, dict) for item in cast("list[Any]", found))
    return cast("list[Message]", found) if is_list else None


def texts_of(message: Mapping[str, Any]) -> Iterator[str]:
    """All that a model reads of it."""
    if "kind" in message:
        for part in _parts(message):
            yield from (_text(part[name]) for name in ("content", "args", "tool_name") if part.get(name))
        return
    yield _text(message.get("content"))
    if calls := message.get("tool_calls"):
        yield _text(calls)


def _parts(message: Mapping[str, Any]) -> list[Message]:
    return cast("list[Message]", message.get("parts") or [])


def _omitted(content: Any) -> str | None:
    """The line in place of an output; None when that is no shorter."""
    text = _text(content)
    short = OMITTED.format(count=len(text))
    return short if len(short) < len(text) else None


def _text(content: Any) -> str:
    """A content as text: pieces of a list one after the other, other values as JSON."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list):
        pieces = cast("list[Any]", content)
        if all(isinstance(piece, str) or (isinstance(piece, dict) and "text" in piece) for piece in pieces):
            return "\n".join(piece if isinstance(piece, str) else str(piece["text"]) for piece in pieces)
    return json.dumps(content, ensure_ascii=False, default=str)
