"""What messages, answers and events of pydantic-ai hold: text, why an answer ended, tokens by our estimate.

Loads pydantic-ai. It does not know who is asked, nor what for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from pydantic_ai.messages import (
    BinaryContent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ToolCallPart,
)

from attractor_nb.backends.llm.provider_failures import Ending, ending_of
from attractor_nb.model.calls.attachment import attachment_tokens
from attractor_nb.model.calls.tokens import estimated_tokens
from attractor_nb.model.surrogates import whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai.messages import ModelMessage, ModelResponse


def tokens_of(messages: Sequence[ModelMessage]) -> int:
    """Our estimate for messages, the instructions of the last one included."""
    texts: list[str] = []
    shown = 0
    for part in (part for one in messages for part in one.parts):
        content: Any = getattr(part, "content", "") or getattr(part, "args", "")
        if isinstance(content, list):  # text with marks for a cache between its parts
            pieces = cast("list[Any]", content)
            content = "".join(each for each in pieces if isinstance(each, str))
            files = (each for each in pieces if isinstance(each, BinaryContent))
            shown += sum(attachment_tokens(each.media_type, len(each.data)) for each in files)
        texts.append(str(content))
    instructions = getattr(messages[-1], "instructions", None) if messages else None
    return estimated_tokens("".join([*texts, instructions or ""])) + shown


def answer_ending(response: ModelResponse) -> Ending:
    """Why an answer ended, in our own words."""
    details = response.provider_details or {}
    if details.get("refusal"):
        return Ending.REFUSED
    reason = details.get("finish_reason")
    is_unreadable = response.finish_reason is None and reason is not None and not isinstance(reason, str)
    if response.state != "complete" or is_unreadable:
        return Ending.BROKEN
    return ending_of(response.finish_reason, raw_reason(response))


def raw_reason(response: ModelResponse) -> str:
    """Why an answer ended, in its provider's own word; empty when it does not say."""
    return str((response.provider_details or {}).get("finish_reason") or "")


def make_whole(response: ModelResponse) -> None:
    """Join or replace halves of characters, in the parts themselves: an agent goes on with these."""
    for part in response.parts:
        if isinstance(part, TextPart | ThinkingPart):
            part.content = whole(part.content)
        elif isinstance(part, ToolCallPart) and isinstance(part.args, str):
            part.args = whole(part.args)


def is_marked_reasoning(part: object) -> bool:
    """Whether a part is reasoning that stood in the text between marks, and pydantic-ai has cut out already."""
    return isinstance(part, ThinkingPart) and part.id == "content" and not part.signature


def answer_text(response: ModelResponse) -> str:
    """All of an answer's text, with the reasoning in it as it came, between its marks."""
    pieces: list[str] = []
    for part in response.parts:
        if isinstance(part, TextPart):
            pieces.append(part.content)
        elif isinstance(part, ThinkingPart) and is_marked_reasoning(part):
            pieces.append(f"<think>{part.content}</think>\n")
    return "".join(pieces)


def text_of(event: object) -> str:
    """The piece of text that an event of a stream brings, or empty."""
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return event.part.content
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return event.delta.content_delta
    return ""
