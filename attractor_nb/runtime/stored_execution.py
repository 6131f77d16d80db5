"""Reading a stored run back: the same handle without an engine; and the run that a handle or a path names."""

from __future__ import annotations

import contextlib
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from attractor_nb.decisions.log_history import counted_events
from attractor_nb.decisions.planning.plan import compile_plan
from attractor_nb.decisions.replays.cache_keys import RunPaths
from attractor_nb.engine.runner import RunOutcome
from attractor_nb.errors import OptionError, RunError, RunNotFound, StorageError
from attractor_nb.gc_pause import gc_paused
from attractor_nb.lazy_imports import later
from attractor_nb.model.child import CHILD_SEPARATOR
from attractor_nb.model.events import PipelineInterrupted
from attractor_nb.model.states import ENDED, LIVE, as_result
from attractor_nb.redaction import redacted
from attractor_nb.runtime.definition import Definition
from attractor_nb.runtime.execution import Execution, ExecutionT, cast_run, child_places
from attractor_nb.runtime.handles.handle import HandleJob
from attractor_nb.runtime.handles.recorded_state import (
    MAX_RESTART_HOPS,
    StoredValues,
    effective_checkpoint_and_tail,
    ended_context,
    kept_directories,
    restart_directory,
    restored_state,
)
from attractor_nb.runtime.handles.run_result import FollowedRun, RunResult
from attractor_nb.runtime.past import RecordedDirectory, RecordedVisit, keep_loaded, stamp_of
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.runtime.workspace.worktree import worktree_facts
from attractor_nb.source import SourceText
from attractor_nb.storage.attempt_files import read_stage_text
from attractor_nb.storage.log.event_log import log_size
from attractor_nb.storage.map_directory import is_map, read_map, read_map_source
from attractor_nb.storage.run_directory import SOURCE_NAME, first_directory
from attractor_nb.storage.stored_run import StoredRun, read_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.context import Context
    from attractor_nb.decisions.history.journal import Journal
    from attractor_nb.decisions.run_state import RunState
    from attractor_nb.runtime.workspace import worktree as worktree_changes
else:
    worktree_changes = later("attractor_nb.runtime.workspace.worktree")


DefinitionT = TypeVar("DefinitionT", bound=Definition)
ValueT = TypeVar("ValueT")
LOST_OWNER = "abandoned: its process ended"
"""Status text of a run whose log has no end."""


def read_definition(
    path: Path, kind: type[DefinitionT], options: Mapping[str, Any] = MappingProxyType({})
) -> DefinitionT:
    """The definition that the directory of a run, or of a map, holds.

    Args:
        path: The directory.
        kind: What is made of it.
        options: What it is made with.
    """
    if is_map(path):
        origin = path.absolute() / SOURCE_NAME
        source = SourceText(read_map_source(path), str(origin))
        named = dict(options)
        with contextlib.suppress(RunError):  # a manifest that is damaged; the source is whole
            named.setdefault("name", str(read_map(path).get("pipeline_name", "")))
        return kind(source, origin=origin, **named)
    return _definition(read_run(path), kind, options)


def _definition(
    stored: StoredRun, kind: type[DefinitionT], options: Mapping[str, Any] = MappingProxyType({})
) -> DefinitionT:
    if stored.source_text is None:
        raise RunNotFound(
            f"{stored.logs_root} does not hold the pipeline's source",
            hint="load the pipeline yourself: Pipeline(path).resume(directory)",
        )
    source = SourceText(stored.source_text, str(stored.logs_root / SOURCE_NAME))
    named: dict[str, Any] = {"name": str(stored.manifest.get("pipeline_name", "")), **options}
    return kind(source, origin=stored.logs_root / SOURCE_NAME, **named)


def children_of(run: ExecutionT) -> dict[str, ExecutionT]:
    """The child runs of a run's stages, live or read; one that cannot be read is left out."""
    found = {name: child_at(run, name) for name in child_places(run)}
    return {name: child for name, child in found.items() if child is not None}


def child_at(run: ExecutionT, name: str) -> ExecutionT | None:
    """The child run of a stage, live or read; None where there is none, and for one that cannot be read."""
    kind, place = type(run), child_places(run).get(name)
    if isinstance(place, Execution):
        return cast_run(place, kind)
    if place is not None:
        with contextlib.suppress(RunError):
            return cast_run(load_execution(place, type(run.pipeline)), kind)
    return None


def child_of(run: ExecutionT, node: str) -> ExecutionT | None:
    """The child run of a node, also of one in a branch; None without one.

    ``review/3`` is that of an item, and ``review`` that of the item which was begun last.
    """
    name, places = node.strip(), list(child_places(run))
    own = [at for at in places if at == name or at.endswith(f"/{name}")]
    of_items = [at for at in places if at.rpartition("/")[0].rpartition("/")[2] == name]
    return next((child for at in (*own[:1], *of_items[-1:]) if (child := child_at(run, at)) is not None), None)


def inner_run(run: ExecutionT, path: str) -> tuple[ExecutionT, str]:
    """The run that a path (``node>inner``) leads to, and its last node."""
    *above, last = str(path).split(CHILD_SEPARATOR)
    for name in above:
        found = child_of(run, name)
        if found is None:
            raise RunNotFound(f"{name} has no child run yet", hint="it begins with the stage")
        run = found
    return run, last.strip() if above else last


def load_execution(logs_root: Path, definition: Definition | type[Definition] | None = None) -> Execution:
    """A stored run as a handle: states, prompts, responses, result. Read-only; it needs no owner.

    A run that a ``loop_restart`` took to another directory is shown to where it came.

    Args:
        logs_root: The run directory.
        definition: The definition that ran, or its class to build one from the stored source.
    """
    with gc_paused(log_size(logs_root)):
        return _loaded(logs_root, definition or Definition)


