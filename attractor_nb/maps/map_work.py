"""Runs the rows of a map, N at a time, until all have ended or no further row may be started."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from attractor_nb.context import Context
from attractor_nb.decisions.bounds import MAP_BOUNDS, Account, MapBounds, map_bounds_of, rows_used_up, spent_by_rows
from attractor_nb.decisions.retries import outcome_of_exception
from attractor_nb.engine.attempt_spending import Funds
from attractor_nb.engine.runner import closed
from attractor_nb.errors import AttractorError, ContextValueError, OptionError, RunError, StorageError
from attractor_nb.logs import own_logger
from attractor_nb.maps.row_run import RowServices, RowTask, Shipment, lost_before, run_row
from attractor_nb.maybe_async import call
from attractor_nb.model.events import (
    SESSION_ENDS,
    Event,
    InterviewCompleted,
    InterviewStarted,
    InterviewTimeout,
    PipelineCompleted,
    PipelineFailed,
    StageStarted,
)
from attractor_nb.model.outcome import Usage
from attractor_nb.model.redacted import MAX_DEPTH
from attractor_nb.model.row_result import RowResult
from attractor_nb.model.states import recorded_status
from attractor_nb.model.stop import is_shortage
from attractor_nb.protocols import BackendLifetime, CodergenBackend, EventSink
from attractor_nb.runtime.prepare.run_options import MapOptions, RunOptions, as_list, as_path, check_names, drop_unset
from attractor_nb.storage.run_listing import summarize

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.maps.map_view import MapView
    from attractor_nb.runtime.chosen_plugs import Recording
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.sessions import SessionRecorder
    from attractor_nb.storage.map_directory import MapDirectory
    from attractor_nb.workers.shipping import Shipping


LOGGER = own_logger(__name__)
ENDED_ROWS: Final = frozenset({"success", "fail"})
CANCELLED = "cancelled"
STOPPED = "stopped"


class RowFollower(Protocol):
    """Work on each row that ends, as part of the map: it holds a place of ``max_parallel``, and a stop ends it."""

    def files(self) -> Mapping[str, bytes]:
        """Files to write into the directory of a new map, before its manifest."""
        ...

    def open(self, directory: Path) -> None:
        """The map begins or continues in a directory."""
        ...

    async def follow(self, result: RowResult) -> Usage:
        """A row has ended; returns the usage of the calls made on it, which counts against the bounds of the map."""
        ...

    async def close(self) -> None:
        """No further row follows; called once at the end of a session, whatever happened."""
        ...


@dataclass(slots=True)
class MapWork:
    """The work of one map."""

    pipeline: Definition  #: The pipeline to run.
    tasks: Sequence[RowTask]  #: All rows.
    options: MapOptions  #: The map's own options.
    run_options: RunOptions  #: Those of each row.
    view: MapView  #: The displayed state.
    directory: MapDirectory | None  #: The map's directory; None when nothing is kept.
    backend: CodergenBackend | None  #: Answers the prompts of all rows; None: each row has one of its own.
    recorder: SessionRecorder | None = None  #: Keeps the session's status, or None.
    shipping: Shipping | None = None  #: The way to the workers of ``executor=``, for all rows; opened and closed here.
    shipment: Shipment | None = None  #: The way of whole rows on it; None when their stages travel.
    #: Recording of the calls of all rows; None without a cassette.
    recording: Recording | None = None
    follower: RowFollower | None = None  #: Has each row that ended before the next is started, or None.
    results: dict[int, RowResult] = field(default_factory=dict[int, RowResult])  #: Results of the rows so far.
    #: Called with each row that has ended; quick.
    observers: list[Callable[[RowResult], object]] = field(default_factory=list["Callable[[RowResult], object]"])
    _bounds: MapBounds = field(init=False)
    _funds: Funds | None = field(init=False)
    """Common account of all rows; None without common bounds."""
    _spent_before: dict[int, Funds] = field(default_factory=dict[int, Funds])
    """Earlier spending of rows that are still to be resumed."""
    _halted: str = ""
    _is_interrupted: bool = False
    _running: dict[int, asyncio.Task[RowResult]] = field(default_factory=dict[int, "asyncio.Task[RowResult]"])

    def __post_init__(self) -> None:
        self._bounds = map_bounds(self.options)
        self._funds = _funds_of(self._bounds)

    def stop(self) -> None:
        """Start no further rows; active rows run to their end. From any thread."""
        self._halt(STOPPED, is_interrupted=True)

    async def run(self) -> None:
        """Run to the end, a bound, or a stop; then ``results`` has all rows, and ``view`` its end."""
        try:
            try:
                await self._open_backend()
                await self._run_rows()
            finally:
                await self._close_backend()
                if self.follower is not None:
                    await self.follower.close()
            self._end()
        except RunError as lost:
            self.view.end("interrupted", lost.message)
            raise
        finally:
            if self.directory is not None:
                self.directory.close()
            await self._close_session()

    async def _run_rows(self) -> None:
        await self._recall()
        tasks = iter(self.tasks)
        count = min(self.options.max_parallel, len(self.tasks))
        workers = {asyncio.create_task(self._work(tasks)) for _ in range(count)}
        pending = workers
        while pending:
            try:
                _, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_EXCEPTION)
            except asyncio.CancelledError:
                self._halt(CANCELLED, is_interrupted=True)
                self._cancel_rows()
            if any(worker.done() and worker.exception() for worker in workers):
                self._halt("the map was lost")
                self._cancel_rows()
        for worker in workers:
            worker.result()  # raises what made it end early

    async def _recall(self) -> None:
        """Count what rows have spent in earlier sessions, before one of this session spends more."""
        if self._funds is not None and self.directory is not None:
            for row, usage in (await asyncio.to_thread(_recorded, self.tasks)).items():
                self._spent_before[row] = self._funds.beneath(Account(), usage)

    def _cancel_rows(self) -> None:
        for task in tuple(self._running.values()):
            task.cancel()

    async def _work(self, tasks: Iterator[RowTask]) -> None:
        """Run one row after the other, for as long as further ones may be started."""
        for task in tasks:
            if not self._may_start():
                return
            if self.directory is not None:
                self.directory.check_owner()
            await self._run_one(task)

    def _may_start(self) -> bool:
        if not self._halted:
            elapsed = time.monotonic() - self.view.began
            spent = self.view.usage if self._funds is None else self._funds.account.spent
            self._halted = rows_used_up(self._bounds, spent, elapsed)
            self.view.reason = self._halted
        return not self._halted

    async def _run_one(self, task: RowTask) -> None:
        row = task.row
        self.view.begin(row)
        records = () if self.recorder is None else (RowRecord(self.recorder, row),)
        tape = None if self.recording is None else self.recording.tape
        funds = None
        if self._funds is not None:
            funds = self._spent_before.pop(row, None) or self._funds.beneath(Account())
        plugs = RowServices(self.backend, (self._follow(row), *records), self.shipping, tape, funds)
        running = asyncio.create_task(self._result_of(task, plugs))
        self._running[row] = running
        try:
            result = await running
        except asyncio.CancelledError:
            if not running.cancelled():
                raise
            return  # before it began
        finally:
            del self._running[row]
            self.view.leave(row)
        self.results[row] = result
        self.view.take(result)
        if funds is not None:
            self._may_start()  # the bound may have ended just this row
        for record in records:
            record.end(result)
        for observer in tuple(self.observers):
            self._tell(observer, result)
        if result.is_unmeasured and result.status == "interrupted":
            self._halt(f"row {row} could not be run: {result.reason}", is_interrupted=True)
        if result.status == "fail" and not result.is_unmeasured and self.options.on_failure == "stop":
            self._halt(f"row {row} failed, and on_failure is stop")

    async def _result_of(self, task: RowTask, plugs: RowServices) -> RowResult:
        result = await self._ran(task, plugs)
        if self.follower is None or result.status not in ENDED_ROWS:
            return result
        try:
            usage = await self.follower.follow(result)
        except asyncio.CancelledError:  # the row has ended all the same: a resume follows it again
            return result
        if plugs.funds is not None and usage != Usage():
            plugs.funds.settle(result.usage + usage)
        return result

    async def _ran(self, task: RowTask, plugs: RowServices) -> RowResult:
        if lost := lost_before(task, self.directory, self.run_options.on_interrupted):
            return lost
        funds = plugs.funds
        if self.shipment is not None and (task.directory is None or not task.directory.exists()):
            return await self._shipped(task, self.shipment, funds)
        if funds is not None:
            funds.settle(Usage())  # the run counts what it has recorded
        result = await run_row(self.pipeline, task, self.run_options, plugs)
        if funds is not None and result.usage.total_tokens + (result.usage.cost_usd or 0.0):
            funds.settle(result.usage)
        return result

    async def _shipped(self, task: RowTask, shipment: Shipment, funds: Funds | None) -> RowResult:
        """Have a row run elsewhere: money is reserved for the whole of it, because its calls are not seen here."""
        if funds is None:
            return await shipment.run(task)
        claim = await funds.claim(f"row {task.row}", kind="row")
        if claim.refused is not None:
            return RowResult(task.row, "not_started", reason=claim.refused.reason)
        actual = None
        try:
            result = await shipment.run(task)
            actual = result.usage
            funds.settle(actual)
            return result
        finally:
            funds.release(claim, actual)

    def _tell(self, observer: Callable[[RowResult], object], result: RowResult) -> None:
        try:
            observer(result)
        except Exception:  # an observer's fault is its own, never the map's
            LOGGER.exception("an observer raised on row %s of a map", result.row)

    def _follow(self, row: int) -> EventSink:
        def enter(event: Event) -> None:
            if isinstance(event, StageStarted):
                self.view.enter(row, event.name)
            elif isinstance(event, InterviewStarted | InterviewCompleted | InterviewTimeout):
                self.view.ask(row, is_open=isinstance(event, InterviewStarted))

        return enter

    def _halt(self, reason: str, *, is_interrupted: bool = False) -> None:
        """Start no further rows. The first reason holds; a cancellation counts in any case."""
        self._halted = self.view.reason = self._halted or reason
        self._is_interrupted = self._is_interrupted or is_interrupted

    def _end(self) -> None:
        """Note the rows that were not started, and how it ended as a whole."""
        for task in self.tasks:
            if task.row not in self.results:
                left = self.results[task.row] = RowResult(task.row, "not_started", reason=self._halted)
                self.view.take(left)
        counts = self.view.counts
        is_unfinished = bool(counts["interrupted"] or counts["not_started"])
        if self._is_interrupted and is_unfinished:
            status, reason = "interrupted", self._halted
        elif counts["interrupted"] and not (counts["fail"] or self._halted):
            status, reason = "interrupted", f"{counts['interrupted']} of {len(self.tasks)} rows can be resumed"
        elif counts["fail"] or is_unfinished:
            status = "fail"
            reason = self._halted or f"{counts['fail'] or counts['interrupted']} of {len(self.tasks)} rows failed"
        else:
            status, reason = "success", ""
        self.view.end(*self._recorded_end(status, reason))

    def _recorded_end(self, status: str, reason: str) -> tuple[str, str]:
        """The end as it is recorded; for want of files or memory the map is interrupted (ruling 51)."""
        if self.directory is not None:
            try:
                self.directory.finish(recorded_status(status), reason, self.view.marks)
            except StorageError as fault:
                if not is_shortage(fault):
                    raise
                return "interrupted", reason or fault.message
        return status, reason

    async def _open_backend(self) -> None:
        """Start the services behind the stages, once for all rows; without it none is started."""
        behind = self._behind
        if behind is None:
            return
        try:
            await behind.open()
        except asyncio.CancelledError:
            self._halt(CANCELLED, is_interrupted=True)
        except Exception as error:  # noqa: BLE001 - a backend that is down is a failure of the map (ruling 30)
            what = "the backend" if self.shipping is None else self.shipping.subject
            self._halt(f"{what} did not start: {outcome_of_exception(error).failure_reason}")

    async def _close_backend(self) -> None:
        if (behind := self._behind) is not None:
            await closed(behind)

    @property
    def _behind(self) -> BackendLifetime | None:
        """The lifetime opened before the first row and closed after the last; workers open a shipped backend."""
        if self.shipping is not None:
            return self.shipping
        return self.backend if isinstance(self.backend, BackendLifetime) else None

    async def _close_session(self) -> None:
        """End the session's status; a fault of it is never the map's."""
        if self.recorder is not None:
            try:
                await call(self.recorder.close)
            except asyncio.CancelledError:  # stopped twice: leave at once
                LOGGER.warning("the session's status was not waited for")
            except AttractorError as error:
                LOGGER.warning("the session's status cannot be written: %s", error)


def _funds_of(bounds: MapBounds) -> Funds | None:
    """The spending limit of all rows of a map together; None without a bound."""
    usd, tokens = bounds.max_budget_usd_all, bounds.max_tokens_all
    if usd is None and tokens is None:
        return None
    return Funds.of_account(Account(None, usd, tokens, lambda usage, _who: spent_by_rows(bounds, usage)))


def _recorded(tasks: Sequence[RowTask]) -> dict[int, Usage]:
    """The usage of rows, as their directories record it."""
    there = ((task.row, task.directory) for task in tasks if task.directory is not None)
    lines = ((row, summarize(directory)) for row, directory in there if directory.exists())
    return {row: line.usage for row, line in lines if line is not None and line.usage is not None}


# The status of a map's rows as a public session of agents (status-schema).


def session_of(rows: Iterable[int], source_file: str, *, place: bool | str | Path) -> SessionRecorder | None:
    """The session of a map's rows, begun; None if none was asked for.

    Args:
        rows: The rows' numbers.
        source_file: The pipeline's file.
        place: The directory under which it lies; True: the working directory; False: none.
    """
    if place is False:
        return None
    from attractor_nb.sessions import SessionRecorder  # noqa: PLC0415 - a fifth of what a pipeline loads, for few

    where = "." if place is True else place
    return SessionRecorder(where, source_file=source_file, items=[_name(row) for row in rows])


class RowRecord:
    """Feeds the agent of one row."""

    def __init__(self, recorder: SessionRecorder, row: int) -> None:
        self._take = recorder.observer_of(_name(row))
        self._has_ended = False

    def __call__(self, event: Event) -> None:
        """Take an event of the row's run."""
        self._has_ended = self._has_ended or isinstance(event, SESSION_ENDS)
        self._take(event)

    def end(self, result: RowResult) -> None:
        """The row has ended, perhaps without an event: it had before, or could not be run at all."""
        if self._has_ended:
            return
        event = _end_of(result)
        event.time = time.time()
        self(event)


