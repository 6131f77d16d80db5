"""A map that runs: how far it is, how to stop it, and its result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attractor_nb.pipeline.handle import Handle
from attractor_nb.pipeline.maps.map_result import MapResult
from attractor_nb.views.map_table import map_html, map_summary

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from attractor_nb.model.row_result import RowResult
    from attractor_nb.pipeline.maps.work import MapWork
    from attractor_nb.pipeline.pipeline import Pipeline
    from attractor_nb.views.map_view import MapView


class MapRun(Handle[MapResult]):
    """A handle on a map; ``run.result()`` and ``await run`` wait for it.

    Attributes:
        id: The map's id.
        pipeline: What runs.
        directory: The map's directory; None when nothing is kept.
        view: How it stands: counts, rows under way, failures.
    """

    what = "the map"

    def __init__(self, map_id: str, work: MapWork) -> None:
        super().__init__()
        self.id = map_id
        self.pipeline: Pipeline = work.pipeline
        self.directory: Path | None = None if work.directory is None else work.directory.path
        self.view: MapView = work.view
        self._work = work
        if self.directory is not None:
            self.how_to_go_on = f'continue with pipeline.resume_map("{self.directory}")'
        else:
            self.how_to_go_on = 'nothing of it is kept, for its durability is "none"'

    async def drive(self) -> MapResult:
        """Do the work, and bind its result; for the pipeline package.

        Raises:
            RunLocked: Another process took the map over.
            StorageError: The map's directory, or the cassette, cannot be written.
        """
        work = self._work
        recording = work.recording
        try:
            await work.run()
        except BaseException:
            if recording is not None:
                recording.keep()
            raise
        cassette = None if recording is None else recording.end(work.view.status)
        rows = [work.results[task.row] for task in work.tasks]
        result = MapResult(
            work.view.status,
            work.view.reason,
            rows,
            [task.inputs for task in work.tasks],
            self.id,
            self.directory,
            self.pipeline,
            work.view,
            cassette,
        )
        self.settle(result)
        return result

    @property
    def status(self) -> str:
        """``running``, ``completed``, ``failed`` or ``interrupted``."""
        if self._finished is not None:
            return {"success": "completed", "fail": "failed"}.get(self._finished.status, "interrupted")
        return "interrupted" if self.is_done else "running"

    def on_row(self, observer: Callable[[RowResult], object]) -> None:
        """Call ``observer`` with each row that ends from now on, in the engine's thread: it must be quick."""
        self._work.observers.append(observer)

    def when_done(self, function: Callable[[], object]) -> None:
        """Call a function at the end, from whichever thread that comes in; at once when it has ended."""
        self._future().add_done_callback(lambda _: function())

    def stop(self) -> None:
        """Start no further rows; those that run come to their end. From any thread; see ``cancel``."""
        self._work.stop()

    def _where_stopped(self) -> str:
        return f"the map was stopped after {self.view.ended_count:,} of {self.view.row_count:,} rows"

    def __str__(self) -> str:
        return map_summary(self.view)

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002 - the signature of Jupyter's hook
        return {"text/html": map_html(self.view), "text/plain": str(self)}
