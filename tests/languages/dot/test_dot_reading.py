"""The meaning of DOT texts: spec 2.1-2.13, 11.1 and rulings 1 to 5."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from attractor_nb.errors import DotSyntaxError
from attractor_nb.languages.dot import derived_class, parse_dot, parser, read_dot
from attractor_nb.languages.dot.lower import slips
from attractor_nb.model.graph import Edge, Graph, Node
from attractor_nb.model.vocabulary.value_forms import Duration
from attractor_nb.source import SourceText

MAX_DEFAULTS = 100
MAX_COMPARISONS = 200_000


def body(text: str) -> Graph:
    return parse_dot(f"digraph G {{ {text} }}")


def node(text: str, node_id: str = "a") -> Node:
    return body(text).nodes[node_id]


def pairs(graph: Graph) -> list[tuple[str, str]]:
    return [(edge.source, edge.target) for edge in graph.edges]


def test_11_1_a_digraph_with_graph_node_and_edge_blocks_is_read() -> None:
    graph = body('graph [goal="Build"] node [shape=box] edge [weight=2] a; b; a -> b')

    assert graph.name == "G"
    assert graph.goal == "Build"
    assert list(graph.nodes) == ["a", "b"]
    assert graph.nodes["a"].shape == "box"
    assert graph.edges[0].weight == 2


def test_11_1_graph_attributes_come_from_a_block_or_from_declarations() -> None:
    graph = body('graph [goal="Build", label="Demo"]\n rankdir=LR\n model_stylesheet = "* { model = x }";')

    assert (graph.goal, graph.label, graph.attrs["rankdir"]) == ("Build", "Demo", "LR")
    assert graph.model_stylesheet == "* { model = x }"


def test_11_1_attribute_blocks_may_span_lines() -> None:
    found = node('a [\n    shape=hexagon,\n    label="Review Changes",\n    type="wait.human"\n]')

    assert (found.shape, found.label, found.type) == ("hexagon", "Review Changes", "wait.human")


def test_11_1_edge_attributes_are_read() -> None:
    (edge,) = body('a; b; a -> b [label="Yes", condition="outcome=success", weight=3]').edges

    assert (edge.label, edge.condition, edge.weight) == ("Yes", "outcome=success", 3)


def test_11_1_a_chain_becomes_one_edge_for_each_pair() -> None:
    graph = body('a; b; c; a -> b -> c [label="next"]')

    assert pairs(graph) == [("a", "b"), ("b", "c")]
    assert [edge.label for edge in graph.edges] == ["next", "next"]


def test_11_1_default_blocks_apply_to_subsequent_declarations_only() -> None:
    graph = body(
        "a; node [timeout=900s] b; node [timeout=5m, class=x] c [timeout=1h]; edge [weight=1] a -> b; edge [weight=2] b -> c"
    )

    assert graph.nodes["a"].timeout is None
    assert graph.nodes["b"].timeout == Duration(900_000)
    assert graph.nodes["c"].timeout == Duration(3_600_000)
    assert graph.nodes["c"].classes == ("x",)
    assert [edge.weight for edge in graph.edges] == [1, 2]


def test_11_1_subgraphs_are_flattened_and_remembered() -> None:
    graph = body("a; subgraph cluster_x { b; subgraph cluster_y { c } } d")

    assert list(graph.nodes) == ["a", "b", "c", "d"]
    assert [(group.id, group.members, group.parent) for group in graph.subgraphs] == [
        ("cluster_x", ("b", "c"), None),
        ("cluster_y", ("c",), 0),
    ]


@pytest.mark.parametrize("value", ["box", '"box"'])
def test_11_1_quoted_and_unquoted_values_both_work(value: str) -> None:
    assert node(f"a [shape={value}]").shape == "box"


def test_11_1_comments_are_no_part_of_the_graph() -> None:
    assert body("// a\n a /* [label=X] */ -> b // ;\n /* b */ -> a; a; b") == body("a -> b -> a; a; b")


def test_spec_2_10_defaults_of_a_subgraph_stay_in_it() -> None:
    graph = body(
        'subgraph cluster_loop { label = "Loop A"; node [thread_id="loop-a", timeout="900s"]'
        ' Plan [label="Plan next step"] Implement [timeout="1800s"] } after'
    )

    assert graph.nodes["Plan"].thread_id == "loop-a"
    assert graph.nodes["Plan"].timeout == Duration(900_000)
    assert graph.nodes["Implement"].thread_id == "loop-a"
    assert graph.nodes["Implement"].timeout == Duration(1_800_000)
    assert graph.nodes["after"].attrs == {}


def test_spec_2_10_edge_defaults_of_a_subgraph_stay_in_it() -> None:
    graph = body("a; b; edge [weight=1] subgraph { edge [fidelity=full] a -> b } b -> a")

    assert [dict(edge.attrs) for edge in graph.edges] == [{"weight": 1, "fidelity": "full"}, {"weight": 1}]


def test_spec_2_10_a_label_derives_a_class_wherever_it_stands_in_the_group() -> None:
    graph = body('subgraph cluster_a { a [class="code"]; label="Loop A"; subgraph x { b; graph [label="Inner"] } }')

    assert graph.nodes["a"].classes == ("code", "loop-a")
    assert graph.nodes["b"].derived_classes == ("loop-a", "inner")
    assert [group.derived_class for group in graph.subgraphs] == ["loop-a", "inner"]


@pytest.mark.parametrize(
    ("label", "expected"),
    [("Loop A", "loop-a"), ("Q&A (v2)", "qa-v2"), ("a\tb", "a-b"), ("Prüfung", "prfung"), ("", ""), ("???", "")],
)
def test_spec_2_10_derived_class(label: str, expected: str) -> None:
    assert derived_class(label) == expected


def test_a_group_without_id_and_attributes_only_scopes_defaults() -> None:
    graph = body("subgraph cluster_x { subgraph { node [class=k] a } b }")

    assert [group.id for group in graph.subgraphs] == ["cluster_x"]
    assert graph.subgraphs[0].members == ("a", "b")
    assert graph.nodes["a"].classes == ("k",)
    assert graph.nodes["b"].classes == ()


def test_a_node_named_in_a_group_later_becomes_a_member_and_keeps_its_defaults() -> None:
    graph = body("a [label=A]; subgraph cluster_x { node [class=k] a; b }")

    assert graph.subgraphs[0].members == ("a", "b")
    assert dict(graph.nodes["a"].attrs) == {"label": "A"}


def test_explicit_attributes_are_told_from_inherited_ones() -> None:
    found = node("node [shape=box, timeout=5m, class=k] a [timeout=1h, label=A]")

    assert found.explicit == {"timeout", "label"}
    assert dict(found.attrs) == {"shape": "box", "timeout": Duration(3_600_000), "class": "k", "label": "A"}


def test_a_later_statement_of_a_node_adds_to_it_and_wins() -> None:
    found = node("a [label=A, class=k]; a [label=B, shape=box]")

    assert dict(found.attrs) == {"label": "B", "class": "k", "shape": "box"}
    assert found.explicit == {"label", "class", "shape"}


def test_the_spec_s_name_of_default_max_retries_is_an_alias() -> None:
    assert dict(body("graph [default_max_retry=3]").attrs) == {"default_max_retries": 3}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("timeout=900s", Duration(900_000)),
        ('timeout="900s"', Duration(900_000)),
        ("timeout=30", Duration(30_000)),
        ("timeout=1.5", Duration(1_500)),
        ('timeout="soon"', "soon"),
        ("timeout=true", True),
        ("max_retries=3", 3),
        ('max_retries="3"', 3),
        ("max_retries=-1", -1),
        ("max_retries=2.5", 2.5),
        ("max_retries=3s", "3s"),
        ("max_retries=many", "many"),
        ('max_retries="999999999999999999999"', "999999999999999999999"),
        ("goal_gate=true", True),
        ('goal_gate="true"', True),
        ("goal_gate=False", False),
        ("goal_gate=1", 1),
        ("join_quorum=1", 1.0),
        ("join_quorum=.5", 0.5),
        ('join_quorum="' + "9" * 390 + '"', "9" * 390),
        ("label=007", "007"),
        ("label=15m", "15m"),
        ("label=1.50", "1.50"),
        ("label=true", "true"),
        ("llm_model=gpt-5.2", "gpt-5.2"),
        ("llm_model=claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("type=wait.human", "wait.human"),
        ("fidelity=summary:low", "summary:low"),
    ],
)
def test_ruling_2_a_value_gets_the_type_of_its_attribute(written: str, expected: object) -> None:
    (value,) = node(f"a [{written}]").attrs.values()

    assert (value, type(value)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("42", 42),
        ("-1", -1),
        ("0.5", 0.5),
        ("-.25", -0.25),
        ("true", True),
        ("False", "False"),
        ("15m", "15m"),
        ('"42"', "42"),
        ('"true"', "true"),
        ("word", "word"),
        ("1.", "1."),
        ("1e5", "1e5"),
        ("http://host/path?", None),
        ("http://host/path", "http://host/path"),
        ("a/b.c:d-e", "a/b.c:d-e"),
        ("-", "-"),
    ],
)
def test_ruling_5_an_unknown_attribute_keeps_what_its_spelling_says(written: str, expected: object) -> None:
    text = f"a [my.own={written}]"
    if expected is None:
        with pytest.raises(DotSyntaxError):
            node(text)
        return
    (value,) = node(text).attrs.values()

    assert (value, type(value)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        (r'"say \"hi\""', 'say "hi"'),
        (r'"line1\nline2"', "line1\nline2"),
        (r'"a\tb"', "a\tb"),
        (r'"a\\nb"', "a\\nb"),
        (r'"left\l"', "left\\l"),
        ('"two\nlines"', "two\nlines"),
        ('"two\r\nlines"', "two\nlines"),
        ('"back\\\r\nslash"', "back\\\nslash"),
        ('""', ""),
        ('"{ // # ] no comment }"', "{ // # ] no comment }"),
    ],
)
def test_ruling_2_string_escapes(literal: str, expected: str) -> None:
    assert node(f"a [label={literal}]").attrs["label"] == expected


@pytest.mark.parametrize(
    ("text", "name"), [("digraph {}", ""), ("digraph Simple {}", "Simple"), ('digraph "My pipeline" {}', "My pipeline")]
)
def test_ruling_3_the_graph_s_name_may_be_quoted_or_absent(text: str, name: str) -> None:
    assert parse_dot(text).name == name


def test_ruling_4_an_id_that_edges_only_leave_and_enter_is_an_implicit_node() -> None:
    graph = body("start; review; start -> review; review -> ship_it; ship_it -> start")

    assert graph.nodes["ship_it"].is_implicit
    assert graph.nodes["ship_it"].label == "ship_it"
    assert graph.nodes["ship_it"].explicit == frozenset()
    assert not graph.nodes["review"].is_implicit


def test_ruling_4_an_implicit_node_takes_the_defaults_in_force_where_it_is_first_mentioned() -> None:
    graph = body("begin; node [timeout=5m] begin -> elsewhere; node [timeout=1h] elsewhere -> begin")

    assert graph.nodes["elsewhere"].timeout == Duration(300_000)
    assert graph.nodes["elsewhere"].explicit == frozenset()


@pytest.mark.parametrize(
    "text",
    [
        "start; start -> nowhere",
        "finish; somewhere -> finish",
        "implement; other; other -> implment; implment -> other",
    ],
    ids=["only a target", "only a source", "a slip of a declared id"],
)
def test_ruling_4_other_undeclared_ids_are_left_for_lint_to_report(text: str) -> None:
    graph = body(text)

    assert not any(found.is_implicit for found in graph.nodes.values())
    assert len({*graph.nodes}) < len(
        {name for edge in graph.edges for name in (edge.source, edge.target)} | {*graph.nodes}
    )


@pytest.mark.parametrize(
    ("unknown", "is_slip"),
    [("plans", True), ("lpan", True), ("pla", True), ("planner", False), ("Plan", True), ("review", False)],
)
def test_ruling_4_a_slip_lies_within_edit_distance_2(unknown: str, *, is_slip: bool) -> None:
    assert (slips([unknown], ["plan"]) == {unknown}) is is_slip


def test_ruling_4_beyond_a_number_of_comparisons_every_undeclared_id_counts_as_a_slip() -> None:
    many = [f"step_{number}" for number in range(int(MAX_COMPARISONS**0.5) + 1)]

    assert slips([f"other{name}" for name in many], many) == {f"other{name}" for name in many}


def test_nodes_are_in_the_order_of_their_statements_and_implicit_ones_follow() -> None:
    assert list(body("zeta -> implied -> other; other; zeta; implied -> zeta").nodes) == ["other", "zeta", "implied"]


def test_crlf_and_lf_files_mean_the_same_graph() -> None:
    text = 'digraph G {\n  // c\n  a [label="two\nlines"\n  shape=box]\n  a -> b -> a\n}\n'

    assert parse_dot(text.replace("\n", "\r\n")).content_hash == parse_dot(text).content_hash


def test_a_byte_order_mark_at_the_beginning_is_passed_over() -> None:
    document = read_dot("\ufeffdigraph G { a }")

    assert list(document.graph.nodes) == ["a"]
    assert document.tree.span(document.tree.body[0]).column == 13


def test_a_cell_body_keeps_its_own_line_numbers() -> None:
    graph = parse_dot(SourceText("digraph G {\n a\n}", "<cell>", first_line=2))

    assert graph.nodes["a"].span is not None
    assert graph.nodes["a"].span.place == "<cell>:3:2"


@pytest.mark.parametrize("scope", ["node", "edge"])
def test_more_defaults_than_anybody_needs_are_refused_with_their_place(scope: str) -> None:
    blocks = "".join(f"{scope} [k{number}=1]\n" for number in range(MAX_DEFAULTS))
    body(blocks)

    with pytest.raises(DotSyntaxError, match="more than 100 default attributes") as caught:
        body(f"{blocks}{scope} [one_more=1]")
    assert caught.value.span is not None
    assert caught.value.span.text == f"{scope} [one_more=1]"


def test_spans_point_at_ids_edges_attributes_and_group_headers() -> None:
    graph = body(
        'node [shape=box] a [label = "A", "human.timeout"=5m]; subgraph cluster_x { b } a -> b -> a [weight=1]'
    )
    found = graph.nodes["a"]

    assert found.span is not None
    assert found.span.text == "a"
    assert [(spans.name.text, spans.value.text) for spans in found.attr_spans.values()] == [
        ("shape", "box"),
        ("label", '"A"'),
        ('"human.timeout"', "5m"),
    ]
    assert [edge.span.text for edge in graph.edges if edge.span] == ["a -> b", "b -> a"]
    assert graph.edges[1].attr_spans["weight"].value.text == "1"
    assert graph.subgraphs[0].span is not None
    assert graph.subgraphs[0].span.text.strip() == "subgraph cluster_x"
    assert len(found.attr_spans) == 3
    assert "label" in repr(found.attr_spans)


def test_graph_spans_go_by_the_canonical_name() -> None:
    graph = body("graph [default_max_retry=3]")

    assert graph.attr_spans["default_max_retries"].name.text == "default_max_retry"


@pytest.mark.parametrize(
    ("text", "tidy"),
    [
        ("a; ; b;;", "a b"),
        ("a [];", "a"),
        ("a [label=A,];", "a [label=A]"),
        ("a [label=A;];", "a [label=A]"),
        ("a[label=A];b;a->b", "a [label=A] b a -> b"),
        ("a [label=A/**/,/**/shape=box//x\n]", "a [label=A, shape=box]"),
        ('a [label // c\n = // d\n "A"]', 'a [label="A"]'),
        ("label /* c */ = x", "label = x"),
        ("a->b[weight=1]b->a", "a -> b [weight=1]\nb -> a"),
        ("subgraph{a}subgraph x{b}", "subgraph { a }\nsubgraph x { b }"),
    ],
)
def test_spacing_and_stray_separators_do_not_matter(text: str, tidy: str) -> None:
    read, wanted = body(text), body(tidy)
    assert {name: dict(found.attrs) for name, found in read.nodes.items()} == {
        name: dict(found.attrs) for name, found in wanted.nodes.items()
    }
    assert [(*pair, dict(edge.attrs)) for pair, edge in zip(pairs(read), read.edges, strict=True)] == [
        (*pair, dict(edge.attrs)) for pair, edge in zip(pairs(wanted), wanted.edges, strict=True)
    ]
    assert read.attrs == wanted.attrs


def test_a_hash_begins_a_comment_at_the_start_of_a_value_line_only() -> None:
    assert node("a [label =\n # why\n A]").label == "A"


SIMPLE = """
digraph Simple {
    graph [goal="Run tests and report"]
    rankdir=LR

    start [shape=Mdiamond, label="Start"]
    exit  [shape=Msquare, label="Exit"]

    run_tests [label="Run Tests", prompt="Run the test suite and report results"]
    report    [label="Report", prompt="Summarize the test results"]

    start -> run_tests -> report -> exit
}
"""


def test_spec_2_13_simple_linear_workflow() -> None:
    document = read_dot(SIMPLE)

    assert document.diagnostics == ()
    assert pairs(document.graph) == [("start", "run_tests"), ("run_tests", "report"), ("report", "exit")]
    assert document.graph.edges[0] == Edge("start", "run_tests")


def test_the_first_statement_beyond_the_bound_is_refused() -> None:
    with (
        patch.object(parser, "MAX_STATEMENTS", 4),
        pytest.raises(DotSyntaxError, match="more than 4 statements") as refused,
    ):
        parse_dot("digraph { a b c // d\n e f g h }")
    assert refused.value.span is not None
    assert refused.value.span.text == "f"


@pytest.mark.parametrize("after", [";", ";;", " ; ;"])
def test_semicolons_are_one_token_between_statements_and_refused_after_the_graph(after: str) -> None:
    assert list(parse_dot(f"digraph {{{after} a{after}\n b{after} }}").nodes) == ["a", "b"]
    with pytest.raises(DotSyntaxError, match='nothing may follow the graph, found ";"') as refused:
        parse_dot(f"digraph G {{\n}}{after}")
    assert refused.value.span is not None
    assert refused.value.span.text == ";"


def test_of_two_mistakes_in_attribute_blocks_the_first_is_reported() -> None:
    with pytest.raises(DotSyntaxError, match='expected "," between attributes'):
        parse_dot("digraph { a [x=1 y=2][z=] }", strict=True)
