"""The directories of stages: the latest visit in front, earlier ones under ``visits/`` (ruling 28).

What a stage writes is evidence for people; the run's state is in its log, and what must survive a
power loss is flushed there. A file is there whole or not at all when the process is killed, but for the
status of the attempt that was cut off, which may be empty; the files
of the last seconds before a power loss may be missing or empty. Flushing them too would cost a stage
ten times what its commit does, and tell a resumed run nothing. Every name is reached through open
directories without following links, because whatever ran in an earlier stage may have planted some.
"""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING

from attractor_nb.errors import StorageError
from attractor_nb.storage.attempt_files import MAX_STATUS_BYTES, DirectoryStageFiles
from attractor_nb.storage.files.atomic import TEMPORARY_PREFIX, read_plain_file, sweep
from attractor_nb.storage.files.disk import Disk, entry_names, storage_error
from attractor_nb.storage.files.strict_json import JsonProblem, read_json
from attractor_nb.storage.run_directory import STATUS_NAME, VISITS_NAME, RunDirectory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from attractor_nb.storage.stages.stage_names import StageNames


class StageDirectories:
    """Makes room for each new attempt of a stage."""

    def __init__(
        self,
        disk: Disk,
        root: RunDirectory,
        names: StageNames,
        *,
        announce_escape: Callable[[Mapping[str, str]], None] | None,
        latest: Mapping[str, tuple[int, int]],
        is_taken_over: bool = False,
    ) -> None:
        """Take up the stages of a run.

        Args:
            disk: Where.
            root: The run directory.
            names: Which directory belongs to which node.
            announce_escape: Records the escaped names, before the first use of a new one; None in a branch,
                whose names the log alone decides.
            latest: Visit and attempt whose files each node's directory holds now.
            is_taken_over: An earlier owner, or a command of it, may hold directories open: each that was
                there before is replaced by a new one when it is first needed.
        """
        self._disk = disk
        self._root = root
        self._names = names
        self._announce_escape = announce_escape
        self._latest = dict(latest)
        self._is_taken_over = is_taken_over
        self._known: dict[str, str] = {}

    def open(self, node_id: str, visit: int, attempt: int) -> DirectoryStageFiles:
        """The empty directory of a new attempt; files of earlier ones are moved to ``visits/``."""
        is_first = node_id not in self._known
        name = self._known.get(node_id) or self._learn(node_id, self._names.name_of(node_id))
        try:
            is_new = self._is_made(name)
            if not is_new and is_first and self._is_of_another(node_id, name):
                name = self._learn(node_id, self._names.escape(node_id))
                is_new = self._is_made(name)
            if not is_new:
                if is_first and self._is_taken_over:
                    self._replace(node_id, name)
                else:
                    self._move_aside(node_id, name)
        except OSError as error:
            raise storage_error(error, "make stage directory", self._root.path / name) from error
        self._latest[node_id] = (visit, attempt)
        return DirectoryStageFiles(self._disk, self._root, name)

    def _learn(self, node_id: str, name: str) -> str:
        if self._announce_escape is not None and name != node_id:
            self._announce_escape(self._names.escaped)
        self._known[node_id] = name
        return name

    def _is_made(self, name: str) -> bool:
        """Make a directory; False when something of that name is there."""
        try:
            self._disk.make_directory(name, self._root.descriptor)
        except FileExistsError:
            return False
        return True

    def _is_of_another(self, node_id: str, name: str) -> bool:
        """Whether what has the name of a stage that never began is none of ours, and stays (ruling 37).

        The directory of an attempt is made before its record, so an empty one is ours, and one with a status
        of ours is that of an attempt whose record a power loss took.
        """
        if self._announce_escape is None or name != node_id or node_id in self._latest:
            return False
        try:
            found = self._disk.open_directory(name, self._root.descriptor)
        except OSError:  # nothing is there; or a file or a link, which making the directory refuses
            return False
        try:
            return bool(self._evidence(found)) and recorded_attempt(STATUS_NAME, found) == (0, 0)
        finally:
            self._disk.close(found)

    def _replace(self, node_id: str, name: str) -> None:
        """Put a new directory in the place of one that others hold open, and the old one under its visits.

        Killed half way, the old one is left beside it under a name that no stage has.
        """
        root = self._root.descriptor
        aside = self._free_name(name)
        self._disk.rename(name, aside, root)
        self._disk.make_directory(name, root)
        old, stage = self._disk.open_directory(aside, root), self._disk.open_directory(name, root)
        try:
            with contextlib.suppress(FileNotFoundError):
                self._disk.rename(VISITS_NAME, VISITS_NAME, old, stage)
            visits = self._open_visits(stage)
            try:
                visit, attempt = self._latest.get(node_id) or recorded_attempt(STATUS_NAME, old)
                taken = entry_names(visits)
                place = next(place for place in _places(visit, attempt) if place not in taken)
                self._disk.rename(aside, place, root, visits)
            finally:
                self._disk.close(visits)
        finally:
            self._disk.close(old)
            self._disk.close(stage)

    def _free_name(self, name: str) -> str:
        taken = entry_names(self._root.descriptor)
        names = (f"{name}-taken-over-{number}" for number in itertools.count(1))
        return next(aside for aside in names if aside not in taken)

    def _move_aside(self, node_id: str, name: str) -> None:
        stage = self._disk.open_directory(name, self._root.descriptor)
        try:
            entries = self._evidence(stage)
            if not entries:
                return
            visit, attempt = self._latest.get(node_id) or recorded_attempt(STATUS_NAME, stage)
            # The status file leaves first: whatever happens next, it cannot be taken for a new one.
            entries.sort(key=lambda entry: (entry != STATUS_NAME, entry))
            visits = self._open_visits(stage)
            try:
                self._move(entries, stage, visits, _places(visit, attempt))
            finally:
                self._disk.close(visits)
        finally:
            self._disk.close(stage)

    def _evidence(self, stage: int) -> list[str]:
        """The entries that an earlier attempt left; the temporary files of a killed process are removed."""
        entries = [entry for entry in entry_names(stage) if entry != VISITS_NAME]
        left = [entry for entry in entries if entry.startswith(TEMPORARY_PREFIX)]
        if left:
            sweep(self._disk, stage)
            return [entry for entry in entries if entry not in left]
        return entries

    def _open_visits(self, stage: int) -> int:
        with contextlib.suppress(FileExistsError):
            self._disk.make_directory(VISITS_NAME, stage)
        return self._disk.open_directory(VISITS_NAME, stage)

    def _move(self, entries: list[str], stage: int, visits: int, places: Iterable[str]) -> None:
        """Move entries to the first place that holds none of them yet."""
        for place in places:
            with contextlib.suppress(FileExistsError):
                self._disk.make_directory(place, visits)
            target = self._disk.open_directory(place, visits)
            try:
                if set(entries).isdisjoint(entry_names(target)):
                    for entry in entries:
                        self._disk.rename(entry, entry, stage, target)
                    return
            finally:
                self._disk.close(target)


def _places(visit: int, attempt: int) -> Iterator[str]:
    """Candidate names for the directory of an attempt: ``1.1``, then ``1.1-2`` and so on."""
    yield f"{visit}.{attempt}"
    for number in itertools.count(2):
        yield f"{visit}.{attempt}-{number}"


def recorded_attempt(name: str | Path, parent: int | None = None) -> tuple[int, int]:
    """Visit and attempt that a status file of ours names; (0, 0) when there is no telling."""
    try:
        plain = read_json(read_plain_file(name, parent, max_bytes=MAX_STATUS_BYTES) or b"")
        visit, attempt = plain["visit"], plain["attempt"]
    except (StorageError, JsonProblem, KeyError, TypeError):
        return (0, 0)
    return (visit, attempt) if type(visit) is int and type(attempt) is int else (0, 0)
