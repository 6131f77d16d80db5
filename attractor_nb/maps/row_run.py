"""One row of a map as a complete, ordinary run: started, resumed, or read when it has ended.

The last sections do the same on workers, from plain data alone: a worker shares nothing with the caller.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import pickle
import tempfile
from dataclasses import MISSING, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from attractor_nb.backends import resolve_backend
from attractor_nb.decisions.ambiguity import MAX_LOST_WORKERS
from attractor_nb.decisions.bounds import MAP_BOUNDS
from attractor_nb.decisions.planning.plan import TOOL_TYPE
from attractor_nb.engine.time_limits import SystemRandomness
from attractor_nb.errors import AttractorError, OptionError, RunLocked, RunNotFound, StorageError, WorkerLost
from attractor_nb.logs import own_logger
from attractor_nb.model.events import PipelineFailed
from attractor_nb.model.row_result import RowResult, RowStatus
from attractor_nb.model.states import ENDED
from attractor_nb.model.stop import is_shortage
from attractor_nb.model.vocabulary.value_forms import WHOLE_RESPONSE, row_output
from attractor_nb.processes import CommandOutput, LocalProcesses
from attractor_nb.redaction import holds_secret, redacted
from attractor_nb.runtime.begin import Injected, RunStart, begin, seams_of
from attractor_nb.runtime.chosen_plugs import SharedByParent, backend_name
from attractor_nb.runtime.fork import make_fork
from attractor_nb.runtime.prepare.run_options import BOUNDS, RunOptions, read_options
from attractor_nb.runtime.resume import continue_run, rewind_of_failure
from attractor_nb.runtime.rewind import Rewind
from attractor_nb.runtime.stored_execution import load_execution
from attractor_nb.runtime.stored_state import complete_end
from attractor_nb.runtime.wire import wire
from attractor_nb.source import SourceText
from attractor_nb.storage.manifest_file import current_status, read_last_event
from attractor_nb.storage.map_directory import MapDirectory, read_tree, row_name
from attractor_nb.storage.stored_run import check_directory, has_event_log, read_facts, read_run
from attractor_nb.workers.lifelines import Lifeline, worker_name
from attractor_nb.workers.perform import named_backend, opened, perform_as
from attractor_nb.workers.task import StageReport, StageTask

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from attractor_nb.cassettes import Tape
    from attractor_nb.decisions.planning.plan import Plan
    from attractor_nb.engine.attempt_spending import Funds
    from attractor_nb.protocols import CodergenBackend, EventSink
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.handles.run_result import RunResult
    from attractor_nb.workers.shipping import Shipping


LOGGER = own_logger(__name__)
REASON_CHARS = 2_000
"""The whole reason is in the row's directory."""
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class RowTask:
    """A row to be run."""

    row: int  #: Its number.
    inputs: Mapping[str, Any]  #: Its context inputs, those common to all rows too.
    directory: Path | None  #: Its run directory; None when nothing is kept.
    outputs: Sequence[str] = ()  #: Context values to keep of it.
    on_graph_change: str = "error"  #: Rule for a changed graph; see ``Pipeline.resume``.
    is_failure_retried: bool = False  #: When it has failed, it goes back to the stage that it failed in.
    stored: StoredStage | None = None  #: The stage that it executes anew; None for a row that runs the whole pipeline.


@dataclass(frozen=True, slots=True)
class StoredStage:
    """A stage of a stored run, which a row executes anew with the context that it had there."""

    node: str  #: The node; its latest visit counts.
    directory: Path  #: The directory of the stored run, which is only read.


def row_tasks(
    rows: Sequence[Mapping[str, Any]],
    directory: Path | None,
    outputs: Sequence[str],
    stored: Sequence[StoredStage],
    resumed: Mapping[str, Any],
) -> list[RowTask]:
    """The rows of a map to be run.

    Args:
        rows: Their inputs.
        directory: The directory of the map; None when nothing is kept.
        outputs: Context values to keep of each.
        stored: The stages that they execute anew, in order, and again for each repeat; empty for whole runs.
        resumed: For a resume, the values of the attributes that it sets.
    """
    return [
        RowTask(
            row,
            inputs,
            None if directory is None else directory / row_name(row),
            outputs,
            stored=stored[row % len(stored)] if stored else None,
            **resumed,
        )
        for row, inputs in enumerate(rows)
    ]


