"""Fault 15: a listener of a run may be slow, raise, call back into it, or never return: the run continues."""

import sys
import threading
from itertools import pairwise
from statistics import median

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
    """A run of so many stages, and how many functions its own thread called for each."""
    left, calls, at = [stages], 0, []

    def counted(frame, event, argument):
        nonlocal calls
        calls += event == "call"

    async def work(node, context, graph, logs_root):
        at.append(calls)
        left[0] -= 1
        sys.setprofile(counted if left[0] else None)  # of this thread alone
        return Outcome.success(context_updates={"count": "go on" if left[0] else "stop"})

    pipeline = Pipeline(SOURCE, handlers={"own": work})
    run = pipeline.run(logs_root=root, durability=durability, max_steps=stages + 10, observers=observers)
    assert run.result(100).status == "success"
    assert left == [0]
    return run, [after - before for before, after in pairwise(at)]


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
    "        except Exception:  # an observer's fault",
    instead="        except ZeroDivisionError:  # an observer's fault",
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
        15, "consumers that raise, block and overflow", f"run unaffected; the gap of {dropped.count} events was told"
    )


@pytest.mark.protects(
    STREAM,
    "        except Exception:  # an observer's fault",
    instead="        except ZeroDivisionError:  # an observer's fault",
)
def test_a_consumer_that_cancels_the_run_from_within(tmp_path):
    """Protected by: it is called in a thread of its own, and may call whatever a user may."""
    started, gate = [], threading.Event()

    def cancels(event):
        if type(event).__name__ == "StageStarted" and event.name == "a":
            gate.wait(60)
            started[0].on_event(lambda _: None)
            started[0].cancel()
            raise ValueError("and raises")

    def work(node, context, graph, logs_root):
        return Outcome.success(context_updates={"count": "go on"})

    pipeline = Pipeline(SOURCE, handlers={"own": work})
    started.append(pipeline.run(logs_root=tmp_path / "run", observers=[cancels], durability="fast", max_steps=100_000))
    gate.set()
    assert started[0].result(60).status == "interrupted"
    assert pipeline.resume(tmp_path / "run", stop_after=1).result(60).status == "paused"


STAGES = 200


@pytest.mark.protects(STREAM, "            self._thread.start()", instead="            self.feed.put = function")
@pytest.mark.campaign
def test_a_slow_consumer_costs_the_run_nothing(figures, monkeypatch):
    """Protected by: the function is called in its own thread, and not where the event is announced.

    What a stage costs is counted in calls of functions by the run's own thread, which no busy machine changes.
    """
    monkeypatch.setattr("attractor_nb.engine.event_stream.DRAIN_SECONDS", 0.05)
    release, quick_events, slow_events = threading.Event(), [], []

    def slow(event):
        release.wait(0.002)
        slow_events.append(event)

    # Both have one observer: what is compared is its slowness, not that there is one.
    _, quick_calls = run(None, STAGES, quick_events.append)
    _, slow_calls = run(None, STAGES, slow)
    release.set()
    assert len(quick_events) > 2 * STAGES
    assert slow_events
    assert median(slow_calls) <= median(quick_calls)
    figures.record(
        15,
        f"a consumer that takes 2 ms an event, {3 * STAGES} events and more",
        f"the run's thread called {median(slow_calls):.0f} functions for a stage, with a quick consumer "
        f"{median(quick_calls):.0f} (medians of {STAGES - 1} stages each)",
    )
    assert 3 * STAGES < FEED_CAPACITY
