"""The direction of a drawing: the one that the text names, else to the right where that fits a cell, else down."""

import pytest

from attractor_nb import parse_dot
from attractor_nb.views.drawings.drawing import draw_scene
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.layout import lay_out
from attractor_nb.views.outlines import Direction
from tests.views.drawn_graphs import HARD, wide_fan_out
from tests.views.drawn_marks import drawn as marks_of
from tests.views.measured_drawings import drawn

GROUPS = """digraph g {
  start [shape=Mdiamond]
  exit [shape=Msquare]
  subgraph cluster_a { label="Before"; a1; a2; a3; a4; a1 -> a2 -> a3 -> a4 }
  subgraph cluster_b { label="In between"; b1; b2; b3; b4; b1 -> b2 -> b3 -> b4 }
  subgraph cluster_c { label="Behind"; c1; c2; c3; c4; c1 -> c2 -> c3 -> c4 }
  start -> a1
  a4 -> b1
  b4 -> c1
  c4 -> exit
  b4 -> a1 [label="again"]
}"""
LOOPS = "".join(
    f"""s{number} -> c{number} c{number} [shape=diamond] c{number} -> s{number + 1} [condition="outcome=success"]
    c{number} -> s0 [condition="outcome=fail && context.why=transient"]
    c{number} -> post [condition="outcome=fail && context.why!=transient"]
    """
    for number in range(10)
)


def chain(count):
    steps = " -> ".join(f"step_{number}" for number in range(count))
    return f"digraph g {{ start [shape=Mdiamond] exit [shape=Msquare] start -> {steps} -> exit }}"


def directed(text, rankdir):
    return text.replace("{", f"{{ rankdir={rankdir}", 1)


@pytest.mark.parametrize("rankdir", ["LR", "RL"])
@pytest.mark.parametrize(
    "text", [chain(12), chain(60), HARD["forty nodes"], GROUPS], ids=["12", "60", "forty", "groups"]
)
def test_a_flow_to_the_side_that_the_text_names_is_one_line_at_any_length(text, rankdir):
    graph = parse_dot(directed(text, rankdir))
    picture = drawn(graph)
    assert picture.overlaps == picture.through_boxes == picture.struck_labels == picture.turns == []
    marks = marks_of(render_svg(graph))
    assert marks.overlaps == marks.struck == marks.on_heads == []
    sign = 1 if rankdir == "LR" else -1
    places = [sign * picture.centre(name)[0] for name in graph.nodes if name not in {"start", "exit"}]
    assert places == sorted(places)


def test_a_direction_that_is_named_wins():
    assert draw_scene(parse_dot(directed(chain(4), "TB"))).direction is Direction.DOWN
    down = drawn(parse_dot(directed(chain(12), "TB")))
    assert down.height > 3 * down.width


def test_what_has_many_branches_or_many_lines_flows_down():
    for text in (wide_fan_out(20), HARD["every pair of seven"], HARD["two hundred nodes"]):
        assert draw_scene(parse_dot(text)).direction is Direction.DOWN


@pytest.mark.parametrize("rankdir", ["LR", "RL"])
def test_a_flow_that_is_crossed_by_many_loops_is_never_much_larger_to_the_side_than_down(rankdir):
    text = f"digraph g {{ start [shape=Mdiamond] done [shape=Msquare] start -> s0 s10 -> done post -> s0 {LOOPS} }}"
    aside, down = (lay_out(draw_scene(parse_dot(directed(text, direction)))) for direction in (rankdir, "TB"))
    assert aside.width * aside.height <= 1.2 * down.width * down.height
