"""Runs on an attractor-nb server: begun, continued, forked, stopped and answered from the command line."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field, fields
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.cli.option_choices import ANSWERED_BY, GivenAnswer, GraphChange, OnInterrupted, Settings
from attractor_nb.cli.remote_runs.server_client import Client, ServerAddress, as_mapping
from attractor_nb.cli.reporting import ExitCode, print_json
from attractor_nb.cli.source_inputs import STDIN, read_params, read_text
from attractor_nb.errors import AttractorError, OptionError, RunError
from attractor_nb.given_files import read_file
from attractor_nb.model.events import Event, event_from_plain
from attractor_nb.model.states import run_word
from attractor_nb.model.vocabulary.option_meanings import FLAGS
from attractor_nb.runtime.prepare.text_sources import with_text_files
from attractor_nb.views.table import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


NOT_OF_A_SERVER: Final = {
    "is_simulated": "--simulate",
    "is_trusted": "--trust",
    "gates": "--gates",
    "cache": "--cache",
    "is_verbose": "--verbose",
}
"""Settings that are not sent to a server, by name."""
_HOW_TO_TRUST: Final = "allow its commands by their hash: --trust-hash HASH"


def submit_file(file: str, address: ServerAddress, settings: Settings, *, params: Mapping[str, Any]) -> ExitCode:
    """Have a server run the pipeline of a file, and print where it is to be found.

    Args:
        file: The file, or ``-`` for stdin.
        address: The server.
        settings: Backend, bounds and trust.
        params: Values for the context.
    """
    source = read_text(file)
    if file != STDIN:  # the server has none of our files
        source = with_text_files(source, Path(file))
    wanted = {"params": dict(params)}
    client = Client(address)
    answer = client.post(body={"source": source.text, **_with_settings(settings, wanted)})
    return _show_begun(client, answer, settings)


def resume_on(
    address: ServerAddress,
    settings: Settings,
    *,
    on_graph_change: GraphChange,
    on_interrupted: OnInterrupted | None,
    rewind_to: str | None,
    visit: int | None,
) -> ExitCode:
    """Have a server continue a run, or go back in it; it is not waited for."""
    _refuse_what_is_local(settings)
    wanted = {
        "on_graph_change": on_graph_change.value,
        "on_interrupted": on_interrupted.value if on_interrupted else None,
        "rewind_to": rewind_to,
        "visit": visit,
    }
    client = Client(address)
    answer = client.post(address.run_id, "resume", body=_with_settings(settings, wanted))
    return _show_begun(client, answer, settings)


def fork_on(
    address: ServerAddress,
    node: str,
    settings: Settings,
    *,
    visit: int | None,
    values: Iterable[str],
    prompt: Path | None,
) -> ExitCode:
    """Have a server begin a run that goes another way; it is not waited for."""
    _refuse_what_is_local(settings)
    wanted = {
        "node": node,
        "visit": visit,
        "context": read_params(values, "--set"),
        "prompt": None if prompt is None else read_file(prompt),
    }
    client = Client(address)
    answer = client.post(address.run_id, "fork", body=_with_settings(settings, wanted))
    return _show_begun(client, answer, settings)


def cancel_on(address: ServerAddress, *, is_json: bool) -> ExitCode:
    """Have a server stop a run, and wait until it has stopped: what is committed stays, and it can be resumed."""
    client = Client(address)
    client.post(address.run_id, "cancel", body={})
    for _ in follow_events(client, address.run_id):
        pass  # it has stopped when nothing follows
    known = status_at_rest(client, address.run_id)
    status = one_line(str(known.get("status", "")))
    url = client.url_of(address.run_id)
    if is_json:
        print_json({"id": address.run_id, "url": url, "status": status})
        return ExitCode.SUCCESS
    print(f"{address.run_id} is {run_word(status)}")
    if known.get("is_resumable"):
        print(f"Resume with `attractor-nb resume {url}`", file=sys.stderr)
    return ExitCode.SUCCESS


def answer_on(address: ServerAddress, given: GivenAnswer, *, is_json: bool) -> ExitCode:
    """Hand in an answer at a server."""
    wanted: dict[str, Any] = {"choice": given.choice, "text": given.text, "form": dict(given.fields)}
    body = {name: value for name, value in wanted.items() if value}
    body["answered_by"] = ANSWERED_BY
    client = Client(address)
    answer = as_mapping(client.post(address.run_id, "questions", given.gate, "answer", body=body))
    gate = str(answer.get("stage") or given.gate)
    if is_json:
        print_json(
            {
                "gate": gate,
                "question_id": str(answer.get("question", "")),
                "answer": given.choice or given.text or None,
                "id": address.run_id,
                "url": client.url_of(address.run_id),
            }
        )
    else:
        print(f"✓ {one_line(gate)}: {one_line(given.choice or given.text) or 'filled in'}")
    return ExitCode.SUCCESS


def tell_on(address: ServerAddress, node: str | None, text: str, *, is_json: bool) -> ExitCode:
    """Tell a run on a server something."""
    body = {"text": text, "given_by": ANSWERED_BY, **({"node": node} if node else {})}
    client = Client(address)
    taken = as_mapping(client.post(address.run_id, "messages", body=body))
    if is_json:
        told = {name: taken.get(name) for name in ("node", "stage", "reach", "words")}
        print_json({"text": text, **told, "id": address.run_id, "url": client.url_of(address.run_id)})
    else:
        print(f"✓ {one_line(str(taken.get('words', '')))}")
    return ExitCode.SUCCESS


def _with_settings(settings: Settings, own: Mapping[str, Any]) -> dict[str, Any]:
    """A request's body: what was said, and nothing of what was not."""
    wanted = {
        **own,
        "backend": settings.backend.value if settings.backend else None,
        "trust": settings.trust_hash,
        **{name: value for name, value in settings.options.items() if FLAGS[name].is_remote},
    }
    return {name: value for name, value in wanted.items() if value not in (None, "", {})}