def _loaded(logs_root: Path, definition: Definition | type[Definition]) -> Execution:
    stamp, stored = stamp_of(logs_root), read_run(logs_root)
    pipeline = _definition(stored, definition) if isinstance(definition, type) else definition
    plan = compile_plan(pipeline.graph)
    state, counted = restored_state(plan, stored), list(counted_events(stored.events))
    for _ in range(MAX_RESTART_HOPS):
        restarted = restart_directory(stored, state)
        if restarted is None:
            break
        stamp, stored = stamp_of(restarted), read_run(restarted)
        state = restored_state(plan, stored, state.restarted(state.restart_target))
        counted.extend(counted_events(stored.events))
    run_id = str(stored.manifest.get("run_id", ""))
    work: HandleJob[RunResult] = HandleJob(f"run {run_id}")
    followed = FollowedRun()
    kept = kept_directories(stored, counted_events(stored.events))
    followed.recall(counted, kept, state.visits)
    run = pipeline.run_kind(pipeline, run_id, stored.logs_root, stored.read_stage_file, work=work, followed=followed)
    keep_loaded(run, RecordedDirectory(stored, pipeline.graph, stamp))
    if stored.status not in LIVE:
        if not run.view.status.is_ended:
            followed.take(PipelineInterrupted(reason=LOST_OWNER, next_node=state.next_node))
        context = ended_context(_values(stored), (), StoredValues(stored.logs_root))
        work.result = result_of(
            run,
            followed,
            state,
            context,
            RunOutcome(_status_of(stored, state), state.reason or run.view.reason, run.view.duration),
        )
    return run


def _status_of(stored: StoredRun, state: RunState) -> str:
    """The final status of the run; it is in the log even if the manifest could not be written any more."""
    return state.ended or (stored.status if stored.status in {*ENDED, "paused"} else "interrupted")


def _values(stored: StoredRun) -> dict[str, Any]:
    """The context as the newest records say."""
    checkpoint, events = effective_checkpoint_and_tail(stored)
    values = dict((checkpoint or {}).get("context", {}))
    for event in events:
        values.update(getattr(event, "context", {}))
    return values


def resolve_run(thing: object, name: str = "the run", pipeline: Definition | None = None) -> Execution:
    """The run that a handle or a path names.

    Args:
        thing: A run, its result, or its directory.
        name: What the argument is called, for the message.
        pipeline: The pipeline that ran; without it, it is read from the directory.
    """
    if isinstance(thing, Execution):
        return thing
    if isinstance(thing, RunResult):
        return load_execution(thing.logs_root, pipeline)
    place: Any = getattr(thing, "logs_root", thing)  # an entry of runs(), too
    if not is_path(place):
        raise OptionError(
            f"{name} must be a run, its result or its directory, not {type(thing).__name__}",
            hint='for example ".attractor/runs/first"',
        )
    return load_execution(as_path(place, name), pipeline)


def is_path(thing: object) -> bool:
    """True if a value can name a place on the disk."""
    return isinstance(thing, str | PathLike)


TEXTS: Final = {"prompt": "prompt.md", "response": "response.md"}
"""Texts of a visit that are compared, and their files."""


def texts_of(run: Execution, known: RecordedVisit) -> dict[str, str]:
    """Prompt and response of the last attempt of a visit, by name; what is lost or unreadable is left out.

    Parts that only describe the run are marks in them (``without_places``).
    """
    directory = known.place.files_of(known.record, known.record.attempts[-1].number)
    found: dict[str, str] = {}
    for name, file in TEXTS.items():
        with contextlib.suppress(StorageError):
            if (text := read_stage_text(directory, file, known.place.root)) is not None:
                found[name] = without_places(run, known.journal, redacted(text))
    return found


def without_places(run: Execution, journal: Journal, value: ValueT) -> ValueT:
    """A JSON value with marks where it names the run or its directory: they differ always and tell nothing.

    So are those of the runs that it was forked from: the stages that a fork has of them were asked there.

    Args:
        run: The run.
        journal: The past of the directory that the value is from.
        value: Without secrets.
    """
    places = [RunPaths(run.id, (str(run.logs_root), str(first_directory(run.logs_root))))]
    places += [RunPaths(event.parent_id, (event.parent_root,)) for event in journal.forks]
    for place in places:
        value = place.without_in(value)
    return value


# The result of a run that has stopped: made from the run, its state and its manifest, live or stored.


def result_of(
    run: Execution,
    followed: FollowedRun,
    state: RunState,
    context: Context,
    ended: RunOutcome,
    manifest: Mapping[str, Any] | None = None,
) -> RunResult:
    """The result of a run that has stopped; its manifest is read where the caller does not have it."""
    place = worktree_changes.place_facts(run.logs_root) if manifest is None else manifest
    worktree = worktree_facts(place) or {}
    return RunResult(
        status=as_result(ended.status),
        reason=redacted(ended.reason),
        run_id=run.id,
        logs_root=run.logs_root,
        completed_nodes=tuple(state.completed),
        node_outcomes=dict(state.outcomes),
        visits=dict(state.visits),
        context=context,
        usage=state.usage,
        usage_by_node=dict(state.usage_by_node),
        duration=ended.duration,
        next_node=state.next_node,
        bound=state.bound,
        graph=run.graph,
        followed=followed,
        read=run.read_stage_file,
        workdir=Path(place["workdir"]) if place.get("workdir") else None,
        branch=str(worktree.get("branch", "")),
    )
