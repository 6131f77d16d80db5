"""Events by SSE: complete, in order, resumable by id, for many consumers, never held up by one."""

import asyncio
import contextlib
import random
import re
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from attractor_nb import Pipeline
from attractor_nb.engine.event_stream import EventFeed
from attractor_nb.server import event_channel as channel_module
from attractor_nb.server import guard
from attractor_nb.server.event_channel import EventReader, RunChannel
from attractor_nb.server.event_streams import Streams
from attractor_nb.server.events import EventStreamResponse
from attractor_nb.server.guard import Tickets
from attractor_nb.server.replies import Problem
from attractor_nb.server.run_service import RunService
from attractor_nb.server.server_settings import ServerSettings
from attractor_nb.storage.log.event_log import read_log


def logged(place):
    return [f"0.{event.sequence}" for event in read_log(place).events]


def ids(messages):
    return [one["id"] for one in messages if one["id"]]


def test_a_stream_has_every_event_of_the_log_once_in_order_and_then_ends(client, root, sources):
    run_id = client.submit(sources.plain)
    messages = client.events(run_id)
    assert ids(messages) == logged(root / run_id)
    assert messages[-1]["event"] == "end"
    assert messages[-1]["data"] == {"status": "completed"}


def test_events_of_a_stream_are_those_of_the_specification(client, sources):
    run_id = client.submit(sources.plain)
    kinds = [one["data"].get("type") for one in client.events(run_id)]
    for kind in ("PipelineStarted", "StageStarted", "StageCompleted", "PipelineCompleted"):
        assert kind in kinds


def test_a_consumer_that_comes_back_after_any_event_gets_exactly_the_rest(client, root, sources):
    run_id = client.submit(sources.plain)
    client.events(run_id)
    whole = logged(root / run_id)
    for index, last in enumerate(whole[:-1]):
        assert ids(client.events(run_id, last)) == whole[index + 1 :]


def test_after_the_last_event_of_a_run_that_ended_nothing_follows_for_good(client, root, sources):
    run_id = client.submit(sources.plain)
    client.events(run_id)
    last = logged(root / run_id)[-1]
    reply = client.get(f"/pipelines/{run_id}/events", headers={"Last-Event-ID": last})
    assert (reply.status_code, reply.content) == (204, b"")


def test_a_plain_number_counts_and_zero_is_the_beginning(client, root, sources):
    run_id = client.submit(sources.plain)
    client.events(run_id)
    whole = logged(root / run_id)
    assert ids(client.events(run_id, "0")) == whole
    assert ids(client.events(run_id, "2")) == whole[2:]
    with client.http.stream("GET", f"/pipelines/{run_id}/events?last_event_id=0.2") as response:
        assert response.status_code == 200
        assert "id: 0.3" in "".join(response.iter_text())


@pytest.mark.parametrize(("last", "status"), [("0.9999", 404), ("7.1", 404), ("nonsense", 400), ("1.2.3", 400)])
def test_an_id_that_is_none_of_this_log_is_refused(client, sources, last, status):
    run_id = client.submit(sources.plain)
    client.events(run_id)
    reply = client.get(f"/pipelines/{run_id}/events", headers={"Last-Event-ID": last})
    assert reply.status_code == status


def test_two_ids_of_last_events_are_one_too_many(client, sources):
    run_id = client.submit(sources.plain)
    ids = [("last-event-id", "1"), ("last-event-id", "2")]
    refused = client.http.get(f"/pipelines/{run_id}/events", headers=ids)
    assert (refused.status_code, refused.json()["title"]) == (400, "The Last-Event-ID is given twice")


def test_random_drops_of_many_consumers_make_no_gap_and_no_duplicate(client, root, sources):
    body = "\n".join(f'n{i} [prompt="{i}"]' for i in range(40))
    chain = " -> ".join(["start", *(f"n{i}" for i in range(40)), "done"])
    run_id = client.submit(sources.of(f"{body}\n{chain}"))

    def listen(seed):
        chance, had, last, is_over = random.Random(seed), [], "", False
        while not is_over:
            with client.stream(run_id, last) as found:
                for one in found:
                    if one["event"] == "end":
                        is_over = True
                        break
                    if one["id"]:
                        had.append(one["id"])
                        last = one["id"]
                    if chance.random() < 0.05:
                        break
            if had and had[-1] == whole_end(root / run_id):
                is_over = True
        return had

    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(listen, range(6)))
    whole = logged(root / run_id)
    assert all(had == whole for had in results)


