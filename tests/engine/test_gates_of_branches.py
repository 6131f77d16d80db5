"""A goal gate in a branch is one gate for each branch path, and restarts satisfy none (ruling 45)."""

import threading

import pytest

from attractor_nb import Outcome, Run
from attractor_nb.decisions.kept_state import checkpoint_entries, state_of
from attractor_nb.decisions.run_state import RunState
from attractor_nb.model.events import GoalGateUnsatisfied, ParallelBranchStarted
from attractor_nb.model.outcome import StageStatus
from attractor_nb.storage.log.event_log import read_log

WAIT_SECONDS = 60
TWO_PATHS = """fan [shape=component, error_policy=ignore] join [shape=tripleoctagon]
    gate [type=judge, goal_gate=true{more}] x [type=mark] y [type=mark]
    start -> fan; fan -> x; fan -> y; x -> gate; y -> gate; gate -> join; join -> done"""


def mark(node, context, graph, logs_root):
    context.set("path", node.id)
    return Outcome.success()


class Judge:
    """Fails what ``fails`` says, in the order of ``order``."""

    def __init__(self, fails, order):
        self.fails = [set(names) for names in fails]
        self.order = order
        self.passed = {name: threading.Event() for name in order}
        self.passes = 0
        self.lock = threading.Lock()

    def execute(self, node, context, graph, logs_root):
        path = context.get("path") or self.order[-1]  # the run itself goes through no mark
        place = self.order.index(path)
        if place and self.passes == 0:
            assert self.passed[self.order[place - 1]].wait(WAIT_SECONDS)
        self.passed[path].set()
        with self.lock:
            turn = self.fails[min(self.passes, len(self.fails) - 1)]
            self.passes += path == self.order[-1]
        return Outcome.fail(f"not good enough on {path}") if path in turn else Outcome.success()


def run(make, body, handlers, **options):
    return make(body, handlers={"mark": mark, **handlers}).run(wait=True, **options)


@pytest.mark.parametrize("order", [("x", "y"), ("y", "x")], ids=["failure first", "failure last"])
def test_ruling_45_a_gate_that_failed_on_one_path_is_unsatisfied_in_any_order(make, order):
    result = run(make, TWO_PATHS.format(more=""), {"judge": Judge([{"x"}], order)})
    assert result.status == "fail"
    assert result.reason.startswith("goal_gate_unsatisfied: gate has not succeeded")


@pytest.mark.parametrize("order", [("x", "y"), ("y", "x")], ids=["failure first", "failure last"])
def test_ruling_45_a_gate_is_satisfied_when_each_path_succeeded_in_the_latest_pass(make, order):
    judge = Judge([{"x"}, set()], order)
    result = run(make, TWO_PATHS.format(more=", retry_target=fan"), {"judge": judge})
    assert (result.status, judge.passes) == ("success", 2)


def test_ruling_45_an_execution_by_the_run_itself_replaces_those_of_the_branches(make):
    judge = Judge([{"x"}, set()], ("x", "y"))
    result = run(make, f"graph [retry_target=gate] {TWO_PATHS.format(more='')}", {"judge": judge})
    assert (result.status, result.visits["gate"]) == ("success", 1)


TWO_PASSES = """fan [shape=component, max_parallel=1{policy}] join [shape=tripleoctagon]
    x [type=first] gate [type=fine, goal_gate=true] y [type=fine] check [type=check{more}]
    start -> fan; fan -> x; fan -> y; x -> gate [condition="outcome=success && context.around!=yes"]
    x -> join [condition="context.around=yes"]; gate -> join; y -> join; join -> check
    check -> done [condition="outcome=success"]; check -> fan [condition="outcome=fail"]"""
LEFT_OUT = [
    (", error_policy=ignore", Outcome.fail("no")),
    (", join_policy=k_of_n, join_k=1", Outcome.fail("no")),
    (", join_policy=first_success", Outcome.fail("no")),
    ("", Outcome.success(context_updates={"around": "yes"})),
]


def two_passes(make, body, second, **options):
    """Run a graph whose check sends it back to the fan-out once; what ``second`` says holds from then on."""
    checks = []

    def check(node, context, graph, logs_root):
        checks.append(node.id)
        return Outcome.fail("once more") if len(checks) == 1 else Outcome.success()

    handlers = {"check": check, "first": lambda *_: second if checks else Outcome.success()}
    return run(make, body, handlers | {"fine": lambda *_: Outcome.success()}, **options)


