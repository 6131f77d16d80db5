"""The directories of stages: the latest visit in front, earlier ones under ``visits/`` (ruling 28).

What a stage writes is evidence for users; the run's state is in its log, and what must survive a
power loss is flushed there. A file is there whole or not at all when the process is killed, but for the
status of the attempt that was cut off, which may be empty; the files
of the last seconds before a power loss may be missing or empty. Flushing them too would cost a stage
ten times what its commit does, and tell a resumed run nothing. Every name is reached through open
directories without following links, because whatever ran in an earlier stage may have planted some.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import stat
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec

from attractor_nb.errors import StorageError
from attractor_nb.platforms import O_CLOEXEC, O_NOFOLLOW, O_NONBLOCK
from attractor_nb.storage.attempt_files import MAX_STATUS_BYTES, DirectoryStageFiles
from attractor_nb.storage.files.atomic import TEMPORARY_PREFIX, read_plain_file, sweep
from attractor_nb.storage.files.disk import Disk, entry_names, open_below, storage_error
from attractor_nb.storage.files.strict_json import JsonProblem, read_json
from attractor_nb.storage.run_directory import STATUS_NAME, VISITS_NAME, RunDirectory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path


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
        """True if what has the name of a stage that never began is foreign, and stays (ruling 37).

        The directory of an attempt is made before its record, so an empty one is ours, and one with a status
        of this engine is that of an attempt whose record a power loss took.
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
    """Visit and attempt that a status file of this engine names; (0, 0) when there is no telling."""
    try:
        plain = read_json(read_plain_file(name, parent, max_bytes=MAX_STATUS_BYTES) or b"")
        visit, attempt = plain["visit"], plain["attempt"]
    except (StorageError, JsonProblem, KeyError, TypeError):
        return (0, 0)
    return (visit, attempt) if type(visit) is int and type(attempt) is int else (0, 0)


# Directory names of stages: the node id, wherever that is safe on every file system (ruling 32).
#
# An id that a file system may refuse, that some file systems take for another id (``Plan`` and
# ``plan``), or that the run directory needs itself is escaped: a readable beginning, ``~``, and a digest
# of the id. No id that is kept as it is contains ``~``.

MAX_NAME_LENGTH = 100
_UNSAFE_CHARACTER = re.compile(r"[^A-Za-z0-9_-]")
RUN_ENTRIES = frozenset(
    {
        *(
            "artifacts",
            "visits",
            "branches",
            "children",
            "threads",
            "workspace",
            "worktree",
            "pipeline.dot",
            "events.jsonl",
            "owner.json",
            "owner.lock",
        ),
        *("checkpoint.json", "checkpoint.previous.json", "manifest.json", "manifest.previous.json"),
    }
)
"""Names that the run directory needs itself."""
_RESERVED_BEGINNING = "restart-"
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul", *(f"{kind}{number}" for kind in ("com", "lpt") for number in range(10))}
)
"""Names that Windows keeps for itself, with whatever ending."""
_TAKEN = "|".join([*(rf"{name}(?:\.|\Z)" for name in _DEVICES), *(rf"{re.escape(name)}\Z" for name in RUN_ENTRIES)])
_SAFE = re.compile(
    rf"(?!{_RESERVED_BEGINNING}|{_TAKEN})[a-z0-9_](?:[a-z0-9_.-]{{0,{MAX_NAME_LENGTH - 2}}}[a-z0-9_-])?",
    re.ASCII | re.IGNORECASE,
)
"""One expression, because a resume asks it of each stage that was visited."""


def is_safe_name(node_id: str) -> bool:
    """True if a node id can be a directory name everywhere.

    >>> is_safe_name("plan"), is_safe_name("CON"), is_safe_name("artifacts"), is_safe_name("a/b")
    (True, False, False, False)
    """
    return _SAFE.fullmatch(node_id) is not None


def escaped_name(node_id: str) -> str:
    """A safe name for any node id.

    >>> escaped_name("a/b")
    'a_b~c14cddc033f64b9d'
    """
    digest = sha256(node_id.encode("utf-8", "surrogatepass")).hexdigest()
    beginning = _UNSAFE_CHARACTER.sub("_", node_id[:40]).lstrip("-")
    return f"{beginning}~{digest[:16]}"


class StageNames:
    """The directory names of a run's nodes; no two nodes share one.

    Of ids that differ in case alone the first one visited keeps its spelling.
    """

    def __init__(self, escaped: Mapping[str, str], visited: Iterable[str] = ()) -> None:
        """Take up recorded names.

        Args:
            escaped: Recorded names of the nodes whose name is not their id; a name that is not the
                one we would give did not come from us and is not used.
            visited: Nodes that have a directory already, in the order of their first visit.
        """
        self._names = {node_id: name for node_id, name in escaped.items() if name == escaped_name(node_id)}
        self._taken = {name.casefold() for name in self._names.values()}
        for node_id in visited:
            self.name_of(node_id)

    def name_of(self, node_id: str) -> str:
        """The directory name of a node; the first call decides it."""
        name = self._names.get(node_id)
        if name is None:
            folded = node_id.casefold()
            if folded in self._taken or not is_safe_name(node_id):
                return self.escape(node_id)
            name = self._names[node_id] = node_id
            self._taken.add(folded)
        return name

    def escape(self, node_id: str) -> str:
        """Give a node another name than its id: what is not ours has that one."""
        name = self._names[node_id] = escaped_name(node_id)
        self._taken.add(name.casefold())
        return name

    @property
    def escaped(self) -> dict[str, str]:
        """The names that are not their node's id, for the manifest."""
        return {node_id: name for node_id, name in self._names.items() if name != node_id}


