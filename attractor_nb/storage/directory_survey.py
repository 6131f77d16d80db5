"""Survey of a run directory: which files are intact and which are damaged. Salvage writes a new directory.

It reads beside a live owner, follows no link, waits for nothing that was planted, and holds one record of
the log at a time: a log may have gigabytes.
"""

from __future__ import annotations

import contextlib
import os
import stat
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec
from msgspec.structs import replace

from attractor_nb.errors import CheckpointCorrupt, RunError, RunNotFound, StorageError
from attractor_nb.model.events import Event, RunWarning, StageStarted
from attractor_nb.platforms import O_CLOEXEC, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK
from attractor_nb.storage.checkpoint_file import CHECKPOINT_NAME, read_checkpoint
from attractor_nb.storage.child_directories import CHILDREN_NAME
from attractor_nb.storage.files.atomic import TEMPORARY_PREFIX, read_plain_file
from attractor_nb.storage.files.disk import Disk, entry_names, storage_error, write_all
from attractor_nb.storage.log.event_lines import FIRST_OWNER, encode_event, read_record, scan_lines
from attractor_nb.storage.log.event_log import EVENT_LOG_NAME, read_log
from attractor_nb.storage.log.lock import LOCK_NAME, OWNER_NAME
from attractor_nb.storage.manifest_file import MANIFEST_NAME, read_manifest
from attractor_nb.storage.run_directory import SOURCE_NAME, THREADS_NAME, RunDirectory, make_directory
from attractor_nb.storage.sealed_file import SealedFile, previous_name
from attractor_nb.storage.stages.artifact_store import ARTIFACTS_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping


MAX_RECORD_BYTES = 64 * 1024 * 1024
_MAX_SOURCE_BYTES = 64 * 1024 * 1024
_CHUNK_BYTES = 1024 * 1024
_READ_FLAGS = os.O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC


class FileFinding(msgspec.Struct, frozen=True):
    """The condition of one file."""

    name: str  #: Its name in the run directory.
    state: str  #: ``ok``, ``damaged``, ``missing``, or ``older``: the generation before takes its place.
    detail: str = ""  #: Description of the damage and its place, or further facts.


class LogSurvey(msgspec.Struct, frozen=True):
    """The intact part of a log, and the damage after it."""

    records: int = 0  #: Records from the first one on without a fault.
    offset: int = 0  #: Byte offset after them.
    size: int = 0  #: Size of the file.
    run_id: str = ""  #: The run, as the first record says.
    token: int = 0  #: Fencing token of the last of these records.
    damage: str = ""  #: Damage after them, or empty.
    cut_bytes: int = 0  #: Bytes behind them of a record that was never finished.


class DirectorySurvey(msgspec.Struct, frozen=True):
    """The condition of the files of a run."""

    logs_root: Path  #: The run directory.
    files: tuple[FileFinding, ...]  #: Each file, the log first.
    log: LogSurvey  #: Intact part of the log.
    checkpoint: Mapping[str, Any] | None  #: The newest valid checkpoint of this run, or None.
    manifest: Mapping[str, Any] | None  #: The newest valid manifest of this run, or None.

    @property
    def is_healthy(self) -> bool:
        """True if nothing is damaged or missing."""
        return all(file.state == "ok" for file in self.files)


def survey_run(logs_root: Path, take: Callable[[Event], None]) -> DirectorySurvey:
    """Inspect every file of a run on which its state depends.

    Args:
        logs_root: The run directory.
        take: Called with each intact event, in order.
    """
    # As for a resume: the checkpoint first, because its owner may write on and the log is then the newer.
    checkpoint, checkpoint_problems = read_checkpoint(logs_root)
    manifest, manifest_problems = read_manifest(logs_root)
    log = survey_log(logs_root, take)
    if log.run_id:
        checkpoint, foreign = _own(checkpoint, CHECKPOINT_NAME, log.run_id)
        checkpoint_problems += foreign
        manifest, foreign = _own(manifest, MANIFEST_NAME, log.run_id)
        manifest_problems += foreign
    files = [
        _log_finding(logs_root, log, {CHECKPOINT_NAME: checkpoint, MANIFEST_NAME: manifest}),
        _projection(logs_root, CHECKPOINT_NAME, checkpoint, checkpoint_problems),
        _projection(logs_root, MANIFEST_NAME, manifest, manifest_problems),
        _source(logs_root),
        *_artifacts(logs_root),
    ]
    return DirectorySurvey(logs_root, tuple(files), log, checkpoint, manifest)


