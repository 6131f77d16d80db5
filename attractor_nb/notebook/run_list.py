"""The runs kept in a directory as a value that reads well in a cell."""

from __future__ import annotations

from attractor_nb.storage.stored_run import RunSummary
from attractor_nb.views.columns import aligned


class RunList(list[RunSummary]):
    """Run directories, newest first; ``Run.load(runs[0].logs_root)`` opens one."""

    def __repr__(self) -> str:
        if not self:
            return "no runs"
        rows = [(run.status, run.pipeline_name, run.start_time, run.logs_root.name) for run in self]
        return aligned([("status", "pipeline", "started", "directory"), *rows])
