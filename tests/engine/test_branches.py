"""Fan-outs as runs: isolation, directories, policies, nesting, loops, retries, gates, and what a stop leaves (ruling 22)."""

import asyncio
import json
import re
import threading

import pytest

from attractor_nb import Pipeline
from attractor_nb.model.events import (
    InterviewStarted,
    ParallelBranchCompleted,
    ParallelBranchStarted,
    ParallelCompleted,
    ParallelStarted,
    StageCompleted,
    StageStarted,
)
from attractor_nb.model.outcome import Outcome, StageStatus, Usage

FAN = """digraph demo {{ start [shape=Mdiamond] done [shape=Msquare]
  fan [shape=component{attrs}] join [type="note"]
  node [type="work"]
  start -> fan {body}
  join -> done }}"""
KNOWN = {"start", "done", "fan", "join"}
THREE = "fan -> a fan -> b fan -> c a -> join b -> join c -> join"


def written(body, attrs=""):
    """The pipeline's text; nodes that only edges name are declared."""
    named = {name for pair in re.findall(r"(\w+) ->(?= (\w+))", body) for name in pair}
    own = " ".join(sorted(name for name in named - KNOWN if not re.search(rf"\b{name} \[", body)))
    return FAN.format(attrs=f", {attrs}" if attrs else "", body=f"{own} {body}")


def worker(replies=None, seen=None):
    """A handler that answers by node: an outcome, a list of them, or a function of the context."""
    left = {name: list(given) if isinstance(given, list) else given for name, given in (replies or {}).items()}

    async def work(node, context, graph, logs_root):
        if seen is not None:
            seen.append(node.id)
        given = left.get(node.id, Outcome.success(f"{node.id} is done"))
        if isinstance(given, list):
            given = given.pop(0)
        if callable(given):
            given = given(context)
            if asyncio.iscoroutine(given):
                given = await given
        return given

    return work


@pytest.fixture
def run(tmp_path):
    """Run the statements of a fan-out; returns the result, and its events by kind."""

    def start(body=THREE, replies=None, *, attrs="", seen=None, **options):
        events = []
        pipeline = Pipeline(
            written(body, attrs), handlers={"work": worker(replies, seen), "note": worker()}, runs_dir=tmp_path
        )
        pipeline.on_event(events.append)
        result = pipeline.run(wait=True, **{"durability": "none", **options})
        result_events = {}
        for event in events:
            result_events.setdefault(type(event), []).append(event)
        return result, result_events

    return start


def results(result):
    """Id and status of each branch, in order."""
    return [(entry["id"], entry["status"]) for entry in result.context.get("parallel.results")]


def test_branches_run_up_to_the_join_and_the_run_goes_on_there(run):
    result, _ = run()

    assert result.status == "success"
    assert result.completed_nodes == ("start", "fan", "join", "done")
    assert results(result) == [("a", "success"), ("b", "success"), ("c", "success")]
    assert result.context.get("parallel.branch.b.status") == "success"
    assert (result.context.get("parallel.success_count"), result.context.get("parallel.fail_count")) == (3, 0)


def test_results_are_in_edge_order_whoever_is_first(run):
    def after(turns):
        async def wait(_context):
            for _ in range(turns):
                await asyncio.sleep(0)
            return Outcome.success()

        return wait

    result, events = run(replies={"a": after(200), "b": after(100), "c": after(0)})

    assert [event.id for event in events[ParallelBranchCompleted]] == ["c", "b", "a"]
    assert [name for name, _ in results(result)] == ["a", "b", "c"]


def test_a_result_has_all_the_keys_of_the_ruling(run):
    replies = {
        "b": Outcome(
            StageStatus.SUCCESS,
            notes="found it",
            context_updates={"score": 7, "draft": "text"},
            usage=Usage(3, 4, 0.5, 1),
        )
    }

    result, _ = run(replies=replies)

    assert result.context.get("parallel.results")[1] == {
        "id": "b",
        "status": "success",
        "notes": "found it",
        "context_updates": {"score": 7, "draft": "text"},
        "score": 7.0,
        "failure_reason": "",
        "usage": {"input_tokens": 3, "output_tokens": 4, "cost_usd": 0.5, "calls": 1},
    }
    assert result.usage == Usage(3, 4, 0.5, 1)


