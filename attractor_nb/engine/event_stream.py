"""Numbers events, logs the durable ones, and passes them to listeners (spec 9.6).

Sinks are ours: called inline, in order, they must be quick and never raise. Observers and feeds are
the user's: each has its own bounded buffer, so that a slow, raising or re-entering consumer
never holds up the run. What a consumer misses is said by an ``EventsDropped``; the log has it all.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING

from attractor_nb.logs import own_logger
from attractor_nb.maybe_async import call
from attractor_nb.model.events import Event, EventObserver, EventsDropped
from attractor_nb.model.redacted import redact_event
from attractor_nb.platforms import HAS_THREADS, loop_here

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator

    from attractor_nb.protocols import Clock, EventSink, RunStore

LOGGER = own_logger(__name__)
FEED_CAPACITY = 10_000
DRAIN_SECONDS = 5.0


class EventFeed:
    """A bounded buffer of events for one consumer; iterate it, plainly or with ``async for``.

    The iteration ends when the run has ended and everything was delivered.
    """

    def __init__(self, capacity: int = FEED_CAPACITY, recorded: Iterable[Event] = ()) -> None:
        """Make a buffer that holds ``capacity`` events, beside those recorded before."""
        self._events: deque[Event] = deque(recorded)
        self._capacity = capacity + len(self._events)
        self._dropped = 0
        self._is_closed = False
        self._condition = threading.Condition()
        self._wakers: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def put(self, event: Event) -> None:
        """Take an event, or count it as dropped when the buffer is full. Never waits."""
        with self._condition:
            if self._is_closed:
                return
            if len(self._events) >= self._capacity:
                self._dropped += 1
                return
            self._events.append(event)
            self._notify()

    def put_before(self, recorded: Iterable[Event]) -> None:
        """Take events that came before all those taken so far; the capacity is for the others."""
        with self._condition:
            count = len(self._events)
            self._events.extendleft(reversed(tuple(recorded)))
            self._capacity += len(self._events) - count
            self._notify()

    def close(self) -> None:
        """No more events follow."""
        with self._condition:
            self._is_closed = True
            self._notify()

    def _notify(self) -> None:
        self._condition.notify_all()
        wakers, self._wakers = self._wakers, []
        for loop, woken in wakers:
            with contextlib.suppress(RuntimeError):  # that loop has ended, and its waits with it
                loop.call_soon_threadsafe(woken.set)

    def _take(self) -> Event | None:
        """The next event; None when there is none now. With the lock held."""
        if self._events:
            return self._events.popleft()
        if self._dropped:
            count, self._dropped = self._dropped, 0
            return EventsDropped(count=count)
        return None

    def __iter__(self) -> Iterator[Event]:
        while True:
            with self._condition:
                while (event := self._take()) is None:
                    if self._is_closed:
                        return
                    self._condition.wait()
            yield event

    async def __aiter__(self) -> AsyncIterator[Event]:
        async for found in self.batches(1):
            yield found[0]

    async def batches(self, max_count: int) -> AsyncIterator[list[Event]]:
        """All events that are there, up to a limit, again and again: for consumers that need not wake for each."""
        loop = asyncio.get_running_loop()
        while True:
            woken = asyncio.Event()
            with self._condition:
                found = list(islice(iter(self._take, None), max_count))
                if not found:
                    if self._is_closed:
                        return
                    self._wakers.append((loop, woken))
            if found:
                yield found
            else:
                await woken.wait()


class _Observer:
    """Calls a user's function with the events of a feed, in a thread; without threads in the event loop."""

    def __init__(self, function: EventObserver) -> None:
        self.feed = EventFeed()
        self._function = function
        self._thread: threading.Thread | None = None
        self._task: asyncio.Task[None] | None = None
        if HAS_THREADS:
            self._thread = threading.Thread(target=self._deliver, name="attractor-observer", daemon=True)
            self._thread.start()
        else:
            self._task = loop_here().create_task(self._deliver_in_loop())

    async def drain(self, seconds: float) -> None:
        """Wait until it has seen everything, or for so many seconds."""
        if self._thread is not None and self._thread.is_alive():
            await call(self._thread.join, seconds)
        elif self._task is not None:
            await asyncio.wait({self._task}, timeout=seconds)

    def _deliver(self) -> None:
        for event in self.feed:
            self._show(event)

    async def _deliver_in_loop(self) -> None:
        async for event in self.feed:
            self._show(event)

    def _show(self, event: Event) -> None:
        try:
            self._function(event)
        except Exception:  # an observer's fault is its own, never the run's
            LOGGER.exception("an event observer raised on %s", event.type)


class EventStream:
    """The one place through which every event of a run goes.

    Thread-safe: answers to gates and output of plain handlers arrive from other threads.
    """

    def __init__(self, store: RunStore, clock: Clock, run_id: str) -> None:
        self._store = store
        self._clock = clock
        self._run_id = run_id
        self._lock = threading.RLock()
        self._sinks: list[tuple[EventSink, tuple[type[Event], ...]]] = []
        self._observers: list[_Observer] = []
        self._is_closed = False

    def add_sink(self, sink: EventSink, *kinds: type[Event]) -> None:
        """Call our own ``sink`` inline with every event from now on, or with those of some kinds alone."""
        with self._lock:
            self._sinks.append((sink, kinds))

    def observe(self, function: EventObserver) -> Callable[[], None]:
        """Call a user's function with every event from now on; returns how to stop that."""
        observer = _Observer(function)
        with self._lock:
            if self._is_closed:
                observer.feed.close()
            else:
                self._observers.append(observer)
                self._sinks.append((observer.feed.put, ()))

        def stop() -> None:
            self._remove(observer.feed.put)
            observer.feed.close()

        return stop

    def open_feed(self, capacity: int = FEED_CAPACITY) -> EventFeed:
        """A feed of all events: those of the log first, then every one from now on."""
        feed = EventFeed(capacity)
        with self._lock:
            store, sequence = self._store, self._store.sequence
            if self._is_closed:
                feed.close()
            else:
                self._sinks.append((feed.put, ()))
        # A long log takes its time to read: the run continues meanwhile.
        feed.put_before(event for event in store.read_events() if event.sequence <= sequence)
        return feed

    def _remove(self, sink: EventSink) -> None:
        with self._lock:
            self._sinks = [entry for entry in self._sinks if entry[0] != sink]

    def announce(self, event: Event, *, is_synced: bool = False) -> None:
        """Stamp an event, log it if it is durable, and hand it on."""
        with self._lock:
            event.run_id = self._run_id
            event.time = self._clock.time()
            if event.is_durable:
                event.sequence = self._store.sequence + 1
                self._store.append(event, is_synced=is_synced)
            else:
                event.sequence = self._store.sequence
                redact_event(event)
            for sink, kinds in self._sinks:
                if not kinds or type(event) in kinds:
                    sink(event)

    def move_to(self, store: RunStore, run_id: str) -> None:
        """Continue in another run directory: a restart. Numbers begin again there."""
        with self._lock:
            self._store, self._run_id = store, run_id

    def close(self) -> None:
        """End all feeds, those that are opened later too."""
        with self._lock:
            self._is_closed = True
            sinks, self._sinks = self._sinks, []
        for sink, _ in sinks:
            owner = getattr(sink, "__self__", None)
            if isinstance(owner, EventFeed):
                owner.close()

    async def drain(self) -> None:
        """Wait, but not forever, until observers have seen everything; other runs continue meanwhile."""
        observers, self._observers = self._observers, []
        give_up = time.monotonic() + DRAIN_SECONDS
        for observer in observers:
            await observer.drain(max(0.0, give_up - time.monotonic()))
