"""Saves what is whole of a damaged run into a new run directory, which can be resumed.

Never in place, and nothing is made up: the records up to the damage are taken, or the checkpoint where that
is newer, and a record of the new log says so. What stages left is copied as it is, plain files only. The new
log gets its name last, so that a salvage which was cut off is not taken for a run.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from attractor_nb.errors import CheckpointCorrupt, StorageError
from attractor_nb.model.events import RunWarning, StageStarted
from attractor_nb.storage.checkpoint_file import CHECKPOINT_NAME
from attractor_nb.storage.directory_survey import known_records, open_plain
from attractor_nb.storage.files.atomic import TEMPORARY_PREFIX
from attractor_nb.storage.files.disk import Disk, entry_names, storage_error, write_all
from attractor_nb.storage.log.event_lines import FIRST_OWNER, encode_event
from attractor_nb.storage.log.event_log import EVENT_LOG_NAME
from attractor_nb.storage.log.lock import LOCK_NAME, OWNER_NAME
from attractor_nb.storage.manifest_file import MANIFEST_NAME
from attractor_nb.storage.run_directory import RunDirectory, make_directory
from attractor_nb.storage.sealed_file import SealedFile, previous_name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from attractor_nb.storage.directory_survey import DirectorySurvey

_CHUNK_BYTES = 1024 * 1024
_MAX_DEPTH = 32
_NOT_COPIED = frozenset(
    {
        EVENT_LOG_NAME,
        CHECKPOINT_NAME,
        previous_name(CHECKPOINT_NAME),
        MANIFEST_NAME,
        previous_name(MANIFEST_NAME),
        LOCK_NAME,
        OWNER_NAME,
    }
)
UNFINISHED_LOG = "events.jsonl.unfinished"
_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class SalvagePlan(msgspec.Struct, frozen=True):
    """What a salvage takes."""

    records: int  #: How many records of the log.
    is_from_checkpoint: bool  #: The state is that of the checkpoint, because it is newer than these records.
    lost: str  #: What is lost, in words; empty when nothing is.


def plan_salvage(survey: DirectorySurvey) -> SalvagePlan | None:
    """What can be saved of a run; None when nothing can be resumed."""
    log = survey.log
    checkpointed = known_records(survey.checkpoint)
    known = max(checkpointed, known_records(survey.manifest))
    lost = f"what followed record {log.records} of the log" if log.damage else ""
    if known > log.records:
        lost = f"records {log.records + 1} to {known} of the log, and whatever followed"
    if checkpointed > log.records:
        return SalvagePlan(log.records, is_from_checkpoint=True, lost=lost)
    if not log.records:
        return None
    return SalvagePlan(log.records, is_from_checkpoint=False, lost=lost)


def salvage(
    survey: DirectorySurvey,
    facts: Mapping[str, Any],
    target: Path,
    *,
    suspect: StageStarted | None,
    disk: Disk,
    now: float,
) -> None:
    """Write what is whole of a run into a new directory.

    Args:
        survey: How its files stand.
        facts: The manifest of the new directory.
        target: The new directory; it must not be there, or be empty.
        suspect: Intent of the stage at which the run goes on, where records are lost: it may have run, so it
            is recorded as cut off, and a resume asks before it repeats what may have taken effect.
        disk: Where.
        now: The time.
    """
    plan = plan_salvage(survey)
    if plan is None:
        raise CheckpointCorrupt(
            f"{survey.logs_root}: neither a record of the log nor a checkpoint is whole", hint="start the pipeline anew"
        )
    make_directory(disk, target, is_synced=True)
    if not target.is_dir():
        raise StorageError(f"{target} is not a directory", path=str(target), hint="name a new directory")
    if any(target.iterdir()):
        raise StorageError(f"{target} is not empty", path=str(target), hint="name a new directory")
    root = RunDirectory(disk, target)
    try:
        _copy_evidence(disk, survey.logs_root, root.descriptor)
        offset, sequence = _write_log(disk, root, survey, plan, suspect, now)
        SealedFile(disk, root, MANIFEST_NAME, is_synced=True).write(facts)
        if plan.is_from_checkpoint and survey.checkpoint is not None:
            place = {"log_sequence": sequence, "log_offset": offset}
            SealedFile(disk, root, CHECKPOINT_NAME, is_synced=True).write({**survey.checkpoint, **place})
        disk.rename(UNFINISHED_LOG, EVENT_LOG_NAME, root.descriptor)
        disk.sync(root.descriptor)
    except OSError as error:
        raise storage_error(error, "write", target) from error
    finally:
        root.close()


def _write_log(
    disk: Disk, root: RunDirectory, survey: DirectorySurvey, plan: SalvagePlan, suspect: StageStarted | None, now: float
) -> tuple[int, int]:
    """Copy the whole records, and say what is lost; offset and number of the record that says so."""
    log = survey.log
    sequence, offset = plan.records, 0
    target = disk.create(UNFINISHED_LOG, root.descriptor)
    try:
        if plan.records:
            offset = _copy_bytes(disk, open_plain(EVENT_LOG_NAME, survey.logs_root), target, log.offset)
        if plan.lost:
            run_id = log.run_id or str((survey.checkpoint or {}).get("run_id", ""))
            token = max(log.token, FIRST_OWNER)
            message = f"saved from {survey.logs_root}; lost: {plan.lost}"
            sequence += 1
            line = encode_event(RunWarning(sequence=sequence, time=now, run_id=run_id, message=message), token)
            offset += len(line)
            if suspect is not None:
                intent = replace(suspect, sequence=sequence + 1, time=now, run_id=run_id)
                line += encode_event(intent, token)
            write_all(disk, target, line)
        disk.sync(target)
    finally:
        disk.close(target)
    return offset, sequence


def _copy_bytes(disk: Disk, source: int, target: int, size: int) -> int:
    """Copy the beginning of an open file, which is closed; how many bytes, a missing line end included."""
    done, last = 0, b""
    with os.fdopen(source, "rb") as file:
        while done < size and (last := file.read(min(_CHUNK_BYTES, size - done))):
            write_all(disk, target, last)
            done += len(last)
    if last.endswith(b"\n"):
        return done
    write_all(disk, target, b"\n")
    return done + 1


def _copy_evidence(disk: Disk, source: Path, target: int) -> None:
    place = os.open(source, _DIRECTORY_FLAGS)
    try:
        _copy_directory(disk, place, target, skipped=_NOT_COPIED, depth=0)
    finally:
        os.close(place)


def _copy_directory(disk: Disk, source: int, target: int, *, skipped: frozenset[str], depth: int) -> None:
    """Copy plain files and directories; links, pipes and devices are left out."""
    for name in sorted(entry_names(source)):
        facts = os.stat(name, dir_fd=source, follow_symlinks=False)
        if name in skipped or name.startswith(TEMPORARY_PREFIX):
            continue
        if stat.S_ISDIR(facts.st_mode) and depth < _MAX_DEPTH:
            disk.make_directory(name, target)
            inner, made = os.open(name, _DIRECTORY_FLAGS, dir_fd=source), disk.open_directory(name, target)
            try:
                _copy_directory(disk, inner, made, skipped=frozenset(), depth=depth + 1)
            finally:
                os.close(inner)
                disk.close(made)
        elif stat.S_ISREG(facts.st_mode):
            made = disk.create(name, target)
            try:
                with os.fdopen(open_plain(name, source), "rb") as file:
                    while chunk := file.read(_CHUNK_BYTES):
                        write_all(disk, made, chunk)
                disk.sync(made)
            finally:
                disk.close(made)
    disk.sync(target)
