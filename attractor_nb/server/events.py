"""The endpoint of a run's events: server-sent events, with heartbeats.

Our own response, and not sse-starlette's: what is sent is encoded already, and one event to one consumer
takes half the time (P12 in docs/benchmarks.md).
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from attractor_nb.logs import own_logger
from attractor_nb.server.event_channel import HEARTBEAT
from attractor_nb.server.replies import Problem
from attractor_nb.server.requests import EVENT_ID

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from attractor_nb.server.event_streams import Stream
    from attractor_nb.server.request_calls import Call
    from attractor_nb.server.server_settings import ServerSettings

LOGGER = own_logger(__name__)
_ID: Final = re.compile(EVENT_ID)


class EventStreamResponse(Response):
    """A stream whose consumer may go, or hang, which is no fault of the server."""

    media_type = "text/event-stream"

    def __init__(self, stream: Stream, settings: ServerSettings) -> None:
        self.status_code = 200
        self.background = None
        self.init_headers({"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._stream = stream
        self._settings = settings
        self._begun = 0.0
        self._is_sending = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the run ends or the consumer goes (ASGI)."""
        del scope
        sending = asyncio.create_task(self._send_all(send))
        leaving = asyncio.create_task(_left(receive))
        try:
            await self._look_after((sending, leaving), send)
            if sending.done():
                await sending
        except TimeoutError:
            LOGGER.info("an event client stopped reading and was disconnected")
        finally:
            sending.cancel()
            leaving.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)
            self._stream.close()  # who hangs up before the first event has begun nothing that could end

    async def _send_all(self, send: Send) -> None:
        now = asyncio.get_running_loop().time
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        self._is_sending = False
        async for piece in self._stream.frames():
            self._begun, self._is_sending = now(), True
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            self._is_sending = False
        await send({"type": "http.response.body", "body": b""})

    async def _look_after(self, tasks: tuple[asyncio.Task[None], ...], send: Send) -> None:
        """Say that the stream lives when it is silent: one timer for a stream, and none for each event."""
        now, settings = asyncio.get_running_loop().time, self._settings
        self._begun = now()
        while not any(task.done() for task in tasks):
            patience = settings.send_seconds if self._is_sending else settings.heartbeat_seconds
            left = self._begun + patience - now()
            if left > 0:
                # A send may begin, or end, meanwhile.
                left = min(left, settings.send_seconds, settings.heartbeat_seconds)
                await asyncio.wait(tasks, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            elif self._is_sending:
                raise TimeoutError
            else:
                self._begun = now()
                async with asyncio.timeout(settings.send_seconds):
                    await send({"type": "http.response.body", "body": HEARTBEAT, "more_body": True})


async def _left(receive: Receive) -> None:
    """Wait until the consumer hangs up."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def stream_events(call: Call) -> Response:
    """The events of a run, behind the one that the consumer had last."""
    last_id = call.last_event_id or call.query.last_event_id or ""
    if last_id and _ID.fullmatch(last_id) is None:
        raise Problem(
            400, "event-id", "Last-Event-ID is not valid", "it must be the id of an event: two numbers joined by a dot"
        )
    stream = await call.server.streams.open(call.path["id"], last_id)
    if stream is None:
        return Response(status_code=204)  # which tells an EventSource not to come again
    return EventStreamResponse(stream, call.server.settings)
