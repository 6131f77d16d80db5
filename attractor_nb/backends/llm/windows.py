"""How much of a conversation a model's window takes (spec 5.4). Pure."""

from __future__ import annotations

from typing import Final

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
    """How many tokens are left for what a thread has said.

    A fifth of the window is never planned with, because tokens are estimated; prompt and answer need theirs.

    Args:
        window: Tokens of the window.
        prompt_tokens: Estimate for the prompt, the system prompt included.
        answer_tokens: Where the answer is cut off; an eighth of the window, at most 8,192, if not given.

    >>> history_tokens(128_000, 1000, 4000), history_tokens(1000, 5000)
    (97400, 0)
    """
    answer = min(_MAX_ANSWER_TOKENS, window // 8) if answer_tokens is None else answer_tokens
    return max(0, window * 4 // 5 - prompt_tokens - answer)
