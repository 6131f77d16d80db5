"""Streams of events: where one begins, what it is served from, when it is cut off, how many there may be."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from attractor_nb.server.event_channel import (
    BATCH_BYTES,
    FIRST_ID,
    GAP,
    EventReader,
    Recorded,
    RunChannel,
    control_frame,
    event_frame,
    whole_id,
)
from attractor_nb.server.replies import Problem, stopping

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from attractor_nb.server.run_service import RunService


RETRY_MILLISECONDS: Final = 1_000
_REPLAYS: Final = 2
"""Number of logs that are read for consumers at a time; the others wait."""


class Streams:
    """All streams of a server. It lives in the server's loop, and only there."""

    def __init__(self, service: RunService, max_streams: int) -> None:
        self._service = service
        self._max_streams = max_streams
        self._channels: dict[str, RunChannel] = {}
        self._replays = asyncio.Semaphore(_REPLAYS)
        self._is_closed = False
        self.open_count = 0

    async def open(self, run_id: str, last_id: str) -> Stream | None:
        """A stream of the events of a run behind an event; None when there is nothing behind it for good.

        Args:
            last_id: The last event that the consumer has had; empty for none.
        """
        place = await asyncio.to_thread(self._service.place, run_id)
        if self._is_closed:
            raise stopping()
        self._take_room()
        channel = self._channel(run_id, place)
        channel.listeners += 1
        stream = Stream(self, run_id, channel)
        try:
            await channel.is_ready.wait()
            last_id = "" if not last_id or whole_id(last_id) == FIRST_ID else whole_id(last_id)
            position = channel.position_of(last_id)
            if position is None:
                async with self._replays:
                    recorded = await asyncio.to_thread(EventReader(place).read)
                stream.replay_behind(recorded, last_id)
            else:
                stream.position = position
            if last_id and channel.is_closed and stream.is_at_end:
                stream.close()
                return None
        except BaseException:  # an interrupt, too: no other code closes it
            stream.close()
            raise
        return stream

    def leave(self, run_id: str, channel: RunChannel) -> None:
        """A consumer has gone. A run of another process is not followed once it has no consumer."""
        self.open_count -= 1
        channel.listeners -= 1
        is_known = self._channels.get(run_id) is channel
        if is_known and not channel.listeners and (channel.is_closed or not channel.is_local):
            del self._channels[run_id]
            channel.stop()

    def close(self) -> None:
        """End all streams: the server stops, and opens none any more."""
        self._is_closed = True
        channels, self._channels = list(self._channels.values()), {}
        for channel in channels:
            channel.stop()

    def _take_room(self) -> None:
        if self.open_count >= self._max_streams:
            raise Problem(
                429,
                "too-many-streams",
                "Too many streams are open",
                f"this server allows {self._max_streams}",
                headers={"Retry-After": "10"},
            )
        self.open_count += 1

    def _channel(self, run_id: str, place: Path) -> RunChannel:
        service = self._service
        live = service.live(run_id)
        kept = self._channels.get(run_id)
        if kept is not None and kept.is_current and not (kept.is_closed and live):
            return kept  # and not that of a run that had ended and is active again here
        channel = RunChannel(
            place,
            live,
            lambda: service.is_awaited(run_id) or service.summary(run_id).is_live,
            lambda: service.summary(run_id).status,
            when_closed=partial(self._forget_finished, run_id),
        )
        self._channels[run_id] = channel
        channel.start()
        return channel

    def _forget_finished(self, run_id: str, channel: RunChannel) -> None:
        """Let go of a channel of a run that has ended, unless a consumer has not received its end yet."""
        if self._channels.get(run_id) is channel and not channel.listeners:
            del self._channels[run_id]


class Stream:
    """The event stream of one consumer.

    Attributes:
        position: Where it is in the channel.
    """

    def __init__(self, streams: Streams, run_id: str, channel: RunChannel) -> None:
        self._streams = streams
        self._run_id = run_id
        self._channel = channel
        self._replay: list[Recorded] = []
        self._had = 0
        self._is_open = True
        self.position = 0

    @property
    def is_at_end(self) -> bool:
        """True if no event of the log is left to be sent."""
        return not self._replay and not self._channel.has_events(max(self.position, self._channel.first), self._had)

    def replay_behind(self, recorded: list[Recorded], last_id: str) -> None:
        """Begin with what the log has behind an event."""
        begin = 0
        if last_id:
            begin = next((index for index, one in enumerate(recorded, 1) if one.id == last_id), 0)
            if not begin:
                raise Problem(
                    404,
                    "no-such-event",
                    "There is no such event",
                    f"the log has no event {last_id}",
                    hint="remove Last-Event-ID to start from the beginning",
                )
        self._replay = recorded[begin:]
        self._had = len(recorded)

    async def frames(self) -> AsyncGenerator[bytes]:
        """The content of the stream, piece by piece; ends with the run, or when the consumer was too slow."""
        try:
            yield b"retry: %d\n\n" % RETRY_MILLISECONDS
            for piece in self._replayed():
                yield piece
            if self._had:
                joined = self._channel.position_behind(self._had)
                self.position = -1 if joined is None else joined
            async for piece in self._followed():
                yield piece
        finally:
            self.close()

    def _replayed(self) -> list[bytes]:
        """The log's part in pieces of a size that a connection takes at once."""
        pieces, piece = list[bytes](), bytearray()
        for one in self._replay:
            piece += event_frame(one.event, one.id)
            if len(piece) >= BATCH_BYTES:
                pieces.append(bytes(piece))
                piece.clear()
        self._replay = []
        return [*pieces, bytes(piece)] if piece else pieces

    async def _followed(self) -> AsyncGenerator[bytes]:
        channel = self._channel
        while True:
            if self.position < channel.first:
                yield control_frame(GAP, {"reason": "this client was too slow; reconnect with the last received id"})
                return
            data, self.position = channel.take(self.position, self._had)
            if data:
                yield data
            elif channel.is_closed:
                return
            else:
                await channel.wait(self.position)

    def close(self) -> None:
        """Give its room back; waits for nothing, because a disconnected client is not waited for."""
        if self._is_open:
            self._is_open = False
            self._streams.leave(self._run_id, self._channel)
