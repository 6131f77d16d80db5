"""The context carried into an attempt, as a page for users (``carried.md``; spec 5.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.model.calls.messages import (
    Message,
    answer_of,
    estimated_tokens,
    message_tokens,
    messages_of,
    prompt_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from attractor_nb.decisions.commits import Execute

CARRIED_FILE: Final = "carried.md"
_MAX_LINES: Final = 40
_EXCERPT_CHARACTERS: Final = 300


def carried_page(effect: Execute, conversation: str) -> str:
    """The page: fidelity, thread, size, and the preamble or what the thread has said, in short.

    Args:
        effect: The attempt.
        conversation: Under ``full`` fidelity what its thread has said, as its backend keeps it.
    """
    started = effect.started
    lines = [f"# Carried into {started.name}", "", f"- Fidelity: {started.fidelity}"]
    if not started.thread:
        size = f"- Size: about {estimated_tokens(effect.preamble)} tokens, at four characters each"
        return "\n".join([*lines, size, "", effect.preamble, ""])
    lines.append(f"- Thread: {started.thread}, as {effect.thread_entry} left it")
    messages = messages_of(conversation)
    if messages is None:
        size = f"- Size: {len(conversation)} characters, which are the backend's own"
        return "\n".join([*lines, size, "", _excerpt(conversation), ""])
    size = f"- Size: {len(messages)} messages, about {message_tokens(messages)} tokens"
    said_lines = list(_message_lines(messages))
    if len(said_lines) > _MAX_LINES:
        said_lines = [f"- … {len(said_lines) - _MAX_LINES} lines before", *said_lines[-_MAX_LINES:]]
    return "\n".join([*lines, size, "", *said_lines, ""])


def is_of_thread(page: str) -> bool:
    """True if a page describes a conversation, which is in no prompt, and not of a preamble."""
    return any(line.startswith("- Thread: ") for line in page.splitlines()[3:4])


def preamble_of(page: str) -> str:
    r"""The preamble that a page shows, as it is in the prompt; empty for a page of a conversation.

    >>> preamble_of("# Carried into plan\n\n- Fidelity: compact\n- Size: about 4 tokens\n\nGoal: ship\n\nMore\n")
    'Goal: ship\n\nMore\n'
    """
    return "" if is_of_thread(page) else page.partition("\n\n")[2].partition("\n\n")[2]


def _message_lines(messages: Sequence[Message]) -> Iterator[str]:
    """A line for each thing that was said."""
    for message in messages:
        if prompt := (prompt_of(message) or "").strip():
            yield f"- asked: {_excerpt(prompt)}"
        if answer := answer_of(message).strip():
            yield f"- answered: {_excerpt(answer)}"


def _excerpt(text: str) -> str:
    flat = " ".join(text[: 4 * _EXCERPT_CHARACTERS].split())
    return flat if len(flat) <= _EXCERPT_CHARACTERS else f"{flat[: _EXCERPT_CHARACTERS - 1]}…"
