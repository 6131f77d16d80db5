"""The beginning of a run: its plan, its directory, its context and its first node."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from msgspec import Struct, field

from attractor_nb import backends
from attractor_nb.backends import SimulatedBackend
from attractor_nb.context import Context
from attractor_nb.decisions.bounds import bounds_of
from attractor_nb.decisions.planning.model_choices import nodes_that_ask
from attractor_nb.decisions.planning.recorded_choices import recorded_choices
from attractor_nb.decisions.run_state import RunState
from attractor_nb.engine.runner import mirror_graph
from attractor_nb.engine.time_limits import SystemClock, SystemRandomness
from attractor_nb.errors import StorageError
from attractor_nb.model.events.logged_events import LoggedEvents
from attractor_nb.model.outcome import Answers, ResultMarks, Usage, answers_together
from attractor_nb.runtime.prepare.declared_inputs import checked_inputs
from attractor_nb.runtime.prepare.known_secrets import stored_source
from attractor_nb.runtime.prepare.trust import check_trust, note_run
from attractor_nb.runtime.workspace.workspace import Workspace, WorkspacePlan, site_of
from attractor_nb.storage.child_directories import child_home
from attractor_nb.storage.files.disk import Disk, before_a_record
from attractor_nb.storage.memory_store import MemoryRunStore
from attractor_nb.storage.own_places import refuse_linked
from attractor_nb.storage.run_directory import DEFAULT_RUNS_BASE, new_run_directory
from attractor_nb.storage.run_store import DirectoryRunStore

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

    from attractor_nb.backends.llm.provider_backend import ProviderBackend
    from attractor_nb.decisions.planning.plan import Plan
    from attractor_nb.model.events import Event, PipelineRewound
    from attractor_nb.model.graph import Graph
    from attractor_nb.protocols import Clock, Randomness, RunStore
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.prepare.run_options import BackendSpec, RunOptions


SIMULATED: Final = "simulated"
COMMAND_TYPE: Final = "tool"


class Injected(Struct, frozen=True):
    """Clock, randomness and disk, which tests replace."""

    clock: Clock
    randomness: Randomness
    disk: Disk


class RunStart(Struct):
    """The starting point of a new or resumed run."""

    plan: Plan  #: The compiled graph.
    store: RunStore  #: The run directory, owned.
    context: Context  #: The context in its current state.
    state: RunState  #: The state in its current state.
    run_id: str  #: The run.
    inputs: Mapping[str, Any]  #: The values the caller gave.
    workspace: Workspace  #: Working directory.
    unlisted: tuple[str, ...] = ()  #: Names of inputs that prompts do not carry by themselves.
    sequence: int = 0  #: Number of the last event in the log.
    restart_of: str = ""  #: For a resume: the directory that this one is a restart of, or empty.
    #: For a resume: the events so far that count, for the views.
    events: LoggedEvents = field(default_factory=LoggedEvents)
    #: For a resume: where files of stages are that a rewound visit displaced.
    kept: Mapping[str, str | None] = field(default_factory=dict[str, "str | None"])
    interviews: Sequence[Event] = ()  #: For a resume: those of the gate that was cut off.
    #: For a resume: by node, what attempts had consumed that were cut off with their process, as in the state.
    cut_off: Mapping[str, Usage] = field(default_factory=dict[str, "Usage"])
    warning: str = ""  #: Warning for the user, or empty.
    rewound: PipelineRewound | None = None  #: For a rewind: the record of it, to be written before anything else.
    #: For a rewind to before a restart: the directory that the run was in, owned until then.
    left: RunStore | None = None

    def close(self) -> None:
        """Give up all that is owned, when the engine will not: it was never started."""
        try:
            self.store.close()
        finally:
            if self.left is not None:
                self.left.close()


def seams_of(options: RunOptions) -> Injected:
    """The clock, the randomness and the disk of a run."""
    return Injected(options.clock or SystemClock(), options.randomness or SystemRandomness(), options.disk or Disk())


def begin(
    pipeline: Definition,
    options: RunOptions,
    seams: Injected,
    *,
    inputs: Mapping[str, Any] | None = None,
    unlisted: Container[str] = (),
) -> RunStart:
    """A fresh run in a fresh directory.

    Args:
        pipeline: What runs.
        options: How.
        seams: Clock, randomness and disk.
        inputs: Of a part of something larger, such as a row of a map: all values that it begins with. They
            and its commands were checked, and these noted for the directory around it, by the caller that began it.
        unlisted: Those of them that prompts do not carry by themselves.
    """
    plan = pipeline.compile(bounds_of(pipeline.graph, options.bounds))
    is_part = inputs is not None
    if not is_part:
        check_trust(pipeline, options)
    if inputs is None:
        inputs = checked_inputs(pipeline, {**pipeline.params, **options.params})
    site = site_of(options, plan.graph, pipeline.origin)
    try:
        store, run_id = _new_store(pipeline, plan, options, seams, site, is_part=is_part)
    except StorageError as error:
        raise before_a_record(error) from error
    context = Context(store=store.values)
    try:
        logs_root = None if isinstance(store, MemoryRunStore) else store.logs_root
        workspace = site.made(logs_root, run_id, seams.disk, is_synced=options.durability == "full")
        mirror_graph(plan, context)
        context.apply_updates(inputs)
        if unlisted:
            context.take_changes()  # else the first stage would have set them, and prompts tell what a stage has set
    except BaseException:  # an interrupt, too, must give the run up, or a resume finds it locked
        store.close()
        raise
    warning = "" if site.repository is None else site.repository.warning
    state = RunState(plan.start, inputs=tuple(name for name in inputs if name not in unlisted))
    silent = tuple(name for name in inputs if name in unlisted)
    return RunStart(plan, store, context, state, run_id, inputs, workspace, silent, warning=warning)


def describe_backend(backend: BackendSpec) -> str:
    """The backend as the manifest records it: its name, or a description of the caller's own object.

    All models of providers have the name ``llm``; ``backend_facts`` has their options.
    """
    return "llm" if _is_of_providers(backend) else name_of_backend(backend)


def name_of_backend(backend: BackendSpec) -> str:
    """The name that makes a backend without options, or a description of the caller's own object."""
    if backend is None or type(backend) is SimulatedBackend:
        return SIMULATED
    if isinstance(backend, str):
        return backend
    return f"{getattr(backend, '__qualname__', type(backend).__qualname__)} (own)"


