"""The events of a run directory as they are recorded, for whoever looks on: it is not owned, nor changed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import CheckpointCorrupt
from attractor_nb.model.events import PipelineRestarted
from attractor_nb.storage.log.event_log import read_log
from attractor_nb.storage.log.lock import is_owned
from attractor_nb.storage.manifest_file import read_manifest
from attractor_nb.storage.stored_run import check_directory, has_event_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from attractor_nb.model.events import Event

INTERVAL_SECONDS: Final = 0.25


class RunFollower:
    """Looks at a run directory again and again; iterate it.

    Each look gives the events that have come since the last one, the first all that are there. It ends when
    nobody works at the run. A restart is followed into its directory.

    Attributes:
        is_live: Whether somebody worked at the run when it was last looked at.
    """

    def __init__(
        self,
        logs_root: Path,
        *,
        interval_seconds: float = INTERVAL_SECONDS,
        wait: Callable[[float], object] = time.sleep,
        is_once: bool = False,
    ) -> None:
        """Stand before the first event.

        Args:
            logs_root: The run directory.
            interval_seconds: Time between two looks.
            wait: Waits so long.
            is_once: Look once.

        Raises:
            RunNotFound: There is no such directory.
        """
        check_directory(logs_root)
        self._reader = _Reader(logs_root)
        self._interval_seconds = interval_seconds
        self._wait = wait
        self._is_once = is_once
        self.is_live = False

    def __iter__(self) -> Iterator[tuple[Event, ...]]:
        while True:
            self.is_live = is_owned(
                self._reader.logs_root
            )  # first: what an owner wrote before it went is read
            events = self._reader.read()
            yield events
            if events and (fresh := _restart_of(self._reader.logs_root, events[-1])) is not None:
                self._reader = _Reader(fresh)
            elif self._is_once or not self.is_live:
                return
            else:
                self._wait(self._interval_seconds)


class _Reader:
    """Reads a log bit by bit."""

    def __init__(self, logs_root: Path) -> None:
        self.logs_root = logs_root
        self._offset = 0
        self._sequence = 0

    def read(self) -> tuple[Event, ...]:
        """The events since the last look."""
        try:
            scan = read_log(self.logs_root, offset=self._offset, sequence=self._sequence)
        except CheckpointCorrupt:
            # Who takes a run over leaves out what the owner before him had not finished: look from the front.
            scan = read_log(self.logs_root)
        known, self._offset, self._sequence = self._sequence, scan.offset, scan.sequence
        return tuple(event for event in scan.events if event.sequence > known)


def _restart_of(logs_root: Path, last: Event) -> Path | None:
    """Where the run goes on, when a restart is the last that happened there, even if it was moved."""
    if not isinstance(last, PipelineRestarted):
        return None
    manifest, _ = read_manifest(logs_root)
    first = logs_root.parent if (manifest or {}).get("restart_of") else logs_root
    fresh = first / Path(last.logs_root).name
    return fresh if fresh != logs_root and has_event_log(fresh) else None