@pytest.mark.parametrize(("policy", "second"), LEFT_OUT, ids=["ignore", "k_of_n", "first_success", "around"])
def test_ruling_45_a_gate_that_the_latest_pass_left_out_is_unsatisfied(make, policy, second):
    result = two_passes(make, TWO_PASSES.format(policy=policy, more=""), second)
    assert result.status == "fail"
    assert result.reason.startswith("goal_gate_unsatisfied: gate has not succeeded")


def test_ruling_45_a_gate_that_the_latest_pass_executed_is_satisfied(make):
    result = two_passes(make, TWO_PASSES.format(policy="", more=""), Outcome.success())
    assert (result.status, result.completed_nodes.count("fan")) == ("success", 2)


def test_ruling_45_a_gate_in_a_fan_out_of_a_branch_is_left_out_when_the_outer_one_begins_again(make):
    body = """outer [shape=component, error_policy=ignore] join [shape=tripleoctagon] y [type=fine]
        x [type=first] inner [shape=component] meet [shape=tripleoctagon] gate [type=fine, goal_gate=true] z [type=fine]
        start -> outer; outer -> x; outer -> y; x -> inner; inner -> gate; inner -> z; gate -> meet; z -> meet
        meet -> join; y -> join; join -> check; check [type=check]
        check -> done [condition="outcome=success"]; check -> outer [condition="outcome=fail"]"""
    result = two_passes(make, body, Outcome.fail("no"))
    assert result.reason.startswith("goal_gate_unsatisfied: gate has not succeeded")
    assert two_passes(make, body, Outcome.success()).status == "success"


def test_ruling_45_a_gate_whose_branch_was_cancelled_in_the_latest_pass_is_unsatisfied(make):
    body = """fan [shape=component, max_parallel=1, join_policy=first_success] join [shape=tripleoctagon]
        quick [type=quick] gate [type=fine, goal_gate=true] check [type=check]
        start -> fan; fan -> quick; fan -> gate; quick -> join; gate -> join; join -> check
        check -> done [condition="outcome=success"]; check -> fan [condition="outcome=fail"]"""
    tries = []

    def quick(node, context, graph, logs_root):
        tries.append(node.id)
        return Outcome.fail("not yet") if len(tries) == 1 else Outcome.success()

    handlers = {"quick": quick, "fine": lambda *_: Outcome.success()}
    handlers["check"] = lambda *_: Outcome.fail("once more") if len(tries) == 1 else Outcome.success()
    assert run(make, body, handlers).reason.startswith("goal_gate_unsatisfied: gate has not succeeded")


def test_ruling_45_a_first_pass_that_leaves_a_gate_out_is_a_warning(make):
    body = TWO_PASSES.format(policy=", error_policy=ignore", more="").replace("[type=first]", "[type=never]")
    handlers = {name: lambda *_: Outcome.success() for name in ("check", "fine")}
    assert run(make, body, handlers | {"never": lambda *_: Outcome.fail("no")}).status == "success"


def test_ruling_45_a_resume_from_anywhere_knows_which_gates_a_new_pass_left_out(make, tmp_path):
    body = TWO_PASSES.format(policy=", error_policy=ignore", more="")
    two_passes(make, body, Outcome.fail("no"), logs_root=tmp_path / "run")
    events = read_log(tmp_path / "run").events
    for cut in range(len(events) + 1):
        state = RunState("")
        state.apply_all(events[:cut], frozenset())
        state = state_of(checkpoint_entries(state))
        state.apply_all(events[cut:], frozenset())
        assert state.stale_gates == {"gate"}, cut


PASSED_OVER = """fan [shape=component] join [shape=tripleoctagon] work [type=work]
    gate [type=fine, goal_gate=true] other [type=fine] final [type=final, goal_gate=true, retry_target=work]
    start -> work; work -> fan [condition="context.pass=1"]; work -> final [condition="context.pass!=1"]
    fan -> gate; fan -> other; gate -> join; other -> join; join -> final; final -> done"""


def test_ruling_45_a_gate_in_a_branch_that_a_redirect_passed_over_must_be_executed_again(make):
    passes = []

    def work(node, context, graph, logs_root):
        passes.append(node.id)
        return Outcome.success(context_updates={"pass": str(len(passes))})

    def final(node, context, graph, logs_root):
        return Outcome(StageStatus.PARTIAL_SUCCESS) if len(passes) > 1 else Outcome.fail("not good enough")

    body = f"graph [on_fail=continue, max_goal_gate_redirects=3] {PASSED_OVER}"
    result = run(make, body, {"work": work, "final": final, "fine": lambda *_: Outcome.success()})
    assert result.status == "fail"
    assert "goal_gate_unsatisfied: gate has not succeeded" in result.reason


