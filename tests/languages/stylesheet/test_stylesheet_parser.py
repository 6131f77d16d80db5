"""Stylesheet text to syntax tree (spec 8.2, ruling 10)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.errors import StylesheetSyntaxError
from attractor_nb.languages.dot import embed_value
from attractor_nb.languages.stylesheet import parse_stylesheet
from attractor_nb.source import SourceText, render_excerpt
from tests.languages.malformed_cases import cases_of, check_refusal

MALFORMED = cases_of("stylesheet")


def plain(text):
    return [
        (str(rule.selector), [(each.name, each.value) for each in rule.declarations])
        for rule in parse_stylesheet(text).rules
    ]


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        pytest.param("", [], id="empty"),
        pytest.param("* { llm_model: a }", [("*", [("llm_model", "a")])], id="every"),
        pytest.param("box { llm_model: a }", [("box", [("llm_model", "a")])], id="shape"),
        pytest.param(".loop-a{llm_model:a}", [(".loop-a", [("llm_model", "a")])], id="class"),
        pytest.param("#review { llm_model: a; }", [("#review", [("llm_model", "a")])], id="id"),
        pytest.param(
            "* { model = a; provider = b }",
            [("*", [("llm_model", "a"), ("llm_provider", "b")])],
            id="ruling-10-equals-and-aliases",
        ),
        pytest.param('* { llm_model: "two words" }', [("*", [("llm_model", "two words")])], id="quoted"),
        pytest.param("* { llm_model: 'it\\'s' }", [("*", [("llm_model", "it's")])], id="single-quoted"),
        pytest.param("* { llm_model: org/m:8b@q4 }", [("*", [("llm_model", "org/m:8b@q4")])], id="bare-signs"),
        pytest.param("/* a */ * { llm_model: a /* b */; }", [("*", [("llm_model", "a")])], id="comments"),
        pytest.param(
            "*{llm_model:a}\n.b{llm_model:b}",
            [("*", [("llm_model", "a")]), (".b", [("llm_model", "b")])],
            id="two-rules",
        ),
        pytest.param("* { verbosity: 1 }", [("*", [("verbosity", "1")])], id="unknown-property-kept"),
    ],
)
def test_a_stylesheet_is_read_as_rules(text, rules):
    assert plain(text) == rules


@pytest.mark.parametrize("case", MALFORMED, ids=lambda case: case["name"])
def test_a_malformed_stylesheet_is_refused_with_place_and_remedy(case):
    check_refusal(case, parse_stylesheet, StylesheetSyntaxError)


def test_there_are_at_least_twenty_five_malformed_stylesheets():
    assert len(MALFORMED) >= 25
    assert len({case["name"] for case in MALFORMED}) == len(MALFORMED)


def test_the_caret_points_into_the_dot_file():
    outer = SourceText('digraph {\n  model_stylesheet="\n    * { llm_model: \\"a\\" b }\n  "\n}', "demo.dot")
    start = outer.text.index('"')
    with pytest.raises(StylesheetSyntaxError) as caught:
        parse_stylesheet(embed_value(outer.span(start, outer.text.rindex('"') + 1)))
    assert caught.value.span.place == "demo.dot:3:26"
    assert caught.value.span.outermost().text == "b"


@pytest.mark.parametrize(
    ("text", "rule", "edit"),
    [
        ("* { llm_modl: a }", "unknown_property", "llm_model"),
        ("* { verbosity: 1 }", "unknown_property", None),
        ("* { reasoning_effort: hgh }", "style_value", "high"),
        ("* { reasoning_effort: extreme }", "style_value", None),
    ],
)
def test_ruling_10_an_unknown_property_or_value_is_a_warning(text, rule, edit):
    (notice,) = parse_stylesheet(text).notices
    assert (notice.rule, notice.severity) == (rule, "warning")
    assert [each.text for each in notice.fix.edits] == ([edit] if edit else [])


SIGNS = st.sampled_from(
    [
        "*",
        "box",
        ".a",
        "#b",
        "{",
        "}",
        ":",
        "=",
        ";",
        "llm_model",
        "x",
        '"',
        "'",
        ",",
        "/*",
        "*/",
        "//",
        " ",
        "\n",
        "!",
        "@",
        "\\",
        "1",
        "é",
        ".",
    ]
)


def refusal(text):
    """The error that refuses a text, or None."""
    try:
        parse_stylesheet(text)
    except StylesheetSyntaxError as error:
        return error
    return None


@given(st.one_of(st.text(max_size=40), st.lists(SIGNS, max_size=14).map("".join)))
def test_any_text_is_read_or_refused_with_our_error_under_the_offending_text(text):
    if error := refusal(text):
        assert error.hint
        assert 0 <= error.span.start < error.span.end <= len(text)
        _, line, carets = render_excerpt(error.span)
        if error.span.text.isprintable():
            assert line[carets.index("^") : carets.rindex("^") + 1] == error.span.text


def test_a_stylesheet_that_nobody_could_read_is_refused_where_it_becomes_too_long():
    parse_stylesheet(" " * 50000)
    with pytest.raises(StylesheetSyntaxError, match="the stylesheet is longer than 50,000 characters") as caught:
        parse_stylesheet(" " * 50001)
    assert (caught.value.span.start, caught.value.span.end) == (50000, 50001)
    assert "one rule for the class" in caught.value.hint