@dataclass(frozen=True, slots=True)
class RowServices:
    """The services that the caller shares among all rows."""

    backend: CodergenBackend | None = None  #: Answers prompts, and is open already; None: each row has one of its own.
    sinks: Sequence[EventSink] = ()  #: Take the row's events; quick, and never raising.
    #: The way to the workers, open already; None: each row has one of its own, if any.
    shipping: Shipping | None = None
    tape: Tape | None = None  #: Recording of the calls of all rows; None without a cassette.
    funds: Funds | None = None  #: Account of the row, below the common one; None without common bounds.


_NO_PLUGS = RowServices()


async def run_row(
    pipeline: Definition, task: RowTask, options: RunOptions, plugs: RowServices = _NO_PLUGS
) -> RowResult:
    """Bring a row to its end, from the state that its directory records.

    Args:
        options: As of ``run``, with an interviewer; its ``params`` and ``logs_root`` are the row's.
        plugs: What the caller has for all rows.

    Returns:
        How it ended. Whatever keeps it from running is the reason of a failure.
    """
    try:
        return await _run(pipeline, task, options, plugs)
    except AttractorError as error:
        reason = f"{type(error).__name__}: {error.message}"
        if not is_shortage(error):
            return _failed(task, reason)
        reason, place = reason[:REASON_CHARS], _directory_name(task)
        return RowResult(task.row, "interrupted", reason=reason, directory=place, is_unmeasured=True)
    except Exception as error:  # a fault of a plug is this row's, never the map's
        LOGGER.exception("row %s of a map cannot be run", task.row)
        return _failed(task, redacted(f"{type(error).__name__}: {error}"))


async def _run(pipeline: Definition, task: RowTask, options: RunOptions, plugs: RowServices) -> RowResult:
    own = replace(options, logs_root=task.directory)
    seams = seams_of(own)
    if finished := _finished(pipeline, task, own, seams):
        return finished
    if task.stored is not None and not (task.directory is not None and has_event_log(task.directory)):
        try:
            check_directory(task.stored.directory)
            make_fork(pipeline, task.stored.directory, Rewind(task.stored.node), "accept", own, is_single_stage=True)
        except AttractorError as error:
            if is_shortage(error):
                raise
            return RowResult(task.row, "fail", reason=error.message[:REASON_CHARS], is_unmeasured=True)
    start = _beginning(pipeline, task, own, seams)
    try:
        wired = wire(
            pipeline,
            own,
            seams,
            start,
            is_waited_for=True,
            inherited=SharedByParent(
                backend=plugs.backend,
                shipping=plugs.shipping,
                tape=None if plugs.tape is None else plugs.tape.inside(f"row {task.row}"),
                funds=plugs.funds,
            ),
        )
    except BaseException:  # an interrupt, too, must give the run up, or a resume finds it locked
        start.close()
        raise
    wired.listen(plugs.sinks)
    return row_result(task, await wired.work())


def _beginning(pipeline: Definition, task: RowTask, options: RunOptions, seams: Injected) -> RunStart:
    """The starting point of a new or resumed row; one that was cut off before its first record begins anew."""
    if task.directory is not None and has_event_log(task.directory):
        try:
            return continue_run(
                pipeline,
                task.directory,
                options,
                seams,
                on_graph_change="accept" if task.stored is not None else task.on_graph_change,
                rewind=rewind_of_failure(pipeline, task.directory, options) if task.is_failure_retried else None,
            )
        except RunNotFound:
            pass
    return begin(pipeline, options, seams, inputs=task.inputs)


def _finished(pipeline: Definition, task: RowTask, options: RunOptions, seams: Injected) -> RowResult | None:
    """The row as its directory says, when it has ended and nothing would run again."""
    directory = task.directory
    if directory is None or not has_event_log(directory):
        return None
    current = current_status(directory, read_facts(directory))
    if current.status not in ENDED:
        return None
    if current.status == "failed" and task.is_failure_retried:
        return None
    run = load_execution(directory, pipeline)
    last = read_last_event(run.logs_root)
    if isinstance(last, PipelineFailed) and last.is_resumable:
        return None  # a bound, or a backend that was down: it may continue now
    if current.manifest.get("status") != current.status:
        complete_end(pipeline, directory, options, seams)
    return msgspec.structs.replace(row_result(task, run.result(0.0)), was_finished=True)


