"""Reading a run without owning it: history, attach, resume (ruling 29).

The newest valid checkpoint and the log after it are what a resume needs; all events are what a replay
needs. Nothing is changed here, and a live owner may continue to write.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any, Final

import msgspec

from attractor_nb.errors import CheckpointCorrupt, RunNotFound, StorageError
from attractor_nb.model.events import ChildStarted, Event, StageStarted
from attractor_nb.model.events.logged_events import LoggedEvents
from attractor_nb.storage.attempt_files import read_stage_text
from attractor_nb.storage.checkpoint_file import (
    CHECKPOINT_NAME,
    find_legacy_checkpoints,
    read_checkpoint,
    read_legacy_checkpoint,
)
from attractor_nb.storage.child_directories import keep_source
from attractor_nb.storage.files.atomic import entries_below, read_plain_file, write_whole
from attractor_nb.storage.files.disk import Disk, storage_error
from attractor_nb.storage.log.event_log import EVENT_LOG_NAME, read_log
from attractor_nb.storage.log.lock import LOCK_NAME, OWNER_NAME, is_owned, read_owner
from attractor_nb.storage.manifest_file import MANIFEST_NAME, current_status, manifest_from_events, read_manifest
from attractor_nb.storage.map_directory import is_map, map_is_no_run
from attractor_nb.storage.run_directory import SOURCE_NAME, THREADS_NAME, VISITS_NAME, WORKSPACE_NAME, RunDirectory
from attractor_nb.storage.stages.artifact_store import ARTIFACTS_NAME
from attractor_nb.storage.stages.branch_directories import BranchNames, places_of
from attractor_nb.storage.stages.stage_directories import StageNames, recorded_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from attractor_nb.storage.log.event_lines import LogScan


MAX_SOURCE_BYTES = 64 * 1024 * 1024
_SEE_DOCTOR = "attractor-nb doctor RUN_DIR says what can be saved"


class StoredRun(msgspec.Struct, frozen=True):
    """The content of a run directory."""

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
    problems: tuple[str, ...] = ()  #: Damage that was repaired, in words.
    cut_bytes: int = 0  #: Length of a last record that was never finished.

    @property
    def status(self) -> str:
        """The status of the run: as in the manifest, or ``abandoned`` when its owner died (see ``current_status``)."""
        return current_status(self.logs_root, self.manifest).status

    def stage_directory(self, node_id: str) -> Path:
        """The directory of a node's latest visit; it may not exist, if the node was not visited."""
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
    """True if a run of this engine is there; without a log it can only be one of the older layout."""
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
    """The current directory of a run, with its open questions: its own, or that of its latest restart."""
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
    return [f"{EVENT_LOG_NAME} has {count} of an owner that had lost the run; ignored"]


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
                hint=f"remove it: the log alone is enough to resume; {_SEE_DOCTOR}",
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
            hint=f"remove checkpoint*.json: the log alone is enough to resume; {_SEE_DOCTOR}",
        )


