"""How a run stands: what its manifest says, or its log where the manifest was never brought to its end.

Cheap enough for a list of runs: of the log only the end is looked at.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from attractor_nb.decisions.open_questions import fold_question
from attractor_nb.errors import StorageError
from attractor_nb.model.events import (
    SESSION_STARTS,
    InterviewStarted,
    PipelineCompleted,
    PipelineFailed,
    PipelineInterrupted,
    PipelineRestarted,
    StageEnd,
)
from attractor_nb.model.states import LIVE
from attractor_nb.storage.files.atomic import read_plain_file
from attractor_nb.storage.log.event_lines import decode_line, token_of
from attractor_nb.storage.log.event_log import EVENT_LOG_NAME, MAX_LOG_BYTES
from attractor_nb.storage.log.lock import is_owned, read_owner
from attractor_nb.storage.manifest_file import read_manifest
from attractor_nb.storage.run_directory import utc_text

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from attractor_nb.model.events import Event

ABANDONED = "abandoned"
DAMAGED = "damaged"
GOES_ON = frozenset({"interrupted", "paused", ABANDONED})
"""How a run stands that a resume takes to its end."""
RESTARTED = "restarted"
WAITING = "waiting"
UNDER_WAY = LIVE | {WAITING}
"""How a run is listed that a process works at."""
_MAX_RESTART_HOPS = 10_000
_FIRST_TAIL_BYTES = 16 * 1024
_MAX_ASKING_BYTES = 1024 * 1024
_ASKS = InterviewStarted.__name__.encode()


class CurrentStatus(msgspec.Struct, frozen=True):
    """How a run stands."""

    #: As in the manifest, or ``abandoned`` when its owner died; ``damaged`` when the log ends before a record that the
    #: manifest knows. Of a run that went on in a restart directory, how it stands there.
    status: str
    end_time: str | None  #: ISO 8601 UTC, or None while it goes on.
    owner: Mapping[str, Any] = {}  #: ``pid``, ``host``, ``since`` and ``token`` of the owner, while there is one.
    logs_root: Path = Path()  #: Where it stands so: the run's directory, or that of its latest restart.
    manifest: Mapping[str, Any] = {}  #: The manifest there.
    last: Event | None = None  #: The last whole event there, or None.
    places: tuple[Path, ...] = ()  #: The directories that were looked at, from the run's own to that one.


def current_status(logs_root: Path, manifest: Mapping[str, Any]) -> CurrentStatus:
    """How the run of a directory stands, whose manifest is that."""
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
    """The directory in which a run went on, and its manifest: beside it, or inside the first (ruling 21)."""
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
