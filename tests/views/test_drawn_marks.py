"""Finished drawings, their texts and marks measured: 200 generated graphs, the examples and hard cases, in many states.

Nothing that is written or marked stands on anything else: not on a text, a mark, an arrow head or an edge's line.
"""

from __future__ import annotations

import random
import re
from dataclasses import replace
from functools import lru_cache

import pytest

from attractor_nb import parse_dot
from attractor_nb.model.diagnostic import Diagnostic, Severity
from attractor_nb.model.states import NodeStatus
from attractor_nb.studio.timeline.heat_view import HeatMap, NodeHeat
from attractor_nb.views.drawings.picture import Mark, Overlay
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.state import ChildView, EdgeState, NodeState, RunView
from tests.views.drawn_graphs import HARD, KINDS, examples, generated, rows_of_drawings, skipping_chain, wide_fan_out
from tests.views.drawn_marks import Drawn, drawn

REASON = "exit code 2: the command ended with words that are too long for a node"
FAMILIES = (*KINDS, "examples", "hard cases")
LEGIBLE = 9.0
for_all = pytest.mark.parametrize("family", rows_of_drawings(FAMILIES))
NESTED = """digraph g {
  start [shape=Mdiamond]
  exit [shape=Msquare]
  subgraph cluster_outer {
    label="Everything that is done before"
    plan -> check
    subgraph cluster_inner { label="Inner review" check -> passed [label="seen"] passed [shape=diamond] }
    passed -> gate
    passed -> check [condition="outcome!=success"]
    gate [shape=hexagon, goal_gate=true]
  }
  start -> plan
  gate -> plan [label="[F] Fix"]
  gate -> exit [label="[A] Approve"]
  plan -> exit [label="skip"]
}"""


def states_of(graph, seed: str) -> dict[str, object]:
    """A run of many states: attempts and visits up to thousands, reasons, notes, edges passed and not."""
    chance = random.Random(seed)
    numbers = (0, 1, 2, 37, 120, 8000)
    states = {
        name: NodeState(
            chance.choice(list(NodeStatus)),
            chance.choice((1, 2, 12)),
            chance.choice(numbers),
            REASON,
            progress=chance.choice(("", "", "12/20")),
            note=chance.choice(("", "wait_all: 2 of 4, 1 failed")),
        )
        for name in graph.nodes
    }
    return {"states": states, "edges": {n: EdgeState(chance.choice(numbers)) for n in range(len(graph.edges))}}


@lru_cache
def graphs(family: str) -> dict[str, object]:
    texts = {"examples": examples, "hard cases": lambda: HARD}.get(family, lambda: generated(family))()
    return {name: parse_dot(text) for name, text in texts.items()}


