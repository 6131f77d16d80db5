"""Events of a run as lines of progress: one line for each stage, when it has ended.

What is going on moves beneath the lines, at a terminal only: the stage, its seconds, and the end of
the text that is being written. Reads events; knows no run and no engine.
"""

from __future__ import annotations

import textwrap
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.text import Text

from attractor_nb.cli.terminal import Line, Terminal, Tone
from attractor_nb.model.events import (
    Event,
    EventsDropped,
    GoalGateUnsatisfied,
    InterviewCompleted,
    InterviewStarted,
    InterviewTimeout,
    PipelineFailed,
    PipelineRestarted,
    PipelineResumed,
    PipelineRewound,
    RunWarning,
    StageEnd,
    StageFailed,
    StageOutput,
    StageRetrying,
    StageStarted,
)
from attractor_nb.model.labels import label_text, normalize_label
from attractor_nb.model.outcome import StageStatus
from attractor_nb.model.redacted import redacted_graph
from attractor_nb.views.columns import cells, one_line
from attractor_nb.views.marks import AGAIN, STATUS_LETTERS, TIMES
from attractor_nb.views.markup import clean
from attractor_nb.views.state import NodeStatus, first_words
from attractor_nb.views.summary import duration_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from attractor_nb.model.graph import Graph

INSTANT_TYPES: Final = frozenset({"start", "exit", "conditional", "wait.human"})
"""Handler types that never show as running: they are over at once, or a menu is in that place."""
NAME_COLUMNS: Final = 24
TAIL_LINES: Final = 3
REVIEW_LINES: Final = 14
TAIL_CHARS: Final = 2_000
KEPT_CHARS: Final = 20_000
REASON_CHARS: Final = 100
PATIENCE_SECONDS: Final = 2.0
_MARKS: Final = {
    StageStatus.SUCCESS: (NodeStatus.SUCCESS, Tone.GOOD),
    StageStatus.PARTIAL_SUCCESS: (NodeStatus.PARTIAL_SUCCESS, Tone.GOOD),
    StageStatus.SKIPPED: (NodeStatus.SKIPPED, Tone.QUIET),
    StageStatus.RETRY: (NodeStatus.FAIL, Tone.BAD),
    StageStatus.FAIL: (NodeStatus.FAIL, Tone.BAD),
}
_WARNING_MARK: Final = "!"


@dataclass(slots=True)
class Tally:
    """What is counted for the summary.

    Attributes:
        seconds: Time spent in each stage, all visits together.
        attempts: Attempts at each stage, all visits together.
        is_resumable: The run failed, and may go on all the same.
    """

    seconds: dict[str, float] = field(default_factory=dict[str, float])
    attempts: dict[str, int] = field(default_factory=dict[str, int])
    is_resumable: bool = False


