"""A run as frames: one for each event, with what it changed in the picture and in the context.

With the first picture and the frames a view can show any moment of the run without a request: a
slider in a notebook, an exported page. Pure functions over events; nothing is read here.
"""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.decisions.log_history import counted_events
from attractor_nb.errors import OptionError, RunError
from attractor_nb.model.child import CHILD_SEPARATOR
from attractor_nb.model.events import (
    ChildEnded,
    ChildEvent,
    ChildStarted,
    Event,
    ParallelBranchStarted,
    PipelineCompleted,
    PipelineRewound,
    PipelineStarted,
    StageEnd,
    StageStarted,
)
from attractor_nb.redaction import redacted
from attractor_nb.runtime.handles.presenters import name_of
from attractor_nb.runtime.past import read_history
from attractor_nb.storage.stored_run import read_run
from attractor_nb.views.display import DisplayedPicture
from attractor_nb.views.drawings.drawing import MARK_PATHS
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.folding import fold_event, take_event
from attractor_nb.views.state import Delta, NodeState, RunView
from attractor_nb.views.summary_line import failed_stage, run_summary
from attractor_nb.views.table import one_line
from attractor_nb.views.text_table import run_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from attractor_nb.model.graph import Graph
    from attractor_nb.runtime.execution import Execution


VALUE_CHARS: Final = 2000
"""Of a long context value this much is in a frame."""
WORDS_CHARS: Final = 200
_PENDING: Final = NodeState().to_plain()
_NOTHING_YET: Final[Mapping[str, Any]] = {"nodes": {}, "edges": {}}
_ENDS: Final = {"PipelineCompleted": "success", "PipelineFailed": "fail", "PipelineInterrupted": "stopped"}


def replay_of(graph: Graph, events: Sequence[Event]) -> dict[str, Any]:
    """The frames of a run, as JSON values.

    Args:
        graph: The graph that ran.
        events: Its events as they happened, those that a rewind set aside too. After a restart those of the
            next directory follow. What happened in child runs is there as ``ChildEvent``.

    Returns:
        ``started`` (seconds since 1970), ``seconds`` (from the first event to the last), ``base`` (the
        context before the first), ``frames``, and of a failed run ``failed``, its failed stage. Each frame has
        ``n`` (its number, from 1), ``at`` (seconds from the first event), ``type``, ``node`` (in a child run
        ``node>inner``; empty for the run),
        ``words`` and ``delta`` (as ``fold_event`` gives it). Where there is something to say there are also
        ``context`` (the values that it set, cut), ``dropped`` (keys that are gone), ``branch``, ``visit``,
        ``status`` (how the stage, or the run, ended) and ``begins`` (a branch begins with a copy of the
        context around it).
    """
    view, values = RunView(), graph.mirrored()
    base = _cut_all(values)
    frames: list[dict[str, Any]] = []
    started = events[0].time if events else 0.0
    latest = 0.0
    for place, event in enumerate(events):
        latest = max(latest, event.time - started)  # a clock may be set back
        if isinstance(event, PipelineRewound):
            before = view
            view = view_at(events, place + 1)
            delta = difference(before, view)
            now = context_at(graph, events, place + 1)
        else:
            view, delta = fold_event(view, event)
            now = _after(graph, event, values)
        inner, path = _unwrapped(event)
        frames.append(
            {
                "n": place + 1,
                "at": round(latest, 3),
                "type": inner.type,
                "node": CHILD_SEPARATOR.join((*path, inner.node_id)).removesuffix(CHILD_SEPARATOR),
                "words": _words(inner),
                "delta": delta,
                **_facts(inner),
                **_context_facts(event, values, now),
            }
        )
        values = now
    failed = {"failed": name} if (name := failed_stage(view, graph)) else {}
    return {"started": started, "seconds": round(latest, 3), "base": base, "frames": frames, **failed}


def _words(event: Event) -> str:
    """An event in a line; the time of its end is beside the slider."""
    words = "pipeline completed" if isinstance(event, PipelineCompleted) else redacted(event.description)
    return one_line(words)[:WORDS_CHARS]


def view_at(events: Sequence[Event], count: int) -> RunView:
    """The view of a run after its first ``count`` events (as of ``replay_of``); 0: before the first."""
    view = RunView()
    for event in _counted(events[:count]):
        take_event(view, event)
    return view


