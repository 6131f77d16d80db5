"""Events: their order, their numbers, and consumers that do not disturb the run (spec 9.6)."""

import asyncio
import logging
import threading

import pytest

from attractor_nb import Outcome, Pipeline
from attractor_nb.engine.event_stream import EventStream
from attractor_nb.model.events import EventsDropped, PipelineStarted, RunWarning
from attractor_nb.storage.memory_store import MemoryRunStore
from attractor_nb.testing import ManualClock


def names_of(events):
    return [type(event).__name__ for event in events]


def run_and_listen(pipeline, **options):
    seen = []
    pipeline.on_event(seen.append)
    result = pipeline.run(wait=True, **options)
    return result, seen


def test_events_come_in_the_order_of_the_run(make, seams):
    _, seen = run_and_listen(make("a start -> a -> done"), **seams(), durability="fast")
    assert names_of(seen) == [
        "PipelineStarted",
        *("StageStarted", "StageCompleted", "CheckpointSaved"),
        *("StageStarted", "StageOutput", "StageCompleted", "CheckpointSaved"),
        *("StageStarted", "StageCompleted", "CheckpointSaved"),
        "PipelineCompleted",
    ]


def test_a_retry_is_told_as_failure_retrying_and_start(make, seams):
    pipeline = make("a [max_retries=1] start -> a -> done", {"a": [Outcome.retry("busy"), "fine"]})
    _, seen = run_and_listen(pipeline, **seams(), durability="none")
    of_a = [type(event).__name__ for event in seen if getattr(event, "name", "") == "a"]
    assert of_a == ["StageStarted", "StageFailed", "StageRetrying", "StageStarted", "StageOutput", "StageCompleted"]


def test_a_failed_run_ends_with_its_reason(make, seams):
    _, seen = run_and_listen(make("a start -> a -> done", {"a": Outcome.fail("broken")}), durability="none")
    assert (type(seen[-1]).__name__, seen[-1].error) == ("PipelineFailed", "broken")


def test_durable_events_are_numbered_without_a_gap_and_are_all_in_the_log(make, seams):
    result, seen = run_and_listen(make("a b start -> a -> b -> done"), **seams(), durability="fast")
    durable = [event for event in seen if event.is_durable]
    assert [event.sequence for event in durable] == list(range(1, len(durable) + 1))
    assert {event.run_id for event in seen} == {result.run_id}
    logged = (result.logs_root / "events.jsonl").read_text().splitlines()
    assert len(logged) == len(durable)


def test_transient_events_carry_the_number_of_the_durable_one_before_them(make, seams):
    _, seen = run_and_listen(make("a start -> a -> done"), **seams(), durability="fast")
    saved = [event for event in seen if type(event).__name__ == "CheckpointSaved"]
    commits = [event.sequence for event in seen if type(event).__name__ == "StageCompleted"]
    assert [event.sequence for event in saved] == commits


def test_a_raising_observer_is_logged_and_disturbs_nobody(make, caplog):
    def bad(event):
        raise RuntimeError("observer's own fault")

    pipeline = make("a start -> a -> done")
    pipeline.on_event(bad)
    with caplog.at_level(logging.ERROR):
        result, seen = run_and_listen(pipeline, durability="none")
    assert result.status == "success"
    assert names_of(seen)[-1] == "PipelineCompleted"
    assert "an event observer raised on PipelineStarted" in caplog.text


def test_a_slow_observer_does_not_hold_up_the_stages(make):
    released, stages = threading.Event(), []

    def slow(event):
        released.wait(60)

    def stage(prompt):
        stages.append(prompt)
        if len(stages) == 3:
            released.set()
        return "done"

    pipeline = make("a b c start -> a -> b -> c -> done", backend=stage)
    pipeline.on_event(slow)
    assert pipeline.run(wait=True, durability="none").status == "success"
    assert len(stages) == 3


def test_an_observer_may_use_the_run_that_it_observes(make):
    seen = []

    def reenter(event):
        run = holder[0]
        seen.append((run.status, str(run), len(run.gates), run["a"].visits))

    holder = []
    go = threading.Event()
    pipeline = make("a start -> a -> done", backend=lambda prompt: str(go.wait(60)))
    run = pipeline.run(durability="fast")
    holder.append(run)
    run.on_event(reenter)
    go.set()
    assert run.result(30).status == "success"
    assert seen


