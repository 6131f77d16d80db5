"""Feeds and observers end with their run, and a slow one holds up no other run."""

import threading

from attractor_nb.engine.event_stream import EventStream
from attractor_nb.engine.time_limits import SystemClock
from attractor_nb.model.events import RunWarning
from attractor_nb.model.outcome import Outcome
from attractor_nb.pipeline.pipeline import Pipeline
from attractor_nb.storage.memory_store import MemoryRunStore

LIMIT_SECONDS = 60
SOURCE = """digraph g {
    start [shape=Mdiamond] work [type=custom] done [shape=Msquare]
    start -> work -> done
}"""


def closed_stream():
    stream = EventStream(MemoryRunStore(clock=SystemClock()), SystemClock(), "r")
    stream.close()
    return stream


def test_a_feed_that_is_opened_after_the_end_ends():
    assert list(closed_stream().open_feed()) == []


def test_an_observer_that_comes_after_the_end_leaves_no_thread_waiting():
    before = set(threading.enumerate())
    closed_stream().observe(lambda event: None)
    for thread in set(threading.enumerate()) - before:
        thread.join(LIMIT_SECONDS)
        assert not thread.is_alive()


def test_events_that_happen_while_the_log_is_read_come_after_it_and_once():
    class SlowStore(MemoryRunStore):
        """Another thread announces an event while this one reads."""

        def __init__(self):
            super().__init__(clock=SystemClock())
            self.kept = []

        def append(self, event, *, is_synced):
            self.kept.append(event)
            self.sequence = event.sequence

        def read_events(self):
            other = threading.Thread(target=stream.announce, args=[RunWarning(message="two")])
            other.start()
            other.join(LIMIT_SECONDS)
            assert not other.is_alive(), "reading the log holds the run up"
            return tuple(self.kept)

    stream = EventStream(SlowStore(), SystemClock(), "r")
    stream.announce(RunWarning(message="one"))
    feed = stream.open_feed()
    stream.close()
    assert [event.message for event in feed] == ["one", "two"]


def test_a_slow_observer_of_one_run_does_not_hold_up_another(tmp_path, monkeypatch):
    monkeypatch.setattr("attractor_nb.engine.event_stream.DRAIN_SECONDS", 10 * LIMIT_SECONDS)
    blocked, released = threading.Event(), threading.Event()

    def slow(event):
        blocked.set()
        released.wait(10 * LIMIT_SECONDS)

    pipeline = Pipeline(SOURCE, handlers={"custom": lambda *_: Outcome.success()})
    ended = threading.Event()
    first = pipeline.run(
        logs_root=tmp_path / "first", observers=[slow, lambda event: event.type == "PipelineCompleted" and ended.set()]
    )
    assert blocked.wait(LIMIT_SECONDS)
    assert ended.wait(LIMIT_SECONDS)
    try:
        assert pipeline.run(logs_root=tmp_path / "second").result(LIMIT_SECONDS).status == "success"
        assert not first.is_done, "it waits for its observer"
    finally:
        released.set()
    assert first.result(LIMIT_SECONDS).status == "success"