def survey_log(logs_root: Path, take: Callable[[Event], None]) -> LogSurvey:
    """Read a log record by record, as far as it is whole."""
    try:
        descriptor = open_plain(EVENT_LOG_NAME, logs_root)
    except FileNotFoundError:
        return LogSurvey(damage="is gone")
    except OSError as error:
        return LogSurvey(damage=f"cannot be read: {(error.strerror or 'error').lower()}")
    with os.fdopen(descriptor, "rb") as file:
        size = os.fstat(descriptor).st_size
        records = offset = token = 0
        run_id = ""
        while (line := file.readline(MAX_RECORD_BYTES)).endswith(b"\n"):
            found, event = read_record(line[:-1], token)
            if 0 < found < token:  # of an owner who had lost the run: no reader believes it
                offset += len(line)
                continue
            if event is None or event.sequence != records + 1:
                break
            take(event)
            run_id = run_id or event.run_id
            records, offset, token = records + 1, offset + len(line), found
        file.seek(offset)
        rest = file.read(MAX_RECORD_BYTES)
    whole = LogSurvey(records, offset, size, run_id, token)
    return _survey_end(whole, rest, logs_root, take)


def _survey_end(found: LogSurvey, rest: bytes, logs_root: Path, take: Callable[[Event], None]) -> LogSurvey:
    """Survey the rest after the last whole line with the log's own reader: free space, an unfinished record, damage."""
    path = str(logs_root / EVENT_LOG_NAME)
    try:
        scan = scan_lines(rest, path=path, offset=found.offset, sequence=found.records)
    except CheckpointCorrupt as error:
        words = error.message.removeprefix(f"{path}: ")
        return LogSurvey(found.records, found.offset, found.size, found.run_id, found.token, damage=words)
    for event in scan.events:
        take(event)
    return LogSurvey(
        scan.sequence,
        scan.offset,
        found.size,
        found.run_id or (scan.events[0].run_id if scan.events else ""),
        scan.token or found.token,
        cut_bytes=scan.cut_bytes,
    )


def known_records(projection: Mapping[str, Any] | None) -> int:
    """The number of durable log records when a projection was written; 0 without a projection."""
    return int((projection or {}).get("log_sequence", 0))


def open_plain(name: str, place: Path | int) -> int:
    """Open a plain file for reading; no link is followed and no pipe waited for."""
    if isinstance(place, int):
        descriptor = os.open(name, _READ_FLAGS, dir_fd=place)
    else:
        descriptor = os.open(place / name, _READ_FLAGS)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(0, "not a plain file", name)
    return descriptor


def _own(plain: Mapping[str, Any] | None, name: str, run_id: str) -> tuple[Mapping[str, Any] | None, list[str]]:
    """A projection, unless it is of another run."""
    other = str((plain or {}).get("run_id", ""))
    if plain is not None and other and other != run_id:
        return None, [f"{name} is of run {other}"]
    return plain, []


def _log_finding(logs_root: Path, log: LogSurvey, projections: Mapping[str, Mapping[str, Any] | None]) -> FileFinding:
    if log.damage:
        is_gone = not os.path.lexists(logs_root / EVENT_LOG_NAME)
        return FileFinding(EVENT_LOG_NAME, "missing" if is_gone else "damaged", "" if is_gone else log.damage)
    for name, plain in projections.items():
        known = known_records(plain)
        if known > log.records:
            detail = f"ends with record {log.records}, but {name} knows {known}"
            return FileFinding(EVENT_LOG_NAME, "damaged", detail)
    count = f"{log.records:,} record{'s' * (log.records != 1)}"
    unfinished = f", and {log.cut_bytes:,} bytes of one that was never finished" if log.cut_bytes else ""
    return FileFinding(EVENT_LOG_NAME, "ok", count + unfinished)


def _projection(logs_root: Path, name: str, plain: Mapping[str, Any] | None, problems: list[str]) -> FileFinding:
    words = "; ".join(problem.removeprefix(f"{name} ") for problem in problems)
    if plain is None:
        is_there = os.path.lexists(logs_root / name) or os.path.lexists(logs_root / previous_name(name))
        return FileFinding(name, "damaged" if is_there else "missing", words)
    if problems or not os.path.lexists(logs_root / name):
        return FileFinding(name, "older", f"{words or 'missing'}; {previous_name(name)} is used")
    knows = f"up to record {plain['log_sequence']}" if "log_sequence" in plain else ""
    return FileFinding(name, "ok", knows)


