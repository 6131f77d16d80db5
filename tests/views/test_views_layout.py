"""Coordinates: what must hold for every graph."""

import os
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.languages.dot import parse_dot
from attractor_nb.model.graph import Edge, Graph, Node, Subgraph
from attractor_nb.views.drawings.drawing import draw_scene
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.layout import lay_out, layered
from attractor_nb.views.layout.layers import layer_scene
from attractor_nb.views.layout.skeleton import point_at, skeleton_of, straight_links
from attractor_nb.views.outlines import Direction, Shape

SHAPES = ["box", "hexagon", "diamond", "parallelogram", "component", "tripleoctagon", "house", "Mdiamond"]


@st.composite
def graphs(draw, max_nodes=9, has_panels=False):
    count = draw(st.integers(1, max_nodes))
    ids = [f"n{number}" for number in range(count)]
    nodes = {
        name: Node(name, {"shape": draw(st.sampled_from(SHAPES)), "label": draw(st.text("ab cd", max_size=60))})
        for name in ids
    }
    ends = st.sampled_from(ids)
    labels = st.sampled_from([{}, {}, {"label": "yes"}, {"condition": "outcome=success"}])
    edges = draw(st.lists(st.builds(Edge, ends, ends, labels), max_size=14))
    groups = ()
    if has_panels and count > 2:
        cut = draw(st.integers(1, count - 1))
        inner = draw(st.integers(0, cut))
        groups = (
            Subgraph("a", "First group", "a", tuple(ids[:cut])),
            Subgraph("b", "Inner", "b", tuple(ids[:inner]), parent=0),
            Subgraph("c", "Second group", "c", tuple(ids[cut:])),
        )
    rankdir = draw(st.sampled_from(["TB", "LR", "BT", "RL"]))
    return Graph("g", {"rankdir": rankdir}, nodes, tuple(edges), groups)


def box_rects(scene, layout, shrink=0.0):
    return [
        (
            x - box.width / 2 + shrink,
            y - box.height / 2 + shrink,
            x + box.width / 2 - shrink,
            y + box.height / 2 - shrink,
        )
        for box, (x, y) in zip(scene.boxes, layout.centres, strict=True)
    ]


def label_rects(scene, layout):
    """Left, top, right and bottom of every label."""
    return [
        (
            route.label[0] - link.width / 2,
            route.label[1] - link.height / 2,
            route.label[0] + link.width / 2,
            route.label[1] + link.height / 2,
        )
        for link, route in zip(scene.links, layout.routes, strict=True)
        if link.lines
    ]


