"""Finished drawings, measured: 610 generated graphs, the examples and ten hard cases, beside those of ``dot``.

``dot`` is given the same boxes and labels in the same sizes. Of the 410 shapes of pipelines a sample is drawn each time.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import lru_cache
from statistics import median

import pytest

from attractor_nb import parse_dot
from attractor_nb.decisions.branch_policies import branch_edges, joins_of
from attractor_nb.views.drawings.branch_stacks import BranchWalk
from attractor_nb.views.drawings.drawing import densities_of, draw_scene
from attractor_nb.views.drawings.picture import NO_OVERLAY
from attractor_nb.views.drawings.svg import _laid_out
from attractor_nb.views.layout import MARGIN
from attractor_nb.views.outlines import Direction
from tests.views.drawn_graphs import HARD, KINDS, examples, generated, rows_of_drawings, wide_fan_out
from tests.views.measured_drawings import Drawing, drawn, drawn_by_dot
from tests.views.pipeline_shapes import SAMPLE_STEP, pipelines

WIDEST = 1000.0
LARGER = 2.0

FAMILIES = (*KINDS, "examples", "hard cases", "pipelines", "all pipelines")
needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="compares with dot, which is not installed")
for_all = pytest.mark.parametrize("family", rows_of_drawings(FAMILIES))


@lru_cache
def graphs(family: str) -> dict[str, object]:
    sources = {
        "examples": examples,
        "hard cases": lambda: HARD,
        "pipelines": lambda: pipelines(SAMPLE_STEP),
        "all pipelines": pipelines,
    }
    texts = sources.get(family, lambda: generated(family))()
    return {name: parse_dot(text) for name, text in texts.items()}


@lru_cache
def drawings(family: str) -> dict[str, Drawing]:
    return {name: drawn(graph) for name, graph in graphs(family).items()}


@lru_cache
def by_dot(family: str) -> dict[str, Drawing]:
    return {name: drawn_by_dot(graph) for name, graph in graphs(family).items()}


def flow(graph: object) -> Direction:
    """The direction of the drawing of a graph."""
    return _laid_out(graph, NO_OVERLAY, joins_of(graph), is_whole=True)[0].direction


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


LONGEST_RUN = {"skips": 380.0, "hard cases": 480.0}
"""In pixels, where many skips pass one chain; in all other drawings it is 100."""


@for_all
def test_edges_do_not_run_beside_one_another_for_long(family):
    runs = {name: drawing.longest_run_beside for name, drawing in drawings(family).items()}
    assert {name: run for name, run in runs.items() if run > LONGEST_RUN.get(family, 100.0)} == {}


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
def test_no_more_edges_with_labels_cross_than_in_a_drawing_by_dot(family):
    more = {
        name: (drawing.crossings_of_labels, theirs)
        for name, drawing in drawings(family).items()
        if (at := drawing.crossings_of_labels)
        and at > (theirs := sum(bool({a, b} & drawing.labels.keys()) for a, b, _ in by_dot(family)[name].crossings))
    }
    assert more == {}


ASIDE = 90.0
HIGHER = 40.0
"""A drawing is at most so much wider and higher than by ``dot``: its main path is straight, ways back are beside it."""
ROUTER = 1.35
"""A router stands over the middle of its ways, which are in the order of the text: it is at most so many times as large."""


def is_router(graph: object) -> bool:
    """True if a node other than a fan-out leads to three others or more."""
    ways = (len({edge.target for edge in graph.outgoing_edges(name)}) for name in graph.nodes)
    return "parallel" not in graph.handler_types.values() and max(ways) >= 3


@needs_dot
@for_all
def test_drawings_are_no_higher_than_those_of_dot(family):
    """Without the margins of the page."""
    higher = {}
    for name, drawing in drawings(family).items():
        inner, theirs = drawing.height - 2 * MARGIN, by_dot(family)[name].height
        if inner > max((ROUTER if is_router(graphs(family)[name]) else 1.05) * theirs, theirs + HIGHER):
            higher[name] = inner, theirs
    assert higher == {}


@needs_dot
@for_all
def test_drawings_are_no_wider_than_those_of_dot_but_where_texts_need_it(family):
    """``dot`` is given the same panels and lanes; it bends the main path where that saves room."""
    wider = {}
    for name, drawing in drawings(family).items():
        inner, theirs = drawing.width - 2 * MARGIN, max(by_dot(family)[name].width, drawing.widest_texts)
        if inner > max((ROUTER if is_router(graphs(family)[name]) else 1.2) * theirs, theirs + ASIDE):
            wider[name] = inner, theirs
    assert wider == {}


@for_all
def test_a_flow_to_the_right_that_nobody_asked_for_fits_its_cell_and_is_lower_or_narrower(family):
    """Otherwise the drawing flows down. A router that fits in neither way takes the narrower one."""
    worse = {}
    for name, drawing in drawings(family).items():
        graph = graphs(family)[name]
        if "rankdir" in graph.attrs or flow(graph).is_vertical:
            continue
        down = drawn(replace(graph, attrs={**graph.attrs, "rankdir": "TB"}))
        is_narrower = down.width > 0.97 * WIDEST and drawing.width < 1.02 * down.width
        if not is_narrower and (drawing.width > WIDEST or drawing.height > 0.85 * down.height):
            worse[name] = (drawing.width, drawing.height), (down.width, down.height)
    assert worse == {}


@for_all
def test_a_flow_to_the_right_that_the_text_asks_for_is_not_much_larger_than_down(family):
    larger = {}
    for name, drawing in drawings(family).items():
        graph = graphs(family)[name]
        if graph.attrs.get("rankdir") == "LR":
            down = drawn(replace(graph, attrs={**graph.attrs, "rankdir": "TB"}))
            ratio = drawing.width * drawing.height / (down.width * down.height)
            if ratio > LARGER:
                larger[name] = ratio
    assert larger == {}


@for_all
def test_no_label_is_cut_that_has_room(family):
    """A label of three lines of 24 characters, and a condition, are whole at each width but in very large drawings."""
    cut = {}
    for name, graph in graphs(family).items():
        for density in densities_of(graph)[:2]:
            scene = draw_scene(graph, density)
            cut |= {
                (name, box.node_id): box.lines
                for box in scene.boxes
                if box.lines[-1].endswith("…") and len(graph.nodes[box.node_id].label) <= 60
            }
            cut |= {
                (name, link.index): link.lines
                for link in scene.links
                if link.lines and link.lines[-1].endswith("…") and len(graph.edges[link.index].label) <= 40
            }
    assert cut == {}


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
    axis = 0 if flow(graph).is_vertical else 1
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
    axis = 0 if flow(graph).is_vertical else 1
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
        axis = 0 if flow(graph).is_vertical else 1
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