def recorded_name(node_id: str, escaped: Mapping[str, str]) -> str:
    """The directory name of a node in a run whose manifest records these escaped names."""
    return StageNames(escaped).name_of(node_id)


# The files that an attempt left in its directory, for display: names, sizes, the beginning of a text.
#
# Links are not followed and pipes are not opened: a stage's program may have planted some. A directory is
# listed as it is now, and its owner may continue to write.

MAX_LISTED: Final = 200
_OPEN: Final = os.O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC


class StageFile(msgspec.Struct, frozen=True):
    """A file of an attempt."""

    name: str  #: Its path in the directory, with ``/`` between folders.
    size: int  #: Bytes.
    problem: str = ""  #: Reason why it cannot be read, or empty.


class Listing(msgspec.Struct, frozen=True):
    """The files of an attempt."""

    files: tuple[StageFile, ...]  #: In the order of their names, folders last.
    is_cut: bool = False  #: There are more than are listed.


def list_stage(directory: Path, root: Path, limit: int = MAX_LISTED) -> Listing:
    """The files of an attempt; those of other visits are not among them. Nothing when there is no directory.

    Args:
        directory: The attempt's directory.
        root: The run directory; no link is followed on the way from it.
        limit: The maximum number of files to list.
    """
    found: list[StageFile] = []
    waiting = [""]
    while waiting:
        inside = waiting.pop()
        for name, facts in _entries(directory / inside if inside else directory, root):
            path = f"{inside}/{name}" if inside else name
            if name.startswith(TEMPORARY_PREFIX) or path == VISITS_NAME:
                continue
            if stat.S_ISDIR(facts.st_mode):
                waiting.append(path)
            elif len(found) == limit:
                return Listing(tuple(found), is_cut=True)
            else:
                problem = "" if stat.S_ISREG(facts.st_mode) else "not a plain file; it is not opened"
                found.append(StageFile(path, facts.st_size if not problem else 0, problem))
    return Listing(tuple(found))


def _entries(directory: Path, root: Path) -> list[tuple[str, os.stat_result]]:
    try:
        descriptor = open_below(root, directory.relative_to(root).parts)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise storage_error(error, "list", directory) from error
    try:
        with os.scandir(descriptor) as listing:
            return sorted(_present(listing))
    except OSError as error:
        raise storage_error(error, "list", directory) from error
    finally:
        os.close(descriptor)


def _present(entries: Iterable[os.DirEntry[str]]) -> Iterator[tuple[str, os.stat_result]]:
    for entry in entries:
        with contextlib.suppress(FileNotFoundError):  # its owner has just renamed or removed it
            yield entry.name, entry.stat(follow_symlinks=False)


def read_beginning(directory: Path, name: str, max_bytes: int, root: Path) -> tuple[str, int] | None:
    """The beginning of a file of an attempt, undecodable bytes replaced, and its size; None without one.

    Args:
        directory: The attempt's directory.
        name: The file, with ``/`` between folders.
        max_bytes: So much of it is read.
        root: The run directory; no link is followed on the way from it.
    """
    *folders, last = name.split("/")
    if any(part in {"", ".", ".."} or "\0" in part for part in (*folders, last)):
        raise StorageError(f"{name!r} is not a file of a stage", hint="use a name that the list of files has")
    opened = list[int]()
    try:
        opened.append(open_below(root, (*directory.relative_to(root).parts, *folders)))
        opened.append(os.open(last, _OPEN, dir_fd=opened[-1]))
        facts = os.fstat(opened[-1])
        if not stat.S_ISREG(facts.st_mode):
            raise StorageError(f"{directory / name} is not a plain file; it is not opened", path=name)
        return _text(os.pread(opened[-1], max_bytes, 0), is_whole=facts.st_size <= max_bytes), facts.st_size
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error(error, "read", directory / name) from error
    finally:
        for descriptor in reversed(opened):
            os.close(descriptor)


def _text(data: bytes, *, is_whole: bool) -> str:
    """Bytes as text; a character that was cut in two at the end is left out."""
    if is_whole:
        return data.decode("utf-8", "replace")
    for back in range(4):
        try:
            return data[: len(data) - back].decode("utf-8")
        except UnicodeDecodeError as error:
            if error.end < len(data) - back:
                break
    return data.decode("utf-8", "replace")
