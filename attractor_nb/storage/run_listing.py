"""A run as a line of the list of runs: its status, its totals, and its problems.

A line is made of a manifest and of the end of a log. A whole log is read where there is no manifest, and
where a run that is inactive has one that is short enough (``MAX_CHECKED_BYTES``): the list then knows, as
the doctor does, whether a resume could read it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from attractor_nb.errors import OptionError, RunError, RunNotFound, StorageError
from attractor_nb.languages.condition.parser import value_text
from attractor_nb.model.events import DebuggerStopped, PipelineRestarted, PipelineStarted, StageStarted
from attractor_nb.model.outcome import ResultMarks, Usage
from attractor_nb.model.redacted import is_reference
from attractor_nb.model.states import ABANDONED, ENDED, LIVE, WAITING
from attractor_nb.model.texts import shown
from attractor_nb.redaction import redacted
from attractor_nb.storage.checkpoint_file import CHECKPOINT_NAME, find_legacy_checkpoints, read_checkpoint
from attractor_nb.storage.directory_survey import UNFINISHED_LOG, listed
from attractor_nb.storage.files.atomic import TEMPORARY_PREFIX, read_plain_file, write_whole
from attractor_nb.storage.files.disk import Disk, storage_error
from attractor_nb.storage.files.strict_json import JsonProblem, json_bytes, read_json
from attractor_nb.storage.log.event_lines import decode_line
from attractor_nb.storage.log.event_log import EVENT_LOG_NAME, REPLACEMENT_NAME, read_log
from attractor_nb.storage.log.lock import LOCK_NAME, OwnerLock, is_owned, read_owner
from attractor_nb.storage.manifest_file import (
    DAMAGED,
    GOES_ON,
    MANIFEST_NAME,
    RESTARTED,
    UNDER_WAY,
    CurrentStatus,
    asking_stages,
    current_status,
    read_manifest,
)
from attractor_nb.storage.map_directory import INPUTS_NAME, MAP_NAME, is_evaluation, read_map
from attractor_nb.storage.run_directory import SHOWN_NAME, SOURCE_NAME, STATUS_NAME, VISITS_NAME, RunDirectory
from attractor_nb.storage.sealed_file import previous_name, unseal
from attractor_nb.storage.stages.stage_directories import RUN_ENTRIES, StageNames, recorded_attempt
from attractor_nb.storage.stored_run import read_facts, read_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from attractor_nb.protocols import Clock


# Tags that people put on runs, in their own file in the run directory.
#
# The manifest is rewritten by the run's owner, so a tag of another process would be lost there. Tagging needs no
# ownership; of two concurrent writers the later one wins.

KINDS: Final = ("run", "map", "evaluation")
TAGS_NAME: Final = ".tags.json"
"""No directory of a stage begins with a dot."""
MAX_TAGS: Final = 50
MAX_TAG_CHARS: Final = 60
_MAX_BYTES: Final = 64 * 1024


def checked_tag(tag: object) -> str:
    """A tag as it is kept: one line, no blanks around it."""
    text = redacted(tag).strip() if isinstance(tag, str) else ""
    if not text or len(text) > MAX_TAG_CHARS or not text.isprintable() or "," in text:
        raise OptionError(f"{tag!r:.80} is not a tag", hint=f"1 to {MAX_TAG_CHARS} visible characters, without a comma")
    return text


def read_tags(logs_root: Path) -> tuple[tuple[str, ...], str]:
    """The tags of a run, and what is wrong with their file, or empty."""
    try:
        data = read_plain_file(logs_root / TAGS_NAME, max_bytes=_MAX_BYTES)
        if data is None:
            return (), ""
        plain = read_json(data)
    except (JsonProblem, StorageError) as error:
        return (), f"{TAGS_NAME}: {error}"
    found = cast("dict[str, object]", plain).get("tags") if isinstance(plain, dict) else None
    if not isinstance(found, list):
        return (), f"{TAGS_NAME} has no list of tags"
    tags: list[str] = []
    for tag in cast("list[object]", found)[:MAX_TAGS]:
        try:
            tags.append(checked_tag(tag))
        except OptionError:
            return tuple(tags), f"{TAGS_NAME} holds something that is not a tag"
    return tuple(dict.fromkeys(tags)), ""


def change_tags(
    logs_root: Path, *, add: Iterable[str] = (), remove: Iterable[str] = (), disk: Disk | None = None
) -> tuple[str, ...]:
    """Put tags on a run, and take some away; those that it has then."""
    added = [checked_tag(tag) for tag in add]
    removed = {checked_tag(tag) for tag in remove}
    disk = disk or Disk()
    root = RunDirectory(disk, logs_root)
    try:
        before, _ = read_tags(logs_root)
        tags = tuple(dict.fromkeys(tag for tag in (*before, *added) if tag not in removed))
        if len(tags) > MAX_TAGS:
            raise OptionError(f"a run has at most {MAX_TAGS} tags", hint="untag some of them first")
        if tags != before:
            data = json_bytes({"schema_version": _SCHEMA_VERSION, "tags": list(tags)}) + b"\n"
            write_whole(disk, root.descriptor, TAGS_NAME, data, directory=root.path, is_synced=False)
    finally:
        root.close()
    return tags


MAX_CHECKED_BYTES: Final = 1024 * 1024
MAX_CHECKPOINT_BYTES: Final = 1024 * 1024
_MAX_MANIFEST_BYTES: Final = 16 * 1024 * 1024
HALF_WRITTEN, HALF_DELETED, NEWER, FOREIGN = "half-written", "half-deleted", "newer", "foreign"
UNREADABLE: Final = frozenset({DAMAGED, HALF_WRITTEN, HALF_DELETED, NEWER, FOREIGN})
"""Statuses of a directory that is no complete run of this engine."""
LASTING: Final = ENDED | GOES_ON
"""Statuses of complete, inactive runs and maps."""
_SCHEMA_VERSION: Final = 1
_LINEAGE: Final = (("fork_of", "fork of"), ("continued_from", "continues"), ("restart_of", "restart of"))


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A line of the list of runs."""

    logs_root: Path  #: The run directory.
    run_id: str  #: The run.
    pipeline_name: str  #: Name of the pipeline.
    #: As in the manifest; ``waiting`` while a question of it waits for an answer, or the debugger has stopped it;
    #: ``abandoned`` when its owner died; ``damaged`` when unreadable or cut short; ``half-written``, ``half-deleted``,
    #: ``newer`` (of a newer version of this library) or ``foreign`` (of another engine). Of a run that continued in a
    #: restart directory, its status there.
    status: str
    start_time: str  #: ISO 8601 UTC, or empty.
    end_time: str | None  #: ISO 8601 UTC, or None while it is active.
    #: ``pid``, ``host``, ``since`` and ``token`` of the owner, while there is one.
    owner: Mapping[str, Any] = field(default_factory=dict[str, Any])
    kind: str = "run"  #: ``run``, ``map``, or ``evaluation``: a map whose rows are scored.
    duration: float | None = None  #: Seconds of running time by its latest end; None when that is not known.
    stages: int | None = None  #: Stages committed, of a map its rows; None when that is not known.
    usage: Usage | None = None  #: Usage of model calls; None when that is unknown.
    tags: tuple[str, ...] = ()  #: Tags by users.
    #: Mark of its result: simulated, pinned (ruling 48).
    marks: ResultMarks = field(default_factory=ResultMarks)
    lineage: str = ""  #: Origin and continuation, in words; empty for most.
    inputs: str = ""  #: The inputs that it began with, in a line: ``ticket=41, size=3``; empty for none.
    note: str = ""  #: Stage of a live run, reason of a failure, or problem of the directory with its remedy.
    restart_root: Path | None = None  #: The directory of its latest restart; None when there was none.

    @property
    def current_directory(self) -> Path:
        """The current directory of the run, with its open questions."""
        return self.restart_root or self.logs_root

    @property
    def is_map(self) -> bool:
        """True for a map, scored or not; its rows are runs."""
        return self.kind != "run"

    @property
    def mark(self) -> str:
        """``simulated``, ``partly simulated``, ``pinned: NODE``; empty for a result without a mark."""
        return self.marks.words

    @property
    def is_simulated(self) -> bool:
        """True if answers of it are made up, at least in part."""
        return self.marks.is_simulated

    @property
    def is_live(self) -> bool:
        """True if a process works at it now."""
        return self.status in UNDER_WAY

    @property
    def is_resumable(self) -> bool:
        """True if a resume takes it to its end."""
        return self.status in GOES_ON


