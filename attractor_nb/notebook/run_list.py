"""The runs kept in a directory as a value that reads well in a cell."""

from __future__ import annotations

from pathlib import Path

from attractor_nb.storage.standing import GOES_ON
from attractor_nb.storage.stored_run import RunSummary
from attractor_nb.views.columns import aligned


class RunList(list[RunSummary]):
    """Run directories, newest first; ``Run.load(runs[0].logs_root)`` opens one."""

    def __repr__(self) -> str:
        if not self:
            return "no runs"
        rows = [(run.status, run.pipeline_name, run.start_time, run.logs_root.name) for run in self]
        table = aligned([("status", "pipeline", "started", "directory"), *rows])
        stopped = next((run for run in self if run.status in GOES_ON), None)
        return table if stopped is None else f"{table}\n\n{_how_to_go_on(stopped)}"


def _how_to_go_on(stopped: RunSummary) -> str:
    """The line that goes on with the newest run that stopped, as short as it can be called here."""
    path = stopped.logs_root
    here = Path.cwd()
    place = path.relative_to(here) if path.is_relative_to(here) else path
    return f'{stopped.status}; continue with Run.load("{place.as_posix()}").resume()'
