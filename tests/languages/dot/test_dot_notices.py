"""Malformed texts that are read all the same, with a warning and edits that mend them. And edits, and embedding."""

from __future__ import annotations

import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.errors import DotSyntaxError, OptionError
from attractor_nb.gc_pause import SMALL_TEXT, gc_paused
from attractor_nb.languages.dot import apply_edits, embed_value, parse_dot, read_dot
from attractor_nb.languages.dot.writer import quote
from attractor_nb.model.diagnostic import Severity, TextEdit
from attractor_nb.source import SourceText

NOTICES = {
    "attr_separator": ('a [label="A"\n shape=box\n class=k]', 'a [label="A",\n shape=box,\n class=k]', "shape"),
    "attr_separator on one line": ('a [label="A" shape=box class=k]', 'a [label="A", shape=box, class=k]', "shape"),
    "attr_separator before a comment": ("a [label=A /* b */ shape=box]", "a [label=A, /* b */ shape=box]", "shape"),
    "attr_separator with semicolons": ("a [label=A; shape=box]", "a [label=A, shape=box]", ";"),
    "attr_separator at the end": ("a [label=A\n shape=box;]", "a [label=A,\n shape=box,]", "shape"),
    "quoted_id": ('"a" -> b', "a -> b", '"a"'),
    "quoted_id of a group": ('subgraph "x" { a }', "subgraph x { a }", '"x"'),
    "hash_comment": ("# old\n a", "// old\n a", "# old"),
    "hash_comment in a block": ("a [ # old\n label=A]", "a [ // old\n label=A]", "# old"),
    "hash_comment before a value": ("a [label=\n # old\n A]", "a [label=\n // old\n A]", "# old"),
    "bare_group": ("{ a; b }", "subgraph { a; b }", "{"),
    "bidi_control": ('a [label="x\u202ey"]', 'a [label="xy"]', "\u202e"),
}


@pytest.mark.parametrize(("name", "row"), NOTICES.items(), ids=list(NOTICES))
def test_rulings_1_and_3_a_notice_has_a_span_and_a_fix_that_mends_the_text(
    name: str, row: tuple[str, str, str]
) -> None:
    written, mended, offending = row
    document = read_dot(f"digraph G {{ {written} }}")
    (found,) = document.diagnostics

    assert found.rule == name.split(maxsplit=1)[0]
    assert found.severity is Severity.WARNING
    assert found.span is not None
    assert found.span.text == offending
    assert found.fix is not None
    assert apply_edits(document.source, found.fix.edits) == f"digraph G {{ {mended} }}"
    assert read_dot(f"digraph G {{ {mended} }}").diagnostics == ()


def test_ruling_1a_blanks_alone_separate_attributes_of_nodes_edges_defaults_and_groups() -> None:
    document = read_dot(
        'digraph G { node [shape=box class=k] a [label="A" prompt=x] a -> b [label=x weight=2]'
        " subgraph s { graph [label=S color=red] b } }"
    )

    assert {found.rule for found in document.diagnostics} == {"attr_separator"}
    assert document.graph.nodes["a"].classes == ("k",)
    assert document.graph.edges[0].weight == 2


def test_ruling_1a_strict_makes_blanks_alone_an_error() -> None:
    with pytest.raises(DotSyntaxError, match='expected "," between attributes'):
        read_dot("digraph G { a [label=A shape=box] }", strict=True)


def test_ruling_1_newline_and_semicolon_separated_attributes_parse_with_one_warning_a_block() -> None:
    document = read_dot("digraph G { a [label=A\n shape=box; class=k]\n b [label=B\n shape=box] }")

    assert [found.rule for found in document.diagnostics] == ["attr_separator", "attr_separator"]
    assert document.graph.nodes["a"].classes == ("k",)


def test_ruling_1_strict_makes_a_missing_comma_an_error() -> None:
    with pytest.raises(DotSyntaxError, match='expected "," between attributes'):
        read_dot("digraph G { a [label=A\n shape=box] }", strict=True)


def test_ruling_3_a_quoted_graph_name_is_no_notice() -> None:
    assert read_dot('digraph "G" { a }').diagnostics == ()


def test_quoted_attribute_names_are_no_notice() -> None:
    document = read_dot('digraph G { "goal" = "x"; a ["human.timeout"="5m"] }')

    assert document.diagnostics == ()
    assert document.graph.goal == "x"


