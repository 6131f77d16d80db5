"""The composition root: introduces handlers, backends, interviewers and stores to the engine.

Nobody else knows more than one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attractor_nb.backends import resolve_backend
from attractor_nb.context import Context
from attractor_nb.decisions.bounds import bounds_of
from attractor_nb.decisions.plan import Plan, compile_plan
from attractor_nb.decisions.run_state import RunState
from attractor_nb.engine.event_stream import EventStream
from attractor_nb.engine.gates import Gates
from attractor_nb.engine.runner import Runner, RunSetup, mirror_graph
from attractor_nb.engine.system_clock import SystemClock, SystemRandomness
from attractor_nb.handlers.codergen import CodergenHandler
from attractor_nb.handlers.conditional import ConditionalHandler
from attractor_nb.handlers.exit import ExitHandler
from attractor_nb.handlers.registry import HandlerRegistry
from attractor_nb.handlers.start import StartHandler
from attractor_nb.handlers.tool import ToolHandler
from attractor_nb.handlers.wait_human import WaitHumanHandler
from attractor_nb.interviewers import resolve_interviewer
from attractor_nb.pipeline.presenters import are_runs_shown
from attractor_nb.pipeline.run import Run
from attractor_nb.pipeline.run_result import RunResult
from attractor_nb.processes import LocalProcesses
from attractor_nb.protocols import BackendLifetime
from attractor_nb.storage.memory_store import MemoryRunStore
from attractor_nb.storage.run_directory import DEFAULT_RUNS_BASE, new_run_directory
from attractor_nb.storage.run_store import DirectoryRunStore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attractor_nb.model.events import Event
    from attractor_nb.pipeline.options import RunOptions
    from attractor_nb.pipeline.pipeline import Pipeline
    from attractor_nb.protocols import Clock, CodergenBackend, Interviewer, Randomness, RunStore

BUILT_IN_TYPES = frozenset({"start", "exit", "codergen", "conditional", "tool", "wait.human"})
"""Handler types that every run has."""
_RUN_STATUS = {"completed": "success", "failed": "fail"}


@dataclass(frozen=True, slots=True)
class Seams:
    """What tests replace."""

    clock: Clock
    randomness: Randomness


@dataclass(slots=True)
class Beginning:
    """Where a run begins, or goes on.

    Attributes:
        plan: The compiled graph.
        store: The run directory, owned.
        context: The context as it stands.
        state: The state as it stands.
        run_id: The run.
        inputs: The values the caller gave.
        sequence: Number of the last event in the log.
        recorded: For a resume: the events so far, for the views and for gates under way.
    """

    plan: Plan
    store: RunStore
    context: Context
    state: RunState
    run_id: str
    inputs: Mapping[str, Any]
    sequence: int = 0
    recorded: Sequence[Event] = ()


@dataclass(slots=True)
class Wired:
    """A run and the engine that will drive it."""

    run: Run
    runner: Runner

    async def work(self) -> RunResult:
        """Run to the end, and bind the result."""
        outcome = await self.runner.run()
        setup = self.runner.setup
        self.run.logs_root = setup.store.logs_root
        result = result_of(
            self.run,
            setup.state,
            setup.context,
            _RUN_STATUS.get(outcome.status, outcome.status),
            outcome.reason,
            outcome.duration,
        )
        self.run.settle(result)
        return result


def seams_of(options: RunOptions) -> Seams:
    """The clock and the randomness of a run."""
    return Seams(options.clock or SystemClock(), options.randomness or SystemRandomness())


def begin(pipeline: Pipeline, options: RunOptions, seams: Seams) -> Beginning:
    """A fresh run in a fresh directory.

    Raises:
        OptionError, ContextValueError, StorageError: An option, a parameter or the directory is unusable.
    """
    plan = compile_plan(pipeline.graph, bounds=bounds_of(pipeline.graph, options.bounds))
    inputs = {**pipeline.params, **options.params}
    Context(inputs)
    store, run_id = _new_store(pipeline, plan, options, seams)
    context = Context(store=store.values)
    mirror_graph(plan, context)
    context.apply_updates(inputs)
    return Beginning(plan, store, context, RunState(plan.start), run_id, inputs)


def _new_store(pipeline: Pipeline, plan: Plan, options: RunOptions, seams: Seams) -> tuple[RunStore, str]:
    if options.durability == "none":
        return MemoryRunStore(), seams.randomness.new_id()
    if options.logs_root is not None:
        logs_root, run_id = Path(options.logs_root), seams.randomness.new_id()
    else:
        base = Path(options.runs_dir) if options.runs_dir else DEFAULT_RUNS_BASE
        logs_root, run_id = new_run_directory(base, clock=seams.clock, randomness=seams.randomness)
    manifest = {
        "run_id": run_id,
        "pipeline_name": plan.name,
        "goal": plan.graph.goal,
        "status": "running",
        "start_node": plan.start,
        "node_count": len(plan.nodes),
        "model": plan.graph.get("llm_model", str) or None,
        "graph_hash": plan.graph.content_hash,
    }
    store = DirectoryRunStore.create(
        logs_root,
        durability=options.durability,
        source_text=pipeline.to_dot(),
        manifest=manifest,
        clock=seams.clock,
    )
    return store, run_id


def wire(
    pipeline: Pipeline, options: RunOptions, seams: Seams, start: Beginning, *, is_waited_for: bool
) -> Wired:
    """Introduce everybody to everybody.

    Args:
        pipeline: What runs.
        options: How.
        seams: Clock and randomness.
        start: Where it begins.
        is_waited_for: The caller blocks until the end, so nobody else can answer a gate.

    Raises:
        OptionError: The backend or interviewer is unknown.
    """
    stream = EventStream(start.store, seams.clock, start.run_id, sequence=start.sequence)
    gates = Gates(
        _interviewer(options, is_waited_for=is_waited_for),
        lambda event: stream.announce(event, is_synced=True),
        seams.clock,
        recorded=start.recorded,
    )
    backend = resolve_backend(options.backend)
    registry = _registry(pipeline, options, backend, gates)
    handlers = {node.id: registry.resolve(node.node) for node in start.plan.nodes.values()}
    setup = RunSetup(
        plan=start.plan,
        handlers=handlers,
        context=start.context,
        inputs=start.inputs,
        state=start.state,
        store=start.store,
        stream=stream,
        clock=seams.clock,
        randomness=seams.randomness,
        run_id=start.run_id,
        lifetimes=(backend,) if isinstance(backend, BackendLifetime) else (),
        stop_after=options.stop_after,
        is_checkpointed_each_stage=options.checkpoint_every_stage,
        is_resumed=start.sequence > 0,
    )
    run = Run(
        pipeline,
        start.run_id,
        start.store.logs_root,
        lambda node_id, name: setup.store.read_stage_file(node_id, name),
        stream=stream,
        gates=gates,
    )
    for event in start.recorded:
        run.take(event)
    stream.add_sink(run.take)
    for observer in (*pipeline.observers, *options.observers):
        stream.observe(observer)
    return Wired(run, Runner(setup))


def _interviewer(options: RunOptions, *, is_waited_for: bool) -> Interviewer:
    if options.interviewer is None and (are_runs_shown() or not is_waited_for):
        return resolve_interviewer("deferred")
    return resolve_interviewer(options.interviewer)


def _registry(
    pipeline: Pipeline, options: RunOptions, backend: CodergenBackend, gates: Interviewer
) -> HandlerRegistry:
    registry = HandlerRegistry()
    registry.register("start", StartHandler())
    registry.register("exit", ExitHandler())
    registry.register("conditional", ConditionalHandler())
    registry.register("codergen", CodergenHandler(backend))
    registry.register("tool", ToolHandler(options.processes or LocalProcesses()))
    registry.register("wait.human", WaitHumanHandler(gates))
    for handler_type, handler in pipeline.handlers.items():
        registry.register(handler_type, handler)
    return registry


def result_of(
    run: Run, state: RunState, context: Context, status: str, reason: str, duration: float
) -> RunResult:
    """The result of a run that has stopped."""
    return RunResult(
        status=status,
        reason=reason,
        run_id=run.id,
        logs_root=run.logs_root,
        completed_nodes=tuple(state.completed),
        node_outcomes=dict(state.outcomes),
        outcomes=dict(run.outcomes),
        visits=dict(state.visits),
        context=context.snapshot(),
        usage=state.usage,
        duration=duration,
        next_node=state.next_node,
        graph=run.graph,
        view=run.view,
        read=run.read_stage_file,
    )
