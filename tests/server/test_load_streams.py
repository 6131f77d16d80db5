"""Streams are cheap, and send the same bytes all the same: counted, never timed."""

import asyncio
import re

import pytest

from attractor_nb.engine.event_stream import EventFeed
from attractor_nb.model.events import EventsDropped, PipelineRestarted, StageStarted
from attractor_nb.server import event_channel as channel_module
from attractor_nb.server.event_channel import EventReader, RunChannel
from attractor_nb.storage.log.event_lines import encode_event
from attractor_nb.storage.log.event_log import EVENT_LOG_NAME, read_log

IDS = re.compile(rb"^id: (.*)$", re.MULTILINE)


def made(sequence, event=None):
    event = event or StageStarted(name=f"n{sequence}", index=sequence)
    event.sequence, event.time = sequence, 1000.0 + sequence
    return event


def log(place, events):
    place.mkdir(exist_ok=True)
    with (place / EVENT_LOG_NAME).open("ab") as file:
        file.writelines(encode_event(event) for event in events)


def ids(recorded):
    return [one.id for one in recorded]


# -- the feed --------------------------------------------------------------------------------------


def test_a_feed_gives_what_is_there_in_one_piece_and_says_what_it_missed():
    async def listen():
        feed = EventFeed(capacity=5)
        for number in range(1, 9):
            feed.put(made(number))
        feed.close()
        return [events async for events in feed.batches(4)]

    found = asyncio.run(listen())
    assert [len(events) for events in found] == [4, 2]
    assert [event.sequence for event in found[0]] == [1, 2, 3, 4]
    assert isinstance(found[1][1], EventsDropped)
    assert found[1][1].count == 3


def test_a_feed_that_is_waited_for_wakes_for_the_next_event():
    async def listen():
        feed = EventFeed()
        batches = feed.batches(10)
        waiting = asyncio.ensure_future(anext(batches))
        await asyncio.sleep(0)
        assert not waiting.done()
        await asyncio.to_thread(feed.put, made(1))
        return await waiting

    assert [event.sequence for event in asyncio.run(listen())] == [1]


# -- the trail -------------------------------------------------------------------------------------


def test_what_an_owner_told_is_not_read_again(tmp_path):
    log(tmp_path, [made(1), made(2)])
    trail = EventReader(tmp_path)
    assert ids(trail.read()) == ["0.1", "0.2"]
    assert trail.take(made(4)) is None  # something is between
    assert trail.take(made(2)) is None  # that was had
    assert trail.take(made(3)).id == "0.3"
    log(tmp_path, [made(3), made(4), made(5)])
    assert ids(trail.read()) == ["0.4", "0.5"]
    assert trail.read() == []


def test_what_an_owner_told_leads_into_a_restart_and_the_log_goes_on_there(tmp_path):
    restart = tmp_path / "restart-1"
    gone = made(2, PipelineRestarted(target="plan", restarts=1, logs_root=str(restart)))
    log(tmp_path, [made(1)])
    trail = EventReader(tmp_path)
    assert ids(trail.read()) == ["0.1"]
    assert trail.take(gone).id == "0.2"
    assert trail.take(made(1)).id == "1.1"
    log(tmp_path, [gone])
    log(restart, [made(1), made(2)])
    assert ids(trail.read()) == ["1.2"]
    assert ids(EventReader(tmp_path).read()) == ["0.1", "0.2", "1.1", "1.2"]


def test_a_directory_before_the_latest_that_grows_is_gone_back_to_after_a_restart_that_was_told(tmp_path):
    """A rewind takes the run back."""
    restart = tmp_path / "restart-1"
    gone = made(2, PipelineRestarted(target="plan", restarts=1, logs_root=str(restart)))
    log(tmp_path, [made(1), gone])
    log(restart, [made(1)])
    trail = EventReader(tmp_path)
    assert ids(trail.read()) == ["0.1", "0.2", "1.1"]
    assert trail.take(made(2)).id == "1.2"
    log(restart, [made(2)])
    assert trail.read() == []
    log(tmp_path, [made(3)])
    assert ids(trail.read()) == ["0.3"]


# -- the channel -----------------------------------------------------------------------------------


class Live:
    """A run whose engine writes its log and tells of it; its feed has little room."""

    is_done = True  # it is asked when the feed has ended

    def __init__(self, place, capacity):
        self.place, self.capacity, self.count = place, capacity, 0
        self.feed = None

    def events(self):
        self.feed = EventFeed(self.capacity)
        self.feed.put_before(read_log(self.place).events)
        return self.feed

    def announce(self, number):
        for _ in range(number):
            self.count += 1
            event = made(self.count)
            log(self.place, [event])
            if self.feed is not None:
                self.feed.put(event)


@pytest.mark.parametrize("capacity", [3, 1000])
def test_a_channel_misses_nothing_where_its_feed_does(tmp_path, monkeypatch, capacity):
    monkeypatch.setattr(channel_module, "GATHER_SECONDS", 0)
    live = Live(tmp_path, capacity)
    live.announce(4)

    async def follow():
        channel = RunChannel(tmp_path, live, lambda: True, lambda: "completed")
        channel.start()
        await channel.is_ready.wait()
        for number in (1, 1, 40, 2, 1, 30, 1):
            live.announce(number)  # too much for the feed at once, now and then
            while channel._ordinal < live.count:
                await channel.wait(channel.end)
        live.feed.close()
        while not channel.is_closed:
            await channel.wait(channel.end)
        return channel.take(0)[0]

    sent = asyncio.run(follow())
    assert IDS.findall(sent) == [f"0.{number}".encode() for number in range(1, live.count + 1)]
    assert sent.endswith(b'event: end\ndata: {"status":"completed"}\n\n')


def test_the_log_of_a_run_that_works_here_is_not_read_for_each_event(client, root, sources, monkeypatch):
    reads = []
    read = EventReader.read
    monkeypatch.setattr(EventReader, "read", lambda trail: reads.append(trail) or read(trail))
    stages = "\n".join(f'n{i} [prompt="{i}"]' for i in range(40))
    chain = " -> ".join(f"n{i}" for i in range(40))
    gate = 'gate [shape=hexagon, label="Go?"]\n start -> gate -> '
    run_id = client.submit(sources.of(f"{stages}\n{gate}{chain} -> done"))
    with client.stream(run_id) as found:
        seen = []
        for message in found:
            seen.append(message["id"])
            if message["data"].get("type") == "InterviewStarted":
                client.post(f"/pipelines/{run_id}/questions/gate/answer", {"choice": "n0"})
    whole = [f"0.{event.sequence}" for event in read_log(root / run_id).events]
    assert [event_id for event_id in seen if event_id] == whole
    assert len(whole) > 80
    assert len(reads) < 10


def test_a_burst_wakes_consumers_before_what_they_have_not_had_is_let_go(root, monkeypatch):
    """A consumer that keeps up is sent all of it, however much is read at once."""
    monkeypatch.setattr(channel_module, "KEPT_FRAMES", 8)
    live = Live(root, 1000)

    async def follow():
        channel = RunChannel(root, live, lambda: True, lambda: "completed")
        channel.start()
        await channel.is_ready.wait()
        live.announce(200)
        live.feed.close()
        position, pieces = 0, []
        while True:
            assert position >= channel.first, "it was cut off"
            piece, position = channel.take(position)
            pieces.append(piece)
            if not piece:
                if channel.is_closed:
                    return b"".join(pieces)
                await channel.wait(position)

    assert len(IDS.findall(asyncio.run(follow()))) == 200
