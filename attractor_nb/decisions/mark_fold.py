"""The marks of a run, folded from the events that count: what a rewind sets aside leaves none (ruling 48)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from attractor_nb.model.events import (
    ChildEnded,
    DebuggerChanged,
    PipelineResumed,
    PipelineStarted,
    StageCompleted,
    StageFailed,
    StageStarted,
)
from attractor_nb.model.events.logged_events import LoggedEvents
from attractor_nb.model.result_marks import ResultMarks, answers_together
from attractor_nb.model.vocabulary.shapes import CHILD_RUN_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from attractor_nb.model.events import Event
    from attractor_nb.model.result_marks import Answers, StandIn

TELLING: Final = (
    *(PipelineStarted, PipelineResumed, StageStarted, StageCompleted, StageFailed),
    *(DebuggerChanged, ChildEnded),
)
"""The events that tell of marks."""

_SILENT_TYPES: Final = {"start", "exit", "conditional", "parallel", "wait.human", *CHILD_RUN_TYPES}
"""Handler types that ask no backend and run no command; a child run says of itself who answered."""


class MarkFold(msgspec.Struct):
    """The marks so far."""

    before: ResultMarks = ResultMarks()  #: Those of child runs, and of what a restart continues.
    #: Who answered in the stages that were committed; ``marks`` says who will, as long as nobody has.
    answers: Answers = ""
    backends: dict[str, None] = {}  #: What answered there.
    stand_ins: dict[tuple[str, str], StandIn] = {}  #: Nodes whose latest outcome was given, by branch and node.
    is_new: bool = False  #: They may have changed; for whoever sets this back.
    _given: dict[str, StandIn] = {}
    """What stands in for nodes from now on."""
    _by_hand: set[str] = set()
    _session: tuple[Answers, str] | None = None
    """Who answers since the run began or went on. A simulation counts with the first stage that is committed, a
    backend with the first that may have asked it."""
    _silent: set[str] = set()
    """Nodes of this session that ask nobody."""

    @property
    def marks(self) -> ResultMarks:
        """The marks."""
        answers: Answers = self.answers or (self._session[0] if self._session else "")
        return self.before + ResultMarks(
            answers, list(self.backends), {node: kind for (_, node), kind in self.stand_ins.items()}
        )

    def take(self, event: Event) -> None:
        """Take in an event that counts."""
        if isinstance(event, StageStarted):
            if self._session and self._session[0] == "real" and event.handler_type in _SILENT_TYPES:
                self._silent.add(event.name)
        elif isinstance(event, StageCompleted | StageFailed):
            if self._session or self._given or self._by_hand or self.stand_ins:
                self._commit(event)
        elif isinstance(event, PipelineStarted):
            self._begin(event.answers, event.backend)
            if event.carried is not None:
                self.before += event.carried.marks
        elif isinstance(event, PipelineResumed):
            self._begin(event.answers, event.backend)
        elif isinstance(event, DebuggerChanged):
            self._change(event)
        elif isinstance(event, ChildEnded):
            self.before += event.marks.of_child(event.name)
            self.is_new = True

    def _begin(self, answers: Answers, backend: str) -> None:
        """Another process executes the stages from now on: mocks have ended with the one before."""
        self._session = answers, backend
        self._given = {node: kind for node, kind in self._given.items() if kind != "mocked"}

    def _commit(self, event: StageCompleted | StageFailed) -> None:
        if not event.is_commit:
            return
        if self._session is not None and event.name not in self._silent:
            self.is_new = True
            self._silent.clear()
            (answers, backend), self._session = self._session, None
            self.answers = answers_together(self.answers, answers)
            if answers and backend:
                self.backends[backend] = None
        kind: StandIn | None = "set by hand" if event.name in self._by_hand else self._given.get(event.name)
        self._by_hand.discard(event.name)
        if kind is not None:
            self.stand_ins[event.branch, event.name] = kind
            self.is_new = True
        elif self.stand_ins.pop((event.branch, event.name), None) is not None:
            self.is_new = True

    def _change(self, event: DebuggerChanged) -> None:
        if event.change == "pin":
            self._given[event.node] = "pinned"
        elif event.change == "mock":
            self._given[event.node] = "mocked"
        elif event.change in {"unpin", "unmock"}:
            self._given.pop(event.node, None)
        elif event.change == "outcome":
            self._by_hand.add(event.node)


def marks_of(events: Iterable[Event]) -> MarkFold:
    """The fold of the events of a log that count."""
    found = MarkFold()
    for event in LoggedEvents.of(events).select(*TELLING):
        found.take(event)
    return found
