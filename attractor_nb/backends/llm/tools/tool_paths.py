"""Where in a working directory a path of a model's leads, and nowhere else.

A path is looked at as text first; then the links on its way are followed, and where it leads must still be
inside; then it is walked from the open directory, so that what is changed meanwhile is noticed. What version
control keeps in the directory may be read and not written: a file there can become a command. What we keep
there, run directories wherever they are, is neither read nor written: a working directory may hold them.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from attractor_nb.backends.llm.tools.tool_problems import ToolProblem, cut
from attractor_nb.storage.files.disk import Disk
from attractor_nb.storage.log.event_log import EVENT_LOG_NAME
from attractor_nb.storage.manifest_file import MANIFEST_NAME
from attractor_nb.storage.map_directory import INPUTS_NAME, MAP_NAME

if TYPE_CHECKING:
    from collections.abc import Generator

MAX_PATH_CHARACTERS: Final = 1024
_DIRECTORY_MODE: Final = 0o755
GUARDED: Final = ".git"
"""A directory in which no tool writes, wherever it is; file systems that ignore case are thought of."""
PRIVATE: Final = ".attractor"
"""A directory in which no tool reads or writes: runs are in it, and the cache."""
_OF_A_RUN: Final = ((EVENT_LOG_NAME, MANIFEST_NAME), (MAP_NAME, INPUTS_NAME))
"""Files that only the directory of a run, or of a map, has together."""


def parts_of(text: str, root: Path) -> tuple[str, ...]:
    """The parts of a path below a directory, as the text says it; none for the directory itself.

    Args:
        text: What the model wrote: relative to the directory, or absolute.
        root: The directory, absolute.

    Raises:
        ToolProblem: It leads out of the directory, or is not a path.

    >>> parts_of("src/./main.py", Path("/work"))
    ('src', 'main.py')
    >>> parts_of("/work/src", Path("/work"))
    ('src',)
    """
    shown = repr(cut(text, 100))
    if not text.strip() or "\0" in text:
        raise ToolProblem(f"{shown} is not a path")
    if len(text) > MAX_PATH_CHARACTERS:
        raise ToolProblem(f"the path {shown} has more than {MAX_PATH_CHARACTERS} characters")
    path = PurePosixPath(text)
    if ".." in path.parts:
        raise ToolProblem(f"{shown} has '..' in it; give a path below the working directory")
    if path.is_absolute():
        if not path.is_relative_to(root):
            raise ToolProblem(f"{shown} is outside of the working directory; give a path relative to it")
        path = path.relative_to(root)
    return path.parts


def resolved_parts(text: str, root: Path) -> tuple[str, ...]:
    """Where a path leads, links followed, as parts below the real directory.

    Args:
        text: What the model wrote.
        root: The working directory.

    Raises:
        ToolProblem: It leads out of the directory, or is not a path.
    """
    real_root = Path(os.path.realpath(root))
    parts = parts_of(text, root) if not Path(text).is_relative_to(real_root) else parts_of(text, real_root)
    try:
        real = Path(os.path.realpath(real_root.joinpath(*parts)))
    except (OSError, ValueError) as error:
        raise ToolProblem(f"{cut(text, 100)!r} is not a path here") from error
    if not real.is_relative_to(real_root):
        raise ToolProblem(f"{cut(text, 100)!r} leads out of the working directory by a link")
    parts = real.relative_to(real_root).parts
    if is_private(parts, real_root):
        raise ToolProblem(f"{cut(text, 100)!r} is of a run, and no tool's to read or to write")
    return parts


def is_private(parts: tuple[str, ...], real_root: Path) -> bool:
    """Whether a place below the working directory belongs to a run: nobody forges records.

    The working directory itself may be in one: the workspace of a run is.
    """
    if any(part.casefold() == PRIVATE for part in parts):
        return True
    place, places = real_root, [real_root] if is_run_directory(real_root) else []
    for part in parts:
        place = place / part
        places.append(place)
    return any(is_run_directory(place) for place in places)


def is_run_directory(place: Path | int) -> bool:
    """Whether a directory, by its path or open, is that of a run or of a map."""
    descriptor = place if isinstance(place, int) else None
    base = Path() if isinstance(place, int) else place
    for names in _OF_A_RUN:
        with suppress(OSError):
            for name in names:
                os.stat(base / name, dir_fd=descriptor)
            return True
    return False


def check_writable(parts: tuple[str, ...]) -> None:
    """Refuse a place, as ``resolved_parts`` says, that tools do not write to.

    Raises:
        ToolProblem: It is one.
    """
    if found := next((part for part in parts if part.casefold() == GUARDED), ""):
        raise ToolProblem(f"files in {found} can be read, and are not written by tools")


@contextmanager
def opened(root: Path, parts: tuple[str, ...], *, is_made: bool = False) -> Generator[int]:
    """Open the directory at some parts below the working directory; no link on the way is followed.

    Args:
        root: The working directory.
        parts: Where, as ``resolved_parts`` says.
        is_made: Make the directories that are not there.

    Raises:
        ToolProblem: There is no such directory.
    """
    disk = Disk()
    descriptor = -1
    try:
        descriptor = disk.open_directory(os.path.realpath(root))
        for part in parts:
            if is_made:
                _make(part, descriptor)
            inner = disk.open_directory(part, descriptor)
            disk.close(descriptor)
            descriptor = inner
    except OSError as error:
        if descriptor >= 0:
            disk.close(descriptor)
        raise problem_of(error, "/".join(parts) or ".") from error
    try:
        yield descriptor
    finally:
        disk.close(descriptor)


def problem_of(error: OSError, place: str) -> ToolProblem:
    """What the system says about a place, for the model."""
    reason = (error.strerror or type(error).__name__).lower()
    return ToolProblem(f"{cut(place, 200)}: {reason}")


def _make(name: str, parent: int) -> None:
    with suppress(FileExistsError):
        os.mkdir(name, _DIRECTORY_MODE, dir_fd=parent)
