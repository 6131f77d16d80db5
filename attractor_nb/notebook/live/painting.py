"""Painting of events at a bounded rate: the emitter never waits, the painter receives batches.

A run may emit thousands of events a second; a front-end follows about fifty messages. A painter
collects events and passes them on at a limited rate, the first after a quiet time at once. It knows
neither widgets nor the content of a picture.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.logs import own_logger
from attractor_nb.platforms import HAS_THREADS, loop_here

if TYPE_CHECKING:
    from collections.abc import Callable

    from attractor_nb.model.events import Event

LOGGER = own_logger(__name__)
INTERVAL_SECONDS: Final = 1 / 50
BEAT_SECONDS: Final = 5.0
"""After so long a silence a painter says that it lives; the front-end waits for three of them."""


class ThreadPainter:
    """Paints in a daemon thread, in the context of the cell that made it.

    The context carries the cell's identity: with ipykernel 7 a message from a thread without it would
    belong to no cell.
    """

    def __init__(
        self,
        paint: Callable[[list[Event]], None],
        *,
        last: tuple[type[Event], ...],
        beat: Callable[[], None] | None = None,
        beat_seconds: float = BEAT_SECONDS,
    ) -> None:
        """Begin to follow.

        Args:
            paint: Takes a batch.
            last: After an event of these types nothing more is painted.
            beat: Called when nothing has come for a while.
            beat_seconds: For how long.
        """
        self._paint = paint
        self._last = last
        self._beat = beat
        self._beat_seconds = beat_seconds if beat else None
        self._events: deque[Event] = deque()
        self._has_events = threading.Event()
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(self._follow,), name="attractor-painter", daemon=True).start()

    def put(self, event: Event) -> None:
        """Take an event."""
        self._events.append(event)
        self._has_events.set()

    def _follow(self) -> None:
        is_over = False
        while not is_over:
            if not self._has_events.wait(self._beat_seconds):
                self._say_that_it_lives()
                continue
            self._has_events.clear()
            begun = time.monotonic()
            batch = _paint_safely(self._paint, self._events)
            is_over = any(isinstance(event, self._last) for event in batch)
            time.sleep(max(0.0, begun + INTERVAL_SECONDS - time.monotonic()))

    def _say_that_it_lives(self) -> None:
        try:
            if self._beat:
                self._beat()
        except Exception:  # a fault of the display is never the run's
            LOGGER.exception("the live view could not be sent a heartbeat")


class LoopPainter:
    """Paints in the event loop, where there are no threads (Pyodide)."""

    def __init__(self, paint: Callable[[list[Event]], None]) -> None:
        """Begin to follow; ``paint`` takes a batch."""
        self._paint = paint
        self._events: deque[Event] = deque()
        self._loop = loop_here()
        self._context = contextvars.copy_context()
        self._is_due = False
        self._painted_at = 0.0

    def put(self, event: Event) -> None:
        """Take an event."""
        self._events.append(event)
        if not self._is_due:
            self._is_due = True
            delay = max(0.0, self._painted_at + INTERVAL_SECONDS - self._loop.time())
            self._loop.call_later(delay, self._flush, context=self._context)

    def _flush(self) -> None:
        self._is_due = False
        self._painted_at = self._loop.time()
        _paint_safely(self._paint, self._events)


def make_painter(
    paint: Callable[[list[Any]], None],
    *,
    last: tuple[type[Event], ...] = (),
    beat: Callable[[], None] | None = None,
    beat_seconds: float = BEAT_SECONDS,
) -> ThreadPainter | LoopPainter:
    """The painter of this platform, which begins to follow; see ``ThreadPainter`` for the arguments."""
    if HAS_THREADS:
        return ThreadPainter(paint, last=last, beat=beat, beat_seconds=beat_seconds)
    return LoopPainter(paint)


def _paint_safely(paint: Callable[[list[Event]], None], events: deque[Event]) -> list[Event]:
    """Paint what has come, if anything has, and return it."""
    batch: list[Event] = []
    while events:
        batch.append(events.popleft())
    try:
        if batch:
            paint(batch)
    except Exception:  # a fault of the display is never the run's
        LOGGER.exception("the live view could not follow the run")
    return batch
