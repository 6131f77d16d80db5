"""Ways that lead a branch out of its fan-out, gates and fan-ins in branches, as runs (rulings 17a, 22, 35, 36, 39)."""

import asyncio

import pytest

from attractor_nb import Pipeline
from attractor_nb.interviewers import CallbackInterviewer
from attractor_nb.model.events import ParallelBranchCompleted, RunWarning, StageEnd
from attractor_nb.model.outcome import Outcome, StageStatus
from attractor_nb.model.question import Answer

FRAME = """digraph G {{ start [shape=Mdiamond] done [shape=Msquare]
  plan [type=work] i1 [type=work] i2 [type=work] t1 [type=work] {nodes}
  p [shape=component{fan}] j [shape=tripleoctagon]
  start -> plan -> p {edges} j -> done }}"""
TARGET = "t1 [retry_target=plan]"
EDGES = "p -> i1 -> t1 -> j p -> i2 -> j"
BROKEN = Outcome.fail("the tests are red")


class World:
    """Answers of stages, by node; a list is used up, and its last answer stays. ``waits``: in the first round."""

    def __init__(self, replies):
        self.replies = {name: list(given) if isinstance(given, list) else [given] for name, given in replies.items()}
        self.visited = []

    async def work(self, node, context, graph, logs_root):
        self.visited.append(node.id)
        given = self.replies.get(node.id, [Outcome.success()])
        answer = given.pop(0) if len(given) > 1 else given[0]
        if answer != "waits":
            return answer
        if self.visited.count("plan") == 1:
            await asyncio.Event().wait()
        return Outcome.success()


@pytest.fixture
def make(tmp_path):
    """A pipeline of the frame, its world, and its events."""

    def build(replies=None, *, edges=EDGES, nodes="", fan="", **options):
        world, events = World(replies or {}), []
        text = FRAME.format(nodes=nodes, fan=f", {fan}" if fan else "", edges=edges)
        pipeline = Pipeline(text, handlers={"work": world.work}, runs_dir=tmp_path, **options)
        pipeline.on_event(events.append)
        return pipeline, world, events

    return build


def ended(events):
    """Status, reason and target of each branch that ended, by its path."""
    return {
        each.branch: (each.status, each.failure_reason, each.return_target)
        for each in events
        if isinstance(each, ParallelBranchCompleted)
    }


def test_ruling_36_a_retry_target_before_the_fan_out_is_taken_by_the_run(make):
    pipeline, world, events = make({"t1": [BROKEN, Outcome.success()], "i2": "waits"}, nodes=TARGET)
    result = pipeline.run(wait=True, durability="none")

    assert result.status == "success"
    assert result.completed_nodes == ("start", "plan", "p", "plan", "p", "j", "done")
    first = next(each for each in events if isinstance(each, StageEnd) and each.name == "p")
    assert first.outcome.status is StageStatus.FAIL
    assert first.outcome.failure_reason == "the tests are red"
    assert (first.next_node, first.route) == ("plan", "retry_target")
    branches = [each for each in events if isinstance(each, ParallelBranchCompleted)][:2]
    assert [(each.id, each.status, each.return_target) for each in branches] == [
        ("i1", "fail", "plan"),
        ("i2", "skipped", ""),
    ]
    assert branches[1].failure_reason == "cancelled: i1 leads back to plan"
    assert world.visited.count("plan") == 2


@pytest.mark.parametrize("policy", ["join_policy=first_success, max_parallel=1", "join_policy=k_of_n, join_k=1"])
def test_ruling_36_whatever_the_join_policy(make, policy):
    pipeline, _, _ = make({"t1": [BROKEN, Outcome.success()]}, nodes=TARGET, fan=policy)
    result = pipeline.run(wait=True, durability="none")
    assert result.completed_nodes == ("start", "plan", "p", "plan", "p", "j", "done")


