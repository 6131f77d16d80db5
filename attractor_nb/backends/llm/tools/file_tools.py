"""``read_file``, ``write_file`` and ``list_files``: text files below a working directory, and no others.

A path is looked at as text first; then the links on its way are followed, and where it leads must still be
inside; then it is walked from the open directory, so that what is changed meanwhile is noticed. What version
control keeps in the directory may be read and not written: a file there can become a command. What we keep
there, run directories wherever they are, is neither read nor written: a working directory may hold them.
"""

from __future__ import annotations

import io
import json
import math
import os
import stat
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.errors import StorageError
from attractor_nb.redaction import MARK, holds_secret
from attractor_nb.storage.files.atomic import read_plain_file, replace_file
from attractor_nb.storage.files.disk import Disk
from attractor_nb.storage.log.event_log import EVENT_LOG_NAME
from attractor_nb.storage.manifest_file import MANIFEST_NAME
from attractor_nb.storage.map_directory import INPUTS_NAME, MAP_NAME

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping


MAX_PATH_CHARACTERS: Final = 1024
_DIRECTORY_MODE: Final = 0o755
GUARDED: Final = ".git"
"""A directory in which no tool writes, wherever it is; file systems that ignore case are thought of."""
PRIVATE: Final = ".attractor"
"""A directory in which no tool reads or writes: runs are in it, and the cache."""
_OF_A_RUN: Final = ((EVENT_LOG_NAME, MANIFEST_NAME), (MAP_NAME, INPUTS_NAME))
"""Files that only the directory of a run, or of a map, has together."""

MAX_READ_BYTES: Final = 8 * 1024 * 1024
"""Of a file that can be read at all; what is shown of it at once is ``MAX_RESULT_CHARACTERS``."""
MAX_WRITTEN_BYTES: Final = 1024 * 1024
MAX_LISTED: Final = 1000
MAX_DEPTH: Final = 20
_NEW_MODE: Final = 0o644


def parts_of(text: str, root: Path) -> tuple[str, ...]:
    """The parts of a path below a directory, as the text says it; none for the directory itself.

    Args:
        text: What the model wrote: relative to the directory, or absolute.
        root: The directory, absolute.

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
    """The target of a path with links resolved, as parts below the real directory.

    Args:
        text: What the model wrote.
        root: The working directory.
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
        raise ToolProblem(f"{cut(text, 100)!r} is inside a run directory, which tools cannot read or write")
    return parts


def is_private(parts: tuple[str, ...], real_root: Path) -> bool:
    """True if a place below the working directory belongs to a run: its records must not be forged.

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
    """True if a directory, by its path or open, is that of a run or of a map."""
    descriptor = place if isinstance(place, int) else None
    base = Path() if isinstance(place, int) else place
    for names in _OF_A_RUN:
        with suppress(OSError):
            for name in names:
                os.stat(base / name, dir_fd=descriptor)
            return True
    return False


def check_writable(parts: tuple[str, ...]) -> None:
    """Refuse a place, as ``resolved_parts`` says, that tools do not write to."""
    if found := next((part for part in parts if part.casefold() == GUARDED), ""):
        raise ToolProblem(f"files in {found} can be read, and are not written by tools")


@contextmanager
def opened(root: Path, parts: tuple[str, ...], *, is_made: bool = False) -> Generator[int]:
    """Open the directory at some parts below the working directory; no link on the way is followed.

    Args:
        root: The working directory.
        parts: Where, as ``resolved_parts`` says.
        is_made: Make the directories that are not there.
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
    """The system's error about a path, for the model."""
    reason = (error.strerror or type(error).__name__).lower()
    return ToolProblem(f"{cut(place, 200)}: {reason}")


def _make(name: str, parent: int) -> None:
    with suppress(FileExistsError):
        os.mkdir(name, _DIRECTORY_MODE, dir_fd=parent)


