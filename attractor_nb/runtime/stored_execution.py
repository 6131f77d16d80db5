"""Reading a stored run back: the same handle, without an engine behind it."""

from __future__ import annotations

import contextlib
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from attractor_nb.decisions.log_history import way_taken
from attractor_nb.decisions.plan_compiling import compile_plan
from attractor_nb.engine.runner import RunOutcome
from attractor_nb.errors import RunError, RunNotFound
from attractor_nb.model.events import PipelineInterrupted
from attractor_nb.runtime.definition import Definition
from attractor_nb.runtime.execution import Execution, ExecutionT, child_places, of_kind, result_of
from attractor_nb.runtime.handles.event_fold import Followed
from attractor_nb.runtime.handles.final_context import StoredValues, ended_context
from attractor_nb.runtime.handles.handle import Work
from attractor_nb.runtime.handles.recorded_state import (
    MAX_RESTART_HOPS,
    kept_directories,
    restart_directory,
    restored_state,
    what_holds,
)
from attractor_nb.runtime.past import RecordedDirectory, keep_loaded, stamp_of
from attractor_nb.source import SourceText
from attractor_nb.storage.map_directory import is_map, read_map_source
from attractor_nb.storage.run_directory import SOURCE_NAME
from attractor_nb.storage.stored_run import StoredRun, read_run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from attractor_nb.decisions.run_state import RunState
    from attractor_nb.runtime.handles.run_result import RunResult

_ENDED = frozenset({"completed", "failed", "paused"})
_LIVE = frozenset({"running", "resumed"})
DefinitionT = TypeVar("DefinitionT", bound=Definition)
LOST_OWNER = "abandoned: its process ended"
"""Why a run stands still whose log has no end."""


def read_definition(
    path: Path, kind: type[DefinitionT], options: Mapping[str, Any] = MappingProxyType({})
) -> DefinitionT:
    """The definition that the directory of a run, or of a map, holds.

    Args:
        path: The directory.
        kind: What is made of it.
        options: What it is made with.

    Raises:
        RunNotFound: There is no run, or it does not hold its source.
    """
    if is_map(path):
        origin = path.absolute() / SOURCE_NAME
        return kind(SourceText(read_map_source(path), str(origin)), origin=origin, **options)
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
    return kind(source, origin=stored.logs_root / SOURCE_NAME, **options)


def children_of(run: ExecutionT) -> dict[str, ExecutionT]:
    """The child runs of a run's stages, live or read; one that cannot be read is left out."""
    kind, found = type(run), dict[str, ExecutionT]()
    for name, place in child_places(run).items():
        if isinstance(place, Execution):
            found[name] = of_kind(place, kind)
        else:
            with contextlib.suppress(RunError):
                found[name] = of_kind(load_execution(place, type(run.pipeline)), kind)
    return found


def load_execution(logs_root: Path, definition: Definition | type[Definition] | None = None) -> Execution:
    """A stored run as a handle: states, prompts, responses, result. Read-only; nobody needs to own it.

    A run that a ``loop_restart`` took to another directory is shown to where it came.

    Args:
        logs_root: The run directory.
        definition: What ran, for who has it; or what is made of the text that the directory holds.

    Raises:
        RunNotFound: There is no run at that place.
        CheckpointCorrupt: Its log is damaged; says what is salvageable.
    """
    stamp, stored = stamp_of(logs_root), read_run(logs_root)
    definition = definition or Definition
    pipeline = _definition(stored, definition) if isinstance(definition, type) else definition
    plan = compile_plan(pipeline.graph)
    state, way = restored_state(plan, stored), list(way_taken(stored.events))
    for _ in range(MAX_RESTART_HOPS):
        restarted = restart_directory(stored, state)
        if restarted is None:
            break
        stamp, stored = stamp_of(restarted), read_run(restarted)
        state = restored_state(plan, stored, state.restarted(state.restart_target))
        way.extend(way_taken(stored.events))
    run_id = str(stored.manifest.get("run_id", ""))
    work: Work[RunResult] = Work(f"run {run_id}")
    followed = Followed()
    followed.recall(way, kept_directories(stored, way_taken(stored.events)), state.visits)
    run = pipeline.run_kind(
        pipeline,
        run_id,
        stored.logs_root,
        stored.read_stage_file,
        work=work,
        followed=followed,
    )
    keep_loaded(run, RecordedDirectory(stored, pipeline.graph, stamp))
    if stored.status not in _LIVE:
        if not run.view.status.is_ended:
            followed.take(PipelineInterrupted(reason=LOST_OWNER, next_node=state.next_node))
        context = ended_context(_values(stored), (), StoredValues(stored.logs_root))
        work.result = result_of(
            run,
            followed,
            state,
            context,
            RunOutcome(_standing(stored, state), state.reason or run.view.reason, run.view.duration),
        )
    return run


def _standing(stored: StoredRun, state: RunState) -> str:
    """How the run ended; the log says so even when the manifest could not be written any more."""
    return state.ended or (stored.status if stored.status in _ENDED else "interrupted")


def _values(stored: StoredRun) -> dict[str, Any]:
    """The context as the newest records say."""
    checkpoint, events = what_holds(stored)
    values = dict((checkpoint or {}).get("context", {}))
    for event in events:
        values.update(getattr(event, "context", {}))
    return values
