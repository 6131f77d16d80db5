"""Scores and reviews of an evaluation: files of JSON lines, such as ``scores.jsonl`` in the directory of its map.

Lines are only appended. A line that a crash cut off is passed over: its scores are made again.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.storage.files.atomic import read_plain_file
from attractor_nb.storage.files.disk import Disk, open_below, storage_error, write_all
from attractor_nb.storage.files.strict_json import JsonProblem, json_bytes, read_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

SCORES_NAME: Final = "scores.jsonl"
_MAX_BYTES: Final = 4 * 1024**3


class ScoreLog:
    """The lines of one file: a scorer's for each row by default."""

    def __init__(self, directory: Path, *, is_synced: bool, name: str = SCORES_NAME, disk: Disk | None = None) -> None:
        """Be ready to append.

        Args:
            directory: The directory of the map.
            is_synced: Each append survives a power loss.
            name: The name of the file.
            disk: The disk; the real one by default.
        """
        self.path = directory / name
        self._directory = directory
        self._is_synced = is_synced
        self._disk = disk or Disk()
        self._writing = threading.Lock()

    def read(self) -> list[dict[str, Any]]:
        """All lines that are whole."""
        data = read_plain_file(self.path, max_bytes=_MAX_BYTES) or b""
        found: list[dict[str, Any]] = []
        for line in data.split(b"\n"):
            try:
                value = read_json(line)
            except JsonProblem:
                continue
            if isinstance(value, dict):
                found.append(cast("dict[str, Any]", value))
        return found

    def append(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Append lines in one write; when this returns they are stored."""
        data = b"".join(json_bytes(line) + b"\n" for line in lines)
        with self._writing:
            try:
                self._append(data)
            except OSError as error:
                raise storage_error(error, "write", self.path) from None

    def _append(self, data: bytes) -> None:
        disk = self._disk
        parent = open_below(self._directory, ())
        try:
            descriptor = disk.open_update(self.path.name, parent, is_append=True)
            try:
                write_all(disk, descriptor, b"\n" + data)  # a line that was cut off before ends here
                if self._is_synced:
                    disk.sync_data(descriptor)
                    disk.sync(parent)
            finally:
                disk.close(descriptor)
        finally:
            disk.close(parent)