def _end_of(result: RowResult) -> Event:
    if result.is_success:
        return PipelineCompleted(duration=result.duration)
    return PipelineFailed(error=result.reason, duration=result.duration)


def _name(row: int) -> str:
    return f"row {row}"


# The inputs of a map: its own options, those of ``run``, and its rows, checked before anything runs.
#
# pandas and numpy are never imported here: a caller that passes their values has them.

SHIP: Final = ("rows", "stages")
ON_FAILURE: Final = ("continue", "stop")
NOT_OF_A_ROW: Final = {
    "logs_root": "map_dir=… is the map's own directory, runs_dir=… the place where one is made",
    "breakpoints": "a row can be debugged as a run of its own: pipeline.run(params=row, breakpoints=[…])",
    "pins": "a row can be run by itself: pipeline.run(params=row, pins={…})",
    "stop_after": "a map runs its rows to their end; max_steps=… bounds each",
}

MAX_ROWS: Final = 1_000_000
_EXAMPLE: Final = 'pipeline.map([{"ticket": "41"}, {"ticket": "42"}])'

Check = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def map_bounds(options: MapOptions) -> MapBounds:
    """The bounds of all rows together."""
    return map_bounds_of({name: getattr(options, name) for name in MAP_BOUNDS})


OWN: Final = frozenset(entry.name for entry in fields(MapOptions))
"""Names of the options that rows do not have from their map."""
_OF_A_RUN: Final = frozenset(entry.name for entry in fields(RunOptions))