def test_a_habit_gives_one_warning_a_text_whose_fix_mends_every_place() -> None:
    document = read_dot('digraph G { "a"; "b" # c\n # d\n "a" -> "b" }')
    rules = {found.rule: found for found in document.diagnostics}

    assert rules["quoted_id"].message == 'the id "a" needs no quotes (and 3 more)'
    assert rules["hash_comment"].message == 'comments begin with "//", not "#" (and 1 more)'
    edits = [edit for found in document.diagnostics if found.fix for edit in found.fix.edits]
    assert apply_edits(document.source, edits) == "digraph G { a; b // c\n // d\n a -> b }"


def test_notices_come_in_the_order_of_the_text() -> None:
    document = read_dot('digraph G { "a" [label=A\n shape=box] # c\n { "b" } }')

    assert [found.rule for found in document.diagnostics] == [
        "quoted_id",
        "attr_separator",
        "hash_comment",
        "bare_group",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a [label=A, label=B]", '"label" of node a replaces its value of line 1'),
        ("a [label=A]\n subgraph { a [label=B] }", '"label" of node a replaces its value of line 1'),
        ("node [timeout=5m, timeout=6m]", '"timeout" of this block replaces its value of line 1'),
        ("a -> b [weight=1, weight=2]", '"weight" of this block replaces its value of line 1'),
    ],
)
def test_an_attribute_that_replaces_another_value_is_reported(text: str, message: str) -> None:
    (found,) = read_dot(f"digraph G {{ {text} }}").diagnostics

    assert (found.rule, found.message) == ("duplicate_attribute", message)


@pytest.mark.parametrize(
    "text", ["a [label=A]; a [shape=box]", 'a [label=A]; a [label="A"]', "node [x=1] node [x=2]", "goal=a"]
)
def test_attributes_that_replace_nothing_are_not_reported(text: str) -> None:
    assert read_dot(f"digraph G {{ {text} }}").diagnostics == ()


def edit(source: SourceText, start: int, end: int, text: str) -> TextEdit:
    return TextEdit(source.span(start, end), text)


def test_edits_are_applied_in_any_order_and_insertions_keep_theirs() -> None:
    source = SourceText("abcdef")

    edits = [edit(source, 4, 5, "E"), edit(source, 0, 1, ""), edit(source, 2, 2, "1"), edit(source, 2, 2, "2")]
    assert apply_edits(source, edits) == "b12cdEf"


def test_overlapping_edits_are_refused() -> None:
    source = SourceText("abcdef", "g.dot")

    with pytest.raises(OptionError, match=r"overlap at g\.dot:1:3"):
        apply_edits(source, [edit(source, 0, 3, "x"), edit(source, 2, 4, "y")])


def test_edits_of_a_longer_text_are_refused() -> None:
    longer = SourceText("abcdef")

    with pytest.raises(OptionError, match="beyond the end"):
        apply_edits(SourceText("abc"), [edit(longer, 4, 5, "x")])


def test_an_embedded_value_points_into_the_outer_text_through_escapes() -> None:
    graph = parse_dot('digraph G {\n  a -> b [condition="x=\\"y\\" && z"]\n}', name="g.dot")
    value = embed_value(graph.edges[0].attr_spans["condition"].value)
    span = value.span(value.text.index("z"), value.text.index("z") + 1)

    assert value.text == 'x="y" && z'
    assert span.outermost().text == "z"
    assert span.place == "g.dot:2:33"
    assert value.span(2, 5).outermost().text == '\\"y\\"'


def test_a_bare_value_is_embedded_as_it_stands() -> None:
    graph = parse_dot("digraph G { a -> b [condition=flag] }")
    value = embed_value(graph.edges[0].attr_spans["condition"].value)

    assert value.text == "flag"
    assert value.span(1, 4).outermost().text == "lag"


@given(st.text(alphabet='ab\\"n\nt\r', max_size=20))
def test_every_character_of_an_embedded_value_knows_its_place(text: str) -> None:
    literal = quote(text)
    source = SourceText(f"  {literal} ")
    value = embed_value(source.span(2, 2 + len(literal)))

    assert value.text == text
    for offset, char in enumerate(text):
        outer = value.span(offset, offset + 1).outermost()
        assert outer.text in {char, quote(char)[1:-1], "\\\\"}
    assert value.span(len(text), len(text)).outermost().start == 2 + len(literal) - 1


def test_large_texts_are_read_with_the_collector_paused_and_it_wakes_up_again() -> None:
    with gc_paused(SMALL_TEXT):
        assert not gc.isenabled()
        with gc_paused(SMALL_TEXT):
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()

    with pytest.raises(DotSyntaxError):
        parse_dot("digraph G { " + "a; " * SMALL_TEXT)
    assert gc.isenabled()
