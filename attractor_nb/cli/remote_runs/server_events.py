"""The events of a run on a server, as they happen: a broken connection is taken up where it broke."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.cli.remote_runs.server_client import as_mapping
from attractor_nb.errors import AttractorError, OptionError, RunError
from attractor_nb.model.events import Event, event_from_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from attractor_nb.cli.remote_runs.server_client import Client

MOST_FAILURES: Final = 6
"""Connections in a row that brought nothing, before it is given up."""
FIRST_DELAY_SECONDS: Final = 0.25
NO_CONTENT: Final = 204
REST_SECONDS: Final = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
END, FAULT = "end", "fault"
"""What the server says of the stream itself; after anything else the stream is to be opened again."""


@dataclass(slots=True)
class Message:
    """One message of a stream of events (server-sent events)."""

    name: str = ""  #: What it is called; empty for an event of the run.
    id: str = ""  #: Its id, or empty.
    data: list[str] = field(default_factory=list[str])  #: Its lines.


def read_messages(lines: Iterable[bytes]) -> Iterator[Message]:
    r"""The whole messages in lines of ``text/event-stream``; comments, which are heartbeats, are passed over.

    >>> list(read_messages([b": hello\n", b"id: 3\n", b'data: {"type":\n', b"data: 1}\n", b"\n"]))
    [Message(name='', id='3', data=['{"type":', '1}'])]
    """
    message = Message()
    for line in lines:
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        name, _, value = text.partition(":")
        value = value.removeprefix(" ")
        if not text:
            if message.data:
                yield message
            message = Message()
        elif name == "event":
            message.name = value
        elif name == "data":
            message.data.append(value)
        elif name == "id" and "\0" not in value:
            message.id = value


def follow_events(
    client: Client,
    run_id: str,
    *,
    wait: Callable[[float], object] = time.sleep,
    tell: Callable[[str], object] = lambda _: None,
) -> Iterator[Event]:
    """The events of a run: those recorded, then as they come; ends when the run has.

    Args:
        client: The server.
        wait: Waits so many seconds before a connection is tried again.
        tell: Told in words when the connection is lost, and with nothing when it is back.
    """
    place = _Place()
    while True:
        problem: AttractorError | None = None
        try:
            yield from _one_stream(client, run_id, place, tell)
        except OptionError as error:
            if not place.last_id:
                raise  # nobody was there in the first place
            problem = error
        except (OSError, HTTPException) as error:
            problem = RunError(f"the stream of run {run_id} broke: {error}")
        if place.is_over:
            return
        place.failures += 1
        if place.failures > MOST_FAILURES:
            raise problem or RunError(
                f"the stream of run {run_id} keeps ending, although the run has not ended",
                hint=f"attractor-nb watch {client.url_of(run_id)} --once",
            )
        tell("the event stream broke; trying again")
        wait(FIRST_DELAY_SECONDS * 2 ** (place.failures - 1))


def status_at_rest(client: Client, run_id: str, *, wait: Callable[[float], object] = time.sleep) -> dict[str, Any]:
    """How a run stands whose events have ended: its process lets go of it a moment after it said so.

    Whoever goes on with it then finds it free.
    """
    for delay in REST_SECONDS:
        status = as_mapping(client.get(run_id))
        if not status.get("is_live"):
            return status
        wait(delay)
    return as_mapping(client.get(run_id))


@dataclass(slots=True)
class _Place:
    """How far the events were had."""

    last_id: str = ""
    failures: int = 0  #: Connections since then that brought nothing.
    is_over: bool = False  #: There are no more.


def _one_stream(client: Client, run_id: str, place: _Place, tell: Callable[[str], object]) -> Iterator[Event]:
    """What one connection brings."""
    with client.stream(run_id, "events", last_id=place.last_id) as answer:
        tell("")
        if answer.status == NO_CONTENT:  # the run has ended, and all of it was had
            place.is_over = True
            return
        for message in read_messages(answer):
            if message.name == END:
                place.is_over = True
                return
            if message.name == FAULT:
                raise RunError(f"the server cannot read run {run_id} any more: {_words(message)}")
            if message.name:
                continue
            place.failures, place.last_id = 0, message.id or place.last_id
            if (event := _event_of(message)) is not None:
                yield event


def _words(message: Message) -> str:
    try:
        plain = as_mapping(json.loads("\n".join(message.data)))
    except (ValueError, RecursionError):
        return "no reason given"
    return str(plain.get("detail") or plain.get("reason") or "no reason given")


def _event_of(message: Message) -> Event | None:
    """The event of a message; None for what is no event."""
    try:
        return event_from_plain(as_mapping(json.loads("\n".join(message.data))))
    except (ValueError, RecursionError):
        return None
