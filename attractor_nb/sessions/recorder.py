"""A session kept by the events of runs: of the fan-outs of one, or of the runs of a map.

Events are taken in memory; a separate thread writes what they changed, at most every 100 ms and
always at the end, so that a slow disk delays no agent. A fault of the status file is never the run's.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import threading
import time
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from attractor_nb.errors import AttractorError, OptionError, SessionError, StorageError
from attractor_nb.model.branch import enclosing
from attractor_nb.model.events import (
    Event,
    EventObserver,
    ParallelBranchCompleted,
    ParallelBranchStarted,
    ParallelCompleted,
    ParallelStarted,
    PipelineCompleted,
    PipelineFailed,
    PipelineInterrupted,
    StageEnd,
)
from attractor_nb.model.outcome import StageStatus
from attractor_nb.redaction import StreamRedactor
from attractor_nb.sessions.fold import (
    AgentsAdded,
    AgentUpdate,
    Change,
    SessionCancelled,
    SessionCompleted,
    apply_change,
)
from attractor_nb.sessions.tracker import SessionTracker, opened_session
from attractor_nb.storage.files.disk import Disk, storage_error, write_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from attractor_nb.model.session import Session


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
        """Take what was recorded before a resume; the next session knows the branches that continued before."""
        self._fan_outs.recall(events)

    def observer_of(self, item: object) -> EventObserver:
        """The observer of the events of one map item's run."""
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
            # Not when another process ended it: what still comes belongs to that session, and is dropped.
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
    """The session after all changes that it allows: an agent may have been cancelled meanwhile."""
    for change, at in batch:
        if session.is_ended:
            break
        try:
            session = apply_change(session, change, at=at)
        except (SessionError, OptionError) as refused:
            LOGGER.warning("%s", refused.message)
    return session


# Events of a run as changes of a session: agents are branches, a fan-out is a wave. Pure.
#
# The number of branches is known when a fan-out begins, their names only as they start, so agents
# wait under the name of the fan-out until then.

BRANCH_FAILED: Final = "the branch failed"
_NOT_NEEDED: Final = "its result was no longer needed"
_Key = tuple[str, str]
"""The branch that a fan-out is in, and its node."""


@dataclass(slots=True)
class _FanOut:
    """A fan-out under way: its wave, agents that wait for a branch, and branches under way by path."""

    wave: int
    waiting: list[str] = field(default_factory=list[str])
    running: dict[str, str] = field(default_factory=dict[str, str])