def test_ruling_45_a_redirect_into_a_branch_passes_over_the_gates_that_lie_ahead_of_it(make, tmp_path):
    body = """graph [retry_target=mend, max_goal_gate_redirects=2]
        fan [shape=component] join [shape=tripleoctagon]
        mend [type=fine] gate [type=judge, goal_gate=true] late [type=fine, goal_gate=true]
        other [type=fine, goal_gate=true]
        start -> fan; fan -> mend; fan -> other; mend -> gate
        gate -> late [condition="outcome=fail"]; gate -> done [condition="outcome=success"]
        late -> join; other -> join; join -> done"""
    turns = []

    def judge(node, context, graph, logs_root):
        turns.append(node.id)
        return Outcome.fail("not yet") if len(turns) == 1 else Outcome.success()

    handlers = {"judge": judge, "fine": lambda *_: Outcome.success()}
    result = run(make, body, handlers, logs_root=tmp_path / "run")
    redirects = [event for event in read_log(tmp_path / "run").events if isinstance(event, GoalGateUnsatisfied)]
    passed_over = [event.passed_over for event in redirects]
    assert passed_over[0] == ("gate", "late")
    assert "at gate `late`" in result.reason


RESTART = """gate [type=judge, goal_gate=true] after [type=fine]
    start -> gate; gate -> done [condition="outcome=success"]
    gate -> after [condition="outcome=fail", loop_restart=true]; after -> {onward}"""


def test_ruling_45_a_gate_that_failed_before_a_restart_past_it_is_unsatisfied_and_named(make, tmp_path):
    handlers = {"judge": lambda *_: Outcome.fail("no"), "fine": lambda *_: Outcome.success()}
    result = run(make, RESTART.format(onward="done"), handlers, logs_root=tmp_path / "run")
    assert result.status == "fail"
    assert result.reason.startswith("goal_gate_unsatisfied: gate has not succeeded")
    assert Run.load(tmp_path / "run").result().status == "fail"


def test_ruling_45_a_gate_that_a_restart_executes_again_is_satisfied(make):
    tries = []

    def judge(node, context, graph, logs_root):
        tries.append(node.id)
        return Outcome.fail("no") if len(tries) == 1 else Outcome.success()

    result = run(make, RESTART.format(onward="gate"), {"judge": judge, "fine": lambda *_: Outcome.success()})
    assert (result.status, len(tries)) == ("success", 2)


def test_ruling_45_a_stopped_run_still_knows_which_paths_failed():
    state = RunState("fan", failed_in={"gate": ["fan/x"]})
    assert state_of(checkpoint_entries(state)).failed_in == {"gate": ["fan/x"]}


@pytest.mark.parametrize("policy", ["error_policy=ignore", "join_policy=k_of_n, join_k=1"])
def test_ruling_45_a_gate_that_the_latest_pass_of_its_fan_out_left_out_is_unsatisfied(make, policy):
    passes = []

    def once(node, context, graph, logs_root):
        passes.append(node.id)
        return Outcome.success() if passes.count(node.id) == 1 else Outcome.fail(f"{node.id} no more")

    def twice(node, context, graph, logs_root):
        passes.append(node.id)
        return Outcome.success() if passes.count(node.id) == 2 else Outcome.fail("once more")

    body = f"""fan [shape=component, {policy}] join [shape=tripleoctagon]
        before [type=once] gate [type=mark, goal_gate=true] other [type=mark] check [type=twice]
        start -> fan fan -> before -> gate -> join fan -> other -> join join -> check
        check -> done [condition="outcome=success"] check -> fan [condition="outcome=fail"]"""
    result = run(make, body, {"once": once, "twice": twice})
    assert result.status == "fail"
    assert result.reason.startswith("goal_gate_unsatisfied: gate has not succeeded")


def test_ruling_45_a_pass_that_a_rewind_set_aside_makes_no_gate_stale():
    """Visit numbers outlive a rewind; the gates that were executed under them do not."""
    state = RunState("fan")
    state.branches.numbers["fan/x"] = {"x": 1, "gate": 1}
    state.apply(ParallelBranchStarted(name="fan", visit=2, attempt=1, index=0, id="x", start_node="x", branch="fan/x"))
    assert state.stale_gates == set()
