"""Finished drawings, measured: 200 generated graphs, the examples and ten hard cases, beside those of ``dot``.

``auto`` is what users have, ``dot`` takes orders of Graphviz, too; the bounds hold for both.
``dot`` is given the same boxes and labels in the same sizes.
"""

from __future__ import annotations

import shutil
from functools import lru_cache
from statistics import median

import pytest

from attractor_nb import parse_dot
from attractor_nb.decisions.branch_policies import branch_edges, joins_of
from attractor_nb.views.drawings.branch_stacks import BranchWalk
from attractor_nb.views.drawings.drawing import draw_scene
from attractor_nb.views.layout import MARGIN
from attractor_nb.views.outlines import Direction
from tests.views.drawn_graphs import HARD, KINDS, examples, generated, rows_of_drawings, wide_fan_out
from tests.views.measured_drawings import Drawing, drawn, drawn_by_dot

WIDEST = 1000.0

FAMILIES = (*KINDS, "examples", "hard cases")
needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="compares with dot, which is not installed")
for_all = pytest.mark.parametrize("family", rows_of_drawings(FAMILIES))


@lru_cache
def graphs(family: str) -> dict[str, object]:
    texts = {"examples": examples, "hard cases": lambda: HARD}.get(family, lambda: generated(family))()
    return {name: parse_dot(text) for name, text in texts.items()}


@lru_cache
def drawings(family: str) -> dict[str, Drawing]:
    return {name: drawn(graph) for name, graph in graphs(family).items()}


@lru_cache
def by_dot(family: str) -> dict[str, Drawing]:
    return {name: drawn_by_dot(graph) for name, graph in graphs(family).items()}


def found(family: str, what: str) -> dict[str, object]:
    """The faults of each drawing of a family that has any."""
    measured = ((name, getattr(drawing, what)) for name, drawing in drawings(family).items())
    return {name: faults for name, faults in measured if faults}


@for_all
def test_no_box_or_label_covers_another(family):
    assert found(family, "overlaps") == {}


@for_all
def test_no_edge_runs_through_a_box(family):
    assert found(family, "through_boxes") == {}


@for_all
def test_no_edge_runs_through_the_label_of_another(family):
    assert found(family, "struck_labels") == {}


@for_all
def test_the_line_of_a_loop_between_two_nodes_is_whole(family):
    assert found(family, "hidden_loops") == {}


@for_all
def test_edges_have_no_sharp_bends(family):
    assert found(family, "turns") == {}


@needs_dot
@for_all
def test_no_more_edges_cross_than_in_a_drawing_by_dot(family):
    more = {
        name: (len(drawing.crossings), len(theirs.crossings))
        for name, drawing in drawings(family).items()
        if len(drawing.crossings) > len((theirs := by_dot(family)[name]).crossings)
    }
    assert more == {}


@needs_dot
@for_all
def test_drawings_are_no_higher_than_those_of_dot(family):
    """Without the margins of the page; pictures of one line may be higher by some pixels."""
    higher = {}
    for name, drawing in drawings(family).items():
        inner, theirs = drawing.height - 2 * MARGIN, by_dot(family)[name].height
        if inner > max(1.05 * theirs, theirs + 36):
            higher[name] = inner, theirs
    assert higher == {}


ASIDE = 90.0
"""A drawing is at most so much wider than by ``dot``: its main path is straight, with the labels of ways back beside it."""


@needs_dot
@for_all
def test_drawings_are_no_wider_than_those_of_dot_but_where_texts_need_it(family):
    """``dot`` is given the same panels and lanes; it bends the main path where that saves room."""
    wider = {}
    for name, drawing in drawings(family).items():
        inner, theirs = drawing.width - 2 * MARGIN, max(by_dot(family)[name].width, drawing.widest_texts)
        if inner > max(1.15 * theirs, theirs + ASIDE):
            wider[name] = inner, theirs
    assert wider == {}


@needs_dot
def test_drawings_are_no_wider_than_those_of_dot_on_the_whole():
    ratios = [
        (drawing.width - 2 * MARGIN) / by_dot(family)[name].width
        for family in FAMILIES
        for name, drawing in drawings(family).items()
    ]
    assert len(ratios) > 200
    assert sum(ratios) / len(ratios) <= 0.97


def crookedness(graph: object, drawing: Drawing, nodes: list[str]) -> float:
    """The largest distance of nodes across the flow."""
    axis = 0 if draw_scene(graph).direction.is_vertical else 1
    places = [drawing.centre(node)[axis] for node in nodes]
    return max(places) - min(places)


