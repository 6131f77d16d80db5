"""The parts of a run: its services, which stay the same, and its state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from attractor_nb.decisions.mark_fold import MarkFold
from attractor_nb.engine.handler_calls import Failures
from attractor_nb.model.result_marks import Answers, ResultMarks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from attractor_nb.context import Context
    from attractor_nb.decisions.planning.plan import Plan
    from attractor_nb.decisions.run_state import RunState
    from attractor_nb.engine.attempt_spending import Funds
    from attractor_nb.engine.debug_control import Debugging
    from attractor_nb.engine.event_stream import EventStream
    from attractor_nb.engine.instruction_inbox import Instructions
    from attractor_nb.engine.stage_cache import StageCache
    from attractor_nb.model.child import Children
    from attractor_nb.model.events import PipelineRewound
    from attractor_nb.model.outcome import Usage
    from attractor_nb.protocols import BackendLifetime, Clock, Handler, Interviewer, Randomness, RunStore
    from attractor_nb.stage import Workplace


class RunSetup(msgspec.Struct):
    """All that a run is made of; wired by the pipeline package, and the same for all its attempts."""

    plan: Plan  #: The compiled graph.
    handlers: Mapping[str, Handler]  #: The handler of each node.
    context: Context  #: Its context, inputs applied.
    inputs: Mapping[str, Any]  #: The values given by the caller, for restarts.
    state: RunState  #: Its state.
    store: RunStore  #: Its directory.
    stream: EventStream  #: Its events.
    clock: Clock  #: Time.
    randomness: Randomness  #: Jitter and ids.
    run_id: str  #: Its id.
    debugging: Debugging  #: Pauses it between its steps.
    instructions: Instructions  #: Its instructions, of a supervisor or of people.
    lifetimes: tuple[BackendLifetime, ...] = ()  #: Backends to open before and close after.
    gates: Interviewer | None = None  #: Puts the engine's own questions, as handlers put theirs.
    stop_after: int | None = None  #: How many stages to run before pausing; None for no pause.
    is_checkpointed_each_stage: bool = False  #: Write checkpoint.json after every stage (the letter of 5.3).
    is_resumed: bool = False  #: It continues from a recorded state.
    restart_of: str = ""  #: Of a restart, the directory that it continues from; else empty.
    warning: str = ""  #: Something to say at the beginning, or empty.
    #: The record of a rewind, to be written first: it is what makes the run stand there.
    rewound: PipelineRewound | None = None
    #: The later directory of the run that a rewind leaves; owned until that record is written, so that nobody goes on
    #: in it meanwhile.
    left: RunStore | None = None
    backend: str = ""  #: What answers prompts, for the record.
    answers: Answers = ""  #: Who answers in this session, likewise.
    marks: MarkFold = msgspec.field(default_factory=MarkFold)  #: What must be said of the result so far.
    saved_marks: ResultMarks = ResultMarks()  #: What the manifest says of it.
    children: Children | None = None  #: Where stages get child runs.
    workplace: Workplace | None = None  #: Where agents and the tools of models work.
    cache: StageCache | None = None  #: Where results of stages are kept; None when nothing is taken from there.
    #: For a resume: by node, what attempts had consumed that were cut off with their process; the state has it.
    cut_off: Mapping[str, Usage] = {}
    funds: Funds | None = None  #: What it may spend, with all who share its bounds; None where nothing bounds it.
    #: The same of nodes with bounds of their own, by their ids, once they are executed.
    node_funds: dict[str, Funds] = msgspec.field(default_factory=dict[str, "Funds"])
    #: Gives the stores of the runs whose child this one is, the nearest first.
    above: Callable[[], tuple[RunStore, ...]] = tuple
    failures: Failures = msgspec.field(default_factory=Failures)  #: Keeps the latest exceptions of the user's Python.
    unlisted: tuple[str, ...] = ()  #: Those of them that prompts do not carry by themselves.
    walking: set[str] = msgspec.field(default_factory=set[str])  #: Paths of the branches that are being walked.
    is_paused: bool = False  #: It is being stopped because all that goes on in it waits at gates.

    def read_stage_file(self, node_id: str, name: str, branch: str = "") -> str | None:
        """The text of a file of a stage's latest visit; the store is another one after a restart."""
        return self.store.read_stage_file(node_id, name, branch)
