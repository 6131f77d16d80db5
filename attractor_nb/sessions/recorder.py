"""A session kept by the events of runs: of the fan-outs of one, or of the runs of a map.

Events are taken in memory; a thread of its own writes what they changed, at most every 100 ms and
always at the end, so that a slow disk holds nobody up. A fault of the status file is never the run's.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from attractor_nb.errors import AttractorError, OptionError, SessionError
from attractor_nb.sessions.fold import Change, SessionCancelled, SessionCompleted, apply_change
from attractor_nb.sessions.session_fan_outs import FanOuts, Item
from attractor_nb.sessions.tracker import SessionTracker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from attractor_nb.model.events import Event, EventObserver
    from attractor_nb.model.session import Session
    from attractor_nb.storage.files.disk import Disk

LOGGER = logging.getLogger(__name__)
INTERVAL_SECONDS: Final = 0.1
LEFT_OPEN: Final = "the session was closed before it ended"
_Timed = tuple[Change, float]


class SessionRecorder:
    """Keeps a session by events; give ``take``, or of a map ``observer_of(item)``, to ``on_event``.

        with SessionRecorder(source_file="review.dot") as recorder:
            pipeline.on_event(recorder.take)
            pipeline.run(wait=True)

    Attributes:
        session_dir: The latest session; None before the first fan-out.
        problem: Why it could not be written the last time, or None.
    """

    def __init__(
        self,
        cwd: str | os.PathLike[str] = ".",
        *,
        source_file: str = "",
        source: str = "orchestrate",
        items: Iterable[object] | None = None,
        interval_seconds: float = INTERVAL_SECONDS,
        durability: str = "fast",
        now: Callable[[], float] = time.time,
        disk: Disk | None = None,
    ) -> None:
        """Begin to record. Of a map the session begins now, otherwise with the first fan-out.

        Args:
            cwd: The session lies in its ``.founder-mode/status/sessions``.
            source_file: The pipeline's file.
            source: ``orchestrate``, ``execute-phase`` or ``run-prompt``.
            items: The items of a map, one agent each; no two of the same name.
            interval_seconds: The shortest time between two writes.
            durability: ``full`` survives a power loss, ``fast`` the death of the process.
            now: The clock, for the beginning and the end of the session.
            disk: In place of the real one.
        """
        self.session_dir: Path | None = None
        self.problem: AttractorError | None = None
        self._cwd = Path(cwd).resolve()
        self._source, self._source_file = source, source_file
        self._interval_seconds = interval_seconds
        self._durability, self._now, self._disk = durability, now, disk
        self._fan_outs = FanOuts(os.getpid())
        self._tracker: SessionTracker | None = None
        self._pending: list[_Timed] = []
        self._is_closed = False
        self._condition = threading.Condition()
        self._thread: threading.Thread | None = None
        self._items: dict[str, str] = {}
        if items is not None:
            names = [str(item) for item in items]
            self._items = {name: f"{number:03}" for number, name in enumerate(names, 1)}
            if len(self._items) < len(names):
                raise OptionError("two items of the map have the same name", hint="give them different names")
            self._begin([{"id": agent_id, "name": name} for name, agent_id in self._items.items()])

    def take(self, event: Event) -> None:
        """Take an event of the run whose fan-outs are recorded; never waits for the disk."""
        self._put(self._fan_outs.take(event), event.time)

    def recall(self, events: Iterable[Event]) -> None:
        """Take what was recorded before a resume; the next session knows the branches that went on before."""
        self._fan_outs.recall(events)

    def observer_of(self, item: object) -> EventObserver:
        """What takes the events of the run of one item of a map."""
        agent_id = self._items.get(str(item))
        if agent_id is None:
            raise OptionError(f"the map has no item {str(item)!r}", hint="name all items at the beginning")
        collector = Item(agent_id, os.getpid())
        return lambda event: self._put(collector.take(event), event.time)

    def close(self) -> None:
        """Write everything and end the session; agents that have not ended are cancelled."""
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()
        if self._thread is not None:
            self._thread.join()
        if self._pending and self.problem is not None:
            raise self.problem
        if self._tracker is not None:
            self._tracker.update(self._closed)
            self._tracker = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _put(self, changes: Sequence[Change], at: float) -> None:
        if not changes:
            return
        with self._condition:
            if self._is_closed:
                return
            self._pending += [(change, at) for change in changes]
            if self._thread is None:
                self._thread = threading.Thread(target=self._follow, name="attractor-session", daemon=True)
                self._thread.start()
            self._condition.notify_all()

    def _follow(self) -> None:
        """Write what has come, then rest; at the end write the rest at once."""
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._pending or self._is_closed)
                batch, self._pending = self._pending, []
                is_last = self._is_closed
            self._flush(batch)
            with self._condition:
                self._pending[:0] = batch
                if is_last:
                    return
                self._condition.wait_for(lambda: self._is_closed, self._interval_seconds)

    def _flush(self, batch: list[_Timed]) -> None:
        """Write a batch, session by session, and take out of it what was written."""
        while batch:
            ends = (place for place, (change, _) in enumerate(batch, 1) if _ends_session(change))
            count = next(ends, len(batch))
            try:
                self._write(batch[:count])
            except AttractorError as error:
                if self.problem is None:
                    LOGGER.warning("the session's status cannot be written: %s", error)
                self.problem = error
                return
            self.problem = None
            del batch[:count]

    def _write(self, batch: Sequence[_Timed]) -> None:
        if self._tracker is None:
            self._begin([])
        assert self._tracker is not None, "a session has just begun"
        session = self._tracker.update(lambda session: _folded(session, batch))
        if session.is_ended and _ends_session(batch[-1][0]):
            # Not when somebody else ended it: what still comes belongs to that session, and is dropped.
            self._tracker = None

    def _begin(self, agents: list[dict[str, str]]) -> None:
        self._tracker = SessionTracker.create(
            self._cwd,
            self._source,
            self._source_file,
            agents,
            [{"wave": 1, "agents": [agent["id"] for agent in agents]}] if agents else [],
            durability=self._durability,
            now=self._now,
            disk=self._disk,
        )
        self.session_dir = self._tracker.session_dir

    def _closed(self, session: Session) -> Session:
        if session.is_ended:
            return session
        is_done = all(agent.is_ended for agent in session.agents)
        change = SessionCompleted() if is_done else SessionCancelled(LEFT_OPEN)
        return apply_change(session, change, at=self._now())


def _ends_session(change: Change) -> bool:
    return isinstance(change, SessionCompleted | SessionCancelled)


def _folded(session: Session, batch: Sequence[_Timed]) -> Session:
    """The session after all changes that it allows: somebody may have cancelled an agent meanwhile."""
    for change, at in batch:
        if session.is_ended:
            break
        try:
            session = apply_change(session, change, at=at)
        except (SessionError, OptionError) as refused:
            LOGGER.warning("%s", refused.message)
    return session
