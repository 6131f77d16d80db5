"""The past of a run, read from its events: each visit with its attempts, and the context at any moment.

A state (``run_state.py``) is the position of a run; a journal is its history. The inspector, explanations, time
travel, comparisons and timelines read a journal and fold nothing themselves. A journal knows the events of one
run directory, and not where they are stored.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec

from attractor_nb.decisions.log_history import counted_events
from attractor_nb.model.branch import enclosing
from attractor_nb.model.events import (
    DebuggerChanged,
    ParallelBranchStarted,
    PipelineForked,
    PipelineRewound,
    PipelineStarted,
    StageEnd,
    StageStarted,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from attractor_nb.decisions.waiting_instructions import Heard
    from attractor_nb.model.events import Event


_SNAPSHOT_EVERY: Final = 16
"""Events after which the contexts are kept: asking for successive moments folds few events again."""


class AttemptRecord(msgspec.Struct):
    """One try of a visit."""

    number: int  #: From 1.
    started: StageStarted  #: Its intent record.
    ended: StageEnd | None = None  #: Its end; None while it is under way, and for good when it was cut off.


class VisitRecord(msgspec.Struct):
    """One visit of a node."""

    node_id: str  #: The node.
    branch: str  #: Path of the branch that it is in, or empty.
    number: int  #: Its number among the visits of the node, from 1.
    index: int  #: Its number among all visits of the run, from 1.
    attempts: list[AttemptRecord] = []  #: Its tries, oldest first; at least one.

    @property
    def sequence(self) -> int:
        """The event with which it began."""
        return self.attempts[0].started.sequence

    @property
    def commit(self) -> StageEnd | None:
        """The commit that ended the visit; None while it is under way, and when it never ended."""
        ended = self.attempts[-1].ended
        return ended if ended is not None and ended.is_commit else None


class Journal:
    """The past of one run directory.

    Attributes:
        events: All its durable events, in order.
        counted: Those that count (``log_history.counted_events``).
        visits: The visits that count, in the order in which they began.
    """

    def __init__(self, events: Sequence[Event], base: Mapping[str, Any] | None = None) -> None:
        """Read the events.

        Args:
            events: Of one directory, from the first.
            base: What the context held before the first: the graph's attributes.
        """
        self.events = events
        self.counted = counted_events(events)
        self.visits: list[VisitRecord] = []
        self._base = dict(base or {})
        under_way: dict[tuple[str, str, int], VisitRecord] = {}
        for event in self.counted:
            if isinstance(event, StageStarted):
                key = event.branch, event.name, event.visit
                if key not in under_way:
                    under_way[key] = VisitRecord(event.name, event.branch, event.visit, event.index)
                    self.visits.append(under_way[key])
                under_way[key].attempts.append(AttemptRecord(event.attempt, event))
            elif isinstance(event, StageEnd):
                record = under_way.get((event.branch, event.name, event.visit))
                if record is not None:
                    record.attempts[-1].ended = event

    def visits_of(self, node_id: str, branch: str | None = None) -> list[VisitRecord]:
        """The visits of a node, oldest first; in one branch (empty: outside of all), or wherever it was."""
        return [visit for visit in self.visits if visit.node_id == node_id and branch in (None, visit.branch)]

    def context_before(self, visit: VisitRecord) -> dict[str, Any]:
        """The context that a visit found: recorded values, large ones as references (``storage``)."""
        return self.values_at(visit.sequence - 1, visit.branch)

    def context_after(self, visit: VisitRecord) -> dict[str, Any] | None:
        """The context that a visit left; None while it has not ended."""
        return None if visit.commit is None else self.values_at(visit.commit.sequence, visit.branch)

    def values_at(self, sequence: int, branch: str = "") -> dict[str, Any]:
        """The context behind an event, of the run or of one of its branches.

        Args:
            sequence: Number of the event.
            branch: Path of the branch; it has its fan-out's context until it has begun.
        """
        last = self._position(sequence + 1)
        whole, rest = divmod(last, _SNAPSHOT_EVERY)
        contexts = (
            {path: dict(values) for path, values in self._snapshots[whole].items()} if rest else self._snapshots[whole]
        )
        for event in self.counted[last - rest : last]:
            _follow(contexts, event)
        return dict(_nearest(contexts, branch))

    def events_before(self, sequence: int) -> Iterator[Event]:
        """The events that count before a number, the newest first."""
        for position in range(self._position(sequence) - 1, -1, -1):
            yield self.counted[position]

    @cached_property
    def forks(self) -> list[PipelineForked]:
        """The beginnings of the run as a fork."""
        return [event for event in self.counted if isinstance(event, PipelineForked)]

    @cached_property
    def changes_by_hand(self) -> list[DebuggerChanged]:
        """The changes that users made in a debugger."""
        return [event for event in self.counted if isinstance(event, DebuggerChanged)]

    @cached_property
    def heard(self) -> Heard:
        """The instructions of users and supervisors that each attempt received."""
        from attractor_nb.decisions.waiting_instructions import heard_by_attempts  # noqa: PLC0415 - only for views

        return heard_by_attempts(self.counted)

    def _position(self, sequence: int) -> int:
        """The position of the first event that has this number or a higher one."""
        return bisect_left(self.counted, sequence, key=lambda event: event.sequence)

    @cached_property
    def _snapshots(self) -> list[dict[str, dict[str, Any]]]:
        """The contexts before each interval of events."""
        contexts = {"": dict(self._base)}
        found: list[dict[str, dict[str, Any]]] = []
        for position, event in enumerate(self.counted):
            if position % _SNAPSHOT_EVERY == 0:
                found.append({path: dict(values) for path, values in contexts.items()})
            _follow(contexts, event)
        if len(self.counted) % _SNAPSHOT_EVERY == 0:
            found.append(contexts)
        return found

    def contexts(self) -> Iterator[tuple[Event, Mapping[str, Any]]]:
        """Each event that counts with the context behind it, of the branch that it is in.

        For who looks at all of them: the mapping is the same one that keeps changing.
        """
        contexts = {"": dict(self._base)}
        for event in self.counted:
            _follow(contexts, event)
            yield event, _nearest(contexts, event.branch)


def _follow(contexts: dict[str, dict[str, Any]], event: Event) -> None:
    """Take what an event changed into the contexts, of the run and of its branches."""
    if isinstance(event, PipelineStarted):
        contexts[""].update(event.inputs)
    elif isinstance(event, ParallelBranchStarted):
        contexts[event.branch] = dict(_nearest(contexts, enclosing(event.branch)))
    elif isinstance(event, StageEnd | DebuggerChanged | PipelineForked | PipelineRewound):
        contexts.setdefault(event.branch, dict(contexts[""])).update(event.context)


def _nearest(contexts: Mapping[str, dict[str, Any]], branch: str) -> dict[str, Any]:
    """The context of a branch, or of the one around it that has begun."""
    while branch not in contexts:
        branch = enclosing(branch)
    return contexts[branch]
