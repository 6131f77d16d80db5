"""A run as it is seen in a notebook: graph, status line and gate card, and what its output keeps of them.

The output of the cell is static from the beginning (``kept_output``); the widgets stand in for it while there is
a kernel. Events set traits, and what is kept is renewed when something happens that matters to a reader: a
question, its answer, the end. At the end the widgets stay as they are.
"""

# IPython and ipywidgets have no types here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import copy
import time
from os import urandom
from typing import TYPE_CHECKING, Any, Final

from IPython.display import display
from msgspec.structs import replace

from attractor_nb.account import signed_here
from attractor_nb.errors import AttractorError, RunNotFound
from attractor_nb.model.child import CHILD_SEPARATOR
from attractor_nb.model.events import (
    SESSION_ENDS,
    ChildEvent,
    DebuggerChanged,
    DebuggerMoved,
    DebuggerStopped,
    Event,
    InterviewCompleted,
    InterviewStarted,
    InterviewTimeout,
    PipelineResumed,
    PipelineStarted,
    StageOutput,
)
from attractor_nb.model.question import BY_CLICK
from attractor_nb.notebook.live.gate_card import NONE_WAITS, ClickedAnswer
from attractor_nb.notebook.live.graph_view import TAIL_CHARS, TAILS, GraphView
from attractor_nb.notebook.live.kept_output import failed_lines, run_bundle, widget_bundle
from attractor_nb.notebook.live.painting import make_painter
from attractor_nb.platforms import HAS_THREADS
from attractor_nb.redaction import redacted
from attractor_nb.runtime.handles.presenters import name_of
from attractor_nb.studio.debugger import answer_debugging
from attractor_nb.studio.history.lineage import parent_of
from attractor_nb.studio.history.waiting_gates import resume_call, shown_place
from attractor_nb.studio.inspect.final_answer import SPEAKING_TYPES, final_answer
from attractor_nb.studio.inspect.inspect_run import answer_inspection
from attractor_nb.views.drawings.drawing import MARK_PATHS
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.folding import fold_event, merge_deltas
from attractor_nb.views.shown_questions import plain_question
from attractor_nb.views.summary_line import status_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from attractor_nb.model.graph import Graph, Node
    from attractor_nb.notebook.view_actions import OpenViews, Output, ShownRun
    from attractor_nb.studio.history.waiting_gates import WaitingGate
    from attractor_nb.views.state import Delta


GATE_TYPE: Final = "wait.human"
SETTLE_SECONDS: Final = 5.0
"""Time limit for the result of a run after its end was announced."""
KEPT_INTERVAL_SECONDS: Final = 1.0
"""The shortest time between two of what is kept, but for the last."""
DEBUGGER_NEWS: Final = (
    DebuggerStopped,
    DebuggerChanged,
    DebuggerMoved,
    PipelineStarted,
    PipelineResumed,
    *SESSION_ENDS,
)


