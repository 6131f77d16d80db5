"""Forks: a separate run that begins with the way of another until just before a visit.

A fork is a run directory that is written whole, has its name when it is complete, and is then resumed like
any other. Its log begins with the parent's records, numbered anew and under the fork's own id, so that what
reads a log reads a fork; after them is the one record that says where it comes from and what is
otherwise (``PipelineForked``). The parent is read, never changed or locked.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from attractor_nb.decisions.bounds import bounds_of
from attractor_nb.decisions.log_folds import overrides_of
from attractor_nb.errors import OptionError, RunNotFound, StorageError
from attractor_nb.handlers.codergen import task_of
from attractor_nb.interrupts import held_interrupts
from attractor_nb.model.events import DebuggerChanged, Event, PipelineForked, PipelineRewound, PipelineStarted, StageEnd
from attractor_nb.model.vocabulary.isolation import WORKSPACE
from attractor_nb.runtime.begin import Injected, seams_of
from attractor_nb.runtime.execution import Execution, kept_options
from attractor_nb.runtime.handles.handle import check_host
from attractor_nb.runtime.handles.recorded_state import recorded_commit, restored_state
from attractor_nb.runtime.launch import refuse_own_loop, resume_run
from attractor_nb.runtime.pins import read_pins
from attractor_nb.runtime.prepare.declared_inputs import later_inputs
from attractor_nb.runtime.prepare.known_secrets import learn_for_run, stored_source
from attractor_nb.runtime.prepare.run_options import RunOptions, as_list, as_path, read_options
from attractor_nb.runtime.prepare.trust import note_run
from attractor_nb.runtime.resume import GRAPH_CHANGES, check_fork
from attractor_nb.runtime.rewind import Rewind, RewindPlace, check_rewind, find_place, read_rewind
from attractor_nb.runtime.stored_state import choices_for, read_latest, with_recorded_plugs
from attractor_nb.runtime.wire import check_plugs
from attractor_nb.runtime.workspace.worktree import BRANCH_BEGINNING, worktree_facts
from attractor_nb.storage.child_directories import CHILDREN_NAME, child_home
from attractor_nb.storage.log.event_lines import encode_event
from attractor_nb.storage.log.event_log import EVENT_LOG_NAME
from attractor_nb.storage.manifest_file import MANIFEST_NAME, fork_facts
from attractor_nb.storage.map_directory import is_map, put_run
from attractor_nb.storage.own_places import refuse_linked
from attractor_nb.storage.run_directory import (
    DEFAULT_RUNS_BASE,
    SOURCE_NAME,
    WORKSPACE_NAME,
    WORKTREE_NAME,
    RunDirectory,
    first_directory,
    make_directory,
    make_runs_base,
    run_directory_name,
    utc_text,
)
from attractor_nb.storage.sealed_file import seal
from attractor_nb.storage.stored_run import StoredRun, copied_files, has_event_log, read_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from attractor_nb.decisions.planning.plan import Plan
    from attractor_nb.interrupts import HeldInterrupt
    from attractor_nb.runtime.definition import Definition

_NOT_OF_A_FORK = (
    "restart_of",
    "restarted_as",
    "continued_from",
    "log_sequence",
    "reason",
    "duration",
    "stages",
    "usage",
    "is_source_redacted",
)


def fork_run(
    run: Execution,
    node: str,
    visit: int | None = None,
    *,
    context: Mapping[str, Any] | None = None,
    prompt: str | None = None,
    pipeline: Definition | None = None,
    on_graph_change: str | None = None,
    is_waited_for: bool = False,
    interrupt: HeldInterrupt | None = None,
    **options: Any,
) -> Execution:
    """Begin a run that goes another way from just before a visit, and start it; see ``Run.fork``."""
    chosen = pipeline or run.pipeline
    change = on_graph_change or ("error" if pipeline is None else "accept")
    if change not in GRAPH_CHANGES:
        raise OptionError(f"on_graph_change must be one of {', '.join(GRAPH_CHANGES)}, not {change!r}")
    rewind = read_rewind(node, visit, context, prompt)
    if rewind is None:
        raise OptionError("a fork begins before a visit of a node", hint='run.fork("plan")')
    has_own_backend = chosen is not run.pipeline and chosen.run_defaults.get("backend") is not None
    options.update(kept_options(run).added_to(options, has_own_backend=has_own_backend))
    with held_interrupts():
        chosen.refuse_errors()
        read = read_options(chosen.run_defaults, **options)
        if is_waited_for:
            refuse_own_loop(read.host)
        learn_for_run(as_list("secrets", read.secrets))
        logs_root = make_fork(chosen, run.logs_root, rewind, change, read)
    for name in ("logs_root", "runs_dir"):
        options.pop(name, None)
    return resume_run(
        chosen, logs_root, on_graph_change=change, is_waited_for=is_waited_for, interrupt=interrupt, **options
    )


def _keys_of(events: Iterable[Event]) -> Iterator[str]:
    """The context keys that a way has set."""
    for event in events:
        if isinstance(event, PipelineStarted):
            yield from event.inputs
        elif isinstance(event, StageEnd | DebuggerChanged | PipelineForked | PipelineRewound):
            yield from event.context


def make_fork(
    pipeline: Definition,
    parent: Path,
    rewind: Rewind,
    change: str,
    options: RunOptions,
    *,
    is_single_stage: bool = False,
) -> Path:
    """Write the directory of a fork, whole or not at all; where it is.

    Args:
        pipeline: What continues; without lint errors.
        parent: The directory of the run that is forked.
        rewind: The visit before which the fork begins, and what is otherwise there.
        change: As ``on_graph_change`` of ``Pipeline.resume``.
        options: Those of the fork.
        is_single_stage: The fork ends after that visit. What was set by hand for the node in the parent, a prompt or
            a pin, does not hold in it: the node is executed as the pipeline says.
    """
    read_pins(options.pins, pipeline.graph)
    if options.params:
        raise OptionError("a fork has the inputs of its parent", hint="change values: run.fork(node, context={…})")
    if options.durability == "none" or not has_event_log(parent):
        raise RunNotFound(
            'a fork needs durability="fast" or "full", for the run and for itself',
            hint='use durability="fast" or "full"',
        )
    recorded = choices_for(pipeline.graph, parent, options)
    options = with_recorded_plugs(options, parent)
    plan = pipeline.compile(bounds_of(pipeline.graph, options.bounds))
    check_host(options.host)
    if options.cassette is None:
        check_plugs(options, pipeline.handlers, pipeline.graph, functions=pipeline.tools)
    check_rewind(plan, parent, rewind)
    place = find_place(read_latest(plan, parent).stored, rewind)
    later_inputs(pipeline, {*rewind.context, *_keys_of(place.counted)})
    state = restored_state(plan, place.shortened)
    undone, own_prompt = _without_overrides(plan, place) if is_single_stage else ([], "")
    forked = PipelineForked(
        node=place.point.node_id,
        visit=place.point.visit,
        parent_id=str(place.stored.manifest.get("run_id", "")),
        parent_root=str(first_directory(place.stored.logs_root)),
        parent_sequence=place.point.sequence,
        context=dict(rewind.context),
        prompt=rewind.prompt or own_prompt,
        spent=state.usage,
        is_single_stage=is_single_stage,
    )
    state.apply(forked)
    check_fork(pipeline, plan, place.shortened, state, options, change, recorded)
    seams = seams_of(options)
    home, name, run_id = _room(place.stored, options, seams)
    try:
        is_synced = options.durability == "full"
        for record in (*undone, forked):
            record.time = seams.clock.time()
        counted = fork_records([*place.counted, *undone], forked, run_id)
        files = {
            **copied_files(place.stored, place.counted),
            **_sources(pipeline, Path()),
            MANIFEST_NAME: seal(
                _manifest(pipeline, plan, place, forked, run_id) | _own_place(place, home.path / name, run_id)
            ),
            EVENT_LOG_NAME: b"".join(encode_event(event) for event in counted),
        }
        note_run(plan.graph, home.path / name, options, recorded, run_id)  # first: a fork that is killed here can go on
        put_run(seams.disk, home, name, files, read_run, is_synced=is_synced)
    finally:
        home.close()
    return home.path / name


def _without_overrides(plan: Plan, place: RewindPlace) -> tuple[list[Event], str]:
    """Records that end what a run has set by hand for a node, and the graph's prompt where another one was set."""
    node_id = place.point.node_id
    overrides = overrides_of(place.counted)
    has_stand_in = node_id in overrides.pins or node_id in overrides.mocks
    undone: list[Event] = [DebuggerChanged(change="unpin", node=node_id)] if has_stand_in else []
    return undone, task_of(plan.nodes[node_id].node) if node_id in overrides.prompts else ""


