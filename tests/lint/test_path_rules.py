"""The ways through a graph, and the rules on demand that look at them."""

import re

import pytest

from attractor_nb.languages.dot import parse_dot
from attractor_nb.lint.paths import MAX_CYCLES, Paths
from attractor_nb.lint.rules.path_rules import RULES, bounds_of_loop, way
from attractor_nb.lint.survey import LintOptions, Survey

HUMAN = "[shape=hexagon]"
ENDS = "start [shape=Mdiamond] done [shape=Msquare]"
FORK = f"{ENDS} fan [shape=component] join [shape=tripleoctagon] start -> fan fan -> a fan -> b b -> join join -> done"


def survey(body):
    """A survey of a graph whose nodes of one letter are declared: two of them are one slip apart."""
    letters = " ".join(dict.fromkeys(re.findall(r"\b[a-z]\b", body)))
    return Survey(parse_dot(f"digraph {{ {letters} {body} }}"), LintOptions())


def found(body):
    looked_at = survey(body)
    return {(each.rule, each.node_id) for rule in RULES for each in rule.diagnose(looked_at)}


@pytest.mark.parametrize(
    ("body", "passed"),
    [
        ("start -> a -> done", "start a done"),
        ("start -> a a -> done a -> b b -> done", "start a done"),
        ("start -> a start -> b a -> c b -> c c -> done", "start c done"),
        ("a [retry_target=done] start -> a -> b -> done", "start a done"),
        ("graph [retry_target=b] start -> a -> c -> b -> done", "start a b done"),
        ('start -> a -> b -> done b -> a [condition="outcome=fail"]', "start a b done"),
        ("other [shape=Msquare] start -> a a -> done a -> b b -> other", "start a"),
        ("start -> a -> b b -> a", ""),
    ],
    ids=["line", "short cut", "diamond", "jump over", "jump of the graph", "loop", "two exits", "no way to the exit"],
)
def test_what_every_run_passes(body, passed):
    assert sorted(Paths(survey(f"{ENDS} {body}")).must_pass) == sorted(passed.split())


@pytest.mark.parametrize(
    ("policy", "passed"),
    [
        ("", {"a", "x", "b"}),
        ("fan [join_policy=first_success]", set()),
        ("fan [join_policy=k_of_n, join_k=2]", {"a", "x", "b"}),
        ("fan [join_policy=k_of_n]", set()),
    ],
    ids=["waits for all", "first success", "all of two", "unreadable"],
)
def test_branches_are_passed_where_the_fan_out_waits_for_all(policy, passed):
    ways = Paths(survey(f"{FORK} {policy} a -> x x -> join a -> x"))
    assert set(ways.must_pass) - {"start", "done", "fan", "join"} == passed


def test_in_a_branch_a_node_can_be_gone_around_by_itself():
    ways = Paths(survey(f"{FORK} a -> x a -> join x -> join"))
    assert "a" in ways.must_pass
    assert "x" not in ways.must_pass
    assert ways.detour("x") == ["a", "join"]
    assert ways.detour("b") == []


def test_a_fan_out_in_a_branch_counts():
    inner = "a [shape=component] m [shape=tripleoctagon] a -> p a -> q p -> m q -> m m -> join"
    assert {"p", "q", "m"} <= set(Paths(survey(f"{FORK} {inner}")).must_pass)


def test_a_node_that_no_run_reaches_has_no_detour():
    assert Paths(survey(f"{ENDS} lost {HUMAN} start -> done lost -> done")).detour("lost") == []


@pytest.mark.parametrize(
    ("body", "cycles"),
    [
        ("start -> a -> done", []),
        ("start -> a -> a a -> done", [("a",)]),
        ("start -> a -> b -> c -> done c -> a b -> a", [("a", "b"), ("a", "b", "c")]),
        ("start -> c -> b -> c b -> done", [("c", "b")]),
    ],
    ids=["none", "itself", "two, the short one first", "from the first node of the source"],
)
def test_cycles(body, cycles):
    paths = Paths(survey(f"{ENDS} {body}"))
    assert paths.cycles == cycles
    assert not paths.are_cycles_cut


def test_the_cycles_of_a_dense_graph_are_bounded_and_the_cut_is_told():
    edges = " ".join(f"n{at} -> n{(at + step) % 200}" for at in range(200) for step in range(1, 31))
    paths = Paths(survey(f"{ENDS} start -> n0 {edges} n7 -> done"))
    assert len(paths.cycles) == MAX_CYCLES
    assert paths.are_cycles_cut
    assert set(paths.must_pass) == {"start", "n0", "n7", "done"}


