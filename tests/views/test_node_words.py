# ruff: noqa: RUF001 - the sign before a number of passes is what is tested
"""The words of a node: its label and, under it, a line in words for people; counts that no other mark repeats."""

import re

import pytest

from attractor_nb import parse_dot
from attractor_nb.model.vocabulary.shapes import BUILT_IN_TYPES
from attractor_nb.views.drawings.drawing import command_words, detail_of, draw_scene
from attractor_nb.views.drawings.picture import Mark, Overlay
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.state import EdgeState, NodeState


def detail(attributes):
    graph = parse_dot(f"digraph g {{ start -> n n [{attributes}] }}")
    return detail_of(graph.nodes["n"], graph.handler_types["n"])


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ('prompt="p"', "model"),
        ('prompt="p", llm_model="gpt-5.2"', "gpt-5.2"),
        ("shape=hexagon", "a person"),
        ("shape=component", "all branches"),
        ("shape=component, join_policy=first_success", "first success"),
        ("shape=component, join_policy=k_of_n, join_k=2", "2 of the branches"),
        ("shape=component, join_policy=quorum", "a quorum"),
        ("shape=tripleoctagon", "join"),
        ("shape=parallelogram", "command"),
        ('shape=parallelogram, tool_command="pytest -q"', "pytest -q"),
        ("shape=house", "manager"),
        ('type="http.get"', "http.get"),
        ("type=function, function=score", "score()"),
    ],
)
def test_the_small_line_is_in_words_for_people(attributes, words):
    assert detail(attributes) == words


@pytest.mark.parametrize("handler_type", sorted(BUILT_IN_TYPES - {"start", "exit", "pipeline"}))
def test_no_built_in_type_is_shown_by_its_name(handler_type):
    assert detail(f'type="{handler_type}"') != handler_type


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("python3 - <<'EOF'\nprint(1)\nEOF", "python3"),
        ("cat <<EOF > out.txt\nhello\nEOF\nwc -l out.txt", "cat > out.txt"),
        ('cat <<-"END" | sort\n b\nEND', "cat | sort"),
        ("python -c 'import json\nprint(json)'", "python -c"),
        ('\n# counts\nwc -w "a b.txt"\n', 'wc -w "a b.txt"'),
        ("echo it's", "echo it's"),
        ("cat <<< word", "cat <<< word"),
        ("make \\\n  all", "make"),
        ("", ""),
    ],
)
def test_a_text_within_a_command_is_no_caption(command, words):
    assert command_words(command) == words


LOOP = """digraph g { start [shape=Mdiamond] done [shape=Msquare] write; test; fix
start -> write -> test -> done test -> fix -> test fix -> write }"""


def test_an_edge_does_not_repeat_the_visits_of_its_nodes():
    """It has a number of its own where its source has another way out, and its target another way in."""
    graph = parse_dot(LOOP)
    svg = render_svg(
        graph,
        states={name: NodeState(visits=2) for name in graph.nodes},
        edges={number: EdgeState(2) for number in range(len(graph.edges))},
    )
    labels = re.findall(r'<g class="edge-label[^"]*" data-edge="(\d)"[^>]*>(.*?)</g>', svg)
    told = [graph.edges[int(index)] for index, content in labels if "×2" in content]
    assert {(edge.source, edge.target) for edge in told} == {("fix", "test"), ("fix", "write")}


def test_numbers_in_place_of_passes_are_at_every_edge():
    graph = parse_dot(LOOP)
    overlay = Overlay(edges={number: Mark(words="7 of 9") for number in range(len(graph.edges))})
    assert render_svg(graph, overlay=overlay).count("7 of 9") == len(graph.edges)


LONG = "Compare what all the reviewers have written"


@pytest.mark.parametrize("count", [10, 100, 200, 500])
def test_the_labels_of_a_chain_are_whole_at_every_size(count):
    nodes = "".join(f's{number} [label="Step {number}: {LONG}"]' for number in range(count))
    steps = " -> ".join(f"s{number}" for number in range(count))
    scene = draw_scene(parse_dot(f"digraph g {{ start -> {steps} {nodes} }}"))
    labels = {box.node_id: " ".join(box.lines) for box in scene.boxes if box.node_id != "start"}
    assert labels == {f"s{number}": f"Step {number}: {LONG}" for number in range(count)}


@pytest.mark.parametrize("label", ["Is it accepted by all three reviewers of the change?", "Accepted?"])
def test_a_diamond_has_room_for_its_label(label):
    scene = draw_scene(parse_dot(f'digraph g {{ a -> b b [shape=diamond, label="{label}"] }}'))
    assert [" ".join(box.lines) for box in scene.boxes if box.node_id == "b"] == [label]


def test_a_condition_is_broken_between_its_parts():
    scene = draw_scene(parse_dot('digraph g { a -> b [condition="context.ask.verdict.team=partners"] }'))
    assert scene.links[0].lines == ("context.ask.verdict.", "team=partners")
