"""The edge that a stage takes (spec 3.3; rulings 12 and 14)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.decisions.routing import ConditionOutcome, describe_no_match, select_edge
from attractor_nb.model.outcome import StageStatus

SUCCESS, FAIL = StageStatus.SUCCESS, StageStatus.FAIL
CONTEXT = {"tests": 3, "ok": True, "context.stage": "late"}


def choose(plan, *, status=SUCCESS, label="", suggested=(), context=None):
    return select_edge(plan.nodes["work"], ConditionOutcome(status, label), suggested, (context or CONTEXT).get)


def out(target, **attrs):
    return ("work", target, attrs)


ROUTES = {
    # name: edges, what the stage says, expected (target, reason)
    "the only edge": ([out("a")], {}, ("a", "only_edge")),
    "a condition that holds": ([out("a"), out("b", condition="outcome=success")], {}, ("b", "condition")),
    "a condition before the preferred label": (
        [out("a", label="Go"), out("b", condition="ok=true")],
        {"label": "Go"},
        ("b", "condition"),
    ),
    "the heavier of two true conditions": (
        [out("a", condition="ok=true"), out("b", condition="tests=3", weight=2)],
        {},
        ("b", "condition"),
    ),
    "the first target of two true conditions": (
        [out("b", condition="ok=true"), out("a", condition="tests=3")],
        {},
        ("a", "condition"),
    ),
    "a condition on a prefixed key": ([out("a"), out("b", condition="context.stage=late")], {}, ("b", "condition")),
    "the preferred label": ([out("a", weight=9), out("b", label="Fix")], {"label": "Fix"}, ("b", "preferred_label")),
    "labels compare without accelerators and case": (
        [out("a", weight=9), out("b", label="[F] Fix it")],
        {"label": " fix IT "},
        ("b", "preferred_label"),
    ),
    "the preferred label before suggested ids": (
        [out("a"), out("b", label="Fix")],
        {"label": "Fix", "suggested": ("a",)},
        ("b", "preferred_label"),
    ),
    "of two edges with the label the suggested one": (
        [out("a", label="Go", weight=5), out("b", label="[G] Go")],
        {"label": "Go", "suggested": ("b",)},
        ("b", "preferred_label"),
    ),
    "a label that no edge has": ([out("a", label="Go")], {"label": "Stop"}, ("a", "only_edge")),
    "suggested ids in their own order": (
        [out("a", weight=9), out("b"), out("c")],
        {"suggested": ("nowhere", "c", "b")},
        ("c", "suggested_id"),
    ),
    "ruling 12: default before weight": ([out("a", weight=9), out("b", default=True)], {}, ("b", "default")),
    "ruling 12: suggested ids before default": (
        [out("a"), out("b", default=True)],
        {"suggested": ("a",)},
        ("a", "suggested_id"),
    ),
    "ruling 12: conditions before default": (
        [out("a", condition="ok=true"), out("b", default=True)],
        {},
        ("a", "condition"),
    ),
    "ruling 12: default when no condition holds": (
        [out("a", condition="ok=false"), out("b", default=True)],
        {},
        ("b", "default"),
    ),
    "the preferred label of a default edge": (
        [out("a"), out("b", default=True, label="Stop")],
        {"label": "Stop"},
        ("b", "preferred_label"),
    ),
    "the highest weight": ([out("a"), out("b", weight=1)], {}, ("b", "weight")),
    "a negative weight is the lowest": ([out("a", weight=-1), out("b")], {}, ("b", "weight")),
    "the first target id at equal weight": ([out("c"), out("b"), out("d")], {}, ("b", "lexical")),
    "two edges to one target": ([out("a"), out("a")], {}, ("a", "lexical")),
    "a blank condition is none": ([out("a", condition="  ")], {}, ("a", "only_edge")),
}


@pytest.mark.parametrize(("edges", "says", "expected"), ROUTES.values(), ids=ROUTES)
def test_an_edge_is_selected_by_condition_then_label_then_id_then_default_then_weight_then_name(
    build, edges, says, expected
):
    step = choose(build.plan(edges), **says)
    assert (step.target, step.reason) == expected
    assert step.edge.target == step.target


NEVER = {
    "alone": ([out("a", condition="ok=false")], {}),
    "with the preferred label": ([out("a", condition="ok=false", label="Go")], {"label": "Go"}),
    "with a suggested id": ([out("a", condition="ok=false")], {"suggested": ("a",)}),
    "with default=true": ([out("a", condition="ok=false", default=True)], {}),
    "with the highest weight": ([out("a", condition="ok=false", weight=9)], {}),
}


@pytest.mark.parametrize(("edges", "says"), NEVER.values(), ids=NEVER)
def test_ruling_14_an_edge_whose_condition_is_false_is_never_taken(build, edges, says):
    assert choose(build.plan(edges), **says) is None


def test_a_node_without_edges_selects_nothing(build):
    assert choose(build.plan(nodes={"work": {}})) is None


def test_the_step_says_what_decided_it(build):
    plan = build.plan([out("a", condition="ok=true && tests=3")])
    assert choose(plan).detail == "ok=true && tests=3"


EDGES = st.lists(
    st.builds(
        lambda target, weight, condition, label, default: out(
            target, weight=weight, condition=condition, label=label, default=default
        ),
        st.sampled_from("abcd"),
        st.integers(-1, 2),
        st.sampled_from(["", "ok=true", "ok=false", "outcome=success"]),
        st.sampled_from(["", "Go", "[G] go", "Stop"]),
        st.booleans(),
    ),
    min_size=1,
    max_size=6,
)


@given(EDGES, st.randoms(use_true_random=False), st.sampled_from(["", "go", "Stop"]), st.sampled_from(["", "b", "c"]))
def test_selection_does_not_depend_on_the_order_of_edges(build, edges, random, label, suggested):
    shuffled = list(edges)
    random.shuffle(shuffled)
    says = {"label": label, "suggested": (suggested,) if suggested else ()}
    first, second = (choose(build.plan(order), **says) for order in (edges, shuffled))
    assert (first and (first.target, first.reason, first.edge.edge)) == (
        second and (second.target, second.reason, second.edge.edge)
    )


@given(EDGES)
def test_a_selected_edge_has_no_condition_or_one_that_holds(build, edges):
    step = choose(build.plan(edges))
    assert step is None or step.edge.edge.condition in {"", "ok=true", "outcome=success"}


def test_a_missing_match_names_each_condition_and_the_values_it_saw(build):
    plan = build.plan([out("a", condition="tests=0 && ok=true"), out("b", condition="outcome=fail")])
    text = describe_no_match(plan.nodes["work"], ConditionOutcome(SUCCESS, "Go"), CONTEXT.get)
    assert text == (
        'no matching edge from work (outcome success, preferred label "Go"): '
        'a when `tests=0` saw "3"; b when `outcome=fail` saw "success"'
    )


def test_a_long_value_is_cut_in_the_message(build):
    plan = build.plan([out("a", condition="text=no")])
    text = describe_no_match(plan.nodes["work"], ConditionOutcome(SUCCESS), {"text": "x" * 5000}.get)
    assert len(text) < 200


def test_an_unconditional_edge_that_a_failure_may_not_take_is_named_as_such(build):
    plan = build.plan([out("a")])
    text = describe_no_match(plan.nodes["work"], ConditionOutcome(FAIL), CONTEXT.get)
    assert text == "no matching edge from work (outcome fail): a is not for a failure"