def own_options(**given: Any) -> MapOptions:
    """The map's own options, of those of a map and its rows."""
    for name in given:
        if name in NOT_OF_A_ROW:
            raise OptionError(f"{name} is an option of a single run, not of a map", hint=NOT_OF_A_ROW[name])
    check_names(given, OWN | _OF_A_RUN - NOT_OF_A_ROW.keys())
    for name in given.keys() - OWN:
        given.pop(name)
    drop_unset(given)
    return _checked_options(MapOptions(**given))


def _checked_options(options: MapOptions) -> MapOptions:
    map_bounds(options)
    if type(options.max_parallel) is not int or options.max_parallel < 1:
        raise OptionError(f"max_parallel must be a whole number of at least 1, not {options.max_parallel!r}")
    if options.on_failure not in ON_FAILURE:
        raise OptionError(f"on_failure must be continue or stop, not {options.on_failure!r}")
    if options.ship not in (None, *SHIP):
        raise OptionError(f"ship must be rows or stages, not {options.ship!r}")
    for name in as_list("outputs", options.outputs):
        if not isinstance(name, str):
            raise OptionError(f"outputs must be keys of the context, not {name!r}", hint='outputs=["answer"]')
    if not isinstance(options.session, bool | str | PathLike):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise OptionError(f"session must be True or a directory, not {type(options.session).__name__}")
    return replace(
        options,
        map_dir=options.map_dir if options.map_dir is None else as_path(options.map_dir, "map_dir"),
        session=options.session if isinstance(options.session, bool) else as_path(options.session, "session"),
    )


