"""Clients of event streams that hang up at random and come back, and what they had in the end."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from load_http import Connection
from load_sources import Kind

DROPS = 0.05
"""Probability that a client hangs up after an event."""
MAX_PAUSE_SECONDS = 0.2
ASKED = b'"type":"InterviewStarted"'


class Received(NamedTuple):
    """An event as a client had it.

    Attributes:
        id: Its id.
        data: Its JSON.
        at: When it came.
        opened: Since when the connection was open on which it came.
    """

    id: str
    data: bytes
    at: float
    opened: float


@dataclass(eq=False)
class Watched:
    """A run of the load, as its clients see it.

    Attributes:
        id: The run.
        kind: Its kind.
        watchers: Its clients.
        question: Id of the question that waits.
        asked: How many questions its first client has seen.
    """

    id: str
    kind: Kind
    watchers: list[Watcher] = field(default_factory=list)
    question: str = ""
    asked: int = 0


@dataclass(eq=False)
class Watcher:
    """One client.

    Attributes:
        run: What it watches.
        connect: Opens a stream behind an event.
        chance: Its luck.
        on_asked: Told that it has seen a question.
        had: All events of the log that it was sent.
        status: How the run ended, as the stream said.
        connections: How often it has connected.
        refusals: Statuses that were neither a stream nor its end.
        gaps: How often it was cut off.
        faults: What the server could not do, in its words.
    """

    run: Watched
    connect: Callable[[str, str, Callable[..., None]], Awaitable[Connection]]
    chance: random.Random
    on_asked: Callable[[Watcher], None]
    had: list[Received] = field(default_factory=list)
    status: str = ""
    connections: int = 0
    refusals: list[int] = field(default_factory=list)
    gaps: int = 0
    faults: list[str] = field(default_factory=list)
    connection: Connection | None = None
    is_over: bool = False
    is_waiting: bool = False

    async def follow(self) -> None:
        """Watch until the run has ended, whatever happens to connections."""
        while not self.is_over:
            last_id = self.had[-1].id if self.had else ""
            self.connections += 1
            self.connection = None
            connection = self.connection = await self.connect(self.run.id, last_id, self._take)
            await connection.over
            if connection.status == 204:
                self.is_over = True
            elif connection.status not in {0, 200}:
                self.refusals.append(connection.status)
            if not self.is_over:  # no client reconnects at once
                await asyncio.sleep(self.chance.random() * MAX_PAUSE_SECONDS)

    def drop(self) -> None:
        """Hang up."""
        if self.connection is not None and not self.is_over:
            self.connection.drop(is_rude=self.chance.random() < 0.5)

    def _take(self, connection: Connection, name: str, event_id: str, data: bytes) -> None:
        if name:
            self._note(name, data)
            return
        if not event_id:  # output as it comes, which is not in the log
            return
        self.had.append(Received(event_id, data, time.time(), connection.opened))
        if ASKED in data:
            self.on_asked(self)
        if self.chance.random() < DROPS:
            self.drop()

    def _note(self, name: str, data: bytes) -> None:
        plain = json.loads(data)
        if name == "end":
            self.is_over, self.status = True, plain.get("status", "")
        elif name == "gap":
            self.gaps += 1
        else:
            self.is_over = True
            self.faults.append(str(plain.get("detail", plain)))
