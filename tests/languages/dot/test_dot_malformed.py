"""Every malformed source of the table gives its message, place and hint; nothing else ever escapes."""

from __future__ import annotations

import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from attractor_nb.errors import DotSyntaxError
from attractor_nb.languages.dot import parse_dot, read_dot
from attractor_nb.source import SourceText, render_excerpt

TABLE = tomllib.loads((Path(__file__).parents[1] / "malformed" / "dot.toml").read_text("utf-8"))["malformed"]
VALID = """// head
digraph G {
    graph [goal="say \\"hi\\"", default_max_retry=3]
    node [shape=box, timeout="900s"] # old
    start [shape=Mdiamond]
    subgraph cluster_x { label = "Loop A"; "plan" [human.timeout=5m
        prompt="two
lines"] /* why */ }
    start -> plan -> exit [condition="outcome=success", weight=-1.5]
}
"""


def refused(text: str, **options: bool) -> DotSyntaxError:
    with pytest.raises(DotSyntaxError) as caught:
        parse_dot(text, name="g.dot", **options)
    return caught.value


def test_the_table_is_large_and_its_names_are_unique() -> None:
    assert len(TABLE) >= 70
    assert len({case["name"] for case in TABLE}) == len(TABLE)


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case["name"])
def test_malformed_source(case: dict[str, Any]) -> None:
    error = refused(case["source"], strict=bool(case.get("strict")))

    assert error.span is not None
    assert error.message == case["message"]
    assert f"{error.span.line}:{error.span.column}" == case["place"]
    assert error.span.text.split("\n")[0].rstrip("\r") == case["text"]
    assert error.hint == case["hint"]
    assert [found.message for found in error.others] == case.get("others", []), "a consequence is no mistake"


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case["name"])
def test_messages_keep_the_house_style(case: dict[str, str]) -> None:
    for text in (case["message"], case["hint"]):
        assert text
        assert "\n" not in text
        assert "please" not in text.lower()
        assert not text.endswith((".", "!"))
        assert len(text) <= 110


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case["name"])
def test_the_carets_stand_under_the_offending_text(case: dict[str, str]) -> None:
    error = refused(case["source"], strict=bool(case.get("strict")))

    assert error.span is not None
    assert_carets_under(error)


def assert_carets_under(error: DotSyntaxError) -> None:
    assert error.span is not None
    _, line, carets = render_excerpt(error.span)
    first, last = carets.index("^"), carets.rindex("^")
    shown = line[first : last + 1]
    offending = error.span.text.split("\n")[0].rstrip("\r")
    visible = "".join(
        "    " if char == "\t" else char if char.isprintable() else "\N{SYMBOL FOR SUBSTITUTE}" for char in offending
    )
    assert visible.startswith(shown.rstrip()) or not offending


def test_half_a_surrogate_pair_is_refused() -> None:
    assert refused('digraph G { a [label="\ud800"] }').message == "the text contains half a character (U+D800)"


def test_the_report_names_the_file_and_shows_the_line() -> None:
    error = refused('digraph G {\n    plan [label="Plan" prompt="Plan it"]\n}', strict=True)

    assert str(error).splitlines() == [
        'expected "," between attributes',
        "  --> g.dot:2:24",
        ' 2 |      plan [label="Plan" prompt="Plan it"]',
        "   |                         ^^^^^^",
        " hint: separate attributes with commas",
    ]


def test_an_unclosed_string_in_place_of_an_attribute() -> None:
    assert refused('digraph G { a [ "label ] }').message == "the string is never closed"


def test_quotes_in_comments_do_not_confuse_the_search_for_a_string_s_beginning() -> None:
    error = refused('digraph G { a [ /* 5" */ label="x\ny"z ] }')

    assert error.message == "text directly after the string that began on line 1"


def test_a_wrong_attribute_name_is_refused_wherever_it_is_quoted() -> None:
    assert "keyword" in refused('digraph G { "edge" = 3 }').message


def test_a_very_long_word_is_shortened_in_the_message() -> None:
    error = refused("digraph G { " + "x-" * 500 + " -> b }")

    assert len(error.message) < 130
    assert len(error.hint) < 130


