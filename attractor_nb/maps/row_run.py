"""One row of a map as a complete, ordinary run: started, gone on with, or read when it has ended.

``row_worker.py`` does the same from plain data alone, for a worker that shares nothing with the caller.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from attractor_nb.decisions.limits.map_bounds import MAP_BOUNDS
from attractor_nb.errors import AttractorError, RunNotFound
from attractor_nb.logs import own_logger
from attractor_nb.model.events import PipelineFailed
from attractor_nb.model.row_result import RowResult
from attractor_nb.model.shortage import is_shortage
from attractor_nb.model.states import ENDED
from attractor_nb.model.vocabulary.value_paths import named_value
from attractor_nb.redaction import redacted
from attractor_nb.runtime.begin import begin, seams_of
from attractor_nb.runtime.latest_state import complete_end
from attractor_nb.runtime.plugs.inherited import Inherited
from attractor_nb.runtime.resume import continue_run
from attractor_nb.runtime.resume_checks import rewind_of_failure
from attractor_nb.runtime.stored_execution import load_execution
from attractor_nb.runtime.wire import wire
from attractor_nb.storage.run_status import current_status, read_last_event
from attractor_nb.storage.stored_run import has_event_log, read_facts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from attractor_nb.cassettes import Tape
    from attractor_nb.engine.funds import Funds
    from attractor_nb.model.row_result import RowStatus
    from attractor_nb.protocols import CodergenBackend, EventSink
    from attractor_nb.runtime.begin import Beginning, Seams
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.handles.run_result import RunResult
    from attractor_nb.runtime.prepare.run_options import RunOptions
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
    on_graph_change: str = "error"  #: What to do when it began with another graph; see ``Pipeline.resume``.
    is_failure_retried: bool = False  #: When it has failed, it goes back to the stage that it failed in.


@dataclass(frozen=True, slots=True)
class RowPlugs:
    """What the caller has for all rows."""

    backend: CodergenBackend | None = None  #: Answers prompts, and is open already; None: each row has one of its own.
    sinks: Sequence[EventSink] = ()  #: Take the row's events; quick, and never raising.
    #: The way to the workers, open already; None: each row has one of its own, if any.
    shipping: Shipping | None = None
    tape: Tape | None = None  #: What the calls of all rows are recorded on or replayed from; None without a cassette.
    funds: Funds | None = None  #: What the row may spend, with the others; None where nothing bounds them together.


_NO_PLUGS = RowPlugs()


async def run_row(pipeline: Definition, task: RowTask, options: RunOptions, plugs: RowPlugs = _NO_PLUGS) -> RowResult:
    """Bring a row to its end, from wherever its directory says that it stands.

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


async def _run(pipeline: Definition, task: RowTask, options: RunOptions, plugs: RowPlugs) -> RowResult:
    own = replace(options, logs_root=task.directory)
    seams = seams_of(own)
    if finished := _finished(pipeline, task, own, seams):
        return finished
    start = _beginning(pipeline, task, own, seams)
    try:
        wired = wire(
            pipeline,
            own,
            seams,
            start,
            is_waited_for=True,
            inherited=Inherited(
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
    return _row_result(task, await wired.work())


def _beginning(pipeline: Definition, task: RowTask, options: RunOptions, seams: Seams) -> Beginning:
    """Where the row begins or goes on; one that was cut off before its first record begins anew."""
    if task.directory is not None and has_event_log(task.directory):
        try:
            return continue_run(
                pipeline,
                task.directory,
                options,
                seams,
                on_graph_change=task.on_graph_change,
                rewind=rewind_of_failure(pipeline, task.directory, options) if task.is_failure_retried else None,
            )
        except RunNotFound:
            pass
    return begin(pipeline, options, seams, inputs=task.inputs)


def _finished(pipeline: Definition, task: RowTask, options: RunOptions, seams: Seams) -> RowResult | None:
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
        return None  # a bound, or a backend that was down: it may go on now
    if current.manifest.get("status") != current.status:
        complete_end(pipeline, directory, options, seams)
    return msgspec.structs.replace(_row_result(task, run.result(0.0)), was_finished=True)


def _row_result(task: RowTask, result: RunResult) -> RowResult:
    return RowResult(
        task.row,
        _row_status(result),
        reason=result.reason[:REASON_CHARS],
        run_id=result.run_id,
        directory=_directory_name(task),
        stages=len(result.completed_nodes),
        duration=round(result.duration, 3),
        usage=result.usage,
        is_unmeasured=result.is_unmeasured,
        outputs={
            key: value
            for key in task.outputs
            if (value := named_value(result.context.get, key, _ABSENT)) is not _ABSENT
        },
        marks=result.marks,
    )


def _row_status(result: RunResult) -> RowStatus:
    if result.bound in MAP_BOUNDS:
        return "interrupted"
    return "success" if result.is_success else "fail" if result.status == "fail" else "interrupted"


def _failed(task: RowTask, reason: str) -> RowResult:
    return RowResult(task.row, "fail", reason=reason[:REASON_CHARS], directory=_directory_name(task))


def _directory_name(task: RowTask) -> str:
    return task.directory.name if task.directory is not None and task.directory.exists() else ""
