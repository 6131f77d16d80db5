"""The events of one run for all who listen: read once, encoded once, kept for a while.

A channel follows the log. Where the run's engine works in this process its feed says when to look, and what
happens that is not logged (output as it comes); elsewhere the log is looked at again and again. A consumer
reads at its own pace. Who falls behind what is kept is cut off, and comes back with the last id it had: then
it is served from the log.
"""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_left
from collections import deque
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from attractor_nb.errors import AttractorError, CheckpointCorrupt
from attractor_nb.logs import own_logger
from attractor_nb.model.events import Event, EventsDropped, PipelineRestarted
from attractor_nb.server.replies import Problem, problem_of
from attractor_nb.storage.files.strict_json import json_line
from attractor_nb.storage.log.event_lines import LogScan, event_json
from attractor_nb.storage.log.event_log import EVENT_LOG_NAME, read_log

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from attractor_nb.pipeline.run import Run


FIRST_ID: Final = "0.0"
"""The id before the first event."""
END, GAP, FAULT = "end", "gap", "fault"
"""Messages about the stream itself; events of the run have no name, so ``onmessage`` receives them all."""
HEARTBEAT: Final = b": alive\n\n"

LOGGER = own_logger(__name__)
KEPT_BYTES: Final = 512 * 1024
KEPT_FRAMES: Final = 2_000
BATCH_BYTES: Final = 64 * 1024
LOOK_SECONDS: Final = 0.25
"""Interval at which the log of a run in another process is read."""
GATHER_SECONDS: Final = 0.02
"""Events within this time are sent together, because events of a run come in bursts."""
GATHERED: Final = 100


def event_frame(event: Event, event_id: str) -> bytes:
    """An event of the run; one that is not in the log has no id, and none is counted for it."""
    data = event_json(event)
    if not event_id:
        return b"data: %b\n\n" % data
    return b"id: %b\ndata: %b\n\n" % (event_id.encode(), data)


