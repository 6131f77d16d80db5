"""``manifest.json``: how it is written, read, and rebuilt from the log (run-directory.md; ruling 30)."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from attractor_nb.decisions.log_folds import marks_of
from attractor_nb.decisions.log_history import counted_events, fold_question
from attractor_nb.errors import StorageError
from attractor_nb.model.events import (
    SESSION_STARTS,
    Event,
    InterviewStarted,
    PipelineCompleted,
    PipelineFailed,
    PipelineForked,
    PipelineInterrupted,
    PipelineRestarted,
    PipelineResumed,
    PipelineRewound,
    PipelineStarted,
    StageEnd,
    StageStarted,
)
from attractor_nb.model.outcome import Answers, ResultMarks, StandIn, Usage
from attractor_nb.model.record import Count, Record, no_values
from attractor_nb.model.states import ABANDONED, LIVE, WAITING, RecordedStatus
from attractor_nb.storage.files.atomic import read_plain_file
from attractor_nb.storage.log.event_lines import decode_line, token_of
from attractor_nb.storage.log.event_log import EVENT_LOG_NAME, MAX_LOG_BYTES
from attractor_nb.storage.log.lock import is_owned, read_owner
from attractor_nb.storage.run_directory import RunDirectory, utc_text
from attractor_nb.storage.sealed_file import SealedFile, read_generations
from attractor_nb.storage.stages.stage_directories import StageNames

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping

    from attractor_nb.storage.files.disk import Disk


MANIFEST_NAME = "manifest.json"
_FACTS = ("goal", "model", "node_count", "backend", "restart_of")


class ManifestFile:
    """The manifest of a run that this process owns."""

    def __init__(self, disk: Disk, root: RunDirectory, plain: Mapping[str, Any], *, is_synced: bool) -> None:
        """Take up a manifest in its current form; nothing is written yet."""
        self._file = SealedFile(disk, root, MANIFEST_NAME, is_synced=is_synced)
        self._plain = {"schema_version": 1, **plain}

    @property
    def plain(self) -> dict[str, Any]:
        """The current manifest."""
        return dict(self._plain)

    def merge(self, changes: Mapping[str, Any]) -> None:
        """Change entries and write the file."""
        plain = {**self._plain, **changes}
        self._file.write(plain)
        self._plain = plain


def read_manifest(directory: Path) -> tuple[dict[str, Any] | None, list[str]]:
    """The newest valid manifest of a run, and what is wrong with newer ones."""
    return read_generations(directory, MANIFEST_NAME, Manifest.from_plain)


def fork_facts(event: PipelineForked) -> dict[str, Any]:
    """The manifest entries of a fork for its parent."""
    return {
        "run_id": event.parent_id,
        "directory": event.parent_root,
        "node": event.node,
        "visit": event.visit,
        "sequence": event.parent_sequence,
    }


def _of_fork(event: Event) -> dict[str, Any]:
    """The manifest entries that change with the record of a fork, where that run begins; empty for other events."""
    if not isinstance(event, PipelineForked):
        return {}
    return {"start_time": utc_text(event.time), "fork_of": fork_facts(event), "restart_of": ""}


def manifest_from_events(events: Iterable[Event]) -> dict[str, Any]:
    """A manifest whose file is lost, made again from the log."""
    plain: dict[str, Any] = {"schema_version": 1, "status": "running", "end_time": None}
    visited: list[str] = []
    events = tuple(events)
    for event in events:
        match event:
            case PipelineStarted():
                plain.update(
                    run_id=event.id,
                    pipeline_name=event.name,
                    graph_hash=event.graph_hash,
                    start_node=event.start_node,
                    start_time=utc_text(event.time),
                )
                facts = {name: getattr(event, name) for name in _FACTS}
                plain.update({name: value for name, value in facts.items() if value})
            case PipelineResumed() | PipelineRewound() | PipelineForked():
                plain.update(status="resumed", end_time=None, **_of_fork(event))
                plain.pop("restarted_as", None)
            case PipelineRestarted():
                beside = "../" if plain.get("restart_of") else ""
                restart = beside + PurePath(event.logs_root).name
                plain.update(status="restarted", end_time=utc_text(event.time), restarted_as=restart)
            case PipelineCompleted():
                plain.update(status="completed", end_time=utc_text(event.time))
            case PipelineFailed():
                plain.update(status="failed", end_time=utc_text(event.time), reason=event.error)
            case PipelineInterrupted():
                status = "paused" if event.reason == "paused" else "interrupted"
                plain.update(status=status, end_time=utc_text(event.time), reason=event.reason)
            case StageStarted():
                visited.append(event.name)
            case _:
                pass
    if escaped := StageNames({}, visited).escaped:
        plain["stage_directories"] = dict(escaped)
    marks = marks_of(counted_events(events)).marks
    return {**plain, **marks.to_facts()} if marks != ResultMarks() else plain


class Manifest(Record, frozen=True):
    """The identity and status of a run. Unknown keys are allowed.

    "Finished" is what ``status`` says here, never inferred from what lies about.
    """

    schema_version: Literal[1] = 1  #: Version of this form.
    run_id: str = ""  #: The run.
    pipeline_name: str = ""  #: Name of the pipeline.
    goal: str = ""  #: The pipeline's goal.
    graph_hash: str = ""  #: Content hash of the graph that runs.
    start_time: str = ""  #: When execution began, ISO 8601 UTC.
    end_time: str | None = None  #: When it ended; None while it is active.
    status: RecordedStatus = "running"  #: Its status.
    start_node: str = ""  #: The start node.
    node_count: Count = 0  #: Number of nodes.
    model: str | None = None  #: Default model, or None.
    #: Directory names of the stages whose name is not the node's id.
    stage_directories: dict[str, str] = msgspec.field(default_factory=no_values)
    restart_of: str = ""  #: Run directory of the run that this one continues after a ``loop_restart``, relative.
    restarted_as: str = ""  #: Run directory that continues this one, relative.
    #: Of a fork: ``run_id`` and ``directory`` of its parent, and the ``node``, the ``visit`` and the ``sequence`` of
    #: the parent's log before which it begins.
    fork_of: dict[str, str | int] = msgspec.field(default_factory=no_values)
    continued_from: str = ""  #: Run directory of the older layout whose checkpoint this run continued from.
    #: Default backend of a resume: ``simulated``, ``local``, or a description of a backend of
    #: the caller's own. A simulation does not replace a real one.
    backend: str = ""
    #: Options of the models of providers, so that a resume uses the same ones at the same addresses; no keys.
    #: Empty for other backends.
    backend_facts: dict[str, Any] = msgspec.field(default_factory=no_values)
    #: Source of answers in the stages that count: ``real``, ``simulated``, ``partly simulated``; empty if nothing was
    #: asked.
    answers: Answers = ""
    is_simulated: bool = False  #: Answers of it are made up, at least in part.
    backends: tuple[str, ...] = ()  #: Backends that answered, in order of first use.
    #: Nodes whose latest outcome was given: ``pinned``, ``mocked``, ``set by hand``.
    stand_ins: dict[str, StandIn] = msgspec.field(default_factory=no_values)
    #: Bounds that the caller gave in place of the graph's; a resume keeps them, unless given others.
    bounds: dict[str, int | float | str] = msgspec.field(default_factory=no_values)
    #: Number of a record that the log had for good when this was written: a log that ends before it has lost records.
    log_sequence: Count = 0
    source_path: str = ""  #: File that the pipeline was read from, absolute; empty when it came from elsewhere.
    #: ``pipeline.dot`` lacks a secret that the source had: it is not the graph that ran.
    is_source_redacted: bool = False
    #: Seconds of running time at its latest end; None when it has had none, or did not say.
    duration: Annotated[float, msgspec.Meta(ge=0)] | None = None
    stages: Count | None = None  #: Stages committed by then, likewise.
    usage: Usage | None = None  #: Usage of model calls by then, likewise.


# The status of a run, by its manifest, or by its log where the manifest was never finished. Reads only the log's end.

DAMAGED = "damaged"
GOES_ON = frozenset({"interrupted", "paused", ABANDONED})
"""Statuses of a run that a resume continues."""
RESTARTED = "restarted"
UNDER_WAY = LIVE | {WAITING}
"""Statuses of a run that a process works on."""
_MAX_RESTART_HOPS = 10_000
_FIRST_TAIL_BYTES = 16 * 1024
_MAX_ASKING_BYTES = 1024 * 1024
_ASKS = InterviewStarted.__name__.encode()


class CurrentStatus(msgspec.Struct, frozen=True):
    """The current status of a run."""

    #: As in the manifest, or ``abandoned`` when its owner died; ``damaged`` when the log ends before a record that the
    #: manifest knows. Of a run that continued in a restart directory, how it is there.
    status: str
    end_time: str | None  #: ISO 8601 UTC, or None while it is active.
    owner: Mapping[str, Any] = {}  #: ``pid``, ``host``, ``since`` and ``token`` of the owner, while there is one.
    logs_root: Path = Path()  #: The directory of that status: the run's, or that of its latest restart.
    manifest: Mapping[str, Any] = {}  #: The manifest there.
    last: Event | None = None  #: The last whole event there, or None.
    places: tuple[Path, ...] = ()  #: The directories that were looked at, from the run's own to that one.


def current_status(logs_root: Path, manifest: Mapping[str, Any]) -> CurrentStatus:
    """The current status of the run of a directory with that manifest."""
    last: Event | None = None
    places = [logs_root]

    def so(status: str, end_time: str | None = None, owner: Mapping[str, Any] | None = None) -> CurrentStatus:
        return CurrentStatus(status, end_time, owner or {}, logs_root, manifest, last, tuple(places))

    for _ in range(_MAX_RESTART_HOPS):
        status: str = manifest.get("status", "running")
        last = read_last_event(logs_root)
        if (last.sequence if last else 0) < manifest.get("log_sequence", 0):
            return so(DAMAGED)  # what the manifest says of the run is not to be had any more
        if status not in LIVE and status != RESTARTED:
            return so(status, manifest.get("end_time"))
        if is_owned(logs_root):
            return so("running" if status == RESTARTED else status, owner=read_owner(logs_root))
        restart = str(manifest.get("restarted_as", "")) if status == RESTARTED else ""
        if status in LIVE:
            if isinstance(last, PipelineRestarted):
                restart = last.logs_root
            elif ended := _ended_status(last):
                return so(ended, utc_text(last.time) if last else None)
        found = _restart_of(logs_root, manifest, restart)
        if found is None:
            return so(ABANDONED)
        logs_root, manifest = found
        places.append(logs_root)
    return so(ABANDONED)


def _ended_status(last: Event | None) -> str:
    match last:
        case PipelineCompleted():
            return "completed"
        case PipelineFailed():
            return "failed"
        case PipelineInterrupted():
            return "paused" if last.reason == "paused" else "interrupted"
        case _:
            return ""


def _restart_of(logs_root: Path, manifest: Mapping[str, Any], restart: str) -> tuple[Path, Mapping[str, Any]] | None:
    """The directory in which a run continued, and its manifest: beside it, or inside the first (ruling 21)."""
    if not restart:
        return None
    first = logs_root.parent if manifest.get("restart_of") else logs_root
    place = first / Path(restart).name
    following, _ = read_manifest(place)
    return None if following is None or place == logs_root else (place, following)


def read_last_event(logs_root: Path) -> Event | None:
    """The last event that is whole in a run's log; None when there is none."""
    return next((decode_line(lines[-1]) for lines in _tails(logs_root, MAX_LOG_BYTES) if lines), None)


