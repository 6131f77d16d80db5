"""A run as it is seen in a notebook: graph, status line and gate card, and at its end one picture.

The widgets are made and displayed in the cell that starts the run. From then on nothing is displayed
or printed: events set traits. When the run has ended, the cell's output is replaced by the static
picture, so that the saved notebook shows it on any page, without a kernel.
"""

from __future__ import annotations

# IPython and ipywidgets have no types here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
import contextvars
import copy
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final, Protocol

import ipywidgets
from IPython.display import DisplayHandle, display

from attractor_nb.model.events import (
    ChildEvent,
    DebuggerChanged,
    DebuggerMoved,
    DebuggerStopped,
    Event,
    InterviewCompleted,
    InterviewStarted,
    InterviewTimeout,
    PipelineCompleted,
    PipelineFailed,
    PipelineInterrupted,
    PipelineResumed,
    PipelineStarted,
    StageOutput,
)
from attractor_nb.notebook.gate_card import GateCards, HandedIn
from attractor_nb.notebook.graph_view import TAIL_CHARS, TAILS, GraphView
from attractor_nb.notebook.painting import LoopPainter, ThreadPainter
from attractor_nb.notebook.pictures import bundle_of
from attractor_nb.pipeline.debug_requests import answer_debugging
from attractor_nb.pipeline.inbox import resume_call
from attractor_nb.pipeline.inspecting import answer_inspection
from attractor_nb.redaction import redacted
from attractor_nb.views.folding import fold_event, merge_deltas
from attractor_nb.views.marks import MARK_PATHS
from attractor_nb.views.questions import BY_CLICK, plain_question
from attractor_nb.views.status_line import status_line
from attractor_nb.views.summary import run_summary
from attractor_nb.views.svg import CHILD_SEPARATOR, render_svg

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from attractor_nb.model.graph import Graph, Node
    from attractor_nb.pipeline.debugger import Debugger
    from attractor_nb.views.state import Delta, RunView

SPEAKING_TYPES: Final = frozenset({"codergen", "tool"})
"""Handler types whose output streams."""
GATE_TYPE: Final = "wait.human"
SETTLE_SECONDS: Final = 5.0
"""How long the end of a run, once announced, may take until its result is there."""
CLOSING_SECONDS: Final = 3.0
"""A browser that is still loading a widget's code when the widget is closed reports an error."""
_NO_WORDS: Final = {"text/plain": ""}
DEBUGGER_NEWS: Final = (
    DebuggerStopped,
    DebuggerChanged,
    DebuggerMoved,
    PipelineStarted,
    PipelineResumed,
    PipelineCompleted,
    PipelineFailed,
    PipelineInterrupted,
)
ENDS: Final = (PipelineCompleted, PipelineFailed, PipelineInterrupted)


class ShownRun(Protocol):
    """What the live view needs of a run; the public ``Run`` has it all."""

    @property
    def graph(self) -> Graph:
        """The graph that runs."""
        ...

    @property
    def logs_root(self) -> Path:
        """Its run directory."""
        ...

    @property
    def view(self) -> RunView:
        """What is known of it so far."""
        ...

    @property
    def children(self) -> Mapping[str, ShownRun]:
        """The child runs of its stages by node, in a branch by ``branch/node``."""
        ...

    @property
    def debugger(self) -> Debugger:
        """Breakpoints, steps, changes by hand."""
        ...

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        ...

    def on_event(self, observer: Callable[[Event], None], /) -> Callable[[], None]:
        """Hear every event."""
        ...

    def answer(
        self,
        gate: str,
        choice: str = "",
        *,
        text: str = "",
        form: Mapping[str, Any] | None = None,
        answered_by: str = "",
    ) -> object:
        """Answer a gate."""
        ...

    def cancel(self) -> None:
        """Stop it."""
        ...


