"""Edits on DOT text: the graph changes as meant, and nothing else of the text."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from attractor_nb.errors import OptionError
from attractor_nb.languages.dot import parse_dot, parse_syntax
from attractor_nb.languages.dot.attribute_edits import (
    link_at,
    remove_edge_attribute,
    remove_graph_attribute,
    remove_node_attribute,
    set_edge_attribute,
    set_graph_attribute,
    set_node_attribute,
)
from attractor_nb.languages.dot.structure_edits import add_edge, add_node, remove_edge, remove_node, rename_node
from attractor_nb.model.vocabulary.attributes import literal_text
from attractor_nb.model.vocabulary.value_forms import parse_duration
from attractor_nb.source import SourceText
from tests.languages.dot.test_dot_writing import DEMO, STRINGS, sources

EXAMPLES = [path.read_text() for path in sorted((Path(__file__).parents[3] / "examples").glob("*.dot"))]
TEXTS = st.one_of(st.sampled_from([*EXAMPLES, DEMO, DEMO.replace("\n", "\r\n")]), sources())
NAMES = st.sampled_from(["label", "prompt", "max_retries", "timeout", "shape", "my_own", "human.timeout", "class"])
VALUES = st.one_of(STRINGS, st.integers(-5, 10**6), st.booleans(), st.sampled_from([0.5, "15m", "x\ny"]))


def tree_of(text):
    return parse_syntax(SourceText(text))


def meaning(graph):
    """The contents of a graph without the order in which it declares its nodes."""
    return (
        dict(graph.attrs),
        {name: (dict(node.attrs), node.explicit) for name, node in graph.nodes.items()},
        [(edge.source, edge.target, dict(edge.attrs)) for edge in graph.edges],
        [(group.id, dict(group.attrs), set(group.members)) for group in graph.subgraphs],
    )


def known(before, after):
    """The new graph's facts about the old one's nodes: a slip of a node that is gone is a node itself."""
    mentioned = {end for edge in before.edges for end in (edge.source, edge.target)} - set(before.nodes)
    graph, nodes, *rest = meaning(after)
    return (graph, {name: node for name, node in nodes.items() if name not in mentioned}, *rest)


def comments_of(text):
    return sorted(comment.text.strip() for comment in tree_of(text).comments)


def kept_lines(before, after):
    """The lines of the old text that the new one does not have."""
    diff = difflib.ndiff(before.splitlines(keepends=True), after.splitlines(keepends=True))
    return [line[2:] for line in diff if line.startswith("- ")]


def a_node(data, graph):
    assume(graph.nodes)
    return data.draw(st.sampled_from(list(graph.nodes)))


def an_edge(data, graph):
    assume(graph.edges)
    return data.draw(st.integers(0, len(graph.edges) - 1))


# -- attributes --------------------------------------------------------------------------------------------


@given(TEXTS, NAMES, VALUES, st.data())
@settings(max_examples=40)
def test_an_attribute_of_a_node_is_set_and_nothing_else_changes(text, name, value, data):
    before = parse_dot(text)
    node_id = a_node(data, before)
    edited = set_node_attribute(tree_of(text), node_id, name, value)
    after = parse_dot(edited)
    graph, nodes, edges, groups = meaning(before)
    found = after.nodes[node_id].attrs[name]
    assert (
        literal_text(found) == literal_text(value)
        or found == value
        or found == parse_duration(str(value).strip())
        or str(found) == str(value).strip()
    )
    nodes[node_id] = ({**nodes[node_id][0], name: found}, nodes[node_id][1] | {name})
    is_declared = not before.nodes[node_id].is_implicit
    assert meaning(after)[:3] == (graph, nodes, edges)
    if is_declared:
        assert meaning(after)[3] == groups
    assert comments_of(edited) == comments_of(text)
    if is_declared and "\n" not in str(before.nodes[node_id].attrs.get(name, "")):
        assert len(kept_lines(text, edited)) <= 1


@given(TEXTS, st.data())
@settings(max_examples=40)
def test_an_attribute_of_a_node_is_removed_and_what_it_inherits_shows(text, data):
    before = parse_dot(text)
    node_id = a_node(data, before)
    assume(before.nodes[node_id].explicit)
    name = data.draw(st.sampled_from(sorted(before.nodes[node_id].explicit)))
    edited = remove_node_attribute(tree_of(text), node_id, name)
    after = parse_dot(edited)
    graph, nodes, edges, groups = meaning(before)
    attrs = {key: value for key, value in nodes[node_id][0].items() if key != name}
    if name in after.nodes[node_id].attrs:
        attrs[name] = after.nodes[node_id].attrs[name]
    nodes[node_id] = (attrs, nodes[node_id][1] - {name})
    assert meaning(after) == (graph, nodes, edges, groups)


@given(TEXTS, NAMES, VALUES, st.data())
@settings(max_examples=40)
def test_an_attribute_of_one_edge_is_set_though_it_stands_in_a_chain(text, name, value, data):
    before = parse_dot(text)
    position = an_edge(data, before)
    edited = set_edge_attribute(tree_of(text), position, name, value)
    after = parse_dot(edited)
    graph, nodes, edges, groups = meaning(before)
    source, target, attrs = edges[position]
    edges[position] = (source, target, {**attrs, name: after.edges[position].attrs[name]})
    assert literal_text(after.edges[position].attrs[name]).strip() in {literal_text(value).strip(), "15m"}
    assert meaning(after) == (graph, nodes, edges, groups)


@given(TEXTS, st.data())
@settings(max_examples=40)
def test_an_attribute_of_one_edge_is_removed_though_it_stands_in_a_chain(text, data):
    before = parse_dot(text)
    blocks = [link_at(tree_of(text), position).statement.block for position in range(len(before.edges))]
    held = [position for position, block in enumerate(blocks) if block is not None and block.attrs]
    assume(held)
    position = data.draw(st.sampled_from(held))
    name = data.draw(st.sampled_from([attr.name for attr in blocks[position].attrs]))
    after = parse_dot(remove_edge_attribute(tree_of(text), position, name))
    graph, nodes, edges, groups = meaning(before)
    source, target, attrs = edges[position]
    attrs = {key: value for key, value in attrs.items() if key != name}
    attrs |= {key: value for key, value in after.edges[position].attrs.items() if key == name}
    edges[position] = (source, target, attrs)
    assert meaning(after) == (graph, nodes, edges, groups)


@given(TEXTS, st.sampled_from(["goal", "label", "default_max_retries", "my_own"]), VALUES)
@settings(max_examples=40)
def test_an_attribute_of_the_graph_is_set_and_removed(text, name, value):
    before = parse_dot(text)
    edited = set_graph_attribute(tree_of(text), name, value)
    after = parse_dot(edited)
    graph, *rest = meaning(before)
    assert meaning(after) == ({**graph, name: after.attrs[name]}, *rest)
    assert comments_of(edited) == comments_of(text)
    removed = parse_dot(remove_graph_attribute(tree_of(edited), name))
    graph.pop(name, None)
    assert meaning(removed) == (graph, *rest)


# -- structure ---------------------------------------------------------------------------------------------


@given(TEXTS, st.data())
@settings(max_examples=40)
def test_an_edge_is_removed_and_its_nodes_stay(text, data):
    before = parse_dot(text)
    position = an_edge(data, before)
    edited = remove_edge(tree_of(text), position)
    after = parse_dot(edited)
    graph, nodes, edges, _ = meaning(before)
    del edges[position]
    assert meaning(after)[:3] == (graph, nodes, edges)


@given(TEXTS, st.data())
@settings(max_examples=40)
def test_an_edge_is_added_behind_the_others(text, data):
    before = parse_dot(text)
    source, target = a_node(data, before), a_node(data, before)
    edited = add_edge(tree_of(text), source, target, {"my_own": "new"})
    after = parse_dot(edited)
    graph, nodes, edges, _ = meaning(before)
    (at,) = [at for at, edge in enumerate(after.edges) if edge.attrs.get("my_own") == "new"]
    assert (after.edges[at].source, after.edges[at].target) == (source, target)
    assert [edge for number, edge in enumerate(meaning(after)[2]) if number != at] == edges
    assert (meaning(after)[0], set(meaning(after)[1])) == (graph, set(nodes))
    assert kept_lines(text, edited) == [] or "\n" not in text.strip() or len(kept_lines(text, edited)) <= 1
    assert comments_of(edited) == comments_of(text)


@given(TEXTS, st.data())
@settings(max_examples=40)
def test_a_node_is_added_and_removed_again(text, data):
    before = parse_dot(text)
    after_id = data.draw(st.sampled_from(["", *(name for name, node in before.nodes.items() if not node.is_implicit)]))
    edited = add_node(tree_of(text), "brand_new_one", {"prompt": 'Say "hi"\nand go'}, after=after_id)
    added = parse_dot(edited)
    assert added.nodes["brand_new_one"].prompt == 'Say "hi"\nand go'
    graph, nodes, edges, _ = meaning(before)
    assert meaning(added)[1] == {**nodes, "brand_new_one": meaning(added)[1]["brand_new_one"]}
    assert (meaning(added)[0], meaning(added)[2]) == (graph, edges)
    assert comments_of(edited) == comments_of(text)
    back = remove_node(tree_of(edited), "brand_new_one")
    assert meaning(parse_dot(back)) == meaning(before)


@given(TEXTS, st.data())
@settings(max_examples=40)
def test_a_node_is_removed_with_its_edges_alone(text, data):
    before = parse_dot(text)
    node_id = a_node(data, before)
    edited = remove_node(tree_of(text), node_id)
    after = parse_dot(edited)
    graph, nodes, edges, groups = meaning(before)
    del nodes[node_id]
    edges = [edge for edge in edges if node_id not in edge[:2]]
    assert known(before, after)[:3] == (graph, nodes, edges)
    assert [(name, attrs) for name, attrs, _ in meaning(after)[3]] == [(name, attrs) for name, attrs, _ in groups]


@given(TEXTS, st.data())
@settings(max_examples=40)
def test_a_node_is_renamed_wherever_it_is_named_and_back(text, data):
    before = parse_dot(text)
    node_id = a_node(data, before)
    edited = rename_node(tree_of(text), node_id, "brand_new_one")
    after = parse_dot(edited)
    assert set(known(before, after)[1]) == {"brand_new_one" if name == node_id else name for name in before.nodes}
    assert [
        tuple(node_id if end == "brand_new_one" else end for end in (edge.source, edge.target)) for edge in after.edges
    ] == [(edge.source, edge.target) for edge in before.edges]
    assert [{node_id if name == "brand_new_one" else name for name in group.members} for group in after.subgraphs] == [
        set(group.members) for group in before.subgraphs
    ]
    if not any(node.is_implicit for graph in (before, after) for node in graph.nodes.values()):
        assert rename_node(tree_of(edited), "brand_new_one", node_id) == text


def test_a_node_that_edges_alone_name_stays_one_when_another_of_nearly_its_name_is_declared():
    edited = set_node_attribute(tree_of("digraph { n1 -> n2 -> n1 }"), "n1", "label", "One")
    assert edited == 'digraph { n2; n1 [label="One"]; n1 -> n2 -> n1 }'
    assert set(parse_dot(edited).nodes) == {"n1", "n2"}


# -- the smallest change, in exact words -------------------------------------------------------------------

RELEASE = """digraph release {
    goal = "ship"   // the goal
    start  [shape=Mdiamond]
    plan   [label="Plan", prompt="Plan:
        think first"]   // the plan
    // the gate
    gate   [shape=hexagon, human.default_choice="plan", retry_target=plan]
    done   [shape=Msquare]

    start -> plan -> gate
    gate -> plan -> done [label="[N] No", weight=1] // again
    long [
        label="Long",  // its name
        timeout=15m    // its time
    ]
}
"""


def changes(edit, *arguments, text=RELEASE):
    """The lines that an edit takes out and puts in, as of a diff."""
    after = edit(tree_of(text), *arguments)
    diff = difflib.ndiff(text.splitlines(), after.splitlines())
    return [line.rstrip() for line in diff if line[0] in "+-"]


@pytest.mark.parametrize(
    ("edit", "arguments", "lines"),
    [
        (
            set_node_attribute,
            ("plan", "prompt", "Plan:\n        think twice"),
            ['-         think first"]   // the plan', '+         think twice"]   // the plan'],
        ),
        (
            set_node_attribute,
            ("long", "timeout", "20m"),
            ["-         timeout=15m    // its time", "+         timeout=20m    // its time"],
        ),
        (
            set_node_attribute,
            ("long", "max_retries", "2"),
            [
                "-         timeout=15m    // its time",
                "+         timeout=15m,    // its time",
                "+         max_retries=2",
            ],
        ),
        (remove_node_attribute, ("long", "label"), ['-         label="Long",  // its name', "+         // its name"]),
        (
            set_node_attribute,
            ("start", "label", "Go"),
            ["-     start  [shape=Mdiamond]", '+     start  [shape=Mdiamond, label="Go"]'],
        ),
        (set_graph_attribute, ("rankdir", "LR"), ["+     rankdir = LR"]),
        (
            set_edge_attribute,
            (3, "condition", "outcome=success"),
            [
                '-     gate -> plan -> done [label="[N] No", weight=1] // again',
                '+     gate -> plan [label="[N] No", weight=1]',
                '+     plan -> done [label="[N] No", weight=1, condition="outcome=success"] // again',
            ],
        ),
        (remove_edge, (0,), ["-     start -> plan -> gate", "+     plan -> gate"]),
        (add_edge, ("start", "done", {"label": "Skip"}), ['+     start -> done [label="Skip"]']),
        (add_node, ("test", {"shape": "parallelogram"}), ["+     test [shape=parallelogram]"]),
        (
            rename_node,
            ("plan", "think"),
            [
                '-     plan   [label="Plan", prompt="Plan:',
                '+     think   [label="Plan", prompt="Plan:',
                '-     gate   [shape=hexagon, human.default_choice="plan", retry_target=plan]',
                '+     gate   [shape=hexagon, human.default_choice="think", retry_target=think]',
                "-     start -> plan -> gate",
                "+     start -> think -> gate",
                '-     gate -> plan -> done [label="[N] No", weight=1] // again',
                '+     gate -> think -> done [label="[N] No", weight=1] // again',
            ],
        ),
    ],
    ids=lambda value: value.__name__ if callable(value) else None,
)
def test_a_change_touches_these_lines_alone(edit, arguments, lines):
    assert changes(edit, *arguments) == lines


@pytest.mark.parametrize(
    ("written", "name", "left"),
    [
        ("a [x=1 y=2 z=3]", "x", "a [y=2 z=3]"),
        ("a [x=1 y=2 z=3]", "y", "a [x=1 z=3]"),
        ("a [x=1 y=2 z=3]", "z", "a [x=1 y=2]"),
        ('a [x="1" /* c */ y=2]', "x", "a [/* c */ y=2]"),
    ],
)
def test_ruling_1a_an_attribute_among_blanks_is_removed(written, name, left):
    tree = tree_of(f"digraph {{ {written} }}")
    assert remove_node_attribute(tree, "a", name) == f"digraph {{ {left} }}"


def test_ruling_1a_an_attribute_among_blanks_is_set_and_added():
    tree = tree_of("digraph { a [x=1 y=2] }")
    assert set_node_attribute(tree, "a", "x", 5) == "digraph { a [x=5 y=2] }"
    assert set_node_attribute(tree, "a", "z", 3) == "digraph { a [x=1 y=2, z=3] }"


def test_a_new_node_stands_in_line_with_the_one_before_it():
    text = "digraph {\n    start  [shape=Mdiamond]\n    a      [prompt=x] // c\n    start -> a\n}\n"
    after = add_node(tree_of(text), "test", {"prompt": "y"})
    assert after.splitlines()[3] == '    test   [prompt="y"]'


@pytest.mark.parametrize(
    ("edit", "arguments", "words"),
    [
        (set_node_attribute, ("plam", "label", "x"), 'no node "plam"'),
        (set_node_attribute, ("plan", "a b", "x"), "cannot name an attribute"),
        (set_node_attribute, ("plan", "weight", float("nan")), "no such number"),
        (set_node_attribute, ("plan", "label", ["x"]), "cannot be a list"),
        (remove_node_attribute, ("plan", "timeout"), "plan itself has no attribute timeout"),
        (remove_graph_attribute, ("label",), "the graph has no attribute label"),
        (set_edge_attribute, (9, "label", "x"), "no edge number 9"),
        (remove_edge_attribute, (0, "label"), "the edge itself has no attribute"),
        (add_node, ("plan", {}), 'a node "plan" already'),
        (add_node, ("a-b", {}), "cannot be a node's id"),
        (add_edge, ("plan", "plam", {}), 'no node "plam"; did you mean "plan"?'),
        (rename_node, ("plan", "gate"), 'a node "gate" already'),
        (remove_node, ("plam",), 'no node "plam"'),
    ],
)
def test_what_cannot_be_is_refused_in_words(edit, arguments, words):
    with pytest.raises(OptionError, match=words.replace("?", r"\?")):
        edit(tree_of(RELEASE), *arguments)


@pytest.mark.parametrize(("after", "near"), [("plam", '; did you mean "plan"?'), ("implied", "")])
def test_a_node_is_not_put_behind_one_that_no_statement_declares(after, near):
    tree = tree_of("digraph { plan [prompt=x] start -> implied }")
    with pytest.raises(OptionError) as caught:
        add_node(tree, "new", {}, after=after)
    assert (caught.value.message, caught.value.hint) == (
        f'no statement declares "{after}"{near}',
        "name a declared node",
    )


def test_a_value_that_no_literal_of_an_attribute_means_is_refused():
    with pytest.raises(OptionError, match="DOT cannot hold this value of my_own") as caught:
        set_node_attribute(tree_of("digraph { plan [prompt=x] }"), "plan", "my_own", parse_duration("15m"))
    assert caught.value.hint == "write it as a string"
