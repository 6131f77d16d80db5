"""Outlines and the paths that end at them."""

import pytest

from attractor_nb.languages.dot import parse_dot
from attractor_nb.model.graph import Graph, Node
from attractor_nb.views.drawings.drawing import draw_scene
from attractor_nb.views.layout import lay_out
from attractor_nb.views.layout.skeleton import (
    HEAD_LENGTH,
    clip_start,
    make_room_for_head,
    point_at,
    reversed_path,
    split,
    straight,
)
from attractor_nb.views.outlines import (
    Box,
    Direction,
    Shape,
    bar,
    outline,
    outline_path,
    sign_places,
    small_line_place,
    text_room,
    text_shift,
)

BOXES = [Box("a", shape, ("a",), "", 100.0, 40.0) for shape in Shape]
SHAPES = pytest.mark.parametrize("box", BOXES, ids=[shape.value for shape in Shape])
SHAPE_NAMES = {
    "Mdiamond": Shape.START,
    "Msquare": Shape.EXIT,
    "hexagon": Shape.HEXAGON,
    "diamond": Shape.DIAMOND,
    "parallelogram": Shape.PARALLELOGRAM,
    "component": Shape.FAN_OUT,
    "tripleoctagon": Shape.FAN_IN,
    "house": Shape.HOUSE,
}
SQUARE = [(-10.0, -10.0), (10.0, -10.0), (10.0, 10.0), (-10.0, 10.0)]


@SHAPES
def test_an_outline_is_convex_and_as_large_as_its_box(box):
    corners = outline(box)
    assert max(x for x, _ in corners) - min(x for x, _ in corners) == pytest.approx(100)
    assert max(y for _, y in corners) - min(y for _, y in corners) == pytest.approx(40)
    for number, (bx, by) in enumerate(corners):
        (ax, ay), (cx, cy) = corners[number - 1], corners[(number + 1) % len(corners)]
        assert (bx - ax) * (cy - by) - (by - ay) * (cx - bx) >= 0


def is_inside(box, x, y):
    corners = outline(box)
    turns = [
        (bx - ax) * (y - ay) - (by - ay) * (x - ax)
        for (ax, ay), (bx, by) in zip(corners, corners[1:] + corners[:1], strict=True)
    ]
    return all(turn >= 0 for turn in turns)


@SHAPES
@pytest.mark.parametrize("label", ["a", "a label of words that is long enough for three lines of its box, or more"])
def test_counts_stand_inside_the_outline_where_no_edge_comes(box, label):
    shapes = {drawn_as: shape for shape, drawn_as in SHAPE_NAMES.items()}
    graph = Graph("g", nodes={"n": Node("n", {"shape": shapes.get(box.shape, "box"), "label": label})})
    real = draw_scene(graph).boxes[0]
    middle, baseline, room = small_line_place(real)
    corners = [(middle + side * room / 2, y) for side in (-1, 1) for y in (baseline - 7.4, baseline + 2)]
    assert room > 20
    assert all(is_inside(real, x, y) for x, y in corners)


@SHAPES
def test_an_outline_is_drawn_as_one_closed_path(box):
    path = outline_path(box)
    assert path.startswith("M")
    assert path.count("M") == path.count("Z") == 1


@SHAPES
def test_signs_sit_near_the_outline_and_text_has_room(box):
    left, right, top = sign_places(box)
    assert -54 <= left < 0 < right <= 54
    assert -24 <= top < 0
    assert 50 < text_room(box) < 100


@pytest.mark.parametrize(
    ("shape", "direction", "place"),
    [
        (Shape.FAN_OUT, Direction.DOWN, "M-42 15.5H42"),
        (Shape.FAN_IN, Direction.DOWN, "M-42 -15.5H42"),
        (Shape.FAN_OUT, Direction.UP, "M-42 -15.5H42"),
        (Shape.FAN_OUT, Direction.RIGHT, "M45.5 -12V12"),
        (Shape.FAN_IN, Direction.RIGHT, "M-45.5 -12V12"),
        (Shape.FAN_IN, Direction.LEFT, "M45.5 -12V12"),
        (Shape.BOX, Direction.DOWN, ""),
    ],
)
def test_a_fan_out_has_its_bar_where_the_branches_leave_and_a_join_where_they_arrive(shape, direction, place):
    assert bar(Box("a", shape, ("a",), "", 100, 40), direction) == place


def test_text_makes_way_for_roofs_and_bars():
    def shift(shape, direction):
        return text_shift(Box("a", shape, ("a",), "", 100, 40), direction)

    assert shift(Shape.HOUSE, Direction.DOWN) > 0
    assert shift(Shape.FAN_OUT, Direction.DOWN) < 0 < shift(Shape.FAN_IN, Direction.DOWN)
    assert shift(Shape.FAN_OUT, Direction.RIGHT) == shift(Shape.BOX, Direction.DOWN) == 0


def test_a_path_is_cut_where_it_leaves_the_outline():
    path = clip_start([straight((0, 0), (0, 40))], SQUARE, (0, 0))
    assert path[0][0] == pytest.approx((0, 10), abs=0.2)
    assert path[-1][3] == (0, 40)


def test_cubics_that_stay_inside_are_dropped():
    first, second = straight((0, 0), (0, 5)), straight((0, 5), (0, 40))
    assert len(clip_start([first, second], SQUARE, (0, 0))) == 1


def test_a_path_that_never_leaves_keeps_its_last_piece():
    first, second = straight((0, 0), (0, 5)), straight((0, 5), (0, 8))
    assert clip_start([first, second], SQUARE, (0, 0)) == [second]


def test_an_arrow_head_takes_its_length_from_the_end():
    path, tip, base = make_room_for_head([straight((0, 0), (0, 40))])
    assert tip == (0, 40)
    assert base == path[-1][3] == pytest.approx((0, 40 - HEAD_LENGTH), abs=0.1)


def test_a_head_longer_than_the_last_piece_reaches_into_the_one_before():
    path, _, base = make_room_for_head([straight((0, 0), (0, 38)), straight((0, 38), (0, 40))])
    assert len(path) == 1
    assert base == pytest.approx((0, 33), abs=0.1)


def test_a_path_shorter_than_a_head_stays():
    path, tip, base = make_room_for_head([straight((0, 0), (0, 3))])
    assert (tip, base) == ((0, 3), path[-1][3])


def test_the_parts_of_a_split_cubic_meet():
    cubic = ((0.0, 0.0), (0.0, 10.0), (10.0, 0.0), (10.0, 10.0))
    left, right = split(cubic, 0.3)
    assert left[3] == right[0] == pytest.approx(point_at(cubic, 0.3))
    assert (left[0], right[3]) == (cubic[0], cubic[3])


def test_a_reversed_path_goes_back():
    path = [straight((0, 0), (0, 5)), straight((0, 5), (5, 5))]
    assert reversed_path(path)[0][0] == (5, 5)
    assert reversed_path(reversed_path(path)) == path


@pytest.mark.parametrize("rankdir", ["TB", "LR"])
def test_every_kind_of_node_is_drawn_in_every_direction(rankdir):
    kinds = ["Mdiamond", "box", "component", "hexagon", "parallelogram", "house", "tripleoctagon", "diamond", "Msquare"]
    nodes = ";".join(f"n{k} [shape={shape}]" for k, shape in enumerate(kinds))
    ways = " -> ".join(f"n{k}" for k in range(len(kinds)))
    layout = lay_out(draw_scene(parse_dot(f"digraph g {{ rankdir={rankdir}; {nodes}; {ways} }}")))
    assert len(layout.routes) == len(kinds) - 1