def test_nothing_that_a_branch_changes_however_deep_is_seen_outside_of_it(run):
    def mutate(name):
        def work(context):
            deep = context.get("shared")
            deep["list"][0]["x"] = name
            context.set("shared", deep)
            context.set("own", name)
            return Outcome.success()

        return work

    def look(context):
        assert context.get("shared") == {"list": [{"x": "start"}]}
        assert context.get("own") is None
        return Outcome.success()

    body = "fan -> a fan -> b fan -> c a -> a2 -> join b -> join c -> join"
    replies = {"a": mutate("a"), "a2": Outcome.success(), "b": mutate("b"), "c": look}

    result, _ = run(body, replies, params={"shared": {"list": [{"x": "start"}]}}, attrs="max_parallel=1")

    assert result.status == "success", result.reason
    assert result.context.get("shared") == {"list": [{"x": "start"}]}
    assert result.context.get("own") is None
    assert result.context.get("parallel.results")[0]["context_updates"]["own"] == "a"


def test_a_branch_has_its_own_stages_retries_and_diamonds(run):
    body = """fan -> a fan -> b a -> a2 a2 -> check b -> join
      check [type="", shape=diamond] check -> join [condition="outcome=success"]
      check -> mend [condition="outcome!=success"] mend -> join
      a2 [max_retries=1]"""
    seen = []
    result, events = run(body, {"a2": [Outcome.retry("busy"), Outcome.success()]}, seen=seen)

    assert result.status == "success", result.reason
    assert seen.count("a2") == 2
    assert "mend" not in seen
    assert {event.branch for event in events[StageCompleted]} == {"", "fan/a", "fan/b"}


@pytest.mark.parametrize(
    ("attrs", "failing", "status", "reason"),
    [
        ("", "", "success", ""),
        ("", "a", "success", ""),
        ("", "abc", "fail", "0 of 3 branches succeeded (a: broken; b: broken; c: broken)"),
        ('join_policy="k_of_n", join_k=2', "a", "success", ""),
        (
            'join_policy="k_of_n", join_k=2',
            "ab",
            "fail",
            "1 of 3 branches succeeded; k_of_n needs 2 (a: broken; b: broken)",
        ),
        ("join_policy=quorum, join_quorum=0.5", "a", "success", ""),
        (
            "join_policy=quorum, join_quorum=0.5",
            "ab",
            "fail",
            "1 of 3 branches succeeded; quorum needs 2 (a: broken; b: broken)",
        ),
        ("join_policy=first_success", "ab", "success", ""),
        (
            "join_policy=first_success",
            "abc",
            "fail",
            "0 of 3 branches succeeded; first_success needs 1 (a: broken; b: broken; c: broken)",
        ),
        ("error_policy=ignore", "a", "success", ""),
        ("error_policy=ignore", "abc", "fail", "0 of 3 branches succeeded (a: broken; b: broken; c: broken)"),
    ],
)
def test_the_policies_say_what_failed_branches_come_to(run, attrs, failing, status, reason):
    result, _ = run(replies={name: Outcome.fail("broken") for name in failing}, attrs=attrs)

    assert (result.status, result.reason) == (status, reason)
    expected = (
        StageStatus.FAIL
        if status == "fail"
        else StageStatus.PARTIAL_SUCCESS
        if (attrs, failing) == ("", "a")
        else StageStatus.SUCCESS
    )
    assert result.node_outcomes["fan"] is expected


def test_under_ignore_only_successful_results_are_handed_on(run):
    result, _ = run(replies={"b": Outcome.fail("broken")}, attrs="error_policy=ignore")

    assert results(result) == [("a", "success"), ("c", "success")]
    assert result.context.get("parallel.branch.b.status") == "fail"
    assert result.context.get("parallel.fail_count") == 1


def _endless(both, stopped):
    async def wait(_context):
        both.release()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(True)

    return wait


@pytest.mark.parametrize(
    ("attrs", "reply", "status"),
    [
        ("join_policy=first_success", Outcome.success(), "success"),
        ("error_policy=fail_fast", Outcome.fail("broken"), "fail"),
        ('error_policy=fail_fast, join_policy="k_of_n", join_k=1', Outcome.fail("broken"), "fail"),
    ],
)
def test_the_rest_is_cancelled_when_it_is_decided_and_none_goes_on(run, attrs, reply, status):
    both, stopped = asyncio.Semaphore(0), []

    async def decide(_context):
        await both.acquire()
        await both.acquire()
        return reply

    endless = _endless(both, stopped)
    body = "fan -> a fan -> b fan -> c fan -> d a -> join b -> join c -> join d -> join"

    result, events = run(body, {"a": endless, "b": decide, "c": endless}, attrs=f"{attrs}, max_parallel=3")

    assert result.status == status
    assert len(stopped) == 2, "both waited, and were stopped"
    skipped = [event for event in events[ParallelBranchCompleted] if event.status == "skipped"]
    assert {event.id for event in skipped} == {"a", "c", "d"}
    assert all(event.failure_reason.startswith("cancelled: b ") for event in skipped)
    assert "d" not in {event.name for event in events[StageStarted]}