def read_rows(params: object, common: Mapping[str, Any], check: Check) -> list[dict[str, Any]]:
    """The inputs of each row as JSON values.

    Args:
        params: An iterable of dicts, or a pandas or polars DataFrame: its columns are the keys, and what is
            missing in it is None.
        common: Values that every row has unless it has its own.
        check: Gives the values that a run begins with, or raises.
    """
    rows: list[dict[str, Any]] = []
    for row, entry in enumerate(entries_of(params)):
        if row >= MAX_ROWS:
            raise OptionError(f"params has more than {MAX_ROWS:,} rows", hint="map over them in parts")
        rows.append(_checked(row, entry, common, check))
    if not rows:
        raise OptionError("params has no rows, so there is nothing to run", hint=_EXAMPLE)
    return rows


def entries_of(params: object) -> Iterable[object]:
    """The rows of a list of dicts, or of a pandas or polars DataFrame, whose missing values are None."""
    if _is_frame(params, "pandas"):
        return _frame_rows(cast("Any", params))
    if _is_frame(params, "polars"):
        return cast("Any", params).iter_rows(named=True)
    if isinstance(params, str | bytes | Mapping) or not isinstance(params, Iterable):
        given = type(cast("object", params)).__name__
        raise OptionError(f"params must be a list of dicts or a DataFrame, not {given}", hint=_EXAMPLE)
    return cast("Iterable[object]", params)


