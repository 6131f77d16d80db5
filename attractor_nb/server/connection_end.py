"""A connection as the server has it: whoever is refused hears why, also while still sending.

A connection that is closed while something arrives is reset, and a reset may take away what was sent just
before it: the answer. So it is closed in one direction first, and what arrives then is let go, within bounds.
What is no HTTP, or has too long a head, is refused in the words that all else is refused in.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from attractor_nb.server.guard import DEFAULT_HEADERS, HEADERS
from attractor_nb.server.problems import Problem
from attractor_nb.server.replies import problem_response

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_BYTES: Final = 64 * 1024 * 1024
"""How much is let go of what arrives behind an answer."""
SILENT_SECONDS: Final = 5.0
"""How long nothing may arrive there."""
MOST_SECONDS: Final = 30.0
"""How long all of it may take."""
_UNREAD: Final = (h11.SEND_BODY, h11.ERROR)
_BEFORE_AN_ANSWER: Final = (h11.IDLE, h11.SEND_RESPONSE)


class Connection(H11Protocol):
    """One connection of uvicorn's, which ends in order whatever still arrives."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._line: asyncio.Transport | None = None
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._is_lingering = False
        self._unread_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection."""
        self._line = transport
        super().connection_made(_Line(transport, self._end))

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of it."""
        for timer in self._timers.values():
            timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what arrives: of what is behind its answer only note how much it is."""
        if self._is_lingering or (self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY):
            self._unread_bytes += len(data)
            if self._unread_bytes > MOST_BYTES:
                self._abort()
                return
        else:
            self._unread_bytes = 0
        if self._is_lingering:
            self._wait("silent", SILENT_SECONDS)
        else:
            super().data_received(data)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP; called while h11's error is being handled."""
        if self.conn.our_state in _BEFORE_AN_ANSWER:
            response = problem_response(_problem_of(sys.exception(), msg))
            headers = [*response.raw_headers, *HEADERS, *DEFAULT_HEADERS, (b"connection", b"close")]
            for event in (
                h11.Response(status_code=response.status_code, headers=headers),
                h11.Data(data=bytes(response.body)),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def shutdown(self) -> None:
        """The server ends: wait no longer for who was answered."""
        if self._is_lingering:
            self._abort()
        else:
            super().shutdown()

    def _end(self) -> None:
        """Close the connection, at once when nothing more can arrive."""
        line = self._line
        assert line is not None, "it is closed after it was made"
        if self.conn.their_state not in _UNREAD or not line.can_write_eof():
            line.close()
            return
        self._is_lingering = True
        if self.cycle is not None and not self.cycle.response_complete:  # pyright: ignore[reportUnnecessaryComparison] - None before the first request
            self.cycle.disconnected = True  # nobody waits for a body that cannot be read
            self.cycle.message_event.set()
        line.write_eof()
        line.resume_reading()
        self._wait("silent", SILENT_SECONDS)
        self._wait("all", MOST_SECONDS)

    def _wait(self, name: str, seconds: float) -> None:
        if timer := self._timers.pop(name, None):
            timer.cancel()
        self._timers[name] = self.loop.call_later(seconds, self._abort)

    def _abort(self) -> None:
        if self._line is not None:
            self._line.abort()


class _Line(asyncio.Transport):
    """The transport as uvicorn has it: whoever closes it asks its connection to."""

    def __init__(self, line: asyncio.Transport, end: Callable[[], None]) -> None:
        super().__init__()
        self._line = line
        self._end = end
        self._is_closing = False

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._end()

    def is_closing(self) -> bool:
        return self._is_closing or self._line.is_closing()

    def write(self, data: Any) -> None:
        if not self._is_closing:
            self._line.write(data)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._line.get_extra_info(name, default)

    def pause_reading(self) -> None:
        self._line.pause_reading()

    def resume_reading(self) -> None:
        self._line.resume_reading()


def _problem_of(error: BaseException | None, words: str) -> Problem:
    status = getattr(error, "error_status_hint", 400)
    if status == 431:
        return Problem(
            431, "head-too-large", "The head of the request is too long", hint="send fewer headers"
        )
    return Problem(400, "http", "The request is not HTTP", str(error or words))