def test_an_observer_may_answer_the_gate_that_it_hears_of(make):
    def answer(event):
        if type(event).__name__ == "InterviewStarted":
            holder[0].answer(event.stage, "Y")

    holder = []
    begin = threading.Event()
    pipeline = make(
        'a g [shape=hexagon] start -> a -> g g -> done [label="[Y] Yes"]',
        backend=lambda prompt: str(begin.wait(60)),
        interviewer="deferred",
    )
    run = pipeline.run(durability="none")
    holder.append(run)
    run.on_event(answer)
    begin.set()
    assert run.result(30).status == "success"


def test_an_observer_can_be_taken_away(make):
    seen, go = [], threading.Event()
    pipeline = make("a start -> a -> done", backend=lambda prompt: str(go.wait(60)))
    run = pipeline.run(durability="none")
    stop = run.on_event(seen.append)
    stop()
    go.set()
    run.result(30)
    assert "PipelineCompleted" not in names_of(seen)


def test_a_feed_has_the_whole_log_and_ends_with_the_run(make):
    go = threading.Event()
    run = make("a start -> a -> done", backend=lambda prompt: str(go.wait(60))).run(durability="fast")
    feed = run.events()
    go.set()
    names = names_of(feed)
    assert (names[0], names[-1]) == ("PipelineStarted", "PipelineCompleted")
    assert names_of(run.events()) == [name for name in names if name != "CheckpointSaved"]


async def _listen(run):
    return [type(event).__name__ async for event in run.events()]


def test_a_feed_is_read_in_a_coroutine_too(make):
    async def main():
        run = make("a start -> a -> done").run(durability="fast", host="kernel")
        names, result = await asyncio.gather(_listen(run), run)
        return names, result.status

    names, status = asyncio.run(main())
    assert (names[0], names[-1], status) == ("PipelineStarted", "PipelineCompleted", "success")


@pytest.fixture
def stream():
    return EventStream(MemoryRunStore(clock=ManualClock()), ManualClock(), "aaaaaaaa")


def test_what_a_full_feed_misses_is_said(stream):
    feed = stream.open_feed(capacity=2)
    for number in range(5):
        stream.announce(RunWarning(message=str(number)))
    stream.close()
    *kept, last = feed
    assert [event.message for event in kept] == ["0", "1"]
    assert isinstance(last, EventsDropped)
    assert last.count == 3


def test_a_feed_that_is_opened_after_the_end_ends_at_once(stream):
    stream.close()
    assert list(stream.open_feed()) == []


def test_an_observer_that_comes_after_the_end_leaves_no_thread(stream):
    stream.close()
    stream.observe(lambda event: None)
    assert not [thread for thread in threading.enumerate() if thread.name == "attractor-observer" and _lives(thread)]


def _lives(thread):
    thread.join(60)
    return thread.is_alive()


def test_a_move_to_another_directory_begins_the_numbers_again(stream):
    seen = []
    stream.add_sink(lambda event: seen.append((event.sequence, event.run_id)))
    stream.announce(PipelineStarted(name="one", id="aaaaaaaa"))
    stream.move_to(MemoryRunStore(clock=ManualClock()), "bbbbbbbb")
    stream.announce(PipelineStarted(name="two", id="bbbbbbbb"))
    assert seen == [(1, "aaaaaaaa"), (1, "bbbbbbbb")]


def test_runs_that_end_do_not_wait_for_another_runs_slow_observer(monkeypatch):
    """Observers are waited for beside the loop: other runs on the same host go on meanwhile."""
    monkeypatch.setattr("attractor_nb.engine.event_stream.DRAIN_SECONDS", 600)
    slow = threading.Event()
    source = "digraph g { start [shape=Mdiamond] done [shape=Msquare] start -> done }"
    held = Pipeline(source)
    held.on_event(lambda event: slow.wait(600))
    first = held.run(durability="none")
    try:
        assert Pipeline(source).run(durability="none").result(60).status == "success"
        assert not first.is_done
    finally:
        slow.set()
        first.result(60)
