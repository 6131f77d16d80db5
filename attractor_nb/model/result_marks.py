"""The marks of a result that a pipeline did not reach by itself: simulated, pinned (ruling 48).

This is the one form of the fact. Logs, manifests and rows of maps hold it; all displays show its words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from attractor_nb.model.record import Record

Answers = Literal["", "real", "simulated", "partly simulated"]
"""Who answered: a backend, nobody (answers are made up), or each at times; empty when nobody was asked."""
StandIn = Literal["pinned", "mocked", "set by hand"]
"""What came in place of a node's own outcome."""
_KINDS: Final[tuple[StandIn, ...]] = ("pinned", "mocked", "set by hand")


def answers_together(first: Answers, second: Answers) -> Answers:
    """Combine the kinds of answers of two parts of a whole.

    >>> answers_together("real", "simulated"), answers_together("", "simulated")
    ('partly simulated', 'simulated')
    """
    if not first or first == second:
        return second
    return first if not second else "partly simulated"


class ResultMarks(Record, frozen=True):
    """The marks of a run, a row or a map: the kind of its answers, its backends, nodes with given outcomes."""

    answers: Answers = ""  #: Who answered prompts, and whether commands were run.
    #: What answered, in order of first use, as in the manifest.
    backends: list[str] = []  # noqa: RUF012 - each has a list of its own
    #: Nodes whose latest outcome was given, and how; of a child run ``node>node``.
    stand_ins: Mapping[str, StandIn] = {}

    @property
    def is_simulated(self) -> bool:
        """Whether at least a part is made up."""
        return self.answers in {"simulated", "partly simulated"}

    @property
    def words(self) -> str:
        """The marks in words; empty for a result without a mark.

        >>> ResultMarks("partly simulated", stand_ins={"check": "pinned", "test": "pinned"}).words
        'partly simulated; pinned: check, test'
        """
        parts = [self.answers] if self.is_simulated else []
        for kind in _KINDS:
            nodes = ", ".join(node for node, found in self.stand_ins.items() if found == kind)
            parts += [f"{kind}: {nodes}"] if nodes else []
        return "; ".join(parts)

    def __add__(self, other: ResultMarks) -> ResultMarks:
        """Those of two parts of a whole."""
        return ResultMarks(
            answers_together(self.answers, other.answers),
            list(dict.fromkeys((*self.backends, *other.backends))),
            {**self.stand_ins, **other.stand_ins},
        )

    def of_child(self, node_id: str) -> ResultMarks:
        """Those that a child run gives its parent, whose backends are the parent's own."""
        return ResultMarks(self.answers, stand_ins={f"{node_id}>{name}": kind for name, kind in self.stand_ins.items()})

    def to_facts(self) -> dict[str, Any]:
        """The entries of a manifest."""
        return {
            "answers": self.answers,
            "is_simulated": self.is_simulated,
            "backends": self.backends,
            "stand_ins": dict(self.stand_ins),
        }

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any]) -> ResultMarks:
        """Those of a manifest, whose values were checked."""
        return cls(facts.get("answers", ""), list(facts.get("backends", ())), dict(facts.get("stand_ins", {})))