def fork_records(counted: Sequence[Event], forked: PipelineForked, run_id: str) -> list[Event]:
    """The log of a fork: its parent's way, numbered anew and under its own id, and the record of the fork."""
    records: list[Event] = []
    for number, event in enumerate((*counted, forked), 1):
        changes: dict[str, Any] = {"sequence": number, "run_id": run_id}
        if isinstance(event, PipelineStarted):
            changes["id"] = run_id
        elif isinstance(event, PipelineRewound):  # what it set aside is not in this log
            changes["to_sequence"] = number - 1
        records.append(replace(event, **changes))
    return records


def _sources(pipeline: Definition, home: Path) -> dict[str, bytes]:
    """The source of a pipeline and those of its children, where a run directory has them."""
    text, _ = stored_source(pipeline.to_dot(), pipeline.whole)
    files = {(home / SOURCE_NAME).as_posix(): text.encode("utf-8", "surrogatepass")}
    for node_id, child in pipeline.family.children.items():
        files |= _sources(child, child_home(home, node_id))
    return files


def _manifest(
    pipeline: Definition, plan: Plan, place: RewindPlace, forked: PipelineForked, run_id: str
) -> dict[str, Any]:
    before = place.stored.manifest
    kept = {name: value for name, value in before.items() if name not in _NOT_OF_A_FORK}
    _, is_redacted = stored_source(pipeline.to_dot(), pipeline.whole)
    return {
        **kept,
        "schema_version": 1,
        "run_id": run_id,
        "pipeline_name": plan.name,
        "goal": plan.graph.goal,
        "node_count": len(plan.nodes),
        "status": "paused",
        "start_time": utc_text(forked.time),
        "end_time": None,
        "fork_of": fork_facts(forked),
        **({"is_source_redacted": True} if is_redacted else {}),
    }


