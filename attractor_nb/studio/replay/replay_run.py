"""The replay of a run: any moment of it, in Python and as something to scrub through.

The events are read once, with those of the directories that it restarted from and of its child runs. What
a rewind set aside is told as well; of a restart that it took back only that it happened.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.errors import OptionError, RunError
from attractor_nb.model.events import ChildEnded, ChildEvent, ChildStarted, Event
from attractor_nb.redaction import redacted
from attractor_nb.runtime.handles.presenters import name_of
from attractor_nb.runtime.past import look_back
from attractor_nb.storage.stored_run import read_run
from attractor_nb.studio.replay.replay_frames import context_at, replay_of, view_at
from attractor_nb.views.drawings.marks import MARK_PATHS
from attractor_nb.views.drawings.still import picture_bundle
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.summary_line import run_summary
from attractor_nb.views.text_table import run_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from attractor_nb.model.graph import Graph
    from attractor_nb.runtime.execution import Execution
    from attractor_nb.views.state import RunView

MAX_CHILD_DEPTH: Final = 8


@dataclass(frozen=True, slots=True)
class Moment:
    """A run as it stood behind one of its events."""

    number: int  #: Number of the event; 0 for before the first.
    event: Event | None  #: The event, or None.
    graph: Graph  #: The graph that ran.
    view: RunView  #: States of nodes and edges.
    context: dict[str, Any]  #: The run's context; large values as references.

    def to_svg(self) -> str:
        """The graph with the states that it had."""
        return _picture(self.graph, self.view)

    def __str__(self) -> str:
        event = self.event
        words = f"{event.type} {event.node_id}".rstrip() if event else "before the first"
        words += f" ({mark})" if (mark := redacted(self.view.marks.marks.words)) else ""
        return f"event {self.number}: {words}\n{run_table(self.view, self.graph)}"

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002 - the signature of Jupyter's hook
        return picture_bundle(self.to_svg(), str(self))


class Replay:
    """All moments of a run. In a live notebook a slider; elsewhere the last of them.

    Attributes:
        graph: The graph that ran.
        events: What happened, in order.
    """

    def __init__(self, run: Execution, events: Sequence[Event]) -> None:
        self.run = run
        self.graph = run.graph
        self.events = tuple(events)

    @cached_property
    def _end(self) -> RunView:
        return view_at(self.events, len(self.events))

    def __len__(self) -> int:
        return len(self.events)

    def at(self, number: int) -> Moment:
        """The run behind event ``number``, from 1; 0 is before the first, -1 behind the last."""
        count = len(self.events)
        place = number + count + 1 if type(number) is int and number < 0 else number
        if type(place) is not int or not 0 <= place <= count:
            raise OptionError(f"the run has no event {number!r}", hint=f"its events are 1 to {count}")
        return Moment(
            place,
            self.events[place - 1] if place else None,
            self.graph,
            view_at(self.events, place),
            context_at(self.graph, self.events, place),
        )

    def to_plain(self) -> dict[str, Any]:
        """JSON values: the frames, as ``replay_frames.replay_of`` gives them."""
        return replay_of(self.graph, self.events)

    def values(self) -> dict[str, Any]:
        """What ``showReplay`` is given, without secrets: the first picture, marks, name and frames."""
        return {
            "svg": render_svg(self.graph),
            "marks": {status.value: path for status, path in MARK_PATHS.items()},
            "caption": redacted(self.run.pipeline.title),
            "replay": self.to_plain(),
        }

    def __str__(self) -> str:
        count = len(self.events)
        words = run_summary(self._end, self.graph, name=name_of(self.run))
        return f"replay of {count} event{'s' * (count != 1)}: {words}"

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002 - the signature of Jupyter's hook
        return picture_bundle(_picture(self.graph, self._end), str(self))


def _picture(graph: Graph, view: RunView) -> str:
    return render_svg(
        graph,
        states=view.nodes,
        edges=view.edges,
        children=view.children,
        is_ended=view.status.is_ended,
        is_whole=False,
    )


def replay_run(run: Execution) -> Replay:
    """The replay of a run: live as far as it has come, ended, or loaded."""
    directories = look_back(run).directories
    return Replay(run, [event for each in directories for event in _with_children(each.root, each.events)])


def _with_children(logs_root: Path, recorded: Iterable[Event], depth: int = 0) -> Iterator[Event]:
    """What a directory has recorded; events of a child run stand where they happened, by their times."""
    waiting: dict[str, list[Event]] = {}
    for event in recorded:
        for child_id, events in waiting.items():
            is_end = isinstance(event, ChildEnded) and event.child_id == child_id
            while events and (events[0].time < event.time or (is_end and events[0].time <= event.time)):
                yield events.pop(0)
        yield event
        if isinstance(event, ChildStarted) and event.child_id not in waiting and depth < MAX_CHILD_DEPTH:
            waiting[event.child_id] = _of_child(logs_root, event, depth)
    for events in waiting.values():
        yield from events


def _of_child(logs_root: Path, started: ChildStarted, depth: int) -> list[Event]:
    """The events of a child run, as its parent's watchers saw them; of one that cannot be read none."""
    place = logs_root / started.child_root
    with contextlib.suppress(RunError):
        return [
            ChildEvent(
                name=started.name,
                branch=started.branch,
                child_id=started.child_id,
                event=event,
                sequence=started.sequence,
                time=event.time,
                run_id=started.run_id,
            )
            for event in _with_children(place, read_run(place).events, depth + 1)
        ]
    return []
