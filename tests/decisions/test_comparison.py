"""The alignment of the steps of two paths, and two graphs as one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.languages.dot import parse_dot
from attractor_nb.studio.compare import run_alignment as comparison
from attractor_nb.studio.compare.run_alignment import ComparedVisit, align, changed_values, unite


def way(text, **others):
    counts = {}
    steps = []
    for name in text.split():
        counts[name] = counts.get(name, 0) + 1
        steps.append(ComparedVisit(name, "", counts[name], "success", **others))
    return steps


def shape(pairs):
    return [(pair.a and pair.a.node, pair.b and pair.b.node) for pair in pairs]


def test_equal_ways_have_no_difference():
    pairs = align(way("s a b d"), way("s a b d"))
    assert shape(pairs) == [("s", "s"), ("a", "a"), ("b", "b"), ("d", "d")]
    assert [pair.differences for pair in pairs] == [()] * 4


def test_a_detour_stands_between_what_both_did():
    pairs = align(way("s a d"), way("s a b c d"))
    assert shape(pairs) == [("s", "s"), ("a", "a"), (None, "b"), (None, "c"), ("d", "d")]
    assert pairs[2].differences == ("only in B",)


def test_branches_are_aligned_each_for_itself_whatever_their_order():
    a = [ComparedVisit("x", "fan/x", 1, "success"), ComparedVisit("y", "fan/y", 1, "success")]
    pairs = align(a, list(reversed(a)))
    assert [pair.differences for pair in pairs] == [(), ()]
    assert [pair.branch for pair in pairs] == ["fan/x", "fan/y"]


def test_what_differs_in_a_step_is_named():
    a = ComparedVisit("a", "", 1, "success", label="yes", next_node="b", texts={"prompt": "p", "response": "r"})
    b = ComparedVisit("a", "", 1, "fail", reason="x", attempts=2, next_node="c", texts={"prompt": "p", "response": "q"})
    (pair,) = align([a], [b])
    assert pair.differences == ("outcome", "label", "way on", "attempts", "response")


def test_ways_too_long_to_be_aligned_are_paired_by_their_visits(monkeypatch):
    monkeypatch.setattr(comparison, "MAX_ALIGNED", 3)
    pairs = align(way("a b a"), way("b a a a"))
    assert shape(pairs) == [("a", "a"), ("b", "b"), ("a", "a"), (None, "a")]


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_no_step_is_lost_or_told_twice_and_each_way_keeps_its_order(a, b):
    ways = way(" ".join(a)), way(" ".join(b))
    pairs = align(*ways)
    assert [pair.a for pair in pairs if pair.a] == ways[0]
    assert [pair.b for pair in pairs if pair.b] == ways[1]


def test_two_graphs_as_one_have_each_edge_once_and_know_whose_it_is():
    a = parse_dot('digraph { s [shape=Mdiamond] e [shape=Msquare] a s -> a -> e s -> e [condition="context.x=1"] }')
    b = parse_dot(
        'digraph { s [shape=Mdiamond] e [shape=Msquare] a b s -> a -> b -> e s -> e [condition="context.x=2"] }'
    )
    united = unite(a, b)
    ends = [(edge.source, edge.target, edge.condition) for edge in united.graph.edges]
    assert len(set(ends)) == len(ends) == 6
    assert (united.only_a, united.only_b) == (frozenset(), {"b"})
    for graph, places in ((a, united.edges_a), (b, united.edges_b)):
        for edge, place in zip(graph.edges, places, strict=True):
            assert ends[place] == (edge.source, edge.target, edge.condition)


def test_twin_edges_stay_two():
    twins = parse_dot("digraph { s [shape=Mdiamond] e [shape=Msquare] s -> e; s -> e }")
    assert unite(twins, twins).edges_a == (0, 1)


def test_changed_values_leave_the_engines_counters_out():
    a = {"n": 1, "same": [1], "internal.retry_count.x": 1, "gone": "x"}
    b = {"n": 2, "same": [1]}
    assert [(change.key, change.a, change.b) for change in changed_values(a, b)] == [("gone", "x", None), ("n", 1, 2)]