def row_result(task: RowTask, result: RunResult, directory: str | None = None) -> RowResult:
    """The result of a row from that of its run.

    Args:
        task: The row.
        result: The result of its run.
        directory: Its run directory; by default the name of the task's.
    """
    return RowResult(
        task.row,
        _row_status(result),
        reason=result.reason[:REASON_CHARS],
        run_id=result.run_id,
        directory=_directory_name(task) if directory is None else directory,
        stages=len(result.completed_nodes),
        duration=round(result.duration, 3),
        usage=result.usage,
        saved=result.saved,
        is_unmeasured=result.is_unmeasured,
        outputs={key: value for key in task.outputs if (value := _output(task, result, key)) is not _ABSENT},
        marks=result.marks,
    )


def _output(task: RowTask, result: RunResult, key: str) -> Any:
    if task.stored is not None and key == WHOLE_RESPONSE:
        return stage_output(result, task.stored.node, _ABSENT)
    return row_output(result.context.get, key, _ABSENT)


def stage_output(result: RunResult, node: str, default: Any = None) -> Any:
    """The response of a stage that was executed anew: never that of an earlier visit, which the context still has.

    Args:
        result: The result of the row's run.
        node: The stage.
        default: What is returned where there is no response.
    """
    kind, outcome = result.graph.handler_types[node], result.outcomes.get(node)
    if kind == TOOL_TYPE:
        return result.context.get("tool.output", default)
    is_answered = outcome is not None and not outcome.status.is_failure
    text = default if (response := result[node].response) is None else response
    return result.context.get(f"{node}.response", text) if is_answered else text


def _row_status(result: RunResult) -> RowStatus:
    if result.bound in MAP_BOUNDS:
        return "interrupted"
    return "success" if result.is_success else "fail" if result.status == "fail" else "interrupted"


def _failed(task: RowTask, reason: str) -> RowResult:
    return RowResult(task.row, "fail", reason=reason[:REASON_CHARS], directory=_directory_name(task))


def _directory_name(task: RowTask) -> str:
    return task.directory.name if task.directory is not None and task.directory.exists() else ""


# On a worker: one row of a map from plain data alone.
#
# It keeps only the pipelines that it has read, and returns plain data, including the files of the row's
# run directory.

NAME = "<map>"
"""Of the source, in messages."""


def perform_row(plain: Mapping[str, Any], plug: bytes = b"") -> dict[str, Any]:
    """Run the row of a task in a temporary directory and report. Blocks; called by an executor.

    Args:
        plain: The task, as plain values. Its work: ``source`` (DOT text), ``row``, ``inputs``, ``run_id``,
            ``outputs``, ``options`` of ``run`` by name, ``backend`` (a name, or empty when it travels
            beside the task) and ``has_directory``. The caller has trusted the pipeline's commands.
        plug: Pickled: the class of the pipeline, the backend or None, and the handlers by type.

    Returns:
        The report, as plain values; its value is the row's result, its files are its run directory.
    """
    return perform_as(_row, plain, plug)


async def _row(task: StageTask, plug: bytes, lifeline: Lifeline) -> StageReport:  # noqa: ARG001 - nothing is said meanwhile
    work = task.work
    make, backend, handlers = pickle.loads(plug)  # noqa: S301 - made by the coordinator, brought by the user's executor
    source = work["source"]
    pipeline = make(SourceText(source, NAME), handlers=handlers) if handlers else _pipeline(make, source)
    with tempfile.TemporaryDirectory(prefix="attractor-row-") as folder:
        directory = Path(folder) / row_name(work["row"]) if work["has_directory"] else None
        given = {
            **work["options"],
            "backend": work["backend"] or backend,
            "randomness": _GivenId(work["run_id"]),
            "processes": _InStageDirectory(),
            "isolation": "workspace",
        }
        options = read_options({"interviewer": "refuse"}, **given)
        row = RowTask(work["row"], work["inputs"], directory, work["outputs"])
        async with _answering(work["backend"], backend) as answering:
            result = await run_row(pipeline, row, options, RowServices(answering))
        if directory is None or not directory.exists():
            return StageReport(worker_name(), value=result.to_plain())
        try:
            files, others = read_tree(directory)
        except StorageError as error:
            reason = f"{error.message} ({error.hint})" if error.hint else error.message
            failed = RowResult(result.row, "fail", reason=reason, usage=result.usage)
            return StageReport(worker_name(), value=failed.to_plain())
    return StageReport(worker_name(), value=result.to_plain(), files=files, left_out=others)


