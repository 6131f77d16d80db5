"""Why an answer ended, as its provider says it and as we take it. Pure.

pydantic-ai knows the reasons of the big providers. Servers of one's own have words of their own for the same
things, and new words come; an answer whose stream came to its end is not lost for a word.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class Ending(Enum):
    """What a reason means."""

    WHOLE = "whole"
    TRUNCATED = "truncated"
    REFUSED = "refused"
    BROKEN = "broken"
    UNKNOWN = "unknown"
    """It is taken for whole, with a warning."""


_KNOWN: Final = {
    "stop": Ending.WHOLE,
    "tool_call": Ending.WHOLE,
    "length": Ending.TRUNCATED,
    "content_filter": Ending.REFUSED,
    "error": Ending.BROKEN,
}
"""pydantic-ai's own words."""
_TRUNCATED: Final = frozenset(
    {"length", "incomplete", "model_length", "token_limit"}
    | {"max_tokens", "max_output_tokens", "max_new_tokens", "max_length", "max_completion_tokens"}
    | {"model_context_window_exceeded", "context_length_exceeded"}
)
_REFUSED: Final = frozenset(
    {
        "content_filter",
        "content_filtered",
        "refusal",
        "refused",
        "safety",
        "blocked",
        "blocklist",
        "recitation",
    }
    | {"prohibited_content", "spii", "guardrail_intervened", "moderation"}
)
_BROKEN: Final = frozenset(
    {"error", "failed", "failure", "cancelled", "canceled", "abort", "aborted", "timeout", "overloaded"}
    | {"in_progress", "queued", "pause_turn", "network_error", "insufficient_system_resource"}
)


def ending_of(reason: str | None, raw: str) -> Ending:
    """What a finished stream says of its end.

    Args:
        reason: pydantic-ai's word, or None when it knows none for it.
        raw: The provider's own word, or empty.

    >>> ending_of("stop", "end_turn").name, ending_of(None, "MAX_TOKENS").name, ending_of(None, "").name
    ('WHOLE', 'TRUNCATED', 'BROKEN')
    >>> ending_of(None, "eos_token").name
    'UNKNOWN'
    """
    if reason is not None:
        return _KNOWN.get(reason, Ending.UNKNOWN)
    word = raw.strip().lower().replace("-", "_").replace(" ", "_")
    if not word or word in _BROKEN:
        return Ending.BROKEN
    if word in _TRUNCATED:
        return Ending.TRUNCATED
    return Ending.REFUSED if word in _REFUSED else Ending.UNKNOWN
