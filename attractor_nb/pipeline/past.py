"""What a run's handle can do with the run's past: each a thin call, the work is elsewhere.

``Run`` inherits it. Everything here reads the run directory and needs no engine, so it works for a live run,
for one that has ended, and for one that was loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.decisions.journal import Journal
from attractor_nb.errors import RunNotFound
from attractor_nb.storage.stored_run import has_event_log, read_run

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.model.graph import Graph


class Past:
    """The past of a run."""

    id: str
    graph: Graph
    logs_root: Path

    def journal(self) -> Journal:
        """Each visit with its attempts, and the context at any moment, as the log has them now.

        Raises:
            RunNotFound: Nothing of the run is stored (``durability="none"``), or it is gone.
            CheckpointCorrupt: The log is damaged.
        """
        if not has_event_log(self.logs_root):
            raise RunNotFound(
                f"nothing of run {self.id} is stored, so its past cannot be looked at",
                hint='run it with durability="fast" or "full"',
            )
        return Journal(read_run(self.logs_root).events, self.graph.mirrored())
