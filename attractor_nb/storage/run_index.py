"""The runs under a runs base, as a list; and the index that makes the list cheap.

A line of a run that no process works on stays as it is until one of the files changes that it was made of. The
index keeps such lines with the stamps of those files, in this process and in a file of the runs base
(``INDEX_NAME``). It is never the truth: a line counts while its stamp fits, whether somebody owns the run
is asked of the lock each time, and without an index the list is the same.

The file is JSON lines, replaced as a whole in one step, and nobody waits for anybody: of two who write at
once the later one counts. A database could be changed in place, but its readers wait for locks and write
beside it, and a hostile one is a program. What writing costs is bounded by ``CHANGES_SHARE``.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections import OrderedDict
from functools import lru_cache
from hashlib import sha256
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from attractor_nb.errors import OptionError, StorageError
from attractor_nb.gc_pause import gc_paused
from attractor_nb.model.outcome import ResultMarks, Usage, usage_problem
from attractor_nb.model.states import PAUSED, WAITING
from attractor_nb.platforms import O_CLOEXEC, O_DIRECTORY, check_posix
from attractor_nb.redaction import may_hold, redacted_value
from attractor_nb.storage.files.atomic import TEMPORARY_PREFIX, read_plain_file, write_whole
from attractor_nb.storage.files.disk import Disk, storage_error
from attractor_nb.storage.files.strict_json import json_bytes, read_json
from attractor_nb.storage.log.event_log import EVENT_LOG_NAME
from attractor_nb.storage.log.lock import is_owned
from attractor_nb.storage.map_directory import MAP_NAME, row_number
from attractor_nb.storage.run_directory import SOURCE_NAME
from attractor_nb.storage.run_listing import (
    ENDED_FILES,
    KINDS,
    LASTING,
    MAP_FILES,
    MAX_TAGS,
    RUN_FILES,
    Dependencies,
    RunSummary,
    checked_tag,
    summarize_with_dependencies,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


# The form of the file that keeps lines of the list of runs: JSON lines behind a checksum.
#
# Anyone who may write into a runs base may have written it: it is read within bounds, each value is checked as
# that of a manifest is, and an invalid line counts as absent. It must not know when a line is still valid.

MAX_INDEX_BYTES: Final = 64 * 1024 * 1024
"""That of 100,000 runs; a folder of more is listed without its file."""
MAX_LINE_BYTES: Final = 64 * 1024
MAX_PLACES: Final = 16
STAMP_LENGTH: Final = 4
"""Numbers that a file is known by: inode, size, when it changed, when anything of it changed."""
SUMMARY_NAMES: Final = (
    *("run_id", "pipeline_name", "status", "start_time", "end_time", "kind", "duration", "stages", "usage"),
    *("tags", "marks", "lineage", "inputs", "note"),
)
"""Stored part of a summary: all but its paths, which index and dependencies know, and its owner: it has none."""
_FORM: Final = b'{"schema_version":4,"checksum":"%b"}\n'
"""The first line. The version is another one as soon as a line of the list is made in another way."""
_TEXTS: Final = itemgetter("run_id", "pipeline_name", "start_time", "lineage", "inputs", "note")
_FILES: Final[dict[str, tuple[str, ...]]] = {"ended": ENDED_FILES, "run": RUN_FILES, "map": MAP_FILES}
_WORDS: Final[dict[tuple[str, ...], str]] = {files: word for word, files in _FILES.items()}
_RESTART: Final = re.compile(r"restart-[0-9]{1,9}")


class KeptLine(msgspec.Struct, frozen=True):
    """A line that can hold for longer."""

    summary: RunSummary  #: The line.
    begun: int  #: When the directory was begun, in nanoseconds: what lines of one second are sorted by.
    dependencies: Dependencies  #: Files that it was read from.
    stamp: tuple[int, ...]  #: Stamp of these files, ``STAMP_LENGTH`` numbers each.


def index_bytes(lines: Mapping[str, KeptLine]) -> bytes:
    """The file of these lines, by the names of their directories; a line that holds a secret is left out."""
    body = b"".join(_encoded(name, line) for name, line in lines.items())
    return _FORM % sha256(body).hexdigest().encode() + body


def read_index(data: bytes, base: Path) -> dict[str, KeptLine]:
    """The lines of a file by the names of their directories; none when it is torn, altered or foreign."""
    body = data[data.find(b"\n") + 1 :]
    if data[: len(data) - len(body)] != _FORM % sha256(body).hexdigest().encode():
        return {}
    found: dict[str, KeptLine] = {}
    with gc_paused(len(body)):
        for raw in body.split(b"\n")[:-1]:
            with contextlib.suppress(OptionError, ValueError, TypeError):
                name, line = _decoded(raw, base)
                found[name] = line
    return found


def _encoded(name: str, line: KeptLine) -> bytes:
    summary, dependencies = line.summary, line.dependencies
    values = [getattr(summary, entry) for entry in SUMMARY_NAMES]
    if summary.usage is not None:
        values[SUMMARY_NAMES.index("usage")] = summary.usage.to_plain()
    values[SUMMARY_NAMES.index("marks")] = summary.marks.to_plain()
    head = [name, _WORDS[dependencies.names], dependencies.places, dependencies.asks_lock, line.begun, line.stamp]
    plain: list[Any] = [*head, *values]
    raw = json_bytes(plain) + b"\n"
    if len(raw) > MAX_LINE_BYTES or (may_hold(raw) and redacted_value(values) is not values):
        return b""
    return raw


def _decoded(raw: bytes, base: Path) -> tuple[str, KeptLine]:
    """A line and the name of its directory."""
    name, word, places, asks_lock, begun, stamp, *values = read_json(raw, max_bytes=MAX_LINE_BYTES)
    plain: dict[str, Any] = dict(zip(SUMMARY_NAMES, values, strict=True))
    _check(type(name) is str and "/" not in name and "\0" not in name and name not in {"", ".", ".."})
    dependencies = _dependencies(word, tuple(places), asks_lock)
    count = len(dependencies.places) * (1 + len(dependencies.names)) * STAMP_LENGTH
    _check(len(stamp) == count and {*map(type, (begun, *stamp))} == {int})
    return name, KeptLine(_summary(base / name, dependencies, plain), begun, dependencies, tuple(stamp))


@lru_cache(maxsize=1024)
def _dependencies(word: str, places: tuple[str, ...], asks_lock: object) -> Dependencies:
    _check(type(asks_lock) is bool and 0 < len(places) <= MAX_PLACES and places[0] == "")
    _check(all(_RESTART.fullmatch(place) for place in places[1:]))
    _check(word in _FILES)
    return Dependencies(places, _FILES[word], asks_lock is True)


def _summary(path: Path, dependencies: Dependencies, plain: dict[str, Any]) -> RunSummary:
    _check({*map(type, _TEXTS(plain))} == {str})
    _check(plain["status"] in LASTING and plain["kind"] in KINDS)
    _check(plain["end_time"] is None or type(plain["end_time"]) is str)
    plain["marks"] = ResultMarks.from_plain(plain["marks"])
    duration, stages, usage = plain["duration"], plain["stages"], plain["usage"]
    _check(duration is None or (type(duration) in {int, float} and duration >= 0))
    _check(stages is None or (type(stages) is int and stages >= 0))
    tags: list[object] = plain["tags"]
    _check(type(tags) is list and len(tags) <= MAX_TAGS)
    plain["tags"] = tuple([checked_tag(tag) for tag in tags])
    if usage is not None:
        _check(type(usage) is dict)
        plain["usage"] = Usage.from_plain(usage)
        _check(not usage_problem(plain["usage"]))
    return RunSummary(path, **plain, restart_root=path / dependencies.places[-1] if dependencies.places[-1] else None)


def _check(is_so: object) -> None:
    if not is_so:
        raise ValueError


INDEX_NAME: Final = ".runs-index.jsonl"
SETTLED_NS: Final = 2_000_000_000
"""Time that a file must have been unchanged before its stamp is reliable: the clocks of file systems
tick, and of two changes within a tick the second one leaves the stamp as it is."""
MIN_CHANGES: Final = 32
"""Lines that must be new before the file is written: a few are quickly made, and small folders stay clean."""
CHANGES_SHARE: Final = 128
"""This fraction of lines must be new: writing the others again then takes less time than making these."""
MAX_BASES: Final = 16
"""The runs base, and maps that are not complete, whose rows are listed beside it."""
_STRAY_SECONDS: Final = 3600.0
_NO_FILE: Final = (0,) * STAMP_LENGTH


class _Known(msgspec.Struct):
    """The index of a runs base in this process."""

    lines: dict[str, KeptLine] = {}  #: Lines that hold while their stamps fit, by the names of their directories.
    changes: int = 0  #: Number of entries that the file lacks, or has in vain.


_KNOWN: OrderedDict[tuple[str, int, int], _Known] = OrderedDict()
_KNOWN_LOCK: Final = threading.Lock()


def list_runs(base: Path) -> list[RunSummary]:
    """The runs and maps under a runs base, newest first; directories that are neither are passed over.

    So is what a killed process had begun to write and never gave its name: a fork.
    """
    check_posix()
    try:
        home = os.open(base, os.O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise storage_error(error, "read", base) from error
    try:
        names, strays = _entries(home)
        facts = os.fstat(home)
        key = str(base), facts.st_dev, facts.st_ino
        known = _known(key) or _read(home, base)
        found, lines, fresh = _listed(base, home, names, known.lines)
        changes = known.changes + fresh + len(known.lines.keys() - lines.keys())
        if changes >= max(MIN_CHANGES, len(lines) // CHANGES_SHARE):
            changes = 0  # a disk that refuses is not asked again for each list
            _write(home, base, lines, strays)
        _keep(key, _Known(lines, changes))
    except OSError as error:
        raise storage_error(error, "read", base) from error
    finally:
        os.close(home)
    found.sort(key=lambda line: line[1:], reverse=True)
    return [line[0] for line in found]


MOST_ROWS: Final = 500
"""Rows of one map whose questions are listed."""


def waiting_rows(of_map: RunSummary) -> tuple[list[RunSummary], int]:
    """The rows of a map that is not complete at which a question may wait, and how many wait beyond the bound.

    An active row waits where its status says so. Of inactive rows that can be resumed, paused ones are first: each of
    the others may have asked before its process was lost.
    """
    if not (of_map.is_live or of_map.is_resumable):
        return [], 0
    rows = sorted(list_runs(of_map.logs_root), key=lambda row: row.logs_root.name)
    rows = [row for row in rows if row_number(row.logs_root.name) is not None]
    asking = [row for row in rows if row.status in {WAITING, PAUSED}]
    lost = [row for row in rows if row.is_resumable and row.status != PAUSED]
    return [*asking, *lost][:MOST_ROWS], len(asking[MOST_ROWS:])


def forget_lists() -> None:
    """Forget what this process knows of runs bases: the next list is that of a new process."""
    with _KNOWN_LOCK:
        _KNOWN.clear()


def _known(key: tuple[str, int, int]) -> _Known | None:
    with _KNOWN_LOCK:
        return _KNOWN.get(key)


def _keep(key: tuple[str, int, int], known: _Known) -> None:
    with _KNOWN_LOCK:
        _KNOWN[key] = known
        _KNOWN.move_to_end(key)
        while len(_KNOWN) > MAX_BASES:
            _KNOWN.popitem(last=False)


def _entries(home: int) -> tuple[list[str], list[str]]:
    """The directories in a runs base, and temporary files of writers, live or killed."""
    names: list[str] = []
    strays: list[str] = []
    with os.scandir(home) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if not entry.name.startswith(TEMPORARY_PREFIX):
                    names.append(entry.name)
            elif entry.name.startswith(TEMPORARY_PREFIX):
                strays.append(entry.name)
    return names, strays


def _listed(
    base: Path, home: int, names: list[str], known: dict[str, KeptLine]
) -> tuple[list[tuple[RunSummary, str, int, str]], dict[str, KeptLine], int]:
    """Each line with what it is sorted by; those of them that can be kept; how many of these are new."""
    found: list[tuple[RunSummary, str, int, str]] = []
    lines: dict[str, KeptLine] = {}
    fresh = 0
    for name in names:
        line = known.get(name)
        if line is None or not _holds(base, home, name, line):
            now = time.time_ns()
            summary, dependencies = summarize_with_dependencies(base / name)
            if summary is None:
                continue
            begun = _begun(summary.logs_root)
            line = None if dependencies is None else _kept(home, summary, begun, dependencies, now)
            if line is None:
                found.append((summary, summary.start_time, begun, name))
                continue
            fresh += 1
        lines[name] = line
        found.append((line.summary, line.summary.start_time, line.begun, name))
    return found, lines, fresh


def _kept(home: int, summary: RunSummary, begun: int, dependencies: Dependencies, before: int) -> KeptLine | None:
    """A line to keep; None when one of its files has changed so lately that it may change unnoticed.

    A change while the line was being made is such a one, so the stamp can be taken behind it.
    """
    if len(dependencies.places) > MAX_PLACES:
        return None
    stamp = _stamp(home, summary.logs_root.name, dependencies)
    changed = max(*stamp[2::STAMP_LENGTH], *stamp[3::STAMP_LENGTH])
    return KeptLine(summary, begun, dependencies, stamp) if changed < before - SETTLED_NS else None


def _holds(base: Path, home: int, name: str, line: KeptLine) -> bool:
    """True if a line is what would be made of the directory now."""
    dependencies = line.dependencies
    if not _fits(home, name, line):
        return False
    return not (dependencies.asks_lock and any(is_owned(base / name / place) for place in dependencies.places))


def _stamp(home: int, name: str, dependencies: Dependencies) -> tuple[int, ...]:
    """The stamp of the directories and files: inode, size and times.

    A directory changes when one of its files is replaced, which is how all our files are but the log; a file,
    when somebody writes into it. When it was changed at all (``ctime``) nobody can set back.
    """
    numbers: list[int] = []
    for place in dependencies.places:
        path = f"{name}/{place}" if place else name
        numbers += _facts(home, path)
        for file in dependencies.names:
            numbers += _facts(home, f"{path}/{file}")
    return tuple(numbers)


def _fits(home: int, name: str, line: KeptLine) -> bool:
    """True if the stamp is as it was.

    A directory is before its files, and one that has changed ends the look: so what was not in it is not
    there now, and is not asked for.
    """
    stamp, at = line.stamp, 0
    for place in line.dependencies.places:
        path = f"{name}/{place}" if place else name
        if _facts(home, path) != stamp[at : at + STAMP_LENGTH]:
            return False
        for file in line.dependencies.names:
            at += STAMP_LENGTH
            before = stamp[at : at + STAMP_LENGTH]
            if before[0] and _facts(home, f"{path}/{file}") != before:
                return False
        at += STAMP_LENGTH
    return True


def _facts(home: int, path: str) -> tuple[int, ...]:
    try:
        facts = os.stat(path, dir_fd=home, follow_symlinks=False)
    except OSError:
        return _NO_FILE
    return facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def _begun(path: Path) -> int:
    """When a directory was begun, finer than in seconds: its source is written once."""
    try:
        return os.lstat(path / SOURCE_NAME).st_mtime_ns
    except OSError:
        return 0


def _read(home: int, base: Path) -> _Known:
    """The index from the file of a runs base, if the owner of the base wrote it; else an empty one."""
    try:
        if os.stat(INDEX_NAME, dir_fd=home, follow_symlinks=False).st_uid != os.fstat(home).st_uid:
            return _Known()
        data = read_plain_file(INDEX_NAME, home, directory=base, max_bytes=MAX_INDEX_BYTES)
    except (OSError, StorageError):
        return _Known()
    return _Known(read_index(data or b"", base))


def _write(home: int, base: Path, lines: dict[str, KeptLine], strays: list[str]) -> None:
    """Replace the file, where it is ours to write: in no run and no map, and in no other user's folder."""
    if os.fstat(home).st_uid != os.geteuid():
        return
    if any(os.path.lexists(base / name) for name in (EVENT_LOG_NAME, MAP_NAME)):
        return
    data = index_bytes(lines)
    if len(data) > MAX_INDEX_BYTES:
        return
    disk = Disk()
    with contextlib.suppress(StorageError):
        write_whole(disk, home, INDEX_NAME, data, directory=base, is_synced=False)
    for name in strays:
        with contextlib.suppress(OSError):
            if time.time() - os.stat(name, dir_fd=home, follow_symlinks=False).st_mtime > _STRAY_SECONDS:
                disk.remove(name, home)
