# ruff: noqa: RUF001 - the marks are what is tested
"""The writer of drawings: well-formed, deterministic, safe, and ready for a live view."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.errors import OptionError
from attractor_nb.languages.dot import parse_dot
from attractor_nb.model.diagnostic import Diagnostic, Severity
from attractor_nb.model.graph import Edge, Graph, Node, Subgraph
from attractor_nb.model.states import NodeStatus
from attractor_nb.views.drawings.drawing import AGAIN_PATH
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.state import EdgeState, NodeState

SVG = "{http://www.w3.org/2000/svg}"
OWN_ELEMENTS = {"svg", "style", "defs", "pattern", "g", "title", "rect", "path", "circle", "text", "tspan"}
OWN_ATTRIBUTES = {
    *("class", "width", "height", "viewBox", "style", "role", "aria-label", "id", "patternUnits", "d"),
    *("x", "y", "rx", "r", "fill", "transform", "data-node", "data-edge"),
}
GOLDEN = Path(__file__).parents[1] / "golden" / "views"
REVIEW = """digraph review {
  start [shape=Mdiamond, label="Start"]
  implement [label="Implement", goal_gate=true, prompt="Write it"]
  check [shape=parallelogram, label="Run the tests", tool_command="make test"]
  passed [shape=diamond, label="Passing?"]
  gate [shape=hexagon, label="Review"]
  done [shape=Msquare, label="Done"]
  start -> implement -> check -> passed
  passed -> gate [condition="outcome=success"]
  passed -> implement [condition="outcome!=success"]
  gate -> done [label="[A] Approve"]
  gate -> implement [label="[F] Fix"]
}"""
HOSTILE = [
    "<script>alert(1)</script>",
    "]]>",
    "</svg><script>",
    '" onload="alert(1)',
    "' onclick='alert(1)",
    "&lt;b&gt; &amp; &#60;",
    "<!-- --> <![CDATA[",
    "a\x00b\x1b[31mc\ud800",
    "\u202egnp.exe",
    "javascript:alert(1)",
    "url(http://example.invalid/x)",
    "}</style><script>",
    "%3Cscript%3E {{7*7}} ${x}",
]


def parsed(svg):
    return ET.fromstring(svg)


def assert_only_our_own(root):
    for item in root.iter():
        assert item.tag.removeprefix(SVG) in OWN_ELEMENTS
        assert item.attrib.keys() <= OWN_ATTRIBUTES
        assert "<" not in (item.text or "") or item.tag != SVG + "style"


def hostile_graph(text):
    return Graph(
        text,
        {"label": text, "rankdir": text, "bgcolor": text},
        {
            "a": Node("a", {"label": text, "fontname": text, "URL": text, "type": text, "prompt": text}),
            "b": Node("b", {"label": text, "shape": "parallelogram", "tool_command": text}),
            "c": Node("c", {"label": text, "shape": "box", "llm_model": text}),
        },
        (Edge("a", "b", {"label": text}), Edge("b", "c", {"condition": text}), Edge("c", text, {"label": text})),
        (Subgraph("s", text, "s", ("a", "b")),),
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text):
    states = {"a": NodeState(NodeStatus.FAIL, 1, 1, text)}
    finding = Diagnostic("rule", Severity.ERROR, text, node_id="a")
    root = parsed(render_svg(hostile_graph(text), states=states, diagnostics=[finding]))
    assert_only_our_own(root)


@given(st.text(min_size=1, max_size=40))
def test_any_text_gives_well_formed_svg_of_our_own_elements(text):
    assert_only_our_own(parsed(render_svg(hostile_graph(text))))


def test_the_style_sheet_is_the_same_whatever_the_graph_says():
    sheets = {parsed(render_svg(hostile_graph(text))).find(SVG + "style").text for text in HOSTILE}
    assert len(sheets) == 1


def test_equal_graphs_give_equal_text():
    first, second = (render_svg(parse_dot(REVIEW)) for _ in range(2))
    assert first == second


def test_ids_and_classes_of_a_drawing():
    root = parsed(render_svg(parse_dot(REVIEW)))
    nodes = {g.get("data-node"): g.get("class") for g in root.iter(SVG + "g") if g.get("data-node")}
    assert nodes == {
        "start": "node type-start state-pending",
        "implement": "node type-codergen state-pending",
        "check": "node type-tool state-pending",
        "passed": "node type-conditional state-pending",
        "gate": "node type-wait-human state-pending",
        "done": "node type-exit state-pending",
    }
    edges = [(g.get("data-edge"), g.get("class")) for g in root.iter(SVG + "g") if g.get("class") == "edge"]
    assert edges == [(str(index), "edge") for index in range(7)]


def test_a_state_changes_classes_and_signs_but_no_place():
    graph = parse_dot(REVIEW)
    plain = parsed(render_svg(graph))
    shown = parsed(render_svg(graph, states={"check": NodeState(NodeStatus.RUNNING, 2, 3)}, edges={1: EdgeState(2)}))
    assert [item.tag for item in plain.iter()] == [item.tag for item in shown.iter()]
    places = [[item.get("transform") for item in root.iter()] for root in (plain, shown)]
    assert places[0] == places[1]


def node_of(svg, node_id):
    return next(g for g in parsed(svg).iter(SVG + "g") if g.get("data-node") == node_id)


def test_attempts_and_visits_are_counted_on_the_node():
    svg = render_svg(parse_dot(REVIEW), states={"check": NodeState(NodeStatus.RETRYING, 3, 2)})
    node = node_of(svg, "check")
    counts = [text.text for text in node.iter(SVG + "text") if text.get("class") == "counts"]
    signs = [path.get("d") for path in node.iter(SVG + "path") if path.get("class") == "again"]
    assert counts == ["2 ×3"]
    assert signs[0].endswith(AGAIN_PATH)


def test_a_first_visit_and_attempt_are_not_counted():
    svg = render_svg(parse_dot(REVIEW), states={"check": NodeState(NodeStatus.SUCCESS, 1, 1)})
    node = node_of(svg, "check")
    assert [text.text for text in node.iter(SVG + "text") if text.get("class") == "counts"] == [None]
    assert [path.get("d") for path in node.iter(SVG + "path") if path.get("class") == "again"] == [""]


def test_a_failed_node_shows_the_first_words_of_the_reason():
    states = {"check": NodeState(NodeStatus.FAIL, 1, 1, "exit code 2")}
    texts = "".join(node_of(render_svg(parse_dot(REVIEW), states=states), "check").itertext())
    assert "exit code 2" in texts


def test_a_goal_gate_wears_a_star():
    svg = render_svg(parse_dot(REVIEW))
    assert node_of(svg, "implement").find(f"{SVG}g[@class='badge goal-gate']") is not None
    assert node_of(svg, "check").find(f"{SVG}g[@class='badge goal-gate']") is None


def test_edges_taken_are_marked_with_their_passes():
    root = parsed(render_svg(parse_dot(REVIEW), edges={4: EdgeState(3)}))
    taken = [g for g in root.iter(SVG + "g") if "taken" in g.get("class", "").split()]
    assert [g.get("data-edge") for g in taken] == ["4", "4"]
    assert "×3" in "".join(taken[1].itertext())


def test_an_ended_run_is_marked_on_the_root():
    assert "ended" in parsed(render_svg(parse_dot(REVIEW), is_ended=True)).get("class").split()
    assert "ended" not in parsed(render_svg(parse_dot(REVIEW))).get("class").split()


def test_errors_mark_their_node_and_warnings_do_not():
    findings = [
        Diagnostic("a", Severity.ERROR, "wrong", node_id="check"),
        Diagnostic("b", Severity.WARNING, "odd", node_id="gate"),
    ]
    svg = render_svg(parse_dot(REVIEW), diagnostics=findings)
    assert node_of(svg, "check").find(f"{SVG}g[@class='finding']") is not None
    assert node_of(svg, "gate").find(f"{SVG}g[@class='finding']") is None


def test_an_error_of_an_edge_marks_the_edge():
    finding = Diagnostic("a", Severity.ERROR, "wrong", edge=("gate", "done"))
    root = parsed(render_svg(parse_dot(REVIEW), diagnostics=[finding]))
    marked = [g.get("data-edge") for g in root.iter(SVG + "g") if "edge-error" in g.get("class", "")]
    assert marked == ["5"]


def test_tooltips_have_the_whole_label():
    label = "A label of many words that is far too long for three lines of twenty-four characters each, to be sure"
    svg = render_svg(Graph("g", nodes={"a": Node("a", {"label": label})}))
    title = node_of(svg, "a").find(SVG + "title").text
    assert label in title


def test_an_endless_label_costs_nothing_and_shows_its_beginning():
    node = Node("a", {"label": "x" * 3_000_000, "prompt": "y" * 3_000_000})
    edge = Edge("a", "a", {"label": "z" * 3_000_000})
    svg = render_svg(Graph("g" * 3_000_000, nodes={"a": node}, edges=(edge,)))
    assert len(svg) < 20_000


def test_the_picture_has_a_name_for_screen_readers():
    root = parsed(render_svg(parse_dot(REVIEW)))
    assert root.get("role") == "img"
    assert root.get("aria-label") == "Pipeline review: 6 nodes, 7 edges"


@pytest.mark.parametrize("count", [10, 99, 100, 300, 999, 1000])
def test_small_text_goes_first_and_labels_later(count):
    text = ";".join(f'n{k} [label="A label that is quite long number {k}"]' for k in range(count))
    ways = ";".join(f'n{k} -> n{k + 1} [label="a way on"]' for k in range(count - 1))
    root = parsed(render_svg(parse_dot(f"digraph g {{ {text}; {ways} }}")))
    classes = [item.get("class") for item in root.iter(SVG + "text")]
    assert ("detail" in classes) == (count < 100)
    captions = [g for g in root.iter(SVG + "g") if g.get("class") == "edge-label" and g.find(SVG + "rect") is not None]
    assert bool(captions) == (count < 1000)
    assert classes.count("label") == count


def test_the_picture_is_at_most_as_wide_as_its_place():
    root = parsed(render_svg(parse_dot(REVIEW)))
    assert root.get("style") == "max-width:100%;height:auto"
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"


def test_two_drawings_on_a_page_share_no_id():
    ids = [set(re.findall(r' id="([^"]+)"', render_svg(parse_dot(f"digraph g {{ a{k} }}")))) for k in range(2)]
    assert not ids[0] & ids[1]


def test_an_unknown_theme_is_refused():
    with pytest.raises(OptionError, match="unknown theme"):
        render_svg(Graph("g"), theme="solarized")


def test_no_script_link_or_foreign_content_is_ever_written():
    svg = render_svg(parse_dot(REVIEW), states={"gate": NodeState(NodeStatus.WAITING)})
    assert not re.search(
        r"<(script|a|image|foreignObject|use|iframe)\b|\bon\w+=|href|https?://(?!www\.w3\.org/2000/svg)", svg
    )


@pytest.mark.parametrize("name", ["small"])
def test_the_drawing_is_the_golden_one(name):
    """To renew it after a change that was looked at: delete the file, run the test twice."""
    graph = parse_dot('digraph g { start [shape=Mdiamond]; a [label="Say hello"]; start -> a [label="go"] }')
    svg = render_svg(graph, states={"start": NodeState(NodeStatus.SUCCESS, 1, 1)})
    svg = re.sub(r"<style>.*?</style>", "<style/>", svg, flags=re.DOTALL).replace("><", ">\n<") + "\n"
    path = GOLDEN / f"{name}.svg"
    if not path.exists():
        path.write_text(svg)
        pytest.fail("the golden file was missing and has been written")
    assert svg == path.read_text()


@pytest.mark.parametrize(("count", "shown"), [(6, 1080.0), (30, 0.0)], ids=["to a cell", "as far as it is legible"])
def test_a_wide_picture_is_shown_smaller(count, shown):
    names = [f"a_rather_long_name_{number}" for number in range(count)]
    svg = render_svg(parse_dot(f"digraph {{ rankdir=LR; {' -> '.join(names)} }}"))
    head = svg[: svg.index(">")]
    width = float(re.search(r' width="([\d.]+)"', head)[1])
    height = float(re.search(r' height="([\d.]+)"', head)[1])
    box = [float(part) for part in re.search(r'viewBox="([\d. -]+)"', head)[1].split()]
    assert box[2] > 1080
    assert width == (shown or round(0.75 * box[2]))
    assert height == pytest.approx(box[3] * width / box[2], abs=1)


def test_marks_are_paths_and_no_glyphs_of_fonts_that_may_be_missing():
    names = [status.value for status in NodeStatus]
    ways = " ".join(f"{name} [goal_gate=true] start -> {name} -> done" for name in names)
    graph = parse_dot(f"digraph g {{ start [shape=Mdiamond] done [shape=Msquare] {ways} }}")
    states = {status.value: NodeState(status, attempt=3, visits=8000) for status in NodeStatus}
    svg = render_svg(graph, states=states, edges={0: EdgeState(8000)})
    shown = "".join(re.sub("<[^>]*>", "", text) for text in re.findall(r"<text.*?</text>", svg, re.DOTALL))
    assert "running" in shown
    assert {character for character in shown if ord(character) > 0xFF} <= {"…"}


def test_a_stage_that_the_end_of_its_run_cut_off_does_not_fade_with_those_that_were_not_reached():
    cut_off = {"implement": NodeState(visits=1), "start": NodeState(NodeStatus.SUCCESS, visits=1)}
    drawn = render_svg(parse_dot(REVIEW), states=cut_off, is_ended=True)
    classes = {
        node.get("data-node"): node.get("class").split() for node in parsed(drawn).iter() if node.get("data-node")
    }
    assert [name for name, its in classes.items() if "state-begun" in its] == ["implement"]
    assert ".ended .state-pending:not(.state-begun)" in drawn
