"""DOT files below a folder, read and written for others: no link is followed, and none lies outside."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
import threading
from typing import TYPE_CHECKING, Final

import msgspec

from attractor_nb.platforms import HAS_POSIX, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK
from attractor_nb.storage.files.disk import Disk, has_no_links

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

SUFFIXES: Final = (".dot", ".gv")
MAX_BYTES: Final = 500_000
MAX_LISTED: Final = 1_000
MAX_SEEN: Final = 50_000
"""After this number of entries of folders the list is cut off."""
_MAX_NAME_BYTES: Final = 255
_SKIPPED: Final = frozenset({"__pycache__", "node_modules"})
_FOLDER_FLAGS: Final = os.O_RDONLY | O_DIRECTORY | O_NOFOLLOW
_FILE_FLAGS: Final = os.O_RDONLY | O_NOFOLLOW | O_NONBLOCK
_WRITE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | O_NOFOLLOW


class NoDocument(Exception):
    """There is no such file that may be shown; the words say why."""


class DocumentConflict(Exception):
    """The file holds something else than who saves it has read.

    Attributes:
        document: What it holds; None when it is gone.
    """

    def __init__(self, document: Document | None) -> None:
        super().__init__("it is gone" if document is None else "it has changed since it was read")
        self.document = document


class DocumentLine(msgspec.Struct, frozen=True):
    """A file of the list."""

    path: str  #: Below the folder, with ``/`` between its parts.
    size: int  #: In bytes.
    modified: float  #: Seconds since 1970.


class Document(msgspec.Struct, frozen=True):
    """A file as it was read."""

    path: str  #: Below the folder.
    text: str  #: Its content.
    digest: str  #: Of its bytes; who saves says by it what was read.
    modified: float  #: Seconds since 1970.


class DocumentFolder:
    """The DOT files below a folder. Hidden ones and those behind links are none of them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._saving = threading.Lock()

    @staticmethod
    def is_possible() -> bool:
        """True if this system opens files by their folder, which no link can turn elsewhere."""
        return HAS_POSIX

    def list(self) -> tuple[list[DocumentLine], bool]:
        """The files by their paths, and whether there are more than that."""
        found: list[DocumentLine] = []
        for seen, entry in enumerate(self._entries()):
            if len(found) == MAX_LISTED or seen == MAX_SEEN:
                return sorted(found, key=lambda line: line.path), True
            with contextlib.suppress(OSError):
                if entry.name.endswith(SUFFIXES) and entry.is_file(follow_symlinks=False):
                    facts = entry.stat(follow_symlinks=False)
                    path = os.path.relpath(entry.path, self.root).replace(os.sep, "/")
                    found.append(DocumentLine(path, facts.st_size, facts.st_mtime))
        return sorted(found, key=lambda line: line.path), False

    def _entries(self) -> Iterator[os.DirEntry[str]]:
        waiting = [str(self.root)]
        while waiting:
            with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.name.startswith(".") or entry.name in _SKIPPED:
                        continue
                    yield entry
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)

    def read(self, path: str) -> Document:
        """A file."""
        with self._folder_of(path) as (folder, name):
            return self._read(folder, name, path)

    def write(self, path: str, text: str, digest: str) -> Document:
        """Write a file whole, or not at all.

        Args:
            path: Of the file; its folder is there already.
            text: What it shall hold.
            digest: Of what was read; empty for a file that is not there yet.

        Returns:
            What it holds now.
        """
        with self._folder_of(path) as (folder, name), self._saving:
            there = None
            with contextlib.suppress(FileNotFoundError):
                os.stat(name, dir_fd=folder, follow_symlinks=False)
                there = self._read(folder, name, path)
            if (there.digest if there else "") != digest:
                raise DocumentConflict(there)
            try:
                self._put(folder, name, text.encode("utf-8"), is_new=there is None)
            except FileExistsError:  # another program made it meanwhile
                raise DocumentConflict(self._read(folder, name, path)) from None
            return self._read(folder, name, path)

    def _put(self, folder: int, name: str, data: bytes, *, is_new: bool) -> None:
        temporary = f".{secrets.token_hex(12)}.part"
        mode = 0o666 if is_new else stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
        descriptor = os.open(temporary, _WRITE_FLAGS, mode, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                if not is_new:
                    os.fchmod(descriptor, mode)
                file.write(data)
                file.flush()
                os.fsync(descriptor)
            if is_new:
                _name_new(folder, temporary, name, mode)
            else:
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:  # an interrupt, too, must leave no temporary file
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise

    def _read(self, folder: int, name: str, path: str) -> Document:
        try:
            descriptor = os.open(name, _FILE_FLAGS, dir_fd=folder)
        except OSError as error:
            raise NoDocument(_reason(error)) from None
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            os.close(descriptor)
            raise NoDocument("it is not a plain file")
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise NoDocument(f"it has more than {MAX_BYTES} bytes")
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            raise NoDocument("it is not text in UTF-8") from None
        return Document(path, text, hashlib.sha256(data).hexdigest(), facts.st_mtime)

    @contextlib.contextmanager
    def _folder_of(self, path: str) -> Generator[tuple[int, str]]:
        """The folder of a file as a descriptor, reached step by step, and the file's name in it."""
        *folders, name = _parts(path)
        try:
            here = os.open(self.root, os.O_RDONLY | O_DIRECTORY)
        except OSError as error:
            raise NoDocument(_reason(error)) from None
        try:
            for part in folders:
                try:
                    below = os.open(part, _FOLDER_FLAGS, dir_fd=here)
                except OSError as error:
                    raise NoDocument(_reason(error)) from None
                os.close(here)
                here = below
            yield here, name
        finally:
            os.close(here)


def _name_new(folder: int, temporary: str, name: str, mode: int) -> None:
    """Give a new file its name, which must not have been taken meanwhile."""
    try:
        Disk().link(temporary, name, folder)
    except OSError as error:
        if not has_no_links(error):
            raise
        os.close(os.open(name, _WRITE_FLAGS, mode, dir_fd=folder))
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    else:
        os.unlink(temporary, dir_fd=folder)


def _parts(path: str) -> list[str]:
    """The parts of a path."""
    parts = path.split("/")
    for part in parts:
        if not part or part.startswith(".") or "\\" in part or not part.isprintable():
            raise NoDocument("the path has a part that is empty, hidden, or no name")
        if len(part.encode("utf-8", "replace")) > _MAX_NAME_BYTES:
            raise NoDocument("a part of the path is too long")
    if not parts[-1].endswith(SUFFIXES):
        raise NoDocument("its name ends neither with .dot nor with .gv")
    return parts


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is none"
    return "a link or no folder is on the way" if isinstance(error, NotADirectoryError) else "it cannot be opened"
