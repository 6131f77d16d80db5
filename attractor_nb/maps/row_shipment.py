"""Whole rows of a map, run by the workers of ``executor=``: which maps can, and what becomes of a row."""

from __future__ import annotations

import asyncio
from dataclasses import MISSING, dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.backends import resolve_backend
from attractor_nb.decisions.ambiguity import MAX_LOST_WORKERS
from attractor_nb.errors import AttractorError, OptionError, RunLocked, StorageError, WorkerLost
from attractor_nb.logs import own_logger
from attractor_nb.model.row_result import RowResult
from attractor_nb.redaction import holds_secret
from attractor_nb.runtime.plugs.executor import backend_name
from attractor_nb.runtime.prepare.run_options import BOUNDS
from attractor_nb.source import SourceText
from attractor_nb.storage.stored_run import read_run

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.decisions.planning.plan import Plan
    from attractor_nb.maps.row_run import RowTask
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.prepare.run_options import RunOptions
    from attractor_nb.storage.map_directory import MapDirectory
    from attractor_nb.workers.shipping import Shipping

LOGGER = own_logger(__name__)
RERUN = "rerun"
ROWS, STAGES = "rows", "stages"
NAME = "<map>"
GATE_TYPE = "wait.human"
_TRAVELLING: Final = frozenset({*BOUNDS, "backend", "checkpoint_every_stage", "durability"})
"""Options that a row has on its worker."""
_OF_THE_CALLER: Final = frozenset(
    {"params", "interviewer", "trust", "logs_root", "runs_dir", "is_shown", "executor", "worker_wait", "host"}
    | {"on_interrupted", "take_over", "secrets", "session"}
)
"""Options that the coordinator follows for a row that travels: what it begins with, where it is kept, who sees it."""
UNKNOWN = (
    "it was begun on a worker and did not come back, so what it did is not known; "
    'resume_map(…, on_interrupted="rerun") runs it again'
)


def ships_rows(pipeline: Definition, options: RunOptions, plan: Plan, ship: str | None) -> bool:
    """Whether whole rows travel, or stages.

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
        raise OptionError(f"whole rows cannot travel to workers: {problem}", hint='use ship="stages"')
    return not problem and (ship == ROWS or not _is_once(plan))


def _is_once(plan: Plan) -> bool:
    """Whether a stage may have an effect that must not happen twice unasked."""
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

    shipping: Shipping  #: The way; whoever has it opens it.
    map_id: str  #: The map; with the row's number it is the id of the row's run.
    work: dict[str, Any]  #: What is the same for all rows, as plain values.
    plug: bytes  #: The pickled backend and handlers.
    is_once: bool  #: A row must not be begun twice unasked.
    directory: MapDirectory | None  #: Where rows are kept; None when nothing is.

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
        from attractor_nb.maps.row_worker import perform_row  # noqa: PLC0415 - for executors alone

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
                "row %s: stayed on its worker, for they are no plain files: %s", task.row, "; ".join(report.left_out)
            )
        if self.directory is not None and report.files:
            self.directory.put_row(task.row, report.files, partial(_check_run, run_id))
        return result


def _check_run(run_id: str, directory: Path) -> None:
    """Check that a directory holds a whole run, and which."""
    events = read_run(directory).events
    if not events or events[0].run_id != run_id:
        raise StorageError(f"what came back is not run {run_id}", path=str(directory))


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