def test_no_more_than_max_parallel_run_at_a_time(run):
    running, most = [], []

    async def work(_context):
        running.append(1)
        most.append(len(running))
        for _ in range(5):
            await asyncio.sleep(0)
        running.pop()
        return Outcome.success()

    names = [f"n{number}" for number in range(9)]
    body = " ".join(f"fan -> {name} {name} -> join" for name in names)
    run(body, dict.fromkeys(names, work), attrs="max_parallel=3")

    assert max(most) == 3


def test_fan_outs_nest_and_each_has_its_own_join_and_results(run):
    body = """inner [type="", shape=component] ijoin [type=note]
      fan -> inner fan -> b inner -> x inner -> y x -> ijoin y -> ijoin ijoin -> join b -> join"""
    result, events = run(body, durability="fast")

    assert result.status == "success", result.reason
    assert results(result) == [("inner", "success"), ("b", "success")]
    inner = result.context.get("parallel.results")[0]["context_updates"]
    assert [entry["id"] for entry in inner["parallel.results"]] == ["x", "y"]
    assert [event.branch for event in events[ParallelBranchStarted]] == [
        "fan/inner", "fan/b", "fan/inner/inner/x", "fan/inner/inner/y"
    ]  # fmt: skip
    directory = result.logs_root / "branches" / "fan" / "inner"
    assert json.loads((directory / "branches/inner/x/x/status.json").read_text())["outcome"] == "success"
    assert (directory / "ijoin" / "status.json").exists()


def test_a_loop_that_passes_the_fan_out_again_replaces_its_results(run, tmp_path):
    body = """again [type="", shape=diamond] fan -> a fan -> b a -> join b -> join join -> again [weight=5]
      again -> fan [condition="context.round!=2"] again -> done [condition="context.round=2"]"""

    def count(context):
        return Outcome.success(context_updates={"round": 2 if context.get("internal.seen") else 1})

    rounds = iter((1, 2))
    pipeline = Pipeline(
        written(body),
        handlers={
            "work": worker({"a": [Outcome.success("one"), Outcome.success("two")]}),
            "note": lambda *_: Outcome.success(context_updates={"round": next(rounds)}),
        },
        runs_dir=tmp_path,
    )
    result = pipeline.run(wait=True, durability="fast")

    assert result.status == "success", result.reason
    assert result.completed_nodes.count("fan") == 2
    assert [entry["notes"] for entry in result.context.get("parallel.results")] == ["two", "b is done"]
    stage = result.logs_root / "branches" / "fan" / "a" / "a"
    assert json.loads((stage / "status.json").read_text())["visit"] == 2
    assert (stage / "visits" / "1.1" / "status.json").exists(), "the first round's files are kept"


def test_a_condition_on_an_edge_of_the_fan_out_is_a_way_after_it(run):
    body = f'{THREE} mend [type=note] fan -> mend [condition="outcome=fail"] mend -> done'
    result, _ = run(body, {name: Outcome.fail("broken") for name in "abc"})

    assert result.status == "success"
    assert result.completed_nodes == ("start", "fan", "mend", "done")


def test_without_a_join_branches_run_to_their_ends_and_the_exit_checks_the_gates(run):
    body = 'fan -> a fan -> b a -> done b [goal_gate=true] fan -> join [condition="context.never=1"]'
    good, _ = run(body)
    bad, _ = run(body, {"b": Outcome.fail("broken")})

    assert good.status == "success"
    assert good.completed_nodes == ("start", "fan", "done")
    assert bad.status == "fail"
    assert bad.reason == "goal_gate_unsatisfied: b has not succeeded and there is no retry_target"


