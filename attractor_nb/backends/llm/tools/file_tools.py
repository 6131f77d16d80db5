"""``read_file``, ``write_file`` and ``list_files``: text files below a working directory, and no others."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final

from attractor_nb.backends.llm.tools.tool_paths import (
    PRIVATE,
    check_writable,
    is_run_directory,
    opened,
    problem_of,
    resolved_parts,
)
from attractor_nb.backends.llm.tools.tool_problems import MAX_RESULT_CHARACTERS, ToolProblem
from attractor_nb.errors import StorageError
from attractor_nb.redaction import MARK, holds_secret
from attractor_nb.storage.files.atomic import read_plain_file, replace_file
from attractor_nb.storage.files.disk import Disk

if TYPE_CHECKING:
    from pathlib import Path

MAX_READ_BYTES: Final = 8 * 1024 * 1024
"""Of a file that can be read at all; what is shown of it at once is ``MAX_RESULT_CHARACTERS``."""
MAX_WRITTEN_BYTES: Final = 1024 * 1024
MAX_LISTED: Final = 1000
MAX_DEPTH: Final = 20
_NEW_MODE: Final = 0o644


def read_file(root: Path, path: str, first_line: int = 1) -> str:
    """The text of a file, from a line on; how to read on where it is too long.

    Raises:
        ToolProblem: It is outside, missing, too large or no text.
    """
    *folders, name = _file_parts(root, path)
    with opened(root, tuple(folders)) as parent:
        text = _text(_content(parent, name, path), path)
    if first_line == 1 and len(text) <= MAX_RESULT_CHARACTERS:
        return text
    return _piece(text.splitlines(keepends=True), first_line, path)


def write_file(root: Path, path: str, content: str) -> str:
    """Write a text file, whole or not at all, in place of one of that name; folders on its way are made.

    Raises:
        ToolProblem: It is outside, guarded, too large, or not to be written there.
    """
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
    """The entries of a directory and of those below it, a line each; ``/`` ends a directory, ``@`` a link.

    Raises:
        ToolProblem: It is outside, or no directory.
    """
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
    """Who may use the file that is there; None when there is none."""
    try:
        facts = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise problem_of(error, path) from error
    if not stat.S_ISREG(facts.st_mode):
        raise ToolProblem(f"{path} is not a plain file")
    return stat.S_IMODE(facts.st_mode)
