"""Condition text to syntax tree (spec 10.2, ruling 11)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.errors import ConditionSyntaxError
from attractor_nb.languages.condition import Clause, Operator, mend_condition, parse_condition
from attractor_nb.languages.dot import embed_value
from attractor_nb.source import SourceText, render_excerpt
from tests.languages.malformed_cases import cases_of, check_refusal

MALFORMED = cases_of("condition")
EQ, NE, IS = Operator.EQUALS, Operator.DIFFERS, Operator.IS_TRUE


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        pytest.param("", [], id="empty"),
        pytest.param(" \n ", [], id="blank"),
        pytest.param("outcome=success", [Clause("outcome", EQ, "success")], id="equals"),
        pytest.param("outcome != fail", [Clause("outcome", NE, "fail")], id="differs"),
        pytest.param("a=1&&b=2", [Clause("a", EQ, "1"), Clause("b", EQ, "2")], id="and"),
        pytest.param("context.a.b_1=x", [Clause("context.a.b_1", EQ, "x")], id="path"),
        pytest.param("context.ready", [Clause("context.ready", IS)], id="key-alone"),
        pytest.param("context.n=-3", [Clause("context.n", EQ, "-3")], id="integer"),
        pytest.param("context.m=gpt-5.2", [Clause("context.m", EQ, "gpt-5.2")], id="bare-word"),
        pytest.param('context.t="two words"', [Clause("context.t", EQ, "two words")], id="quoted"),
        pytest.param('context.t=""', [Clause("context.t", EQ, "")], id="quoted-empty"),
        pytest.param(r'context.t="a \"b\" \\ \n"', [Clause("context.t", EQ, r'a "b" \ \n')], id="escapes"),
        pytest.param('context.t="a=b && c"', [Clause("context.t", EQ, "a=b && c")], id="signs-in-quotes"),
        pytest.param("context.t=don't", [Clause("context.t", EQ, "don't")], id="apostrophe"),
        pytest.param("preferred_label=Ship  it", [Clause("preferred_label", EQ, "Ship  it")], id="words"),
    ],
)
def test_a_condition_is_read_as_clauses(text, clauses):
    assert list(parse_condition(text).clauses) == clauses


@pytest.mark.parametrize("case", MALFORMED, ids=lambda case: case["name"])
def test_a_malformed_condition_is_refused_with_place_and_remedy(case):
    check_refusal(case, parse_condition, ConditionSyntaxError)


def test_there_are_at_least_thirty_malformed_conditions():
    assert len(MALFORMED) >= 30
    assert len({case["name"] for case in MALFORMED}) == len(MALFORMED)


def _embedded(literal):
    outer = SourceText(f"a -> b [condition={literal}]", "demo.dot")
    start = outer.text.index(literal)
    return embed_value(outer.span(start, start + len(literal)))


def test_the_caret_points_through_the_escapes_of_the_dot_string():
    with pytest.raises(ConditionSyntaxError) as caught:
        parse_condition(_embedded(r'"context.note=\"x\" and outcome=fail"'))
    assert caught.value.span.outermost().text == "and"
    assert render_excerpt(caught.value.span)[2].index("^") == render_excerpt(caught.value.span)[1].index(" and ") + 1


@pytest.mark.parametrize(
    ("text", "rule", "severity", "fixed"),
    [
        ("outcome=succeeded", "outcome_alias", "info", "outcome=success"),
        ("outcome=SUCCESS", "outcome_alias", "info", "outcome=success"),
        ("outcome!=failure", "outcome_alias", "info", "outcome!=fail"),
        ("outcome=sucess", "outcome_unknown", "warning", "outcome=success"),
        ("success", "status_as_key", "warning", "outcome=success"),
        ("a=1 && failed", "status_as_key", "warning", "a=1 && outcome=fail"),
        ("preferred_label=Ship it", "literal_unquoted", "warning", 'preferred_label="Ship it"'),
        ("context.ok=True", "literal_spelling", "warning", "context.ok=true"),
        ("context.ok!=FALSE", "literal_spelling", "warning", "context.ok!=false"),
        ("context.n=01", "literal_spelling", "warning", "context.n=1"),
        ("context.n=+3.50", "literal_spelling", "warning", "context.n=3.5"),
        ("context.n=.5", "literal_spelling", "warning", "context.n=0.5"),
        ("context.owner=null", "literal_spelling", "warning", 'context.owner=""'),
        ("context.owner!=None", "literal_spelling", "warning", 'context.owner!=""'),
    ],
)
def test_what_is_read_generously_gives_notice_with_a_fix(text, rule, severity, fixed):
    (notice,) = parse_condition(text).notices
    (edit,) = notice.fix.edits
    assert (notice.rule, notice.severity) == (rule, severity)
    assert text[: edit.span.start] + edit.text + text[edit.span.end :] == fixed
    assert not parse_condition(fixed).notices


def test_an_unlike_outcome_gives_notice_without_an_edit():
    (notice,) = parse_condition("outcome=banana").notices
    assert notice.rule == "outcome_unknown"
    assert not notice.fix.edits
    assert "partial_success" in notice.fix.title


@pytest.mark.parametrize(
    ("alias", "status"),
    [
        ("succeeded", "success"),
        ("failed", "fail"),
        ("failure", "fail"),
        ("SUCCESS", "success"),
        ("Partial-Success", "partial_success"),
    ],
)
def test_ruling_11_outcome_aliases_mean_their_status(alias, status):
    assert parse_condition(f"outcome={alias}").clauses == (Clause("outcome", EQ, status),)


def test_aliases_are_data_under_any_other_key():
    assert parse_condition("context.x=failed").clauses[0].literal == "failed"


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ("outcome==success", "outcome=success"),
        ("outcome!==success", "outcome!=success"),
        ("outcome<>success", "outcome!=success"),
        ("a=1 & b=2", "a=1 && b=2"),
        ("a=1 AND b=2", "a=1 && b=2"),
        ("a='x'", 'a="x"'),
        ("a=1 &&", "a=1"),
        ("a=1 || b=2", None),
        ("a=1", None),
        ("&&", None),
        ('a="x & y" == 1', None),
        ("a > 1", None),
    ],
)
def test_only_spellings_with_one_meaning_are_mended(text, mended):
    assert mend_condition(text) == mended


SIGNS = st.sampled_from(
    [
        "outcome",
        "context.x",
        "=",
        "!=",
        "&&",
        "==",
        "||",
        "&",
        "!",
        "'",
        '"',
        "(",
        ")",
        " ",
        "and",
        "or",
        "not",
        "a",
        "1",
        "\\",
        ".",
        "-",
        "<",
        "~",
        "é",
        "\n",
        "\x00",
    ]
)


def refusal(text):
    """The error that refuses a text, or None."""
    try:
        condition = parse_condition(text)
    except ConditionSyntaxError as error:
        return error
    assert all(clause.span.text for clause in condition.clauses)
    return None


@given(st.one_of(st.text(max_size=40), st.lists(SIGNS, max_size=12).map("".join)))
def test_any_text_is_read_or_refused_with_our_error_under_the_offending_text(text):
    mend_condition(text)
    if error := refusal(text):
        assert error.hint
        assert 0 <= error.span.start < error.span.end <= len(text)
        _, line, carets = render_excerpt(error.span)
        if error.span.text.isprintable():
            assert line[carets.index("^") : carets.rindex("^") + 1] == error.span.text


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["outcome", "context.a", "b"]),
            st.sampled_from(list(Operator)),
            st.text('abc "\\&|=', max_size=6),
        ),
        max_size=4,
    )
)
def test_what_is_written_with_quotes_is_read_back(clauses):
    def quoted(text):
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    text = " && ".join(f"{key}{op}{quoted(value) if op else ''}" for key, op, value in clauses)
    read = [(clause.key, clause.operator, clause.literal) for clause in parse_condition(text).clauses]
    assert read == [(key, op, value if op else "") for key, op, value in clauses]


def test_a_condition_that_nobody_could_read_is_refused_where_it_becomes_too_long():
    parse_condition(" " * 10000)
    with pytest.raises(ConditionSyntaxError, match="the condition is longer than 10,000 characters") as caught:
        parse_condition(" " * 10001)
    assert (caught.value.span.start, caught.value.span.end) == (10000, 10001)
    assert "compare that" in caught.value.hint