def context_at(graph: Graph, events: Sequence[Event], count: int) -> dict[str, Any]:
    """The run's context after its first ``count`` events: recorded values, large ones as references."""
    values = graph.mirrored()
    for event in _counted(events[:count]):
        values = _after(graph, event, values)
    return values


def difference(before: RunView, after: RunView) -> Delta:
    """The delta that leads from one state of a run to another."""
    return {**_difference(before.to_plain(), after.to_plain()), "run": after.status.value}


def _difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> Delta:
    delta: Delta = {}
    for part, nothing in (("nodes", _PENDING), ("edges", 0)):
        was, now = before[part], after[part]
        changed = {key: value for key, value in now.items() if was.get(key) != value}
        changed |= {key: nothing for key, value in was.items() if key not in now and value != nothing}
        if changed:
            delta[part] = changed
    was, now = before.get("children", {}), after.get("children", {})
    children = {
        key: inner
        for key in dict.fromkeys((*was, *now))
        if (inner := _difference(was.get(key, _NOTHING_YET), now.get(key, _NOTHING_YET)))
    }
    if children:
        delta["children"] = children
    return delta


def _counted(events: Sequence[Event]) -> list[Event]:
    """The events that count: a rewind goes back within its directory, and each directory counts anew."""
    begins = [place for place, event in enumerate(events) if isinstance(event, PipelineStarted)]
    bounds = [0, *begins[1:], len(events)]
    return [event for begin, end in itertools.pairwise(bounds) for event in counted_events(events[begin:end])]


def _unwrapped(event: Event) -> tuple[Event, tuple[str, ...]]:
    """An event of a child run, of however many levels below, and the nodes that lead to it."""
    path: list[str] = []
    while isinstance(event, ChildEvent):
        path.append(event.name)
        event = event.event
    return event, tuple(path)


def _after(graph: Graph, event: Event, values: dict[str, Any]) -> dict[str, Any]:
    """The context of the run behind an event: a restart begins anew, a branch changes its own copy."""
    if isinstance(event, PipelineStarted):
        return {**(graph.mirrored() if event.restart_of else values), **event.inputs}
    changes: Mapping[str, Any] = {} if event.branch else getattr(event, "context", {})
    return {**values, **changes} if changes else values


def _context_facts(event: Event, was: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """The context of a frame; for a branch only its own values."""
    if isinstance(event, ParallelBranchStarted):
        return {"begins": True}
    if isinstance(event, StageEnd):
        return {"context": _cut_all(event.context)} if event.context else {}
    facts: dict[str, Any] = {}
    if changed := {key: value for key, value in now.items() if key not in was or was[key] != value}:
        facts["context"] = _cut_all(changed)
    if dropped := [key for key in was if key not in now]:
        facts["dropped"] = dropped
    return facts


def _facts(event: Event) -> dict[str, Any]:
    """The visit and branch of an event, and the outcome if it ends a stage."""
    facts: dict[str, Any] = {"branch": event.branch} if event.branch else {}
    if isinstance(event, StageStarted | StageEnd):
        facts["visit"] = event.visit
    if isinstance(event, StageEnd) and event.is_commit:
        facts["status"] = event.outcome.status.value
    elif event.type in _ENDS:
        facts["status"] = _ENDS[event.type]
    return facts


def _cut_all(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _cut(value) for key, value in values.items()}


def _cut(value: Any) -> Any:
    """A context value short enough for a frame; a container that is too long becomes text."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = redacted(value if isinstance(value, str) else str(value))
    if len(text) <= VALUE_CHARS:
        return text if isinstance(value, str) else value
    return text[: VALUE_CHARS - 1] + "…"


# The replay of a run: any moment of it, in Python and with a slider.
#
# The events are read once, with those of the directories that it restarted from and of its child runs. Stages that
# a rewind set aside are included; of a restart that it took back only the fact.

MAX_CHILD_DEPTH: Final = 8


@dataclass(frozen=True, slots=True, repr=False)
class Moment(DisplayedPicture):
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


class Replay(DisplayedPicture):
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

    def to_svg(self) -> str:
        """The graph as its last moment left it."""
        return _picture(self.graph, self._end)

    def values(self) -> dict[str, Any]:
        """The values for ``showReplay``, without secrets: the first picture, marks, name and frames."""
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
    directories = read_history(run).directories
    return Replay(run, [event for each in directories for event in _with_children(each.root, each.events)])


def _with_children(logs_root: Path, recorded: Iterable[Event], depth: int = 0) -> Iterator[Event]:
    """The recorded events of a directory; those of a child run are merged by time."""
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
