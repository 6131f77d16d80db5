"""``checkpoint.json``: when it is due, how it is written and read (spec 5.3; ruling 29).

It knows the file and the rhythm; what a checkpoint means is the traversal's business.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from attractor_nb.errors import StorageError
from attractor_nb.model.checkpoint import Checkpoint
from attractor_nb.model.outcome import read_status
from attractor_nb.storage.files.atomic import read_plain_file
from attractor_nb.storage.files.strict_json import MAX_BYTES, JsonProblem, read_json
from attractor_nb.storage.sealed_file import SealedFile, read_generations, wrong_shape

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
        """True if a checkpoint is due; asked once after each stage.

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


# Checkpoints of other engines: the migration path of run-directory.md.
#
# Two older layouts are read, never written: a ``checkpoint_dir`` of timestamped
# ``checkpoint_<ms>.json`` files, and a run directory with a plain ``checkpoint.json`` and no log of
# ours. Both become our own checkpoint form without ``next_node`` and ``state``.

_STAMPED = re.compile(r"checkpoint_([0-9]{1,20})\.json")


def find_legacy_checkpoints(directory: Path) -> list[str]:
    """Names of the checkpoint files of other engines in a directory, newest first."""
    names = [entry.name for entry in directory.iterdir()]
    stamped = [(int(found[1]), name) for name in names if (found := _STAMPED.fullmatch(name))]
    single = [CHECKPOINT_NAME] if CHECKPOINT_NAME in names else []
    return single + [name for _, name in sorted(stamped, reverse=True)]


def read_legacy_checkpoint(directory: Path, names: list[str]) -> tuple[dict[str, Any] | None, list[str]]:
    """The newest valid one of these checkpoint files in our form, and what is wrong with newer ones."""
    problems: list[str] = []
    for name in names:
        try:
            data = read_plain_file(directory / name, max_bytes=MAX_BYTES)
            checkpoint = _converted(read_json(data or b""))
            Checkpoint.from_plain(checkpoint)
        except JsonProblem as problem:
            problems.append(f"{name} {problem}")
        except StorageError as error:
            problems.append(error.message)
        except ValueError as error:
            problems.append(f"{name} {wrong_shape(error)}")
        else:
            return checkpoint, problems
    return None, problems


def _converted(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise JsonProblem("is not a JSON object")
    plain = cast("dict[str, Any]", value)
    logs, outcomes = _logs(plain.get("logs"))
    return {
        "schema_version": 1,
        "pipeline_name": plain.get("pipeline_name", ""),
        "timestamp": plain.get("timestamp"),
        "current_node": plain.get("current_node"),
        "completed_nodes": plain.get("completed_nodes"),
        "node_retries": plain.get("node_retries") or {},
        "node_outcomes": outcomes,
        "context": plain.get("context", plain.get("context_values")),
        "logs": logs,
    }


def _logs(value: Any) -> tuple[list[str], dict[str, str]]:
    """Log entries as texts, and the outcomes that they tell: an entry may be a text or an object."""
    texts: list[str] = []
    outcomes: dict[str, str] = {}
    for entry in cast("list[Any]", value) if isinstance(value, list) else []:
        if not isinstance(entry, dict):
            texts.append(str(entry))
            continue
        facts = cast("dict[str, Any]", entry)
        node, outcome = str(facts.get("node", "")), str(facts.get("outcome", ""))
        texts.append(f"{node}: {outcome}")
        if node and (status := read_status(outcome)):
            outcomes[node] = status.value
    return texts, outcomes
