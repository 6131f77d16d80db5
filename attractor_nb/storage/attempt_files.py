"""The files of one attempt in its stage's directory: written whole, read within bounds (ruling 28)."""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING

from attractor_nb.errors import StatusFileError, StorageError
from attractor_nb.redaction import holds_secret, redacted
from attractor_nb.storage.files.atomic import read_plain_file, replace_file
from attractor_nb.storage.files.disk import Disk, open_below, owner_of, storage_error, write_all
from attractor_nb.storage.run_directory import STATUS_NAME, VISITS_NAME, RunDirectory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path


MAX_STAGE_FILE_BYTES = 64 * 1024 * 1024
MAX_STATUS_BYTES = 1024 * 1024
RECENT_CHARACTERS = 8 * 1024
"""Of a file that grows, this much is looked at again with each piece: a secret may be split."""


class DirectoryStageFiles:
    """The files of one attempt, in the directory of its stage.

    The directory is opened once, when it is first needed, and held: whatever takes its place later,
    nothing outside is reached.
    """

    __slots__ = ("_appended", "_descriptor", "_disk", "_name", "_owner", "_root")

    def __init__(self, disk: Disk, root: RunDirectory, name: str) -> None:
        self._descriptor = -1
        self._disk = disk
        self._root = root
        self._name = name
        self._appended: dict[str, str] = {}
        self._owner: object = None

    @property
    def directory(self) -> Path:
        """The stage's directory."""
        return self._root.path / self._name

    def write_text(self, name: str, text: str) -> None:
        """Write a file of the stage, whole or not at all."""
        _check_name(name)
        data = redacted(text).encode("utf-8", "backslashreplace")
        try:
            replace_file(self._disk, self._opened(), name, data, is_synced=False)
        except OSError as error:
            raise storage_error(error, "write", self.directory / name) from error

    def write_bytes(self, path: str, data: bytes) -> None:
        """Write a file that came from elsewhere, whole or not at all; folders on its way are made.

        Args:
            path: Relative to the stage's directory, with ``/`` between folders.
            data: Anything; secrets in it are taken out, whatever its encoding is.
        """
        *folders, name = path.split("/")
        for part in (*folders, name):
            _check_name(part)
        clean = redacted(data.decode("latin-1")).encode("latin-1")
        with contextlib.ExitStack() as stack:
            try:
                parent = self._opened()
                for folder in folders:
                    with contextlib.suppress(FileExistsError):
                        self._disk.make_directory(folder, parent)
                    parent = self._disk.open_directory(folder, parent)
                    stack.callback(self._disk.close, parent)
                replace_file(self._disk, parent, name, clean, is_synced=False)
            except OSError as error:
                raise storage_error(error, "write", self.directory / path) from error

    def create_deferred(self, name: str, compose: Callable[[], str]) -> bool:
        """Write the text that ``compose`` gives into a new file; raises as ``write_text`` does.

        It is the last word of an attempt, and nothing acts on it before the commit. So a new file is
        written in its place, which spares a rename: a kill at that moment leaves an empty file, of an
        attempt that was cut off.

        Returns:
            Whether it is; where something of that name is already, whatever it is, nothing was changed.
        """
        text = compose()
        _check_name(name)
        parent = self._opened()
        try:
            descriptor = self._disk.create(name, parent)
        except FileExistsError:
            return False
        except OSError as error:
            raise storage_error(error, "write", self.directory / name) from error
        try:
            write_all(self._disk, descriptor, redacted(text).encode("utf-8", "backslashreplace"))
        except BaseException as error:  # an interrupt, too, leaves no half of a status behind
            with contextlib.suppress(OSError):
                self._disk.remove(name, parent)
            if isinstance(error, OSError):
                raise storage_error(error, "write", self.directory / name) from error
            raise
        finally:
            self._disk.close(descriptor)
        return True

    def append_text(self, name: str, text: str) -> None:
        """Add to a file of the stage."""
        _check_name(name)
        recent = self._appended[name] = self._appended.get(name, "")[-RECENT_CHARACTERS:] + text
        if holds_secret(recent):  # in one piece or in several: the file is written anew without it
            before = self.read_text(name) or ""
            self._appended[name] = ""
            self.write_text(name, before + text)
            return
        try:
            descriptor = self._disk.open_update(name, self._opened(), is_append=True)
            try:
                write_all(self._disk, descriptor, text.encode("utf-8", "backslashreplace"))
            finally:
                self._disk.close(descriptor)
        except OSError as error:
            raise storage_error(error, "write", self.directory / name) from error

    def read_text(self, name: str) -> str | None:
        """The text of a file of the stage, undecodable bytes replaced; None when there is none."""
        _check_name(name)
        is_status = name == STATUS_NAME
        limit = MAX_STATUS_BYTES if is_status else MAX_STAGE_FILE_BYTES
        try:
            data = read_plain_file(name, self._opened(), directory=self._name, max_bytes=limit, must_be_own=is_status)
        except StorageError as error:
            if is_status:
                raise StatusFileError(error.message, hint=error.hint) from None
            raise
        return None if data is None else data.decode("utf-8", "replace")

    def rename(self, name: str, new_name: str) -> None:
        """Give a file of the stage another name, whatever kind of file it is."""
        _check_name(name)
        _check_name(new_name)
        try:
            self._disk.rename(name, new_name, self._opened())
        except OSError as error:
            raise storage_error(error, "rename", self.directory / name) from error

    def _opened(self) -> int:
        root = self._root.descriptor
        if self._descriptor < 0:
            try:
                self._descriptor = self._disk.open_directory(self._name, root)
                self._owner = owner_of(self._descriptor)
            except OSError as error:
                raise storage_error(error, "open stage directory", self.directory) from error
        return self._descriptor


_NOT_FILES = frozenset({".", "..", VISITS_NAME})


def _check_name(name: str) -> None:
    if not name or name in _NOT_FILES or "/" in name or "\0" in name:
        raise StorageError(f"{name!r} is not a file name for a stage", hint="use a plain name without /")


def read_stage_text(directory: Path, name: str, root: Path) -> str | None:
    """The text of a file in a stage's directory, of a run that may be closed; None when there is none.

    No link is followed on the way from the run directory: in one of a stranger it would lead to the user's files.

    Args:
        directory: The stage's directory.
        name: The name of the file.
        root: The run directory.
    """
    _check_name(name)
    descriptor = _opened_below(root, directory.relative_to(root).parts)
    if descriptor is None:
        return None
    try:
        data = read_plain_file(name, descriptor, directory=directory, max_bytes=MAX_STAGE_FILE_BYTES)
    finally:
        os.close(descriptor)
    return None if data is None else data.decode("utf-8", "replace")


def _opened_below(root: Path, names: Iterable[str]) -> int | None:
    """A directory below another, open; None where a part of the way is missing, or is no directory itself."""
    try:
        return open_below(root, names)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:
            return None
        raise storage_error(error, "read", root) from error
