"""What the events of a run have told of it so far: what ``Run`` shows, for whoever feeds it."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

from msgspec import Struct, field

from attractor_nb.model.events import (
    CheckpointSaved,
    ChildStarted,
    PipelineStarted,
    StageEnd,
    StageOutput,
    StageStarted,
)
from attractor_nb.views.folding import take_event
from attractor_nb.views.state import RunView

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from attractor_nb.model.events import Event
    from attractor_nb.model.outcome import Outcome

_TELL_NOTHING = frozenset({CheckpointSaved, StageOutput})
MOST_WAITING = 10_000
"""Events buffered before they are folded: a few megabytes."""


class Known(Struct):
    """What is known of a run."""

    view: RunView = field(default_factory=RunView)  #: States of nodes and edges.
    #: Latest outcome of each committed node.
    outcomes: dict[str, Outcome] = field(default_factory=dict[str, "Outcome"])
    visits: dict[str, int] = field(default_factory=dict[str, int])  #: Committed visits of each node.
    #: Directories of the stages whose own one holds a visit that was set aside.
    kept: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    branches: dict[str, str] = field(default_factory=dict[str, str])  #: In which branch each stage was executed latest.
    #: The directories of child runs, by the stage that has them.
    child_roots: dict[str, str] = field(default_factory=dict[str, str])

    def take(self, event: Event) -> None:
        """Fold an event in."""
        take_event(self.view, event)
        if isinstance(event, StageEnd):
            if event.is_commit:
                self.outcomes[event.name] = event.outcome
                self.visits[event.name] = self.visits.get(event.name, 0) + 1
        elif isinstance(event, ChildStarted):
            self.child_roots[event.stage_path] = event.child_root
        elif isinstance(event, StageStarted):
            self.kept.pop(event.name, None)
            self.branches[event.name] = event.branch
        elif isinstance(event, PipelineStarted):
            self.kept, self.visits = {}, {}


class Followed:
    """The events of a run, folded when somebody looks."""

    def __init__(self) -> None:
        self._known = Known()
        self._recorded: tuple[Iterable[Event], Mapping[str, str | None], Mapping[str, int]] | None = None
        self._waiting: deque[Event] = deque()
        self._lock = threading.Lock()

    @property
    def known(self) -> Known:
        """What is known now; also from another thread than the run's."""
        with self._lock:
            if self._recorded is not None:
                counted, kept, visits = self._recorded
                known = Known()  # whoever is interrupted here begins anew
                for event in counted:
                    known.take(event)
                known.kept, known.visits = dict(kept), {**known.visits, **visits}
                self._known, self._recorded = known, None
            while self._waiting:
                self._known.take(self._waiting.popleft())
        return self._known

    def take(self, event: Event) -> None:
        """Take an event; a sink of the run's stream."""
        if type(event) in _TELL_NOTHING:
            return
        self._waiting.append(event)
        if len(self._waiting) >= MOST_WAITING:
            _ = self.known

    def recall(self, counted: Iterable[Event], kept: Mapping[str, str | None], visits: Mapping[str, int]) -> None:
        """Take what was recorded before.

        Args:
            counted: The events that count.
            kept: As the attribute of ``Known``.
            visits: Committed visits of each node.
        """
        self._recorded = counted, dict(kept), dict(visits)