def _own_place(place: RewindPlace, logs_root: Path, run_id: str) -> dict[str, Any]:
    """The isolated working place of a fork whose parent has one: a new place, in the state of the parent's then.

    A workspace is copied in its current state; of a worktree the commit at that point is known.
    """
    facts = place.stored.manifest
    if facts.get("isolation") == WORKSPACE:
        return {"workdir": str(logs_root.absolute() / WORKSPACE_NAME)}
    parents = worktree_facts(facts)
    if parents is None:
        return {}
    own: dict[str, Any] = {**parents, "branch": f"{BRANCH_BEGINNING}{run_id}"}
    own["start"] = recorded_commit(place.shortened) or parents.get("start", parents.get("base"))
    path = logs_root.absolute() / WORKTREE_NAME / str(parents.get("prefix", ""))
    return {"workdir": str(path), "worktree": own}


def _room(parent: StoredRun, options: RunOptions, seams: Injected) -> tuple[RunDirectory, str, str]:
    """The place of a fork: the directory around it, its name there, and its run id."""
    run_id = seams.randomness.new_id()
    if options.logs_root is not None:
        path = as_path(options.logs_root, "logs_root").absolute()
        base, name = path.parent, path.name
    else:
        base = refuse_linked(as_path(options.runs_dir, "runs_dir") if options.runs_dir else _base_of(parent.logs_root))
        name = run_directory_name(seams.clock.time(), run_id)
    make = make_directory if options.logs_root is not None else make_runs_base
    make(seams.disk, base, is_synced=options.durability == "full")
    place = base / name
    if place.exists() and not (place.is_dir() and not any(place.iterdir())):
        raise StorageError(
            f"{place} is there already, and a fork needs a directory of its own",
            path=str(place),
            hint="name one that is not there, or leave logs_root out",
        )
    return RunDirectory(seams.disk, base), name, run_id


def _base_of(logs_root: Path) -> Path:
    """The runs base of a run; that of a row or of a child run is the working directory's."""
    base = first_directory(logs_root).parent
    is_inside = is_map(base) or CHILDREN_NAME in base.parts[-2:]
    return DEFAULT_RUNS_BASE if is_inside else base
