"""How much each fidelity mode tells of a run (spec 5.4). Estimates without a tokenizer (``model.tokens``)."""

from __future__ import annotations

from typing import Final

import msgspec


class PreambleAmount(msgspec.Struct, frozen=True):
    """How much a mode tells."""

    tokens: int  #: In all.
    notes: int = 0  #: Characters of a stage's notes in a list.
    value: int = 0  #: Characters of a value that no stage before has just set; 0 for none told.
    stages: int = 1000  #: How many of the stages before.
    events: int = 0  #: Notable events.
    incidents: int = 0  #: Attempts and tool calls.
    kept: int = 0  #: Hundredths of the budget that only these may take.
    has_tools: bool = False  #: Tool calls are among these.
    has_counts: bool = False  #: It is told how many stages ended how.


_COMPACT: Final = PreambleAmount(4000, notes=300, value=600)
_AMOUNTS: Final = {
    "truncate": PreambleAmount(350),
    "compact": _COMPACT,
    "summary:low": PreambleAmount(600, notes=120, stages=3, has_counts=True),
    "summary:medium": PreambleAmount(1500, notes=300, value=400, events=8, incidents=4, kept=10),
    "summary:high": PreambleAmount(3000, notes=600, value=800, events=20, incidents=20, kept=20, has_tools=True),
}
"""By mode; ``full`` has none."""


def amount_of(mode: str) -> PreambleAmount:
    """How much a mode tells; a word that is none counts as ``compact``."""
    return _AMOUNTS.get(mode, _COMPACT)


def budget_tokens(mode: str) -> int:
    """The most tokens that a mode's preamble takes; a word that is no mode counts as ``compact``.

    >>> [budget_tokens(mode) for mode in ("full", "truncate", "compact", "summary:high")]
    [0, 350, 4000, 3000]
    """
    return 0 if mode == "full" else amount_of(mode).tokens
