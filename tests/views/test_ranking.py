"""Ranks: valid for every graph, and optimal where all rankings can be tried."""

from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.views.drawings.drawing import draw_scene
from attractor_nb.views.layout import ranking
from attractor_nb.views.layout.layers import layer_scene
from attractor_nb.views.layout.ranking import ranks_of
from attractor_nb.views.layout.skeleton import skeleton_of
from tests.views.test_views_layout import graphs


@st.composite
def acyclic(draw, most, spans=(1, 2), most_legs=14):
    """A number of vertices, shuffled, and legs between them, some of them twice."""
    count = draw(st.integers(2, most))
    names = draw(st.permutations(range(count)))
    leg = st.tuples(st.sampled_from([*combinations(names, 2)]), st.sampled_from(spans))
    return count, [(*pair, span) for pair, span in draw(st.lists(leg, max_size=most_legs))]


def total_length(ranks, legs):
    return sum(ranks[lower] - ranks[upper] for upper, lower, _ in legs)


def is_valid(ranks, legs):
    return all(ranks[lower] - ranks[upper] >= span for upper, lower, span in legs)


def parts(count, legs):
    """The vertices of each connected part."""
    found = [{vertex} for vertex in range(count)]
    for upper, lower, _ in legs:
        first, second = (next(part for part in found if vertex in part) for vertex in (upper, lower))
        if first is not second:
            found.remove(second)
            first |= second
    return found


@given(acyclic(40, (1, 2, 5), 90))
def test_each_edge_spans_at_least_its_least_span_and_each_part_begins_in_the_first_layer(graph):
    count, legs = graph
    ranks = ranks_of(count, legs)
    assert len(ranks) == count
    assert is_valid(ranks, legs)
    assert [min(ranks[vertex] for vertex in part) for part in parts(count, legs)] == [0] * len(parts(count, legs))


@given(acyclic(4))
def test_no_ranking_of_a_small_graph_is_shorter(graph):
    count, legs = graph
    rankings = product(range(2 * count - 1), repeat=count)
    shortest = min(total_length(ranks, legs) for ranks in rankings if is_valid(ranks, legs))
    assert total_length(ranks_of(count, legs), legs) == shortest


@given(acyclic(9))
def test_no_set_of_vertices_can_move_by_a_layer_and_make_the_edges_shorter(graph):
    """The total length is convex in the ranks: where no such move helps, nothing does."""
    count, legs = graph
    ranks = ranks_of(count, legs)
    for chosen in product((0, 1), repeat=count):
        moved = [rank + step for rank, step in zip(ranks, chosen, strict=True)]
        assert not is_valid(moved, legs) or total_length(moved, legs) >= total_length(ranks, legs)


@pytest.mark.parametrize(
    ("legs", "ranks"),
    [
        pytest.param([(0, 1, 1), (1, 2, 1), (0, 2, 1)], [0, 1, 2], id="an edge that skips"),
        pytest.param([(0, 1, 1), (1, 2, 1), (2, 3, 1), (0, 4, 1), (4, 3, 1)], [0, 1, 2, 3, 1], id="near what is above"),
        pytest.param([(0, 1, 1), (1, 2, 1), (2, 3, 1), (4, 3, 1)], [0, 1, 2, 3, 2], id="a second source"),
        pytest.param([(0, 1, 1), (1, 2, 1), (2, 3, 1), (0, 4, 1), (4, 3, 2), (4, 3, 2)], [0, 1, 2, 3, 1], id="room"),
        pytest.param([(0, 1, 1), (1, 2, 1), (0, 3, 1), (3, 2, 1), (3, 2, 1), (0, 4, 3)], [0, 1, 2, 1, 3], id="twice"),
        pytest.param([(0, 1, 2), (3, 2, 1)], [0, 2, 1, 0], id="two parts"),
    ],
)
def test_ranks(legs, ranks):
    assert ranks_of(len(ranks), legs) == ranks


@given(acyclic(12))
def test_a_ranking_that_is_given_up_is_valid(graph):
    """Every step leaves a valid ranking, so their number may be limited."""
    count, legs = graph
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "_MOST_WORK", 0)
        assert is_valid(ranks_of(count, legs), legs)


@given(graphs(has_panels=True))
def test_edges_are_led_from_layer_to_layer_through_vertices_of_their_own(graph):
    """Whatever loops, cycles, parallel edges and parts a graph has."""
    skeleton = skeleton_of(draw_scene(graph))
    layered = layer_scene(skeleton)
    assert sorted(vertex for layer in layered.layers for vertex in layer) == sorted(layered.ranks)
    assert all(layered.layers)
    inner = [vertex for chain in layered.chains for vertex in chain[1:-1]]
    assert len(set(inner)) == len(inner)
    assert min(inner, default=len(graph.nodes)) >= len(graph.nodes)
    for position, chain in enumerate(layered.chains):
        assert ((chain[0], chain[-1]) == skeleton.ends[position]) if chain else skeleton.is_loop(position)
        ranks = [layered.ranks[vertex] for vertex in chain]
        assert ranks == list(range(ranks[0], ranks[0] + len(ranks))) if chain else ranks == []
        assert position not in layered.beads or layered.beads[position] in chain
