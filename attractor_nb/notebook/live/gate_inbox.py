"""The inbox in a notebook: a card for each question of all runs of this kernel, coming and going with them.

There is one for a shell, shown in as many cells as ask for it. The output of such a cell is the static
table of what waits; the cards stand in for it while there is a kernel.
"""

from __future__ import annotations

# IPython's display and ipywidgets have no types.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
import sys
from os import urandom
from typing import TYPE_CHECKING, Any

from IPython.display import DisplayHandle, display

from attractor_nb.account import signed_here
from attractor_nb.errors import NoSuchGate
from attractor_nb.model.events import InterviewCompleted, InterviewStarted, InterviewTimeout
from attractor_nb.model.question import BY_INBOX
from attractor_nb.notebook.live.gate_card import NONE_WAITS, GateCards, HandedIn
from attractor_nb.notebook.live.painting import LoopPainter, ThreadPainter
from attractor_nb.notebook.pictures import bundle_of, placed
from attractor_nb.runtime.answers_from_elsewhere import answer_elsewhere
from attractor_nb.runtime.open_gates import ENDED, listen, runs_under_way
from attractor_nb.storage.stored_run import current_directory
from attractor_nb.studio.history.waiting_gates import Inbox, WaitingGate, question_here, resume_call
from attractor_nb.views.shown_questions import plain_question

if TYPE_CHECKING:
    from attractor_nb.engine.gate import Gate
    from attractor_nb.model.events import Event
    from attractor_nb.runtime.execution import Execution

Change = tuple["Execution", "Gate | None", "Event | None"]


class LiveInbox:
    """The cards of all questions.

    Attributes:
        cards: The widget.
    """

    def __init__(self) -> None:
        """Make the widget, and begin to follow; call it in the cell that shows it first."""
        self._key = urandom(8).hex()
        self.cards = GateCards(self._answer, shows_all=True, none=NONE_WAITS, place=self._key)
        self._runs: dict[str, Execution] = {}
        self._resting: tuple[WaitingGate, ...] = ()
        self._handles: list[DisplayHandle] = []
        has_threads = sys.platform != "emscripten"
        painter: Any = ThreadPainter(self._follow, last=()) if has_threads else LoopPainter(self._follow)
        self.stop = listen(lambda run, gate, event: painter.put((run, gate, event)))

    def show(self, inbox: Inbox) -> None:
        """Show it in the current cell's output, with what an inbox has found on the disk."""
        self.place(inbox)
        handle = display(self._kept(), raw=True, display_id=True)
        assert handle is not None, "a display id was asked for"
        self._handles.append(handle)

    def place(self, inbox: Inbox) -> None:
        """Have a card for each question that waits here, and for each that an inbox has found on the disk."""
        for asked in self._resting:
            self.cards.settle(_key(str(asked.logs_root), asked.event.question_id), None)
        self._resting = tuple(asked for asked in inbox if asked.run is None)
        for run in runs_under_way():
            for gate in run.gates:
                self._ask(run, question_here(run, gate.as_event(), gate.since).event)
        waiting = {_key(run.id, gate.id) for run in runs_under_way() for gate in run.gates}
        for key in [key for key in tuple(self._runs) if key not in waiting]:  # answered while it was being put here
            self.cards.settle(key, None)
        for asked in self._resting:
            key = _key(str(asked.logs_root), asked.event.question_id)
            plain = plain_question(asked.event, key=key, about=asked.pipeline)
            if asked.owner is None:
                plain["how"] = f"No process works on this run here:  {asked.how}"
            self.cards.ask(plain)

    def _follow(self, changes: Any) -> None:
        """Take up what became of gates."""
        for run, gate, event in changes:
            match event:
                case InterviewStarted():
                    self._ask(run, event)
                case InterviewCompleted() | InterviewTimeout() | None if gate is not None:
                    names_gate = isinstance(event, InterviewTimeout)  # its own words name the gate
                    place = run.pipeline.name if names_gate else f"{run.pipeline.name} · {gate.stage}"
                    self.cards.settle(_key(run.id, gate.id), event, f"{place}: ")
                    self._runs.pop(_key(run.id, gate.id), None)
                case _:
                    pass
        self._keep()

    def _ask(self, run: Execution, event: InterviewStarted) -> None:
        key = _key(run.id, event.question_id)
        self._runs[key] = run
        about = f"{run.pipeline.name} · {event.stage} · run {run.id}"
        self.cards.ask(plain_question(event, key=key, about=about, resume=resume_call(run.logs_root)))

    def _keep(self) -> None:
        """Renew what is kept in the outputs."""
        kept = self._kept()
        for handle in self._handles:
            handle.update(kept, raw=True)

    def _kept(self) -> dict[str, str]:
        """The table of what waits here and on the disk, and a line for each past answer."""
        here = [
            WaitingGate(asked.event, asked.pipeline, asked.logs_root, None, resume_call(asked.logs_root))
            for run in runs_under_way()
            for asked in (question_here(run, gate.as_event(), gate.since) for gate in run.gates)
        ]
        past: list[dict[str, Any]] = self.cards.answers
        lines = [f"{'✓ ' if line['is_answered'] else ''}{line['words']}" for line in past]
        bundle = bundle_of(Inbox((*here, *self._resting), tuple(lines)))
        return {**bundle, "text/html": placed(self._key, bundle["text/html"])}

    def _answer(self, handed: HandedIn) -> None:
        if run := self._runs.get(handed.gate):
            question_id = handed.gate.partition(" ")[2]
            run.answer(
                question_id, handed.choice, text=handed.text, form=handed.form, answered_by=signed_here(BY_INBOX)
            )
            return
        resting = {_key(str(asked.logs_root), asked.event.question_id): asked for asked in self._resting}
        asked = resting.pop(handed.gate, None)
        if asked is None or asked.owner is None:
            raise NoSuchGate("this question is over", hint=ENDED)
        recorded = answer_elsewhere(
            current_directory(asked.logs_root),
            asked.event.question_id,
            handed.choice,
            owner=asked.owner,
            text=handed.text,
            form=handed.form,
            answered_by=signed_here(BY_INBOX),
        )
        self._resting = tuple(resting.values())
        self.cards.settle(handed.gate, recorded, f"{asked.pipeline} · {asked.gate}: ")
        self._keep()


def _key(run_id: str, question_id: str) -> str:
    return f"{run_id} {question_id}"