@contextlib.asynccontextmanager
async def _answering(name: str, backend: Any) -> AsyncGenerator[Any]:
    """The row's backend, started: once per process if it has a name, else for this row."""
    if name:
        async with named_backend(name) as kept:
            yield kept
    else:
        async with opened(backend):
            yield backend


@functools.lru_cache(maxsize=8)
def _pipeline(make: Callable[..., Definition], source: str) -> Definition:
    """The pipeline of a source, once for many rows."""
    return make(SourceText(source, NAME))


class _GivenId(SystemRandomness):
    """Chance, but for the id of the run: that of a row is the same each time that it is begun."""

    def __init__(self, run_id: str) -> None:
        self._ids = [run_id]

    def new_id(self) -> str:
        """The given one; then random ones, for restarts."""
        return self._ids.pop() if self._ids else super().new_id()


class _InStageDirectory(LocalProcesses):
    """Commands in the directory of their stage, as those of shipped stages: no project is there."""

    async def run(self, command: Any, *, output_directory: Any = None, **options: Any) -> CommandOutput:
        """Run a command there."""
        there = {**options, "cwd": output_directory}
        return await super().run(command, output_directory=output_directory, **there)


# Whole rows of a map, run by the workers of ``executor=``: the check of a map, and the result of a row.

RERUN = "rerun"
ROWS, STAGES = "rows", "stages"
GATE_TYPE = "wait.human"
_TRAVELLING: Final = frozenset({*BOUNDS, "backend", "checkpoint_every_stage", "durability"})
"""Options that a row has on its worker."""
_OF_THE_CALLER: Final = frozenset(
    {"params", "interviewer", "trust", "logs_root", "runs_dir", "is_shown", "executor", "worker_wait", "host"}
    | {"on_interrupted", "take_over", "secrets", "session"}
)
"""Options that the coordinator follows for a row that travels: what it begins with, where it is kept, who sees it."""
UNKNOWN = (
    "it was started on a worker that was lost, so its effects are unknown; "
    'resume_map(…, on_interrupted="rerun") runs it again'
)


def ships_rows(pipeline: Definition, options: RunOptions, plan: Plan, ship: str | None) -> bool:
    """True if whole rows travel, or stages.

    Args:
        pipeline: What runs.
        plan: The compiled graph.
        ship: ``rows`` or ``stages``; None for what fits: rows where they can be run there, and all their
            stages may be run again when a worker is lost.
    """
    if options.executor is None:
        if ship is not None:
            raise OptionError(f'ship="{ship}" needs an executor', hint="give executor=, or leave ship out")
        return False
    if ship == STAGES:
        return False
    problem = _why_not(pipeline, options, plan)
    if problem and ship == ROWS:
        raise OptionError(f"whole rows cannot be sent to workers: {problem}", hint='use ship="stages"')
    return not problem and (ship == ROWS or not _is_once(plan))


def _is_once(plan: Plan) -> bool:
    """True if a stage may have an effect that must not happen twice unasked."""
    return any(planned.on_interrupted != RERUN for planned in plan.nodes.values())


def _why_not(pipeline: Definition, options: RunOptions, plan: Plan) -> str:
    from attractor_nb.workers.plugs import is_shippable  # noqa: PLC0415 - for executors alone

    reasons = {
        "a gate is answered here": GATE_TYPE in plan.handler_types.values(),
        "a stage of theirs is a pipeline of its own": bool(pipeline.graph.children),
        "a custom handler does not say that it is_shippable": not all(
            is_shippable(handler) for handler in pipeline.handlers.values()
        ),
        "registered schemas stay here": bool(pipeline.schemas),
        "functions that models or stages call stay here": bool(pipeline.tools or pipeline.functions),
        "their events are observed here": bool(pipeline.observers),
        f"{_staying(options)}= holds in this process alone": bool(_staying(options)),
        "the source holds a secret": holds_secret(pipeline.to_dot()),
    }
    if found := next((reason for reason, holds in reasons.items() if holds), ""):
        return found
    try:
        there = type(pipeline)(SourceText(pipeline.to_dot(), NAME), handlers=pipeline.handlers)
    except AttractorError as error:
        return f"the source alone makes no pipeline: {error.message}"
    if there.graph.content_hash != pipeline.graph.content_hash:
        return "the source alone makes another graph, as where a transform was registered"
    return ""


