"""Flows to the right that are longer than a cell: where they are broken, and what their lines look like."""

from itertools import combinations, pairwise

import pytest

from attractor_nb import parse_dot
from attractor_nb.views.drawings.drawing import draw_scene
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.layout import lay_out
from attractor_nb.views.layout.rows import PADDING, Gap, RowStrip, row_breaks
from attractor_nb.views.outlines import Direction
from tests.views.drawn_graphs import HARD, wide_fan_out
from tests.views.drawn_marks import drawn as marks_of
from tests.views.measured_drawings import drawn

WIDEST = 1000.0

FORTY = HARD["forty nodes"]
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


def chain(count, rankdir=""):
    steps = " -> ".join(f"step_{number}" for number in range(count))
    return f"digraph g {{ {rankdir} start [shape=Mdiamond] exit [shape=Msquare] start -> {steps} -> exit }}"


def directed(text, rankdir):
    return text.replace("{", f"{{ rankdir={rankdir}", 1)


def layers(count, width=100.0, gap=33.0):
    starts = [number * (width + gap) for number in range(count)]
    return starts, [start + width for start in starts]


def test_what_is_short_enough_is_not_broken():
    assert row_breaks(*layers(7), [Gap(1)] * 6, 1000) == []


def test_rows_are_few_and_about_equally_long():
    assert row_breaks(*layers(14), [Gap(1)] * 13, 1100) == [6]
    assert row_breaks(*layers(15), [Gap(1)] * 14, 1000) == [4, 9]


def test_a_flow_is_broken_where_few_lines_lead_on():
    gaps = [Gap(1)] * 13
    gaps[6] = Gap(3)
    assert row_breaks(*layers(14), gaps, 1100) == [5]


def test_what_must_not_be_broken_makes_rows_longer():
    gaps = [None if 2 <= rank < 12 else Gap(1) for rank in range(13)]
    breaks = row_breaks(*layers(14), gaps, 700)
    assert all(gaps[rank] for rank in breaks)
    assert row_breaks(*layers(14), [None] * 13, 700) == []


def test_lines_of_one_break_stay_side_by_side_and_never_cross():
    strip = RowStrip([0.0, 500.0], [-40.0, -40.0], [40.0, 40.0], [3])
    ends = [(-20.0, 460.0), (0.0, 460.0), (20.0, 460.0)]
    shift, _ = strip.shifts[1]
    routes = [strip.return_route(0, number, end, (end[0] + shift, -30.0)) for number, end in enumerate(ends)]
    for route in routes:
        assert all(before[3] == after[0] for before, after in pairwise(route))
        assert max(across for cubic in route for across, _ in cubic) <= 40 + shift
    corners = [[across for cubic in route for across, _ in cubic] for route in routes]
    lanes = [next(a[3][0] for a in route if a[0][0] == a[3][0] > 40 and a[0][1] - a[3][1] > 100) for route in routes]
    assert lanes == sorted(lanes, reverse=True)
    assert min(lanes) == 40 + PADDING
    assert corners


@pytest.mark.parametrize("rankdir", ["LR", "RL"])
@pytest.mark.parametrize("text", [chain(12), chain(60), FORTY, GROUPS], ids=["12", "60", "forty", "groups"])
def test_a_long_flow_to_the_side_is_legible_whole_and_smooth(text, rankdir):
    graph = parse_dot(directed(text, rankdir))
    picture = drawn(graph)
    assert picture.width <= WIDEST
    assert picture.overlaps == picture.through_boxes == picture.struck_labels == picture.turns == []
    marks = marks_of(render_svg(graph))
    assert marks.smallest >= 9
    assert marks.overlaps == marks.struck == marks.on_heads == []


def test_all_rows_are_read_in_the_direction_of_the_flow():
    for rankdir, sign in (("LR", 1), ("RL", -1)):
        picture = drawn(parse_dot(directed(chain(12), rankdir)))
        steps = [sign * picture.centre(f"step_{number}")[0] for number in range(12)]
        heights = [picture.centre(f"step_{number}")[1] for number in range(12)]
        back = [number for number, (a, b) in enumerate(pairwise(steps)) if b < a]
        assert back == [number for number, (a, b) in enumerate(pairwise(heights)) if b > a] == [5]


def test_rows_add_no_crossings():
    text = HARD["a chain of twelve"].replace("}", "  step_9 -> step_1\n  step_7 -> step_3\n}")
    assert drawn(parse_dot(directed(text, "LR"))).crossings == []


def test_a_group_is_whole_in_one_row():
    layout = lay_out(scene := draw_scene(parse_dot(directed(GROUPS, "LR"))))
    assert len({round(rect.y) for rect in layout.panels}) > 1
    for panel, rect in zip(scene.panels, layout.panels, strict=True):
        for member in panel.members:
            x, y = layout.centres[member]
            assert rect.x < x < rect.x + rect.width
            assert rect.y < y < rect.y + rect.height
    for a, b in combinations(layout.panels, 2):
        assert a.y + a.height < b.y or b.y + b.height < a.y or a.x + a.width < b.x or b.x + b.width < a.x


def test_a_direction_that_is_named_wins():
    assert draw_scene(parse_dot(directed(chain(12), "TB"))).direction is Direction.DOWN
    down = drawn(parse_dot(directed(chain(12), "TB")))
    assert down.height > 3 * down.width


def test_what_has_many_branches_or_many_lines_flows_down():
    for text in (wide_fan_out(20), HARD["every pair of seven"], HARD["two hundred nodes"]):
        assert draw_scene(parse_dot(text)).direction is Direction.DOWN


def test_a_flow_in_rows_is_the_same_each_time():
    first = render_svg(parse_dot(directed(FORTY, "LR")))
    lay_out.__globals__["_cached"].cache_clear()
    assert render_svg(parse_dot(directed(FORTY, "LR"))) == first


LOOPS = "".join(
    f"""s{number} -> c{number} c{number} [shape=diamond] c{number} -> s{number + 1} [condition="outcome=success"]
    c{number} -> s0 [condition="outcome=fail && context.why=transient"]
    c{number} -> post [condition="outcome=fail && context.why!=transient"]
    """
    for number in range(10)
)


@pytest.mark.parametrize("rankdir", ["LR", "RL"])
def test_a_flow_that_is_crossed_by_many_loops_is_never_much_larger_to_the_side_than_down(rankdir):
    text = f"digraph g {{ start [shape=Mdiamond] done [shape=Msquare] start -> s0 s10 -> done post -> s0 {LOOPS} }}"
    aside, down = (lay_out(draw_scene(parse_dot(directed(text, direction)))) for direction in (rankdir, "TB"))
    assert aside.width * aside.height <= 1.2 * down.width * down.height
