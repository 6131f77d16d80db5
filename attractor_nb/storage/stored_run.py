"""Reading a run without owning it: history, attach, resume (ruling 29).

The newest valid checkpoint and the log after it are what a resume needs; all events are what a replay
needs. Nothing is changed here, and a live owner may go on writing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from attractor_nb.errors import CheckpointCorrupt, RunNotFound
from attractor_nb.model.events.logged_events import LoggedEvents
from attractor_nb.storage.attempt_files import read_stage_text
from attractor_nb.storage.checkpoint_file import CHECKPOINT_NAME, read_checkpoint
from attractor_nb.storage.files.atomic import read_plain_file
from attractor_nb.storage.files.disk import storage_error
from attractor_nb.storage.log.event_log import EVENT_LOG_NAME, read_log
from attractor_nb.storage.log.lock import is_owned, read_owner
from attractor_nb.storage.manifest_file import MANIFEST_NAME, manifest_from_events, read_manifest
from attractor_nb.storage.map_directory import is_map, map_is_no_run
from attractor_nb.storage.older_checkpoints import find_legacy_checkpoints, read_legacy_checkpoint
from attractor_nb.storage.run_directory import SOURCE_NAME
from attractor_nb.storage.run_status import current_status
from attractor_nb.storage.stages.branch_directories import BranchNames, places_of
from attractor_nb.storage.stages.stage_names import recorded_name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from attractor_nb.storage.log.event_lines import LogScan

MAX_SOURCE_BYTES = 64 * 1024 * 1024
_SEE_DOCTOR = "attractor-nb doctor RUN_DIR says what can be saved"


class StoredRun(msgspec.Struct, frozen=True):
    """What a run directory holds."""

    logs_root: Path  #: The run directory.
    manifest: Mapping[str, Any]  #: Entries of manifest.json.
    #: Entries of the newest valid checkpoint, or None: then ``tail`` is the whole log.
    checkpoint: Mapping[str, Any] | None
    tail: LoggedEvents  #: The events after the checkpoint.
    events: LoggedEvents  #: All events, in order.
    source_text: str | None  #: The DOT source, or None when the directory does not have it.
    is_legacy: bool = False  #: Another engine wrote it; there are no events.
    is_owned: bool = False  #: A process owns it right now.
    #: ``pid``, ``host``, ``since`` and ``token`` of the last owner; empty when there is none.
    owner: Mapping[str, Any] = {}
    problems: tuple[str, ...] = ()  #: What was found damaged and could be made good, in words.
    cut_bytes: int = 0  #: Length of a last record that was never finished.

    @property
    def status(self) -> str:
        """How the run stands: as in the manifest, or ``abandoned`` when its owner died (``run_status.py``)."""
        return current_status(self.logs_root, self.manifest).status

    def stage_directory(self, node_id: str) -> Path:
        """Where the files of a node's latest visit are; whether it was visited is another question."""
        return self.logs_root / recorded_name(node_id, self.manifest.get("stage_directories", {}))

    def read_stage_file(self, node_id: str, name: str, branch: str = "") -> str | None:
        """The text of a file of a stage's latest visit; None when there is none."""
        if branch:
            names = BranchNames(places_of(self.events)).names_of(branch, node_id)
            return read_stage_text(self.logs_root.joinpath(*names), name, self.logs_root)
        return read_stage_text(self.stage_directory(node_id), name, self.logs_root)


def check_directory(logs_root: Path) -> None:
    """Check that a place can be a run's."""
    try:
        is_there = logs_root.is_dir()
    except OSError as error:
        raise storage_error(error, "read", logs_root) from error
    if not is_there:
        raise RunNotFound(f"there is no run directory {logs_root}", hint="name the run's own directory")


def has_event_log(logs_root: Path) -> bool:
    """Whether a run of ours is there; without a log it can only be one of the older layout."""
    try:
        os.lstat(logs_root / EVENT_LOG_NAME)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise storage_error(error, "read", logs_root) from error
    return True


def read_facts(logs_root: Path) -> dict[str, Any]:
    """The manifest of a run, made again from its log when its file is lost."""
    manifest, _ = read_manifest(logs_root)
    return manifest or manifest_from_events(read_log(logs_root).events)


def current_directory(logs_root: Path) -> Path:
    """The directory in which a run stands, with its open questions: its own, or that of its latest restart."""
    return current_status(logs_root, read_facts(logs_root)).logs_root