class Dependencies(msgspec.Struct, frozen=True):
    """The files and directories that a line depends on: the line is valid until one of them changes."""

    places: tuple[str, ...]  #: The directory itself, which is empty, and those inside in which the run continued.
    names: tuple[str, ...]  #: Names of the files that were read there, if they are there.
    asks_lock: bool  #: The line holds only as long as none of the places has an owner.


_MAX_FIRST_BYTES: Final = 256 * 1024
"""The inputs of a run whose first record is longer are not shown."""
_INPUT_CHARS: Final = 80
_INPUTS_CHARS: Final = 240
ENDED_FILES: Final = (EVENT_LOG_NAME, MANIFEST_NAME, TAGS_NAME)
"""Of a run whose manifest is whole and says all."""
_PROJECTIONS: Final = (MANIFEST_NAME, CHECKPOINT_NAME)
RUN_FILES: Final = (*(EVENT_LOG_NAME, TAGS_NAME, SOURCE_NAME), *_PROJECTIONS, *map(previous_name, _PROJECTIONS))
MAP_FILES: Final = (MAP_NAME, previous_name(MAP_NAME), TAGS_NAME)


def summarize(path: Path) -> RunSummary | None:
    """The line of one directory; None for one that is no run, no map, and the rest of neither."""
    return summarize_with_dependencies(path)[0]


