"""All spending counts: of failed attempts, of refused outcomes, by node and in all (rulings 17, 18)."""

import asyncio
import json
import math

import pytest

from attractor_nb import Outcome, Run, StageStatus, current_stage
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.events import ModelCallEnded, RunWarning, StageEnd
from attractor_nb.model.outcome import Usage
from attractor_nb.testing import ManualClock

SPENT = Usage(input_tokens=10, output_tokens=5, cost_usd=0.25, calls=1)
BUSY = Outcome(StageStatus.RETRY, failure_reason="busy", usage=SPENT)
FINE = Outcome(StageStatus.SUCCESS, usage=SPENT)
BODY = "a [max_retries=2] b start -> a -> b -> done"


def records(root):
    return [event for event in Run.load(root).events() if isinstance(event, StageEnd)]


@pytest.mark.parametrize("has_checkpoint", [True, False], ids=["checkpoint", "log_alone"])
def test_failed_attempts_are_paid_for_too(make, tmp_path, has_checkpoint):
    pipeline = make(BODY, {"a": [BUSY, BUSY, FINE], "b": FINE})
    root = tmp_path / "run"
    stopped = pipeline.run(wait=True, logs_root=root, stop_after=2, clock=ManualClock())
    assert stopped.usage == Usage(30, 15, 0.75, 3)
    if not has_checkpoint:
        for path in root.glob("checkpoint*"):
            path.unlink()
    result = pipeline.resume(root).result(60)
    assert result.usage == Usage(40, 20, 1.0, 4)
    assert result.usage_by_node == {"a": Usage(30, 15, 0.75, 3), "b": SPENT}
    assert result["a"].usage == result.usage_by_node["a"]
    assert (result.view.usage, result.view.usage_by_node) == (result.usage, result.usage_by_node)
    assert Run.load(root)["a"].usage == Usage(30, 15, 0.75, 3)


def test_each_record_says_what_node_and_run_have_consumed_so_far(make, tmp_path):
    make(BODY, {"a": [BUSY, FINE], "b": FINE}).run(wait=True, logs_root=tmp_path / "run", clock=ManualClock())
    told = [(event.name, event.node_usage, event.run_usage) for event in records(tmp_path / "run")]
    twice, thrice = Usage(20, 10, 0.5, 2), Usage(30, 15, 0.75, 3)
    assert told == [
        ("start", None, None),
        ("a", SPENT, SPENT),
        ("a", twice, twice),
        ("b", SPENT, thrice),
        ("done", None, None),
    ]


def test_a_stage_that_consumes_nothing_costs_no_byte_in_the_log(make, tmp_path):
    make("a start -> a -> done").run(wait=True, logs_root=tmp_path / "run")
    assert b"usage" not in (tmp_path / "run" / "events.jsonl").read_bytes()


def ask(model="m", **facts):
    """A model call as a backend announces it."""
    scope = current_stage()
    scope.announce(ModelCallEnded(name=scope.node_id, index=scope.index, model=model, **facts))


def broken(node, prompt, context):
    ask(usage=SPENT)
    ask(usage=Usage(3, calls=1))
    ask(error="no connection")
    raise RuntimeError("lost")


async def slow(node, prompt, context):
    ask(usage=SPENT)
    await asyncio.Event().wait()


def wrote_its_own_status(node, prompt, context):
    ask(usage=SPENT)
    current_stage().files.write_text("status.json", '{"outcome": "fail", "failure_reason": "no"}')
    return "done"


ENDED = {
    "raised": (broken, "", SPENT + Usage(3, calls=1)),
    "timed_out": (slow, "timeout=50ms", SPENT),
    "wrote_its_own_status": (wrote_its_own_status, "", SPENT),
}


@pytest.mark.parametrize(("work", "attrs", "spent"), ENDED.values(), ids=ENDED)
def test_an_attempt_that_ends_without_a_usage_has_spent_what_its_calls_say(make, tmp_path, work, attrs, spent):
    """A call that failed and said nothing of its usage had no answer to be paid for."""
    root = tmp_path / "run"
    result = make(f"a [{attrs}] start -> a -> done", backend=work).run(wait=True, logs_root=root)
    assert result.status == "fail"
    assert result.usage == result.usage_by_node["a"] == Run.load(root)["a"].usage == spent
    told = json.loads((root / "a" / "status.json").read_text()).get("usage")
    assert told == (None if work is wrote_its_own_status else spent.to_plain())


def test_a_usage_that_a_backend_returns_goes_before_the_sum_of_its_calls(make):
    def answer(node, prompt, context):
        ask(usage=SPENT)
        return Response("done", usage=SPENT + SPENT)

    assert make("a start -> a -> done", backend=answer).run(wait=True, durability="none").usage == SPENT + SPENT


def test_a_budget_counts_calls_whose_attempt_failed(make):
    result = make("a [max_retries=9] start -> a -> done", backend=broken).run(
        wait=True, durability="none", clock=ManualClock(), max_budget_usd=0.5
    )
    assert (result.bound, result.usage.calls) == ("max_budget_usd", 4)


