"""A run that leaves nothing behind: the store for ``durability="none"``.

Events go nowhere, large values and the files of recent stages stay in memory. Only when something
asks for a stage's directory, as a command does, are there real ones, in a temporary place that goes
away with the run.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from attractor_nb.errors import AttractorError, StorageError
from attractor_nb.model.redacted import redact_event
from attractor_nb.redaction import redacted
from attractor_nb.storage.files.disk import Disk, storage_error
from attractor_nb.storage.run_directory import RunDirectory
from attractor_nb.storage.stages.artifact_store import ArtifactStore
from attractor_nb.storage.stages.branch_directories import BranchDirectories
from attractor_nb.storage.stages.stage_directories import StageDirectories, StageNames
from attractor_nb.storage.stages.thread_files import Thread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from attractor_nb.model.events import Event
    from attractor_nb.protocols import Clock
    from attractor_nb.storage.attempt_files import DirectoryStageFiles

MAX_KEPT_BYTES = 16 * 1024 * 1024
"""Above this the files of the stages opened first are forgotten."""
DEFERRED_CHARACTERS = 512
"""Length that an uncomposed text counts for."""


class MemoryStageFiles:
    """The files of one attempt, in memory until its directory is asked for."""

    __slots__ = ("_attempt", "_branch", "_deferred", "_directory_files", "_node_id", "_store", "_texts", "_visit")

    def __init__(self, store: MemoryRunStore, node_id: str, visit: int, attempt: int, branch: str) -> None:
        self._store = store
        self._branch = branch
        self._node_id = node_id
        self._visit = visit
        self._attempt = attempt
        self._texts: dict[str, str] | None = None
        self._deferred: tuple[str, Callable[[], str]] | None = None
        self._directory_files: DirectoryStageFiles | None = None

    @property
    def directory(self) -> Path:
        """The stage's directory; made, and filled with what was written so far, when first asked for."""
        if self._directory_files is None:
            self._compose()
            files = self._store.make_stage_directory(self._node_id, self._visit, self._attempt, self._branch)
            for name, text in (self._texts or {}).items():
                files.write_text(name, text)
            self._directory_files = files
        return self._directory_files.directory

    @property
    def is_on_disk(self) -> bool:
        """True if something asked for the directory, so that the files are there."""
        return self._directory_files is not None

    @property
    def texts(self) -> dict[str, str]:
        """The files that are in memory."""
        self._compose()
        return dict(self._texts or {})

    def write_bytes(self, path: str, data: bytes) -> None:
        """Write a file of the stage, which may be in folders of it and hold anything."""
        with contextlib.suppress(UnicodeDecodeError):
            if self._directory_files is None and "/" not in path:
                self.write_text(path, data.decode())
                return
        _ = self.directory  # made now
        assert self._directory_files is not None, "it was just made"
        self._directory_files.write_bytes(path, data)

    def write_text(self, name: str, text: str) -> None:
        """Write a file of the stage."""
        if self._directory_files is not None:
            self._directory_files.write_text(name, text)
            return
        self._compose()
        text = redacted(text)
        if self._texts is None:
            self._texts = {}
        self._store.note_growth(self, len(text) - len(self._texts.get(name, "")))
        self._texts[name] = text

    def create_deferred(self, name: str, compose: Callable[[], str]) -> bool:
        """Write a new file once it is read; those of most stages never are. Returns True if it is new."""
        if self._directory_files is not None:
            return self._directory_files.create_deferred(name, compose)
        self._compose()
        if self._texts and name in self._texts:
            return False
        self._deferred = (name, compose)
        self._store.note_growth(self, DEFERRED_CHARACTERS)
        return True

    def _compose(self) -> None:
        """Write what was deferred."""
        if self._deferred is not None:
            name, compose = self._deferred
            self._deferred = None
            self._store.note_growth(self, -DEFERRED_CHARACTERS)
            self.write_text(name, compose())

    def append_text(self, name: str, text: str) -> None:
        """Add to a file of the stage."""
        self._compose()
        if self._directory_files is not None:
            self._directory_files.append_text(name, text)
        else:
            self.write_text(name, ((self._texts or {}).get(name) or "") + text)

    def read_text(self, name: str) -> str | None:
        """The text of a file of the stage; None when there is none, or when it was forgotten."""
        if self._deferred is not None and self._deferred[0] == name:
            self._compose()
        if self._directory_files is not None:
            return self._directory_files.read_text(name)
        return (self._texts or {}).get(name)

    def rename(self, name: str, new_name: str) -> None:
        """Give a file of the stage another name."""
        if self._directory_files is not None:
            self._directory_files.rename(name, new_name)
        elif (text := self.read_text(name)) is not None and self._texts is not None:
            del self._texts[name]
            self._texts[new_name] = text

    def take_in(self, limit: int) -> int:
        """Take texts of the directory into memory before it goes, so that the result can show them.

        Args:
            limit: How many bytes; files beyond it, and those that are no plain text files, are let go.

        Returns:
            How many bytes were taken.
        """
        files, self._directory_files = self._directory_files, None
        self._texts, taken = self._texts or {}, 0
        if files is None:
            return 0
        for path in sorted(files.directory.iterdir(), key=lambda path: path.name):
            size = path.lstat().st_size
            if taken + size > limit:
                continue
            with contextlib.suppress(AttractorError):  # a link, a pipe, a directory
                if (text := files.read_text(path.name)) is not None:
                    self._texts[path.name] = text
                    taken += size
        return taken

    def forget(self) -> int:
        """Drop what is kept in memory; how many characters that were."""
        size = sum(len(text) for text in (self._texts or {}).values())
        if self._deferred is not None:
            size += DEFERRED_CHARACTERS
        self._texts = self._deferred = None
        return size