def _refuse_what_is_local(settings: Settings) -> None:
    """Refuse options that a server would not hear of, in place of passing them over."""
    usual = Settings()
    for each in fields(Settings):
        option = NOT_OF_A_SERVER.get(each.name)
        if option is not None and getattr(settings, each.name) != getattr(usual, each.name):
            hint = _HOW_TO_TRUST if each.name == "is_trusted" else "remove it"
            raise _local(option, hint)
    for name, value in settings.options.items():
        if not FLAGS[name].is_remote and value != FLAGS[name].default:
            raise _local(f"--{name.replace('_', '-')}")


def _local(option: str, hint: str = "remove it") -> OptionError:
    return OptionError(f"{option} applies to local runs, and this run is on a server", hint=hint)


def _show_begun(client: Client, answer: object, settings: Settings) -> ExitCode:
    """Print the address of the run that a server has started or resumed."""
    plain = as_mapping(answer)
    run_id = one_line(str(plain.get("id", "")))
    if not run_id:
        raise RunError(f"the server at {client.address.url} did not return the id of the run")
    url = client.url_of(run_id)
    if settings.is_json:
        print_json({"id": run_id, "url": url, "status": str(plain.get("status", ""))})
        return ExitCode.SUCCESS
    print(f"{run_id}\n{url}")
    if not settings.is_quiet:
        print(f"watch it with `attractor-nb watch {url}`", file=sys.stderr)
    return ExitCode.SUCCESS


# The events of a run on a server, as they happen: a broken connection is taken up where it broke.

MOST_FAILURES: Final = 6
"""Connections in a row that brought nothing, before it is given up."""
FIRST_DELAY_SECONDS: Final = 0.25
NO_CONTENT: Final = 204
REST_SECONDS: Final = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
END, FAULT = "end", "fault"
"""Messages of the server about the stream itself; after any other end the stream must be reopened."""


@dataclass(slots=True)
class Message:
    """One message of a stream of events (server-sent events)."""

    name: str = ""  #: Its name; empty for an event of the run.
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
        wait: Waits a number of seconds before a connection is tried again.
        tell: Told in words when the connection is lost, and with nothing when it is back.
    """
    place = _Place()
    while True:
        problem: AttractorError | None = None
        try:
            yield from _one_stream(client, run_id, place, tell)
        except OptionError as error:
            if not place.last_id:
                raise  # there was no server in the first place
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
    """The status of a run whose events have ended: its process releases it a moment after its last event.

    A caller that resumes it then finds it free.
    """
    for delay in REST_SECONDS:
        status = as_mapping(client.get(run_id))
        if not status.get("is_live"):
            return status
        wait(delay)
    return as_mapping(client.get(run_id))


@dataclass(slots=True)
class _Place:
    """The position in the event stream."""

    last_id: str = ""
    failures: int = 0  #: Connections since then that brought nothing.
    is_over: bool = False  #: There are no more.


def _one_stream(client: Client, run_id: str, place: _Place, tell: Callable[[str], object]) -> Iterator[Event]:
    """The events of one connection."""
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
