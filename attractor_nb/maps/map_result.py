"""A map while it runs, and what it came to: a small value for each row, the details on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, overload

from attractor_nb.errors import NoSuchRow, OptionError
from attractor_nb.maps.map_view import map_html, map_summary, rows_table
from attractor_nb.model.states import as_recorded
from attractor_nb.runtime.handles.handle import Handle, Work
from attractor_nb.runtime.stored_execution import load_execution
from attractor_nb.views.columns import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from os import PathLike
    from pathlib import Path

    from attractor_nb.cassettes import CassetteReport
    from attractor_nb.maps.map_view import MapView
    from attractor_nb.maps.map_work import MapWork
    from attractor_nb.model.outcome import Usage
    from attractor_nb.model.row_result import RowResult, RowStatus
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.execution import Execution

TABLE_ROWS: Final = 200
_COLUMNS: Final = (
    "status",
    "reason",
    "stages",
    "duration_seconds",
    "tokens",
    "cost_usd",
    "mark",
    "run_id",
    "directory",
)


@dataclass(frozen=True, slots=True, eq=False)
class MapResult(Sequence["RowResult"]):
    """How the rows of a map ended. ``result[3]`` is a row, ``result.run(3)`` all that it did.

    Iterating gives the rows, in the order of the inputs.
    """

    status: str  #: ``success`` when all rows succeeded; ``fail``; or ``interrupted``: a resume goes on with it.
    reason: str  #: Why, unless success.
    rows: Sequence[RowResult]  #: All rows, in the order of the inputs.
    inputs: Sequence[Mapping[str, Any]] = field(repr=False)  #: The inputs of each row.
    map_id: str
    directory: Path | None  #: Its directory; None when nothing is kept.
    pipeline: Definition = field(repr=False)  #: What ran.
    view: MapView = field(repr=False)  #: The same as it is shown.
    outputs: Sequence[str] = ()  #: The context keys that were asked of each row.
    cassette: CassetteReport | None = None  #: What its rows had of their cassette; None without one.

    @overload
    def __getitem__(self, row: int) -> RowResult: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[RowResult]: ...
    def __getitem__(self, row: int | slice) -> RowResult | Sequence[RowResult]:
        try:
            return self.rows[row]
        except (IndexError, TypeError):
            raise NoSuchRow(f"the map has no row {row!r}", hint=f"its rows are 0 to {len(self.rows) - 1}") from None

    def __iter__(self) -> Iterator[RowResult]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def is_success(self) -> bool:
        """Whether all rows succeeded."""
        return self.status == "success"

    @property
    def counts(self) -> dict[RowStatus, int]:
        """How many rows ended in which way."""
        return dict(self.view.counts)

    @property
    def results(self) -> dict[int, RowResult]:
        """The rows that succeeded, by number."""
        return {entry.row: entry for entry in self.rows if entry.status == "success"}

    @property
    def failures(self) -> dict[int, RowResult]:
        """The rows that failed, by number; each has its reason."""
        return {entry.row: entry for entry in self.rows if entry.status == "fail"}

    @property
    def unfinished(self) -> dict[int, RowResult]:
        """The rows that were interrupted or not started, by number: a resume brings them to their end."""
        return {entry.row: entry for entry in self.rows if entry.status in {"interrupted", "not_started"}}

    @property
    def unset_outputs(self) -> list[str]:
        """The outputs that no row has, where at least one row succeeded."""
        if not self.results:
            return []
        return [key for key in self.outputs if not any(key in entry.outputs for entry in self.rows)]

    @property
    def usage(self) -> Usage:
        """What the model calls of all rows consumed."""
        return self.view.usage

    @property
    def mark(self) -> str:
        """What must be said of the results together, as of a run's; empty when there is nothing (ruling 48)."""
        return self.view.marks.words

    @property
    def is_simulated(self) -> bool:
        """Whether answers in them are made up, at least in part."""
        return self.view.marks.is_simulated

    @property
    def duration(self) -> float:
        """Seconds from the call to the end of the last row."""
        return self.view.seconds

    def run(self, row: int) -> Execution:
        """All that a row did, read from its run directory."""
        entry = self[row]
        if self.directory is None or not entry.directory:
            raise OptionError(
                f"nothing is kept of row {row}",
                hint='durability="full" or "fast" keeps a run directory for each row that was started',
            )
        return load_execution(self.directory / entry.directory, self.pipeline)

    def export_html(self, path: str | PathLike[str] | None = None, *, rows: str | None = None) -> Path:
        """Write the map as one page that opens without kernel and network: totals, and a table of its rows.

        Args:
            path: The file; ``map-<id>.html`` in the current directory by default.
            rows: ``failed`` or ``all``: a page of each of these rows too, in a folder beside it.
        """
        from attractor_nb.maps.map_page import export_map  # noqa: PLC0415 - most maps are not exported

        return export_map(self, path, rows=rows)

    def to_frame(self) -> Any:
        """A pandas DataFrame: a line for each row, with its inputs, how it ended, and its outputs.

        An input or output of the name of a column of ours gets ``inputs.`` or ``outputs.`` before it.
        """
        try:
            import pandas as pd  # noqa: PLC0415 - optional, and slow to import
        except ImportError:
            raise OptionError("to_frame() needs pandas, which is not installed", hint="pip install pandas") from None
        return pd.DataFrame(self.lines()).rename_axis("row")

    def lines(self) -> list[dict[str, Any]]:
        """The columns of ``to_frame`` for each row, by name."""
        return [self._line(entry) for entry in self.rows]

    def _line(self, entry: RowResult) -> dict[str, Any]:
        inputs, outputs = self.inputs[entry.row], entry.outputs
        taken = {*_COLUMNS, *outputs}
        line = {f"inputs.{key}" if key in taken else key: value for key, value in inputs.items()}
        usage = entry.usage
        values = (
            entry.status,
            entry.reason,
            entry.stages,
            entry.duration,
            usage.total_tokens,
            usage.cost_usd,
            entry.mark,
            entry.run_id,
            entry.directory,
        )
        line.update(zip(_COLUMNS, values, strict=True))
        line.update({f"outputs.{key}" if key in _COLUMNS else key: value for key, value in outputs.items()})
        return line

    def table(self, limit: int = TABLE_ROWS) -> str:
        """The rows as a plain table, in their order.

        Args:
            limit: How many rows at most.
        """
        return rows_table(self.rows[:limit], left=max(0, len(self.rows) - limit))

    def __str__(self) -> str:
        unset = "".join(f"\n! {words}" for words in unset_words(self))
        return map_summary(self.view, next_call=self._next_call()) + unset

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002 - the signature of Jupyter's hook
        return {"text/html": map_html(self.view, has_times=False), "text/plain": str(self)}

    def _next_call(self) -> str:
        if self.unfinished and self.directory is not None:
            return f'pipeline.resume_map("{self.directory}")'
        failed = next(iter(self.view.failures), None)
        return f"result.run({failed.row})" if failed is not None and failed.directory else ""


