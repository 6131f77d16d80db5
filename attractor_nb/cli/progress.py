"""Events of a run as lines of progress: one line for each stage, when it has ended.

Active work is shown below the lines, at a terminal only: each stage under way, its seconds, and, of one
that is alone, the end of the text that is being written. A stage in a branch has the branch's path before its
name. ``run`` and ``watch`` show a run in this way. Where a menu asks a question, nothing else is written until it is
answered; ``watch`` asks nothing and shows open questions below the active stages. Reads events; knows no run and no
engine.
"""

from __future__ import annotations

import textwrap
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.text import Text

from attractor_nb.cli.quiet_progress import QuietProgress
from attractor_nb.cli.reporting import reason_in_options
from attractor_nb.cli.terminal import Line, Terminal
from attractor_nb.cli.tones import Tone
from attractor_nb.model.branch import parts_of
from attractor_nb.model.events import (
    Event,
    EventsDropped,
    GoalGateUnsatisfied,
    InterviewCompleted,
    InterviewStarted,
    InterviewTimeout,
    ModelCallWaiting,
    ParallelBranchCompleted,
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
from attractor_nb.model.outcome import StageStatus
from attractor_nb.model.question import who_answered
from attractor_nb.model.redacted import redacted_graph
from attractor_nb.model.states import NodeStatus
from attractor_nb.model.texts import shown
from attractor_nb.model.vocabulary.value_forms import label_text, normalize_label
from attractor_nb.views.drawings.drawing import AGAIN, TIMES
from attractor_nb.views.folding import take_event
from attractor_nb.views.state import RunView, first_words
from attractor_nb.views.summary_line import duration_text, usage_words
from attractor_nb.views.table import cells, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rich.console import RenderableType

    from attractor_nb.model.graph import Graph


INSTANT_TYPES: Final = frozenset({"start", "exit", "conditional", "wait.human"})
"""Handler types that never show as running: they are over at once, or a menu is in that place."""
TAIL_LINES: Final = 3
REVIEW_LINES: Final = 14
SHOWN_STAGES: Final = 8
"""Stages under way that are shown at the same time; of more the newest are."""
_WARNING_MARK: Final = "!"
MOST_CHARS_OF_A_LINE: Final = 4_000
_CHANNELS: Final = ("stdout", "stderr")
"""Channels of what commands write."""


class WrittenLines:
    """The lines that the commands of a run have ended, and those that they have begun."""

    def __init__(self) -> None:
        self._begun: dict[tuple[str, str, str], str] = {}

    def whole_lines(self, event: StageOutput) -> str:
        """The whole lines of what a command writes, or nothing; the rest waits for its line end."""
        if event.channel not in _CHANNELS:
            return ""
        place = event.branch, event.name, event.channel
        *lines, rest = (self._begun.pop(place, "") + event.text).split("\n")
        while len(rest) > MOST_CHARS_OF_A_LINE:  # a progress bar never ends its line
            lines.append(rest[:MOST_CHARS_OF_A_LINE])
            rest = rest[MOST_CHARS_OF_A_LINE:]
        if rest:
            self._begun[place] = rest
        name = stage_path(event.branch, event.name)
        return "\n".join(f"    {name} | {shown(line)}" for line in lines)

    def last_lines(self, event: StageEnd) -> Iterator[str]:
        """The last output of a command, without a line end."""
        for channel in _CHANNELS:
            if rest := self._begun.pop((event.branch, event.name, channel), ""):
                yield f"    {stage_path(event.branch, event.name)} | {shown(rest)}"


class ProgressDisplay(QuietProgress):
    """Shows the events of one run.

    Args:
        graph: What runs.
        heading: What to say before the first event: a run that cannot begin has no heading.
        is_verbose: Show each response under its stage, and the output of commands as it arrives.
        terminal: Where to; stderr by default.
        footer: The lines below the active stages, the open questions among them; None where a menu asks the questions.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        heading: Sequence[tuple[str, Tone]] = (),
        is_verbose: bool = False,
        terminal: Terminal | None = None,
        footer: Callable[[], list[Text]] | None = None,
    ) -> None:
        super().__init__()
        self._graph = redacted_graph(graph)
        self._heading = list(heading)
        self._is_verbose = is_verbose
        self._terminal = terminal or Terminal(name_columns=name_columns(graph))
        self._footer = footer
        self._is_behind = False
        self._view = RunView()
        self._words = StageWords(self._graph, self._view)
        self._active = ActiveStages()
        self._questions: dict[str, tuple[str, str]] = {}
        self._held: list[Line | str] = []
        self._written = WrittenLines()
        self._error = ""
        self._answered_by = ""

    def take_all(self, events: Iterable[Event]) -> None:
        """Show events that arrive together, and then what is active."""
        self._is_behind = True  # a block between two of thousands would cost more than their lines
        for event in events:
            self.take(event)
        self._is_behind = False
        self._show_active()

    def say(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        """Write text."""
        self._terminal.say(text, tone)

    def close(self) -> None:
        """Take what moves away."""
        self._questions.clear()
        self._show_active()
        self._terminal.end()

    def _show(self, event: Event) -> None:
        take_event(self._view, event)
        while self._heading:
            self._terminal.say(*self._heading.pop(0))
        match event:
            case StageStarted():
                self._begin(event)
            case StageOutput():
                self._active.add_output(event)
                if self._is_verbose and (lines := self._written.whole_lines(event)):
                    self._write(lines)
            case StageFailed() if event.will_retry:
                self._error = f"{first_words(event.error, REASON_CHARS)} {self._words.spent(event)}".strip()
            case StageEnd():
                self._end(event)
            case ParallelBranchCompleted():
                self._end_branch(event)
            case StageRetrying():
                self._end_active(event.branch)
                name = stage_path(event.branch, event.name)
                self._line(NodeStatus.RETRYING, name, self._retry_words(event))
            case _:
                self._show_other(event)

    def _show_other(self, event: Event) -> None:
        """Events that are no stage's beginning or end."""
        match event:
            case InterviewStarted():
                self._ask(event)
            case InterviewCompleted():
                self._answered_by = event.answered_by
                self._settle(event.question_id)
            case (
                InterviewTimeout()
                | GoalGateUnsatisfied()
                | RunWarning()
                | PipelineRestarted()
                | PipelineRewound()
                | EventsDropped()
            ):
                if isinstance(event, InterviewTimeout):
                    self._settle(event.question_id)
                self._write(Line(_WARNING_MARK, event.node_id, event.description, tone=Tone.WAITING))
            case ModelCallWaiting() if self._is_verbose:
                self._write(Line(_WARNING_MARK, event.node_id, event.description, tone=Tone.WAITING))
            case PipelineResumed():
                self._write(Line(AGAIN, event.next_node, f"resumed here{event.what_becomes_of_it}", tone=Tone.BUSY))
            case _:
                pass

    # -- stages --------------------------------------------------------------------------------------

    def _begin(self, event: StageStarted) -> None:
        self._active.begin(event)
        self._show_active()

    def _end(self, event: StageEnd) -> None:
        for line in self._written.last_lines(event):
            self._write(line)
        self._end_active(event.branch)
        self._answered_in(event.branch, event.name)
        status = NodeStatus.CACHED if event.is_cached else NodeStatus.of(event.outcome.status)
        time_text = "" if self._words.is_instant(event.name) else duration_text(event.duration)
        words = self._words.of(event, self._answered_by)
        self._line(status, stage_path(event.branch, event.name), words, time_text)
        if self._is_verbose and self._graph.handler_types.get(event.name) == "codergen":
            self._say_text(self._active.latest_text)
        self._answered_by = ""

    def _end_branch(self, event: ParallelBranchCompleted) -> None:
        """A line for a branch that was cancelled, or that had more than one stage: that one has its own."""
        self._active.end_within(event.branch)
        for question_id, (branch, _) in list(self._questions.items()):
            if branch == event.branch or branch.startswith(f"{event.branch}/"):
                self._settle(question_id)
        self._terminal.end()
        branch, status = self._view.branches.get(event.branch), StageStatus(event.status)
        count = len(branch.nodes) if branch else 0
        if status is StageStatus.SKIPPED:
            words = f"cancelled: {event.failure_reason}" if event.failure_reason else "cancelled"
        elif count > 1:
            words = f"branch of {count} stages"
        else:
            return self._show_active()
        seconds = branch.duration if branch and (count or status is not StageStatus.SKIPPED) else 0.0
        self._line(NodeStatus.of(status), shown_path(event.branch), words, duration_text(seconds) if seconds else "")
        return None

    def _end_active(self, branch: str) -> None:
        self._active.end(branch)
        self._terminal.end()

    def _show_active(self) -> None:
        """Show what is active, and what was held back, unless a question is on the screen."""
        if self._is_behind or (self._questions and self._terminal.is_live):
            return
        if self._held:
            self._terminal.end()
            held, self._held = self._held, []
            for line in held:
                self._write_now(line)
        if self._footer or any(stage.event.handler_type not in INSTANT_TYPES for stage in self._active.stages):
            self._terminal.begin(self._block)

    def _write(self, line: Line | str) -> None:
        if self._questions and self._terminal.is_live:
            self._held.append(line)
        else:
            self._write_now(line)
            self._show_active()

    def _write_now(self, line: Line | str) -> None:
        if isinstance(line, str):
            self._terminal.say(line, Tone.QUIET)
        else:
            self._terminal.write(line)

    # -- questions -----------------------------------------------------------------------------------

    def _ask(self, event: InterviewStarted) -> None:
        """Clear the live block if a menu takes its place."""
        self._terminal.end()
        if not self._questions:
            self._show_material()
        if self._footer is None:
            self._questions[event.question_id] = event.branch, event.stage

    def _settle(self, question_id: str) -> None:
        self._questions.pop(question_id, None)
        self._show_active()

    def _answered_in(self, branch: str, stage: str) -> None:
        """A stage that has ended asks nothing any more."""
        for question_id, asker in list(self._questions.items()):
            if asker == (branch, stage):
                self._settle(question_id)

    def _line(self, status: NodeStatus, name: str, words: str, time_text: str = "") -> None:
        self._write(Line(status.letter, name, words, time_text, Tone.of(status)))

    def _retry_words(self, event: StageRetrying) -> str:
        return f"{self._error}; attempt {event.attempt} in {duration_text(event.delay)}"

    # -- texts ---------------------------------------------------------------------------------------

    def _block(self) -> RenderableType:
        """The live block: the active stages, the latest output if there is only one, and the footer."""
        active = [stage for stage in self._active.stages if stage.event.handler_type not in INSTANT_TYPES]
        lines: list[RenderableType] = []
        if (hidden := len(active) - SHOWN_STAGES) > 0:
            lines.append(Text(f"  + {hidden} more", style=Tone.QUIET.value))
        for stage in active[-SHOWN_STAGES:]:
            event = stage.event
            words = self._words.label(event.name) + (f" {TIMES}{event.attempt}" if event.attempt > 1 else "")
            if fan_out := self._view.fan_outs.get((event.branch, event.name)):
                words = f"{words} {fan_out.progress}".strip()
            elif note := self._view.nodes[event.name].note:
                words = f"{words} ({note})".strip()
            seconds = f"{max(0.0, time.time() - stage.since):.1f} s"
            name = stage_path(event.branch, event.name)
            mark = NodeStatus.RUNNING.letter
            lines.append(self._terminal.laid_out(Line(mark, name, words, seconds, Tone.BUSY)))
        if len(active) == 1:
            tail = self._wrapped(active[0].tail)[-TAIL_LINES:]
            lines += [Text(line, style=Tone.QUIET.value, no_wrap=True) for line in tail]
        return Group(*lines, *(self._footer() if self._footer else ()))

    def _show_material(self) -> None:
        """Show the material that the person at the gate is to judge, unless it is on the screen already."""
        if self._terminal.is_live and not self._is_verbose and self._active.latest_text.strip():
            self._say_text(self._active.latest_text, REVIEW_LINES)

    def _say_text(self, text: str, most_lines: int | None = None) -> None:
        lines = self._wrapped(text)
        if most_lines is not None and len(lines) > most_lines:
            lines = [*lines[: most_lines - 1], "    …"]
        if lines:
            self._terminal.say("\n".join(lines), Tone.QUIET)

    def _wrapped(self, text: str) -> list[str]:
        width = self._terminal.columns - 1
        lines: list[str] = []
        for paragraph in shown(text).strip().splitlines():
            lines += textwrap.wrap(paragraph, width, initial_indent="    ", subsequent_indent="    ") or [""]
        return lines


# The stages of a run in lines: what they are called, what they do at this moment, and how they end.

NAME_COLUMNS: Final = 24
REASON_CHARS: Final = 100
_NOBODY: Final = {"auto-approve": "auto-approved", "default": "no answer in time: default"}

TAIL_CHARS: Final = 2_000
KEPT_CHARS: Final = 20_000


class StageWords:
    """Words about the stages of a graph."""

    def __init__(self, graph: Graph, view: RunView) -> None:
        self._graph = graph
        self._view = view

    def of(self, event: StageEnd, answered_by: str = "") -> str:
        """The error or the label of a stage, the edge taken if there was a choice, and the number of attempts."""
        outcome = event.outcome
        if isinstance(event, StageFailed) or outcome.status is StageStatus.RETRY:
            error = event.error if isinstance(event, StageFailed) else ""
            parts = [first_words(reason_in_options(error or outcome.failure_reason), REASON_CHARS)]
        else:
            parts = [self.label(event.name)]
        if fan_out := self._view.fan_outs.get((event.branch, event.name)):
            parts.append(f"({fan_out.note})")
        if route := self._route(event):
            parts.append(f"→ {route}")
        if answered_by:
            parts.append(f"({_NOBODY.get(answered_by) or f'by {one_line(who_answered(answered_by))}'})")
        if event.attempt > 1:
            parts.append(f"{TIMES}{event.attempt}")
        if event.visit > 1:
            parts.append(f"{AGAIN}{event.visit}")
        parts.append(self.spent(event))
        return " ".join(part for part in parts if part)

    def spent(self, event: StageEnd) -> str:
        """The usage of this attempt, or the savings of the cache, in brackets; empty if it reports none."""
        if event.is_cached:
            saved = usage_words(event.saved) if event.saved else ()
            return f"(cached, saved {', '.join(saved)})" if saved else "(cached)"
        words = usage_words(event.outcome.usage) if event.outcome.usage else ()
        return f"({', '.join(words)})" if words else ""

    def label(self, node_id: str) -> str:
        """The label of a node, when it says more than its id."""
        node = self._graph.nodes.get(node_id)
        return one_line(node.label) if node and normalize_label(node.label) != normalize_label(node_id) else ""

    def _route(self, event: StageEnd) -> str:
        is_fan_out = (event.branch, event.name) in self._view.fan_outs
        if len(self._graph.outgoing_edges(event.name)) < 2 or not event.next_node:
            return ""
        if is_fan_out and event.edge is None:
            return ""
        label = self._graph.edges[event.edge].label if event.edge is not None else ""
        return one_line(label_text(label)) or event.next_node

    def is_instant(self, node_id: str) -> bool:
        """True if its duration is of no interest."""
        return self._graph.handler_types.get(node_id) in {"start", "exit", "conditional"}


def shown_path(path: str) -> str:
    """The path of a branch as users read it, on one line.

    >>> shown_path("fan/a%20b")
    'fan/a b'
    """
    return one_line("/".join(parts_of(path)))


def stage_path(branch: str, node_id: str) -> str:
    """A stage with the branch that it is in; the first node of a branch has the branch's own name.

    >>> stage_path("", "plan"), stage_path("fan/a", "a"), stage_path("fan/a", "x")
    ('plan', 'fan/a', 'fan/a/x')
    """
    if not branch:
        return node_id
    parts = parts_of(branch)
    return shown_path(branch) if parts[-1] == node_id else f"{shown_path(branch)}/{one_line(node_id)}"


def name_columns(graph: Graph) -> int:
    """Width of the column of names: that of the longest, with its branch where it begins one."""
    names = list(graph.nodes)
    for name, handler_type in graph.handler_types.items():
        if handler_type == "parallel":
            names += [f"{name}/{edge.target}" for edge in graph.outgoing_edges(name)]
    return min(NAME_COLUMNS, max(map(cells, names), default=0))


@dataclass(slots=True)
class ActiveStage:
    """A stage under way."""

    event: StageStarted  #: Its latest attempt.
    since: float  #: When that began, in seconds since 1970.
    tail: str = ""  #: The end of what it writes.
    text: str = ""  #: Its answer.


class ActiveStages:
    """The stages under way: one in each branch, and one outside of all."""

    def __init__(self) -> None:
        self._of: dict[str, ActiveStage] = {}
        self._text = ""

    def begin(self, event: StageStarted) -> None:
        """An attempt begins."""
        self._of[event.branch] = ActiveStage(event, event.time or time.time())

    def add_output(self, event: StageOutput) -> None:
        """Take in what a stage writes."""
        if stage := self._of.get(event.branch):
            stage.tail = (stage.tail + event.text)[-TAIL_CHARS:]
            if event.channel == "response":
                stage.text = (stage.text + event.text)[-KEPT_CHARS:]

    def end(self, branch: str) -> None:
        """The stage in a branch, or outside of all, has ended; what it answered is the latest response."""
        stage = self._of.pop(branch, None)
        if stage is not None and stage.event.handler_type == "codergen":
            self._text = stage.text

    def end_within(self, path: str) -> None:
        """A branch is over, and whatever is within it."""
        for branch in [name for name in self._of if name == path or name.startswith(f"{path}/")]:
            self.end(branch)

    @property
    def stages(self) -> tuple[ActiveStage, ...]:
        """Those under way, in the order in which they began; at any moment they may have become others."""
        return tuple(self._of.values())

    @property
    def latest_text(self) -> str:
        """The response of the model stage that ended last."""
        return self._text
