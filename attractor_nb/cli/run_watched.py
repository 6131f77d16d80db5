"""A run of another process: its events as they are recorded, and the state that they give."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.text import Text

from attractor_nb.cli.reporting import ExitCode, reason_in_options
from attractor_nb.cli.terminal import fitted
from attractor_nb.cli.tones import Tone
from attractor_nb.decisions.log_history import counted_events, fold_question
from attractor_nb.errors import CheckpointCorrupt
from attractor_nb.model.diagnostic import Severity
from attractor_nb.model.events import (
    Event,
    InterviewCompleted,
    InterviewStarted,
    PipelineInterrupted,
    PipelineRestarted,
    PipelineResumed,
    PipelineRewound,
    PipelineStarted,
    StageEnd,
)
from attractor_nb.model.states import PAUSED, NodeStatus, run_state, stage_state
from attractor_nb.model.vocabulary.value_forms import label_text, normalize_label
from attractor_nb.redaction import redacted
from attractor_nb.storage.log.event_log import read_log
from attractor_nb.storage.log.lock import is_owned
from attractor_nb.storage.manifest_file import read_manifest
from attractor_nb.storage.stored_run import check_directory, has_event_log
from attractor_nb.views.drawings.drawing import AGAIN, SEVERITY_LETTERS, TIMES
from attractor_nb.views.folding import take_event
from attractor_nb.views.state import NodeState, RunView, first_words, so_far
from attractor_nb.views.summary_line import duration_text, usage_words
from attractor_nb.views.table import cells, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from attractor_nb.model.graph import Graph


INTERVAL_SECONDS: Final = 0.25


class WatchedRun:
    """The known state of a watched run.

    Attributes:
        view: Its current state.
        name: The name that it was given, or that of its graph.
        gates: The questions that wait, by id.
        said_mark: The marks of its result, from a caller that knows them without events.
        trouble: The reason why the state may be stale, in words; empty if it is current.
    """

    def __init__(self, graph: Graph, *, said_mark: str = "") -> None:
        self.graph = graph
        self.name = graph.name
        self.said_mark = said_mark
        self.trouble = ""
        self._parts: list[list[Event]] = [[]]
        """Recorded events, by directory: a restart begins another one."""
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
        """The marks of its result: simulated, pinned (ruling 48)."""
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
        if not isinstance(event, InterviewCompleted):  # another process may send it when the run's owner is gone
            self._latest = event.time or self._latest
        match event:
            case StageEnd():
                self._seconds[event.name] = self._seconds.get(event.name, 0.0) + event.duration
            case PipelineStarted():
                self.name = event.name
                self._begun = self._begun or event.time  # a restart continues the time of the run
            case PipelineResumed():
                self._before, self._begun = self.view.duration, event.time
            case _:
                pass

    def report_trouble(self, words: str) -> None:
        """Something is in the way of the events, or, with no words, not any more."""
        self.trouble = words

    def lose(self, reason: str) -> None:
        """No process works on it any more, and it did not say so."""
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
        """The exit code of watching it; 0 while it is running."""
        status = PAUSED if self.view.is_paused else self.view.status
        return ExitCode.of(status, is_unmeasured=self.view.is_unmeasured)


class RunFollower:
    """Looks at a run directory again and again; iterate it.

    Each look gives the events that have come since the last one, the first all that are there. It ends when
    no process works on the run. A restart is followed into its directory.

    Attributes:
        is_live: Whether a process worked on the run when it was last looked at.
    """

    def __init__(
        self,
        logs_root: Path,
        *,
        interval_seconds: float = INTERVAL_SECONDS,
        wait: Callable[[float], object] = time.sleep,
        is_once: bool = False,
    ) -> None:
        """Start before the first event.

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
    """The directory where the run continues if its last event is a restart, even if it was moved."""
    if not isinstance(last, PipelineRestarted):
        return None
    manifest, _ = read_manifest(logs_root)
    first = logs_root.parent if (manifest or {}).get("restart_of") else logs_root
    fresh = first / Path(last.logs_root).name
    return fresh if fresh != logs_root and has_event_log(fresh) else None


# A watched run as a block of text: its status, a line for each stage, the questions that wait.

REASON_CHARS: Final = 60
FEWEST_WORDS: Final = 16
"""Least room for the words: with less, the usage is left out."""
_GAP: Final = "   "
_INDENT: Final = "    "
_WORDS, _TIME, _USED = 2, 3, 4
"""Places in a row."""
_PENDING: Final = NodeState()


def drawn_run(run: WatchedRun, how: Callable[[InterviewStarted], str], *, now: float, columns: int) -> Text:
    """The block.

    Args:
        how: How a question is answered, in words.
        now: Seconds since 1970.
        columns: Width to fill, what is longer is cut; 0 for as much as it takes.
    """
    names = run.node_ids
    rows = _lines([_row(run, name, now) for name in names], columns)
    tones = [Tone.of(run.view.nodes.get(name, _PENDING).status) for name in names]
    stages = [_toned(_cut(row, columns), tone) for row, tone in zip(rows, tones, strict=True)]
    text = Text("\n", no_wrap=True, overflow="ellipsis")
    return text.join([run_headline(run, now, columns), *stages, *drawn_notes(run, how, columns)])