def test_ruling_36_a_return_is_not_tried_again_but_taken(make):
    pipeline, world, _ = make({"t1": [BROKEN, Outcome.success()]}, nodes=TARGET, fan="max_retries=3")
    assert pipeline.run(wait=True, durability="none").status == "success"
    assert world.visited.count("t1") == 2
    assert world.visited.count("plan") == 2


def test_ruling_36_with_error_policy_ignore_the_branch_fails_and_nothing_else_happens(make):
    pipeline, world, events = make({"t1": BROKEN}, nodes=TARGET, fan="error_policy=ignore")
    result = pipeline.run(wait=True, durability="none")
    assert result.completed_nodes == ("start", "plan", "p", "j", "done")
    assert ended(events) == {"p/i1": ("fail", "the tests are red", ""), "p/i2": ("success", "", "")}
    assert world.visited.count("i2") == 1


@pytest.mark.parametrize("branches", [1, 2])
def test_ruling_36_returns_count_against_the_bounds_and_a_reached_bound_is_fail(make, branches):
    second = "t2 [type=work, retry_target=plan] p -> i2 -> t2 -> j" if branches == 2 else "p -> i2 -> j"
    pipeline, world, _ = make({"t1": BROKEN, "t2": BROKEN}, nodes=TARGET, edges=f"p -> i1 -> t1 -> j {second}")
    result = pipeline.run(wait=True, durability="none", max_node_visits=3)
    assert result.status == "fail"
    assert "max_node_visits=3 reached: plan had 3 visits, in the cycle plan -> p -> plan" in result.reason
    assert world.visited.count("plan") == 3


def test_ruling_18_a_bound_that_is_reached_in_a_branch_names_the_cycle_around_it(make):
    pipeline, _, _ = make({"t1": BROKEN}, nodes=TARGET, fan="max_parallel=1")
    result = pipeline.run(wait=True, durability="none", max_steps=11)
    bound = "max_steps=11 reached: 11 stages executed, in the cycle p -> plan -> p"
    assert result.reason == f"{bound}; the last failure: p: the tests are red"


@pytest.mark.parametrize(
    ("nodes", "status", "reason"),
    [
        ('t1 -> plan [condition="outcome=fail"]', "fail", "the tests are red"),
        ('t1 -> p [condition="outcome=fail"]', "fail", "the tests are red"),
        ('fix [type=work] t1 -> fix [condition="outcome=fail"] fix -> plan', "success", ""),
        ("t1 [retry_target=fix] fix [type=work] fix -> t1", "success", ""),
    ],
    ids=["before-it", "the-fan-out-itself", "after-another-stage", "a-way-within-the-branch"],
)
def test_ruling_36_an_edge_that_leads_back_ends_the_branch_with_the_outcome_of_its_stage(make, nodes, status, reason):
    pipeline, world, events = make({"t1": [BROKEN, Outcome.success()]}, nodes=nodes)
    result = pipeline.run(wait=True, durability="none", max_steps=100)
    assert ended(events) == {"p/i1": (status, reason, ""), "p/i2": ("success", "", "")}
    assert result.completed_nodes == ("start", "plan", "p", "j", "done")
    assert world.visited.count("plan") == 1


def test_ruling_36_a_branch_that_begins_before_its_fan_out_fails(make):
    pipeline, world, events = make(edges=f"{EDGES} p -> plan plan -> j [condition='context.no=1']".replace("'", '"'))
    result = pipeline.run(wait=True, durability="none", max_steps=50)
    assert ended(events)["p/plan"] == ("fail", "the branch begins at plan, which is p or before it", "")
    assert result.completed_nodes == ("start", "plan", "p", "j", "done")
    assert world.visited.count("plan") == 1