def whole_end(place):
    from attractor_nb.storage.manifest_file import read_last_event

    last = read_last_event(place)
    is_end = last is not None and last.type in {"PipelineCompleted", "PipelineFailed"}
    return f"0.{last.sequence}" if is_end else "none"


def test_a_restart_goes_on_in_the_same_stream_with_ids_of_its_own(client, sources):
    source = sources.of(
        'plan [prompt="Plan"]\n again [shape=hexagon, label="Again?"]\n start -> plan -> again\n'
        ' again -> done [label="[N] No"]\n again -> plan [label="[Y] Yes", loop_restart=true]'
    )
    run_id = client.submit(source)
    asked = client.wait_for(run_id, "InterviewStarted")["data"]["question_id"]
    client.post(f"/pipelines/{run_id}/questions/{asked}/answer", {"choice": "Y"})
    with client.stream(run_id) as found:
        seen = []
        for one in found:
            seen.append(one)
            if [s["data"].get("type") for s in seen].count("InterviewStarted") == 2:
                break
    checkpoint = client.get(f"/pipelines/{run_id}/checkpoint").json()["checkpoint"]  # of the second directory
    assert checkpoint["completed_nodes"] == ["plan"]
    assert client.post(f"/pipelines/{run_id}/questions/again/answer", {"choice": "N"}).status_code == 200
    whole = ids(client.events(run_id))
    assert len(set(whole)) == len(whole)
    assert {one.partition(".")[0] for one in whole} == {"0", "1"}
    for last in ("0.3", "1.1", whole[-2]):
        assert ids(client.events(run_id, last)) == whole[whole.index(last) + 1 :]


def test_a_ticket_opens_one_stream_once_and_nothing_else(client, sources):
    import httpx

    run_id, other = client.submit(sources.plain), client.submit(sources.plain)
    client.ended(run_id)
    client.ended(other)

    def ticket():
        return client.post(f"/pipelines/{run_id}/events/ticket").json()["ticket"]

    def get(path, given):
        return httpx.get(f"{client.base}{path}", params={"ticket": given}).status_code

    once = ticket()
    assert get(f"/pipelines/{run_id}/events", once) == 200
    assert get(f"/pipelines/{run_id}/events", once) == 401
    assert get(f"/pipelines/{other}/events", ticket()) == 401
    assert get(f"/pipelines/{run_id}", ticket()) == 401
    assert get(f"/pipelines/{run_id}/events", "x" * 43) == 401


def test_a_ticket_is_good_for_its_seconds_only():
    now = [0.0]
    tickets = Tickets(30.0, monotonic=lambda: now[0])
    kept, lost = tickets.issue("/a/events"), tickets.issue("/a/events")
    now[0] = 29.0
    assert tickets.redeem(kept, "/a/events")
    now[0] = 31.0
    assert not tickets.redeem(lost, "/a/events")


def test_unused_tickets_are_bounded_and_room_comes_back(monkeypatch):
    monkeypatch.setattr(guard, "MAX_TICKETS", 2)
    now = [0.0]
    tickets = Tickets(30.0, monotonic=lambda: now[0])
    first = tickets.issue("/a/events")
    tickets.issue("/a/events")
    with pytest.raises(Problem, match="Too many tickets are unused") as refused:
        tickets.issue("/a/events")
    assert (refused.value.status, refused.value.kind) == (429, "too-many-tickets")
    assert refused.value.headers == {"Retry-After": "30"}
    assert tickets.redeem(first, "/a/events")
    tickets.issue("/a/events")
    now[0] = 30.0
    assert tickets.redeem(tickets.issue("/b/events"), "/b/events")


def test_a_silent_stream_says_that_it_lives(serving, root, sources):
    with serving(root, heartbeat_seconds=1.0) as client:
        run_id = client.submit(sources.gate)
        with client.http.stream("GET", f"/pipelines/{run_id}/events") as response:
            assert any(line.startswith(": alive") for line in response.iter_lines())


def test_more_streams_than_allowed_are_refused_and_room_is_given_back(serving, root, sources):
    with serving(root, max_streams=1) as client:
        run_id = client.submit(sources.gate)
        with client.stream(run_id) as found:
            next(found)
            reply = client.get(f"/pipelines/{run_id}/events")
            assert (reply.status_code, reply.json()["type"]) == (429, "urn:attractor-nb:problem:too-many-streams")
        client.post(f"/pipelines/{run_id}/cancel")
        while client.server.state.streams.open_count:  # the server has yet to see that it hung up
            client.get("/pipelines")
        assert ids(client.events(run_id))