def summarize_with_dependencies(path: Path) -> tuple[RunSummary | None, Dependencies | None]:
    """The line of one directory, and what it was made of; None for one that is to be made anew each time.

    So is that of a run under way, and of whatever is not whole.
    """
    if is_half_deleted(path):
        note = "a delete was interrupted; delete it again"
        return RunSummary(path, "", "", HALF_DELETED, "", None, note=note), None
    try:
        if os.path.lexists(path / EVENT_LOG_NAME):
            return _summary_of_run(path)
        if os.path.lexists(path / MAP_NAME):
            return _summary_of_map(path)
        return _summary_of_rest(path), None
    except (OSError, StorageError) as error:
        return _damaged(path, str(error)), None


def _summary_of_run(path: Path) -> tuple[RunSummary, Dependencies | None]:
    manifest, problems = read_manifest(path)
    if problems and (version := _newer_version(path)):
        return _newer(path, version, manifest or {}), None
    is_whole = manifest is not None and not problems and os.path.lexists(path / MANIFEST_NAME)
    try:
        manifest = manifest or read_facts(path)
    except RunError as error:
        return _damaged(path, error.message), None
    current = current_status(path, manifest)
    status, note, asking = current.status, "", ()
    if current.status == DAMAGED:
        note = "its log has lost records"
    elif current.status in GOES_ON and (problem := _what_keeps_it(path)):
        status, note = DAMAGED, problem
    elif current.status in LIVE:
        asking = asking_stages(current.logs_root)
        is_waiting = asking or isinstance(current.last, DebuggerStopped)
        status = WAITING if is_waiting else status
    tags, tags_problem = read_tags(path)
    duration, stages, usage = _totals(current)
    summary = RunSummary(
        path,
        manifest.get("run_id", ""),
        manifest.get("pipeline_name", ""),
        status,
        manifest.get("start_time", ""),
        current.end_time,
        current.owner,
        duration=duration,
        stages=stages,
        usage=usage,
        tags=tags,
        marks=ResultMarks.of_facts(current.manifest),
        lineage=_lineage(manifest, current),
        inputs=_inputs(path),
        note=_with_remedy(note, path) if note else "; ".join(filter(None, (_news(current, asking), tags_problem))),
        restart_root=current.logs_root if len(current.places) > 1 else None,
    )
    return summary, _dependencies_of_run(summary, manifest, current) if is_whole else None


