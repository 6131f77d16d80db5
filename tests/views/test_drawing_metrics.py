"""Finished drawings, measured: 200 generated graphs, the examples and ten hard cases, beside those of ``dot``.

``auto`` is what users have, ``layered`` what notebooks and machines without Graphviz have; the bounds hold for both.
``dot`` is given the same boxes and labels in the same sizes.
"""

from __future__ import annotations

import shutil
from functools import lru_cache

import pytest

from attractor_nb import parse_dot
from attractor_nb.views.branch_stacks import WIDEST
from attractor_nb.views.drawing import draw_scene
from attractor_nb.views.layout import MARGIN
from attractor_nb.views.scene import Direction
from tests.views.drawn_graphs import HARD, KINDS, examples, generated, wide_fan_out
from tests.views.measured_drawings import Drawing, drawn, drawn_by_dot

ENGINES = ("auto", "layered")
FAMILIES = (*KINDS, "examples", "hard cases")
needs_dot = pytest.mark.skipif(
    shutil.which("dot") is None, reason="compares with dot, which is not installed"
)
for_all = pytest.mark.parametrize(
    ("family", "engine"), [(family, engine) for family in FAMILIES for engine in ENGINES]
)


@lru_cache
def graphs(family: str) -> dict[str, object]:
    texts = {"examples": examples, "hard cases": lambda: HARD}.get(family, lambda: generated(family))()
    return {name: parse_dot(text) for name, text in texts.items()}


@lru_cache
def drawings(family: str, engine: str) -> dict[str, Drawing]:
    return {name: drawn(graph, engine) for name, graph in graphs(family).items()}


@lru_cache
def by_dot(family: str) -> dict[str, Drawing]:
    return {name: drawn_by_dot(graph) for name, graph in graphs(family).items()}


def found(family: str, engine: str, what: str) -> dict[str, object]:
    """What is wrong with each drawing of a family that has something wrong."""
    measured = ((name, getattr(drawing, what)) for name, drawing in drawings(family, engine).items())
    return {name: faults for name, faults in measured if faults}


@for_all
def test_no_box_or_label_covers_another(family, engine):
    assert found(family, engine, "overlaps") == {}


@for_all
def test_no_edge_runs_through_a_box(family, engine):
    assert found(family, engine, "through_boxes") == {}


@for_all
def test_no_edge_runs_through_the_label_of_another(family, engine):
    assert found(family, engine, "struck_labels") == {}


@for_all
def test_the_line_of_a_loop_between_two_nodes_is_whole(family, engine):
    assert found(family, engine, "hidden_loops") == {}


@for_all
def test_edges_have_no_sharp_bends(family, engine):
    assert found(family, engine, "turns") == {}


@needs_dot
@for_all
def test_no_more_edges_cross_than_in_a_drawing_by_dot(family, engine):
    more = {
        name: (len(drawing.crossings), len(theirs.crossings))
        for name, drawing in drawings(family, engine).items()
        if len(drawing.crossings) > len((theirs := by_dot(family)[name]).crossings)
    }
    assert more == {}


@needs_dot
@for_all
def test_drawings_are_no_higher_than_those_of_dot(family, engine):
    """Without the margins of the page; pictures of one line may be higher by some pixels.

    Where the flow runs sideways ``dot`` sets boxes one behind another that we set one below another: it is wider.
    """
    higher = {}
    for name, drawing in drawings(family, engine).items():
        inner, theirs = drawing.height - 2 * MARGIN, by_dot(family)[name].height
        is_sideways = not draw_scene(graphs(family)[name]).direction.is_vertical
        if inner > max((1.2 if is_sideways else 1.05) * theirs, theirs + 10):
            higher[name] = inner, theirs
    assert higher == {}


def places_across(name: str, drawing: Drawing, nodes: list[str]) -> list[float]:
    """Where nodes stand across the flow of a drawing."""
    first, last = drawing.centre("start"), drawing.centre("exit")
    axis = 0 if abs(last[1] - first[1]) > abs(last[0] - first[0]) else 1
    return [drawing.centre(node)[axis] for node in nodes]


def passed_by_all(graph) -> list[str]:
    """The nodes that every way from the start to the exit comes past."""
    outgoing = {name: [edge.target for edge in graph.outgoing_edges(name)] for name in graph.nodes}

    def reaches_exit_without(left_out: str) -> bool:
        seen, ahead = {left_out, "start"}, ["start"]
        while ahead:
            fresh = set(outgoing[ahead.pop()]) - seen
            seen |= fresh
            ahead += fresh
        return "exit" in seen

    inner = [name for name in graph.nodes if name not in {"start", "exit"}]
    return ["start", *(name for name in inner if not reaches_exit_without(name)), "exit"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("family", KINDS)
def test_what_every_run_passes_stands_in_one_line(family, engine):
    crooked = {
        name: places
        for name, drawing in drawings(family, engine).items()
        if max(places := places_across(name, drawing, passed_by_all(graphs(family)[name]))) - min(places) > 1
    }
    assert crooked == {}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("family", ["chain", "loops", "skips"])
def test_a_chain_is_one_line_whatever_goes_past_it(family, engine):
    crooked = {
        name: places
        for name, drawing in drawings(family, engine).items()
        if max(places := places_across(name, drawing, list(graphs(family)[name].nodes))) - min(places) > 1
    }
    assert crooked == {}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("count", [2, 3, 4, 5, 6])
def test_a_fan_out_stands_over_the_middle_of_its_branches(count, engine):
    drawing = drawn(parse_dot(wide_fan_out(count)), engine)
    start, fan, join, end = (drawing.centre(name)[0] for name in ("start", "f", "j", "exit"))
    middle = sum(drawing.centre(f"b{number}")[0] for number in range(count)) / count
    assert (start, fan, join, end) == pytest.approx((middle,) * 4, abs=1)
    assert drawing.width / 2 == pytest.approx(middle, abs=2)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("family", ["fan_outs", "nested"])
def test_branches_stand_in_the_order_of_the_text(family, engine):
    turned = {}
    for name, drawing in drawings(family, engine).items():
        graph = graphs(family)[name]
        for node, kind in graph.handler_types.items():
            if kind == "parallel":
                places = [drawing.centre(edge.target)[0] for edge in graph.outgoing_edges(node)]
                if places != sorted(places):
                    turned[name, node] = places
    assert turned == {}


CHAIN = "digraph g {{ start [shape=Mdiamond] exit [shape=Msquare] start -> {} -> exit }}"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_chain_that_fits_a_cell_flows_to_the_right(engine):
    drawing = drawn(parse_dot(CHAIN.format("plan -> write -> check -> ship")), engine)
    assert drawing.width <= WIDEST
    assert drawing.height < 100


@pytest.mark.parametrize("engine", ENGINES)
def test_a_chain_that_would_be_too_small_to_read_flows_down(engine):
    drawing = drawn(parse_dot(CHAIN.format(" -> ".join(f"step_{number}" for number in range(12)))), engine)
    assert drawing.height > drawing.width


def test_a_graph_that_names_its_direction_keeps_it():
    text = CHAIN.format("plan -> write -> check -> ship").replace("{", "{ rankdir=TB ", 1)
    assert draw_scene(parse_dot(text)).direction is Direction.DOWN
