"""The composition root: introduces handlers, backends, interviewers and stores to the engine.

No other module knows more than one of them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from attractor_nb.backends import is_provider
from attractor_nb.backends.llm.tools import McpServers, check_tools
from attractor_nb.decisions.log_folds import TELLING, marks_of
from attractor_nb.decisions.planning.model_choices import nodes_that_ask
from attractor_nb.engine.attempt_spending import run_funds
from attractor_nb.engine.debug_control import Debugging
from attractor_nb.engine.event_stream import EventStream
from attractor_nb.engine.gates import Gates
from attractor_nb.engine.instruction_inbox import Instructions
from attractor_nb.engine.runner import Runner
from attractor_nb.engine.walking import RunSetup
from attractor_nb.errors import OptionError, TerminalError
from attractor_nb.handlers.codergen import CodergenHandler, check_takes_attachments
from attractor_nb.handlers.fan_out import FanInHandler, ParallelHandler
from attractor_nb.handlers.function_stage import FunctionStageHandler
from attractor_nb.handlers.handler_registry import ConditionalHandler, ExitHandler, HandlerRegistry, StartHandler
from attractor_nb.handlers.manager_loop import ManagerLoopHandler, SubPipelineHandler
from attractor_nb.handlers.tool import ToolHandler
from attractor_nb.handlers.wait_human import WaitHumanHandler
from attractor_nb.lazy_imports import later
from attractor_nb.model.allowed_tools import declared_servers, read_allowed_tools
from attractor_nb.model.events import InstructionGiven, PipelineStarted
from attractor_nb.model.outcome import ResultMarks
from attractor_nb.model.vocabulary.shapes import CHILD_RUN_TYPES, FUNCTION_TYPE
from attractor_nb.model.vocabulary.value_forms import FOR_EACH_TYPE
from attractor_nb.processes import LocalProcesses
from attractor_nb.protocols import BackendLifetime, ChecksGraphs, CodergenBackend, Handler, Interviewer, Processes
from attractor_nb.runtime.begin import Injected, RunStart, answers_of, describe_backend
from attractor_nb.runtime.chosen_plugs import (
    Recording,
    SharedByParent,
    StageServices,
    answering_backend,
    cache_of,
    check_shipping,
    feed_of,
    inner_interviewer,
    interviewer_of,
    named_interviewer,
    on_tape,
    recording_interviewer_for,
    shipped_plugs,
    shipping_of,
    trace,
)
from attractor_nb.runtime.execution import kept_options
from attractor_nb.runtime.handles.handle import HandleJob
from attractor_nb.runtime.handles.run_result import FollowedRun, RunResult
from attractor_nb.runtime.pins import read_breakpoints, read_pins
from attractor_nb.runtime.prepare.budget import check_budget
from attractor_nb.runtime.wired_run import RunningEngine, tell
from attractor_nb.runtime.workspace.workspace import InWorkspace, RunWorkplace, Workspace, check_places

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from attractor_nb.cassettes import Tape
    from attractor_nb.decisions.planning.plan import Plan, PlannedNode
    from attractor_nb.handlers import for_each
    from attractor_nb.model.graph import Graph, Node
    from attractor_nb.runtime import child_runs
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.prepare.run_options import RunOptions
    from attractor_nb.workers.shipping import Shipping
else:
    for_each = later("attractor_nb.handlers.for_each")
    child_runs = later("attractor_nb.runtime.child_runs")


class _Works(Struct, frozen=True):
    """The services that answer prompts and execute nodes."""

    handlers: dict[str, Handler]  #: The handler of each node.
    answering: CodergenBackend  #: Backend of prompts.
    processes: Processes  #: Starter of commands, here or elsewhere.
    place: Workspace  #: Working directory of the run.
    workplace: RunWorkplace  #: The same, as its stages have it.
    lifetimes: tuple[BackendLifetime, ...]  #: Parts that are opened and closed with the run.
    shipping: Shipping | None  #: The way to workers; None when all is done here.


def wire(
    pipeline: Definition,
    options: RunOptions,
    seams: Injected,
    start: RunStart,
    *,
    is_waited_for: bool,
    inherited: SharedByParent | None = None,
) -> RunningEngine:
    """Introduce everybody to everybody.

    Args:
        pipeline: What runs.
        options: How.
        seams: Clock, randomness and disk.
        start: Where it begins.
        is_waited_for: The caller blocks until the end, and cannot answer a gate.
        inherited: What the caller has for several runs.
    """
    inherited = inherited or SharedByParent()
    stream = EventStream(start.store, seams.clock, start.run_id)
    gates = Gates(
        inner_interviewer(interviewer_of(options.interviewer, is_waited_for=is_waited_for), inherited.tape),
        partial(stream.announce, is_synced=True),
        seams.clock,
        recorded=start.interviews,
    )
    works = _works(pipeline, options, seams, start, gates, inherited)
    setup = _setup(options, seams, start, stream, gates, works, inherited)
    if not CHILD_RUN_TYPES.isdisjoint(start.plan.graph.handler_types.values()):
        parent = child_runs.ParentRun(
            pipeline,
            options,
            seams,
            gates,
            works.answering,
            works.processes,
            works.place,
            works.shipping,
            inherited.tape,
            setup,
            wire,
        )
        setup.children = children = _children(parent, stream, start)
        setup.lifetimes = (*setup.lifetimes, children)
    feed = feed_of(options.session, start.plan.graph, str(pipeline.origin or ""), start.events, stream)
    setup.lifetimes = (*feed, *setup.lifetimes)
    wired = _wired(pipeline, options, start, setup, gates, inherited)
    for observer in (*pipeline.observers, *options.observers):
        stream.observe(observer)
    trace(options.tracer, pipeline.name, start, stream, seams.clock, setup.read_stage_file)
    return wired


def _works(
    pipeline: Definition, options: RunOptions, seams: Injected, start: RunStart, gates: Gates, inherited: SharedByParent
) -> _Works:
    """The services that answer prompts and execute nodes: here or on workers, recorded or replayed."""
    processes = options.processes or LocalProcesses(disk=seams.disk)
    place = inherited.workspace or start.workspace
    servers = McpServers(declared_servers(start.plan.graph), lambda: place.directory)
    answering = inherited.backend or answering_backend(options, inherited.tape)
    here = StageServices(answering, InWorkspace(processes, place))
    transport = inherited.shipping or shipping_of(options, start.plan)
    plugs = shipped_plugs(here, options, transport) if transport else here
    is_shared = inherited.backend is not None or inherited.shipping is not None
    own = () if place is inherited.workspace else (place,)
    lifetimes = (*own, servers, *(() if is_shared else plugs.lifetimes))
    plugs = on_tape(plugs, answering, inherited.tape)
    interviewer = recording_interviewer_for(gates, inherited.tape)
    given = {name: value for name, value in start.inputs.items() if name not in start.unlisted}
    registry = _registry(pipeline, plugs.processes, plugs.backend, interviewer, given)
    if FOR_EACH_TYPE in start.plan.handler_types.values():
        registry.register(FOR_EACH_TYPE, for_each.ForEachHandler())
    handlers = dict(plugs.shipped(_handlers(registry, start.plan)))
    at_work = on_tape(here, answering, inherited.tape).processes
    workplace = RunWorkplace(start.plan.graph, place, at_work, pipeline.tools, servers)
    return _Works(handlers, answering, processes, place, workplace, lifetimes, transport)


def _setup(
    options: RunOptions,
    seams: Injected,
    start: RunStart,
    stream: EventStream,
    gates: Gates,
    works: _Works,
    inherited: SharedByParent,
) -> RunSetup:
    """The parts of the run, except for its children."""
    above = inherited.above
    marks = marks_of(start.events)
    stream.add_sink(marks.take, *TELLING)
    debugging = Debugging(
        start.plan,
        stream,
        works.handlers,
        recorded=(*start.events, start.rewound) if start.rewound else start.events,
        breakpoints=read_breakpoints(options.breakpoints, start.plan.graph),
        pins=read_pins(options.pins, start.plan.graph),
        above=None if above is None else (above.debugging, above.node_id),
    )
    return RunSetup(
        plan=start.plan,
        handlers=works.handlers,
        context=start.context,
        inputs=start.inputs,
        unlisted=start.unlisted,
        state=start.state,
        store=start.store,
        stream=stream,
        clock=seams.clock,
        randomness=seams.randomness,
        run_id=start.run_id,
        lifetimes=works.lifetimes,
        gates=gates,
        stop_after=options.stop_after,
        is_checkpointed_each_stage=options.checkpoint_every_stage,
        is_resumed=start.sequence > 0,
        restart_of=start.restart_of,
        warning=start.warning,
        cut_off=start.cut_off,
        rewound=start.rewound,
        left=start.left,
        backend=describe_backend(options.backend),
        answers=answers_of(start.plan.graph, options),
        marks=marks,
        saved_marks=ResultMarks.of_facts(start.store.manifest),
        instructions=_instructions(stream, start),
        cache=cache_of(options, start.plan, works.place) if inherited.tape is None else None,
        debugging=debugging,
        funds=run_funds(start.plan.bounds, start.state.usage, inherited.funds),
        above=tuple if above is None else above.stores,
        workplace=works.workplace,
    )


def _wired(
    pipeline: Definition, options: RunOptions, start: RunStart, setup: RunSetup, gates: Gates, inherited: SharedByParent
) -> RunningEngine:
    """The handle of the run, and who drives it."""
    behind: HandleJob[RunResult] = HandleJob(f"run {start.run_id}")
    followed = FollowedRun()
    followed.recall(start.events, start.kept, start.state.visits)
    setup.stream.add_sink(followed.take)
    children = setup.children
    if children is not None and not isinstance(children, child_runs.ChildRuns):
        children = None
    run = pipeline.run_kind(
        pipeline,
        start.run_id,
        start.store.logs_root,
        setup.read_stage_file,
        work=behind,
        followed=followed,
        stream=setup.stream,
        gates=gates,
        live_children=children.live if children else None,
        debugging=setup.debugging,
        failures=setup.failures,
        instructions=setup.instructions,
    )
    kept_options(run).backend = None if isinstance(options.backend, str) else options.backend
    is_child = inherited.above is not None
    if not is_child:
        gates.on_change = partial(tell, run)
    recording = None if inherited.tape is None or inherited.tape.child_of else Recording(inherited.tape)
    wired = RunningEngine(run, behind, followed, Runner(setup), gates, recording, is_child)
    if children:
        wired.children_at_gates = children.at_gates
    return wired


def _children(shared: child_runs.ParentRun, stream: EventStream, start: RunStart) -> child_runs.ChildRuns:
    """The child runs of stages, with those that the log records already."""
    children = child_runs.ChildRuns(shared)
    children.recall(start.events)
    stream.add_sink(children.take)
    return children


def _instructions(stream: EventStream, start: RunStart) -> Instructions:
    """The instructions to the run, with those that its log records already."""
    instructions = Instructions(stream, start.plan.graph)
    begun = start.events.select(PipelineStarted)
    if start.events.select(InstructionGiven) or any(one.carried and one.carried.instructions for one in begun):
        instructions.recall(start.events)
    return instructions


def check_plugs(
    options: RunOptions,
    handlers: Mapping[str, Handler | Callable[..., Any]],
    graph: Graph,
    tape: Tape | None = None,
    functions: Collection[str] = (),
) -> None:
    """Check that backend, interviewer and executor can be had, before anything is made for a run.

    A replay needs none of them.
    """
    answering = answering_backend(options, tape)
    if "codergen" not in handlers:
        _check_asking(graph, lambda node, _: check_takes_attachments(answering, node))
    if isinstance(answering, ChecksGraphs) and "codergen" not in handlers:
        answering.check_graph(graph)
        check_budget(graph, options.bounds, answering)
        if is_provider(answering):
            tools = partial(_check_tools, functions, is_elsewhere=options.executor is not None)
            _check_asking(graph, tools)
    named_interviewer(options.interviewer)
    check_shipping(options, handlers)
    check_places(options, graph)


def _check_asking(graph: Graph, check: Callable[[Node, Graph], None]) -> None:
    """Check each node that asks a model, those of children included."""
    for node in nodes_that_ask(graph):
        try:
            check(node, graph)
        except TerminalError as error:
            raise OptionError(error.message, hint=error.hint) from None
    for child in graph.children.values():
        _check_asking(child, check)


def _check_tools(functions: Collection[str], node: Node, graph: Graph, *, is_elsewhere: bool) -> None:
    """Refuse tools that there are not, or not where the stages are done."""
    check_tools(node, functions, declared_servers(graph))
    allowed = read_allowed_tools(node.get("allowed_tools", str, ""))
    if is_elsewhere and (allowed.own or allowed.served):
        raise OptionError(
            f"{node.id} allows its model functions of yours or MCP servers, which stay on this machine",
            hint="run it without executor=",
        )


def _handlers(registry: HandlerRegistry, plan: Plan) -> dict[str, Handler]:
    """The handler of each node; nodes of a type and shape have the same one, so few are looked up."""
    found: dict[tuple[Any, ...], Handler] = {}
    handlers: dict[str, Handler] = {}
    for node_id, handler_type in plan.handler_types.items():
        attrs = plan.graph.nodes[node_id].attrs
        key = (handler_type, attrs.get("type"), attrs.get("shape"))
        if key not in found:
            found[key] = _handler_of(registry, plan.nodes[node_id])
        handlers[node_id] = found[key]
    return handlers


def _handler_of(registry: HandlerRegistry, planned: PlannedNode) -> Handler:
    """A node's handler; a start or exit that only its id makes one has theirs (ruling 7), as one with `for_each`."""
    is_end = planned.handler_type in {"start", "exit"} and not planned.node.type
    is_said = is_end or planned.handler_type == FOR_EACH_TYPE
    return registry.resolve(planned.node.with_attrs({"type": planned.handler_type}) if is_said else planned.node)


def _registry(
    pipeline: Definition, processes: Processes, backend: CodergenBackend, gates: Interviewer, inputs: Mapping[str, Any]
) -> HandlerRegistry:
    registry = HandlerRegistry()
    registry.register("start", StartHandler())
    registry.register("exit", ExitHandler())
    registry.register("conditional", ConditionalHandler())
    registry.register("codergen", CodergenHandler(backend, pipeline.schemas))
    registry.register("tool", ToolHandler(processes))
    registry.register("parallel", ParallelHandler())
    registry.register("parallel.fan_in", FanInHandler(backend))
    registry.register("wait.human", WaitHumanHandler(gates, pipeline.schemas))
    registry.register("stack.manager_loop", ManagerLoopHandler(backend, pipeline.guards))
    registry.register("pipeline", SubPipelineHandler())
    registry.register(FUNCTION_TYPE, FunctionStageHandler(pipeline.functions, inputs))
    registry.register_all(pipeline.handlers)
    return registry
