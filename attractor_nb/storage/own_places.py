"""Folders of ours in a directory that may have come from a stranger: runs, the cache's, the server's, child runs'.

The author of the directory may have planted links in place of our folders. What we list, write and delete there would
then be files of the user elsewhere: a link in their place is refused. The directory itself is the user's choice.
"""

from __future__ import annotations

import stat
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import StorageError
from attractor_nb.storage.files.disk import storage_error
from attractor_nb.storage.run_directory import OUR_PLACE, make_directory

if TYPE_CHECKING:
    from attractor_nb.storage.files.disk import Disk

FOLDER: Final = "a directory"
NOT_THERE: Final = "not there"


def is_own_place(root: Path, name: str) -> bool:
    """Whether a folder of ours is there and no link leads to it.

    Args:
        root: The directory.
        name: The folder, relative to it, such as ``.server/runs``.
    """
    return all(kind_of(place) == FOLDER for place in _places(root, name))


def made_own_place(disk: Disk, root: Path, name: str, *, is_synced: bool, use: str, remedy: str) -> Path:
    """A folder of ours, made unless it is there.

    Args:
        disk: Where.
        root: The directory.
        name: The folder, relative to it, such as ``entries/ab``.
        is_synced: Flush the names of what was made.
        use: Who keeps what there, for the message.
        remedy: What to do about a link in its place.
    """
    for place in _places(root, name):
        make_directory(disk, place, is_synced=is_synced)
        if (kind := kind_of(place)) != FOLDER:
            raise StorageError(f"{place} is {kind}, and {use} there", path=str(place), hint=remedy)
    return root / name


def refuse_linked(base: Path, *, folder: Path | None = None, option: str = 'runs_dir="DIR"') -> Path:
    """A base of runs or a cache, unless it is in ``.attractor`` of a folder and a link leads there (ruling 43).

    The folder may be the clone of a stranger's, whose link would have runs written to, and gates listed from,
    any place of the user. Another base was named by the user, and may be or contain any link.

    Args:
        base: The base.
        folder: The folder; the working directory by default.
        option: What names another base, for the hint.

    Raises:
        StorageError: A link is in its place, or in that of ``.attractor``.
    """
    try:
        ours, place = (folder or Path()).absolute() / OUR_PLACE, base.absolute()
    except FileNotFoundError:  # the working directory was removed, and no link is in it
        return base
    for step in (*reversed(place.parents), place):
        if step.is_relative_to(ours) and step.is_symlink():
            raise StorageError(
                f"{step} is a link to {step.readlink()}, and who made this folder may have made the link: "
                "runs are neither kept nor looked for behind it",
                path=str(step),
                hint=f"remove the link, or name the directory that you mean: {option}",
            )
    return base


def kind_of(place: Path) -> str:
    """``FOLDER``, ``NOT_THERE``, or what is there in its place."""
    try:
        mode = place.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return NOT_THERE
    except OSError as error:
        raise storage_error(error, "read", place) from error
    return FOLDER if stat.S_ISDIR(mode) else "a link" if stat.S_ISLNK(mode) else "not a directory"


def _places(root: Path, name: str) -> list[Path]:
    """The folder and those above it up to the directory, the outermost first."""
    pure = PurePosixPath(name)
    return [root / part for part in (*reversed(pure.parents[:-1]), pure)]
