"""The usage of a run, as expected and at worst, from tables of small graphs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb import parse_dot
from attractor_nb.decisions.bounds import bounds_of
from attractor_nb.decisions.planning.plan import compile_plan
from attractor_nb.model.calls.providers import ModelName
from attractor_nb.model.outcome import Usage
from attractor_nb.studio.estimate.estimated_usage import Assumptions, Estimator, NodeCalls, RunEstimate

ENDS = "start [shape=Mdiamond] end [shape=Msquare] a b c"
CHEAP, DEAR, UNKNOWN = ModelName("cheap", "x"), ModelName("dear", "x"), ModelName("unknown", "x")
ASSUMED = Assumptions(
    response_tokens=10,
    max_response_tokens=100,
    carried_tokens=5,
    context_tokens=1000,
    tool_requests=2,
    max_tool_requests=3,
    tool_tokens=7,
    max_tool_tokens=20,
)


def price(name, usage):
    """A cent a hundred tokens for the cheap one, ten times that for the dear one."""
    per_token = {"cheap": 0.0001, "dear": 0.001}.get(name.model)
    return None if per_token is None else per_token * usage.total_tokens


def estimate(body, asked=None, children=None, **bounds):
    graph = parse_dot(f"digraph {{ {ENDS} {body} }}")
    asked = {"a": NodeCalls(20, (CHEAP,))} if asked is None else asked
    plan = compile_plan(graph, bounds=bounds_of(graph, bounds))
    return Estimator(plan, asked, children or {}, price, ASSUMED).estimate(lambda _: "")


def tokens(usage):
    return usage.input_tokens, usage.output_tokens


def test_one_stage_is_its_prompt_and_a_response():
    found = estimate("start -> a -> end")
    assert tokens(found.expected) == (20, 10)
    assert found.expected.cost_usd == pytest.approx(0.003)
    assert tokens(found.worst) == (1000, 100)  # its prompt, and what compact carries at most: over the window
    assert not found.is_shared


def test_a_response_is_no_longer_than_its_limit():
    found = estimate("start -> a -> end", {"a": NodeCalls(20, (CHEAP,), max_tokens=4)})
    assert (found.expected.output_tokens, found.worst.output_tokens) == (4, 4)


def test_attempts_are_counted_at_worst_only():
    once, thrice = estimate("start -> a -> end"), estimate("a [max_retries=2] start -> a -> end")
    assert thrice.expected == once.expected
    assert thrice.worst.total_tokens == 3 * once.worst.total_tokens
    assert thrice.nodes[0].worst.calls == 3


def test_a_fallback_chain_costs_all_of_its_models_at_worst():
    found = estimate("start -> a -> end", {"a": NodeCalls(20, (CHEAP, DEAR))})
    alone = estimate("start -> a -> end")
    assert found.expected == alone.expected
    assert found.worst.cost_usd == pytest.approx(alone.worst.cost_usd * 11)


def test_a_loop_is_bounded_by_visits():
    found = estimate("start -> a a -> a a -> end", max_node_visits=4)
    assert found.nodes[0].expected.calls == 1
    assert found.nodes[0].worst.calls == 4
    assert not found.is_shared


def test_steps_are_given_to_the_costliest_node_first():
    asked = {"a": NodeCalls(20, (CHEAP,)), "b": NodeCalls(20, (DEAR,))}
    found = estimate("start -> a -> b b -> a b -> end", asked, max_steps=6)
    one = estimate("start -> b -> end", {"b": asked["b"]})
    assert found.is_shared
    assert found.worst.cost_usd == pytest.approx(6 * one.worst.cost_usd)
    assert sum(node.worst.cost_usd for node in found.nodes) > found.worst.cost_usd


def test_a_node_off_the_likely_path_costs_nothing_expected():
    asked = {"a": NodeCalls(20, (CHEAP,)), "b": NodeCalls(20, (CHEAP,))}
    found = estimate('start -> a a -> end a -> b [condition="outcome=fail"] b -> end', asked)
    assert [node.expected.calls for node in found.nodes] == [1, 0]
    assert found.nodes[1].expected == Usage()
    assert found.nodes[1].worst.total_tokens


def test_what_is_carried_grows_with_the_stages_before():
    asked = {name: NodeCalls(20, (CHEAP,)) for name in "abc"}
    found = estimate("start -> a -> b -> c -> end", asked)
    assert [node.expected.input_tokens for node in found.nodes] == [20, 25, 30]


def test_full_fidelity_sends_what_its_thread_has_said():
    asked = {name: NodeCalls(20, (CHEAP,)) for name in "abc"}
    found = estimate("default_fidelity=full thread_id=t start -> a -> b -> c -> end", asked)
    assert [node.expected.input_tokens for node in found.nodes] == [20, 50, 80]
    apart = estimate("default_fidelity=full c [thread_id=own] thread_id=t start -> a -> b -> c -> end", asked)
    assert apart.nodes[2].expected.input_tokens == 20
    narrow = {**asked, "c": NodeCalls(20, (CHEAP,), context_tokens=60)}
    assert (
        estimate("default_fidelity=full thread_id=t start -> a -> b -> c -> end", narrow).nodes[2].expected.input_tokens
        == 60
    )


def test_tools_make_several_requests_each_with_what_was_said_before():
    found = estimate("start -> a -> end", {"a": NodeCalls(20, (CHEAP,), has_tools=True)})
    assert tokens(found.expected) == (20 + (20 + 17), 20)
    assert found.expected.calls == 2
    assert found.worst.calls == 3
    assert [node.expected.calls for node in found.nodes] == [2], "rows count requests, as the total does"


def test_an_unknown_price_is_unpriced_and_never_zero():
    asked = {"a": NodeCalls(20, (CHEAP,)), "b": NodeCalls(20, (UNKNOWN,))}
    found = estimate("start -> a -> b -> end", asked)
    assert found.nodes[1].expected.cost_usd is None
    assert found.expected.unpriced_calls == 1
    assert found.expected.cost_usd == pytest.approx(found.nodes[0].expected.cost_usd)


def test_a_child_run_is_counted_for_each_visit_and_attempt():
    child = RunEstimate((), Usage(5, 1, 0.5, 1), Usage(50, 10, 5.0, 3), False, ASSUMED)
    found = estimate("a [max_retries=1] start -> a -> end", {}, {"a": child})
    assert found.expected == child.expected
    assert found.worst == Usage(100, 20, 10.0, 6)


def test_all_branches_are_counted():
    body = "fan [shape=component] j [shape=tripleoctagon] start -> fan fan -> a fan -> b a -> j b -> j j -> end"
    found = estimate(body, {"a": NodeCalls(20, (CHEAP,)), "b": NodeCalls(20, (CHEAP,))})
    assert [node.expected.calls for node in found.nodes] == [1, 1]


@given(st.integers(1, 40), st.integers(0, 3), st.one_of(st.none(), st.integers(1, 30)), st.booleans(), st.booleans())
def test_the_worst_is_never_less_than_what_is_expected(steps, retries, limit, has_tools, is_loop):
    asked = {name: NodeCalls(20, (CHEAP,), limit, None, has_tools) for name in "ab"}
    loop = "b -> a" if is_loop else ""
    found = estimate(f"a [max_retries={retries}] start -> a -> b -> end {loop}", asked, max_steps=steps + 3)
    assert found.worst.total_tokens >= found.expected.total_tokens
    assert found.worst.cost_usd >= found.expected.cost_usd