def _source(logs_root: Path) -> FileFinding:
    try:
        data = read_plain_file(logs_root / SOURCE_NAME, max_bytes=_MAX_SOURCE_BYTES)
    except StorageError as error:
        return FileFinding(SOURCE_NAME, "damaged", error.message)
    return FileFinding(SOURCE_NAME, "missing" if data is None else "ok")


def _artifacts(logs_root: Path) -> list[FileFinding]:
    """Artifacts whose name, which is the hash of their content, does not fit; one line when all do."""
    try:
        place = os.open(logs_root / ARTIFACTS_NAME, _READ_FLAGS | O_DIRECTORY)
    except FileNotFoundError:
        return []
    except OSError as error:
        return [FileFinding(ARTIFACTS_NAME, "damaged", storage_error(error, "open", ARTIFACTS_NAME).message)]
    try:
        names = sorted(name for name in entry_names(place) if _is_hash_name(name))
        bad = [name for name in names if not _has_hash(name, place)]
    finally:
        os.close(place)
    if not names:
        return []
    if not bad:
        return [FileFinding(ARTIFACTS_NAME, "ok", f"{len(names)} of {len(names)}")]
    return [FileFinding(f"{ARTIFACTS_NAME}/{name}", "damaged", "is not what was stored") for name in bad]


def _is_hash_name(name: str) -> bool:
    stem = name.removesuffix(".json")
    return stem != name and len(stem) == sha256().digest_size * 2 and all(c in "0123456789abcdef" for c in stem)