def control_frame(name: str, plain: Mapping[str, Any]) -> bytes:
    """Something that is said of the stream: that it ends, or that it was cut off."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), json_line(plain))


def whole_id(given: str) -> str:
    """An event's id with both of its numbers; a plain one is of the first directory.

    >>> whole_id("12"), whole_id("2.7")
    ('0.12', '2.7')
    """
    part, _, number = given.rpartition(".")
    return f"{int(part or 0)}.{int(number)}"


class Frame(NamedTuple):
    """The message for one event."""

    ordinal: int  #: Number of events of the log up to and including this one.
    id: str  #: The event's id; empty for what is not in the log.
    data: bytes  #: Data to send.


class RunChannel:
    """The events of one run. It lives in the server's loop, and only there."""

    def __init__(
        self,
        place: Path,
        live: Run | None,
        is_live_elsewhere: Callable[[], bool],
        status: Callable[[], str],
        *,
        when_closed: Callable[[RunChannel], None] = lambda _: None,
    ) -> None:
        """Make the channel; ``start`` begins to follow.

        Args:
            place: The directory of the run.
            live: The run, if its engine works here.
            is_live_elsewhere: Whether another process runs it; blocks.
            status: Its status, for its last word; blocks.
            when_closed: Told that nothing follows any more.
        """
        self._live = live
        self._reader = EventReader(place)
        self._is_live_elsewhere = is_live_elsewhere
        self._status = status
        self._when_closed = when_closed
        self._pending: deque[Recorded] = deque()
        self._read_up_to = (0.0, 0)
        self._frames: deque[Frame] = deque()
        self._first = 0
        self._bytes = 0
        self._untold_frames = self._untold_bytes = 0
        self._ordinal = 0
        self._is_in_step = False
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._ended_at: tuple[object, ...] | None = None
        self.is_ready = asyncio.Event()
        """Set when all that was in the log at the beginning has been taken in."""
        self.is_closed = False
        self.listeners = 0

    # -- for consumers --------------------------------------------------------------------------------

    @property
    def first(self) -> int:
        """Position of the oldest frame that is kept."""
        return self._first

    @property
    def end(self) -> int:
        """Position behind the newest frame."""
        return self._first + len(self._frames)

    @property
    def is_local(self) -> bool:
        """True if the run's engine works in this process."""
        return self._live is not None

    @property
    def is_current(self) -> bool:
        """True if it has, or will have, all that the log has: it follows still, or nothing came since."""
        return not self.is_closed or (self._ended_at is not None and self._ended_at == self._reader.stamp)

    def position_of(self, last_id: str) -> int | None:
        """The position after an event; None when the event is not kept (any more)."""
        if not last_id:
            return self._first if self._first == 0 else None
        for back, frame in enumerate(reversed(self._frames), start=1):
            if frame.id == last_id:
                return self.end - back + 1
        return None

    def position_behind(self, ordinal: int) -> int | None:
        """Position where a client resumes that has received N events of the log; None when the next is no longer kept.

        What is there may be one that it has had: ``take`` passes those over.
        """
        position = bisect_left(self._frames, ordinal, key=lambda frame: frame.ordinal)
        is_next_kept = position > 0 or not self._frames or self._frames[0].ordinal <= ordinal + 1
        return self._first + position if is_next_kept else None

    def has_events(self, position: int, had: int) -> bool:
        """True if there are events of the log behind a position that a consumer has not had."""
        behind = islice(self._frames, position - self._first, None)
        return any(frame.id and frame.ordinal > had for frame in behind)

    def take(self, position: int, had: int = 0) -> tuple[bytes, int]:
        """The next frames as one piece, and the position behind them; empty when there is nothing new.

        Args:
            position: The position to continue from; it must be kept still.
            had: How many events of the log the consumer has had from elsewhere.
        """
        pieces: list[bytes] = []
        size = 0
        for frame in islice(self._frames, position - self._first, None):
            if size >= BATCH_BYTES:
                break
            position += 1
            if not frame.id or frame.ordinal > had:
                pieces.append(frame.data)
                size += len(frame.data)
        return b"".join(pieces), position

    async def wait(self, position: int) -> None:
        """Wait until there is something behind a position, or the channel is closed."""
        if position >= self.end and not self.is_closed:
            await self._news.wait()

    # -- following ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Follow the run, in the loop that runs here."""
        self._task = asyncio.create_task(self._follow())

    def stop(self) -> None:
        """Follow no longer; consumers are told that the stream ends here. Waits for nothing."""
        if self._task is not None:
            self._task.cancel()
        self._close()

    async def _follow(self) -> None:
        try:
            if self._live is not None:
                await self._follow_here(self._live)
            else:
                await self._follow_log()
            self._ended_at = self._reader.stamp
            status = await asyncio.to_thread(self._status)
            self._keep("", control_frame(END, {"status": status}))
        except Problem as problem:
            self._keep("", control_frame(FAULT, problem.to_plain()))
        except AttractorError as error:
            self._keep("", control_frame(FAULT, problem_of(error).to_plain()))
        except Exception:  # an internal error ends this stream, never the server
            LOGGER.exception("a stream of events ended")
            self._keep("", control_frame(FAULT, {"detail": "internal server error"}))
        finally:
            self._close()

    async def _follow_here(self, live: Run) -> None:
        feed = await asyncio.to_thread(live.events)
        await self._take_log()
        self.is_ready.set()
        async for events in feed.batches(GATHERED):
            for event in events:
                await self._take_event(event)
            self._tell()
            await asyncio.sleep(GATHER_SECONDS if len(events) < GATHERED else 0)
        if not self._is_in_step:
            await self._take_log()
        # Who hears of the end finds the status said, and the run free to continue.
        while not live.is_done:  # noqa: ASYNC110 - it ends in another thread, a moment after its last event
            await asyncio.sleep(GATHER_SECONDS)

    async def _follow_log(self) -> None:
        while await asyncio.to_thread(self._is_live_elsewhere):
            await self._take_log()
            self.is_ready.set()
            await asyncio.sleep(LOOK_SECONDS)
        await self._take_log()  # of a run that is inactive it is ready when it is closed: nothing follows

    async def _take_event(self, event: Event) -> None:
        """Publish what the feed brought."""
        if isinstance(event, EventsDropped):
            await self._take_log()  # what it missed is there
        elif not event.is_durable:
            self._keep("", event_frame(event, ""))
        elif self._is_in_step and (recorded := self._reader.take(event)) is not None:
            self._publish(recorded)
        else:
            await self._take_log_up_to(event)
        await self._let_consumers_read()

    async def _take_log(self) -> None:
        """Publish all that is new in the log."""
        self._is_in_step = False
        await self._read_on()
        while self._pending:
            self._publish(self._pending.popleft())
            await self._let_consumers_read()
        self._tell()

    async def _take_log_up_to(self, event: Event) -> None:
        """Publish what the log has up to an event that the feed brought: what comes next keeps its place.

        When that is the last that was read, the two are in step: what the feed brings from then on is what
        the log has next, and is not read again.
        """
        self._is_in_step = False
        key = event.time, event.sequence
        if not any((one.event.time, one.event.sequence) == key for one in self._pending):
            if event.time <= self._read_up_to[0] and event.sequence <= self._read_up_to[1]:
                return  # it was there at the beginning
            await self._read_on()
        while self._pending:
            recorded = self._pending.popleft()
            self._publish(recorded)
            if (recorded.event.time, recorded.event.sequence) == key:
                self._is_in_step = not self._pending
                return
            await self._let_consumers_read()

    async def _read_on(self) -> None:
        found = await asyncio.to_thread(self._reader.read)
        if found:
            self._pending.extend(found)
            last = found[-1].event
            self._read_up_to = last.time, last.sequence

    async def _let_consumers_read(self) -> None:
        """Have consumers take what they have not received, before there is so much that it is dropped."""
        if self._untold_bytes >= BATCH_BYTES or self._untold_frames >= KEPT_FRAMES // 4:
            self._tell()
            await asyncio.sleep(0)

    def _publish(self, recorded: Recorded) -> None:
        self._ordinal += 1
        self._keep(recorded.id, event_frame(recorded.event, recorded.id))

    def _keep(self, event_id: str, data: bytes) -> None:
        """Keep what is to be sent; ``_tell`` has consumers take it."""
        self._frames.append(Frame(self._ordinal, event_id, data))
        self._bytes += len(data)
        self._untold_bytes += len(data)
        self._untold_frames += 1
        while len(self._frames) > 1 and (self._bytes > KEPT_BYTES or len(self._frames) > KEPT_FRAMES):
            self._bytes -= len(self._frames.popleft().data)
            self._first += 1

    def _close(self) -> None:
        self.is_closed = True
        self.is_ready.set()
        self._tell()
        self._when_closed(self)

    def _tell(self) -> None:
        self._untold_frames = self._untold_bytes = 0
        news, self._news = self._news, asyncio.Event()
        news.set()


# The events of a run in the order in which they happened, over all the directories that it went through.
#
# A ``loop_restart`` takes a run into its own directory, whose records are numbered anew; a rewind may take
# it back. So an event's id has two numbers: of the directory (0 for the first, ``N`` for ``restart-N``), and of
# the record there. A directory's events come where its parent says that the run went there.

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
    """Reads the log of a run from its beginning, and continues where it was left."""

    def __init__(self, root: Path) -> None:
        """Start before the first event of the run in a directory."""
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
        """True if a directory before the latest has grown since: a rewind took the run back to it."""
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
    """The new records of a directory; a record that is being written may look like damage for a moment."""
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
