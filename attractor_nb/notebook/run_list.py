"""The runs kept in a directory, newest first, as a value that reads well in a cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

from attractor_nb.storage.manifest_file import read_manifest

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class RunEntry:
    """One run directory.

    Attributes:
        directory: Where it is; ``Run.load(entry.directory)`` opens it.
        run_id: The run's id.
        pipeline_name: What ran.
        status: How it stands, by its manifest.
        start_time: When it began, as text (UTC).
    """

    directory: Path
    run_id: str
    pipeline_name: str
    status: str
    start_time: str


class RunList(Sequence[RunEntry]):
    """Run directories, newest first."""

    def __init__(self, entries: Sequence[RunEntry], base: Path) -> None:
        self._entries = tuple(entries)
        self._base = base

    @overload
    def __getitem__(self, index: int) -> RunEntry: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[RunEntry, ...]: ...
    def __getitem__(self, index: int | slice) -> RunEntry | tuple[RunEntry, ...]:
        return self._entries[index]

    def __len__(self) -> int:
        return len(self._entries)

    def __str__(self) -> str:
        if not self._entries:
            return f"no runs in {self._base}"
        rows = [("status", "pipeline", "started", "directory")]
        rows += [
            (entry.status, entry.pipeline_name, entry.start_time, entry.directory.name)
            for entry in self._entries
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        return "\n".join(
            "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]])
            for row in rows
        )

    __repr__ = __str__


def list_runs(base: Path) -> RunList:
    """The runs under a directory; whatever else is there is passed over."""
    entries: list[RunEntry] = []
    for directory in sorted(base.glob("*"), reverse=True):
        manifest = read_manifest(directory)[0] if directory.is_dir() else None
        if manifest is not None:
            run_id, name, status, start = (str(manifest.get(key) or "") for key in _KEYS)
            entries.append(RunEntry(directory, run_id, name, status, start))
    return RunList(entries, base)


_KEYS = ("run_id", "pipeline_name", "status", "start_time")