class Progress:
    """Shows the events of one run.

    Args:
        graph: What runs.
        heading: What to say before the first event: a run that cannot begin has no heading.
        is_quiet: Count, and show nothing.
        is_verbose: Show each response under its stage.
        terminal: Where to; stderr by default.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        heading: Sequence[tuple[str, Tone]] = (),
        is_quiet: bool = False,
        is_verbose: bool = False,
        terminal: Terminal | None = None,
    ) -> None:
        self.tally = Tally()
        self._graph = redacted_graph(graph)
        self._heading = list(heading)
        self._is_quiet = is_quiet
        self._is_verbose = is_verbose
        names = max((cells(name) for name in graph.nodes), default=0)
        self._terminal = terminal or Terminal(name_columns=min(NAME_COLUMNS, names))
        self._running: StageStarted | None = None
        self._since = 0.0
        self._tail = ""
        self._text = ""
        self._error = ""
        self._answered_by = ""
        self._asked: set[str] = set()
        self._asking = threading.Condition()

    def take(self, event: Event) -> None:
        """Show an event."""
        self._count(event)
        if not self._is_quiet:
            while self._heading:
                self._terminal.say(*self._heading.pop(0))
            self._show(event)
        if isinstance(event, InterviewStarted):
            with self._asking:
                self._asked.add(event.question_id)
                self._asking.notify_all()

    def wait_until_asked(self, question_id: str) -> None:
        """Block until all that happened before a question is shown, so that its menu stands alone."""
        with self._asking:
            self._asking.wait_for(lambda: question_id in self._asked, PATIENCE_SECONDS)

    def say(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        """Write text, unless quiet."""
        if not self._is_quiet:
            self._terminal.say(text, tone)

    def close(self) -> None:
        """Take what moves away."""
        self._terminal.end()

    def _count(self, event: Event) -> None:
        match event:
            case StageStarted():
                self.tally.attempts[event.name] = self.tally.attempts.get(event.name, 0) + 1
            case StageEnd() if event.is_commit:
                self.tally.seconds[event.name] = self.tally.seconds.get(event.name, 0.0) + event.duration
            case PipelineFailed():
                self.tally.is_resumable = event.is_resumable
            case _:
                pass

    def _show(self, event: Event) -> None:
        match event:
            case StageStarted():
                self._begin(event)
            case StageOutput():
                self._hear(event)
            case StageFailed() if event.will_retry:
                self._error = event.error
            case StageEnd():
                self._end(event)
            case StageRetrying():
                self._terminal.end()
                self._line(NodeStatus.RETRYING, event.name, self._retry_words(event), tone=Tone.WAITING)
            case InterviewStarted():
                self._terminal.end()
                self._show_material()
            case InterviewCompleted():
                self._answered_by = event.answered_by
            case (
                InterviewTimeout()
                | GoalGateUnsatisfied()
                | RunWarning()
                | PipelineRestarted()
                | PipelineRewound()
                | EventsDropped()
            ):
                self._terminal.write(Line(_WARNING_MARK, event.node_id, event.description, tone=Tone.WAITING))
            case PipelineResumed():
                self._terminal.write(Line(AGAIN, event.next_node, _goes_on(event), tone=Tone.BUSY))
            case _:
                pass

    # -- stages --------------------------------------------------------------------------------------

    def _begin(self, event: StageStarted) -> None:
        self._running, self._since = event, time.monotonic()
        self._tail = ""
        if event.handler_type == "codergen":
            self._text = ""
        if event.handler_type not in INSTANT_TYPES:
            self._terminal.begin(self._block)

    def _hear(self, event: StageOutput) -> None:
        self._tail = (self._tail + event.text)[-TAIL_CHARS:]
        if event.channel == "response":
            self._text = (self._text + event.text)[-KEPT_CHARS:]

    def _end(self, event: StageEnd) -> None:
        self._terminal.end()
        status, tone = _MARKS[event.outcome.status]
        time_text = "" if self._is_instant(event.name) else duration_text(event.duration)
        self._line(status, event.name, self._words(event), time_text, tone)
        if self._is_verbose and self._graph.handler_types.get(event.name) == "codergen":
            self._say_text(self._text)
        self._answered_by = ""

    def _is_instant(self, node_id: str) -> bool:
        return self._graph.handler_types.get(node_id) in {"start", "exit", "conditional"}

    def _line(
        self, status: NodeStatus, name: str, words: str, time_text: str = "", tone: Tone = Tone.PLAIN
    ) -> None:
        self._terminal.write(Line(STATUS_LETTERS[status], name, words, time_text, tone))

    def _words(self, event: StageEnd) -> str:
        """Why it failed, or its label; the way taken where there was a choice; how often it was tried."""
        outcome = event.outcome
        if isinstance(event, StageFailed) or outcome.status is StageStatus.RETRY:
            error = event.error if isinstance(event, StageFailed) else ""
            parts = [first_words(error or outcome.failure_reason, REASON_CHARS)]
        else:
            parts = [self._label(event.name)]
        if way := self._way(event):
            parts.append(f"→ {way}")
        if self._answered_by:
            parts.append(f"({_PEOPLE.get(self._answered_by, self._answered_by)})")
        if event.attempt > 1:
            parts.append(f"{TIMES}{event.attempt}")
        if event.visit > 1:
            parts.append(f"{AGAIN}{event.visit}")
        return " ".join(part for part in parts if part)

    def _label(self, node_id: str) -> str:
        node = self._graph.nodes.get(node_id)
        return (
            one_line(node.label) if node and normalize_label(node.label) != normalize_label(node_id) else ""
        )

    def _way(self, event: StageEnd) -> str:
        if len(self._graph.outgoing_edges(event.name)) < 2 or not event.next_node:
            return ""
        label = self._graph.edges[event.edge].label if event.edge is not None else ""
        return one_line(label_text(label)) or event.next_node

    def _retry_words(self, event: StageRetrying) -> str:
        reason = first_words(self._error, REASON_CHARS)
        return f"{reason}; attempt {event.attempt} in {duration_text(event.delay)}"

    # -- texts ---------------------------------------------------------------------------------------

    def _block(self) -> RenderableType:
        """What moves: the stage that runs, and the end of what it writes."""
        event = self._running
        if event is None:
            return ""
        words = self._label(event.name) + (f" {TIMES}{event.attempt}" if event.attempt > 1 else "")
        seconds = f"{time.monotonic() - self._since:.1f} s"
        mark = STATUS_LETTERS[NodeStatus.RUNNING]
        head = self._terminal.laid_out(Line(mark, event.name, words, seconds, Tone.BUSY))
        tail = self._wrapped(self._tail)[-TAIL_LINES:]
        return Group(head, *(Text(line, style=Tone.QUIET.value, no_wrap=True) for line in tail))

    def _show_material(self) -> None:
        """What the person at the gate is to judge, when it is not on the screen already."""
        if self._terminal.is_live and not self._is_verbose and self._text.strip():
            self._say_text(self._text, REVIEW_LINES)

    def _say_text(self, text: str, most_lines: int | None = None) -> None:
        lines = self._wrapped(text)
        if most_lines is not None and len(lines) > most_lines:
            lines = [*lines[: most_lines - 1], "    …"]
        if lines:
            self._terminal.say("\n".join(lines), Tone.QUIET)

    def _wrapped(self, text: str) -> list[str]:
        width = self._terminal.columns - 1
        lines: list[str] = []
        for paragraph in clean(text).strip().splitlines():
            lines += textwrap.wrap(paragraph, width, initial_indent="    ", subsequent_indent="    ") or [""]
        return lines


def _goes_on(event: PipelineResumed) -> str:
    """That the run goes on, and what becomes of the stage that was cut off."""
    return "goes on here" + event.description.partition(event.next_node)[2]


_PEOPLE: Final = {
    "console": "by you",
    "auto-approve": "auto-approved",
    "default": "no answer in time: default",
}