def _has_hash(name: str, place: int) -> bool:
    digest = sha256()
    with contextlib.suppress(OSError), os.fdopen(open_plain(name, place), "rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
        return digest.hexdigest() == name.removesuffix(".json")
    return False


# Salvage: copies the intact part of a damaged run into a new run directory, which can be resumed.
#
# It never works in place and invents nothing: it takes the records up to the damage, or the checkpoint where that
# is newer, and a record of the new log says so. Files of stages are copied as they are, plain files only. The new
# log gets its name last, so that a salvage which was cut off is not taken for a run.

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
_DIRECTORY_FLAGS = os.O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC


class SalvagePlan(msgspec.Struct, frozen=True):
    """The parts of a damaged run that a salvage copies."""

    records: int  #: Number of records of the log.
    is_from_checkpoint: bool  #: The state is that of the checkpoint, because it is newer than these records.
    lost: str  #: Losses, in words; empty for none.


def plan_salvage(survey: DirectorySurvey) -> SalvagePlan | None:
    """The plan to salvage a run; None when nothing can be resumed."""
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
        survey: The condition of its files.
        facts: The manifest of the new directory.
        target: The new directory; it must not be there, or be empty.
        suspect: Intent of the stage at which the run continues, where records are lost: it may have run, so it
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


# The hash of a whole directory: of every name, link and content below it.

_MAX_BYTES: Final = 1024**3
_DIGEST_CHUNK_BYTES: Final = 1024**2


def directory_digest(directory: Path) -> str:
    """The number of files below a directory and their hash. Follows no link and waits for no pipe.

    Args:
        directory: A run directory, or that of a map.
    """
    whole, count, left = sha256(), 0, _MAX_BYTES

    def refuse(error: OSError) -> NoReturn:
        raise storage_error(error, "read", directory) from error

    try:
        for place, folders, names in os.walk(directory, onerror=refuse):
            folders.sort()
            for path in sorted(Path(place, name) for name in {*names, *folders}):
                facts = path.lstat()
                _add(whole.update, os.fsencode(path.relative_to(directory)))
                if stat.S_ISLNK(facts.st_mode):
                    _add(whole.update, b"-> " + os.fsencode(path.readlink()))
                elif stat.S_ISREG(facts.st_mode):
                    whole.update(b"%d bytes " % facts.st_size)
                    if (left := left - facts.st_size) < 0:
                        raise _too_large(directory)
                    _add_content(whole.update, path)
                    count += 1
    except OSError as error:
        refuse(error)
    return f"{count:,} file{'s' * (count != 1)}, SHA-256 {whole.hexdigest()}"


def _add(update: Callable[[bytes], None], data: bytes) -> None:
    """Add one text, so that no two lists of texts have the same hash."""
    update(b"%d:" % len(data) + data)


def _add_content(update: Callable[[bytes], None], path: Path) -> None:
    with os.fdopen(open_plain(path.name, path.parent), "rb") as file:
        while chunk := file.read(_DIGEST_CHUNK_BYTES):
            update(chunk)


def _too_large(directory: Path) -> StorageError:
    return StorageError(
        f"{directory} has more than 1 GiB, too much to be trusted by a hash",
        path=str(directory),
        hint="move away what the run does not need, or trust all of it: trust=True, --trust",
    )


# Recognition of directories: our own run, one that may become a run or a map, or foreign content (ruling 37).
#
# It only reads.

SHOWN_ENTRIES: Final = 3
_WHOLE = (EVENT_LOG_NAME, CHECKPOINT_NAME)
_BEGAN = frozenset(
    {
        *(OWNER_NAME, SOURCE_NAME, EVENT_LOG_NAME, MANIFEST_NAME, previous_name(MANIFEST_NAME)),
        *(CHILDREN_NAME, ARTIFACTS_NAME, THREADS_NAME),
    }
)
"""Files of a run directory before the first record."""


def check_may_become_run(path: Path) -> None:
    """Look before it is owned."""
    check_free(path, began=_BEGAN, whole=_WHOLE)


def check_became_no_run(path: Path) -> None:
    """Look again, now that it is owned: another run may have begun and ended here meanwhile."""
    for name in _WHOLE:
        if has_content(path, name):
            raise holds_one(path, name)


def check_is_run(path: Path) -> None:
    """Look before anything is written: many programs have an ``events.jsonl``.

    A run that was copied or salvaged has no lock file; its log then says whether it is one.
    """
    if not os.path.lexists(path / EVENT_LOG_NAME):
        reason = f"it has no {EVENT_LOG_NAME}"
    elif not os.path.lexists(path / LOCK_NAME) and not read_log(path).events:
        reason = f"its {EVENT_LOG_NAME} has no record of our own"
    else:
        return
    raise RunNotFound(f"{path} holds no run: {reason}", hint="name the run's own directory")


def check_free(path: Path, *, began: Collection[str], whole: Collection[str]) -> None:
    """Refuse a directory that is neither new nor empty nor ours, before anything is written (ruling 37).

    The lock file is the first thing that we write anywhere, so what is beside none is not ours, whatever
    it is called: a web extension has a ``manifest.json``, too.

    Args:
        path: The directory.
        began: Names that a beginning which was cut off leaves beside the lock file.
        whole: Names of files that a whole run or map has. With one of them and a lock file, the owner is
            asked first.
    """
    names = {entry.name for entry in path.iterdir() if not entry.name.startswith(TEMPORARY_PREFIX)}
    is_ours = LOCK_NAME in names
    taken = [name for name in sorted(whole) if name in names and has_content(path, name)]
    if taken and is_ours:
        return
    if taken:
        raise holds_one(path, taken[0])
    foreign = sorted(names - {LOCK_NAME, *began} if is_ours else names)
    if foreign:
        raise StorageError(
            f"{path} contains files that no run wrote: {listed(foreign)}",
            path=str(path / foreign[0]),
            hint=f"name a directory that is empty or not there yet, such as {path / 'run'}",
        )


def has_content(path: Path, name: str) -> bool:
    """True if a file is more than what a cut-off beginning leaves: empty, or a log without records."""
    if not os.path.lexists(path / name) or not os.lstat(path / name).st_size:
        return False
    if name != EVENT_LOG_NAME:
        return True
    try:
        return bool(read_log(path).events)
    except RunError:
        return True


def holds_one(path: Path, name: str) -> StorageError:
    """The error for a directory that has that file of a run or a map."""
    what = "map" if name.startswith("map.") else "run"
    return StorageError(
        f"{path} holds a {what} already", path=str(path / name), hint="resume it, or choose another directory"
    )


def listed(names: list[str]) -> str:
    """``README.md, src and 2 more``."""
    more = len(names) - SHOWN_ENTRIES
    if more > 0:
        return f"{', '.join(names[:SHOWN_ENTRIES])} and {more} more"
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