def read_file(root: Path, path: str, first_line: int = 1) -> str:
    """The text of a file, from a line on; how to read on where it is too long."""
    *folders, name = _file_parts(root, path)
    with opened(root, tuple(folders)) as parent:
        text = _text(_content(parent, name, path), path)
    if first_line == 1 and len(text) <= MAX_RESULT_CHARACTERS:
        return text
    return _piece(list(io.StringIO(text, newline="")), first_line, path)


def write_file(root: Path, path: str, content: str) -> str:
    """Write a text file, whole or not at all, in place of one of that name; folders on its way are made."""
    data = content.encode("utf-8", "backslashreplace")
    if len(data) > MAX_WRITTEN_BYTES:
        raise ToolProblem(f"{len(data):,} bytes are more than the {MAX_WRITTEN_BYTES:,} for one file")
    parts = _file_parts(root, path)
    check_writable(parts)
    *folders, name = parts
    disk = Disk()
    with opened(root, tuple(folders), is_made=True) as parent:
        mode = _mode_of(parent, name, path)
        if MARK in content and mode is not None and _holds_secret(parent, name, path):
            raise ToolProblem(f"{path} holds a secret, shown as {MARK}: writing that back would destroy it")
        try:
            replace_file(disk, parent, name, data, is_synced=False)
            os.chmod(name, _NEW_MODE if mode is None else mode, dir_fd=parent)
        except OSError as error:
            raise problem_of(error, path) from error
    return f"wrote {len(data):,} bytes to {'/'.join(parts)}"


def list_files(root: Path, path: str = ".", depth: int = 2) -> str:
    """The entries of a directory and of those below it, a line each; ``/`` ends a directory, ``@`` a link."""
    parts = resolved_parts(path, root)
    found: list[str] = []
    with opened(root, parts) as directory:
        try:
            is_cut = not _collect(directory, "/".join(parts), depth, found)
        except OSError as error:
            raise problem_of(error, path) from error
    if not found:
        return "(empty)"
    rest = [f"[… only the first {MAX_LISTED} entries; name a directory]"] if is_cut else []
    return "\n".join([*found, *rest])


def _collect(directory: int, prefix: str, depth: int, found: list[str]) -> bool:
    """Add the entries of an open directory; False when there were too many."""
    with os.scandir(directory) as entries:
        ordered = sorted(entries, key=lambda entry: entry.name)
    for entry in ordered:
        if len(found) >= MAX_LISTED:
            return False
        shown = f"{prefix}/{entry.name}" if prefix else entry.name
        is_directory = entry.is_dir(follow_symlinks=False)
        found.append(shown + ("@" if entry.is_symlink() else "/" if is_directory else ""))
        if is_directory and depth > 1 and not _descend(directory, entry.name, shown, depth, found):
            return False
    return True


def _descend(directory: int, name: str, shown: str, depth: int, found: list[str]) -> bool:
    disk = Disk()
    try:
        inner = disk.open_directory(name, directory)
    except OSError:  # gone, or not for us
        return True
    try:
        if name.casefold() == PRIVATE or is_run_directory(inner):
            return True
        return _collect(inner, shown, depth - 1, found)
    finally:
        disk.close(inner)


def _file_parts(root: Path, path: str) -> tuple[str, ...]:
    parts = resolved_parts(path, root)
    if not parts:
        raise ToolProblem(f"{path} is the working directory, not a file")
    return parts


def _content(parent: int, name: str, path: str) -> bytes:
    try:
        data = read_plain_file(name, parent, max_bytes=MAX_READ_BYTES)
    except StorageError as error:
        raise ToolProblem(f"{path}: {error.message.removeprefix(f'cannot read {name}: ')}") from error
    if data is None:
        raise ToolProblem(f"there is no file {path}")
    return data


def _holds_secret(parent: int, name: str, path: str) -> bool:
    return holds_secret(_content(parent, name, path).decode("latin-1"))


def _text(data: bytes, path: str) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ToolProblem(f"{path} is not UTF-8 text ({len(data):,} bytes)")
    return text


