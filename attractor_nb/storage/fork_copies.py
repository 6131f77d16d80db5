"""What a fork takes with it from its parent's directory: the evidence and the values of the way until there.

It is read, and nothing there is changed or locked: the parent may be running. What belongs to visits that
came later is left behind.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import StorageError
from attractor_nb.model.events import ChildStarted, StageStarted
from attractor_nb.storage.files.atomic import TEMPORARY_PREFIX, read_plain_file
from attractor_nb.storage.files.disk import storage_error
from attractor_nb.storage.log.event_log import read_log
from attractor_nb.storage.log.lock import LOCK_NAME, OWNER_NAME
from attractor_nb.storage.run_directory import THREADS_NAME, VISITS_NAME, WORKSPACE_NAME
from attractor_nb.storage.stages.artifact_store import ARTIFACTS_NAME
from attractor_nb.storage.stages.branch_directories import BranchNames, places_of
from attractor_nb.storage.stages.stage_names import StageNames

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from attractor_nb.model.events import Event
    from attractor_nb.storage.stored_run import StoredRun

MAX_BYTES: Final = 1024 * 1024 * 1024
MAX_TRIES: Final = 5
"""How often files are read again that a running parent moved meanwhile."""
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
    """Where a stage is in its run directory."""
    plain, in_branches = names
    branch, node_id = stage
    return "/".join(in_branches.names_of(branch, node_id)) if branch else plain.name_of(node_id)


def _files_below(root: Path, place: str) -> list[str]:
    """The plain files below a place in a run directory, by their path from it; links lead nowhere."""
    found: list[str] = []
    folder = root / place
    if not folder.is_dir() or folder.is_symlink():
        return found

    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise storage_error(error, "read", folder) from error

    for directory, folders, names in os.walk(folder, onerror=refuse):
        folders.sort()
        for name in sorted(names):
            path = Path(directory, name)
            if name in _OWNERS or name.startswith(TEMPORARY_PREFIX):
                continue
            if stat.S_ISREG(path.lstat().st_mode):
                found.append(path.relative_to(root).as_posix())
    return found