def unset_words(result: MapResult) -> list[str]:
    """A sentence for each output that no row has."""
    return [f'no row has the output "{one_line(key)}": no stage set it' for key in result.unset_outputs]


class MapRun(Handle[MapResult]):
    """A handle on a map; ``run.result()`` and ``await run`` wait for it.

    Attributes:
        directory: The map's directory; None when nothing is kept.
        view: How it stands: counts, rows under way, failures.
    """

    def __init__(self, map_id: str, rows: MapWork, work: Work[MapResult]) -> None:
        super().__init__(work)
        self.id = map_id
        self.pipeline: Definition = rows.pipeline
        self.directory: Path | None = None if rows.directory is None else rows.directory.path
        self.view: MapView = rows.view
        self._rows = rows

    @property
    def status(self) -> str:
        """``running``, ``completed``, ``failed`` or ``interrupted``."""
        if (finished := self._work.result) is not None:
            return as_recorded(finished.status)
        return "interrupted" if self.is_done else "running"

    def export_html(self, path: str | PathLike[str] | None = None, *, rows: str | None = None) -> Path:
        """Write the map as one page that opens without kernel and network: totals, and a table of its rows.

        Args:
            path: The file; ``map-<id>.html`` in the current directory by default.
            rows: ``failed`` or ``all``: a page of each of these rows too, in a folder beside it.
        """
        from attractor_nb.maps.map_page import export_map  # noqa: PLC0415 - most maps are not exported

        return export_map(self, path, rows=rows)

    def on_row(self, observer: Callable[[RowResult], object]) -> None:
        """Call ``observer`` with each row that ends from now on, in the engine's thread: it must be quick.

        Args:
            observer: A function of a row's result.
        """
        self._rows.observers.append(observer)

    def when_done(self, function: Callable[[], object]) -> None:
        """Call a function at the end, from whichever thread that comes in; at once when it has ended.

        Args:
            function: A function without arguments.
        """
        self._future().add_done_callback(lambda _: function())

    def stop(self) -> None:
        """Start no further rows; those that run come to their end. From any thread; see ``cancel``."""
        self._rows.stop()

    def _where_stopped(self) -> str:
        return f"the map was stopped after {self.view.ended_count:,} of {self.view.row_count:,} rows"

    def __str__(self) -> str:
        return map_summary(self.view)

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002 - the signature of Jupyter's hook
        return {"text/html": map_html(self.view), "text/plain": str(self)}


def work_of_map(rows: MapWork) -> Work[MapResult]:
    """What is behind the handle of a map."""
    if rows.directory is None:
        return Work("the map", 'nothing of it is kept, for its durability is "none"')
    return Work("the map", f'continue with pipeline.resume_map("{rows.directory.path}")')


async def drive(handle: MapRun, behind: Work[MapResult], rows: MapWork) -> MapResult:
    """Run the rows of a map, and bind its result."""
    recording = rows.recording
    try:
        await rows.run()
    except BaseException:  # an interrupt, too: what was recorded until then is kept
        if recording is not None:
            recording.keep()
        raise
    cassette = None if recording is None else recording.end(rows.view.status)
    behind.result = MapResult(
        rows.view.status,
        rows.view.reason,
        [rows.results[task.row] for task in rows.tasks],
        [task.inputs for task in rows.tasks],
        handle.id,
        handle.directory,
        handle.pipeline,
        rows.view,
        rows.tasks[0].outputs,
        cassette,
    )
    return behind.result
