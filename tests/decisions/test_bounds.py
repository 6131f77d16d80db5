"""Bounds that end a run (ruling 18)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from attractor_nb.decisions.bounds import RunBounds, bounds_of, cycle_of, exceeded
from attractor_nb.errors import OptionError
from attractor_nb.model.outcome import Usage
from attractor_nb.model.vocabulary.value_forms import Duration

RUN = {
    "steps": 4,
    "node_id": "plan",
    "node_visits": 1,
    "usage": Usage(600, 400, 0.5, 2),
    "elapsed_seconds": 60.0,
    "completed": ("start", "plan", "implement", "review"),
}
CYCLE = "in the cycle plan -> implement -> review -> plan"

REACHED = {
    "max_steps": (RunBounds(max_steps=4), f"max_steps=4 reached: 4 stages executed, {CYCLE}"),
    "max_node_visits": (RunBounds(max_node_visits=1), f"max_node_visits=1 reached: plan had 1 visit, {CYCLE}"),
    "max_budget_usd": (RunBounds(max_budget_usd=0.5), f"max_budget_usd=0.5 reached: $0.5000 spent, {CYCLE}"),
    "max_tokens_total": (RunBounds(max_tokens_total=1000), f"max_tokens_total=1000 reached: 1000 tokens used, {CYCLE}"),
    "max_duration": (RunBounds(max_duration_seconds=60), f"max_duration=1m reached: 60.0 s of running time, {CYCLE}"),
}


@pytest.mark.parametrize(("bounds", "message"), REACHED.values(), ids=REACHED)
def test_ruling_18_a_reached_bound_is_named_with_its_value_and_the_cycle(bounds, message):
    reached = exceeded(bounds, **RUN)
    assert (reached.reason, reached.bound) == (message, message.partition("=")[0])


BELOW = {
    "the defaults": RunBounds(),
    "one step left": RunBounds(max_steps=5),
    "one visit left": RunBounds(max_node_visits=2),
    "a cent left": RunBounds(max_budget_usd=0.51),
    "a token left": RunBounds(max_tokens_total=1001),
    "a second left": RunBounds(max_duration_seconds=61),
}


@pytest.mark.parametrize("bounds", BELOW.values(), ids=BELOW)
def test_a_run_below_its_bounds_goes_on(bounds):
    assert exceeded(bounds, **RUN) is None


@pytest.mark.parametrize(
    "bounds", [RunBounds(max_budget_usd=0), RunBounds(max_tokens_total=0)], ids=["no money", "no tokens"]
)
def test_a_bound_of_nothing_lets_free_stages_go_on(bounds):
    assert exceeded(bounds, **{**RUN, "usage": Usage()}) is None


def test_a_bound_reached_outside_any_cycle_names_the_next_node():
    found = exceeded(RunBounds(max_steps=1), **{**RUN, "steps": 1, "completed": ("start",)})
    assert found.reason == "max_steps=1 reached: 1 stage executed, before plan"


CYCLES = {
    "none": ([], ""),
    "no node twice": (["a", "b"], ""),
    "a node on itself": (["a", "a"], "a -> a"),
    "the innermost of nested cycles": (["a", "b", "c", "b", "c", "b"], "b -> c -> b"),
    "a long one is cut": ([*"abcdefghijklmnop", "a"], "a -> b -> c -> d -> e -> f -> … -> l -> m -> n -> o -> p -> a"),
}


@pytest.mark.parametrize(("completed", "expected"), CYCLES.values(), ids=CYCLES)
def test_a_cycle_is_told_from_the_last_visit_of_its_node(completed, expected):
    assert cycle_of(completed) == expected


@given(st.lists(st.sampled_from("abc"), max_size=20))
def test_a_cycle_begins_and_ends_with_the_last_node(completed):
    nodes = cycle_of(completed).split(" -> ")
    assert nodes == [""] or nodes[0] == nodes[-1] == completed[-1]


def test_bounds_come_from_the_graph(build):
    graph = build.graph(
        max_steps=9,
        max_node_visits=3,
        max_restarts=1,
        max_goal_gate_redirects=2,
        max_budget_usd=1.5,
        max_tokens_total=100,
        max_duration=Duration(90_000),
    )
    assert bounds_of(graph) == RunBounds(9, 3, 1, 2, 1.5, 100, 90.0)


def test_ruling_18_has_the_defaults(build):
    assert bounds_of(build.graph()) == RunBounds(1000, None, 10, 10, None, None, None)


OVERRIDES = {
    "a number": ({"max_steps": 5}, {"max_steps": 5}),
    "None keeps the graph's": ({"max_steps": None}, {}),
    "no restarts": ({"max_restarts": 0}, {"max_restarts": 0}),
    "a whole budget": ({"max_budget_usd": 2}, {"max_budget_usd": 2}),
    "seconds": ({"max_duration_seconds": 1.5}, {"max_duration_seconds": 1.5}),
    "a duration under the graph's name": ({"max_duration": Duration(2000)}, {"max_duration_seconds": 2.0}),
    "a fraction of a unit": ({"max_duration": "0.5s"}, {"max_duration_seconds": 0.5}),
    "a duration as text": ({"max_duration": "15m"}, {"max_duration_seconds": 900.0}),
}


@pytest.mark.parametrize(("overrides", "changes"), OVERRIDES.values(), ids=OVERRIDES)
def test_a_caller_overrides_the_graph(build, overrides, changes):
    assert bounds_of(build.graph(max_steps=9), overrides) == replace(RunBounds(max_steps=9), **changes)


REFUSED = {
    "a text": ({"max_steps": "many"}, "max_steps cannot be 'many'"),
    "no steps at all": ({"max_steps": 0}, "give a whole number, at least 1"),
    "a boolean": ({"max_restarts": True}, "max_restarts cannot be True"),
    "half a step": ({"max_steps": 1.5}, "give a whole number"),
    "a negative budget": ({"max_budget_usd": -1}, "give a number, at least 0"),
    "not a number": ({"max_budget_usd": float("nan")}, "max_budget_usd cannot be nan"),
    "an endless budget": ({"max_budget_usd": float("inf")}, "max_budget_usd cannot be inf"),
    "a text that is no duration": ({"max_duration": "soon"}, "give a duration such as 15m or 1.5h, or seconds"),
    "an unknown name": ({"max_step": 5}, 'did you mean "max_steps"?'),
}


@pytest.mark.parametrize(("overrides", "message"), REFUSED.values(), ids=REFUSED)
def test_a_bad_override_is_refused_with_a_remedy(build, overrides, message):
    with pytest.raises(OptionError) as caught:
        bounds_of(build.graph(), overrides)
    assert message in str(caught.value)
