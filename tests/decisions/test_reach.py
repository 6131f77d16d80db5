"""The path that a run likely takes, and how often it can come to each node at most."""

import pytest

from attractor_nb import parse_dot
from attractor_nb.decisions.planning.plan import compile_plan, has_loops, likely_path, most_visits

ENDS = "start [shape=Mdiamond] end [shape=Msquare] a b c d x y z c2 d2"
FAN = "fan [shape=component] join [shape=tripleoctagon] start -> fan fan -> a fan -> b a -> join b -> join"


def plan_of(body):
    return compile_plan(parse_dot(f"digraph {{ {ENDS} {body} }}"))


def path(body, **context):
    return " ".join(visit.node_id for visit in likely_path(plan_of(body), lambda key: context.get(key, "")))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param("start -> a -> b -> end", "start a b end", id="line"),
        pytest.param(
            'start -> a a -> b [condition="outcome=fail"] a -> c [condition="outcome=success"] b -> end c -> end',
            "start a c end",
            id="success",
        ),
        pytest.param("start -> a a -> a [weight=5] a -> end", "start a end", id="loops-are-left"),
        pytest.param(
            'start -> a -> b b -> a [condition="outcome=success"] b -> end [condition="outcome=fail"]',
            "start a b end",
            id="the-only-way-on-whatever-its-condition",
        ),
        pytest.param(
            'ok [shape=hexagon] start -> ok ok -> z [label="No"] ok -> b [label="Yes"] z -> end b -> end',
            "start ok z end",
            id="first-choice-of-a-gate",
        ),
        pytest.param(f"{FAN} join -> end", "start fan a b join end", id="all-branches-then-the-join"),
        pytest.param(
            "fan [shape=component] start -> fan fan -> a fan -> b a -> x b -> y",
            "start fan a x b y",
            id="branches-without-a-join",
        ),
        pytest.param("start -> a", "start a", id="dead-end"),
    ],
)
def test_the_likely_path(body, expected):
    assert path(body) == expected


def test_conditions_of_the_likely_path_see_the_inputs():
    body = 'start -> a a -> b [condition="context.lang=de"] a -> c b -> end c -> end'
    assert path(body, **{"context.lang": "de", "lang": "de"}) == "start a b end"
    assert path(body) == "start a c end"


def test_a_visit_knows_the_way_to_it_and_not_other_branches():
    visits = {visit.node_id: visit for visit in likely_path(plan_of(f"{FAN} join -> end"), lambda _: "")}
    assert [before.node_id for before in visits["b"].before] == ["start", "fan"]


@pytest.mark.parametrize(
    ("body", "most"),
    [
        pytest.param("start -> a -> b -> end", {"a": 1, "b": 1}, id="line"),
        pytest.param("start -> a a -> b a -> end b -> end", {"b": 1}, id="not-on-the-likely-path"),
        pytest.param("max_steps=50 start -> a a -> a a -> b -> end", {"a": 50, "b": 1}, id="loop"),
        pytest.param("max_steps=50 max_node_visits=3 start -> a -> b b -> a b -> end", {"a": 3, "b": 3}, id="visits"),
        pytest.param(
            "max_steps=50 start -> a -> b -> c -> end b [retry_target=a]", {"a": 50, "b": 50, "c": 1}, id="retry-target"
        ),
        pytest.param(
            "max_steps=50 retry_target=b start -> a -> b -> c -> end", {"a": 1, "b": 50, "c": 50}, id="of-the-graph"
        ),
        pytest.param(
            "max_goal_gate_redirects=4 a [goal_gate=true] b [goal_gate=true, retry_target=c] "
            "start -> a -> b -> c -> d -> end",
            {"a": 1, "c": 5, "d": 5},
            id="redirects",
        ),
        pytest.param(
            "max_restarts=2 start -> a -> b -> end b -> a [loop_restart=true]", {"a": 3, "b": 3}, id="restarts"
        ),
        pytest.param(f"{FAN} join -> c -> end", {"a": 1, "b": 1, "join": 1, "c": 1}, id="branches"),
        pytest.param(
            "fan [shape=component] start -> fan fan -> a fan -> b a -> c b -> c c -> end", {"c": 1}, id="common-node"
        ),
        pytest.param(
            "fan [shape=component] start -> fan fan -> a fan -> b fan -> d a -> c b -> c d -> d2 c -> c2",
            {"c": 2, "c2": 2, "d2": 1},
            id="no-join",
        ),
        pytest.param(
            "one [shape=component] two [shape=component] ij [shape=tripleoctagon] oj [shape=tripleoctagon] "
            "start -> one one -> two one -> x two -> a two -> b a -> ij b -> ij ij -> oj x -> oj oj -> end",
            {"two": 1, "a": 1, "ij": 1, "oj": 1, "end": 1},
            id="nested",
        ),
        pytest.param("start -> a -> b b -> a [max_taken=2] b -> end", {"a": 3, "b": 3, "end": 1}, id="a-bounded-edge"),
        pytest.param(
            "start -> a -> b b -> a [max_taken=2, label=x] b -> a [label=y] b -> end", {"a": 1000}, id="a-parallel-one"
        ),
        pytest.param(
            "start -> a -> b b -> a [max_taken=2] b -> c c -> b [max_taken=3] c -> end",
            {"a": 6, "b": 6, "c": 6},
            id="two-bounded-edges",
        ),
        pytest.param("start -> a -> b b -> a [max_taken=2] b -> b b -> end", {"a": 3, "b": 1000}, id="a-loop-within"),
        pytest.param(
            f"{FAN} a -> a [max_taken=1] join -> c c -> fan [max_taken=2] c -> end",
            {"fan": 6, "a": 6, "b": 6},
            id="each-pass-of-branches-counts-anew",
        ),
    ],
)
def test_the_most_visits(body, most):
    found = most_visits(plan_of(body))
    assert {name: found[name] for name in most} == most


def test_a_loop_is_told_from_a_line():
    assert has_loops(plan_of("start -> a -> a a -> end"))
    assert not has_loops(plan_of("start -> a -> end"))
    assert not has_loops(plan_of("start -> a a -> a [max_taken=2] a -> end"))