def _dependencies_of_run(
    summary: RunSummary, manifest: Mapping[str, Any], current: CurrentStatus
) -> Dependencies | None:
    path, is_stopped = summary.logs_root, summary.status in GOES_ON
    is_inside = all(place.is_relative_to(path) for place in current.places)
    # A run that was to continue in a restart whose manifest could not be read: it may have one by now.
    is_between = summary.status == ABANDONED and (
        current.manifest.get("status") == RESTARTED or isinstance(current.last, PipelineRestarted)
    )
    if current.owner or summary.status not in LASTING or not is_inside or is_between:
        return None
    is_settled = not is_stopped and "stages" in current.manifest and len(current.places) == 1
    return Dependencies(
        tuple("" if place == path else place.relative_to(path).as_posix() for place in current.places),
        ENDED_FILES if is_settled else RUN_FILES,
        asks_lock=manifest.get("status", "running") in {*LIVE, RESTARTED},
    )


def _summary_of_map(path: Path) -> tuple[RunSummary, Dependencies | None]:
    try:
        facts = read_map(path)
    except RunError as error:
        return _damaged(path, error.message), None
    owned = is_owned(path)
    status = str(facts["status"])
    if status in LIVE and not owned:
        status = ABANDONED
    tags, note = read_tags(path)
    summary = RunSummary(
        path,
        str(facts.get("map_id", "")),
        str(facts.get("pipeline_name", "")),
        status,
        str(facts.get("start_time", "")),
        facts.get("end_time"),
        read_owner(path) if owned else {},
        kind="evaluation" if is_evaluation(path) else "map",
        stages=len(facts["rows"]),
        tags=tags,
        marks=ResultMarks.of_facts(facts),
        note=str(facts.get("reason", "")) if status == "failed" else note,
    )
    return summary, Dependencies(("",), MAP_FILES, facts["status"] in LIVE) if status in LASTING else None


def _summary_of_rest(path: Path) -> RunSummary | None:
    """The line of a directory without a log or a map's manifest: barely begun, or of another engine; else None."""
    if os.path.lexists(path / LOCK_NAME):
        if is_owned(path):
            return RunSummary(path, "", "", "running", "", None, read_owner(path), note="it is starting")
        note = "its process ended before the first record; nothing is lost, delete it"
        return RunSummary(path, "", "", HALF_WRITTEN, "", None, note=note)
    if find_legacy_checkpoints(path):
        note = "of another engine, or of an older layout (continue from it with pipeline.resume(directory))"
        return RunSummary(path, "", "", FOREIGN, "", None, note=note)
    return None


def _damaged(path: Path, problem: str) -> RunSummary:
    tags, _ = read_tags(path)
    return RunSummary(path, "", "", DAMAGED, "", None, tags=tags, note=_with_remedy(problem, path))


def _with_remedy(problem: str, path: Path) -> str:
    words = problem.replace(f"{path}/", "").replace(f"{path}: ", "")
    return f"attractor-nb doctor {path.name} says what can be saved: {words}"


def _newer(path: Path, version: int, manifest: Mapping[str, Any]) -> RunSummary:
    known = f"schema {version}, this one knows {_SCHEMA_VERSION}"
    note = f"written by a newer version of this library ({known}); update it"
    name = str(manifest.get("pipeline_name", ""))
    start = str(manifest.get("start_time", ""))
    return RunSummary(path, str(manifest.get("run_id", "")), name, NEWER, start, None, note=note)


def _newer_version(path: Path) -> int:
    """The schema version of a manifest that we cannot read because it is newer; 0 for any other."""
    with contextlib.suppress(StorageError, JsonProblem):
        data = read_plain_file(path / MANIFEST_NAME, max_bytes=_MAX_MANIFEST_BYTES)
        plain = {} if data is None else unseal(data)
        version = plain.get("schema_version")
        return version if type(version) is int and version > _SCHEMA_VERSION else 0
    return 0


def _what_keeps_it(path: Path) -> str:
    """The reason a resume could not read a run that is not under way, as the doctor reports it; or empty."""
    try:
        if (path / EVENT_LOG_NAME).lstat().st_size <= MAX_CHECKED_BYTES:
            read_run(path)
    except RunError as error:
        return error.message
    return ""


def _totals(current: CurrentStatus) -> tuple[float | None, int | None, Usage | None]:
    """The duration, stages and usage of a run: from its manifest at its end, else from its checkpoint."""
    manifest = current.manifest
    if not current.owner and "stages" in manifest:
        usage = manifest.get("usage")
        return (manifest.get("duration"), manifest["stages"], Usage.from_plain(usage) if usage is not None else None)
    with contextlib.suppress(OSError):
        if (current.logs_root / CHECKPOINT_NAME).lstat().st_size <= MAX_CHECKPOINT_BYTES:
            checkpoint, _ = read_checkpoint(current.logs_root)
            if checkpoint is not None:
                seconds = checkpoint.get("state", {}).get("elapsed_seconds")
                spent = Usage.from_plain(checkpoint.get("usage", {}))
                return seconds, len(checkpoint["completed_nodes"]), spent
    return None, None, None