def test_ruling_36_a_retry_target_of_the_graph_applies_in_the_run_alone(make):
    pipeline, world, events = make({"t1": BROKEN}, nodes="graph [retry_target=plan]")
    result = pipeline.run(wait=True, durability="none", max_steps=60)
    assert result.completed_nodes == ("start", "plan", "p", "j", "done")
    assert ended(events)["p/i1"] == ("fail", "the tests are red", "")
    assert world.visited.count("plan") == 1


NESTED = """q [shape=component] x [type=work] y [type=work] k [shape=tripleoctagon]
  i1 -> q q -> x -> k q -> y -> k k -> t1"""


@pytest.mark.parametrize(
    ("target", "policy", "completed", "visits"),
    [
        ("plan", "", ("start", "plan", "p", "plan", "p", "j", "done"), {"plan": 2, "i1": 2, "x": 2}),
        ("i1", "", ("start", "plan", "p", "j", "done"), {"plan": 1, "i1": 2, "x": 2}),
        ("plan", "error_policy=ignore", ("start", "plan", "p", "j", "done"), {"plan": 1, "i1": 1, "x": 1}),
    ],
    ids=["both-levels", "one-level", "the-outer-ignores"],
)
def test_ruling_36_a_retry_target_may_leave_several_levels(make, target, policy, completed, visits):
    pipeline, world, events = make(
        {"x": [BROKEN, Outcome.success()]},
        nodes=f"{NESTED} x [retry_target={target}]",
        edges="p -> i1 t1 -> j p -> i2 -> j",
        fan=policy,
    )
    result = pipeline.run(wait=True, durability="none", max_steps=100)
    assert result.status == "success", result.reason
    assert result.completed_nodes == completed
    assert {name: world.visited.count(name) for name in visits} == visits
    inner = next(each for each in events if isinstance(each, StageEnd) and each.name == "q")
    assert inner.outcome.failure_reason == "the tests are red"


@pytest.mark.parametrize("cut", range(1, 14))
def test_ruling_36_a_resume_in_the_middle_of_a_return_comes_to_the_same(make, cut):
    replies = {"t1": [BROKEN, BROKEN, Outcome.success()]}
    whole, _, _ = make(replies, nodes=TARGET, fan="max_parallel=1")
    wanted = whole.run(wait=True, durability="none")
    pipeline, _, _ = make(replies, nodes=TARGET, fan="max_parallel=1")
    result = pipeline.run(wait=True, durability="fast", stop_after=cut)
    assert result.status == "paused"
    resumed = pipeline.resume(result.logs_root, durability="fast").result()
    assert (resumed.status, resumed.completed_nodes) == (wanted.status, wanted.completed_nodes)
    assert resumed.context["parallel.success_count"] == 2


def test_ruling_22_a_fan_in_where_the_branches_do_not_meet_fails_the_fan_out(make):
    pipeline, _, events = make(
        nodes="early [shape=tripleoctagon]",
        edges='p -> i1 i1 -> early [condition="outcome=success"] i1 -> t1 early -> j t1 -> j p -> i2 -> j',
        fan="error_policy=ignore",
    )
    result = pipeline.run(wait=True, durability="none")
    assert result.status == "fail"
    assert result.reason == "the branch reached the fan-in early, where the branches of its fan-out do not meet"
    assert ended(events)["p/i1"][0] == "fail"


GATED = 'ok [shape=hexagon, label="OK?"] t1 -> ok'
GATED_EDGES = 'p -> i1 -> t1 p -> i2 -> j ok -> j [label="Yes"]'


def answering(value):
    return CallbackInterviewer(lambda question: Answer(value))


