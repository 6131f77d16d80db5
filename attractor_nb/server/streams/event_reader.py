"""The events of a run in the order in which they happened, over all the directories that it went through.

A ``loop_restart`` takes a run into a directory of its own, whose records are numbered anew; a rewind may take
it back. So an event's id has two numbers: of the directory (0 for the first, ``N`` for ``restart-N``), and of
the record there. A directory's events come where its parent says that the run went there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from attractor_nb.errors import CheckpointCorrupt
from attractor_nb.model.events import PipelineRestarted
from attractor_nb.storage.log.event_log import EVENT_LOG_NAME, read_log

if TYPE_CHECKING:
    from attractor_nb.model.events import Event
    from attractor_nb.storage.log.event_lines import LogScan

_RESTART: Final = re.compile(r"restart-([1-9][0-9]{0,8})\Z")
_TRIES: Final = 3


class Recorded(NamedTuple):
    """An event of the log."""

    id: str  #: By which a consumer says where it was: ``0.12``.
    event: Event


@dataclass(slots=True)
class _Part:
    """A directory, and how far it has been read; ``had`` is more where the owner told what comes next."""

    number: int
    directory: Path
    offset: int = 0
    sequence: int = 0
    had: int = 0


class EventReader:
    """Reads the log of a run from its beginning, and goes on where it was left."""

    def __init__(self, root: Path) -> None:
        """Stand before the first event of the run in a directory."""
        self._first = root
        self._parts = [_Part(0, root)]

    def read(self) -> list[Recorded]:
        """The events since the last call; its owner may be writing meanwhile."""
        found: list[Recorded] = []
        while self._read_on(found) or self._step_back():
            pass
        return found

    def take(self, event: Event) -> Recorded | None:
        """The next event, from its owner and not from the disk; None when it is not the next.

        The caller knows that it came right behind the last one that was read or taken.
        """
        return self._next(event) if event.sequence == self._parts[-1].had + 1 else None

    @property
    def stamp(self) -> tuple[object, ...]:
        """Differs when something was written since."""
        return tuple(_stamp(part.directory / EVENT_LOG_NAME) for part in self._parts)

    def _read_on(self, found: list[Recorded]) -> bool:
        """Take what is new in the latest directory; whether the run went into another one there."""
        part = self._parts[-1]
        scan = _scan(part)
        for event, end in zip(scan.events, scan.ends, strict=True):
            part.offset, part.sequence = end, event.sequence
            if event.sequence > part.had:
                found.append(self._next(event))
                if self._parts[-1] is not part:
                    return True
        return False

    def _next(self, event: Event) -> Recorded:
        """Take an event of the latest directory; a restart makes another one the latest."""
        part = self._parts[-1]
        part.had = event.sequence
        if isinstance(event, PipelineRestarted) and (following := self._restart(event)):
            self._parts.append(following)
        return Recorded(f"{part.number}.{event.sequence}", event)

    def _step_back(self) -> bool:
        """Whether a directory before the latest has grown since: a rewind took the run back to it."""
        for index in range(len(self._parts) - 2, -1, -1):
            part = self._parts[index]
            if any(event.sequence > part.had for event in _scan(part).events):
                del self._parts[index + 1 :]
                return True
        return False

    def _restart(self, event: PipelineRestarted) -> _Part | None:
        named = _RESTART.match(Path(event.logs_root).name)
        if named is None:
            return None
        return _Part(int(named[1]), self._first / named[0])


def _scan(part: _Part) -> LogScan:
    """What is new in a directory; a record that is being written may look like damage for a moment."""
    for _ in range(_TRIES - 1):
        try:
            return read_log(part.directory, offset=part.offset, sequence=part.sequence)
        except CheckpointCorrupt:
            continue
    return read_log(part.directory, offset=part.offset, sequence=part.sequence)


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        facts = path.stat()
    except OSError:
        return ()
    return facts.st_ino, facts.st_size, facts.st_mtime_ns
