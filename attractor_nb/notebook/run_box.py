"""A run as one box of ipywidgets: status, drawing, a slider over its steps, and questions (``run.widget()``).

It can be put wherever a widget can: into ``Tab`` and ``AppLayout``, into a page of Voila or Panel. The drawing is made
in Python and sent whole, so it is renewed a few times a second at most; words and questions follow as events come.
"""

# ipywidgets and traitlets have no types: whatever is theirs is unknown here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUntypedBaseClass=false, reportIncompatibleMethodOverride=false

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ipywidgets import HTML, IntSlider, Layout, VBox

from attractor_nb.account import signed_here
from attractor_nb.engine.gates import question_of
from attractor_nb.errors import RunNotFound
from attractor_nb.model.events import SESSION_ENDS, InterviewCompleted, InterviewStarted, InterviewTimeout, StageEnd
from attractor_nb.model.question import BY_CLICK
from attractor_nb.notebook.gate_controls import GateList, words_html
from attractor_nb.notebook.live.painting import make_painter
from attractor_nb.redaction import redacted
from attractor_nb.runtime.handles.presenters import name_of
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.markup import element
from attractor_nb.views.output_styles import gate_css
from attractor_nb.views.summary_line import run_summary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.model.events import Event
    from attractor_nb.pipeline.run import Run
    from attractor_nb.views.state import RunView

DRAWING_SECONDS: Final = 0.2
"""The shortest time between two drawings while the run works."""


class RunBox(VBox):
    """A run as a widget.

    Attributes:
        gates: Its questions.
        slider: Its steps; at its end it follows the run.
    """

    def __init__(self, run: Run) -> None:
        """Make it in the cell that shows it.

        Args:
            run: The run: live, ended, or loaded.
        """
        self._run = run
        self._changes = threading.RLock()
        self._drawn_at = 0.0
        self._is_drawn = False
        self._line, self._picture = HTML(), HTML()
        self.gates = GateList()
        layout = Layout(width="auto", max_width="640px")
        self.slider = IntSlider(min=0, max=0, description="step", disabled=True, layout=layout)
        self.slider.observe(self._slid, "value")
        super().__init__([self._line, self._picture, self.slider, self.gates.box], layout=Layout(max_width="100%"))
        with self._changes:  # what happens meanwhile is painted behind this
            if not run.is_done:
                painter = make_painter(
                    self._paint, last=SESSION_ENDS, beat=self._draw_late, beat_seconds=DRAWING_SECONDS
                )
                run.on_event(painter.put)
                for gate in run.gates:
                    self._ask(gate.as_event())
            self._write()
            self._draw()

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """The widget, and for hosts without widgets the line of the run."""
        bundle: Any = super()._repr_mimebundle_(**options)
        bundle["text/plain"] = self._words()
        return bundle

    def _paint(self, batch: list[Event]) -> None:
        with self._changes:
            for event in batch:
                self._follow_gate(event)
            is_over = any(isinstance(event, SESSION_ENDS) for event in batch)
            if is_over:
                self.gates.settle_all()
            self._write()
            self._is_drawn = False
            if is_over or time.monotonic() >= self._drawn_at + DRAWING_SECONDS:
                self._draw()

    def _draw_late(self) -> None:
        """Draw what came too soon after the last drawing."""
        with self._changes:
            if not self._is_drawn:
                self._draw()

    # -- what is shown ------------------------------------------------------------------------------------

    def _words(self) -> str:
        view = self._run.view
        summary = run_summary(view, self._run.graph, name=name_of(self._run), has_times=view.status.is_ended)
        return redacted(summary)

    def _write(self) -> None:
        """Write the line, and have a step for each stage that has ended."""
        self._line.value = words_html(element("div", {"class": "title"}, self._words()), css=gate_css())
        is_following, steps = self._is_following, self._run.view.stages
        if steps != self.slider.max:
            self.slider.max, self.slider.disabled = steps, not steps
            if is_following:
                self.slider.value = steps

    @property
    def _is_following(self) -> bool:
        return self.slider.value == self.slider.max

    def _draw(self) -> None:
        """Draw the current state, unless a person looks at an earlier step."""
        self._drawn_at, self._is_drawn = time.monotonic(), True
        if self._is_following:
            self._show(self._run.view)

    def _show(self, view: RunView, words: str = "") -> None:
        svg = render_svg(
            self._run.graph,
            states=view.nodes,
            edges=view.edges,
            children=view.children,
            is_ended=view.status.is_ended,
            is_whole=False,
        )
        note = words_html(element("div", {"class": "about"}, words)) if words else ""
        self._picture.value = svg + note

    # -- questions ----------------------------------------------------------------------------------------

    def _follow_gate(self, event: Event) -> None:
        match event:
            case InterviewStarted():
                self._ask(event)
            case InterviewCompleted() | InterviewTimeout():
                self.gates.settle(event.question_id, event)
            case _:
                pass

    def _ask(self, event: InterviewStarted) -> None:
        hand_in = partial(self._answer, event.question_id)
        self.gates.ask(event.question_id, question_of(event), hand_in, deadline=event.deadline)

    def _answer(self, gate: str, choice: str, text: str, form: Mapping[str, Any]) -> None:
        self._run.answer(gate, choice, text=text, form=form, answered_by=signed_here(BY_CLICK))

    # -- steps --------------------------------------------------------------------------------------------

    def _slid(self, _change: object) -> None:
        with self._changes:
            if self._is_following:
                self._draw()
                return
            step = self.slider.value
            try:
                replay = self._run.replay()
            except RunNotFound as missing:
                self._show(self._run.view, redacted(missing.message))
                return
            events = enumerate(replay.events, 1)
            ends = [0, *(at for at, event in events if isinstance(event, StageEnd) and event.is_commit)]
            moment = replay.at(ends[min(step, len(ends) - 1)])
            where = f"behind {moment.event.node_id}" if moment.event else "before the first stage"
            self._show(moment.view, redacted(f"step {step} of {self.slider.max}, {where}"))
