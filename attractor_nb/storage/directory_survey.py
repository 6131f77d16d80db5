"""What is whole in a run directory and what is damaged, file by file; nothing is changed here.

It reads beside a live owner, follows no link, waits for nothing that was planted, and holds one record of
the log at a time: a log may have gigabytes.
"""

from __future__ import annotations

import contextlib
import os
import stat
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from attractor_nb.errors import CheckpointCorrupt, StorageError
from attractor_nb.storage.checkpoint_file import CHECKPOINT_NAME, read_checkpoint
from attractor_nb.storage.files.atomic import read_plain_file
from attractor_nb.storage.files.disk import entry_names, storage_error
from attractor_nb.storage.log.event_lines import read_record, scan_lines
from attractor_nb.storage.log.event_log import EVENT_LOG_NAME
from attractor_nb.storage.manifest_file import MANIFEST_NAME, read_manifest
from attractor_nb.storage.run_directory import SOURCE_NAME
from attractor_nb.storage.sealed_file import previous_name
from attractor_nb.storage.stages.artifact_store import ARTIFACTS_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from attractor_nb.model.events import Event

MAX_RECORD_BYTES = 64 * 1024 * 1024
_MAX_SOURCE_BYTES = 64 * 1024 * 1024
_CHUNK_BYTES = 1024 * 1024
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FileFinding(msgspec.Struct, frozen=True):
    """How one file stands."""

    name: str  #: Its name in the run directory.
    state: str  #: ``ok``, ``damaged``, ``missing``, or ``older``: the generation before takes its place.
    detail: str = ""  #: What is wrong and where, or what there is to know.


class LogSurvey(msgspec.Struct, frozen=True):
    """How far a log is whole."""

    records: int = 0  #: Records from the first one on without a fault.
    offset: int = 0  #: Byte offset after them.
    size: int = 0  #: Size of the file.
    run_id: str = ""  #: The run, as the first record says.
    token: int = 0  #: Fencing token of the last of these records.
    damage: str = ""  #: What is wrong behind them, or empty.
    cut_bytes: int = 0  #: Bytes behind them of a record that was never finished.


class DirectorySurvey(msgspec.Struct, frozen=True):
    """How the files of a run stand."""

    logs_root: Path  #: The run directory.
    files: tuple[FileFinding, ...]  #: Each file, the log first.
    log: LogSurvey  #: How far the log is whole.
    checkpoint: Mapping[str, Any] | None  #: The newest valid checkpoint of this run, or None.
    manifest: Mapping[str, Any] | None  #: The newest valid manifest of this run, or None.

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is damaged or missing."""
        return all(file.state == "ok" for file in self.files)


def survey_run(logs_root: Path, take: Callable[[Event], None]) -> DirectorySurvey:
    """Look at every file of a run on which its state depends.

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
    """What follows the last whole line, by the log's own reader: free space, an unfinished record, damage."""
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
    """How many records the log had for good when a projection was written; 0 when there is none."""
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
        place = os.open(logs_root / ARTIFACTS_NAME, _READ_FLAGS | os.O_DIRECTORY)
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