def _staying(options: RunOptions) -> str:
    """The first option that is given and would be lost on a worker, or empty."""
    for entry in fields(options):
        if entry.name in _TRAVELLING | _OF_THE_CALLER:
            continue
        default = entry.default if entry.default_factory is MISSING else entry.default_factory()
        value = getattr(options, entry.name)
        is_empty = isinstance(default, tuple | dict) and not value
        if value != default and not is_empty:
            return entry.name
    return ""


@dataclass(frozen=True, slots=True)
class Shipment:
    """The way of whole rows to the workers, and back."""

    shipping: Shipping  #: The way to workers; its owner opens it.
    map_id: str  #: The map; with the row's number it is the id of the row's run.
    work: dict[str, Any]  #: Values that all rows share, as plain values.
    plug: bytes  #: The pickled backend and handlers.
    is_once: bool  #: A row must not be begun twice unasked.
    directory: MapDirectory | None  #: Directory of the rows; None when nothing is stored.

    async def run(self, task: RowTask) -> RowResult:
        """Have a row run, and write its directory."""
        try:
            return await self._run(task)
        except asyncio.CancelledError:
            return RowResult(task.row, "interrupted", reason="cancelled while a worker had it")
        except RunLocked:
            raise
        except AttractorError as error:
            return RowResult(task.row, "fail", reason=f"{type(error).__name__}: {error.message}")

    async def _run(self, task: RowTask) -> RowResult:
        run_id = f"{self.map_id}-{task.row:05}"
        work = {**self.work, "row": task.row, "inputs": dict(task.inputs), "run_id": run_id}
        if self.is_once and self.directory is not None:
            self.directory.note_sent(task.row)
        losses = 0
        while True:
            try:
                report = await self.shipping.ship_row(task.row, perform_row, work, plug=self.plug, is_once=self.is_once)
                break
            except WorkerLost as lost:
                losses += 1
                LOGGER.warning("%s", lost.message)
                if self.is_once:
                    return RowResult(task.row, "fail", reason=f"{lost.message}; {UNKNOWN}")
                if losses == MAX_LOST_WORKERS:
                    reason = f"{losses} workers were lost with it; the last: {lost.message}"
                    return RowResult(task.row, "fail", reason=reason)
        result = RowResult.from_plain(report.value)
        if report.left_out:
            LOGGER.warning(
                "row %s: not returned by its worker, because they are not plain files: %s",
                task.row,
                "; ".join(report.left_out),
            )
        if self.directory is not None and report.files:
            self.directory.put_row(task.row, report.files, partial(_check_run, run_id))
        return result


def _check_run(run_id: str, directory: Path) -> None:
    """Check that a directory holds a whole run, and which."""
    events = read_run(directory).events
    if not events or events[0].run_id != run_id:
        raise StorageError(f"the returned run is not run {run_id}", path=str(directory))


def shipment_of(
    pipeline: Definition,
    options: RunOptions,
    plan: Plan,
    shipping: Shipping,
    *,
    map_id: str,
    outputs: tuple[str, ...],
    directory: MapDirectory | None,
) -> Shipment:
    """The way of whole rows of a map that may travel."""
    from attractor_nb.workers.plugs import packed  # noqa: PLC0415 - for executors alone

    name = backend_name(options)
    backend = None if name else resolve_backend(options.backend)
    work = {
        "source": pipeline.to_dot(),
        "backend": name,
        "outputs": list(outputs),
        "has_directory": directory is not None,
        "options": {
            **options.recorded_bounds,
            "durability": "none" if directory is None else "fast",
            "checkpoint_every_stage": options.checkpoint_every_stage,
        },
    }
    plug = packed((type(pipeline), backend, dict(pipeline.handlers)), "the backend or a handler")
    return Shipment(shipping, map_id, work, plug, _is_once(plan), directory)


def lost_before(task: RowTask, directory: MapDirectory | None, on_interrupted: str | None) -> RowResult | None:
    """The failure of a row that a worker had when the map was stopped, unless it may be run again."""
    if directory is None or on_interrupted == RERUN or not directory.was_sent(task.row):
        return None
    return RowResult(task.row, "fail", reason=f"row {task.row}: {UNKNOWN}", was_finished=True)