def passed_by_all(graph) -> list[str]:
    """The nodes that every way from the start to the exit comes past."""
    outgoing = {name: [edge.target for edge in graph.outgoing_edges(name)] for name in graph.nodes}
    kinds = graph.handler_types.items()
    (start,), (end,) = ([name for name, kind in kinds if kind == wanted] for wanted in ("start", "exit"))

    def reaches_exit_without(left_out: str) -> bool:
        seen, ahead = {left_out, start}, [start]
        while ahead:
            fresh = set(outgoing[ahead.pop()]) - seen
            seen |= fresh
            ahead += fresh
        return end in seen

    inner = [name for name in graph.nodes if name not in {start, end}]
    return [start, *(name for name in inner if not reaches_exit_without(name)), end]


@for_all
def test_what_every_run_passes_stands_in_one_line(family):
    crooked = {
        name: apart
        for name, drawing in drawings(family).items()
        if (apart := crookedness(graph := graphs(family)[name], drawing, passed_by_all(graph))) > 1
    }
    assert crooked == {}


@pytest.mark.parametrize("family", ["chain", "loops", "skips"])
def test_a_chain_is_one_line_whatever_goes_past_it(family):
    crooked = {
        name: apart
        for name, drawing in drawings(family).items()
        if (apart := crookedness(graph := graphs(family)[name], drawing, list(graph.nodes))) > 1
    }
    assert crooked == {}


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6])
def test_a_fan_out_stands_over_the_middle_of_its_branches(count):
    drawing = drawn(parse_dot(wide_fan_out(count)))
    start, fan, join, end = (drawing.centre(name)[0] for name in ("start", "f", "j", "exit"))
    middle = sum(drawing.centre(f"b{number}")[0] for number in range(count)) / count
    assert (start, fan, join, end) == pytest.approx((middle,) * 4, abs=1)
    assert drawing.width / 2 == pytest.approx(middle, abs=2)


def off_the_middle(graph, drawing: Drawing, fan_out: str) -> float:
    """The distance of a fan-out from the middle of its branches: their middle one, or between the middle two.

    Where one of them holds a fan-out of its own, the middle of what they take together is one, too, but for a
    twentieth of the width.
    """
    axis = 0 if draw_scene(graph).direction.is_vertical else 1
    branches = [lane.members for lane in BranchWalk(graph).lanes(fan_out, joins_of(graph)[fan_out])]
    begins = [drawing.centre(edge.target)[axis] for edge in branch_edges(graph, fan_out)]
    boxes = [drawing.boxes[name] for members in branches for name in members]
    low, high = min(box[axis] for box in boxes), max(box[axis + 2] for box in boxes)
    place = drawing.centre(fan_out)[axis]
    apart = abs(place - median(begins))
    if any(graph.handler_types[name] == "parallel" for members in branches for name in members):
        twentieth = (drawing.width, drawing.height)[axis] / 20
        apart = min(apart, max(0, abs(place - (low + high) / 2) - twentieth))
    return apart


@for_all
def test_every_fan_out_stands_over_the_middle_of_its_branches(family):
    apart = {
        (name, fan_out): off_the_middle(graphs(family)[name], drawing, fan_out)
        for name, drawing in drawings(family).items()
        for fan_out in joins_of(graphs(family)[name])
    }
    assert {where: pixels for where, pixels in apart.items() if pixels > 1} == {}
    assert len(apart) >= {"fan_outs": 25, "nested": 49, "examples": 3, "hard cases": 2}.get(family, 0)


@pytest.mark.parametrize("family", ["fan_outs", "nested"])
def test_branches_stand_in_the_order_of_the_text(family):
    turned = {}
    for name, drawing in drawings(family).items():
        graph = graphs(family)[name]
        axis = 0 if draw_scene(graph).direction.is_vertical else 1
        for node, kind in graph.handler_types.items():
            if kind == "parallel":
                places = [drawing.centre(edge.target)[axis] for edge in graph.outgoing_edges(node)]
                if places != sorted(places):
                    turned[name, node] = places
    assert turned == {}


CHAIN = "digraph g {{ start [shape=Mdiamond] exit [shape=Msquare] start -> {} -> exit }}"


def test_a_chain_that_fits_a_cell_flows_to_the_right():
    drawing = drawn(parse_dot(CHAIN.format("plan -> write -> check -> ship")))
    assert drawing.width <= WIDEST
    assert drawing.height < 100


def test_a_chain_that_does_not_fit_a_cell_flows_down():
    drawing = drawn(parse_dot(CHAIN.format(" -> ".join(f"step_{number}" for number in range(12)))))
    assert drawing.width < 200
    assert drawing.height > 5 * drawing.width


def test_a_graph_that_names_its_direction_keeps_it():
    text = CHAIN.format("plan -> write -> check -> ship").replace("{", "{ rankdir=TB ", 1)
    assert draw_scene(parse_dot(text)).direction is Direction.DOWN
