"""What the events of a run have told of it so far: what ``Run`` shows, for whoever feeds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.model.events import ChildStarted, PipelineStarted, StageEnd, StageStarted
from attractor_nb.views.folding import take_event
from attractor_nb.views.state import RunView

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from attractor_nb.model.events import Event
    from attractor_nb.model.outcome import Outcome


class Followed:
    """A fold over the events of a run.

    Attributes:
        view: States of nodes and edges.
        outcomes: Latest outcome of each committed node.
        visits: Committed visits of each node.
        kept: Directories of the stages whose own one holds a visit that was set aside.
        branches: In which branch each stage was executed latest.
        child_roots: The directories of child runs, by the stage that has them.
    """

    def __init__(self) -> None:
        self.view = RunView()
        self.outcomes: dict[str, Outcome] = {}
        self.visits: dict[str, int] = {}
        self.kept: dict[str, str | None] = {}
        self.branches: dict[str, str] = {}
        self.child_roots: dict[str, str] = {}

    def take(self, event: Event) -> None:
        """Fold an event in; a sink of the run's stream."""
        take_event(self.view, event)
        if isinstance(event, StageEnd) and event.is_commit:
            self.outcomes[event.name] = event.outcome
            self.visits[event.name] = self.visits.get(event.name, 0) + 1
        elif isinstance(event, ChildStarted):
            self.child_roots[event.stage_path] = event.child_root
        elif isinstance(event, StageStarted):
            self.kept.pop(event.name, None)
            self.branches[event.name] = event.branch
        elif isinstance(event, PipelineStarted):
            self.kept, self.visits = {}, {}

    def recall(self, way: Iterable[Event], kept: Mapping[str, str | None], visits: Mapping[str, int]) -> None:
        """Take what was recorded before.

        Args:
            way: The events that count.
            kept: As the attribute.
            visits: Committed visits of each node.
        """
        for event in way:
            self.take(event)
        self.kept, self.visits = dict(kept), {**self.visits, **visits}
