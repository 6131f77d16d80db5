"""Why a stage was left as it was, as values: the rules that were asked, each edge, the next step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from attractor_nb.languages.condition.evaluate import ClauseVerdict

MAX_SEEN_CHARACTERS: Final = 200
"""Of a value that a condition saw."""


class EdgeCandidate(msgspec.Struct, frozen=True):
    """An edge that leads out of a stage, and how it fared.

    Attributes:
        edge: Its position in ``Graph.edges``.
        target: Where it leads.
        condition: Its condition, or empty.
        values: What each clause of the condition saw, and whether it held.
        holds: Whether the condition held; None for an edge without one.
        weight: Its priority.
        label: Its label, or empty.
        is_taken: Whether the run took it.
        words: Why it was taken, or was not.
    """

    edge: int
    target: str
    condition: str
    values: tuple[ClauseVerdict, ...]
    holds: bool | None
    weight: int
    label: str
    is_taken: bool
    words: str

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
    """A rule that was asked for the next step.

    Attributes:
        name: What it looks at.
        words: What it came to.
        decides: Whether the next step is its.
    """

    name: str
    words: str
    decides: bool = False


class RouteReasons(msgspec.Struct, frozen=True):
    """Why a visit was left the way it was.

    Attributes:
        edge: Position of the edge taken, or None for a jump or an end.
        target: Where the run went; empty where it ended.
        route: What decided, as recorded: ``condition``, ``weight``, ``retry_target``, ``end`` …
        detail: The record's own words.
        words: The same as a sentence.
        rules: The rules in their order, up to the one that decided.
        candidates: Each edge that leads out, in source order.
        mismatch: What the rules say now where that is not what was recorded; else empty.
    """

    edge: int | None
    target: str
    route: str
    detail: str
    words: str
    rules: tuple[AskedRule, ...]
    candidates: tuple[EdgeCandidate, ...]
    mismatch: str = ""

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