def _inputs(path: Path) -> str:
    """The inputs of a run in a line, from the first record of its log; long values are cut."""
    with contextlib.suppress(OSError), (path / EVENT_LOG_NAME).open("rb") as file:
        line = file.readline(_MAX_FIRST_BYTES)
        begun = decode_line(line.rstrip(b"\n")) if line.endswith(b"\n") else None
        if isinstance(begun, PipelineStarted):
            known = {name: value for name, value in begun.inputs.items() if not is_reference(value)}
            words = (f"{name}={_cut(redacted(value_text(value)), _INPUT_CHARS)}" for name, value in known.items())
            return _cut(redacted(", ".join(words)), _INPUTS_CHARS)
    return ""


def _cut(text: str, limit: int) -> str:
    line = shown(" ".join(text[: 4 * limit].split()))
    return line if len(line) <= limit else f"{line[: limit - 1]}\N{HORIZONTAL ELLIPSIS}"


def _lineage(manifest: Mapping[str, Any], current: CurrentStatus) -> str:
    parts = [f"{words} {value}" for key, words in _LINEAGE if (value := _place(manifest.get(key)))]
    if current.manifest is not manifest:
        parts.append(f"continued in {current.logs_root.name}")
    return ", ".join(parts)


def _place(value: Any) -> str:
    """The last name of a path that a manifest holds; of a mapping, that of its directory."""
    if isinstance(value, dict):
        value = value.get("directory") or value.get("run_id")  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return value.rstrip("/").rpartition("/")[2] if isinstance(value, str) else ""


def _news(current: CurrentStatus, asking: Sequence[str]) -> str:
    """The position of a live run, or the reason of one that ended without success."""
    last = current.last
    if current.status in LIVE:
        if asking:
            return f"waits at {', '.join(asking)}"
        if isinstance(last, DebuggerStopped):
            return f"stopped {last.moment} {last.node} by the debugger"
        return f"at {last.node_id}" if last is not None and last.node_id else ""
    if current.status == "completed":
        return ""
    reason = str(current.manifest.get("reason", ""))
    if current.status == ABANDONED:
        return reason or "its process ended"
    return "" if reason in {"paused", "cancelled"} else reason


# Removing a run: never one that is alive, never a directory that is no run, never the target of a link.
#
# It refuses, before it changes anything, a directory with foreign entries at its top level (ruling 37): an
# earlier version took ``--logs-root .`` for a run directory, and the user's files were in it.
#
# The directory is given another name first, in one step, so that a reader finds either a whole run or what
# is plainly the rest of one (``is_remains``). Removing the rest again ends what a killed process began.

REMAINS_BEGINNING: Final = ".deleted-"
_OURS: Final = RUN_ENTRIES | {
    *(MAP_NAME, previous_name(MAP_NAME), INPUTS_NAME, TAGS_NAME),
    *(UNFINISHED_LOG, REPLACEMENT_NAME, SHOWN_NAME),
}
_OUR_PATTERN: Final = re.compile(
    rf"{re.escape(TEMPORARY_PREFIX)}.*|restart-\d+(-leftover-\d+)?|row-\d+(\.sent)?", re.DOTALL
)
_ASIDE: Final = re.compile(r"-taken-over-\d+\Z")
_NOT_OF_A_STAGE: Final = re.compile(r"0\.0(-\d+)?")
"""Under a stage's ``visits``: what an earlier version found in the place of a stage, and moved there."""


def is_half_deleted(path: Path) -> bool:
    """True if a directory is what is left of a run that was being removed."""
    return path.name.startswith(REMAINS_BEGINNING)