@pytest.mark.parametrize(
    "text",
    [
        "digraph G {" + "subgraph {" * 100_000 + "}" * 100_000 + "}",
        "digraph G {" + "{" * 100_000,
        "digraph G { a [x=" + "[" * 100_000,
        "digraph G { a " + "-> " * 100_000,
        "digraph G { /*" + "*" * 100_000,
        'digraph G { a [x="' + "\\" * 100_001,
        'digraph G { a [x="' + '\\"' * 100_000,
        "digraph G { a" + " /**/" * 100_000 + "= ",
        "(" * 100_000,
        '"' * 100_001,
    ],
    ids=[
        "groups 100,000 deep",
        "open braces",
        "open brackets",
        "arrows",
        "stars",
        "backslashes",
        "escaped quotes",
        "comments",
        "parentheses",
        "quotes",
    ],
)
def test_hostile_texts_are_refused_with_a_position_and_never_a_recursion_error(text: str) -> None:
    began = time.process_time()
    assert refused(text).span is not None
    assert time.process_time() - began < 2, "a tenth of it on a machine with nothing else to do"


def test_groups_may_nest_as_deep_as_the_limit_says_and_no_deeper() -> None:
    parse_dot("digraph G {" + "subgraph {" * 19 + "}" * 19 + "}")

    assert refused("digraph G {" + "subgraph {" * 20 + "}" * 20 + "}").message == "groups are nested more than 20 deep"


@given(st.text(max_size=200))
@example("digraph\n{\\")
def test_any_text_is_read_or_refused_with_a_dot_syntax_error(text: str) -> None:
    check_read_or_refused(text)


@given(
    st.text(alphabet='digraph{}[]=->;,"\\/*#:.<+\n\r\t abcAB019_node\u202e\ufeff', max_size=120).map(
        lambda inner: "digraph {" + inner
    )
)
@settings(max_examples=300)
def test_any_text_of_dot_characters_is_read_or_refused(text: str) -> None:
    check_read_or_refused(text)


@given(st.lists(st.tuples(st.integers(0, len(VALID)), st.integers(0, 5), st.text(max_size=3)), min_size=1, max_size=4))
@settings(max_examples=300)
def test_a_mutated_valid_text_is_read_or_refused(changes: list[tuple[int, int, str]]) -> None:
    text = VALID
    for at, removed, inserted in changes:
        text = text[:at] + inserted + text[at + removed :]
    check_read_or_refused(text)


@given(st.binary(max_size=80), st.integers(0, len(VALID)))
def test_bytes_in_the_middle_of_a_valid_text_are_read_or_refused(raw: bytes, at: int) -> None:
    encoded = VALID.encode()
    check_read_or_refused((encoded[:at] + raw + encoded[at:]).decode("utf-8", "surrogateescape"))
    check_read_or_refused((encoded[:at] + raw + encoded[at:]).decode("latin-1"))


def check_read_or_refused(text: str) -> None:
    error = refusal_of(text)
    if error is None:
        return
    assert error.span is not None
    assert 0 <= error.span.start <= error.span.end <= len(error.span.source.text)
    assert error.message
    assert error.hint
    assert_carets_under(error)
    assert str(error)


def refusal_of(text: str) -> DotSyntaxError | None:
    try:
        read_dot(SourceText(text, "fuzz.dot"))
    except DotSyntaxError as error:
        return error
    return None


@pytest.mark.parametrize(
    ("text", "nodes", "attrs"),
    [
        ("digraph G {" + "".join(f"n{number};" for number in range(100_000)) + "}", 100_000, 0),
        ('digraph G { a [prompt="' + "x" * 10_000_000 + '"] }', 1, 1),
        ('digraph G { a [prompt="' + "\\n" * 1_000_000 + '"] }', 1, 1),
        ("digraph G { a [" + ", ".join(f"k{number}={number}" for number in range(50_000)) + "] }", 1, 50_000),
    ],
    ids=["100,000 nodes", "a string of 10 MB", "a million escapes", "50,000 attributes"],
)
def test_fault_18_large_texts_are_read(text: str, nodes: int, attrs: int) -> None:
    graph = parse_dot(text)

    assert len(graph.nodes) == nodes
    assert len(next(iter(graph.nodes.values())).attrs) == attrs
