"""The conversations of threads, one file each: ``threads/<thread>.json`` (spec 5.4).

A file keeps what every attempt saved as a separate entry, named by where it was said. Which of them counts
the log alone decides: an entry is in the file before the commit of its stage is in the log, so one whose
commit never came is evidence and no more, and a run that goes back finds what it said until there. An entry
holds only the text that is new beside the entry it continues, so a conversation that grows is kept once.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

from attractor_nb.errors import StorageError
from attractor_nb.model.record import Count, Record
from attractor_nb.redaction import holds_secret, redacted
from attractor_nb.storage.files.atomic import read_plain_file, sweep, write_whole
from attractor_nb.storage.files.disk import Disk, storage_error
from attractor_nb.storage.files.strict_json import MAX_BYTES, JsonProblem, json_bytes, read_json
from attractor_nb.storage.run_directory import THREADS_NAME, RunDirectory
from attractor_nb.storage.stages.stage_directories import escaped_name, is_safe_name

if TYPE_CHECKING:
    from pathlib import Path


_SUFFIX = ".json"


def thread_file_name(thread: str) -> str:
    """The name of a thread's file; no two threads share one, on file systems without case either.

    >>> thread_file_name("review"), thread_file_name("Review")
    ('review.json', 'Review~aff0766a5290e117.json')
    """
    is_kept = is_safe_name(thread) and thread == thread.lower()
    return (thread if is_kept else escaped_name(thread)) + _SUFFIX


class _Entry(Record, frozen=True, array_like=True, omit_defaults=False):
    """The entry that one attempt saved."""

    after: str  #: The entry that it continued from, or empty.
    kept: Count  #: Number of characters of that entry with which its text begins.
    text: str  #: The text after them.


class Thread(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The entries that a thread's attempts have saved."""

    schema_version: Literal[1] = 1  #: Version of this form.
    thread: str  #: Its name, without secrets.
    entries: Mapping[str, _Entry] = {}  #: Saved entries, by name.

    def __post_init__(self) -> None:
        """Refuse an entry that continues a missing one."""
        for name, entry in self.entries.items():
            if entry.kept and entry.after not in self.entries:
                raise ValueError(f"entry {name} continues {entry.after!r}, which is missing")

    def text_of(self, name: str) -> str | None:
        """The whole text of an entry; None when there is none."""
        found = self.entries.get(name)
        if found is None:
            return None
        pieces, needed = [found.text], found.kept
        for _ in self.entries:  # no more steps than that, whatever a strange file says
            if not needed:
                break
            found = self.entries[found.after]
            if found.kept < needed:
                pieces.append(found.text[: needed - found.kept])
                needed = found.kept
        return "".join(reversed(pieces))

    def with_entry(self, name: str, text: str, *, after: str) -> Thread:
        """The thread with a text in place of what the entry had."""
        text = redacted(text)
        kept = _common(self.text_of(after) or "", text) if after != name else 0
        if holds_secret(text[kept:]):  # what was none in the whole must not look like one in the piece
            kept = 0
        new = _Entry(after if kept else "", kept, text[kept:])
        return Thread(thread=self.thread, entries={**self.entries, name: new})


def _common(before: str, now: str) -> int:
    """The length of the common beginning of two texts, found in few steps.

    >>> _common("[1, 2]", "[1, 2, 3]"), _common("", "x"), _common("ab", "ab")
    (5, 0, 2)
    """
    low, high = 0, min(len(before), len(now))
    while low < high:
        middle = (low + high + 1) // 2
        if before[low:middle] == now[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


class ThreadDirectory:
    """The threads of a run directory that this process owns."""

    def __init__(self, disk: Disk, root: RunDirectory, *, is_synced: bool) -> None:
        """Take up the threads of a run."""
        self._disk = disk
        self._root = root
        self._is_synced = is_synced
        self._lock = threading.Lock()

    def read(self, thread: str, entry: str) -> str | None:
        """The text of an entry of a thread; None when there is none."""
        with self._lock:
            return self._thread(thread).text_of(entry)

    def save(self, thread: str, entry: str, text: str, *, after: str) -> None:
        """Keep a text as an entry of a thread, without its secrets; whole or not at all.

        Args:
            thread: The thread.
            entry: The name of the entry.
            text: The whole conversation.
            after: The entry that it continues, or empty.
        """
        with self._lock:
            data = _sealed(self._thread(thread).with_entry(entry, text, after=after).to_plain())
            name = thread_file_name(thread)
            if len(data) > MAX_BYTES:
                raise StorageError(
                    f"thread {thread!r} has grown to {len(data)} bytes, more than the {MAX_BYTES} allowed",
                    path=str(self._path / name),
                    hint="give later stages another thread_id",
                )
            with self._directory(is_made=True) as parent:
                write_whole(self._disk, parent, name, data, directory=self._path, is_synced=self._is_synced)

    def sweep(self) -> None:
        """Remove what a killed process left half written; only the owner of the run may."""
        with contextlib.suppress(FileNotFoundError), self._directory() as parent:
            sweep(self._disk, parent)

    @property
    def _path(self) -> Path:
        return self._root.path / THREADS_NAME

    def _thread(self, thread: str) -> Thread:
        name = thread_file_name(thread)
        try:
            with self._directory() as parent:
                data = read_plain_file(name, parent, directory=self._path, max_bytes=MAX_BYTES)
        except FileNotFoundError:
            data = None
        if data is None:
            return Thread(thread=redacted(thread))
        try:
            return Thread.from_plain(_unsealed(data))
        except (KeyError, TypeError, ValueError) as problem:
            words = str(problem) if isinstance(problem, ValueError) else "has a wrong shape"
            path = str(self._path / name)
            raise StorageError(
                f"{path} is damaged: it {words}",
                path=path,
                hint="restore it; or remove it, and the thread starts again",
            ) from None

    @contextlib.contextmanager
    def _directory(self, *, is_made: bool = False) -> Generator[int]:
        """The open ``threads`` directory; ``FileNotFoundError`` when there is none."""
        try:
            if is_made:
                with contextlib.suppress(FileExistsError):
                    self._disk.make_directory(THREADS_NAME, self._root.descriptor)
                    if self._is_synced:
                        self._disk.sync(self._root.descriptor)
            descriptor = self._disk.open_directory(THREADS_NAME, self._root.descriptor)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise storage_error(error, "open", self._path) from error
        try:
            yield descriptor
        finally:
            self._disk.close(descriptor)


def _sealed(plain: Mapping[str, Any]) -> bytes:
    """The content of a thread's file: its checksum, then a line per value."""
    body = b",\n".join(b"  %b: %b" % (json_bytes(key), json_bytes(value)) for key, value in plain.items())
    return b'{\n  "checksum": "%b",\n%b\n}\n' % (sha256(body).hexdigest().encode(), body)


def _unsealed(data: bytes) -> dict[str, Any]:
    plain: dict[str, Any] = read_json(data)
    body = data[data.index(b"\n", 2) + 1 : -3]
    if sha256(body).hexdigest() != plain["checksum"]:
        raise JsonProblem("does not match its checksum")
    return plain