def test_a_run_of_another_process_is_followed_from_its_log(serving, root, sources):
    """Two servers on one root: the one shows what the other runs, and does not touch it."""
    with serving(root) as one, serving(root) as other:
        run_id = one.submit(sources.gate)
        with other.stream(run_id) as found:
            for message in found:
                if message["data"].get("type") == "InterviewStarted":
                    one.post(f"/pipelines/{run_id}/questions/review/answer", {"choice": "A"})
                last = message
        assert last["data"] == {"status": "completed"}


# -- the channel by itself ---------------------------------------------------------------------------


@pytest.fixture
def stored(root, sources):
    Pipeline(sources.plain).run(wait=True, logs_root=root / "a", is_shown=False)
    return root / "a"


def test_each_event_is_encoded_once_however_many_listen(root, stored, monkeypatch):
    counted = []
    encode = channel_module.event_frame
    monkeypatch.setattr(channel_module, "event_frame", lambda *given: counted.append(1) or encode(*given))

    async def listen_all():
        streams = Streams(RunService(root, 10), 100)
        opened = [await streams.open("a", "") for _ in range(20)]
        return [b"".join([piece async for piece in stream.frames()]) for stream in opened]

    sent = asyncio.run(listen_all())
    assert len(set(sent)) == 1
    assert len(counted) == len(read_log(stored).events)


def test_a_slow_consumer_is_cut_off_with_a_gap_and_comes_back_complete(root, stored, monkeypatch):
    async def listen():
        streams = Streams(RunService(root, 10), 100)
        slow = await streams.open("a", "")
        kept = slow._channel
        pieces = slow.frames()
        had = [await anext(pieces)]
        # What it has not read is let go, as when a run is faster than its connection.
        while len(kept._frames) > 1:
            kept._frames.popleft()
            kept._first += 1
        had += [piece async for piece in pieces]
        again = await streams.open("a", "")
        whole = [piece async for piece in again.frames()]
        return b"".join(had), b"".join(whole), streams.open_count

    had, whole, count = asyncio.run(listen())
    assert b"event: gap" in had
    assert b"event: end" not in had
    assert re.findall(rb"^id: (.*)$", whole, re.MULTILINE) == [one.encode() for one in logged(stored)]
    assert b"event: end" in whole
    assert count == 0


def test_a_run_that_goes_on_again_here_has_a_stream_of_its_own(root, stored):
    """A client still reads the end of a run when it is resumed: one that comes then must read the resumed one."""

    async def listen():
        service = RunService(root, 10)
        streams = Streams(service, 100)
        slow = await streams.open("a", "")
        pieces = slow.frames()
        await anext(pieces)
        assert slow._channel.is_closed
        again = await streams.open("a", "")
        service._live["a"] = Silent()
        other = await streams.open("a", "")
        streams.close()
        return again._channel is slow._channel, other._channel is slow._channel

    class Silent:
        is_done = False

        def events(self):
            return EventFeed()

    assert asyncio.run(listen()) == (True, False)


def test_a_server_that_ends_opens_no_stream(root, stored):
    async def listen():
        streams = Streams(RunService(root, 10), 100)
        streams.close()
        await streams.open("a", "")

    with pytest.raises(Problem, match="shutting down"):
        asyncio.run(listen())


def test_a_consumer_that_leaves_its_connection_unread_is_cut_off_and_the_run_goes_on(
    serving, root, sources, monkeypatch
):
    """Over a real connection: it is told of the gap, and what it has had and the rest make the whole log."""
    monkeypatch.setattr(channel_module, "KEPT_FRAMES", 20)
    body, chain = chain_of(150)
    source = sources.of(f'gate [shape=hexagon, label="Go?"]\n{body}\nstart -> gate -> {chain} -> done')
    with serving(root, send_buffer_bytes=4096) as client:
        run_id = client.submit(source, durability="fast")
        asked = client.wait_for(run_id, "InterviewStarted")["data"]["question_id"]
        until(client, lambda streams: not streams.open_count)
        with unread(client, run_id) as connection:
            until(client, lambda streams: streams.open_count)
            assert client.post(f"/pipelines/{run_id}/questions/{asked}/answer", {"choice": "n0"}).status_code == 200
            assert client.ended(run_id)["outcome"] == "success"
            text = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
        assert text.count("event: gap") == 1
        assert "event: end" not in text
        had = re.findall(r"^id: (.*)\r?$", text, re.MULTILINE)
        whole = logged(root / run_id)
        assert 0 < len(had) < len(whole)
        assert had == whole[: len(had)]
        assert ids(client.events(run_id, had[-1])) == whole[len(had) :]