@pytest.mark.parametrize(
    ("fan", "replies", "answer", "status"),
    [
        ("", {}, "Y", "success"),
        ("", {}, "skipped", "fail"),
        ("", {"t1": BROKEN}, "Y", "fail"),
        ("error_policy=ignore", {}, "skipped", "fail"),
        ("join_policy=first_success", {"t1": "waits"}, "Y", "fail"),
        ("join_policy=first_success", {"i2": "waits"}, "Y", "success"),
        ("join_policy=k_of_n, join_k=1", {}, "skipped", "fail"),
    ],
    ids=["answered", "refused", "never-reached", "ignored", "cancelled", "the-first", "not-needed"],
)
def test_ruling_39_under_strict_gates_a_human_gate_that_nobody_answered_fails_the_fan_out(
    make, fan, replies, answer, status
):
    pipeline, _, _ = make(
        replies, nodes=f"graph [strict_gates=true] {GATED}", edges=GATED_EDGES, fan=fan, interviewer=answering(answer)
    )
    result = pipeline.run(wait=True, durability="none")
    assert result.status == status
    if status == "fail":
        assert result.reason == "strict_gates: no one answered the human gate `ok` in branch i1"


def test_ruling_39_without_strict_gates_the_fan_out_goes_on(make):
    pipeline, _, _ = make(nodes=GATED, edges=GATED_EDGES, interviewer=answering("skipped"))
    assert pipeline.run(wait=True, durability="none").status == "success"


@pytest.mark.parametrize("place", ["plan", "i1"])
@pytest.mark.parametrize("is_strict", [False, True])
def test_ruling_17a_a_goal_gate_that_was_skipped_is_not_satisfied_under_strict_gates(make, place, is_strict):
    strict = "graph [strict_gates=true]" if is_strict else ""
    pipeline, _, events = make({place: Outcome(StageStatus.SKIPPED)}, nodes=f"{strict} {place} [goal_gate=true]")
    result = pipeline.run(wait=True, durability="none")
    assert result.status == ("fail" if is_strict else "success")
    told = [each.message for each in events if isinstance(each, RunWarning)]
    if is_strict:
        assert f"goal_gate_unsatisfied: {place} has not succeeded" in result.reason
    else:
        assert told == [f"goal gate `{place}` was skipped"]


@pytest.mark.parametrize(
    ("edges", "way"),
    [
        ('plan -> p [condition="outcome=success"] plan -> t1 [condition="outcome=fail"]', "p"),
        ('plan -> p [condition="outcome=partial_success"] plan -> t1 [condition="outcome=success"]', "p"),
        ('plan -> p [condition="outcome!=success"] plan -> t1 [condition="outcome=partial_success"]', "p"),
        ('plan -> t1 [condition="outcome!=success"] plan -> p', "p"),
    ],
    ids=["success", "named", "named-beside", "not-otherwise"],
)
def test_ruling_35_a_partial_success_is_a_success_to_edges_that_do_not_name_it(tmp_path, edges, way):
    text = f"""digraph {{ start [shape=Mdiamond] done [shape=Msquare] plan [type=work] p [type=work] t1 [type=work]
        start -> plan {edges} p -> done t1 -> done }}"""
    world = World({"plan": Outcome(StageStatus.PARTIAL_SUCCESS)})
    result = Pipeline(text, handlers={"work": world.work}, runs_dir=tmp_path).run(wait=True, durability="none")
    assert result.completed_nodes == ("start", "plan", way, "done")


SKIPPED = Outcome(StageStatus.SKIPPED, notes="nothing to do")
NOTHING_DONE = {"i1": SKIPPED, "i2": SKIPPED, "t1": SKIPPED}


@pytest.mark.parametrize(
    "fan", ["", ", join_policy=first_success", ", join_policy=k_of_n, join_k=2", ", error_policy=ignore"]
)
@pytest.mark.parametrize("is_strict", [False, True])
def test_ruling_17a_a_fan_out_as_a_goal_gate_is_skipped_when_each_stage_of_its_branches_was(make, fan, is_strict):
    strict = "graph [strict_gates=true]" if is_strict else ""
    pipeline, _, events = make(NOTHING_DONE, nodes=strict, fan=f"goal_gate=true{fan}")
    result = pipeline.run(wait=True, durability="none")
    assert result.status == ("fail" if is_strict else "success")
    assert "p" not in result.node_outcomes
    if is_strict:
        assert "goal_gate_unsatisfied: p has not succeeded" in result.reason
    else:
        assert [each.message for each in events if isinstance(each, RunWarning)] == ["goal gate `p` was skipped"]


