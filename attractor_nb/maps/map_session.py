"""The status of a map's rows as a session of agents, for everybody to see (status-schema)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from attractor_nb.model.events import Event, PipelineCompleted, PipelineFailed, PipelineInterrupted

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from attractor_nb.model.row_result import RowResult
    from attractor_nb.sessions import SessionRecorder

_ENDS = (PipelineCompleted, PipelineFailed, PipelineInterrupted)


def session_of(rows: Iterable[int], source_file: str, *, place: bool | str | Path) -> SessionRecorder | None:
    """The session of a map's rows, begun; None when nobody asked for one.

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
        self._has_ended = self._has_ended or isinstance(event, _ENDS)
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