REFUSED = {
    "a_value_that_the_context_refuses": lambda files: Outcome(
        StageStatus.SUCCESS, context_updates={"bad": {1}}, usage=SPENT
    ),
    "a_field_of_a_wrong_type": lambda files: Outcome(StageStatus.SUCCESS, notes=5, usage=SPENT),
    "a_status_file_that_breaks_its_contract": lambda files: files.write_text("status.json", "{}") or FINE,
    "a_status_file_that_plays_it_down": lambda files: (
        files.write_text("status.json", '{"outcome": "success", "usage": {"input_tokens": 1}}') or FINE
    ),
}


@pytest.mark.parametrize("answer", REFUSED.values(), ids=REFUSED)
def test_what_a_refused_outcome_cost_is_counted(make, answer):
    pipeline = make("a start -> a -> done", backend=lambda node, prompt, context: answer(current_stage().files))
    assert pipeline.run(wait=True, durability="none").usage == SPENT


NONSENSE = {
    "nan": Usage(cost_usd=math.nan),
    "negative": Usage(cost_usd=-1.0),
    "endless": Usage(cost_usd=math.inf),
    "absurd": Usage(cost_usd=1e308),
    "true": Usage(cost_usd=True),
    "tokens_as_text": Usage(input_tokens="12"),
    "negative_tokens": Usage(output_tokens=-3),
    "unpriced_as_text": Usage(1, cost_usd=0.5, unpriced="1"),
    "half_a_token": Usage(input_tokens=0.5),
    "beyond_counting": Usage(input_tokens=2**60),
    "no_usage": {"cost_usd": 1.0},
}


@pytest.mark.parametrize("writes_status", [False, True], ids=["outcome", "beside_a_status_file"])
@pytest.mark.parametrize("usage", NONSENSE.values(), ids=NONSENSE)
def test_a_usage_that_no_bound_could_count_fails_its_stage(make, tmp_path, usage, writes_status):
    def work(node, prompt, context):
        if writes_status:
            current_stage().files.write_text("status.json", json.dumps({"outcome": "success"}))
        return Response("done", usage=usage)

    pipeline = make("a start -> a -> done", backend=work)
    result = pipeline.run(wait=True, logs_root=tmp_path / "run", max_budget_usd=5)
    assert result.status == "fail"
    assert "has a usage that cannot be counted" in result.reason
    assert result.usage == Usage()
    assert (tmp_path / "run" / "a" / "status.rejected.json").exists() is writes_status


@pytest.mark.parametrize(
    ("bound", "usage", "warned"),
    [
        ({"max_budget_usd": 5}, None, "max_budget_usd=5 counts known prices only"),
        ({"max_budget_usd": 5}, Usage(10, 5), "max_budget_usd=5 counts known prices only"),
        ({"max_tokens_total": 9999}, None, "max_tokens_total=9999 counts known tokens only"),
        ({"max_budget_usd": 5}, SPENT + Usage(calls=1), "max_budget_usd=5 counts known prices only"),
        ({"max_budget_usd": 5}, SPENT, ""),
        ({"max_tokens_total": 9999}, Usage(10, 5), ""),
        ({}, None, ""),
    ],
)
def test_a_bound_that_cannot_see_what_is_spent_says_so_once(make, tmp_path, bound, usage, warned):
    outcome = Outcome(StageStatus.SUCCESS, usage=usage)
    make("a b start -> a -> b -> done", {"a": outcome, "b": outcome}).run(
        wait=True, logs_root=tmp_path / "run", **bound
    )
    told = [event.message for event in Run.load(tmp_path / "run").events() if isinstance(event, RunWarning)]
    assert told == ([f"{warned}, and a did not report its own"] if warned else [])


@pytest.mark.parametrize(
    ("usage", "declared", "cost"),
    [(None, 0.5, 1.0), (Usage(10, 5), 0.5, 1.0), (SPENT, 9.0, 0.5), (None, 0, 0)],
    ids=["alone", "beside_tokens", "after_the_usages_own", "free"],
)
def test_task_verification_5_a_cost_among_the_context_updates_is_accumulated(make, usage, declared, cost):
    outcome = Outcome(StageStatus.SUCCESS, context_updates={"cost_usd": declared}, usage=usage)
    result = make("a b start -> a -> b -> done", {"a": outcome, "b": outcome}).run(wait=True, durability="none")
    assert (result.status, result.usage.cost_usd) == ("success", cost)


@pytest.mark.parametrize("declared", [-1, "0.5", True, 1e308])
def test_a_cost_among_the_context_updates_that_cannot_be_counted_fails_the_stage(make, declared):
    outcome = Outcome.success(context_updates={"cost_usd": declared})
    result = make("a start -> a -> done", {"a": outcome}).run(wait=True, durability="none")
    assert result.status == "fail"
    assert "declares a cost that cannot be counted" in result.reason