@pytest.mark.parametrize("prompt", ["", ', prompt="Which?"'], ids=["rule", "model"])
@pytest.mark.parametrize("is_strict", [False, True])
def test_ruling_17a_a_fan_in_as_a_goal_gate_is_skipped_when_each_stage_of_its_branches_was(make, prompt, is_strict):
    strict = "graph [strict_gates=true]" if is_strict else ""
    nodes = f"{strict} j [shape=tripleoctagon, goal_gate=true{prompt}]"
    pipeline, _, events = make(NOTHING_DONE, nodes=nodes)
    result = pipeline.run(wait=True, durability="none")
    assert result.status == ("fail" if is_strict else "success")
    assert "j" not in result.node_outcomes
    if is_strict:
        assert "goal_gate_unsatisfied: j has not succeeded" in result.reason
    else:
        assert [each.message for each in events if isinstance(each, RunWarning)] == ["goal gate `j` was skipped"]


@pytest.mark.parametrize("done", ["i1", "i2", "t1"])
def test_ruling_17a_a_fan_out_of_which_one_branch_did_something_is_as_its_policy_says(make, done):
    replies = {**NOTHING_DONE, done: Outcome.success()}
    pipeline, _, _ = make(replies, nodes="graph [strict_gates=true]", fan="goal_gate=true")
    result = pipeline.run(wait=True, durability="none")
    assert (result.status, result.node_outcomes["p"]) == ("success", "success")


@pytest.mark.parametrize(
    "fan", ["", ", error_policy=ignore", ", join_policy=first_success", ", join_policy=k_of_n, join_k=1"]
)
def test_ruling_17a_skipped_branches_beside_a_failed_one_are_no_success(make, fan):
    pipeline, _, _ = make({**NOTHING_DONE, "i2": BROKEN}, fan=f"goal_gate=true{fan}")
    result = pipeline.run(wait=True, durability="none")
    assert (result.status, result.node_outcomes["p"]) == ("fail", "fail")
    assert result.reason.startswith("0 of 2 branches succeeded, 1 skipped")
    assert result.reason.endswith("(i2: the tests are red)")


def test_ruling_17a_a_skipped_branch_is_not_the_first_success(make):
    pipeline, world, _ = make({"i1": SKIPPED, "t1": SKIPPED}, fan="join_policy=first_success, max_parallel=1")
    assert pipeline.run(wait=True, durability="none").node_outcomes["p"] == "success"
    assert "i2" in world.visited


def test_ruling_17a_a_diamond_is_nothing_that_a_branch_did(make):
    edges = "p -> i1 -> d -> j p -> i2 -> j"
    pipeline, _, _ = make(
        NOTHING_DONE,
        nodes="graph [strict_gates=true] d [shape=diamond] t1 -> j i2 -> t1",
        edges=edges,
        fan="goal_gate=true",
    )
    assert "p has not succeeded" in pipeline.run(wait=True, durability="none").reason


def test_ruling_17a_a_fan_out_within_a_skipped_one_is_skipped_with_it(make):
    nodes = """graph [strict_gates=true] q [shape=component] k [shape=tripleoctagon] x [type=work] y [type=work]"""
    edges = "p -> q q -> x -> k q -> y -> k k -> j p -> i2 -> t1 -> j i1 -> j i2 -> i1"
    replies = {**NOTHING_DONE, "x": SKIPPED, "y": SKIPPED}
    pipeline, _, _ = make(replies, nodes=nodes, edges=edges, fan="goal_gate=true")
    assert "p has not succeeded" in pipeline.run(wait=True, durability="none").reason
