"""The runs that are kept: look for them, open, tag, resume, delete them, and see the state of active ones.

``runs()`` reads a runs base once; ``table.refreshed()`` reads it again, under the same filters. Nothing here
needs a run's ownership but ``resume`` and ``delete``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Never, overload

from attractor_nb.engine.time_limits import SystemClock
from attractor_nb.errors import OptionError
from attractor_nb.model.states import run_word
from attractor_nb.pipeline.methods.resume_row import Resumable
from attractor_nb.runtime.prepare.run_options import as_path, given_options
from attractor_nb.runtime.workspace.worktree import worktrees_in
from attractor_nb.storage.own_places import refuse_linked
from attractor_nb.storage.run_directory import DEFAULT_RUNS_BASE
from attractor_nb.storage.run_index import list_runs
from attractor_nb.storage.run_listing import RunSummary, change_tags, remove_run
from attractor_nb.studio.history.history_table import Filter, history_table
from attractor_nb.views.table import DisplayedTable, Table, required_pandas

if TYPE_CHECKING:
    from datetime import date
    from pathlib import Path

    from attractor_nb.pipeline.run import Run

_FIELDS = tuple(entry.name for entry in fields(RunSummary))
_VALUES = attrgetter(*_FIELDS)


@dataclass(frozen=True, slots=True)
class RunRow(Resumable):
    """A line of ``runs()``: what is known of a run without opening it, and what can be done with it."""

    def load(self) -> Run | RunTable:
        """The run, as ``Run.load`` gives it; of a map the table of its rows.

        Raises:
            RunNotFound: It is none any more.
            CheckpointCorrupt: It is damaged; says what can be saved.
        """
        if self.is_map:
            return runs(self.logs_root)
        from attractor_nb.pipeline.run import Run  # noqa: PLC0415 - a list needs no engine

        return Run.load(self.logs_root)

    def tag(self, *tags: str) -> tuple[str, ...]:
        """Put tags on it; those that it has then.

        Args:
            *tags: The tags.

        Raises:
            OptionError: A word is not a tag.
            StorageError: They cannot be written.
        """
        return change_tags(self.logs_root, add=tags)

    def untag(self, *tags: str) -> tuple[str, ...]:
        """Take tags away; those that it has then. What it does not have is passed over.

        Args:
            *tags: The tags.
        """
        return change_tags(self.logs_root, remove=tags)

    def delete(self, *, confirm: bool = False) -> str:
        """Remove its directory with everything in it, for good; what stays of it elsewhere, or empty.

        Of a run with ``isolation="worktree"`` the repository forgets the worktree; its branch stays.

        Args:
            confirm: Say True; without it nothing happens but an error.

        Raises:
            OptionError: It was not confirmed.
            RunLocked: A process owns it.
            RunError: Something inside is alive.
            StorageError: It is a link, or the disk refused.
        """
        _check_confirmed(self.logs_root.name, confirm)
        worktrees = worktrees_in(self.logs_root)
        remove_run(self.logs_root.parent, self.logs_root, clock=SystemClock())
        for worktree in worktrees:
            worktree.forget()
        branches = ", ".join(worktree.branch for worktree in worktrees)
        return f"its changes stay on {branches}: git branch -D removes them" if branches else ""

    def __str__(self) -> str:
        return str(history_table([self]))


class RunTable(DisplayedTable, Sequence[RunRow]):
    """The runs and maps of a runs base, newest first: a sequence of rows.

    Attributes:
        base: The runs base.
        filter: What the rows were chosen by.
    """

    def __init__(self, base: Path, rows: Sequence[RunRow], chosen_by: Filter | None = None) -> None:
        self.base = base
        self.filter = chosen_by or Filter()
        self._rows = tuple(rows)

    @overload
    def __getitem__(self, index: int) -> RunRow: ...
    @overload
    def __getitem__(self, index: slice) -> RunTable: ...
    def __getitem__(self, index: int | slice) -> RunRow | RunTable:
        if isinstance(index, slice):
            return RunTable(self.base, self._rows[index], self.filter)
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and not isinstance(other, str) and list(self) == list(other)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]

    __hash__ = None  # type: ignore[assignment]

    def where(
        self,
        *,
        status: str | Sequence[str] | None = None,
        pipeline: str | None = None,
        tag: str | Sequence[str] | None = None,
        since: str | float | date | None = None,
        text: str | None = None,
        kind: str | None = None,
        **unknown: Never,
    ) -> RunTable:
        """Those of its rows that fit all conditions.

        Args:
            status: A status, or several of which it has one.
            pipeline: The name of its pipeline.
            tag: A tag, or several that it must all have.
            since: When it began, or later: a time, ``"2026-11-01"``, or an age as ``"24h"``.
            text: Occurs in any column.
            kind: ``run``, ``map`` or ``evaluation``.
            **unknown: Any other keyword: an error that names the nearest condition.

        Raises:
            OptionError: There is no such condition, or its value means nothing.
        """
        conditions = {"status": status, "pipeline": pipeline, "tag": tag, "since": since, "text": text, "kind": kind}
        narrowed = self.filter.narrowed(**given_options({**conditions, **unknown}))
        return RunTable(self.base, narrowed.chosen(self._rows), narrowed)

    def refreshed(self) -> RunTable:
        """The same filters over the runs base as it is now."""
        return RunTable(self.base, self.filter.chosen(runs(self.base)), self.filter)

    def open(self, index: int) -> Run | RunTable:
        """The run of a row; of a map the table of its rows. The same as ``table[index].load()``.

        Args:
            index: The number of the row, from 0.
        """
        return self[index].load()

    def tag(self, *tags: str) -> RunTable:
        """Put tags on all its rows; the table as it is then.

        Args:
            *tags: The tags.
        """
        for row in self:
            row.tag(*tags)
        return self.refreshed()

    def untag(self, *tags: str) -> RunTable:
        """Take tags away from all its rows; the table as it is then.

        Args:
            *tags: The tags.
        """
        for row in self:
            row.untag(*tags)
        return self.refreshed()

    def delete(self, *, confirm: bool = False) -> RunTable:
        """Remove all its rows for good; the table as it is then. Stops at the first that must stay.

        Args:
            confirm: Say True; without it nothing happens but an error.

        Raises:
            OptionError: It was not confirmed; as of ``RunRow.delete`` else.
        """
        _check_confirmed(f"{len(self)} run{'s' * (len(self) != 1)}", confirm)
        for row in self:
            row.delete(confirm=True)
        return self.refreshed()

    def to_frame(self) -> Any:
        """The rows as a pandas DataFrame, times as UTC timestamps, costs in USD.

        Raises:
            OptionError: pandas is not installed.
        """
        pandas = required_pandas()
        frame = pandas.DataFrame([_record(row) for row in self], columns=list(_record_names()))
        for name in ("start_time", "end_time"):
            frame[name] = pandas.to_datetime(frame[name], utc=True)
        return frame

    @property
    def table(self) -> Table:
        """The rows as a table, with times."""
        return history_table(self._rows, notes=self._notes())

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        lasting = history_table(self._rows, has_times=False, notes=self._notes())
        return lasting._repr_mimebundle_(include, exclude)

    def _notes(self) -> list[str]:
        stopped = next((index for index, row in enumerate(self) if row.is_resumable and not row.is_map), None)
        if stopped is None:
            return []
        status, place = run_word(self[stopped].status), self[stopped].logs_root.as_posix()
        return [f'row {stopped} is {status}; resume it with Run.load("{place}").resume()']


def runs(base: str | Path = DEFAULT_RUNS_BASE) -> RunTable:
    """The runs and maps under a runs base, newest first. Long logs are not read.

    Args:
        base: The runs base, or the directory of a map: then its rows.

    Raises:
        StorageError: It cannot be read, or is in ``.attractor`` of the working directory behind a link.
    """
    path = refuse_linked(as_path(base, "the runs base"), option='runs("DIR")')
    found = list_runs(path)
    return RunTable(path, [RunRow(*_VALUES(entry)) for entry in found])


def _check_confirmed(what: str, confirm: object) -> None:
    if confirm is not True:
        raise OptionError(f"{what} would be deleted for good", hint="delete(confirm=True)")


def _record_names() -> tuple[str, ...]:
    return (
        "kind", "status", "pipeline", "inputs", "start_time", "end_time", "duration", "stages", "tokens", "cost_usd",
        "tags", "is_simulated", "mark", "lineage", "note", "run_id", "logs_root",
    )  # fmt: skip


def _record(row: RunRow) -> dict[str, Any]:
    usage = row.usage
    return {
        **{name: getattr(row, name) for name in _record_names() if name in _FIELDS},
        "pipeline": row.pipeline_name,
        "start_time": row.start_time or None,
        "is_simulated": row.is_simulated,
        "mark": row.mark,
        "tokens": usage.total_tokens if usage else None,
        "cost_usd": usage.cost_usd if usage else None,
        "logs_root": str(row.logs_root),
    }
