"""A run that somebody else works at, as its events tell of it: states, times, questions that wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.cli.exit_codes import ExitCode
from attractor_nb.decisions.log_history import way_taken
from attractor_nb.model.events import (
    InterviewCompleted,
    InterviewStarted,
    InterviewTimeout,
    PipelineInterrupted,
    PipelineRestarted,
    PipelineResumed,
    PipelineRewound,
    PipelineStarted,
    StageEnd,
)
from attractor_nb.views.folding import take_event
from attractor_nb.views.state import NodeStatus, RunStatus, RunView

if TYPE_CHECKING:
    from attractor_nb.model.events import Event
    from attractor_nb.model.graph import Graph

_CODES: Final = {
    RunStatus.SUCCESS: ExitCode.SUCCESS,
    RunStatus.FAIL: ExitCode.FAILED,
    RunStatus.INTERRUPTED: ExitCode.INTERRUPTED,
}


class WatchedRun:
    """What is known of it.

    Attributes:
        graph: What runs.
        view: How it stands.
        gates: The questions that wait, by id.
        is_simulated: What models said in it is made up.
        trouble: Why what is known may be old, in words; empty when nothing is in the way.
    """

    def __init__(self, graph: Graph, *, is_simulated: bool = False) -> None:
        self.graph = graph
        self.is_simulated = is_simulated
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
        while len(self._parts) > 1 and not (
            self._parts[-1] and self._parts[-1][-1].sequence + 1 == event.sequence
        ):
            self._parts.pop()
        self._parts[-1].append(event)
        self._forget()
        for part in self._parts:
            for each in way_taken(part):
                self._fold(each)

    def _fold(self, event: Event) -> None:
        take_event(self.view, event)
        self._latest = event.time or self._latest
        match event:
            case InterviewStarted():
                self.gates[event.question_id] = event
            case InterviewCompleted() | InterviewTimeout():
                self.gates.pop(event.question_id, None)
            case StageEnd():
                self._seconds[event.name] = self._seconds.get(event.name, 0.0) + event.duration
                over = [key for key, gate in self.gates.items() if (gate.branch, gate.stage) == _place(event)]
                for key in over:
                    del self.gates[key]
            case PipelineStarted():
                self._begun = self._begun or event.time  # a restart goes on with the time of the run
            case PipelineResumed():
                self._before, self._begun = self.view.duration, event.time
            case _:
                pass

    def hear_of_trouble(self, words: str) -> None:
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
        return _CODES.get(self.view.status, ExitCode.SUCCESS)


def _place(event: StageEnd) -> tuple[str, str]:
    return event.branch, event.name
