"""``workspace_from=``: what the workspace of a run begins with, copied from the caller's files."""

from __future__ import annotations

import glob
import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from attractor_nb.errors import OptionError
from attractor_nb.runtime.prepare.current_directory import here
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.storage.files.disk import storage_error

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_FILES: Final = 20_000
MAX_BYTES: Final = 1024 * 1024 * 1024
LEFT_OUT: Final = frozenset({".git", ".attractor"})
"""Folders that no workspace begins with: what version control and runs keep is theirs."""


class Filling(Struct, frozen=True):
    """Files for a workspace."""

    text: str  #: What the caller wrote.
    files: tuple[tuple[Path, str], ...]  #: Each file and where it goes, relative to the workspace.

    def fill(self, workspace: Path) -> None:
        """Copy the files."""
        for source, name in self.files:
            target = workspace / name
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target, follow_symlinks=False)
            except OSError as error:
                raise storage_error(error, "copy", source) from error


def filling_of(given: object) -> Filling:
    """The files that ``workspace_from`` names: those below a folder, or those that a pattern matches.

    Links are left out, and so are ``.git`` and ``.attractor``. Those of a folder keep their place in it,
    those of a pattern their place below the working directory.
    """
    text = str(as_path(given, "workspace_from"))
    if Path(text).is_dir():
        base, found = Path(text), _files_below(Path(text))
    else:
        base, found = here(), _matches(text)
    files: list[tuple[Path, str]] = []
    size = 0
    for path in found:
        size += path.lstat().st_size
        files.append((path.absolute(), path.relative_to(base).as_posix()))
        if len(files) > MAX_FILES or size > MAX_BYTES:
            raise OptionError(
                f"workspace_from {text!r} has more than {MAX_FILES:,} files or {MAX_BYTES >> 30} GiB",
                hint="name less of it, such as a folder below, or a pattern",
            )
    if not files and not Path(text).is_dir():
        raise OptionError(
            f"workspace_from {text!r} matches no file in {here()}", hint='a folder, or a pattern such as "src/**/*.py"'
        )
    return Filling(text, tuple(files))


def _matches(pattern: str) -> Iterator[Path]:
    """The plain files of a pattern, below the working directory."""
    if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
        raise OptionError(
            f"workspace_from {pattern!r} leads out of the working directory", hint="name the folder itself"
        )
    for name in sorted(glob.glob(pattern, recursive=True)):  # noqa: PTH207 - Path.glob finds hidden files, too
        path = here() / name
        if _is_wanted(path) and not LEFT_OUT.intersection(Path(name).parts) and not _is_behind_link(name):
            yield path


def _is_behind_link(name: str) -> bool:
    """Whether the way to a file leads through a link."""
    return any((here() / parent).is_symlink() for parent in Path(name).parents)


def _files_below(folder: Path) -> Iterator[Path]:
    for directory, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in LEFT_OUT)
        for name in sorted(names):
            if _is_wanted(path := Path(directory, name)) and name not in LEFT_OUT:
                yield path


def _is_wanted(path: Path) -> bool:
    return stat.S_ISREG(path.lstat().st_mode)