def _is_of_providers(backend: BackendSpec) -> TypeGuard[ProviderBackend]:
    """True if it is exactly ours: the contents of a user's class are not known."""
    return backends.is_provider(backend) and type(backend) is backends.ProviderBackend


def backend_facts(backend: BackendSpec, graph: Graph) -> dict[str, Any]:
    """The manifest entry for models of providers, under its own key; empty for other backends."""
    if backend == "llm":
        backend = backends.ProviderBackend()
    if not _is_of_providers(backend):
        return {}
    return {"backend_facts": backend.recorded(graph)}


def answers_of(graph: Graph, options: RunOptions) -> Answers:
    """The kind of answers that prompts and commands get: real, simulated or none. Child runs record their own.

    A replay has the answers of the backend that was recorded (``with_cassette``); those of an unknown backend count
    as real. Commands have no answers, but a command that is not run has a simulated result.
    """
    backend = options.backend
    is_simulator = backend == SIMULATED or isinstance(backend, SimulatedBackend)
    if options.cassette_mode == "replay" and not is_simulator:
        return "real"
    is_made_up = backend is None or is_simulator
    is_asked = any(True for _ in nodes_that_ask(graph))
    asked: Answers = "" if not is_asked else "simulated" if is_made_up else "real"
    has_commands = COMMAND_TYPE in graph.handler_types.values()
    is_rehearsal = has_commands and getattr(options.processes, "starts_nothing", False)
    return answers_together(asked, "simulated") if is_rehearsal else asked


def first_marks(graph: Graph, options: RunOptions) -> dict[str, Any]:
    """The initial answer marks of a run or a map for its manifest (ruling 48); empty if no gate can be asked."""
    answers = answers_of(graph, options)
    return ResultMarks(answers, [describe_backend(options.backend)]).to_facts() if answers else {}


def _new_store(
    pipeline: Definition, plan: Plan, options: RunOptions, seams: Injected, site: WorkspacePlan, *, is_part: bool
) -> tuple[RunStore, str]:
    if options.durability == "none":
        return MemoryRunStore(clock=seams.clock), seams.randomness.new_id()
    if options.logs_root is not None:
        logs_root, run_id = Path(options.logs_root), seams.randomness.new_id()
    else:
        logs_root, run_id = new_run_directory(
            refuse_linked(Path(options.runs_dir or DEFAULT_RUNS_BASE)),
            clock=seams.clock,
            randomness=seams.randomness,
            disk=seams.disk,
            is_synced=options.durability == "full",
        )
    source_text, is_redacted = stored_source(pipeline.to_dot(), pipeline.whole)
    manifest = {
        "run_id": run_id,
        "pipeline_name": plan.name,
        "goal": plan.graph.goal,
        "status": "running",
        "start_node": plan.start,
        "node_count": len(plan.nodes),
        "model": plan.graph.get("llm_model", str) or None,
        "graph_hash": plan.graph.content_hash,
        "backend": describe_backend(options.backend),
        **backend_facts(options.backend, plan.graph),
        **first_marks(plan.graph, options),
        **site.facts(logs_root, run_id),
        **({"bounds": bounds} if (bounds := options.recorded_bounds) else {}),
        **({"source_path": str(pipeline.origin)} if isinstance(pipeline.origin, Path) else {}),
        **({"is_source_redacted": True} if is_redacted else {}),
    }
    if not is_part:
        chosen = recorded_choices(manifest, manifest, is_backend_given=False)
        note_run(plan.graph, logs_root, options, chosen, run_id)  # first: a run that is killed here can continue
    store = DirectoryRunStore.create(
        logs_root,
        durability=options.durability,
        source_text=source_text,
        manifest=manifest,
        clock=seams.clock,
        disk=seams.disk,
        child_sources=dict(_child_sources(pipeline, Path())),
    )
    return store, run_id


def _child_sources(pipeline: Definition, place: Path) -> Iterator[tuple[str, str]]:
    """The sources of child pipelines, however deep, by place: a run directory alone is enough to resume."""
    for node_id, child in pipeline.family.children.items():
        home = child_home(place, node_id)
        yield str(home), stored_source(child.to_dot(), child.whole)[0]
        yield from _child_sources(child, home)
