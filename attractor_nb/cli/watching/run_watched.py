"""A run that somebody else works at: its events as they are recorded, and what they tell of it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attractor_nb.cli.exit_codes import ExitCode
from attractor_nb.decisions.log_history import counted_events
from attractor_nb.decisions.open_questions import fold_question
from attractor_nb.errors import CheckpointCorrupt
from attractor_nb.model.events import (
    PipelineInterrupted,
    PipelineRestarted,
    PipelineResumed,
    PipelineRewound,
    PipelineStarted,
    StageEnd,
)
from attractor_nb.model.states import PAUSED, NodeStatus
from attractor_nb.storage.log.event_log import read_log
from attractor_nb.storage.log.lock import is_owned
from attractor_nb.storage.manifest_file import read_manifest
from attractor_nb.storage.stored_run import check_directory, has_event_log
from attractor_nb.views.folding import take_event
from attractor_nb.views.state import RunView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from attractor_nb.model.events import Event, InterviewStarted
    from attractor_nb.model.graph import Graph

INTERVAL_SECONDS: Final = 0.25


class WatchedRun:
    """What is known of it.

    Attributes:
        view: How it stands.
        name: The name that it was given, or that of its graph.
        gates: The questions that wait, by id.
        said_mark: What must be said of its result, by whoever knows it without events.
        trouble: Why what is known may be old, in words; empty when nothing is in the way.
    """

    def __init__(self, graph: Graph, *, said_mark: str = "") -> None:
        self.graph = graph
        self.name = graph.name
        self.said_mark = said_mark
        self.trouble = ""
        self._parts: list[list[Event]] = [[]]
        """What is recorded, by directory: a restart begins another one."""
        self._forget()

    def _forget(self) -> None:
        self.view = RunView()
        self.gates: dict[str, InterviewStarted] = {}
        self._seconds: dict[str, float] = {}
        self._begun = 0.0
        self._before = 0.0
        self._latest = 0.0

    @property
    def title(self) -> str:
        """The heading: the name that it was given, else the label of its graph."""
        return self.name if self.name and self.name != self.graph.name else self.graph.label

    @property
    def mark(self) -> str:
        """What must be said of its result: simulated, pinned (ruling 48)."""
        return self.view.marks.marks.words or self.said_mark

    def take(self, event: Event) -> None:
        """Take in what happened."""
        if isinstance(event, PipelineRewound):
            self._go_back(event)
            return
        if event.is_durable:
            self._parts[-1].append(event)
        self._fold(event)
        if isinstance(event, PipelineRestarted):
            self._parts.append([])

    def _go_back(self, event: PipelineRewound) -> None:
        """Show no more what a rewind sets aside; it may have led back before a restart."""
        while len(self._parts) > 1 and not (self._parts[-1] and self._parts[-1][-1].sequence + 1 == event.sequence):
            self._parts.pop()
        self._parts[-1].append(event)
        self._forget()
        for part in self._parts:
            for each in counted_events(part):
                self._fold(each)

    def _fold(self, event: Event) -> None:
        take_event(self.view, event)
        fold_question(self.gates, event)
        self._latest = event.time or self._latest
        match event:
            case StageEnd():
                self._seconds[event.name] = self._seconds.get(event.name, 0.0) + event.duration
            case PipelineStarted():
                self.name = event.name
                self._begun = self._begun or event.time  # a restart goes on with the time of the run
            case PipelineResumed():
                self._before, self._begun = self.view.duration, event.time
            case _:
                pass

    def report_trouble(self, words: str) -> None:
        """Something is in the way of the events, or, with no words, not any more."""
        self.trouble = words

    def lose(self, reason: str) -> None:
        """Nobody works at it any more, and it did not say so."""
        node = next(iter(self.view.active_nodes), "")
        self.take(PipelineInterrupted(reason=reason, next_node=node, duration=self.elapsed(self._latest)))

    @property
    def node_ids(self) -> list[str]:
        """The nodes, as the graph has them; then those that it does not have."""
        return [*self.graph.nodes, *(name for name in self.view.nodes if name not in self.graph.nodes)]

    def elapsed(self, now: float) -> float:
        """Seconds of running time."""
        if self.view.status.is_ended or not self._begun:
            return self.view.duration
        return self._before + max(0.0, now - self._begun)

    def seconds_of(self, node_id: str, now: float) -> float | None:
        """Seconds in a node, all its attempts together; None where there is nothing to say."""
        state = self.view.nodes.get(node_id)
        if state is None or state.status is NodeStatus.PENDING:
            return None
        if state.status.is_active and state.since:
            return self._seconds.get(node_id, 0.0) + max(0.0, now - state.since)
        return self._seconds.get(node_id)

    @property
    def exit_code(self) -> ExitCode:
        """What watching it ends with; 0 as long as it goes on."""
        status = PAUSED if self.view.is_paused else self.view.status
        return ExitCode.of(status, is_unmeasured=self.view.is_unmeasured)


class RunFollower:
    """Looks at a run directory again and again; iterate it.

    Each look gives the events that have come since the last one, the first all that are there. It ends when
    nobody works at the run. A restart is followed into its directory.

    Attributes:
        is_live: Whether somebody worked at the run when it was last looked at.
    """

    def __init__(
        self,
        logs_root: Path,
        *,
        interval_seconds: float = INTERVAL_SECONDS,
        wait: Callable[[float], object] = time.sleep,
        is_once: bool = False,
    ) -> None:
        """Stand before the first event.

        Args:
            logs_root: The run directory.
            interval_seconds: Time between two looks.
            wait: Waits so long.
            is_once: Look once.
        """
        check_directory(logs_root)
        self._reader = _Reader(logs_root)
        self._interval_seconds = interval_seconds
        self._wait = wait
        self._is_once = is_once
        self.is_live = False

    def __iter__(self) -> Iterator[tuple[Event, ...]]:
        while True:
            self.is_live = is_owned(self._reader.logs_root)  # first: what an owner wrote before it went is read
            events = self._reader.read()
            yield events
            if events and (fresh := _restart_of(self._reader.logs_root, events[-1])) is not None:
                self._reader = _Reader(fresh)
            elif self._is_once or not self.is_live:
                return
            else:
                self._wait(self._interval_seconds)


class _Reader:
    """Reads a log bit by bit."""

    def __init__(self, logs_root: Path) -> None:
        self.logs_root = logs_root
        self._offset = 0
        self._sequence = 0

    def read(self) -> tuple[Event, ...]:
        """The events since the last look."""
        try:
            scan = read_log(self.logs_root, offset=self._offset, sequence=self._sequence)
        except CheckpointCorrupt:
            # Who takes a run over leaves out what the owner before him had not finished: look from the front.
            scan = read_log(self.logs_root)
        known, self._offset, self._sequence = self._sequence, scan.offset, scan.sequence
        return tuple(event for event in scan.events if event.sequence > known)


def _restart_of(logs_root: Path, last: Event) -> Path | None:
    """Where the run goes on, when a restart is the last that happened there, even if it was moved."""
    if not isinstance(last, PipelineRestarted):
        return None
    manifest, _ = read_manifest(logs_root)
    first = logs_root.parent if (manifest or {}).get("restart_of") else logs_root
    fresh = first / Path(last.logs_root).name
    return fresh if fresh != logs_root and has_event_log(fresh) else None
