"""The context window of a model, and compaction of a conversation without a model (spec 5.4). Pure.

In this order, only as far as needed: outputs of tools in older turns give way to a line, then the oldest
turns to one summary of what was said in them, then the outputs in the last turn, then that too. A turn is
what follows one prompt, up to the next: a call of a tool and its result stay or go together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from attractor_nb.model.calls.messages import (
    CHARACTERS_PER_TOKEN,
    MESSAGE_TOKENS,
    Message,
    answer_of,
    message_tokens,
    prompt_like,
    prompt_of,
    system_of,
    with_prompt_before,
    without_outputs,
    without_system,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

SUMMARY_TITLE: Final = "Earlier in this conversation (shortened, the newest last):"
_SUMMARY_SHARE: Final = 8
"""A summary takes at most this fraction of the room."""
_EXCERPT_CHARACTERS: Final = 200

DEFAULT_WINDOW_TOKENS: Final = 128_000
WINDOWS: Final = {
    "claude-": 200_000,
    "gemini-": 1_000_000,
    "gemini-1.0": 32_000,
    "gemini-pro": 32_000,
    "gemma-": 128_000,
    "gpt-3.5": 16_000,
    "gpt-4": 8_000,
    "gpt-4-32k": 32_000,
    "gpt-4-turbo": 128_000,
    "gpt-4.1": 1_000_000,
    "gpt-4o": 128_000,
    "gpt-5": 400_000,
    "gpt-5.3": 128_000,
    "gpt-6": 400_000,
    "o1": 200_000,
    "o1-mini": 128_000,
    "o1-preview": 128_000,
    "o3": 200_000,
    "o4": 200_000,
}
"""Tokens of the window of families of models, by how their names begin; the longest beginning counts."""
_MAX_ANSWER_TOKENS: Final = 8_192


@dataclass(frozen=True, slots=True)
class Compacted:
    """A conversation that fits."""

    messages: Sequence[Message]  #: Its messages; the very ones that were given when nothing had to be done.
    tokens_before: int  #: Estimate of what there was.
    tokens: int  #: Estimate of what is left.
    outputs: int = 0  #: Number of outputs of tools that were left out.
    turns: int = 0  #: Number of turns that only the summary describes.

    @property
    def is_changed(self) -> bool:
        """True if anything was left out."""
        return bool(self.outputs or self.turns)

    @property
    def description(self) -> str:
        """The omissions, in words."""
        left = [f"{self.turns} older turns are a summary now"] if self.turns else []
        left += [f"{self.outputs} outputs of tools left out"] if self.outputs else []
        return f"about {self.tokens_before} tokens became {self.tokens}: {', '.join(left)}"


def compact(messages: Sequence[Message], window_tokens: int) -> Compacted:
    """A conversation that takes no more than a number of tokens, as far as that is possible at all.

    The system prompt always stays.

    Args:
        messages: The conversation as JSON values, of a chat or of pydantic-ai.
        window_tokens: What there is room for.
    """
    before = message_tokens(messages)
    if before <= window_tokens:
        return Compacted(messages, before, before)
    head, turns = _parted(messages)
    left = window_tokens - message_tokens(head)
    sizes = [message_tokens(turn) for turn in turns]
    taken, outputs, gone = sum(sizes), 0, 0
    for index in range(len(turns) - 1):  # the last turn keeps its own as long as it can
        if taken <= left:
            break
        taken, count = taken - sizes[index], _strip(turns, sizes, index)
        taken, outputs = taken + sizes[index], outputs + count
    room = max(0, left // _SUMMARY_SHARE)
    while gone < len(turns) and taken > left - (room if gone else 0):
        taken -= sizes[gone]
        if gone == len(turns) - 1 and (count := _strip(turns, sizes, gone)):
            taken, outputs = taken + sizes[gone], outputs + count
        else:
            gone += 1
    kept = _with_summary([message for turn in turns[gone:] for message in turn], turns[:gone], room)
    result = [*head, *kept]
    return Compacted(result, before, message_tokens(result), outputs, gone)


def _parted(messages: Sequence[Message]) -> tuple[list[Message], list[list[Message]]]:
    """The system prompts, and the turns."""
    head: list[Message] = []
    turns: list[list[Message]] = []
    for message in messages:
        if (system := system_of(message)) is not None:
            head.append(system)
        rest = without_system(message)
        if rest is None:
            continue
        if prompt_of(rest) is not None or not turns:
            turns.append([])
        turns[-1].append(rest)
    return head, turns


def _strip(turns: list[list[Message]], sizes: list[int], index: int) -> int:
    """Leave out the outputs of tools in a turn; how many those were."""
    made = [without_outputs(message) for message in turns[index]]
    turns[index] = [message for message, _ in made]
    sizes[index] = message_tokens(turns[index])
    return sum(count for _, count in made)


def _with_summary(kept: list[Message], dropped: Sequence[Sequence[Message]], tokens: int) -> list[Message]:
    """The kept messages, preceded by a summary of the dropped turns."""
    text = _summary(dropped, tokens)
    if not text:
        return kept
    if kept and prompt_of(kept[0]) is not None:
        return [with_prompt_before(kept[0], text), *kept[1:]]
    return [prompt_like(dropped[0][0], text), *kept]


def _summary(turns: Sequence[Sequence[Message]], tokens: int) -> str:
    """A line for what was asked and one for what was answered in each turn; the newest that have room."""
    lines: list[str] = []
    for turn in turns:
        prompt = prompt_of(turn[0]) or ""
        if prompt.startswith(SUMMARY_TITLE):  # of an earlier compaction: its lines continue
            earlier, _, prompt = prompt.removeprefix(SUMMARY_TITLE).partition("\n\n")
            lines += earlier.strip("\n").splitlines()
        answers = [answer for message in turn if (answer := answer_of(message))]
        lines += [f"- asked: {_excerpt(prompt)}"] if prompt.strip() else []
        lines += [f"- answered: {_excerpt(answers[-1])}"] if answers else []
    left = (tokens - MESSAGE_TOKENS - 1) * CHARACTERS_PER_TOKEN - len(SUMMARY_TITLE) - 2
    kept: list[str] = []
    for line in reversed(lines):
        left -= len(line) + 1
        if left < 0:
            break
        kept.append(line)
    return "\n".join([SUMMARY_TITLE, *reversed(kept)]) if kept else ""


def _excerpt(text: str) -> str:
    flat = " ".join(text[: 4 * _EXCERPT_CHARACTERS].split())
    return flat if len(flat) <= _EXCERPT_CHARACTERS else f"{flat[: _EXCERPT_CHARACTERS - 1]}…"


def window_tokens(model: str, written: int | None = None) -> int:
    """The window of a model: what the node says (``llm.context_tokens``), its family's, or 128,000.

    >>> window_tokens("claude-sonnet-4-5"), window_tokens("gpt-4.1-mini"), window_tokens("mine")
    (200000, 1000000, 128000)
    """
    if written is not None:
        return written
    name = model.rpartition("/")[2].lower()
    family = max((begin for begin in WINDOWS if name.startswith(begin)), key=len, default="")
    return WINDOWS.get(family, DEFAULT_WINDOW_TOKENS)


def history_tokens(window: int, prompt_tokens: int, answer_tokens: int | None = None) -> int:
    """The number of tokens left for the messages of a thread.

    A fifth of the window is never planned with, because tokens are estimated; prompt and answer need theirs.

    Args:
        prompt_tokens: Estimate for the prompt, the system prompt included.
        answer_tokens: Where the answer is cut off; an eighth of the window, at most 8,192, if not given.

    >>> history_tokens(128_000, 1000, 4000), history_tokens(1000, 5000)
    (97400, 0)
    """
    answer = min(_MAX_ANSWER_TOKENS, window // 8) if answer_tokens is None else answer_tokens
    return max(0, window * 4 // 5 - prompt_tokens - answer)
