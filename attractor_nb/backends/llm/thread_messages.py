"""A thread's conversation as a model takes it, under ``full`` fidelity (spec 5.4).

Loads pydantic-ai, whose messages are kept as JSON.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import ValidationError
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, UserPromptPart

from attractor_nb.backends.llm.compaction import compact
from attractor_nb.backends.llm.metered_requests import is_marked_reasoning
from attractor_nb.errors import TerminalError
from attractor_nb.model.calls.messages import messages_of
from attractor_nb.model.calls.reasoning import part_reasoning

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pydantic_ai.messages import ModelMessage, ModelResponsePart

    from attractor_nb.stage import Conversation


def read_messages(
    conversation: Conversation | None, room_tokens: int, tell: Callable[[str], None]
) -> list[ModelMessage]:
    """The messages of a thread, compacted to fit; empty at its beginning, or without one.

    Args:
        conversation: The thread's, or None.
        room_tokens: How much of the model's window there is for it.
        tell: Told what was left out, if anything was.
    """
    text = "" if conversation is None else conversation.read()
    if conversation is None or not text:
        return []
    try:
        made = compact(messages_of(text) or [], room_tokens)
        if made.is_changed:
            tell(f"thread {conversation.thread} has outgrown the model's window: {made.description}")
            return ModelMessagesTypeAdapter.validate_python(made.messages)
        return ModelMessagesTypeAdapter.validate_json(text)
    except ValidationError:
        raise TerminalError(
            f"thread {conversation.thread!r} belongs to another backend and cannot be continued",
            hint="give the node another thread_id, or another fidelity",
        ) from None


def save_messages(conversation: Conversation | None, messages: Sequence[ModelMessage]) -> None:
    """Keep the whole conversation, when there is a thread: of what was attached the line that names it.

    Of reasoning only what is the provider's own part of a message is kept, and no text (ruling 46).
    """
    if conversation is not None:
        conversation.save(ModelMessagesTypeAdapter.dump_json([_in_words(each) for each in messages]).decode())


def _in_words(message: ModelMessage) -> ModelMessage:
    """A message without what was attached or only considered: it would be sent, and paid, with each turn."""
    if isinstance(message, ModelResponse):
        return replace(message, parts=[_answered(part) for part in message.parts if not is_marked_reasoning(part)])
    parts = [_part_in_words(part) if isinstance(part, UserPromptPart) else part for part in message.parts]
    return replace(message, parts=parts)


def _answered(part: ModelResponsePart) -> ModelResponsePart:
    return replace(part, content=part_reasoning(part.content).answer) if isinstance(part, TextPart) else part


def _part_in_words(part: UserPromptPart) -> UserPromptPart:
    if isinstance(part.content, str):
        return part
    return replace(part, content="".join(each for each in part.content if isinstance(each, str)))