def test_a_consumer_that_never_reads_is_let_go(serving, root, sources):
    body, chain = chain_of(150)
    with serving(root, send_buffer_bytes=4096, send_seconds=0.5) as client:
        run_id = client.submit(sources.of(f"{body}\nstart -> {chain} -> done"), durability="fast")
        client.ended(run_id)
        until(client, lambda streams: not streams.open_count)
        with unread(client, run_id) as connection:
            assert connection.recv(8) == b"HTTP/1.1"  # it is open; so slow a consumer may be let go at once
            until(client, lambda streams: not streams.open_count)


def chain_of(count):
    """Stages in a row: their declarations, and the chain."""
    return "\n".join(f'n{i} [prompt="{i}"]' for i in range(count)), " -> ".join(f"n{i}" for i in range(count))


def until(client, holds):
    """Wait for something of the server's streams."""
    while not holds(client.server.state.streams):
        client.get("/openapi.json")


@contextlib.contextmanager
def unread(client, run_id):
    """A stream on a connection of which nothing is read."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(60)
        connection.connect(("127.0.0.1", client.port))
        token = client.http.headers["Authorization"]
        head = f"GET /pipelines/{run_id}/events HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nConnection: close\r\n"
        connection.sendall(f"{head}Authorization: {token}\r\n\r\n".encode())
        yield connection


def test_what_is_kept_of_a_long_run_is_bounded(root, sources, monkeypatch):
    monkeypatch.setattr(channel_module, "KEPT_FRAMES", 5)
    Pipeline(sources.plain).run(wait=True, logs_root=root / "a", is_shown=False)

    async def listen():
        streams = Streams(RunService(root, 10), 100)
        stream = await streams.open("a", "")
        most = len(stream._channel._frames)
        return most, b"".join([piece async for piece in stream.frames()])

    most, sent = asyncio.run(listen())
    assert most <= 6
    assert re.findall(rb"^id: (.*)$", sent, re.MULTILINE) == [one.encode() for one in logged(root / "a")]


def test_a_channel_that_cannot_read_its_log_says_so(root, stored):
    log = stored / "events.jsonl"
    log.write_bytes(log.read_bytes().replace(b"StageStarted", b"StageStarteX", 1))

    async def follow():
        followed = RunChannel(stored, None, lambda: False, lambda: "damaged")
        followed.start()
        await followed.is_ready.wait()
        return followed.take(0)[0]

    assert b"event: fault" in asyncio.run(follow())


@pytest.mark.parametrize(
    ("error", "words"),
    [
        pytest.param(Problem(404, "no-such-pipeline", "There is no such pipeline"), b"no-such-pipeline", id="refusal"),
        pytest.param(ZeroDivisionError("of ours"), b'{"detail":"internal server error"}', id="fault of ours"),
    ],
)
def test_a_channel_whose_run_goes_away_says_so_and_ends(stored, caplog, error, words):
    def status():
        raise error

    async def follow():
        followed = RunChannel(stored, None, lambda: False, status)
        followed.start()
        await followed.is_ready.wait()
        return followed.is_closed, followed.take(0)[0]

    is_closed, sent = asyncio.run(follow())
    assert is_closed
    assert re.findall(rb"^id: (.*)$", sent, re.MULTILINE) == [one.encode() for one in logged(stored)]
    last = sent.rpartition(b"event: fault")[2]
    assert words in last
    assert b"of ours" not in last
    assert ("a stream of events ended" in caplog.text) == isinstance(error, ZeroDivisionError)


def test_a_log_that_is_not_there_yet_has_a_stamp_and_another_one_when_it_is(tmp_path):
    reader = EventReader(tmp_path)
    before = reader.stamp
    assert reader.stamp == before
    (tmp_path / "events.jsonl").touch()
    assert reader.stamp != before


@pytest.mark.parametrize("hangs_at", ["an event", "a heartbeat"])
def test_a_consumer_that_takes_nothing_is_disconnected(tmp_path, caplog, hangs_at):
    caplog.set_level("INFO", logger="attractor_nb")
    closed = []

    class Stream:
        async def frames(self):
            if hangs_at == "a heartbeat":
                await asyncio.Event().wait()
            yield b"data: {}\n\n"

        def close(self):
            closed.append(True)

    async def send(message):
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    async def answer():
        settings = ServerSettings(
            root=tmp_path, tokens={"ada": "t" * 43}, hosts=frozenset(), send_seconds=0.01, heartbeat_seconds=0.01
        )
        await EventStreamResponse(Stream(), settings)({}, asyncio.Event().wait, send)

    asyncio.run(asyncio.wait_for(answer(), 60))
    assert closed == [True]
    assert "an event client stopped reading and was disconnected" in caplog.text
