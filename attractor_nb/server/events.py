"""The endpoint of a run's events: server-sent events, with heartbeats."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sse_starlette import EventSourceResponse, ServerSentEvent
from sse_starlette.sse import SendTimeoutError
from starlette.responses import Response

from attractor_nb.logs import own_logger
from attractor_nb.server.problems import Problem
from attractor_nb.server.requests import EVENT_ID

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from attractor_nb.server.calls import Call
    from attractor_nb.server.settings import ServerSettings
    from attractor_nb.server.streams import Stream

LOGGER = own_logger(__name__)
_ID: Final = re.compile(EVENT_ID)


class _EventStream(EventSourceResponse):
    """A stream whose consumer may hang, which is no fault of the server."""

    def __init__(self, stream: Stream, settings: ServerSettings) -> None:
        super().__init__(
            stream.frames(),
            ping=settings.heartbeat_seconds,
            ping_message_factory=lambda: ServerSentEvent(comment="alive"),
            send_timeout=settings.send_seconds,
        )
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        except* SendTimeoutError:
            LOGGER.info("a consumer of events left its connection unread, and was cut off")
        finally:
            self._stream.close()  # who hangs up before the first event has begun nothing that could end


async def stream_events(call: Call) -> Response:
    """The events of a run, behind the one that the consumer had last.

    Raises:
        Problem: There is no such event, or too many streams are open.
        RunNotFound: There is no such run.
    """
    last_id = call.last_event_id or call.query.last_event_id or ""
    if last_id and _ID.fullmatch(last_id) is None:
        raise Problem(
            400,
            "event-id",
            "Last-Event-ID is none of ours",
            "it is the id of an event: two numbers and a dot",
        )
    stream = await call.house.streams.open(call.path["id"], last_id)
    if stream is None:
        return Response(status_code=204)  # which tells an EventSource not to come again
    return _EventStream(stream, call.house.settings)