class LiveRun:
    """The live view of one run.

    Attributes:
        key: Of the place in a static output where it is in.
        graph_view: The widget: graph, status line, questions, output, inspector.
    """

    def __init__(
        self,
        run: ShownRun,
        *,
        views: OpenViews | None = None,
        is_followed: bool = True,
        is_joined: bool = False,
        output: Output | None = None,
        key: str = "",
        has_cards: bool = True,
        is_inline: bool = False,
        inspect: Callable[[Any, dict[str, Any]], dict[str, Any]] = answer_inspection,
        debug: Callable[[Any, dict[str, Any]], dict[str, Any]] = answer_debugging,
    ) -> None:
        """Make the widget; call it in the cell in whose output it is in.

        Args:
            run: What to show.
            views: The views of the shell, for what is opened beside this one.
            is_followed: Whether it is about to start; otherwise it is shown in its current state.
            is_joined: It is active already: each batch of its events shows the state that the run has by then.
            output: Where it is kept already.
            key: Of the place; a new one by default.
            has_cards: Whether its questions are shown here, and not by its interviewer.
            is_inline: The widget is a part of the output, where the page's other outputs cannot be reached. It opens
                nothing beside itself then, and the output is renewed at the end alone: that makes the view anew.
            inspect: Answers the inspector's questions about the run.
            debug: Does what the debugger's bar asks for.
        """
        self.run = run
        self.key = key or urandom(8).hex()
        self._is_inline = is_inline
        self._views = views
        self._has_cards = has_cards
        # A copy of what is active, for that changes in the engine's thread; nothing here shows attempts.
        self._view = copy.deepcopy(replace(run.view, attempts={})) if is_followed else run.view
        self._is_over = not is_followed
        self._is_joined = is_joined
        self._elsewhere: dict[str, WaitingGate] = {}
        self._started = 0.0
        self._kept_at = 0.0
        self._is_kept = True
        self._questions: dict[str, InterviewStarted] = {}
        self._handles: list[Output] = [output] if output else []
        self._beside = Beside(run, views)
        self._answer = None if is_followed else final_answer(run, self._view)
        self._failure = [] if is_followed else failed_lines(run, self._view)
        known: Delta = {"debugger": run.debugger.to_plain(), **self._view.to_plain()}
        if self._is_over:
            known |= self._end_of_run()
        self.graph_view = self._make_graph_view(inspect, debug, known, is_followed=is_followed)
        self.graph_view.act_on(run, None if is_inline else views)
        self.look_beside()
        if is_followed:
            run.on_event(make_painter(self.paint, last=SESSION_ENDS, beat=self._beat).put)
            if is_joined:
                self._started = min((state.since for state in self._view.nodes.values() if state.since), default=0.0)
                self._follow([])
                for gate in run.gates:
                    self._ask(gate.as_event())
        if output and is_inline:
            self._keep(is_now=True)

    def _make_graph_view(self, inspect: Any, debug: Any, known: Delta, *, is_followed: bool) -> GraphView:
        run, graph = self.run, self.run.graph
        types = {node.handler_type for _, node in _with_those_below(graph)}
        has_gates = is_followed and self._has_cards and GATE_TYPE in types
        return GraphView(
            on_answer=self._hand_in,
            on_stop=run.cancel,
            on_inspect=lambda request: inspect(run, request),
            on_debug=lambda request: debug(run, request),
            on_beside=self._beside.answer,
            known=known,
            svg=render_svg(graph),
            marks={status.value: path for status, path in MARK_PATHS.items()},
            caption=redacted(graph.label),
            directory=shown_place(run.logs_root),
            place="" if self._is_inline else self.key,
            has_beside=not self._is_inline,
            has_parent=parent_of(run) is not None,
            has_beats=is_followed and HAS_THREADS,
            has_output=not types.isdisjoint(SPEAKING_TYPES),
            has_gates=has_gates,
            none=NONE_WAITS if has_gates else "",
        )

    @property
    def is_over(self) -> bool:
        """True if what it shows changes no more."""
        return self._is_over

    def show(self) -> None:
        """Display it in the current cell's output: what is kept, and the live view in its place."""
        handle = display(self._bundle(), raw=True, display_id=True)
        assert handle is not None, "a display id was asked for"
        self._handles.append(handle)

    def show_in(self, output: Output) -> None:
        """Show it in an output that is there."""
        self._handles.append(output)
        output.update(self._bundle(), raw=True)

    def leave(self, output: Output) -> None:
        """Renew that output no more."""
        self._handles.remove(output)

    def close(self) -> None:
        """Leave the place to what is kept there, and hold nothing of the run any more."""
        self._beside.close()
        self.graph_view.layout.close()
        self.graph_view.close()

    def look_beside(self) -> None:
        """Say which other runs of the pipeline wait for a person."""
        if self._views is None or self._is_inline:
            return
        if (others := self._beside.others()) != self.graph_view.states["others"]:
            self.graph_view.show({"others": others})

    def paint(self, batch: list[Event]) -> None:
        """Show a batch of events; what the end of the run leaves is put in place whatever happened before."""
        try:
            self._follow(batch)
        finally:
            if any(isinstance(event, SESSION_ENDS) for event in batch):
                self._end()

    def _follow(self, batch: list[Event]) -> None:
        delta = self._folded(batch)
        tails: dict[str, str] = {}
        for event in batch:
            if output := _output_of(event):
                name, text = output
                tails[name] = (tails.pop(name, "") + text)[-TAIL_CHARS:]
            match event:
                case PipelineStarted() | PipelineResumed():
                    self._started = event.time
                case InterviewStarted():
                    self._ask(event)
                case InterviewCompleted() | InterviewTimeout():
                    self._questions.pop(event.question_id, None)
                    self.graph_view.settle(event.question_id, event)
                    self._is_kept = False
                case _:
                    pass
        self._view.attempts.clear()  # nothing here shows them; a loop of many turns would fill the memory
        if tails:
            delta["tails"] = dict([*tails.items()][-TAILS:])
        if any(_is_debugging(event) for event in batch):
            delta["debugger"] = self.run.debugger.to_plain()
        if delta.keys() - {"tails"}:
            delta["line"] = status_line(self._view, self.run.graph, started=self._started, now=time.time())
        if delta:
            self.graph_view.show(delta)
        self._keep()

    def _folded(self, batch: list[Event]) -> Delta:
        """Fold a batch into the state. Of a run that was joined the state is read anew: it has the batch already."""
        if not self._is_joined:
            return merge_deltas([fold_event(self._view, event)[1] for event in batch])
        self._view = copy.deepcopy(replace(self.run.view, attempts={}))
        return self._view.to_plain()

    def _ask(self, event: InterviewStarted) -> None:
        self._questions[event.question_id] = event
        self._is_kept = False
        if self._has_cards:
            about = " · ".join(part for part in (event.branch, event.stage, f"run {self.run.id}") if part)
            self.graph_view.ask(plain_question(event, about=about, resume=resume_call(self.run.logs_root)))

    def offer(self, asked: WaitingGate) -> None:
        """Show a question of the run, which no engine of this process works at; an answer is handed to its owner."""
        self._elsewhere[asked.event.question_id] = asked
        plain = plain_question(asked.event, about=f"{asked.gate} · run {self.run.id}", resume=asked.how)
        self.graph_view.ask(plain if asked.is_answerable else {**plain, "how": asked.how})

    def _beat(self) -> None:
        self.graph_view.beat()
        self.look_beside()
        self._keep()

    def _keep(self, *, is_now: bool = False) -> None:
        """Renew what is kept in the outputs, now and then, if something has happened that matters there."""
        is_due = not self._is_kept and not self._is_inline
        if is_now or (is_due and time.monotonic() >= self._kept_at + KEPT_INTERVAL_SECONDS):
            self._kept_at, self._is_kept = time.monotonic(), True
            bundle = self._bundle()
            for handle in self._handles:
                handle.update(bundle, raw=True)

    def _bundle(self) -> dict[str, Any]:
        bundle = run_bundle(
            self._view,
            self.run.graph,
            self.run.logs_root,
            place=self.key,
            questions=() if self._view.status.is_ended else tuple(self._questions.values()),
            others=[other["words"] for other in self._beside.others()],
            answer=self._answer,
            failure=self._failure,
            name=name_of(self.run),
        )
        return {**bundle, **widget_bundle(self.graph_view)} if self._is_inline else bundle

    def _hand_in(self, handed: ClickedAnswer) -> None:
        """Hand in what a person has clicked; raises what the run says against it."""
        if asked := self._elsewhere.get(handed.gate):
            by = signed_here(BY_CLICK)
            recorded = asked.hand_in(handed.choice, text=handed.text, form=handed.form, answered_by=by)
            self.graph_view.settle(handed.gate, recorded)
            return
        self.run.answer(
            handed.gate, handed.choice, text=handed.text, form=handed.form, answered_by=signed_here(BY_CLICK)
        )

    def _end(self) -> None:
        """Renew what is kept for the last time. The view stays as it is: who reads in it reads on."""
        self.graph_view.dismiss()
        give_up = time.monotonic() + SETTLE_SECONDS
        while not self.run.is_done and HAS_THREADS and time.monotonic() < give_up:
            time.sleep(0.01)
        self._is_over = True
        self._answer = final_answer(self.run, self._view)
        self._failure = failed_lines(self.run, self._view)
        self.graph_view.show(self._end_of_run())
        self.graph_view.show_whole()
        self._keep(is_now=True)
        if self._views is not None:
            self._views.let_go()

    def _end_of_run(self) -> Delta:
        """The end of a run that is over or has left this kernel: the line without a clock, and the answer."""
        line = status_line(self._view, self.run.graph, started=self._started, now=time.time())
        answer = self._answer.to_plain() if self._answer else {}
        return {"line": {**line, "is_ended": True, "is_over": True}, "answer": answer}