def _checked(row: int, entry: object, common: Mapping[str, Any], check: Check) -> dict[str, Any]:
    if not isinstance(entry, Mapping):
        raise OptionError(f"params[{row}] must be a dict, not {type(entry).__name__}", hint=_EXAMPLE)
    plain = {key: plain_value(value) for key, value in cast("Mapping[Any, Any]", entry).items()}
    try:
        return Context(check({**common, **plain})).snapshot()
    except ContextValueError as error:
        raise ContextValueError(f"params[{row}]: {error.message}", hint=error.hint) from None
    except OptionError as error:
        raise OptionError(f"params[{row}]: {error.message}", hint=error.hint) from None


def _is_frame(params: object, library: str) -> bool:
    module = sys.modules.get(library)
    return module is not None and isinstance(params, module.DataFrame)


def _frame_rows(frame: Any) -> Iterable[dict[str, Any]]:
    columns = list(frame.columns)
    for column in columns:
        if not isinstance(column, str):
            raise OptionError(
                f"the column {column!r} of params is not text, and context keys are",
                hint="frame.columns = frame.columns.astype(str)",
            )
        if columns.count(column) > 1:
            raise OptionError(f"params has the column {column!r} twice", hint="name the columns apart")
    is_missing = sys.modules["pandas"].isna
    for values in frame.itertuples(index=False, name=None):
        yield {
            column: None if _is_single(value) and is_missing(value) else value
            for column, value in zip(columns, values, strict=True)
        }


def _is_single(value: object) -> bool:
    """True if a cell of a DataFrame holds one value, of which can be said that it is missing."""
    return not isinstance(value, list | dict | tuple | set) and not hasattr(value, "__array_interface__")


def plain_value(value: Any, depth: int = 0) -> Any:
    """The value, numpy's numbers in it as Python's; what cannot be kept is left for the context to refuse."""
    if depth > MAX_DEPTH:
        return value
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {key: plain_value(inner, depth + 1) for key, inner in items}
    if isinstance(value, list):
        return [plain_value(inner, depth + 1) for inner in cast("list[Any]", value)]
    numpy = sys.modules.get("numpy")
    return value.item() if numpy is not None and isinstance(value, numpy.generic) else value
