"""Servers that send one stream of events to many: ``events_server.py CONTENDER``; its first line is its port.

``ours`` sends what the server of the package sends. ``peer`` gives sse-starlette a dict for each event and client,
as its documentation does. Both make the same events and run under the same uvicorn.
``GET /events`` listens, ``/go/N`` sends N events, ``/cpu`` says what the process has used.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from pathlib import Path

import uvicorn
from sse_starlette import EventSourceResponse
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from attractor_nb.model.events import StageCompleted
from attractor_nb.model.outcome import Outcome
from attractor_nb.server.event_channel import Recorded, RunChannel
from attractor_nb.server.event_streams import Stream
from attractor_nb.server.events import EventStreamResponse
from attractor_nb.server.server_settings import ServerSettings
from attractor_nb.storage.files.strict_json import json_line


def event(number):
    made = StageCompleted(name=f"node_{number}", index=number, duration=0.1, outcome=Outcome.success("done"))
    made.sequence, made.time, made.run_id = number, 1.7e9, "0123456789abcdef"
    return made


class Ours:
    """A channel into which events are put, in place of one that follows a run."""

    class Streams:
        """The door, which is not what is measured."""

        def leave(self, run_id, channel):
            channel.listeners -= 1

    def __init__(self):
        self.channel = RunChannel(Path("nowhere"), None, lambda: True, lambda: "running")
        self.settings = ServerSettings(root=Path("nowhere"), tokens={"ada": "t" * 43}, hosts=frozenset())

    def response(self):
        self.channel.listeners += 1
        stream = Stream(self.Streams(), "run", self.channel)
        stream.position = self.channel.end
        return EventStreamResponse(stream, self.settings)

    def send(self, number):
        self.channel._publish(Recorded(f"0.{number}", event(number)))
        self.channel._tell()  # each by itself: nothing is gathered here, as it would be of a run

    def end(self):
        self.channel.stop()


class Peer:
    """A queue for each client."""

    def __init__(self):
        self.queues = []

    def response(self):
        queue = asyncio.Queue()
        self.queues.append(queue)
        return EventSourceResponse(self.messages(queue), send_timeout=30)

    async def messages(self, queue):
        while (sent := await queue.get()) is not None:
            yield {"id": f"0.{sent.sequence}", "data": json_line(sent.to_plain()).decode()}

    def send(self, number):
        made = event(number)
        for queue in self.queues:
            queue.put_nowait(made)

    def end(self):
        for queue in self.queues:
            queue.put_nowait(None)


def app_of(contender):
    """The application: a fresh contender for each round."""
    current = [contender()]

    async def events(request):
        return current[0].response()

    async def go(request):
        sender = current[0]
        for number in range(1, int(request.path_params["count"]) + 1):
            sender.send(number)
            await asyncio.sleep(0)
        sender.end()
        current[0] = contender()
        return PlainTextResponse("gone")

    async def cpu(request):
        return PlainTextResponse(str(time.process_time()))

    return Starlette(routes=[Route("/events", events), Route("/go/{count}", go), Route("/cpu", cpu)])


listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
print(listening.getsockname()[1], flush=True)
config = uvicorn.Config(
    app_of({"ours": Ours, "peer": Peer}[sys.argv[1]]), log_config=None, access_log=False, lifespan="off"
)
uvicorn.Server(config).run(sockets=[listening])