class MemoryRunStore:
    """The store of a run that cannot be resumed (``protocols.RunStore``).

    Attributes:
        logs_root: Where the run directory is once something needed one; removed at the end.
        sequence: Number of the last event.
    """

    def __init__(self, *, clock: Clock, manifest: Mapping[str, Any] | None = None) -> None:
        self._values = ArtifactStore(clock)
        self._clock = clock
        self._manifest = dict(manifest or {})
        self.logs_root = Path(tempfile.gettempdir()) / f"attractor-{uuid4().hex}"
        self._first_root: Path | None = None
        self._lock = threading.RLock()
        self._kept: dict[MemoryStageFiles, None] = {}
        self._latest: dict[tuple[str, str], MemoryStageFiles] = {}
        self._kept_size = 0
        self._root: RunDirectory | None = None
        self._stages: StageDirectories | None = None
        self._branches: BranchDirectories | None = None
        self._threads: dict[str, Thread] = {}
        self._is_closed = False
        self.sequence = 0

    @property
    def values(self) -> ArtifactStore:
        """The store of large context values: memory."""
        return self._values

    @property
    def artifact_count(self) -> int:
        """The number of artifacts that the run has stored."""
        return len(self._values)

    @property
    def manifest(self) -> dict[str, Any]:
        """The current manifest."""
        return dict(self._manifest)

    def append(self, event: Event, *, is_synced: bool) -> None:  # noqa: ARG002 - the interface of all stores
        """Let an event go, without its secrets."""
        redact_event(event)
        self.sequence = event.sequence

    def check_owner(self) -> None:
        """Always pass: a run in memory has no other owner."""

    def open_stage(self, node_id: str, visit: int, attempt: int, branch: str = "") -> MemoryStageFiles:
        """The files of a new attempt: none yet."""
        files = self._latest[branch, node_id] = MemoryStageFiles(self, node_id, visit, attempt, branch)
        return files

    def close_branch(self, branch: str) -> None:
        """Give back what is held open for a branch in which no stage is under way."""
        with self._lock:
            if self._branches is not None:
                self._branches.close(branch)

    def read_events(self) -> tuple[Event, ...]:
        """None: events are let go."""
        return ()

    def read_stage_file(self, node_id: str, name: str, branch: str = "") -> str | None:
        """The text of a file of a stage's latest visit; None when there is none, or it was forgotten."""
        files = self._latest.get((branch, node_id))
        return None if files is None else files.read_text(name)

    def read_thread(self, thread: str, entry: str) -> str | None:
        """The text of a thread's entry; None when there is no such entry."""
        with self._lock:
            found = self._threads.get(thread)
            return None if found is None else found.text_of(entry)

    def save_thread(self, thread: str, entry: str, text: str, *, after: str) -> None:
        """Keep a whole conversation as an entry of a thread, without its secrets."""
        with self._lock:
            before = self._threads.get(thread) or Thread(thread=redacted(thread))
            self._threads[thread] = before.with_entry(entry, text, after=after)

    def is_checkpoint_due(self) -> bool:
        """Never: there is nowhere to keep one."""
        return False

    def save_checkpoint(self, checkpoint: Mapping[str, Any], *, is_forced: bool) -> None:
        """Let a checkpoint go."""

    def save_manifest(self, changes: Mapping[str, Any]) -> None:
        """Merge changes into the manifest."""
        self._manifest.update(changes)

    def make_restart(self, number: int, run_id: str) -> MemoryRunStore:
        """A fresh store for a ``loop_restart`` (ruling 21)."""
        fresh = MemoryRunStore(clock=self._clock, manifest={**self._manifest, "run_id": run_id})
        fresh._first_root = self._first_root or self.logs_root
        fresh.logs_root = fresh._first_root / f"restart-{number}"
        return fresh

    def close(self) -> None:
        """Remove what there is on disk; closing again does nothing."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._take_in_directories()
            self._kept.clear()
            root, self._root, self._stages = self._root, None, None
            branches, self._branches = self._branches, None
        if root is not None:
            if branches is not None:
                branches.close_all()
            root.close()
            shutil.rmtree(root.path, ignore_errors=True)
            if self._first_root is not None:
                with contextlib.suppress(OSError):  # the first run's has gone before, or is not empty yet
                    self._first_root.rmdir()

    def _take_in_directories(self) -> None:
        """Keep what the newest stages left, as far as there is room: ``result["build"]`` reads it."""
        if self._root is None:
            return
        left = MAX_KEPT_BYTES
        for files in reversed(self._latest.values()):
            with contextlib.suppress(OSError):  # a command may have removed its own directory
                left -= files.take_in(left)

    def note_growth(self, files: MemoryStageFiles, characters: int) -> None:
        """Count what a stage keeps, and forget the oldest when that is too much. For stages alone."""
        with self._lock:
            self._kept[files] = None
            self._kept_size += characters
            while self._kept_size > MAX_KEPT_BYTES and len(self._kept) > 1:
                oldest = next(iter(self._kept))
                if oldest is files:
                    break
                del self._kept[oldest]
                self._kept_size -= oldest.forget()

    def make_stage_directory(self, node_id: str, visit: int, attempt: int, branch: str) -> DirectoryStageFiles:
        """A real directory for an attempt. For stages alone."""
        with self._lock:
            if self._is_closed:
                raise StorageError("the run is closed", path=str(self.logs_root))
            if self._stages is None:
                self._stages = self._make_stages()
            if branch:
                return self._opened_branches().open(branch, node_id, visit, attempt)
            return self._stages.open(node_id, visit, attempt)

    def _opened_branches(self) -> BranchDirectories:
        if self._branches is None:
            assert self._root is not None, "its stages were made before"
            self._branches = BranchDirectories(Disk(), self._root, {})
        return self._branches

    def _make_stages(self) -> StageDirectories:
        disk = Disk()
        try:
            if self._first_root is not None:
                self._first_root.mkdir(mode=0o700, exist_ok=True)
            self.logs_root.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise storage_error(error, "make directory", self.logs_root) from error
        self._root = RunDirectory(disk, self.logs_root)
        return StageDirectories(
            disk,
            self._root,
            StageNames({}),
            announce_escape=lambda escaped: self.save_manifest({"stage_directories": dict(escaped)}),
            latest={},
        )
