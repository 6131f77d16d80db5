"""A failure that cannot change is not asked for again and again, and bounds name the last failure (ruling 52)."""

import pytest

from attractor_nb import Outcome, Pipeline, Run
from attractor_nb.errors import RetryableError, TerminalError

LOOP = """digraph Loop {{ {graph}
    start [shape=Mdiamond] done [shape=Msquare] check [shape=diamond]
    implement [prompt="Do it."] {more}
    start -> implement -> check
    implement -> check [condition="outcome=fail"]
    check -> {back} [condition="outcome=fail"]
    check -> done [condition="outcome=success"] }}"""


class Refusing:
    """A backend that refuses so many calls of ``implement``, and answers all others."""

    def __init__(self, times, error=TerminalError, message="401: incorrect key"):
        self.times, self.error, self.message = times, error, message
        self.calls = 0

    def run(self, node, prompt, context):
        """Refuse, or answer."""
        if node.id != "implement":
            return "fine"
        self.calls += 1
        if self.calls <= self.times:
            raise self.error(self.message.replace("#", str(self.calls)))
        return "done"


def looping(graph="", more="", back="implement"):
    """A pipeline that tries again whatever comes."""
    return Pipeline(LOOP.format(graph=graph, more=more, back=back))


def test_the_same_terminal_failure_three_times_in_a_row_ends_the_run_ruling_52(tmp_path):
    backend = Refusing(1000)
    result = looping().run(backend=backend, wait=True, logs_root=tmp_path / "run", durability="fast")
    assert (result.status, backend.calls) == ("fail", 3)
    assert "401: incorrect key" in result.reason
    assert result.reason.endswith("(implement failed with this 3 times in a row, and a retry cannot help)")
    assert result.bound == ""


def test_a_run_that_ended_so_is_resumed_and_has_three_attempts_again_ruling_52(tmp_path):
    looping().run(backend=Refusing(1000), wait=True, logs_root=tmp_path / "run", durability="fast")
    backend = Refusing(2)
    again = Run.load(tmp_path / "run").resume(backend=backend).result()
    assert (again.status, backend.calls) == ("success", 3)
    backend = Refusing(1000)
    looping().run(backend=Refusing(1000), wait=True, logs_root=tmp_path / "other", durability="fast")
    again = Run.load(tmp_path / "other").resume(backend=backend).result()
    assert (again.status, backend.calls) == ("fail", 3)


@pytest.mark.parametrize(
    ("backend", "more", "back"),
    [
        (Refusing(8, message="row # is wrong"), "", "implement"),
        (Refusing(8, error=RetryableError), "", "implement"),
        (Refusing(8), 'mend [prompt="Mend it."] mend -> implement', "mend"),
    ],
    ids=["another-reason", "not-terminal", "a-stage-that-succeeds-between"],
)
def test_other_failures_go_round_as_the_graph_says_ruling_52(backend, more, back):
    result = looping(more=more, back=back).run(backend=backend, wait=True, durability="none")
    assert (result.status, backend.calls) == ("success", 9)


def test_a_third_failure_may_take_another_way_ruling_52():
    backend = Refusing(3)
    visits = []

    def count(node, context, graph, logs_root):
        visits.append(node.id)
        return Outcome.fail("again") if len(visits) < 3 else Outcome.success()

    text = """digraph { start [shape=Mdiamond] done [shape=Msquare] implement [prompt=x] count [type=count]
        start -> implement -> done  implement -> count [condition="outcome=fail"]
        count -> implement [condition="outcome=fail"] count -> done [condition="outcome=success"] }"""
    result = Pipeline(text, handlers={"count": count}).run(backend=backend, wait=True, durability="none")
    assert (result.status, backend.calls) == ("success", 3)


def test_a_branch_that_goes_round_ends_with_the_failure_ruling_52():
    text = """digraph { start [shape=Mdiamond] done [shape=Msquare] fan [shape=component] join [shape=tripleoctagon]
        implement [prompt=x] other [prompt=y] check [shape=diamond]
        start -> fan -> implement -> check fan -> other -> join -> done
        implement -> check [condition="outcome=fail"]
        check -> implement [condition="outcome=fail"] check -> join [condition="outcome=success"] }"""
    backend = Refusing(1000)
    result = Pipeline(text).run(backend=backend, wait=True, durability="none")
    assert (result.status, backend.calls) == ("success", 3)
    (failed,) = [each for each in result.context["parallel.results"] if each["status"] == "fail"]
    assert "3 times in a row" in failed["failure_reason"]


@pytest.mark.parametrize(
    ("graph", "options", "bound"),
    [
        ("max_steps=9", {}, "max_steps"),
        ("max_node_visits=3", {}, "max_node_visits"),
        ("", {"max_steps": 9}, "max_steps"),
        ("retry_target=implement, max_goal_gate_redirects=1", {}, "max_goal_gate_redirects"),
    ],
)
def test_a_bound_names_the_last_failure_ruling_52(graph, options, bound):
    back = "implement"
    pipeline = looping(graph=f"graph [{graph}]" if graph else "", back=back)
    if "gate" in bound:
        text = """digraph { graph [retry_target=implement, max_goal_gate_redirects=1] start [shape=Mdiamond] done [shape=Msquare]
            implement [prompt=x, goal_gate=true] start -> implement -> done implement -> done [condition="outcome=fail"] }"""
        pipeline = Pipeline(text)
    result = pipeline.run(backend=Refusing(1000, message="row # is wrong"), wait=True, durability="none", **options)
    assert (result.status, result.bound) == ("fail", bound)
    assert "; the last failure: implement: " in result.reason
    assert "row" in result.reason.partition("the last failure")[2]


def test_a_bound_names_no_failure_that_was_mended_ruling_52():
    text = """digraph { max_steps=8 start [shape=Mdiamond] done [shape=Msquare] implement [prompt=x] other [prompt=y]
        start -> implement -> other implement -> implement [condition="outcome=fail"] other -> implement
        other -> done [condition="outcome=fail"] }"""
    result = Pipeline(text).run(backend=Refusing(1, error=RetryableError), wait=True, durability="none")
    assert result.bound == "max_steps"
    assert "last failure" not in result.reason
