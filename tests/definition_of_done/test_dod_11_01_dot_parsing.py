"""Section 11.1 of the specification, row by row."""

import pytest

from attractor_nb import Pipeline, parse_dot
from attractor_nb.errors import DotSyntaxError


def test_11_1_the_supported_subset_is_accepted():
    graph = parse_dot("""digraph demo {
        graph [goal="Ship it", label="Demo"]
        node [shape=box]
        edge [weight=1]
        rankdir=LR
        start [shape=Mdiamond]; done [shape=Msquare];
        subgraph cluster_a { plan [prompt="Plan"] }
        start -> plan -> done
    }""")
    assert list(graph.nodes) == ["start", "done", "plan"]
    assert [(edge.source, edge.target) for edge in graph.edges] == [("start", "plan"), ("plan", "done")]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("graph g { a -- b }", id="undirected"),
        pytest.param("strict digraph g { a }", id="strict"),
        pytest.param("digraph a { x } digraph b { y }", id="two_graphs"),
        pytest.param("digraph g { a [label=<b>bold</b>] }", id="html_label"),
        pytest.param("digraph g { a -- b }", id="undirected_edge"),
        pytest.param('digraph g { a [x="1"y=2] }', id="no_comma"),
    ],
)
def test_11_1_what_is_outside_the_subset_is_refused_with_its_place(text):
    with pytest.raises(DotSyntaxError) as caught:
        parse_dot(text)
    assert caught.value.span is not None
    assert caught.value.hint


@pytest.mark.parametrize(
    ("name", "expected"), [("goal", "Ship"), ("label", "Demo"), ("model_stylesheet", "* { llm_model: a; }")]
)
def test_11_1_graph_attributes_are_extracted(name, expected):
    graph = parse_dot('digraph g { graph [goal="Ship", label="Demo", model_stylesheet="* { llm_model: a; }"] }')
    assert getattr(graph, name) == expected


def test_11_1_node_attributes_may_span_several_lines(dot):
    node = parse_dot(dot('plan [\n  label="Plan",\n  prompt="one\ntwo",\n  max_retries=3,\n]')).nodes["plan"]
    assert (node.label, node.prompt, node.max_retries) == ("Plan", "one\ntwo", 3)


def test_11_1_edge_attributes_are_parsed(dot):
    edge = parse_dot(dot('start -> done [label="Yes", condition="outcome=success", weight=7]')).edges[0]
    assert (edge.label, edge.condition, edge.weight) == ("Yes", "outcome=success", 7)


def test_11_1_a_chain_is_one_edge_for_each_pair(dot):
    edges = parse_dot(dot('a -> b -> c [label="next"] a b c')).edges
    assert [(edge.source, edge.target, edge.label) for edge in edges] == [("a", "b", "next"), ("b", "c", "next")]


def test_11_1_default_blocks_apply_to_what_follows(dot):
    graph = parse_dot(
        dot("""before
        node [timeout="900s"] edge [weight=5]
        after
        own [timeout="1s"]
        before -> after""")
    )
    assert graph.nodes["before"].timeout is None
    assert graph.nodes["after"].timeout.seconds == 900
    assert graph.nodes["own"].timeout.seconds == 1
    assert graph.edges[0].weight == 5


def test_11_1_subgraphs_are_flattened(dot):
    graph = parse_dot(dot('subgraph cluster_x { label="Loop A" plan implement plan -> implement }'))
    assert {"plan", "implement"} <= graph.nodes.keys()
    assert graph.nodes["plan"].classes == ("loop-a",)


def test_11_1_a_class_brings_in_the_attributes_of_the_stylesheet(dot):
    pipeline = Pipeline(dot('model_stylesheet=".fast { llm_model: small; }" plan [class="fast,other"]'))
    assert pipeline.graph.nodes["plan"].llm_model == "small"


@pytest.mark.parametrize("written", ["box", '"box"'])
def test_11_1_quoted_and_unquoted_values_both_work(dot, written):
    assert parse_dot(dot(f"plan [shape={written}]")).nodes["plan"].shape == "box"


def test_11_1_comments_are_stripped(dot):
    graph = parse_dot(dot('// a line\n plan /* a\nblock */ [label="// kept"]'))
    assert graph.nodes["plan"].label == "// kept"