def _with_those_below(graph: Graph) -> list[tuple[Graph, Node]]:
    """The nodes of a graph and of its children's, each with its graph."""
    found = [(graph, node) for node in graph.nodes.values()]
    for child in graph.children.values():
        found += _with_those_below(child)
    return found


def _output_of(event: Event) -> tuple[str, str] | None:
    """The node and text of an event of output: of the run's own stage, or of one in a child run."""
    above: list[str] = []
    while isinstance(event, ChildEvent):
        above.append(event.name)
        event = event.event
    if not isinstance(event, StageOutput):
        return None
    return CHILD_SEPARATOR.join((*above, event.name)), event.text


def _is_debugging(event: Event) -> bool:
    """True if an event says that a debugger looks otherwise now, here or in a child run."""
    while isinstance(event, ChildEvent):
        event = event.event
    return isinstance(event, DEBUGGER_NEWS)


# Views that open beside the live view of a run: replay, timeline, the resumed run, another run.
#
# Each has its own place, which the browser inserts where the view was requested.


class Beside:
    """The views that open beside the view of one run."""

    def __init__(self, run: Any, views: OpenViews | None) -> None:
        self._run = run
        self._views = views
        self._opened: dict[str, Any] = {}

    def answer(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Do what the browser asks for; the place of what was opened, or what is said against it."""
        what, name = str(asked.get("what", "")), str(asked.get("run", ""))
        reply = {"kind": "beside", "what": what, "run": name}
        try:
            return {**reply, "place": self._place(what, name)}
        except AttractorError as error:
            return {**reply, "problem": redacted(str(error))}

    def others(self) -> list[dict[str, str]]:
        """The other runs of the pipeline that wait for a person: ``run`` and ``words``."""
        return self._views.waiting_beside(self._run) if self._views else []

    def close(self) -> None:
        """Let go of what was opened."""
        for view in self._opened.values():
            view.close()
        self._opened.clear()

    def _place(self, what: str, name: str) -> str:
        match what:
            case "replay" | "timeline" | "compare":
                return self._open(what)
            case "resume" if self._views is not None:
                with self._views.caught() as views:
                    self._run.resume()
                return views[-1].key if views else ""
            case "show" if self._views is not None:
                other = self._other(name)
                return (self._views.view_of(other) or self._views.open(other)).key
            case "stop" if self._views is not None:
                self._other(name).cancel()
            case _:
                pass
        return ""

    def _open(self, what: str) -> str:
        if what not in self._opened:
            self._opened[what] = _made(what, self._run, self._views)
        return self._opened[what].place

    def _other(self, name: str) -> Any:
        assert self._views is not None
        other = self._views.run_here(name)
        if other is None:
            raise RunNotFound(f"run {name} is no longer active", hint="runs() lists past runs")
        return other


def _made(what: str, run: Any, views: OpenViews | None) -> Any:
    from attractor_nb.notebook.view_actions import CompareView, ReplayView, TimelineView  # noqa: PLC0415 - most open none
    from attractor_nb.studio.compare.compare_runs import run_diff  # noqa: PLC0415 - the same

    key = urandom(8).hex()
    if what == "compare":
        parent = parent_of(run)
        if parent is None:
            raise RunNotFound("the parent of this fork is not stored any more", hint="diff(a, b) takes any two runs")
        return CompareView(run_diff(parent, run), key)
    if what == "replay":
        return ReplayView(run.replay(), key, views)
    return TimelineView(run.timeline(), key)