def _read_legacy(logs_root: Path) -> StoredRun:
    if read_checkpoint(logs_root)[0] is not None:
        raise CheckpointCorrupt(
            f"{logs_root / EVENT_LOG_NAME} is gone, and the checkpoint beside it is of this engine",
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


# The files that a fork copies from its parent's directory: the evidence and the values up to the fork.
#
# The parent is read, and neither changed nor locked, for it may be running. Later visits are left out.

MAX_BYTES: Final = 1024 * 1024 * 1024
MAX_TRIES: Final = 5
"""Most rereads of files that a running parent moved meanwhile."""
_OWNERS: Final = frozenset({LOCK_NAME, OWNER_NAME})
_Stage = tuple[str, str]
"""Path of the branch, and the node."""
_Attempt = tuple[int, int]


def copied_files(stored: StoredRun, counted: Sequence[Event]) -> dict[str, bytes]:
    """The files of a run that a fork has, too, by their path in its directory.

    Args:
        stored: The parent's directory.
        counted: The events of it that the fork has.
    """
    for _ in range(MAX_TRIES):
        events = read_log(stored.logs_root).events
        try:
            files = dict(_all_files(stored, events, counted))
        except FileNotFoundError:  # a parent that runs has moved it
            continue
        if _attempts(read_log(stored.logs_root).events) == _attempts(events):
            return files
    raise StorageError(
        f"{stored.logs_root} begins stages faster than their files can be copied",
        path=str(stored.logs_root),
        hint="fork it when it waits or has ended",
    )


def _all_files(stored: StoredRun, events: Sequence[Event], counted: Sequence[Event]) -> Iterator[tuple[str, bytes]]:
    room = MAX_BYTES
    root = stored.logs_root
    for source, target in _pairs(stored, events, counted):
        data = read_plain_file(root / source, max_bytes=room)
        if data is None:
            raise FileNotFoundError(source)
        room -= len(data)
        yield target, data


def _pairs(stored: StoredRun, events: Sequence[Event], counted: Sequence[Event]) -> Iterator[tuple[str, str]]:
    """Each file that is copied: its path there, and its path in the fork."""
    root = stored.logs_root
    there, here = _attempts(events), _attempts(counted)
    plain = StageNames(stored.manifest.get("stage_directories", {}))
    sources = plain, BranchNames(places_of(events))
    targets = plain, BranchNames(places_of(counted))
    for stage, valid in here.items():
        places = _place(sources, stage), _place(targets, stage)
        yield from _stage_pairs(root, *places, there[stage], valid)
    for name in _files_below(root, ARTIFACTS_NAME):
        yield name, name
    for folder in (THREADS_NAME, WORKSPACE_NAME):
        yield from ((name, name) for name in _files_below(root, folder))
    for place in dict.fromkeys(event.child_root for event in counted if isinstance(event, ChildStarted)):
        if place and not place.startswith("/") and ".." not in place.split("/"):
            yield from ((name, name) for name in _files_below(root, place))


def _stage_pairs(
    root: Path, source: str, target: str, there: Sequence[_Attempt], valid: Sequence[_Attempt]
) -> Iterator[tuple[str, str]]:
    """The files of a stage: those of its latest attempt that counts in its directory, the others under it."""
    latest = valid[-1]
    wanted = {f"{visit}.{attempt}" for visit, attempt in valid}
    visits = f"{source}/{VISITS_NAME}/"
    is_own = there[-1] == latest
    home = f"{source}/" if is_own else f"{visits}{latest[0]}.{latest[1]}/"
    for name in _files_below(root, source):
        if name.startswith(home) and not (is_own and name.startswith(visits)):
            yield name, f"{target}/{name.removeprefix(home)}"
        elif name.startswith(visits):
            inside = name.removeprefix(visits)
            if inside.partition("/")[0].partition("-")[0] in wanted:
                yield name, f"{target}/{VISITS_NAME}/{inside}"


def _attempts(events: Iterable[Event]) -> dict[_Stage, list[_Attempt]]:
    """The attempts of each stage, in their order."""
    found: dict[_Stage, list[_Attempt]] = {}
    for event in events:
        if isinstance(event, StageStarted):
            found.setdefault((event.branch, event.name), []).append((event.visit, event.attempt))
    return found


def _place(names: tuple[StageNames, BranchNames], stage: _Stage) -> str:
    """The path of a stage in its run directory."""
    plain, in_branches = names
    branch, node_id = stage
    return "/".join(in_branches.names_of(branch, node_id)) if branch else plain.name_of(node_id)


def _files_below(root: Path, place: str) -> list[str]:
    """The plain files below a place in a run directory, by their path from it; links lead nowhere."""
    folder = root / place
    if not folder.is_dir() or folder.is_symlink():
        return []

    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise storage_error(error, "read", folder) from error

    entries = entries_below(folder, is_left_out=lambda name: name.rpartition("/")[2] in _OWNERS, onerror=refuse)
    return [f"{place}/{name}" for name, facts in entries if stat.S_ISREG(facts.st_mode)]


# The texts of the pipelines that a run and its children execute, as its directory keeps them.


def write_sources(
    disk: Disk, root: RunDirectory, text: str, child_texts: Mapping[str, str], *, is_synced: bool
) -> None:
    """Write the source of a run, and those of its children by the places of their runs."""
    data = text.encode("utf-8", "surrogatepass")
    write_whole(disk, root.descriptor, SOURCE_NAME, data, directory=root.path, is_synced=is_synced)
    for home, child_text in child_texts.items():
        keep_source(disk, root.path / home, child_text, is_synced=is_synced)


def source_of(root: RunDirectory) -> str:
    """The source of a run that this process owns."""
    return (root.path / SOURCE_NAME).read_bytes().decode("utf-8", "surrogatepass")
