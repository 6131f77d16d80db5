"""A run on disk: the one object through which a running pipeline keeps what must last.

It puts the log, the projections, the stage directories, the artifacts and the lock of one run
directory behind ``protocols.RunStore``. It decides nothing about the run itself.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from attractor_nb.decisions.log_history import latest_attempts
from attractor_nb.errors import RunError, StorageError
from attractor_nb.storage.attempt_files import read_stage_text
from attractor_nb.storage.checkpoint_file import CheckpointSchedule, checkpoint_file
from attractor_nb.storage.child_directories import restart_facts, restart_place, set_leftover_aside
from attractor_nb.storage.directory_survey import check_became_no_run, check_is_run, check_may_become_run
from attractor_nb.storage.files.disk import Disk, Durability, before_a_record, check_durability
from attractor_nb.storage.log.event_log import Ownership, read_log
from attractor_nb.storage.manifest_file import ManifestFile, manifest_from_events, read_manifest
from attractor_nb.storage.run_directory import RunDirectory, make_directory, utc_text
from attractor_nb.storage.stages.artifact_store import ArtifactStore
from attractor_nb.storage.stages.branch_directories import BranchDirectories, Place, places_of
from attractor_nb.storage.stages.stage_directories import StageDirectories, StageNames
from attractor_nb.storage.stages.thread_files import ThreadDirectory
from attractor_nb.storage.stored_run import source_of, write_sources

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from attractor_nb.model.events import Event
    from attractor_nb.protocols import Clock
    from attractor_nb.stage import StageFiles
    from attractor_nb.storage.log.event_lines import LogScan


class DirectoryRunStore:
    """The store of a run directory that this process owns (``protocols.RunStore``).

    Attributes:
        logs_root: The run directory.
        check_owner: Checks that this process still owns the run; raises ``RunLocked`` when it does not.
    """

    def __init__(
        self,
        root: RunDirectory,
        *,
        durability: str,
        clock: Clock,
        disk: Disk,
        source_text: str | None,
        child_sources: Mapping[str, str] | None = None,
        take_over: bool = False,
    ) -> None:
        """Take ownership; ``create`` and ``open`` are the ways to come here."""
        self._root = root
        self.logs_root = root.path
        self._durability: Durability = check_durability(durability)
        self._is_full = durability == "full"
        self._clock = clock
        self._bare_disk = disk
        self._is_closed = False
        self._ownership = Ownership(disk, root, self._durability, clock, take_over=take_over)
        self._disk = self._ownership.disk
        try:
            if source_text is not None:
                check_became_no_run(root.path)
            self._ownership.announce()
            if source_text is not None:
                write_sources(self._disk, root, source_text, child_sources or {}, is_synced=self._is_full)
            self._log = self._ownership.open_log()
            self.check_owner = self._log.check
            self._values = ArtifactStore(clock, disk=self._disk, root=root, is_synced=self._is_full)
            self._values.sweep()
            self._threads = ThreadDirectory(self._disk, root, is_synced=self._is_full)
            self._threads.sweep()
        except BaseException:  # an interrupt, too, must give the run up, or a resume finds it locked
            self._ownership.release()
            raise
        self._checkpoints = checkpoint_file(self._disk, root, is_synced=self._is_full)
        self._schedule = CheckpointSchedule(clock.monotonic())
        self._is_checkpoint_asked = False

    @classmethod
    def create(
        cls,
        logs_root: Path,
        *,
        durability: str,
        source_text: str,
        manifest: Mapping[str, Any],
        clock: Clock,
        disk: Disk | None = None,
        child_sources: Mapping[str, str] | None = None,
    ) -> DirectoryRunStore:
        """Begin a run in a directory, which is made if need be.

        Status and start time are added to the manifest; sources of children are by the place of their runs.
        """
        check_durability(durability)
        disk = disk or Disk()
        make_directory(disk, logs_root, is_synced=durability == "full")
        root = RunDirectory(disk, logs_root)
        try:
            check_may_become_run(root.path)
            store = cls(
                root,
                durability=durability,
                clock=clock,
                disk=disk,
                source_text=source_text,
                child_sources=child_sources,
            )
        except BaseException:  # an interrupt, too, must leave no directory open
            root.close()
            raise
        facts = {"status": "running", "start_time": utc_text(clock.time()), "end_time": None, **manifest}
        return store._begin(facts, {}, {})

    @classmethod
    def open(
        cls, logs_root: Path, *, durability: str, clock: Clock, disk: Disk | None = None, take_over: bool = False
    ) -> DirectoryRunStore:
        """Take ownership of a run that was stopped, and mend what its last owner left unfinished.

        ``take_over`` takes it from an owner who is frozen, or was on another machine and is gone. Should that
        owner continue after all, it loses.
        """
        check_durability(durability)
        disk = disk or Disk()
        root = RunDirectory(disk, logs_root)
        try:
            check_is_run(root.path)
            store = cls(root, durability=durability, clock=clock, disk=disk, source_text=None, take_over=take_over)
        except BaseException:  # an interrupt, too, must leave no directory open
            root.close()
            raise
        events = store._log.scan.events
        facts, _ = read_manifest(root.path)
        facts, is_written = facts or manifest_from_events(events), facts is not None
        return store._begin(facts, latest_attempts(events), places_of(events), is_written=is_written)

    def _begin(
        self,
        facts: Mapping[str, Any],
        latest: Mapping[str, tuple[int, int]],
        in_branches: Mapping[Place, tuple[int, int]],
        *,
        is_written: bool = False,
    ) -> DirectoryRunStore:
        self._manifest = ManifestFile(self._disk, self._root, facts, is_synced=self._is_full)
        self._names = names = StageNames(facts.get("stage_directories", {}), latest)
        self._stages = StageDirectories(
            self._disk,
            self._root,
            names,
            announce_escape=lambda escaped: self._manifest.merge({"stage_directories": dict(escaped)}),
            latest=latest,
            is_taken_over=self._ownership.is_fenced,
        )
        self._branches = BranchDirectories(self._disk, self._root, in_branches, is_taken_over=self._ownership.is_fenced)
        if not is_written:
            try:
                self._manifest.merge({})
            except BaseException:  # an interrupt, too, must give the run up, or a resume finds it locked
                self.close()
                raise
        return self

    @property
    def scan(self) -> LogScan:
        """The content of the log when it was opened."""
        return self._log.scan

    @property
    def values(self) -> ArtifactStore:
        """The store of large context values."""
        return self._values

    @property
    def artifact_count(self) -> int:
        """The number of artifacts that the run has stored."""
        return len(self._values)

    @property
    def manifest(self) -> dict[str, Any]:
        """The current manifest."""
        return self._manifest.plain

    @property
    def sequence(self) -> int:
        """Number of the last event in the log; it alone knows, whatever an interrupt breaks off."""
        return self._log.sequence

    def append(self, event: Event, *, is_synced: bool) -> None:
        """Add a stamped event to the log; on stable storage before the return when ``is_synced``."""
        try:
            self._log.append(event, is_synced=is_synced)
        except StorageError as error:
            if self._log.sequence or self._manifest.plain.get("restart_of"):
                raise
            raise before_a_record(error) from error

    def open_stage(self, node_id: str, visit: int, attempt: int, branch: str = "") -> StageFiles:
        """The empty directory of a new attempt; files of earlier ones are moved aside (ruling 28)."""
        if branch:
            return self._branches.open(branch, node_id, visit, attempt)
        return self._stages.open(node_id, visit, attempt)

    def close_branch(self, branch: str) -> None:
        """Give back what is held open for a branch in which no stage is under way."""
        self._branches.close(branch)

    def read_events(self) -> tuple[Event, ...]:
        """The events of the log so far."""
        return read_log(self._root.path).events

    def read_stage_file(self, node_id: str, name: str, branch: str = "") -> str | None:
        """The text of a file of a stage's latest visit; None when there is none. After closing too."""
        names = self._branches.names_of(branch, node_id) if branch else (self._names.name_of(node_id),)
        return read_stage_text(self._root.path.joinpath(*names), name, self._root.path)

    def read_thread(self, thread: str, entry: str) -> str | None:
        """The text of a thread's entry; None when there is no such entry."""
        return self._threads.read(thread, entry)

    def save_thread(self, thread: str, entry: str, text: str, *, after: str) -> None:
        """Keep a whole conversation as an entry of a thread; on stable storage when the run is."""
        self._threads.save(thread, entry, text, after=after)

    def is_checkpoint_due(self) -> bool:
        """True if the next unforced checkpoint is due; asked once after each stage (ruling 29)."""
        self._is_checkpoint_asked = self._schedule.is_due(self._clock.monotonic(), self._log.offset)
        return self._is_checkpoint_asked

    def save_checkpoint(self, checkpoint: Mapping[str, Any], *, is_forced: bool) -> None:
        """Write checkpoint.json; unforced, only when one is due."""
        if not (is_forced or self._is_checkpoint_asked or self.is_checkpoint_due()):
            return
        self._is_checkpoint_asked = False
        # What the checkpoint contains must be in the log at least as surely as it is in the checkpoint.
        self._log.sync()
        position = {"log_sequence": self._log.sequence, "log_offset": self._log.offset}
        head = {"schema_version": 1, "timestamp": self._clock.time()}
        size = self._checkpoints.write({**head, **checkpoint, **position})
        self._schedule.note_saved(self._clock.monotonic(), self._log.offset, size)

    def save_manifest(self, changes: Mapping[str, Any]) -> None:
        """Merge changes into manifest.json, and say how far the log is safe: a shorter one is damaged."""
        self._manifest.merge({**changes, "log_sequence": self._log.acknowledged})

    def make_restart(self, number: int, run_id: str) -> DirectoryRunStore:
        """A fresh run directory ``restart-<number>`` inside the first run's (ruling 21).

        A directory of that name is left over from a restart that never began; it is renamed.
        """
        facts = self._manifest.plain
        path = restart_place(self._root.path, facts, number)
        self._log.check()
        set_leftover_aside(self._disk, path)
        try:
            fresh = DirectoryRunStore.create(
                path,
                durability=self._durability,
                source_text=source_of(self._root),
                manifest=restart_facts(facts, run_id=run_id, root=self._root.path, place=path),
                clock=self._clock,
                disk=self._bare_disk,
            )
        except RunError:
            self._log.check()  # what is there may be the restart of a new owner
            raise
        try:
            self._manifest.merge({"restarted_as": os.path.relpath(path, self._root.path)})
        except BaseException:  # an interrupt, too: no caller has it yet, and a resume must find it free
            fresh.close()
            raise
        return fresh

    def close(self) -> None:
        """Flush and give up ownership; closing again does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            self._log.close()
        finally:
            self._branches.close_all()
            self._root.close()
            self._ownership.release()
