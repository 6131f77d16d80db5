"""A run in time: what each node did when, tried again, waited for, and called (pure).

A lane for each node, or for each branch; in it a bar for each attempt, hatched ones for waits between
attempts, and dotted ones for waits for users. Time in which the run was inactive is cut out and marked.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.model.events import (
    SESSION_ENDS,
    Event,
    InstructionGiven,
    InterviewCompleted,
    InterviewStarted,
    InterviewTimeout,
    ModelCallEnded,
    PipelineResumed,
    PipelineRewound,
    StageFailed,
    StageRetrying,
    StageStarted,
    ToolCallEnded,
)
from attractor_nb.model.states import stage_word
from attractor_nb.views.state import first_words
from attractor_nb.views.summary_line import duration_text
from attractor_nb.views.table import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from attractor_nb.decisions.history.journal import AttemptRecord, Journal, VisitRecord

BY: Final = ("node", "branch")
MAIN_LANE: Final = "run"
ATTEMPT, RETRY_WAIT, HUMAN = "attempt", "retry wait", "human wait"
MESSAGE: Final = "message"
CUT_SECONDS: Final = 1.0
"""A standstill that is shorter is not worth a mark."""


@dataclass(frozen=True, slots=True)
class TimelineCall:
    """A call within an attempt."""

    kind: str  #: ``model`` or ``tool``; ``message`` for a moment at which the attempt was told something.
    name: str
    start: float  #: Seconds since 1970.
    end: float  #: Likewise.
    error: str = ""  #: Reason of the failure, or empty.


@dataclass(frozen=True, slots=True)
class Bar:
    """A piece of time in a lane."""

    node: str
    branch: str  #: Path of the branch, or empty.
    kind: str  #: ``attempt``, ``retry wait`` or ``human wait``.
    visit: int  #: Number of the visit.
    attempt: int  #: Number of the try.
    status: str  #: ``running``, ``cut off``, or how the attempt ended; ``cached`` for a result of the cache.
    start: float  #: Seconds since 1970.
    end: float  #: Likewise; while it is active, the present.
    reason: str = ""  #: Reason of the failure, or empty.
    calls: tuple[TimelineCall, ...] = ()

    @property
    def seconds(self) -> float:
        """The duration in seconds."""
        return max(0.0, self.end - self.start)

    @property
    def words(self) -> str:
        """All about it, on lines."""
        where = f"{self.node} in {self.branch}" if self.branch else self.node
        lines = [f"{where}: {self.kind}, {stage_word(self.status)}, {duration_text(self.seconds)}"]
        lines.append(f"visit {self.visit}, attempt {self.attempt}")
        if self.reason:
            lines.append(first_words(self.reason, 200))
        for call in self.calls[:8]:
            failed = f" failed: {first_words(call.error, 80)}" if call.error else ""
            took = "" if call.kind == MESSAGE else f", {duration_text(call.end - call.start)}"
            lines.append(f"{call.kind} {call.name}{took}{failed}")
        if len(self.calls) > 8:
            lines.append(f"… and {len(self.calls) - 8} more calls")
        return "\n".join(lines)


@dataclass(slots=True)
class TimelineLane:
    """A line of the picture."""

    key: str  #: Its subject: a node, with its branch before it, or a branch.
    bars: list[Bar] = field(default_factory=list[Bar])  #: In the order in which they began.


@dataclass(frozen=True, slots=True)
class Cut:
    """Time in which the run was inactive."""

    start: float  #: Seconds since 1970.
    end: float  #: When it continued.


@dataclass(frozen=True, slots=True)
class Timeline:
    """A run in time."""

    name: str  #: Of the pipeline.
    lanes: tuple[TimelineLane, ...]  #: In the order in which they began.
    start: float  #: When the run began, in seconds since 1970.
    end: float  #: When it ended, or the present.
    cuts: tuple[Cut, ...] = ()  #: Inactive periods, in order.
    is_live: bool = False  #: The run is active.
    mark: str = ""  #: Mark of its result, or empty (ruling 48).

    def shown(self, moment: float) -> float:
        """Seconds from the beginning to a moment, standstills left out."""
        passed = moment - self.start
        for cut in self.cuts:
            passed -= max(0.0, min(moment, cut.end) - cut.start)
        return max(0.0, passed)

    @property
    def seconds(self) -> float:
        """Its length, standstills left out."""
        return self.shown(self.end)

    @property
    def bars(self) -> Iterator[Bar]:
        """All bars, lane by lane."""
        return (bar for lane in self.lanes for bar in lane.bars)

    def reworded(self, words: Callable[[str], str]) -> Timeline:
        """The same, the reason of each failure in the words of a front end."""

        def said(bar: Bar) -> Bar:
            calls = tuple(replace(call, error=words(call.error)) for call in bar.calls)
            return replace(bar, reason=words(bar.reason), calls=calls)

        return replace(self, lanes=tuple(TimelineLane(lane.key, list(map(said, lane.bars))) for lane in self.lanes))


def timeline_of(
    journal: Journal, *, name: str = "", by: str = "node", now: float | None = None, mark: str = ""
) -> Timeline:
    """The timeline of a run's past.

    Args:
        journal: The past.
        name: Of the pipeline.
        by: ``node``: a lane for each node, in each branch; ``branch``: one for each branch.
        now: The present, in seconds since 1970, of a run that is active; None for an inactive one.
        mark: What must be said of the run's result, or empty.
    """
    counted = journal.counted
    if not counted:
        return Timeline(name, (), 0.0, 0.0, mark=mark)
    cuts = tuple(_cuts(counted))
    last = counted[-1]
    is_live = now is not None and not isinstance(last, SESSION_ENDS)
    end = max(last.time, now) if is_live and now is not None else last.time
    inner = _Inner(counted)
    lanes: dict[str, TimelineLane] = {}
    for visit in journal.visits:
        path = f"{visit.branch}/{visit.node_id}" if visit.branch else visit.node_id
        key = path if by == "node" else visit.branch or MAIN_LANE
        lane = lanes.setdefault(key, TimelineLane(key))
        lane.bars += _bars_of(visit, inner, end, is_live=is_live)
    return Timeline(name, tuple(lanes.values()), counted[0].time, end, cuts, is_live, mark)


def _cuts(counted: Sequence[Event]) -> Iterator[Cut]:
    for before, event in pairwise(counted):
        if isinstance(event, PipelineResumed | PipelineRewound) and event.time - before.time > CUT_SECONDS:
            yield Cut(before.time, event.time)


class _Inner:
    """The calls, waits and delays within attempts, by branch and node."""

    def __init__(self, counted: Sequence[Event]) -> None:
        self.calls: dict[tuple[str, str, int, int], list[TimelineCall]] = {}
        self.waits: dict[tuple[str, str], list[tuple[float, float | None]]] = {}
        self.delays: dict[tuple[str, str, int, int], float] = {}
        self.stops: list[float] = []
        before, latest = counted[0].time, dict[str, tuple[str, str, int, int]]()
        for event in counted:
            match event:
                case ModelCallEnded() | ToolCallEnded():
                    is_model = isinstance(event, ModelCallEnded)
                    call = TimelineCall(
                        "model" if is_model else "tool",
                        one_line(event.model if isinstance(event, ModelCallEnded) else event.tool),
                        event.time - event.duration,
                        event.time,
                        event.error,
                    )
                    key = (event.branch, event.name, event.visit, event.attempt)
                    self.calls.setdefault(key, []).append(call)
                case StageStarted():
                    latest[event.name] = (event.branch, event.name, event.visit, event.attempt)
                case InstructionGiven() if event.stage in latest:
                    call = TimelineCall(MESSAGE, first_words(one_line(event.text), 80), event.time, event.time)
                    self.calls.setdefault(latest[event.stage], []).append(call)
                case InterviewStarted():
                    self.waits.setdefault((event.branch, event.stage), []).append((event.time, None))
                case InterviewCompleted() | InterviewTimeout():
                    waits = self.waits.get((event.branch, event.stage), [])
                    if waits and waits[-1][1] is None:
                        waits[-1] = (waits[-1][0], event.time)
                case StageRetrying():
                    key = (event.branch, event.name, event.visit, event.attempt)
                    self.delays[key] = event.delay
                case PipelineResumed() | PipelineRewound():
                    self.stops.append(before)
                case _:
                    pass
            before = event.time

    def cut_off(self, start: float, end: float) -> float:
        """The end of an attempt without a recorded one: the run's next stop, or now."""
        return next((stop for stop in self.stops if stop >= start), end)