class LiveRun:
    """The live view of one run.

    Attributes:
        graph_view: Graph, status line, output, inspector.
        gate_card: The card of the question that waits.
        widget: Both, one above the other.
    """

    def __init__(
        self,
        run: ShownRun,
        *,
        closing_seconds: float = CLOSING_SECONDS,
        inspect: Callable[[Any, dict[str, Any]], dict[str, Any]] = answer_inspection,
        debug: Callable[[Any, dict[str, Any]], dict[str, Any]] = answer_debugging,
    ) -> None:
        """Make the widgets; call it in the cell whose output they become.

        Args:
            run: What to show.
            closing_seconds: How long after the end the widgets live on, unseen.
            inspect: Answers the inspector's questions about the run.
            debug: Does what the debugger's bar asks for.
        """
        self._run = run
        self._closing_seconds = closing_seconds
        self._view = copy.deepcopy(run.view)
        self._started = 0.0
        self._handles: list[tuple[DisplayHandle, DisplayHandle]] = []
        graph = run.graph
        nodes = _with_those_below(graph)
        types = {node.handler_type for _, node in nodes}
        has_threads = sys.platform != "emscripten"
        self.graph_view = GraphView(
            on_stop=run.cancel,
            on_inspect=lambda request: inspect(run, request),
            on_debug=lambda request: debug(run, request),
            svg=render_svg(graph),
            marks={status.value: path for status, path in MARK_PATHS.items()},
            caption=redacted(graph.label),
            directory=str(run.logs_root),
            has_beats=has_threads,
            has_output=not types.isdisjoint(SPEAKING_TYPES),
        )
        gates = [node.id for _, node in nodes if node.handler_type == GATE_TYPE]
        self.gate_card = GateCards(self._answer, has_gates=bool(gates))
        self.graph_view.show({"debugger": run.debugger.to_plain()})
        if self._view.nodes:  # a resumed run begins with what was done before
            self.graph_view.show(self._view.to_plain())
        self.widget = ipywidgets.VBox([self.graph_view, self.gate_card])
        self._painter = (
            ThreadPainter(self.paint, last=ENDS, beat=self.graph_view.beat)
            if has_threads
            else LoopPainter(self.paint)
        )
        run.on_event(self._painter.put)

    @property
    def is_over(self) -> bool:
        """Whether the static picture has taken its place."""
        return self._view.status.is_ended

    def show(self) -> None:
        """Display it in the current cell's output."""
        view = display(self.widget, display_id=True)
        words = display(_NO_WORDS, raw=True, display_id=True)
        assert view is not None, "a display id was asked for"
        assert words is not None, "a display id was asked for"
        self._handles.append((view, words))

    def paint(self, batch: list[Event]) -> None:
        """Show a batch of events; the end of the run puts its picture in place whatever happened before."""
        try:
            self._follow(batch)
        finally:
            if any(isinstance(event, ENDS) for event in batch):
                self._end()

    def _follow(self, batch: list[Event]) -> None:
        delta: Delta = {}
        tails: dict[str, str] = {}
        for event in batch:
            delta = merge_deltas(delta, fold_event(self._view, event)[1])
            if output := _output_of(event):
                name, text = output
                tails[name] = (tails.pop(name, "") + text)[-TAIL_CHARS:]
            match event:
                case PipelineStarted() | PipelineResumed():
                    self._started = event.time
                case InterviewStarted():
                    self.gate_card.ask(plain_question(event, resume=resume_call(self._run.logs_root)))
                case InterviewCompleted() | InterviewTimeout():
                    self.gate_card.settle(event.question_id, event)
                case _:
                    pass
        self._view.attempts.clear()  # nothing here shows them; a loop of many turns would fill the memory
        if tails:
            delta["tails"] = dict([*tails.items()][-TAILS:])
        if any(_is_debugging(event) for event in batch):
            delta["debugger"] = self._run.debugger.to_plain()
        if delta.keys() - {"tails"}:
            delta["line"] = status_line(self._view, self._run.graph, started=self._started, now=time.time())
        if delta:
            self.graph_view.show(delta)

    def _answer(self, handed: HandedIn) -> None:
        """Hand in what a person has clicked; raises what the run says against it."""
        self._run.answer(handed.gate, handed.choice, text=handed.text, form=handed.form, answered_by=BY_CLICK)

    def _end(self) -> None:
        """Put the static picture in the widget's place, and let the widget go."""
        self.gate_card.dismiss()
        give_up = time.monotonic() + SETTLE_SECONDS
        while not self._run.is_done and sys.platform != "emscripten" and time.monotonic() < give_up:
            time.sleep(0.01)
        self.graph_view.settle()
        bundle = bundle_of(self._run)
        summary = {"text/plain": run_summary(self._view, self._run.graph, has_times=True)}
        for view, words in self._handles:
            view.update(bundle, raw=True)
            words.update(summary, raw=True)
        if self._closing_seconds and sys.platform != "emscripten":
            variables = contextvars.copy_context()
            closing = threading.Timer(self._closing_seconds, variables.run, [_close, self.widget])
            closing.daemon = True
            closing.start()
        else:
            _close(self.widget)


def _with_those_below(graph: Graph) -> list[tuple[Graph, Node]]:
    """The nodes of a graph and of its children's, each with its graph."""
    found = [(graph, node) for node in graph.nodes.values()]
    for child in graph.children.values():
        found += _with_those_below(child)
    return found


def _output_of(event: Event) -> tuple[str, str] | None:
    """Who said what, if the event is a piece of output: of the run's own stage, or of one in a child run."""
    above: list[str] = []
    while isinstance(event, ChildEvent):
        above.append(event.name)
        event = event.event
    if not isinstance(event, StageOutput):
        return None
    return CHILD_SEPARATOR.join((*above, event.name)), event.text


def _is_debugging(event: Event) -> bool:
    """Whether an event says that a debugger looks otherwise now, here or in a child run."""
    while isinstance(event, ChildEvent):
        event = event.event
    return isinstance(event, DEBUGGER_NEWS)


def _close(widget: Any) -> None:
    """Close a widget and all that is in it, so that nothing of a run that is over stays in memory."""
    for part in getattr(widget, "children", ()):
        _close(part)
    for name in ("style", "layout"):
        if (model := getattr(widget, name, None)) is not None:
            model.close()
    widget.close()
