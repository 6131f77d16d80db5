"""Reading a stored run back: the same handle, without an engine behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Never

from attractor_nb.decisions.history import way_taken
from attractor_nb.decisions.plan import compile_plan
from attractor_nb.engine.runner import RunOutcome
from attractor_nb.errors import RunNotFound
from attractor_nb.model.events import PipelineInterrupted
from attractor_nb.model.option_meanings import OF_A_PIPELINE
from attractor_nb.pipeline.ended_context import StoredValues, ended_context
from attractor_nb.pipeline.followed import Followed
from attractor_nb.pipeline.given import given_options
from attractor_nb.pipeline.handle import Work
from attractor_nb.pipeline.options import as_path
from attractor_nb.pipeline.pipeline import Pipeline
from attractor_nb.pipeline.recorded import (
    MAX_RESTART_HOPS,
    kept_directories,
    restart_directory,
    restored_state,
    what_holds,
)
from attractor_nb.pipeline.run import Run
from attractor_nb.pipeline.wiring import result_of
from attractor_nb.source import SourceText
from attractor_nb.storage.map_directory import is_map, read_map_source
from attractor_nb.storage.run_directory import SOURCE_NAME
from attractor_nb.storage.stored_run import StoredRun, read_run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pydantic import BaseModel

    from attractor_nb.decisions.run_state import RunState
    from attractor_nb.handlers.supervision import GuardFunction
    from attractor_nb.model.diagnostic import Severity
    from attractor_nb.pipeline.definition import Definition
    from attractor_nb.pipeline.options import BackendSpec, ExecutorSpec, InterviewerSpec
    from attractor_nb.pipeline.run_result import RunResult
    from attractor_nb.pipeline.sources import Source
    from attractor_nb.protocols import Handler, LintRule, Transform

_ENDED = frozenset({"completed", "failed", "paused"})
_LIVE = frozenset({"running", "resumed"})
LOST_OWNER = "abandoned: its process ended"
"""Why a run stands still whose log has no end."""


def load_pipeline(
    logs_root: str | Path,
    *,
    backend: BackendSpec = None,
    interviewer: InterviewerSpec = None,
    executor: ExecutorSpec = None,
    handlers: Mapping[str, Handler | Callable[..., Any]] | None = None,
    transforms: Sequence[Transform] = (),
    rules: Sequence[LintRule] = (),
    severity: Mapping[str, Severity] | None = None,
    params: Mapping[str, Any] | None = None,
    name: str = "",
    runs_dir: str | Path | None = None,
    strict: bool = False,
    allow_many_exits: bool = False,
    pipelines: Mapping[str, Definition | Source] | None = None,
    guards: Mapping[str, GuardFunction] | None = None,
    schemas: Mapping[str, type[BaseModel]] | None = None,
    tools: Mapping[str, Callable[..., Any]] | None = None,
    child_roots: Sequence[str | Path] = (),
    **unknown: Never,
) -> Pipeline:
    """The pipeline that a run directory, or that of a map, holds.

    Custom handlers and all else that is plugged in is not stored and must be given again.

    Args:
        logs_root: The directory.
        backend: What answers prompts: simulated, local, llm, claude, codex, gemini, a function or a backend.
        interviewer: Who answers gates: auto, console, deferred (run.answer), a function or an interviewer; by
            default whoever shows the run, else the terminal.
        executor: Where tool and model stages are done: a concurrent.futures.Executor, or a function that
            makes one; here by default.
        handlers: Custom handlers by type.
        transforms: Custom transforms, after the built-in ones.
        rules: Custom lint rules.
        severity: Severities in place of the rules' own, by the name of the rule.
        params: Values that every run's context starts with.
        name: Name to show, in place of the graph's.
        runs_dir: Where run directories are made; .attractor/runs by default.
        strict: Generous readings of DOT are errors.
        allow_many_exits: More than one exit node may stand (ruling 7).
        pipelines: Pipelines that nodes run by name (pipeline.name, stack.child_pipeline).
        guards: Functions by name that judge a supervised child (manager.guard_function).
        schemas: Pydantic models by name that response_schema or human.form of a node, or inputs_schema of the
            graph, may name.
        tools: Functions by name that allowed_tools of a node may name, for models that are asked directly
            (backend=llm).
        child_roots: Directories in which child files may be, besides those below the file that names them and
            below the working directory.
        **unknown: Any other keyword: an error that names the nearest option.

    Raises:
        RunNotFound: There is no run, or it does not hold its source.
    """
    options = given_options(locals(), of=OF_A_PIPELINE)
    path = as_path(logs_root)
    if is_map(path):
        origin = path.absolute() / SOURCE_NAME
        return Pipeline(SourceText(read_map_source(path), str(origin)), origin=origin, **options)
    return _pipeline(read_run(path), options)


def _pipeline(stored: StoredRun, options: dict[str, Any]) -> Pipeline:
    if stored.source_text is None:
        raise RunNotFound(
            f"{stored.logs_root} does not hold the pipeline's source",
            hint="load the pipeline yourself: Pipeline(path).resume(directory)",
        )
    source = SourceText(stored.source_text, str(stored.logs_root / SOURCE_NAME))
    return Pipeline(source, origin=stored.logs_root / SOURCE_NAME, **options)


def load_run(logs_root: Path, pipeline: Pipeline | None = None) -> Run:
    """A stored run as a handle: states, prompts, responses, result. Read-only; nobody needs to own it.

    A run that a ``loop_restart`` took to another directory is shown to where it came.

    Raises:
        RunNotFound: There is no run at that place.
        CheckpointCorrupt: Its log is damaged; says what is salvageable.
    """
    stored = read_run(logs_root)
    pipeline = pipeline or _pipeline(stored, {})
    plan = compile_plan(pipeline.graph)
    state, way = restored_state(plan, stored), list(way_taken(stored.events))
    for _ in range(MAX_RESTART_HOPS):
        restarted = restart_directory(stored, state)
        if restarted is None:
            break
        stored = read_run(restarted)
        state = restored_state(plan, stored, state.restarted(state.restart_target))
        way.extend(way_taken(stored.events))
    run_id = str(stored.manifest.get("run_id", ""))
    work: Work[RunResult] = Work(f"run {run_id}")
    followed = Followed()
    followed.recall(way, kept_directories(stored, way_taken(stored.events)), state.visits)
    run = Run(
        pipeline,
        run_id,
        stored.logs_root,
        stored.read_stage_file,
        work=work,
        followed=followed,
    )
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