class FanOuts:
    """Translates the events of one run into changes of a session."""

    def __init__(self, pid: int) -> None:
        """Begin; ``pid`` is that of the process that runs the branches."""
        self._pid = pid
        self._known: dict[_Key, dict[str, ParallelBranchCompleted | None]] = {}
        self._begin()

    def _begin(self) -> None:
        self._count = 0
        self._waves = 0
        self._failed = False
        self._fan_outs: dict[_Key, _FanOut] = {}

    def recall(self, events: Iterable[Event]) -> None:
        """Take what was recorded before a resume: a branch that was over, or under way, is not announced."""
        for event in events:
            self.take(event)
        self._begin()

    def take(self, event: Event) -> list[Change]:
        """The changes that an event brings."""
        match event:
            case ParallelStarted():
                return self._start(event)
            case ParallelBranchStarted():
                self._known.setdefault((enclosing(event.branch), event.name), {})[event.branch] = None
                return self._start_branch(event.branch, event.name)
            case ParallelBranchCompleted():
                return self._end_branch(event)
            case ParallelCompleted():
                return self._end((event.branch, event.name))
            case StageEnd():
                self._known.pop((event.branch, event.name), None)
                return self._end((event.branch, event.name))
            case PipelineCompleted() | PipelineFailed() | PipelineInterrupted():
                return self._end_run(event)
            case _:
                return []

    def _start(self, event: ParallelStarted) -> list[Change]:
        key = event.branch, event.name
        changes = self._end(key)
        self._waves += 1
        fan_out = self._fan_outs[key] = _FanOut(self._waves)
        place = f"{event.branch}/{event.name}" if event.branch else event.name
        names = [f"{place} {number}" for number in range(1, event.branch_count + 1)]
        if names:
            agents = [self._new_agent(name) for name in names]
            fan_out.waiting = [agent["id"] for agent in agents]
            changes.append(AgentsAdded(agents, fan_out.wave))
        for path, end in list(self._known.get(key, {}).items()):
            changes += self._start_branch(path, event.name)
            changes += self._end_branch(end) if end is not None else ()
        return changes

    def _start_branch(self, path: str, name: str) -> list[Change]:
        changes: list[Change] = []
        key = enclosing(path), name
        if key not in self._fan_outs:
            self._waves += 1
            self._fan_outs[key] = _FanOut(self._waves)
        fan_out = self._fan_outs[key]
        if path in fan_out.running:
            return []
        if not fan_out.waiting:
            agent = self._new_agent(path)
            changes.append(AgentsAdded([agent], fan_out.wave))
            fan_out.waiting.append(agent["id"])
        agent_id = fan_out.running[path] = fan_out.waiting.pop(0)
        return [*changes, AgentUpdate(agent_id, {"status": "running", "name": path, "pid": self._pid})]

    def _end_branch(self, event: ParallelBranchCompleted) -> list[Change]:
        key = enclosing(event.branch), event.name
        if event.branch in self._known.get(key, {}):
            self._known[key][event.branch] = event
        changes = self._end_within(event.branch)
        fan_out = self._fan_outs.get(key)
        agent_id = fan_out.running.pop(event.branch, None) if fan_out else None
        if agent_id is None:
            return changes
        if event.success:
            ended: dict[str, Any] = {"status": "complete", "exit_code": 0}
        elif event.status == StageStatus.SKIPPED:
            ended = {"status": "cancelled", "error": event.failure_reason or _NOT_NEEDED}
        else:
            self._failed = True
            ended = {"status": "failed", "exit_code": 1, "error": event.failure_reason or BRANCH_FAILED}
        return [*changes, AgentUpdate(agent_id, ended)]

    def _end_within(self, path: str) -> list[Change]:
        """A branch that was cancelled leaves its own fan-outs unfinished."""
        inside = [key for key in self._fan_outs if key[0] == path or key[0].startswith(f"{path}/")]
        return [change for key in inside for change in self._end(key)]

    def _end(self, key: _Key) -> list[Change]:
        """Return the changes at the end of a fan-out: branches that the join did not wait for."""
        fan_out = self._fan_outs.pop(key, None)
        if fan_out is None:
            return []
        left = [*fan_out.running.values(), *fan_out.waiting]
        return [AgentUpdate(agent_id, {"status": "cancelled", "error": _NOT_NEEDED}) for agent_id in left]

    def _end_run(self, event: PipelineCompleted | PipelineFailed | PipelineInterrupted) -> list[Change]:
        """The end of the session, if the run had one; a resume begins another."""
        has_session, has_failed = self._waves > 0, self._failed
        is_cut = any(fan_out.running or fan_out.waiting for fan_out in self._fan_outs.values())
        changes = [change for key in list(self._fan_outs) for change in self._end(key)]
        self._begin()
        if not has_session:
            return []
        if isinstance(event, PipelineInterrupted):
            return [SessionCancelled(event.reason)]
        if isinstance(event, PipelineFailed) and is_cut and not has_failed:
            # All its branches cancelled would read as complete: no false success.
            return [SessionCancelled(event.error)]
        return [*changes, SessionCompleted()]

    def _new_agent(self, name: str) -> dict[str, Any]:
        self._count += 1
        return {"id": f"{self._count:03}", "name": name}


class Item:
    """Translates the events of one run of a map into changes of the agent of its item."""

    def __init__(self, agent_id: str, pid: int) -> None:
        self._agent_id = agent_id
        self._pid = pid
        self._has_begun = False

    def take(self, event: Event) -> list[Change]:
        """The changes that an event brings; the first event of all begins the agent."""
        changes: list[Change] = []
        if not self._has_begun:
            self._has_begun = True
            changes.append(AgentUpdate(self._agent_id, {"status": "running", "pid": self._pid}))
        match event:
            case PipelineCompleted():
                ended = {"status": "complete", "exit_code": 0}
            case PipelineFailed():
                ended = {"status": "failed", "exit_code": 1, "error": event.error}
            case PipelineInterrupted():
                ended = {"status": "cancelled", "error": event.reason}
            case _:
                return changes
        return [*changes, AgentUpdate(self._agent_id, ended)]


# The logs of agents: what their processes write, without its secrets.
#
# A process writes into a pipe, and our thread removes the secrets and appends the rest to the file:
# a process that had the file itself would write past the redactor. The thread ends with the last process that
# holds the pipe, however that process ends; what it had written by then is in the log.

EXIT_SECONDS: Final = 2.0
"""Longest delay of our own exit for logs of unfinished agents."""
_CHUNK_BYTES: Final = 64 * 1024