def asking_stages(logs_root: Path) -> tuple[str, ...]:
    """The stages whose questions wait in a run that is under way, in the order in which they asked.

    Of its log only the end is read, mostly back to the latest commit outside branches: one that was asked longer ago
    than a mebibyte is not seen.
    """
    for number, lines in enumerate(_tails(logs_root, _MAX_ASKING_BYTES)):
        if number and not any(_ASKS in line for line in lines):  # many records of branches: not one is decoded
            continue
        events: list[Event] = []
        for event in filter(None, map(decode_line, reversed(lines))):
            if isinstance(event, SESSION_STARTS) or (isinstance(event, StageEnd) and not event.branch):
                return _asking(events)
            events.append(event)
        if found := _asking(events):
            return found
    return ()


def _asking(latest_first: list[Event]) -> tuple[str, ...]:
    waiting: dict[str, InterviewStarted] = {}
    for event in reversed(latest_first):
        fold_question(waiting, event)
    return tuple(asked.stage for asked in waiting.values())


def _tails(logs_root: Path, max_bytes: int) -> Generator[list[bytes]]:
    """The lines at the end of a log that are whole, of longer and longer stretches; none when it cannot be read."""
    path = logs_root / EVENT_LOG_NAME
    with suppress(OSError, StorageError):
        size, window = path.lstat().st_size, _FIRST_TAIL_BYTES
        while window <= max_bytes:
            offset = max(0, size - window)
            data = read_plain_file(path, max_bytes=MAX_LOG_BYTES, offset=offset) or b""
            lines = data.rstrip(b"\0").split(b"\n")
            # Without the beginning of the stretch, which is the end of a line; and those of lost owners.
            whole: list[bytes] = []
            owner = 1
            for line in lines if offset == 0 else lines[1:]:
                token = token_of(line)
                if token >= owner:
                    whole.append(line)
                    owner = token
            yield whole
            if offset == 0:
                return
            window *= 8
