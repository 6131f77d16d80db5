"""One execution of a definition, live or read again from its directory.

A live one is a handle on an engine that works elsewhere; a loaded one is a view of a run directory that
has no owner. Both show the same things. ``handle.py`` has the hosts and the waiting.
Functions that take an execution read its past and continue it; ``Run`` offers them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeVar

from attractor_nb.decisions.history.journal import Journal
from attractor_nb.decisions.log_history import later_sessions
from attractor_nb.engine.event_stream import EventFeed, EventStream
from attractor_nb.errors import NoSuchGate, RunInterrupted, RunNotFound
from attractor_nb.lazy_imports import later
from attractor_nb.model.events import PipelineRewound
from attractor_nb.model.states import RunStatus, recorded_status, run_word
from attractor_nb.redaction import redacted
from attractor_nb.runtime.handles.handle import SLICE_SECONDS, Handle, HandleJob
from attractor_nb.runtime.handles.presenters import name_of
from attractor_nb.runtime.handles.run_result import FollowedRun, KeptOptions, RunResult, StageView, view_stage
from attractor_nb.runtime.prepare.run_options import check_observer
from attractor_nb.storage.attempt_files import read_stage_text
from attractor_nb.storage.stored_run import has_event_log, read_run
from attractor_nb.views.display import DisplayedPicture

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from attractor_nb.engine.debug_control import Debugging
    from attractor_nb.engine.gates import Gate, Gates
    from attractor_nb.engine.handler_calls import Failures
    from attractor_nb.engine.instruction_inbox import Instructions
    from attractor_nb.model.events import Event, EventObserver, PipelineResumed
    from attractor_nb.model.outcome import Outcome
    from attractor_nb.model.stop import Stop
    from attractor_nb.protocols import Interviewer
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.handles import cache_verdict
    from attractor_nb.runtime.handles.cache_verdict import Why
    from attractor_nb.runtime.workspace import worktree
    from attractor_nb.views import state, summary_line, text_table
    from attractor_nb.views.changes_view import Changes
    from attractor_nb.views.drawings import svg
    from attractor_nb.views.state import RunView
    from attractor_nb.views.text_table import RunDetails
else:
    worktree = later("attractor_nb.runtime.workspace.worktree")
    cache_verdict = later("attractor_nb.runtime.handles.cache_verdict")
    text_table = later("attractor_nb.views.text_table")
    state = later("attractor_nb.views.state")
    svg = later("attractor_nb.views.drawings.svg")
    summary_line = later("attractor_nb.views.summary_line")


ExecutionT = TypeVar("ExecutionT", bound="Execution")
AnswerT = TypeVar("AnswerT")


class Execution(DisplayedPicture, Handle[RunResult]):
    """One execution of a definition: its state, its events, its gates.

    Attributes:
        id: The run's id.
        pipeline: What is executed.
        graph: The graph that runs, whatever is registered with the pipeline meanwhile.
        logs_root: Its run directory.
    """

    def __init__(
        self,
        pipeline: Definition,
        run_id: str,
        logs_root: Path,
        read: Callable[[str, str, str], str | None],
        *,
        work: HandleJob[RunResult],
        followed: FollowedRun,
        stream: EventStream | None = None,
        gates: Gates | None = None,
        live_children: Callable[[], Mapping[str, Execution]] | None = None,
        debugging: Debugging | None = None,
        failures: Failures | None = None,
        instructions: Instructions | None = None,
    ) -> None:
        super().__init__(work)
        self.id = run_id
        self.pipeline = pipeline
        self.logs_root = logs_root
        self.graph = pipeline.graph
        self._kept = KeptOptions()
        self._followed = followed
        self._read = read
        self._live_children = live_children
        self._stream = stream
        self._gates = gates
        self._known_gates: set[str] = set()
        self._debugging = debugging
        self._failures = failures
        self._instructions = instructions
        self._continuation: tuple[str, Execution] | None = None

    # -- looking -------------------------------------------------------------------------------------

    @property
    def view(self) -> RunView:
        """States of nodes and edges, folded from its events."""
        return self._followed.known.view

    @property
    def outcomes(self) -> Mapping[str, Outcome]:
        """Latest outcome of each committed node."""
        return self._followed.known.outcomes

    @property
    def visits(self) -> Mapping[str, int]:
        """Committed visits of each node."""
        return self._followed.known.visits

    @property
    def status(self) -> str:
        """``running``, ``waiting`` for a person, ``completed``, ``failed``, ``interrupted``, ``paused``."""
        if (finished := self._work.result) is not None:
            return recorded_status(finished.status)
        if self.is_done:
            return "interrupted"
        return "waiting" if self.gates or self.stops else "running"

    @property
    def gates(self) -> tuple[Gate, ...]:
        """The questions that wait for an answer now, oldest first."""
        return self._gates.pending if self._gates is not None else ()

    def __getitem__(self, node_id: str) -> StageView:
        return view_stage(node_id, self.graph, self.outcomes, self.visits, self.view, self.read_stage_file)

    def __contains__(self, node_id: object) -> bool:
        return node_id in self.graph.nodes

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.graph.nodes)

    def why(self, node_id: str) -> Why:
        """The reason a stage was executed and its differences from an earlier run, or that the cache had its result.

        Args:
            node_id: The node.

        Raises:
            OptionError: The graph has no such node.
        """
        return cache_verdict.why(node_id, self.graph, self.view, self.read_stage_file)

    def read_stage_file(self, node_id: str, name: str) -> str | None:
        """The text of a file in a stage's directory; None when there is none.

        Args:
            node_id: The node.
            name: The file's name, such as ``response.md``.
        """
        followed = self._followed.known
        if node_id not in followed.kept:
            return self._read(node_id, name, followed.branches.get(node_id, ""))
        directory = followed.kept[node_id]
        return None if directory is None else read_stage_text(self.logs_root / directory, name, self.logs_root)

    @property
    def stops(self) -> tuple[Stop, ...]:
        """Current stops at breakpoints, oldest first."""
        return () if self._debugging is None else self._debugging.session.stops

    def journal(self) -> Journal:
        """Each visit with its attempts, and the context at any moment, as the log has them now.

        Raises:
            RunNotFound: Nothing of the run is stored (``durability="none"``), or it is gone.
            CheckpointCorrupt: The log is damaged.
        """
        if not has_event_log(self.logs_root):
            raise RunNotFound(
                f"nothing of run {self.id} is stored, so its history cannot be read",
                hint='run it with durability="fast" or "full"',
            )
        return Journal(own_events(self, read_run(self.logs_root).events), self.graph.mirrored())

    def changes(self) -> Changes:
        """The changes so far of a run with ``isolation="worktree"``: files and diff, by its branch.

        The changes of a single stage are in its file ``changes.diff``: ``run["fix"].files("changes.diff")``.

        Raises:
            OptionError: It works in no worktree.
            StorageError: The repository or the branch is gone.
        """
        return worktree.changes_of(self.logs_root)

    def to_svg(self) -> str:
        """The graph with its present states."""
        view = self.view
        return svg.render_svg(
            self.graph,
            states=view.nodes,
            edges=view.edges,
            children=view.children,
            is_ended=self.is_done,
            is_whole=False,
        )

    @property
    def mark(self) -> str:
        """``simulated``, ``partly simulated``, ``pinned: NODE``; empty for a run without a mark (ruling 48)."""
        return redacted(self.view.marks.marks.words)

    def details(self) -> RunDetails:
        """The volatile facts: id, directory, duration, what was consumed; and each node in its current state.

        It is a text, and a notebook shows it as tables.
        """
        facts = {"run": self.id, "directory": str(self.logs_root), "status": run_word(self.status)}
        if mark := self.mark:
            facts["mark"] = mark
        if workdir := worktree.place_facts(self.logs_root).get("workdir"):
            facts["works in"] = str(workdir)
        facts["duration"] = summary_line.duration_text(self.view.duration)
        if words := summary_line.usage_words(state.so_far(self.view)):
            facts["used"] = ", ".join(words)
        return text_table.run_details(self.view, self.graph, facts)

    # -- listening -----------------------------------------------------------------------------------

    def on_event(self, observer: EventObserver) -> Callable[[], None]:
        """Call ``observer`` with every event from now on, in its own thread.

        Args:
            observer: A function of an event.

        Returns:
            A function that stops it.
        """
        check_observer(observer)
        if self._stream is None:
            return _nothing
        return self._stream.observe(observer)

    def events(self) -> EventFeed:
        """All events: ``for event in run.events()``, or ``async for``; ends with the run.

        Those of the log come first, then the others as they happen. Where nothing is stored
        (``durability="none"``), only those from now on.
        """
        if self._stream is not None and not self.is_done:
            return self._stream.open_feed()
        feed = EventFeed(recorded=read_run(self.logs_root).events if has_event_log(self.logs_root) else ())
        feed.close()
        return feed

    # -- acting --------------------------------------------------------------------------------------

    def answer(
        self,
        gate: str,
        choice: str = "",
        *,
        text: str = "",
        form: Mapping[str, Any] | None = None,
        answered_by: str = "call",
    ) -> Gate:
        """Answer a gate; the first durable answer wins.

        Args:
            gate: The gate's id, or the id of the node that asks.
            choice: Key, label or target of the choice.
            text: Free text.
            form: What is filled in, by field, where the gate has a form.
            answered_by: Who answers, for the record.

        Raises:
            NoSuchGate: No such gate is waiting.
            AnswerRefused: The answer matches no choice, or the form is not valid; the gate still waits.
            AlreadyAnswered: Another answer came first.
        """
        if self._gates is None:
            raise NoSuchGate(f"no gate `{gate}` is waiting: this run was loaded", hint="resume it: run.resume()")
        answered = self._gates.answer(gate, choice, text=text, form=form, answered_by=answered_by)
        self._known_gates.add(answered.id)
        return answered

    def wait_for_gate(self, gate: str = "", timeout: float | None = None) -> Gate:
        """Block until a gate waits or was answered, and return it; ``answer`` of the gate is the recorded answer.

        A gate that was answered elsewhere, by a click, is returned once. After that the next question of its
        node is waited for; when the run has ended without one, the last answered gate is returned again.

        Args:
            gate: Id of the gate or node; any gate when empty.
            timeout: Seconds to wait at most.

        Raises:
            NoSuchGate: The run ended, or the time ran out, before the gate was reached.
        """
        give_up = None if timeout is None else time.monotonic() + timeout
        while True:
            is_over = self.is_done  # asked before the gates: what was answered until then is among them
            if found := self._found_gate(gate, is_over=is_over):
                self._known_gates.add(found.id)
                return found
            left = SLICE_SECONDS if give_up is None else min(SLICE_SECONDS, give_up - time.monotonic())
            if self._gates is None or is_over or left <= 0:
                what = f"gate `{gate}` was not" if gate else "no gate was"
                raise NoSuchGate(f"{what} reached; the run is {run_word(self.status)}")
            self._gates.wait(left)

    def _found_gate(self, gate: str, *, is_over: bool) -> Gate | None:
        """The gate of a name that waits, else the latest that was answered and not returned yet, or None."""
        for pending in self.gates:
            if gate in {"", pending.id, pending.stage}:
                return pending
        if not gate or self._gates is None:
            return None
        settled = [each for each in self._gates.settled if gate in {each.id, each.stage}]
        return next((each for each in reversed(settled) if is_over or each.id not in self._known_gates), None)

    # -- stopping ------------------------------------------------------------------------------------

    def _interruption(self) -> RunInterrupted:
        if (finished := self._work.result) is not None and RunStatus.of(finished.status).is_over:
            return RunInterrupted(f"the run had {self.status} when it was interrupted", hint="see run.result()")
        return super()._interruption()

    def _where_stopped(self) -> str:
        where = f" at {self.view.next_node}" if self.view.next_node else ""
        return f"the run was stopped{where}"

    def __str__(self) -> str:
        waiting = ", ".join(f"`{gate.stage}`" for gate in self.gates)
        lines = [summary_line.run_summary(self.view, self.graph, name=name_of(self)), *map(str, self.stops)]
        text = "\n".join([*lines, *self._continued_words()])
        return f"{text}\ngate {waiting} waits for an answer" if waiting else text

    def _continued_words(self) -> list[str]:
        """The line that another handle of this process continued the run; none for the latest handle."""
        if self._continuation is None:
            return []
        how, run = self._continuation
        now = name_of(run) or f'Run.load("{self.logs_root}")'
        return [redacted(f"this handle shows its own end; the run was {how} since, and {now} shows that")]


def _nothing() -> None:
    """Stop what was never begun."""


def note_continuation(run: Execution, how: str, continued: Execution) -> None:
    """Note that a handle was continued: ``how`` says by what, for its words."""
    run._continuation = how, continued  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - no name that people call


def continuations(run: Execution, events: Sequence[Event]) -> list[PipelineResumed | PipelineRewound]:
    """The records with which other handles continued the run of an ended one, oldest first."""
    last = run._followed.known.last if run.is_done else None  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - no name that people call
    return [] if last is None else later_sessions(events, last)


def own_events(run: Execution, events: Sequence[Event]) -> Sequence[Event]:
    """The events of a log for a handle: all, or those until a rewind after its end, which sets aside what it shows."""
    rewound = next((event for event in continuations(run, events) if isinstance(event, PipelineRewound)), None)
    return events if rewound is None else [event for event in events if event.sequence < rewound.sequence]


def child_places(run: Execution) -> Mapping[str, Execution | Path]:
    """The child runs of a run by stage: those that run here, and of the others the directories."""
    followed, live = run._followed, run._live_children  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - no name that people call
    recorded = {name: run.logs_root / root for name, root in followed.known.child_roots.items()}
    return {**recorded, **(live() if live else {})}


def interviewer_of_run(run: Execution) -> Interviewer | None:
    """Who is asked at the gates of a run, behind what records or replays the answers; None for one that was loaded."""
    asked: Any = run._gates  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - as above
    while (inner := getattr(asked, "inner", None)) is not None:
        asked = inner
    return asked


def failures_of(run: Execution) -> Failures | None:
    """The exceptions of a run's stages that are here; None for one that was loaded."""
    return run._failures  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - as above


def in_engine(run: Execution, ask: Callable[[Instructions], AnswerT]) -> AnswerT | None:
    """The answer of the inbox for instructions, asked in the loop of the run's engine; None without an engine here."""
    inbox, job = run._instructions, run._work.job  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - as above
    if inbox is None or job is None or inbox.is_over:
        return None
    return job.call(lambda: None if inbox.is_over else ask(inbox))


def cast_run(run: Execution, kind: type[ExecutionT]) -> ExecutionT:
    """A run as the kind that its definition makes (``Definition.run_kind``)."""
    assert isinstance(run, kind), "a definition makes runs of one kind"
    return run


def kept_options(run: Execution) -> KeptOptions:
    """The options that runs continuing from it keep unless the caller overrides them."""
    return run._kept  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - as above