class AgentLog:
    """An agent's log, open for what its processes write; ``open_agent_log`` makes it.

        with open_agent_log(session_dir, "001") as log:
            subprocess.run(command, stdout=log, stderr=log)

    The process that opened it must outlive the agent: it is the one that writes the file.
    """

    def __init__(self, disk: Disk, file: int, path: Path) -> None:
        """Begin to write what comes.

        Args:
            file: The log, open for appending; it is closed in the end, also if this fails.
            path: Its path, for messages.
        """
        try:
            source, target = os.pipe()
        except OSError as error:
            disk.close(file)
            raise storage_error(error, "open", path) from error
        self._path = path
        self._target = target
        # Not a method: a log that is dropped without a word is closed, and its thread then ends.
        self._end = weakref.finalize(self, os.close, target)
        self._copy = _Copy(disk, source, file, path)
        _COPIES[self._copy] = self._end
        try:
            self._copy.start()
        except RuntimeError as error:
            self.close()
            self._copy.give_back()
            raise SessionError(f"no thread can be started that writes {path}") from error

    def fileno(self) -> int:
        """The descriptor that a process writes to; ``subprocess`` asks for it."""
        if not self._end.alive:
            raise SessionError(f"{self._path} is closed here", hint="open it anew for the next process")
        return self._target

    def close(self) -> None:
        """Accept no further processes; those that already write continue. Closing twice is allowed."""
        self._end()

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Close it and wait until the last process that writes has ended and all is in the file.

        Args:
            timeout_seconds: How long; without end if not given.

        Returns:
            Whether they have ended.
        """
        self.close()
        self._copy.join(timeout_seconds)
        if self._copy.failure is not None:
            raise self._copy.failure
        return not self._copy.is_alive()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Wait for the end of all who write; when the block was left by an error, only close."""
        if kind is None:
            self.wait()
        else:
            self.close()


def open_agent_log(session_dir: str | os.PathLike[str], agent_id: str) -> AgentLog:
    """Open an agent's log for appending, as ``subprocess.Popen(stdout=…)`` takes it.

    Secrets are taken out of what is written. Call ``wait`` for a file that is complete.
    """
    place, disk = Path(session_dir), Disk()
    SessionTracker(place).read().known_agent(agent_id)
    name = f"{agent_id}.log"
    with opened_session(disk, place) as directory:
        try:
            file = disk.open_update(name, directory.descriptor, is_append=True)
        except OSError as error:
            raise storage_error(error, "open", place / name) from error
    return AgentLog(disk, file, place / name)


class _Copy(threading.Thread):
    """Copies a pipe into a log, without secrets, until its last writer has ended.

    Attributes:
        path: The log.
        failure: What the disk refused. The pipe is then read on, so that no agent is held up.
    """

    def __init__(self, disk: Disk, source: int, file: int, path: Path) -> None:
        # A daemon, for an agent that outlives us must not keep our process; ``_finish_all`` sees to the rest.
        super().__init__(name="attractor-agent-log", daemon=True)
        self._disk, self._source, self._file, self.path = disk, source, file, path
        self._redactor = StreamRedactor()
        self.failure: StorageError | None = None

    def run(self) -> None:
        try:
            while data := os.read(self._source, _CHUNK_BYTES):
                # Bytes as Latin-1 come back as they were, whatever the agent's encoding is.
                self._write(self._redactor.feed(data.decode("latin-1")))
            self._write(self._redactor.finish())
        finally:
            self.give_back()

    def give_back(self) -> None:
        """Close the resources that were opened for the log."""
        os.close(self._source)
        self._disk.close(self._file)
        _COPIES.pop(self, None)

    def _write(self, text: str) -> None:
        if self.failure is not None or not text:
            return
        try:
            write_all(self._disk, self._file, text.encode("latin-1"))
        except OSError as error:
            self.failure = storage_error(error, "write", self.path)
            LOGGER.warning("%s", self.failure.message)


_COPIES: Final[dict[_Copy, Callable[[], object]]] = {}
"""The threads that continue, and what closes our own end of their pipes."""


@atexit.register
def _finish_all() -> None:
    """Before our process ends: what was written is in the logs, unless an agent continues for too long."""
    copies = dict(_COPIES)
    for end in copies.values():
        with contextlib.suppress(OSError):  # the descriptor itself was closed
            end()
    deadline = time.monotonic() + EXIT_SECONDS
    for copy in copies:
        copy.join(max(0.0, deadline - time.monotonic()))
        if copy.is_alive():
            LOGGER.warning("an agent is still running, and its further output is not written to %s", copy.path)