def overlap(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def contains(outer, inner):
    return outer[0] <= inner[0] and outer[1] <= inner[1] and outer[2] >= inner[2] and outer[3] >= inner[3]


@given(graphs(has_panels=True))
def test_boxes_never_overlap(graph):
    scene = draw_scene(graph)
    rects = box_rects(scene, lay_out(scene))
    assert not [pair for pair in combinations(rects, 2) if overlap(*pair)]


@given(graphs(has_panels=True))
def test_no_edge_runs_through_a_box_that_it_does_not_join(graph):
    scene = draw_scene(graph)
    layout = lay_out(scene)
    rects = box_rects(scene, layout, shrink=1.0)
    for link, route in zip(scene.links, layout.routes, strict=True):
        points = [point_at(cubic, step / 8) for cubic in route.path for step in range(9)]
        for number, rect in enumerate(rects):
            if number not in {link.source, link.target}:
                assert not any(rect[0] < x < rect[2] and rect[1] < y < rect[3] for x, y in points)


@given(graphs(has_panels=True))
def test_no_label_covers_a_box_or_another_label(graph):
    scene = draw_scene(graph)
    layout = lay_out(scene)
    labels = label_rects(scene, layout)
    boxes = box_rects(scene, layout, shrink=0.5)
    assert not [(a, b) for a in labels for b in boxes if overlap(a, b)]
    assert not [pair for pair in combinations(labels, 2) if overlap(*pair)]


@pytest.mark.parametrize("direction", ["TB", "LR"])
def test_loops_with_long_labels_have_room_beside_small_boxes(direction):
    scene = draw_scene(
        parse_dot(f"""digraph g {{
            rankdir={direction}
            a [label=""] b [label=""]
            a -> a [condition="outcome=success"] a -> b b -> b [condition="outcome=success"]
        }}""")
    )
    labels = label_rects(scene, lay_out(scene))
    assert len(labels) == 2
    assert not [pair for pair in combinations(labels, 2) if overlap(*pair)]


@given(graphs(has_panels=True))
def test_a_panel_holds_its_members_and_nobody_else(graph):
    scene = draw_scene(graph)
    layout = lay_out(scene)
    boxes = box_rects(scene, layout)
    for panel, rect in zip(scene.panels, layout.panels, strict=True):
        area = (rect.x, rect.y, rect.x + rect.width, rect.y + rect.height)
        for number, box in enumerate(boxes):
            assert contains(area, box) if number in panel.members else not overlap(area, box)


@given(graphs(has_panels=True))
def test_everything_lies_inside_the_picture(graph):
    scene = draw_scene(graph)
    layout = lay_out(scene)
    whole = (0, 0, layout.width, layout.height)
    rects = box_rects(scene, layout)
    rects += [(r.x, r.y, r.x + r.width, r.y + r.height) for r in layout.panels]
    assert all(contains(whole, rect) for rect in rects)
    for route in layout.routes:
        assert all(0 <= x <= layout.width and 0 <= y <= layout.height for cubic in route.path for x, y in cubic)


@pytest.mark.parametrize("rankdir", ["TB", "BT", "LR", "RL"])
def test_the_flow_goes_where_rankdir_says(rankdir):
    scene = draw_scene(parse_dot(f'digraph g {{ rankdir={rankdir}\n a; b; c; a -> b -> c [label="on"] }}'))
    layout = lay_out(scene)
    axis = 1 if rankdir in {"TB", "BT"} else 0
    places = [centre[axis] for centre in layout.centres]
    assert places == sorted(places, reverse=rankdir in {"BT", "RL"})
    assert len(set(places)) == len(places)


def test_a_loop_back_does_not_turn_the_flow_round():
    scene = draw_scene(parse_dot("digraph g { s [shape=Mdiamond]; a; b; c; s -> a -> b -> c; c -> a; b -> s }"))
    layout = lay_out(scene)
    heights = [layout.centres[number][1] for number in range(4)]
    assert heights == sorted(heights)


def test_parallel_edges_and_loops_have_ways_of_their_own():
    text = 'digraph g { a; b; a -> b; a -> b; a -> b [label="x"]; b -> a; a -> a; a -> a [label="y"] }'
    layout = lay_out(draw_scene(parse_dot(text)))
    assert len({route.path for route in layout.routes}) == 6


def test_edges_end_at_the_outline_of_their_target():
    scene = draw_scene(parse_dot("digraph g { a; b; a -> b }"))
    layout = lay_out(scene)
    _, y = layout.centres[1]
    assert layout.routes[0].tip[1] == pytest.approx(y - scene.boxes[1].height / 2, abs=1)


def test_an_empty_graph_has_a_layout():
    layout = lay_out(draw_scene(Graph("nothing")))
    assert layout.centres == ()
    assert layout.width > 0


def distances(scene, layout):
    """The distance of each labelled link from the middle of its label, and from the label's outline, by its ends."""
    found = {}
    for link, route in zip(scene.links, layout.routes, strict=True):
        x, y = route.label
        half, up = link.width / 2, link.height / 2
        points = [point_at(cubic, step / 16) for cubic in route.path for step in range(17)]
        found[scene.boxes[link.source].node_id, scene.boxes[link.target].node_id] = (
            min(abs(px - x) + abs(py - y) for px, py in points),
            min(max(abs(px - x) - half, abs(py - y) - up) for px, py in points),
        )
    return found


LABELLED = 'digraph g { a; b; c; a -> b [label="yes"]; a -> c [label="no"]; c -> a [label="again"]; b -> c }'


def test_labels_sit_on_their_edges():
    text = LABELLED.replace("c -> a", "c -> d")
    scene = draw_scene(parse_dot(text))
    found = distances(scene, lay_out(scene))
    assert all(found[ends][0] < 8 for ends in (("a", "b"), ("a", "c"), ("c", "d")))


def test_labels_of_a_loop_between_two_neighbours_stand_beside_their_edges():
    scene = draw_scene(parse_dot(LABELLED.replace("; b -> c", "")))
    found = distances(scene, lay_out(scene))
    assert found["a", "b"][0] < 8
    assert all(0 < found[ends][1] < 8 for ends in (("a", "c"), ("c", "a")))


def test_labels_of_a_loop_that_goes_past_others_sit_on_their_edges():
    scene = draw_scene(parse_dot(LABELLED))
    found = distances(scene, lay_out(scene))
    assert all(found[ends][0] < 8 for ends in (("a", "c"), ("c", "a")))


def test_two_ways_between_neighbours_are_side_by_side_and_not_twisted():
    """From beside their label on they run straight to the box below: they turn once, not there and back."""
    text = """digraph g { rankdir=TB start [shape=Mdiamond] test; fix; done [shape=Msquare]
        start -> test; test -> done [label="Passed"]; test -> fix [label="Failed"]; fix -> test }"""
    layout = lay_out(draw_scene(parse_dot(text)))
    there, back = (layout.routes[number] for number in (2, 3))
    for route in (there, back):
        below = [x for cubic in route.path for x, y in cubic if y >= there.label[1]]
        assert max(below) - min(below) < 8
    assert there.label[0] < there.tip[0] < back.path[0][0][0]


def test_a_way_back_has_its_label_at_the_box_that_chooses_it():
    """Ten labels of ways back to one box are not side by side: each is above the box from which the way leads."""
    steps = " -> ".join(f"s{number}" for number in range(10))
    back = " ".join(f's{number} -> s0 [label="again, because of this"]' for number in range(2, 10))
    scene = draw_scene(
        parse_dot(f"digraph g {{ rankdir=TB s0 [shape=Mdiamond] exit [shape=Msquare] {steps} -> exit {back} }}")
    )
    layout = lay_out(scene)
    assert layout.width < 500
    for link, route in zip(scene.links, layout.routes, strict=True):
        if link.lines:
            assert 0 < layout.centres[link.source][1] - route.label[1] < 100


def test_a_router_stands_over_the_middle_of_its_ways_and_labels_are_beside_their_boxes():
    teams = [f"t{number}" for number in range(12)]
    ways = " ".join(f'sort -> {team} [label="{team}"]; {team} -> done' for team in teams)
    scene = draw_scene(parse_dot(f"digraph g {{ start [shape=Mdiamond] start -> sort {ways} }}"))
    layout = lay_out(scene)
    assert scene.direction is Direction.RIGHT
    places = {box.node_id: layout.centres[number] for number, box in enumerate(scene.boxes)}
    middle = (places["t5"][1] + places["t6"][1]) / 2
    assert [places[name][1] for name in ("start", "sort", "done")] == pytest.approx([middle] * 3, abs=1)
    for link, route in zip(scene.links, layout.routes, strict=True):
        if link.lines:
            assert abs(route.label[1] - layout.centres[link.target][1]) < 6


def places_of(text):
    scene = draw_scene(parse_dot(text))
    layout = lay_out(scene)
    return {box.node_id: x for box, (x, _) in zip(scene.boxes, layout.centres, strict=True)}


def test_routers_within_a_router_are_each_over_the_middle_of_their_own_ways():
    ways = " ".join(f"sort -> {a}; " + " ".join(f"{a} -> {a}{n} -> done;" for n in range(3)) for a in "abc")
    places = places_of(f"digraph g {{ rankdir=TB start [shape=Mdiamond] start -> sort {ways} }}")
    assert [places[name] for name in ("start", "sort", "done")] == pytest.approx([places["b"]] * 3, abs=1)
    assert [places[a] for a in "abc"] == pytest.approx([places[f"{a}1"] for a in "abc"], abs=1)


def test_a_router_beside_the_main_path_does_not_bend_it():
    ways = " ".join(f"other -> w{n} -> done;" for n in range(3))
    text = f"digraph g {{ rankdir=TB start [shape=Mdiamond] done -> exit exit [shape=Msquare] start -> a -> done; start -> other {ways} }}"
    places = places_of(text)
    assert [places[name] for name in ("a", "done", "exit")] == pytest.approx([places["start"]] * 3, abs=1)


def test_nodes_that_skips_leave_are_no_routers():
    text = "digraph g { rankdir=TB a [shape=Mdiamond] f [shape=Msquare] a -> b -> c -> d -> e -> f; a -> c; a -> d; b -> d; b -> e }"
    layout = lay_out(draw_scene(parse_dot(text)))
    assert len({round(x) for x, _ in layout.centres}) == 1


@pytest.mark.parametrize("count", [2, 5, 8])
def test_every_branch_is_shown_that_the_cell_has_room_for(count):
    branches = "".join(f'b{number} [label="Reviewer {number}"] f -> b{number} -> j ' for number in range(count))
    text = f"digraph g {{ start [shape=Mdiamond] f [shape=component] j [shape=tripleoctagon] start -> f {branches} j -> done }}"
    assert "more</tspan>" not in render_svg(parse_dot(text), is_whole=False)


def test_a_layout_is_the_same_in_every_process():
    program = (
        "from attractor_nb.languages.dot import parse_dot\n"
        "from attractor_nb.views.drawings.svg import render_svg\n"
        "text = 'digraph g { a; b; c; d; e; a -> b; a -> c; b -> d; c -> d; d -> a; a -> d; e -> d; p; q; p -> q; p -> q; q -> p }'\n"
        "print(render_svg(parse_dot(text)))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            check=True,
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1


def test_equal_scenes_share_one_layout():
    text = "digraph g { a; b; a -> b }"
    first, second = (lay_out(draw_scene(parse_dot(text))) for _ in range(2))
    assert first is second


def test_parts_that_do_not_hang_together_keep_their_edges():
    text = "digraph g { a; b; c; d; e; f; a -> b; c -> d; c -> d; c -> e; d -> e; c -> f; e -> f }"
    layout = lay_out(draw_scene(parse_dot(text)))
    assert all(route.path for route in layout.routes)


def test_an_undeclared_target_has_a_box_that_says_so():
    graph = Graph("g", nodes={"deploy": Node("deploy")}, edges=(Edge("deploy", "deplyo"),))
    scene = draw_scene(graph)
    assert [(box.node_id, box.shape) for box in scene.boxes] == [("deploy", Shape.BOX), ("deplyo", Shape.MISSING)]


def test_the_label_of_an_edge_inside_a_panel_stays_inside():
    text = 'digraph g { start; subgraph s { label="Signatures"; a; b; a -> b [label="[A] Approve"] } start -> a }'
    scene = draw_scene(parse_dot(text))
    layout = lay_out(scene)
    panel, (x, y) = layout.panels[0], layout.routes[0].label
    assert panel.x < x < panel.x + panel.width
    assert panel.y < y < panel.y + panel.height


def test_an_exit_that_an_edge_leaves_is_drawn_all_the_same():
    """A text while it is being typed; lint says what is wrong with it."""
    graph = parse_dot("digraph { start [shape=Mdiamond] done [shape=Msquare] start -> done -> more }")
    assert lay_out(draw_scene(graph)) is not None


def dense(count):
    """A pipeline in which each node leads to all nodes after it."""
    names = [f"n{number}" for number in range(count)]
    edges = "\n".join(f"{a} -> {b}" for a, b in combinations(names, 2))
    return parse_dot(f"digraph D {{ start [shape=Mdiamond]; start -> n0\n{edges} }}")


def test_in_a_dense_graph_the_longest_edges_are_drawn_straight(monkeypatch):
    """Issue 34: 3,600 edges took 143 s. Led around the boxes are as many as cross 8,000 layers together."""
    asked = []
    monkeypatch.setattr(layered, "layer_scene", lambda skeleton: asked.append(skeleton) or layer_scene(skeleton))
    scene = draw_scene(dense(40))
    layout = lay_out(scene)
    (skeleton,) = asked
    spans = [scene_link.target - scene_link.source for scene_link in skeleton.scene.links]
    assert 7_900 < sum(spans) <= 8_000
    assert len(layout.routes) == len(scene.links) == 781
    straight = [link for link in scene.links if link not in skeleton.scene.links]
    assert min(link.target - link.source for link in straight) >= max(spans)
    for link, route in zip(scene.links, layout.routes, strict=True):
        for box, (x, y) in ((link.source, route.path[0][0]), (link.target, route.tip)) if link in straight else ():
            centre, drawn = layout.centres[box], scene.boxes[box]
            assert abs(x - centre[0]) <= drawn.width / 2 + 1
            assert abs(y - centre[1]) <= drawn.height / 2 + 1


def test_the_main_path_is_led_around_boxes_however_long_it_is():
    names = " -> ".join(f"n{number}" for number in range(9))
    back = "; ".join(f"n{number} -> n0" for number in range(1, 9))
    scene = draw_scene(parse_dot(f"digraph G {{ start -> {names} -> exit; {back}; start -> exit }}"))
    skeleton = skeleton_of(scene)
    straight = straight_links(skeleton, budget=0)
    assert not straight & set(skeleton.spine)
    assert {
        (scene.boxes[scene.links[p].source].node_id, scene.boxes[scene.links[p].target].node_id) for p in straight
    } == {("start", "exit"), *((f"n{number}", "n0") for number in range(2, 9))}


def test_beyond_the_budget_parallel_edges_are_straight_and_loops_are_not():
    scene = draw_scene(parse_dot("digraph G { start -> a; a -> a; a -> a; a -> exit; a -> exit; a -> exit }"))
    straight = straight_links(skeleton_of(scene), budget=0)
    assert [scene.links[position].index for position in sorted(straight)] == [4, 5]