def drawn_notes(run: WatchedRun, how: Callable[[InterviewStarted], str], columns: int) -> list[Text]:
    """The reason why the state may be stale, and the questions that wait."""
    questions = [line for gate in tuple(run.gates.values()) for line in question_lines(gate, how(gate), columns)]
    notes = [Text(line, style=Tone.WAITING.value) for line in questions]
    if run.trouble:
        words = _cut(f"{SEVERITY_LETTERS[Severity.WARNING]} {run.trouble}", columns)
        notes.insert(0, Text(words, style=Tone.BAD.value))
    return notes


def run_headline(run: WatchedRun, now: float, columns: int = 0) -> Text:
    """``● running   Review   4 stages   12.4 s   1,240 tokens   $0.0031``, or as much of it as fits."""
    view = run.view
    stages = f"{view.stages} stage{'s' * (view.stages != 1)}"
    time_text = duration_text(run.elapsed(now))
    parts = [run_state(view.shown_status), one_line(redacted(run.title)), stages, time_text]
    if run.mark:
        parts.append(one_line(redacted(run.mark)))
    parts += usage_words(so_far(view))
    if view.reason:
        parts.append(first_words(one_line(redacted(reason_in_options(view.reason))), REASON_CHARS))
    parts = [part for part in parts if part]
    while columns and len(parts) > 1 and cells(_GAP.join(parts)) > columns:
        parts.pop()
    return Text(_cut(_GAP.join(parts), columns), style=Tone.of(view.shown_status).value)


def question_lines(gate: InterviewStarted, how: str, columns: int = 0) -> list[str]:
    """A question that waits, its choices, and how it is answered; in a narrow place on lines of their own."""
    choices = redacted("   ".join(f"{key}: {one_line(label_text(label))}" for key, label in gate.options))
    words = one_line(gate.question) or gate.stage
    first = redacted(f"{NodeStatus.WAITING.letter} {one_line(gate.stage)}   {words}")
    lines = [f"{first}   {choices}".rstrip()]
    if columns and choices and cells(lines[0]) > columns:
        lines = [_cut(first, columns), _cut(f"{_INDENT}{choices}", columns)]
    return [*lines, *_folded(how, columns)]


def _folded(how: str, columns: int) -> list[str]:
    """A command on as many lines as it takes, so that it can be copied whole."""
    if not how:
        return []
    if not columns or len(_INDENT + how) <= columns or "'" in how:
        return [_INDENT + how]
    lines = [_INDENT]
    for word in how.split(" "):
        if lines[-1].strip() and len(lines[-1]) + len(word) + 3 > columns:
            lines[-1] += " \\"
            lines.append(2 * _INDENT)
        lines[-1] += word if not lines[-1].strip() else f" {word}"
    return lines


def _cut(line: str, columns: int) -> str:
    return fitted(line, columns) if columns else line


def _lines(rows: list[list[str]], columns: int) -> list[str]:
    """Stages in columns. The words give way to what is behind them: time, and what was used."""
    if not rows:
        return []
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    room = columns - sum(widths) + widths[_WORDS] - 2 * len(widths)
    if columns and room < FEWEST_WORDS:
        widths[_USED] = 0
        room = columns - sum(widths) + widths[_WORDS] - 2 * len(widths)
    if columns:
        widths[_WORDS] = max(0, min(widths[_WORDS], room))
    return [_line(row, widths) for row in rows]


def _line(row: list[str], widths: list[int]) -> str:
    state, name, words, time_text, used = (
        fitted(part, width) if width else "" for part, width in zip(row, widths, strict=True)
    )
    state, name, words = (
        part + " " * (width - cells(part)) for part, width in zip((state, name, words), widths, strict=False)
    )
    parts = [state, name, *([words] if widths[_WORDS] else []), time_text.rjust(widths[_TIME]), used]
    return "  ".join(parts).rstrip()


def _toned(line: str, tone: Tone) -> Text:
    """A line whose mark and state have their colour; one that fails is coloured whole."""
    end = len(line) if tone in {Tone.BAD, Tone.QUIET} else (line.find("  ") + 1 or len(line))
    return Text(line[:end], style=tone.value).append(line[end:], style=Tone.PLAIN.value)


def _row(run: WatchedRun, name: str, now: float) -> list[str]:
    state = run.view.nodes.get(name, _PENDING)
    seconds = run.seconds_of(name, now)
    return [
        stage_state(state.status),
        one_line(name),
        _words(run, name, state),
        "" if seconds is None else duration_text(seconds),
        _used(run, name),
    ]


def _words(run: WatchedRun, name: str, state: NodeState) -> str:
    """The error or the label and the progress of a node, and the number of attempts."""
    node = run.graph.nodes.get(name)
    label = node.label if node and normalize_label(node.label) != normalize_label(name) else ""
    progress = state.progress if state.status.is_active else ""
    parts = [first_words(one_line(reason_in_options(state.reason) or label), REASON_CHARS), progress, state.note]
    if state.attempt > 1:
        parts.append(f"{TIMES}{state.attempt}")
    if state.visits > 1:
        parts.append(f"{AGAIN}{state.visits}")
    return redacted(" ".join(part for part in parts if part))


def _used(run: WatchedRun, name: str) -> str:
    usage = run.view.usage_by_node.get(name)
    for (_, node), part in tuple(run.view.under_way.items()):
        if node == name:
            now = part.usage + part.child
            usage = now if usage is None else usage + now
    return ", ".join(usage_words(usage)) if usage else ""
