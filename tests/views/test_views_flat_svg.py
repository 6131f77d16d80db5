"""A drawing with its styles on its elements."""

from xml.etree import ElementTree as ET

import pytest

from attractor_nb.errors import OptionError
from attractor_nb.languages.dot import parse_dot
from attractor_nb.model.states import NodeStatus
from attractor_nb.views.drawings.flat_svg import flat_svg
from attractor_nb.views.drawings.picture import Mark, Overlay
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.drawings.theme import DARK, LIGHT, drawing_rules
from attractor_nb.views.state import EdgeState, NodeState

GRAPH = parse_dot(
    "digraph g { start [shape=Mdiamond] plan [goal_gate=true] part done [shape=Msquare] start -> plan -> part -> done"
    ' start -> done [condition="context.x=1"] }'
)
STATES = {"plan": NodeState(NodeStatus.FAIL, visits=1), "part": NodeState(NodeStatus.PARTIAL_SUCCESS, visits=1)}
RULES = drawing_rules("& .node.warm.warm.warm .outline{stroke-width:9}")


def flat(theme="light"):
    svg = render_svg(
        GRAPH,
        states=STATES,
        edges={0: EdgeState(1)},
        is_ended=True,
        overlay=Overlay({"plan": Mark(("warm",))}, {}, RULES),
    )
    return ET.fromstring(flat_svg(svg, theme))


def styles(root, node, tag_index):
    groups = [group for group in root.iter("{http://www.w3.org/2000/svg}g") if group.get("data-node") == node]
    element = [child for child in groups[0] if child.tag.endswith("path")][tag_index]
    return dict(entry.split(":", 1) for entry in element.get("style", "").split(";") if entry)


@pytest.mark.parametrize(("theme", "colours"), [("light", LIGHT), ("dark", DARK)])
def test_colours_are_those_of_the_theme_and_of_the_state(theme, colours):
    root = flat(theme)
    outline = styles(root, "plan", 0)
    assert outline["fill"] == colours["fail-fill"]
    assert outline["stroke"] == colours["fail-line"]
    assert outline["stroke-width"] == "9"
    assert styles(root, "start", 0)["fill"] == colours["pending-fill"]


def test_nothing_is_left_that_only_a_browser_knows():
    text = ET.tostring(flat(), encoding="unicode")
    for word in ("var(", "<style", "class=", "animation", "@media", "ui-monospace"):
        assert word not in text


def test_what_is_hidden_stays_hidden_and_what_a_state_shows_is_shown():
    root = flat()
    assert styles(root, "plan", 1)["display"] == "none"
    assert styles(root, "part", 1)["display"] == "inline"


def test_a_file_has_one_theme():
    with pytest.raises(OptionError, match="a file has one theme"):
        flat("auto")