def _bars_of(visit: VisitRecord, inner: _Inner, end: float, *, is_live: bool) -> Iterator[Bar]:
    before: float | None = None
    for number, attempt in enumerate(visit.attempts):
        start = attempt.started.time
        if before is not None and start > before:
            yield Bar(visit.node_id, visit.branch, RETRY_WAIT, visit.number, attempt.number, "waited", before, start)
        is_last = number == len(visit.attempts) - 1
        bar = _attempt_bar(visit, attempt, inner, end, is_live=is_live and is_last)
        yield bar
        for begun, answered in inner.waits.get((visit.branch, visit.node_id), ()):
            if start <= begun <= bar.end:
                until = min(bar.end, answered if answered is not None else bar.end)
                status = "answered" if answered is not None else bar.status
                yield Bar(visit.node_id, visit.branch, HUMAN, visit.number, attempt.number, status, begun, until)
        before = bar.end if attempt.ended is not None and not attempt.ended.is_commit else None
    last = visit.attempts[-1]
    delay = inner.delays.get((visit.branch, visit.node_id, visit.number, last.number + 1))
    if before is not None and delay is not None and is_live:
        until = min(end, before + delay)
        yield Bar(visit.node_id, visit.branch, RETRY_WAIT, visit.number, last.number + 1, "waits", before, until)


def _attempt_bar(visit: VisitRecord, attempt: AttemptRecord, inner: _Inner, end: float, *, is_live: bool) -> Bar:
    started, ended = attempt.started, attempt.ended
    reason = ""
    if ended is None:
        stopped = inner.cut_off(started.time, end)
        is_running = is_live and stopped == end
        status, until = ("running", end) if is_running else ("cut off", stopped)
    else:
        status = "cached" if ended.is_cached else ended.outcome.status.value
        until = ended.time
        if isinstance(ended, StageFailed):
            reason = ended.error or ended.outcome.failure_reason
    calls = tuple(inner.calls.get((visit.branch, visit.node_id, visit.number, attempt.number), ()))
    return Bar(
        visit.node_id,
        visit.branch,
        ATTEMPT,
        visit.number,
        attempt.number,
        status,
        started.time,
        max(started.time, until),
        one_line(reason),
        calls,
    )


def timeline_plain(timeline: Timeline) -> dict[str, Any]:
    """JSON values of what a front-end needs beside the picture: the words of each bar, by its number."""
    return {
        "bars": [
            {"node": bar.node, "branch": bar.branch, "words": bar.words, "status": bar.status} for bar in timeline.bars
        ],
        "is_live": timeline.is_live,
        "mark": timeline.mark,
    }