@pytest.mark.parametrize(
    ("body", "rules"),
    [
        (f"g {HUMAN} start -> g g -> done [label=Yes]", set()),
        (f"g {HUMAN} start -> a a -> g a -> done g -> done", {("gate_avoidable", "g")}),
        (f"g {HUMAN} a [retry_target=done] start -> a a -> g g -> done", {("gate_avoidable", "g")}),
        ("t [goal_gate=true] start -> a a -> t a -> done t -> done", {("goal_gate_avoidable", "t")}),
        ("t [goal_gate=false] start -> a a -> t a -> done t -> done", set()),
    ],
    ids=["every way", "a way around", "a failure goes around", "goal gate", "no goal gate"],
)
def test_gates_that_a_run_can_go_around(body, rules):
    assert found(f"{ENDS} {body}") == rules


def test_the_way_around_is_named():
    looked_at = survey(f"{ENDS} g {HUMAN} start -> a a -> g a -> b b -> done g -> done")
    (finding,) = RULES[0].diagnose(looked_at)
    assert finding.message == 'a run can go around the gate "g": start -> a -> b -> done'


def test_a_way_around_by_a_failure_says_so():
    looked_at = survey(f"{ENDS} g {HUMAN} a [retry_target=b] start -> a a -> g g -> b b -> done")
    (finding,) = RULES[0].diagnose(looked_at)
    assert finding.message == 'a run can go around the gate "g": start -> a (failed) -> b -> done'


@pytest.mark.parametrize(("is_strict", "end"), [("false", "it is not checked"), ("true", "the run fails")])
def test_what_follows_for_a_goal_gate_is_told(is_strict, end):
    gate = "t [goal_gate=true] start -> a a -> t a -> done t -> done"
    (finding,) = RULES[1].diagnose(survey(f"{ENDS} graph [strict_gates={is_strict}] {gate}"))
    assert finding.message == f'a run can go around the goal gate "t", and then {end}: start -> a -> done'


LOOP = "start -> a -> b b -> a [weight=1] b -> c c -> a c -> done [label=Out]"


@pytest.mark.parametrize(
    ("more", "is_endless"),
    [
        ("", True),
        ("graph [max_node_visits=3]", False),
        ("graph [max_steps=50]", False),
        ("a [max_tokens_total=9000]", False),
        (f"a {HUMAN}", False),
        ('b -> done [condition="outcome=fail"]', False),
    ],
    ids=["nothing", "visits", "steps", "budget of a node", "a person", "a condition"],
)
def test_a_loop_in_a_larger_cycle_without_an_end(more, is_endless):
    assert (("endless_loop", "a") in found(f"{ENDS} {LOOP} {more}")) == is_endless


def test_a_restart_bounds_a_loop():
    looked_at = survey(f"{ENDS} start -> a -> b b -> a [loop_restart=true] b -> done")
    assert bounds_of_loop(looked_at, ("a", "b")) == ["max_restarts=10"]


@pytest.mark.parametrize(
    ("body", "unseen"),
    [
        ("b [fidelity=truncate] start -> a -> b -> done", {"a"}),
        ('b [fidelity=truncate, prompt="${a.response}"] start -> a -> b -> done', set()),
        ("b [fidelity=truncate, carry=last_response] start -> a -> b -> done", set()),
        ("start -> a -> b -> done", set()),
        ("b [fidelity=truncate] start -> a a -> b [fidelity=full] b -> done", set()),
        ('b [shape=parallelogram, tool_command="cat"] start -> a -> b -> done', set()),
        ("b [fidelity=truncate] start -> a a -> b [label=X] a -> done [label=Y] b -> done", set()),
        ("b [fidelity=truncate] a [goal_gate=true] start -> a -> b -> done", set()),
        ("graph [default_fidelity=truncate] d [shape=diamond] start -> a -> d d -> b d -> done b -> done", set()),
        ("start -> b b -> a [label=X] b -> done [label=Y] a -> b [loop_restart=true]", {"a"}),
        ("graph [default_fidelity=truncate] start -> a -> b -> c -> done", {"a", "b"}),
    ],
    ids=[
        *("truncated", "named", "carried", "preamble", "fidelity of the edge", "command", "chooses a way"),
        *("goal gate", "diamond", "dropped by a restart", "two of three"),
    ],
)
def test_results_that_no_later_stage_receives(body, unseen):
    assert {node for rule, node in found(f"{ENDS} {body}") if rule == "result_unseen"} == unseen


def test_the_middle_of_a_long_way_is_left_out():
    assert way("abcdefgh") == "a -> b -> c -> d -> e -> … -> h"
    assert way("abcdefg") == "a -> b -> c -> d -> e -> f -> g"