def remove_run(base: Path, logs_root: Path, *, clock: Clock, disk: Disk | None = None) -> None:
    """Remove a run directory, or that of a map, or the remains of one.

    Args:
        base: The runs base that it is in.
        logs_root: The directory.
        clock: For the word of ownership that keeps others away meanwhile.
        disk: The disk's operations; tests give their own.
    """
    disk = disk or Disk()
    logs_root = logs_root.absolute()
    if logs_root.parent != base.absolute() or logs_root.name in {"", ".", ".."}:
        raise RunError(f"{logs_root} is not in the runs base {base}", hint="only what runs() lists is deleted")
    home = RunDirectory(disk, base)
    try:
        target = RunDirectory(disk, logs_root)  # refuses links
        try:
            remains = logs_root if is_half_deleted(logs_root) else _set_aside(disk, home, target, clock)
        finally:
            target.close()
        _remove_tree(remains)
    finally:
        home.close()


def _set_aside(disk: Disk, home: RunDirectory, target: RunDirectory, clock: Clock) -> Path:
    """Take a run's ownership and give its directory the name of remains."""
    path = target.path
    names = _stage_names(path)
    if names is None and not os.path.lexists(path / LOCK_NAME):  # events.jsonl is a common name
        raise RunNotFound(f"{path} holds no run, so it is left alone", hint="delete it yourself if you do not need it")
    if foreign := list(_foreign_entries(path, names)):
        raise RunError(
            f"{path} contains files that no run wrote: {listed(foreign)}; nothing was deleted",
            hint="move it elsewhere, then delete the run; or delete the files that you do not need",
        )
    for inner in _inner_directories(path):
        if is_owned(inner):
            raise RunError(f"{inner} is alive, so {path} is not deleted", hint="stop it first: run.cancel()")
    lock = OwnerLock(disk, target, clock)
    try:
        name = _free_name(home, path.name)
        disk.rename(path.name, name, home.descriptor)
    except OSError as error:
        raise storage_error(error, "delete", path) from error
    finally:
        lock.release()
    return home.path / name


def _stage_names(path: Path) -> set[str] | None:
    """The directories that the log of a run gives its stages; None when no log of this engine can be read."""
    try:
        events = read_log(path).events
        facts, _ = read_manifest(path)
    except RunError:
        return None
    visited = [event.name for event in events if isinstance(event, StageStarted) and not event.branch]
    names = StageNames((facts or {}).get("stage_directories", {}), visited)
    return {names.name_of(node_id) for node_id in visited} if events else None


def _foreign_entries(path: Path, stages: set[str] | None) -> Iterator[str]:
    """The foreign entries at the top level of a run directory and in the visits of its stages."""
    for entry in sorted(path.iterdir()):
        if entry.name in _OURS or _OUR_PATTERN.fullmatch(entry.name):
            continue
        if entry.is_symlink() or not entry.is_dir():
            yield entry.name
        elif _ASIDE.sub("", entry.name) in (stages or ()) or _is_left_by_a_stage(entry):
            visits = entry / VISITS_NAME
            if visits.is_dir() and not visits.is_symlink():
                for place in sorted(visits.iterdir()):
                    if _NOT_OF_A_STAGE.fullmatch(place.name):
                        yield place.relative_to(path).as_posix()
        else:
            yield entry.name


def _is_left_by_a_stage(directory: Path) -> bool:
    """True if a directory of which the log says nothing is a stage's: empty, or with a status file of this engine."""
    return not any(directory.iterdir()) or recorded_attempt(directory / STATUS_NAME) != (0, 0)


def _inner_directories(path: Path) -> Iterator[Path]:
    """The inner directories that a process can own: restarts, the rows of a map, child runs however deep."""
    for folder, folders, names in os.walk(path):
        folders[:] = [name for name in folders if not (Path(folder) / name).is_symlink()]
        if LOCK_NAME in names and Path(folder) != path:
            yield Path(folder)


def _free_name(home: RunDirectory, name: str) -> str:
    for number in range(1, 1000):
        candidate = f"{REMAINS_BEGINNING}{name}" + (f"-{number}" if number > 1 else "")
        if not os.path.lexists(home.path / candidate):
            return candidate
    raise StorageError(f"no free name for the remains of {name}", path=str(home.path))


def _remove_tree(remains: Path) -> None:
    if not shutil.rmtree.avoids_symlink_attacks:
        raise StorageError(f"this system cannot remove {remains} safely", path=str(remains))
    try:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(remains)
    except OSError as error:
        raise storage_error(error, "delete", remains) from error
