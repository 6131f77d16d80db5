"""``checkpoint.json``: when it is due, how it is written and read (spec 5.3; ruling 29).

It knows the file and the rhythm; what a checkpoint means is the traversal's business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attractor_nb.model.checkpoint import Checkpoint
from attractor_nb.storage.sealed_file import SealedFile, read_generations

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.storage.files.disk import Disk
    from attractor_nb.storage.run_directory import RunDirectory

CHECKPOINT_NAME = "checkpoint.json"
INTERVAL_SECONDS = 0.1
GROWTH_FACTOR = 8
"""While stages rush, the log must grow by this many times the last checkpoint before the next one.
All checkpoints together then stay a fraction of the log, however long the run; one each time would
cost n² bytes for n stages. What a resume replays instead takes milliseconds."""


class CheckpointSchedule:
    """Decides when the next unforced checkpoint is due."""

    __slots__ = ("_asked_at", "_saved_at", "_saved_offset", "_saved_size")

    def __init__(self, now: float) -> None:
        """Begin at ``now``, in seconds of a monotonic clock; the first checkpoint is not due yet."""
        self._asked_at = self._saved_at = now
        self._saved_offset = self._saved_size = 0

    def is_due(self, now: float, log_offset: int) -> bool:
        """Whether a checkpoint is due; asked once after each stage.

        It is, when this stage took longer than the interval; or when the interval has passed since
        the last checkpoint and the log has grown enough.
        """
        stage_seconds = now - self._asked_at
        self._asked_at = now
        if stage_seconds > INTERVAL_SECONDS:
            return True
        if now - self._saved_at < INTERVAL_SECONDS:
            return False
        return log_offset - self._saved_offset >= self._saved_size * GROWTH_FACTOR

    def note_saved(self, now: float, log_offset: int, size: int) -> None:
        """A checkpoint of ``size`` bytes was written."""
        self._asked_at = self._saved_at = now
        self._saved_offset = log_offset
        self._saved_size = size


def checkpoint_file(disk: Disk, root: RunDirectory, *, is_synced: bool) -> SealedFile:
    """The checkpoint of a run that this process owns."""
    return SealedFile(disk, root, CHECKPOINT_NAME, is_synced=is_synced)


def read_checkpoint(directory: Path) -> tuple[dict[str, Any] | None, list[str]]:
    """The newest valid checkpoint of a run, and what is wrong with newer ones."""
    return read_generations(directory, CHECKPOINT_NAME, Checkpoint.from_plain)
