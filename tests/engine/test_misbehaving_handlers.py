"""Handlers that return malformed results, exit the program or swallow a cancellation."""

import asyncio
import threading
from types import SimpleNamespace

import pytest

from attractor_nb.engine.attempts import keep_changes
from attractor_nb.engine.handler_calls import contained
from attractor_nb.model.events import StageStarted
from attractor_nb.model.outcome import Outcome, StageStatus, Usage
from attractor_nb.pipeline.pipeline import Pipeline

LIMIT_SECONDS = 60
SOURCE = """digraph g {
    start [shape=Mdiamond] work [type=custom] done [shape=Msquare]
    start -> work -> done
}"""
WITH_TIMEOUT = SOURCE.replace("type=custom", 'type=custom, timeout="9s"')


def run_with(handler, tmp_path, source=SOURCE):
    run = Pipeline(source, handlers={"custom": handler}).run(logs_root=tmp_path / "run")
    return run.result(LIMIT_SECONDS)


GARBAGE = {
    "status-of-another-type": (Outcome(5), "status 5"),
    "unknown-status": (Outcome("perhaps"), "status 'perhaps'"),
    "label": (Outcome(StageStatus.SUCCESS, preferred_label=5), "preferred_label"),
    "ids-text": (Outcome(StageStatus.SUCCESS, suggested_next_ids="done"), "suggested_next_ids"),
    "ids-of-objects": (Outcome(StageStatus.SUCCESS, suggested_next_ids=([],)), "suggested_next_ids"),
    "updates": (Outcome(StageStatus.SUCCESS, context_updates=[1]), "context_updates"),
    "update-key": (Outcome(StageStatus.SUCCESS, context_updates={1: 2}), "context keys"),
    "notes": (Outcome(StageStatus.SUCCESS, notes=object()), "notes"),
    "reason": (Outcome(StageStatus.FAIL, failure_reason=object()), "failure_reason"),
    "usage-dict": (Outcome(StageStatus.SUCCESS, usage={"calls": 1}), "usage"),
    "usage-nan": (Outcome(StageStatus.SUCCESS, usage=Usage(cost_usd=float("nan"))), "usage"),
    "usage-text": (Outcome(StageStatus.SUCCESS, usage=Usage(input_tokens="5")), "usage"),
    "usage-negative": (Outcome(StageStatus.SUCCESS, usage=Usage(calls=-1)), "usage"),
}


@pytest.mark.parametrize(("outcome", "named"), GARBAGE.values(), ids=GARBAGE.keys())
def test_an_outcome_with_a_field_of_another_type_fails_its_stage_by_name(outcome, named, tmp_path):
    result = run_with(lambda *_: outcome, tmp_path)
    assert result.status == "fail"
    assert named in result.reason


def test_an_outcome_may_say_its_status_by_word_and_leave_fields_none(tmp_path):
    given = Outcome("success", None, None, None, None, None)
    assert run_with(lambda *_: given, tmp_path).status == "success"


EXITS = {"ctrl-c": KeyboardInterrupt, "exit": SystemExit, "cancelled": asyncio.CancelledError}


@pytest.mark.parametrize("source", [SOURCE, WITH_TIMEOUT], ids=["plain", "timeout"])
@pytest.mark.parametrize("is_async", [False, True], ids=["function", "coroutine"])
@pytest.mark.parametrize("kind", EXITS.values(), ids=EXITS.keys())
def test_a_handler_that_leaves_the_program_fails_its_stage_and_no_other_run(kind, is_async, source, tmp_path):
    def function(*_):
        raise kind

    async def coroutine(*_):
        raise kind

    result = run_with(coroutine if is_async else function, tmp_path, source)
    assert result.status == "fail"
    assert kind.__name__ in result.reason
    assert run_with(lambda *_: Outcome.success(), tmp_path / "next").status == "success"


@pytest.mark.parametrize("source", [SOURCE, WITH_TIMEOUT], ids=["plain", "timeout"])
@pytest.mark.parametrize("ending", ["return", "raise"])
def test_a_handler_that_keeps_its_cancellation_to_itself_is_stopped_all_the_same(ending, source, tmp_path):
    reached = threading.Event()

    async def stubborn(*_):
        reached.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            if ending == "raise":
                raise RuntimeError("cleaning up failed") from None
        return Outcome.success()

    run = Pipeline(source, handlers={"custom": stubborn}).run(logs_root=tmp_path / "run")
    assert reached.wait(LIMIT_SECONDS)
    run.cancel()
    result = run.result(LIMIT_SECONDS)
    assert result.status == "interrupted"
    assert result.completed_nodes == ("start",)


def test_a_plain_handler_that_never_returns_does_not_hold_up_a_cancellation(tmp_path):
    reached, released, returned = threading.Event(), threading.Event(), threading.Event()

    def deaf(*_):
        reached.set()
        released.wait(10 * LIMIT_SECONDS)
        returned.set()
        return Outcome.success()

    run = Pipeline(SOURCE, handlers={"custom": deaf}).run(logs_root=tmp_path / "run")
    assert reached.wait(LIMIT_SECONDS)
    run.cancel()
    try:
        assert run.result(LIMIT_SECONDS).status == "interrupted"
        assert not returned.is_set()
    finally:
        released.set()


def test_ctrl_c_in_the_thread_of_a_loop_is_nobodys_handler():
    async def pressed():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(contained(pressed()))


def test_changes_of_a_stage_that_is_cancelled_are_kept_whole_before_it_ends():
    begun, free = threading.Event(), threading.Event()

    def keep(message):
        begun.set()
        assert free.wait(LIMIT_SECONDS)
        kept.append(message)

    async def main():
        keeping = asyncio.ensure_future(
            keep_changes(
                SimpleNamespace(keep=keep),
                effect,
                SimpleNamespace(run_id="r", branch=""),
                None,
                Outcome.success(),
                lambda event: None,
            )
        )
        await asyncio.to_thread(begun.wait, LIMIT_SECONDS)
        keeping.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not keeping.done()
        free.set()
        with pytest.raises(asyncio.CancelledError):
            await keeping
        assert len(kept) == 1

    kept = []
    effect = SimpleNamespace(
        planned=SimpleNamespace(handler_type="codergen"), started=StageStarted(name="work", visit=1)
    )
    asyncio.run(main())
