"""Files that the user names to be read whole: sources, rows, values of inputs, prompts, endpoints.

A name may lead to anything: a pipe without a writer, a device without an end, a directory. None of them makes a
command wait for nothing, or fill the memory.
"""

from __future__ import annotations

import os
import select
import stat
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import OptionError
from attractor_nb.platforms import O_BINARY, O_CLOEXEC, O_NONBLOCK

if TYPE_CHECKING:
    from io import FileIO
    from pathlib import Path

MAX_FILE_BYTES: Final = 100 * 1024 * 1024
"""Of a file that is read whole and has no smaller bound."""
_PIECE_BYTES: Final = 1024 * 1024


def read_file(
    path: Path, *, max_bytes: int = MAX_FILE_BYTES, encoding: str = "utf-8-sig", is_optional: bool = False
) -> str:
    """The UTF-8 text of a file, read as ``read_bytes`` does; with ``utf-8`` a byte order mark stays in it."""
    data = read_bytes(path, max_bytes=max_bytes, is_optional=is_optional)
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise OptionError(f"{path} is not UTF-8 text (line {line})", hint="save it as UTF-8") from None


def read_bytes(path: Path, *, max_bytes: int = MAX_FILE_BYTES, is_optional: bool = False) -> bytes:
    """The content of a file. A pipe is read to its end if it has a writer, a device up to the bound.

    Args:
        path: The file.
        max_bytes: How large it may be.
        is_optional: A file that is not there is empty.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | O_BINARY | O_NONBLOCK | O_CLOEXEC)
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            mode = os.fstat(descriptor).st_mode
            data = _read_to_end(file, max_bytes)
    except IsADirectoryError:
        raise OptionError(f"{path} cannot be read: it is a directory", hint="name a file") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the path
        if is_optional and isinstance(error, FileNotFoundError | NotADirectoryError):
            return b""
        reason = getattr(error, "strerror", None) or str(error)
        raise OptionError(f"{path} cannot be read: {reason}", hint="check the path") from None
    if len(data) > max_bytes:
        raise OptionError(f"{path} has more than {max_bytes:,} bytes, and no more are read", hint="name a smaller file")
    if not data and stat.S_ISFIFO(mode):
        raise OptionError(
            f"{path} cannot be read: it is a pipe, and nobody writes to it",
            hint="start the command that writes to it first, or name a file",
        )
    return data


def _read_to_end(file: FileIO, max_bytes: int) -> bytes:
    """The content of a file that was opened without blocking; one byte more than allowed, if it has that many."""
    content = bytearray()
    while len(content) <= max_bytes:
        piece = file.read(min(_PIECE_BYTES, max_bytes + 1 - len(content)))
        if piece is None:  # a pipe whose writer has more to say
            select.select([file], [], [])
            continue
        if not piece:
            break
        content += piece
    return bytes(content)
