"""Recognition of directories: a run of ours, one that may become a run or a map, or foreign content (ruling 37).

It only reads.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import RunError, RunNotFound, StorageError
from attractor_nb.storage.checkpoint_file import CHECKPOINT_NAME
from attractor_nb.storage.child_directories import CHILDREN_NAME
from attractor_nb.storage.files.atomic import TEMPORARY_PREFIX
from attractor_nb.storage.log.event_log import EVENT_LOG_NAME, read_log
from attractor_nb.storage.log.lock import LOCK_NAME, OWNER_NAME
from attractor_nb.storage.manifest_file import MANIFEST_NAME
from attractor_nb.storage.run_directory import SOURCE_NAME, THREADS_NAME
from attractor_nb.storage.sealed_file import previous_name
from attractor_nb.storage.stages.artifact_store import ARTIFACTS_NAME

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

SHOWN_ENTRIES: Final = 3
_WHOLE = (EVENT_LOG_NAME, CHECKPOINT_NAME)
_BEGAN = frozenset(
    {
        *(OWNER_NAME, SOURCE_NAME, EVENT_LOG_NAME, MANIFEST_NAME, previous_name(MANIFEST_NAME)),
        *(CHILDREN_NAME, ARTIFACTS_NAME, THREADS_NAME),
    }
)
"""What is in a run directory before the first record."""


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
        reason = f"its {EVENT_LOG_NAME} has no record of ours"
    else:
        return
    raise RunNotFound(f"{path} holds no run: {reason}", hint="name the run's own directory")


def check_free(path: Path, *, began: Collection[str], whole: Collection[str]) -> None:
    """Refuse a directory that is neither new nor empty nor ours, before anything is written (ruling 37).

    The lock file is the first thing that we write anywhere, so what stands beside none is not ours, whatever
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
            f"{path} holds what no run wrote: {listed(foreign)}",
            path=str(path / foreign[0]),
            hint=f"name a directory that is empty or not there yet, such as {path / 'run'}",
        )


def has_content(path: Path, name: str) -> bool:
    """Whether a file is more than what a cut-off beginning leaves: empty, or a log without records."""
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