def _piece(lines: list[str], first_line: int, path: str) -> str:
    if first_line > max(len(lines), 1):
        raise ToolProblem(f"{path} has {len(lines)} lines, and line {first_line} is asked for")
    taken: list[str] = []
    left = MAX_RESULT_CHARACTERS
    for line in lines[first_line - 1 :]:
        if len(line) > left:
            break
        taken.append(line)
        left -= len(line)
    if not taken:  # a single line that is too long
        taken = [lines[first_line - 1][:MAX_RESULT_CHARACTERS] + "\n[… the rest of this line is left out]\n"]
    following = first_line + len(taken)
    if following > len(lines):
        return "".join(taken)
    left_lines = len(lines) - following + 1
    return "".join(taken) + f"[… {left_lines} more lines; read on with first_line={following}]"


def _mode_of(parent: int, name: str, path: str) -> int | None:
    """The permissions of the existing file. None if there is none."""
    try:
        facts = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise problem_of(error, path) from error
    if not stat.S_ISREG(facts.st_mode):
        raise ToolProblem(f"{path} is not a plain file")
    return stat.S_IMODE(facts.st_mode)


# Errors of tools for the model, and the bounds of their texts.

MAX_RESULT_CHARACTERS: Final = 50_000
"""Of what a tool gives back to the model."""
MAX_SHOWN_CHARACTERS: Final = 1_000
"""Of each text of a call in its event."""
MAX_KEPT_CHARACTERS: Final = 20_000
"""Of each text of a call in ``tool_calls.jsonl``."""
_MAX_DEPTH: Final = 8
_MAX_BITS: Final = 64
_MAX_ENTRIES: Final = 50


class ToolProblem(Exception):
    """A failed call of a tool. The model receives the reason; no stage fails."""


def cut(text: str, characters: int) -> str:
    """The beginning of a text, and how much of it is left out.

    >>> cut("abcdef", 4)
    'abcd[… 2 characters left out]'
    """
    if len(text) <= characters:
        return text
    return f"{text[:characters]}[… {len(text) - characters} characters left out]"


def cut_middle(text: str, characters: int) -> str:
    r"""The beginning and the end of a text, and how much is left out between them.

    >>> cut_middle("abcdef", 4)
    'ab\n[… 2 characters left out …]\nef'
    """
    if len(text) <= characters:
        return text
    half = characters // 2
    gap = f"\n[… {len(text) - 2 * half} characters left out …]\n"
    return text[:half] + gap + text[-half:]


def shown_number(value: float) -> float | str:
    """A number as JSON can hold it; one that JSON cannot hold, or that is too long to be read, as a text.

    >>> shown_number(3), shown_number(float("nan")), shown_number(1 << 70_000)
    (3, 'nan', 'a number of 70001 bits')
    """
    if isinstance(value, int):
        return value if value.bit_length() <= _MAX_BITS else f"a number of {value.bit_length()} bits"
    return value if math.isfinite(value) else str(value)


def shown_arguments(arguments: Mapping[str, Any], characters: int) -> dict[str, Any]:
    """Arguments as they are recorded: however large and deep they are, what is kept is bounded.

    >>> shown_arguments({"path": "a.txt", "text": "x" * 60}, 50)["text"]
    'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx[… 10 characters left out]'
    """
    shown = {cut(str(name), characters): _shown(value, characters, 1) for name, value in _first(arguments)}
    whole = json.dumps(shown, ensure_ascii=False)
    return shown if len(whole) <= 2 * characters + _MAX_ENTRIES else {"…": cut(whole, characters)}


def _first(arguments: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return list(arguments.items())[:_MAX_ENTRIES]


def _shown(value: Any, characters: int, depth: int) -> Any:
    if isinstance(value, str):
        return cut(value, characters)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return shown_number(value)
    if depth >= _MAX_DEPTH:
        return "[…]"
    if isinstance(value, dict):
        entries = _first(cast("dict[str, Any]", value))
        return {cut(str(name), characters): _shown(entry, characters, depth + 1) for name, entry in entries}
    if isinstance(value, list):
        return [_shown(entry, characters, depth + 1) for entry in cast("list[Any]", value)[:_MAX_ENTRIES]]
    return cut(str(value), characters)