def test_a_bound_that_is_reached_in_a_branch_ends_the_run_and_a_higher_one_goes_on(run, tmp_path):
    seen = []
    body = "fan -> a fan -> b a -> a2 -> a3 -> join b -> join"
    result, _ = run(body, seen=seen, durability="fast", max_steps=4, attrs="max_parallel=1")

    assert (result.status, result.bound) == ("fail", "max_steps")
    first = list(seen)
    pipeline = Pipeline(written(body, "max_parallel=1"), handlers={"work": worker(seen=seen), "note": worker()})
    again = pipeline.resume(result.logs_root, max_steps=50, durability="fast").result()

    assert again.status == "success", again.reason
    assert seen == [*first, *[name for name in ("a", "a2", "a3", "b") if name not in first]]


def test_stepping_runs_one_stage_at_a_time_in_branches_too(tmp_path):
    seen = []
    pipeline = Pipeline(written(THREE), handlers={"work": worker(seen=seen), "note": worker()}, runs_dir=tmp_path)
    statuses, counts = [], []
    for _ in range(6):
        result = pipeline.step(durability="fast")
        statuses.append(result.status)
        counts.append(len(seen))

    assert counts == [0, 1, 2, 3, 3, 3]
    assert statuses == ["paused"] * 5 + ["success"]


def test_a_stop_leaves_finished_branches_finished(tmp_path):
    seen, running, both_done = [], asyncio.Event(), asyncio.Event()
    ended = []

    async def wait(_context):
        running.set()
        await asyncio.Event().wait()

    def build(replies):
        return Pipeline(
            written("fan -> a fan -> b fan -> c a -> a2 -> join b -> join c -> join"),
            handlers={"work": worker(replies, seen), "note": worker()},
            runs_dir=tmp_path,
        )

    async def scenario():
        loop = asyncio.get_running_loop()

        def listen(event):
            if isinstance(event, ParallelBranchCompleted):
                ended.append(event.id)
                if len(ended) == 2:
                    loop.call_soon_threadsafe(both_done.set)

        pipeline = build({"b": wait})
        pipeline.on_event(listen)
        task = asyncio.ensure_future(pipeline.run_async(durability="fast"))
        await running.wait()
        await both_done.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    before = list(seen)
    (logs_root,) = tmp_path.iterdir()
    again = build({}).resume(logs_root, durability="fast").result()

    assert again.status == "success", again.reason
    assert seen == [*before, "b"], "only the branch that was cut off runs again"
    assert results(again) == [("a", "success"), ("b", "success"), ("c", "success")]


def test_events_tell_of_the_fan_out_and_its_branches_in_order(run):
    _, events = run(replies={"b": Outcome.fail("broken")})

    assert [event.branch_count for event in events[ParallelStarted]] == [3]
    assert [(event.id, event.index) for event in events[ParallelBranchStarted]] == [("a", 0), ("b", 1), ("c", 2)]
    completed = events[ParallelCompleted][0]
    assert (completed.success_count, completed.failure_count) == (2, 1)
    assert completed.branch == ""


def test_human_gates_wait_in_several_branches_at_once(tmp_path):
    body = """node [type="wait.human"] one [label="One?"] two [label="Two?"]
      fan -> one fan -> two one -> join [label="Yes"] two -> join [label="Yes"]"""
    pipeline = Pipeline(written(body), handlers={"note": worker()}, runs_dir=tmp_path)
    opened = threading.Semaphore(0)
    pipeline.on_event(lambda event: opened.release() if isinstance(event, InterviewStarted) else None)
    run = pipeline.run(durability="fast")
    assert opened.acquire(timeout=60)
    assert opened.acquire(timeout=60)
    assert {gate.id for gate in run.gates} == {"fan/one/one:1", "fan/two/two:1"}
    run.answer("two", "Y")
    run.answer("one", "Y")
    result = run.result()

    assert result.status == "success", result.reason
    assert [name for name, _ in results(result)] == ["one", "two"]


def test_a_resume_with_a_changed_graph_walks_the_branches_that_there_are_now(tmp_path):
    seen = []

    def build(body):
        return Pipeline(
            written(body, "max_parallel=1"), handlers={"work": worker(seen=seen), "note": worker()}, runs_dir=tmp_path
        )

    before = build(THREE)
    for _ in range(3):  # the start, a, b
        stopped = before.step(durability="fast")
    again = build("fan -> b fan -> d b -> join d -> join")
    result = again.resume(stopped.logs_root, on_graph_change="accept", durability="fast").result()

    assert result.status == "success", result.reason
    assert seen == ["a", "b", "d"], "b was recorded, a is no branch any more"
    assert results(result) == [("b", "success"), ("d", "success")]
