"""Why a stage was left as it was, as values: the rules that were asked, each edge, the next step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from attractor_nb.languages.condition.evaluate import ClauseVerdict

MAX_SEEN_CHARACTERS: Final = 200
"""Of a value that a condition saw."""


class EdgeCandidate(msgspec.Struct, frozen=True):
    """An edge that leads out of a stage, and how it fared."""

    edge: int  #: Its position in ``Graph.edges``.
    target: str  #: Where it leads.
    condition: str  #: Its condition, or empty.
    values: tuple[ClauseVerdict, ...]  #: What each clause of the condition saw, and whether it held.
    holds: bool | None  #: Whether the condition held; None for an edge without one.
    weight: int  #: Its priority.
    label: str  #: Its label, or empty.
    is_taken: bool  #: Whether the run took it.
    words: str  #: Why it was taken, or was not.

    def to_plain(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "edge": self.edge,
            "target": self.target,
            "condition": self.condition,
            "values": [
                {"clause": one.clause, "value": one.value[:MAX_SEEN_CHARACTERS], "holds": one.holds}
                for one in self.values
            ],
            "holds": self.holds,
            "weight": self.weight,
            "label": self.label,
            "is_taken": self.is_taken,
            "words": self.words,
        }


class AskedRule(msgspec.Struct, frozen=True):
    """A rule that was asked for the next step."""

    name: str  #: What it looks at.
    words: str  #: What it came to.
    decides: bool = False  #: Whether the next step is its.


class RouteReasons(msgspec.Struct, frozen=True):
    """Why a visit was left the way it was."""

    edge: int | None  #: Position of the edge taken, or None for a jump or an end.
    target: str  #: Where the run went; empty where it ended.
    route: str  #: What decided, as recorded: ``condition``, ``weight``, ``retry_target``, ``end`` …
    detail: str  #: The record's own words.
    words: str  #: The same as a sentence.
    rules: tuple[AskedRule, ...]  #: The rules in their order, up to the one that decided.
    candidates: tuple[EdgeCandidate, ...]  #: Each edge that leads out, in source order.
    mismatch: str = ""  #: What the rules say now where that is not what was recorded; else empty.

    def to_plain(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "edge": self.edge,
            "target": self.target,
            "route": self.route,
            "detail": self.detail,
            "words": self.words,
            "rules": [{"name": one.name, "words": one.words, "decides": one.decides} for one in self.rules],
            "candidates": [one.to_plain() for one in self.candidates],
            "mismatch": self.mismatch,
        }