@lru_cache
def drawings(family: str) -> dict[str, Drawn]:
    """Each graph of a family: as a run shows it, and with an error at a node and one at an edge."""
    found: dict[str, Drawn] = {}
    for name, graph in graphs(family).items():
        run = states_of(graph, name)
        found[name] = drawn(render_svg(graph, is_whole=False, **run))
        edge = graph.edges[len(graph.edges) // 2]
        errors = [
            Diagnostic("rule", Severity.ERROR, "wrong", node_id=list(graph.nodes)[-1]),
            Diagnostic("rule", Severity.ERROR, "wrong", edge=(edge.source, edge.target)),
        ]
        found[f"{name}, linted"] = drawn(render_svg(graph, is_whole=False, diagnostics=errors))
    return found


def faults(family: str, what: str) -> dict[str, object]:
    measured = ((name, getattr(drawing, what)) for name, drawing in drawings(family).items())
    return {name: found for name, found in measured if found}


@for_all
def test_no_text_or_mark_stands_on_another(family):
    assert faults(family, "overlaps") == {}


@for_all
def test_signs_of_states_keep_away_from_the_labels_of_their_nodes(family):
    assert faults(family, "tight") == {}


@for_all
def test_no_line_runs_through_a_text(family):
    assert faults(family, "struck") == {}


@for_all
def test_no_text_or_mark_stands_on_an_arrow_head(family):
    assert faults(family, "on_heads") == {}


@for_all
def test_texts_of_a_picture_can_be_read_in_a_cell(family):
    """A flow to the side that the author asked for is as long as it is."""
    small = {
        name: (drawing.smallest, drawing.width)
        for name, drawing in drawings(family).items()
        if drawing.smallest < LEGIBLE and "rankdir" not in graphs(family)[name.removesuffix(", linted")].attrs
    }
    assert small == {}


@pytest.mark.parametrize(
    "size", [10, 40, 100, *(pytest.param(size, marks=pytest.mark.campaign) for size in (200, 500))]
)
def test_the_marks_of_graphs_of_every_size_have_places_of_their_own(size):
    graph = parse_dot(skipping_chain(size))
    drawing = drawn(render_svg(graph, **states_of(graph, str(size))))
    assert (drawing.overlaps, drawing.struck, drawing.on_heads) == ([], [], [])


@pytest.mark.parametrize("rankdir", ["TB", "BT", "LR", "RL"])
def test_titles_of_nested_groups_and_labels_in_them_are_struck_by_nothing(rankdir):
    graph = parse_dot(NESTED.replace("{", f"{{ rankdir={rankdir}", 1))
    drawing = drawn(render_svg(graph, **states_of(graph, rankdir)))
    titles = [thing.what for thing in drawing.things if thing.what.startswith("panel-title")]
    assert len(titles) == 2
    assert (drawing.overlaps, drawing.struck, drawing.on_heads) == ([], [], [])


def test_the_words_of_a_comparison_and_the_drawing_of_a_child_run_have_places_too():
    graph = parse_dot(NESTED)
    marks = {name: Mark(("changed",), "B 2", "tip") for name in graph.nodes}
    overlay = Overlay(marks, {n: Mark(("only-a",), "A 2", "tip") for n in range(len(graph.edges))})
    compared = drawn(render_svg(graph, overlay=overlay, **states_of(graph, "a")))
    assert (compared.overlaps, compared.struck, compared.on_heads) == ([], [], [])
    child = RunView(nodes=states_of(graph, "b")["states"], edges={n: EdgeState(12) for n in range(len(graph.edges))})
    parent = parse_dot('digraph g { start [shape=Mdiamond] boss [shape=house, label="Editor"] start -> boss }')
    parent = replace(parent, children={"boss": graph})
    whole = drawn(render_svg(parent, children={"boss": ChildView("c", "kid", child)}))
    assert (whole.overlaps, whole.struck, whole.on_heads) == ([], [], [])


def test_the_numbers_of_heat_stand_inside_their_nodes():
    graph = parse_dot(NESTED)
    heat = HeatMap("time", graph, {name: NodeHeat((1.5 * place,)) for place, name in enumerate(graph.nodes)})
    svg = heat.to_svg()
    inner = svg[svg.index("<svg", 1) : svg.rindex('<g class="legend"')]
    drawing = drawn(inner[: inner.rindex("</svg>") + 6])
    assert "'1.50 s'" in str([thing.what for thing in drawing.things])
    assert (drawing.overlaps, drawing.struck, drawing.on_heads) == ([], [], [])


@pytest.mark.parametrize("seed", range(8))
def test_a_stack_of_branches_says_how_all_of_them_stand_in_whole_words(seed):
    graph, chance = parse_dot(wide_fan_out(30)), random.Random(seed)
    begun = [status for status in NodeStatus if status not in {NodeStatus.PENDING, NodeStatus.SKIPPED}]
    kinds = chance.sample(begun, seed % 6 + 1)
    states = {name: NodeState(chance.choice(kinds)) for name in graph.nodes}
    svg = render_svg(graph, states=states, is_whole=False)
    stack = svg[svg.index("node stack") :]
    count, words = (int(re.search(r"and (\d+) more<", stack)[1]), re.search(r'"detail"[^>]*>([^<]*)<', stack)[1])
    assert re.fullmatch(r"\d+ [a-z ]+(, \d+ [a-z ]+)*", words), words
    assert sum(int(part.split()[0]) for part in words.split(", ")) == count


@pytest.mark.parametrize("count", [7, 9, 12, 20, 60])
def test_a_picture_of_many_branches_can_be_read(count):
    graph = parse_dot(wide_fan_out(count))
    drawing = drawn(render_svg(graph, is_whole=False, **states_of(graph, str(count))))
    assert drawing.smallest >= LEGIBLE
