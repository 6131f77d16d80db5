"""Fault 15: whoever listens to a run may be slow, raise, call back into it, or never return: the run goes on."""

import gc
import threading
import time

import pytest

from attractor_nb import Outcome, Pipeline
from attractor_nb.engine.event_stream import FEED_CAPACITY, EventFeed
from attractor_nb.errors import AttractorError

STREAM = "attractor_nb/engine/event_stream.py"
SOURCE = """digraph g {
    start [shape=Mdiamond] a [type=own] done [shape=Msquare]
    start -> a a -> a [condition="context.count!=stop"] a -> done [condition="context.count=stop"]
}"""


def run(root, stages, *observers, durability="none"):
    """A run of so many stages, and how long its stages took."""
    left, seconds = [stages], []

    async def work(node, context, graph, logs_root):
        seconds.append(time.monotonic())
        left[0] -= 1
        return Outcome.success(context_updates={"count": "go on" if left[0] else "stop"})

    pipeline = Pipeline(SOURCE, handlers={"own": work})
    run = pipeline.run(logs_root=root, durability=durability, max_steps=stages + 10, observers=observers)
    assert run.result(100).status == "success"
    assert left == [0]
    return run, seconds[-1] - seconds[0]


class Hostile:
    """Observers, and what lets those go that would never return."""

    def __init__(self):
        self.release, self.run, self.refused = threading.Event(), None, 0

    def raises(self, event):
        raise ValueError(event.type)

    def never_returns(self, event):
        self.release.wait(100)

    def calls_back(self, event):
        if self.run is None:
            return
        try:
            self.run.on_event(self.never_returns)()
            self.run.answer("a", "Y")
        except AttractorError:
            self.refused += 1


@pytest.mark.protects(
    STREAM,
    "            except Exception:  # an observer's fault",
    instead="            except ZeroDivisionError:  # an observer's fault",
)
@pytest.mark.protects(
    STREAM,
    "                self._dropped += 1\n                return",
    instead="                self._condition.wait()",
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_consumers_that_raise_call_back_or_never_return(tmp_path, figures, monkeypatch):
    """Protected by: an observer has a thread and a buffer of its own; what it raises is logged, what does not fit
    is counted.
    """
    monkeypatch.setattr("attractor_nb.engine.event_stream.DRAIN_SECONDS", 0.2)
    hostile, heard, after = Hostile(), [], []

    def raises_once(event):
        after.append(event)
        if len(after) == 1:
            raise ValueError(event.type)

    small = EventFeed(10)
    ended, _ = run(
        tmp_path / "run",
        100,
        hostile.raises,
        hostile.never_returns,
        raises_once,
        heard.append,
        small.put,
        durability="fast",
    )
    small.close()
    assert len(heard) > 200
    assert len(after) == len(heard)
    told = list(small)
    dropped = told[-1]
    assert (type(dropped).__name__, len(told)) == ("EventsDropped", 11)
    assert dropped.count + 10 >= len(heard)
    hostile.release.set()
    hostile.run = ended
    hostile.calls_back(heard[0])
    assert hostile.refused
    figures.record(
        15,
        "consumers that raise, block and overflow",
        f"run unaffected; the gap of {dropped.count} events was told",
    )


@pytest.mark.protects(
    STREAM,
    "            except Exception:  # an observer's fault",
    instead="            except ZeroDivisionError:  # an observer's fault",
)
def test_a_consumer_that_cancels_the_run_from_within(tmp_path):
    """Protected by: it is called in a thread of its own, and may call whatever a user may."""
    started, gate = [], threading.Event()

    def cancels(event):
        if type(event).__name__ == "StageStarted" and event.name == "a":
            gate.wait(20)
            started[0].on_event(lambda _: None)
            started[0].cancel()
            raise ValueError("and raises")

    def work(node, context, graph, logs_root):
        return Outcome.success(context_updates={"count": "go on"})

    pipeline = Pipeline(SOURCE, handlers={"own": work})
    started.append(
        pipeline.run(logs_root=tmp_path / "run", observers=[cancels], durability="fast", max_steps=100_000)
    )
    gate.set()
    assert started[0].result(60).status == "interrupted"
    assert pipeline.resume(tmp_path / "run", stop_after=1).result(60).status == "paused"


@pytest.mark.protects(STREAM, "        self.thread.start()", instead="        self.feed.put = function")
def test_a_slow_consumer_costs_the_run_nothing(campaign, figures, monkeypatch):
    """Protected by: the function is called in its own thread, and not where the event is announced."""
    monkeypatch.setattr("attractor_nb.engine.event_stream.DRAIN_SECONDS", 0.05)
    stages, pairs = 500, campaign.count(sample=9, full=25)
    release = threading.Event()
    times, events = {0: [], 1: []}, []
    gc.disable()
    try:
        for number in range(pairs):
            for kind in ((0, 1), (1, 0))[number % 2]:
                # Both have one observer: what is compared is its slowness, not that there is one.
                observer = (lambda event: release.wait(0.002)) if kind else (lambda event: events.append(1))
                times[kind].append(run(None, stages, observer)[1])
    finally:
        gc.enable()
        release.set()
    ratio = min(times[1]) / min(times[0])  # the least disturbed of each: the machine has other work
    assert len(events) > 2 * stages * pairs
    assert ratio < 1.5
    figures.record(
        15,
        f"a consumer that takes 2 ms an event, {3 * stages} events and more",
        f"stages took {100 * (ratio - 1):+.1f} % against those with a quick one ({pairs} pairs, interleaved)",
    )
    assert 3 * stages < FEED_CAPACITY
