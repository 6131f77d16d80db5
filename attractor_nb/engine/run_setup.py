"""What a run is made of: the services that stay the same, and where it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from attractor_nb.decisions.mark_fold import MarkFold
from attractor_nb.engine.tracebacks import Failures
from attractor_nb.model.result_marks import ResultMarks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from attractor_nb.context import Context
    from attractor_nb.decisions.planning.plan import Plan
    from attractor_nb.decisions.run_state import RunState
    from attractor_nb.engine.debug_control import Debugging
    from attractor_nb.engine.event_stream import EventStream
    from attractor_nb.engine.funds import Funds
    from attractor_nb.engine.instruction_inbox import Instructions
    from attractor_nb.engine.stage_cache import StageCache
    from attractor_nb.model.child import Children
    from attractor_nb.model.events import PipelineRewound
    from attractor_nb.model.outcome import Usage
    from attractor_nb.model.result_marks import Answers
    from attractor_nb.protocols import BackendLifetime, Clock, Handler, Interviewer, Randomness, RunStore
    from attractor_nb.stage import Workplace


class RunSetup(msgspec.Struct):
    """All that a run is made of; wired by the pipeline package, and the same for all its attempts.

    Attributes:
        plan: The compiled graph.
        handlers: The handler of each node.
        context: Its context, inputs applied.
        inputs: The values given by the caller, for restarts.
        unlisted: Those of them that prompts do not carry by themselves.
        state: Where it stands.
        store: Its directory.
        stream: Its events.
        clock: Time.
        randomness: Jitter and ids.
        run_id: Its id.
        debugging: Has it stand still between its steps.
        lifetimes: Backends to open before and close after.
        gates: Puts the engine's own questions, as handlers put theirs.
        stop_after: How many stages to run before pausing; None for no pause.
        is_checkpointed_each_stage: Write checkpoint.json after every stage (the letter of 5.3).
        is_resumed: It goes on from a recorded state.
        restart_of: Of a restart, the directory that it goes on from; else empty.
        warning: Something to say at the beginning, or empty.
        rewound: The record of a rewind, to be written first: it is what makes the run stand there.
        left: The later directory of the run that a rewind leaves; owned until that record is written, so that
            nobody goes on in it meanwhile.
        backend: What answers prompts, for the record.
        answers: Who answers in this session, likewise.
        marks: What must be said of the result so far.
        saved_marks: What the manifest says of it.
        children: Where stages get child runs.
        instructions: What the run is told by a supervisor, or by people.
        workplace: Where agents and the tools of models work.
        cache: Where results of stages are kept; None when nothing is taken from there.
        cut_off: For a resume: by node, what attempts had consumed that were cut off with their process; the
            state has it.
        funds: What it may spend, with all who share its bounds; None where nothing bounds it.
        node_funds: The same of nodes with bounds of their own, by their ids, once they are executed.
        above: Gives the stores of the runs whose child this one is, the nearest first.
        failures: Keeps the latest exceptions of the user's Python.
        walking: Paths of the branches that are being walked.
        is_paused: It is being stopped because all that goes on in it waits at gates.
    """

    plan: Plan
    handlers: Mapping[str, Handler]
    context: Context
    inputs: Mapping[str, Any]
    state: RunState
    store: RunStore
    stream: EventStream
    clock: Clock
    randomness: Randomness
    run_id: str
    debugging: Debugging
    instructions: Instructions
    lifetimes: tuple[BackendLifetime, ...] = ()
    gates: Interviewer | None = None
    stop_after: int | None = None
    is_checkpointed_each_stage: bool = False
    is_resumed: bool = False
    restart_of: str = ""
    warning: str = ""
    rewound: PipelineRewound | None = None
    left: RunStore | None = None
    backend: str = ""
    answers: Answers = ""
    marks: MarkFold = msgspec.field(default_factory=MarkFold)
    saved_marks: ResultMarks = ResultMarks()
    children: Children | None = None
    workplace: Workplace | None = None
    cache: StageCache | None = None
    cut_off: Mapping[str, Usage] = {}
    funds: Funds | None = None
    node_funds: dict[str, Funds] = msgspec.field(default_factory=dict[str, "Funds"])
    above: Callable[[], tuple[RunStore, ...]] = tuple
    failures: Failures = msgspec.field(default_factory=Failures)
    unlisted: tuple[str, ...] = ()
    walking: set[str] = msgspec.field(default_factory=set[str])
    is_paused: bool = False

    def read_stage_file(self, node_id: str, name: str, branch: str = "") -> str | None:
        """The text of a file of a stage's latest visit; the store is another one after a restart."""
        return self.store.read_stage_file(node_id, name, branch)
