"""A map that runs: how far it is, how to stop it, and its result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attractor_nb.maps.map_result import MapResult
from attractor_nb.maps.map_table import map_html, map_summary
from attractor_nb.runtime.handles.handle import Handle, Work

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from attractor_nb.maps.map_view import MapView
    from attractor_nb.maps.map_work import MapWork
    from attractor_nb.model.row_result import RowResult
    from attractor_nb.runtime.definition import Definition


class MapRun(Handle[MapResult]):
    """A handle on a map; ``run.result()`` and ``await run`` wait for it.

    Attributes:
        id: The map's id.
        pipeline: What runs.
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
            return {"success": "completed", "fail": "failed"}.get(finished.status, "interrupted")
        return "interrupted" if self.is_done else "running"

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
    """Run the rows of a map, and bind its result.

    Raises:
        RunLocked: Another process took the map over.
        StorageError: The map's directory, or the cassette, cannot be written.
    """
    recording = rows.recording
    try:
        await rows.run()
    except BaseException:
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
        cassette,
    )
    return behind.result