def read_run(logs_root: Path, scan: LogScan | None = None) -> StoredRun:
    """Read a run directory.

    Args:
        logs_root: The run directory.
        scan: What its log holds, when the owner asks, who has read it already.
    """
    logs_root = logs_root.absolute()
    check_directory(logs_root)
    if not has_event_log(logs_root):
        return _read_legacy(logs_root)
    # The checkpoint is read first: its owner may write on, and the log is then the newer of both.
    checkpoint, problems = read_checkpoint(logs_root)
    manifest, manifest_problems = read_manifest(logs_root)
    scan = scan or read_log(logs_root)
    _check_run_ids(logs_root, checkpoint, manifest, scan)
    for name, plain in ((CHECKPOINT_NAME, checkpoint), (MANIFEST_NAME, manifest)):
        _check_length(logs_root, name, plain or {}, scan)
    if checkpoint is not None:
        _check_position(logs_root, checkpoint, scan)
    source = read_plain_file(logs_root / SOURCE_NAME, max_bytes=MAX_SOURCE_BYTES)
    return StoredRun(
        logs_root,
        manifest or manifest_from_events(scan.events),
        checkpoint,
        LoggedEvents(scan.events[checkpoint["log_sequence"] :]) if checkpoint else scan.events,
        scan.events,
        None if source is None else source.decode("utf-8", "surrogatepass"),
        is_owned=is_owned(logs_root),
        owner=read_owner(logs_root),
        problems=tuple(problems + manifest_problems + _rejected_words(scan)),
        cut_bytes=scan.cut_bytes,
    )


def _rejected_words(scan: LogScan) -> list[str]:
    if not scan.rejected:
        return []
    count = f"{scan.rejected} record{'s' * (scan.rejected != 1)}"
    return [f"{EVENT_LOG_NAME} has {count} of an owner that had lost the run; not believed"]


def _check_run_ids(
    logs_root: Path, checkpoint: Mapping[str, Any] | None, manifest: Mapping[str, Any] | None, scan: LogScan
) -> None:
    """Refuse projections of another run: one of the same shape may fit this log to the byte."""
    logged = scan.events[0].run_id if scan.events else ""
    for name, plain in ((CHECKPOINT_NAME, checkpoint), (MANIFEST_NAME, manifest)):
        run_id = str((plain or {}).get("run_id", ""))
        if logged and run_id and run_id != logged:
            raise CheckpointCorrupt(
                f"{logs_root / name} is of run {run_id}, and the log is of run {logged}",
                hint=f"remove it: the log alone is enough to go on; {_SEE_DOCTOR}",
            )


def _check_length(logs_root: Path, name: str, plain: Mapping[str, Any], scan: LogScan) -> None:
    """Refuse a log that has lost records which a projection knows: their stages would be run again."""
    sequence = plain.get("log_sequence", 0)
    if sequence > scan.sequence:
        raise CheckpointCorrupt(
            f"{logs_root / EVENT_LOG_NAME} ends with record {scan.sequence}, but {name} knows {sequence}",
            hint=f"restore the log; {_SEE_DOCTOR}",
        )


def _check_position(logs_root: Path, checkpoint: Mapping[str, Any], scan: LogScan) -> None:
    sequence, offset = checkpoint["log_sequence"], checkpoint["log_offset"]
    if sequence and scan.ends[sequence - 1] != offset:
        raise CheckpointCorrupt(
            f"{logs_root}: the checkpoint does not belong to this log",
            hint=f"remove checkpoint*.json: the log alone is enough to go on; {_SEE_DOCTOR}",
        )


def _read_legacy(logs_root: Path) -> StoredRun:
    if read_checkpoint(logs_root)[0] is not None:
        raise CheckpointCorrupt(
            f"{logs_root / EVENT_LOG_NAME} is gone, and the checkpoint beside it is one of ours",
            hint=f"restore the log; {_SEE_DOCTOR}",
        )
    names = find_legacy_checkpoints(logs_root)
    manifest, problems = read_manifest(logs_root)
    if not names and is_map(logs_root):
        raise map_is_no_run(logs_root)
    if not names:
        raise RunNotFound(
            f"{logs_root} holds no run: it has neither {EVENT_LOG_NAME} nor a checkpoint",
            hint="name the run's own directory",
        )
    checkpoint, damages = read_legacy_checkpoint(logs_root, names)
    if checkpoint is None:
        raise CheckpointCorrupt(
            f"{logs_root} has no valid checkpoint: {'; '.join(damages)}",
            hint="restore one of the files, or start the pipeline anew",
        )
    facts = manifest or {"pipeline_name": checkpoint["pipeline_name"], "status": "interrupted"}
    return StoredRun(
        logs_root,
        facts,
        checkpoint,
        LoggedEvents(),
        LoggedEvents(),
        None,
        is_legacy=True,
        problems=tuple(damages if manifest is None else problems + damages),
    )
