"""The directories of child runs: ``children/<node>/<visit>/``, each a separate run directory (spec 4.11).

``children/<node>/pipeline.dot`` is the source that the node's child has, so that a run directory alone is
enough to resume. A second child of the same visit, which another attempt began, is ``<visit>.2``. The runs of an item
of a list are in ``children/<node>/item-<index>/<visit>/``.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.errors import StorageError
from attractor_nb.storage.files.atomic import sweep, write_whole
from attractor_nb.storage.files.disk import Disk, entry_names, storage_error
from attractor_nb.storage.log.lock import LOCK_NAME
from attractor_nb.storage.own_places import FOLDER, NOT_THERE, kind_of
from attractor_nb.storage.run_directory import SOURCE_NAME, RunDirectory, make_directory
from attractor_nb.storage.stages.stage_directories import escaped_name, is_safe_name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


CHILDREN_NAME: Final = "children"
ITEM_PREFIX: Final = "item-"
MAX_TRIES: Final = 10_000


def child_home(logs_root: Path, node_id: str, branch: str = "", item: int | None = None) -> Path:
    """The place of all child runs of a node.

    Ids with capitals are escaped: some file systems take them for the same without.

    Args:
        logs_root: The parent's run directory.
        node_id: The node.
        branch: Path of the branch that the stage is in, or empty.
        item: The index of the item whose runs they are, when the stage has one for each.
    """
    whole = f"{branch}/{node_id}" if branch else node_id
    is_plain = is_safe_name(whole) and whole == whole.casefold()
    home = logs_root / CHILDREN_NAME / (whole if is_plain else escaped_name(whole))
    return home if item is None else home / f"{ITEM_PREFIX}{item}"


def runs_of_visit(home: Path, visit: int) -> list[Path]:
    """The child runs of a visit, oldest first."""
    found: list[Path] = []
    while _is_directory(place := next_place(home, visit, len(found))):
        found.append(place)
        if len(found) >= MAX_TRIES:
            raise StorageError(f"{home} holds too many child runs of visit {visit}", path=str(home))
    return found


def next_place(home: Path, visit: int, count: int) -> Path:
    """The directory of the next child run of a visit that has ``count`` already."""
    return home / (f"{visit}.{count + 1}" if count else f"{visit}")


def latest_run(home: Path) -> Path | None:
    """The latest child run of any visit; None when there is none."""
    try:
        names = [entry.name for entry in home.iterdir() if _order(entry.name) != _NO_RUN]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise storage_error(error, "read", home) from error
    return home / max(names, key=_order) if names else None


def keep_source(disk: Disk, home: Path, text: str, *, is_synced: bool) -> None:
    """Write the source of a node's child; for the owner of the run alone, who removes what was half written."""
    make_home(disk, home, is_synced=is_synced)
    place = RunDirectory(disk, home)
    try:
        sweep(disk, place.descriptor)
        write_whole(
            disk,
            place.descriptor,
            SOURCE_NAME,
            text.encode("utf-8", "surrogatepass"),
            directory=home,
            is_synced=is_synced,
        )
    finally:
        place.close()


def make_home(disk: Disk, home: Path, *, is_synced: bool) -> None:
    """Make the place of a node's child runs; nothing that was planted there is followed elsewhere."""
    for place in (home.parent, home):
        _is_directory(place)
    make_directory(disk, home, is_synced=is_synced)


def kept_source(origin: Path, node_id: str) -> Path | None:
    """The source of a child that is kept beside its parent's in a run directory; None where there is none."""
    if origin.name != SOURCE_NAME:
        return None
    place = child_home(origin.parent, node_id) / SOURCE_NAME
    return place if place.is_file() else None


def _is_directory(place: Path) -> bool:
    """True if there is a directory; nothing else may be there."""
    kind = kind_of(place)
    if kind not in (FOLDER, NOT_THERE):
        raise StorageError(f"{place} is not the directory of a child run", path=str(place))
    return kind == FOLDER


_NO_RUN: Final = (0, 0)


def _order(name: str) -> tuple[int, int]:
    visit, _, number = name.partition(".")
    is_run = visit.isdecimal() and (not number or number.isdecimal())
    return (int(visit), int(number or 1)) if is_run else _NO_RUN


# Directories of restarts: ``restart-<number>`` in that of the first run, with its own manifest (ruling 21).

_MAX_RESTART_LEFTOVERS = 1000
_NOT_OF_A_RESTART = frozenset(
    {
        *("stage_directories", "restarted_as", "start_time", "end_time", "status", "reason"),
        *("continued_from", "fork_of", "log_sequence"),
    }
)


def restart_place(root: Path, facts: Mapping[str, Any], number: int) -> Path:
    """The directory of a restart of a run, which may be a restart itself.

    Args:
        root: The directory of the run.
        facts: Its manifest.
        number: Which restart it is of the first run's.
    """
    first = root.parent if facts.get("restart_of") else root
    return first / f"restart-{number}"


def restart_facts(facts: Mapping[str, Any], *, run_id: str, root: Path, place: Path) -> dict[str, Any]:
    """The manifest with which a restart begins.

    Args:
        facts: The manifest of the run that continues there.
        run_id: The id of the restart.
        root: The directory of the run.
        place: That of the restart.
    """
    kept = {name: fact for name, fact in facts.items() if name not in _NOT_OF_A_RESTART}
    return {**kept, "run_id": run_id, "restart_of": os.path.relpath(root, place)}


def set_leftover_aside(disk: Disk, path: Path) -> None:
    """Rename what a restart left at a place that never began."""
    for number in range(1, _MAX_RESTART_LEFTOVERS):
        if not os.path.lexists(path):
            return
        aside = path.with_name(f"{path.name}-leftover-{number}")
        if os.path.lexists(aside):
            continue
        try:
            _rename_leftover(disk, path, aside.name)
        except OSError as error:
            raise storage_error(error, "rename", path) from error


def _rename_leftover(disk: Disk, path: Path, name: str) -> None:
    with contextlib.ExitStack() as stack:
        parent = disk.open_directory(path.parent)
        stack.callback(disk.close, parent)
        leftover = disk.open_directory(path.name, parent)
        stack.callback(disk.close, leftover)
        entries = entry_names(leftover)
        if entries and LOCK_NAME not in entries:
            raise StorageError(
                f"{path} is in the place of a restart, and no run wrote it",
                path=str(path),
                hint="move it out of the run directory, then resume the run",
            )
        sweep(disk, leftover)
        disk.sync(leftover)  # or a power loss brings back what was swept, at a place that is not swept again
        disk.rename(path.name, name, parent)
