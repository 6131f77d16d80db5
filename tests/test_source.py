"""Positions and caret excerpts: the text above the carets is the offending text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.source import SourceText, render_excerpt

PLAIN = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp", "Cf", "Mn", "Me", "Co", "Cn")))


@pytest.mark.parametrize(
    ("offset", "place"),
    [(0, (1, 1)), (2, (1, 3)), (3, (2, 1)), (6, (2, 4)), (7, (3, 1))],
    ids=["start", "line end", "second line", "second line end", "end of text"],
)
def test_positions_are_one_based(offset, place):
    assert SourceText("ab\ncde\n").position(offset) == place


def test_a_cell_body_counts_from_its_magic_line():
    source = SourceText("digraph {\n  a -- b\n}", "<cell>", first_line=2)
    span = source.span(14, 16)
    assert (span.text, span.line, span.column, span.place) == ("--", 3, 5, "<cell>:3:5")
    assert render_excerpt(span) == ["  --> <cell>:3:5", " 3 |    a -- b", "   |      ^^"]


@given(before=PLAIN, under=PLAIN.filter(bool), after=PLAIN, above=PLAIN)
def test_the_carets_stand_under_the_span(before, under, after, above):
    line = before + under + after
    if len(line) > 160:
        return
    text = above.replace("\n", "") + "\n" + line
    start = text.index("\n") + 1 + len(before)
    _, shown, carets = render_excerpt(SourceText(text).span(start, start + len(under)))
    first, last = carets.index("^"), carets.rindex("^")
    assert shown[first : last + 1] == "".join(c if c.isprintable() else "␚" for c in under)


def test_tabs_and_control_characters_do_not_move_the_carets():
    source = SourceText("\ta\x07b = \u202ebad")
    _, shown, carets = render_excerpt(source.span(8, 11))
    assert shown[carets.index("^") : carets.rindex("^") + 1] == "bad"
    assert "\u202e" not in shown
    assert "\x07" not in shown


def test_a_long_line_is_cut_around_the_span():
    source = SourceText("x" * 5000 + "BAD" + "y" * 5000)
    _, shown, carets = render_excerpt(source.span(5000, 5003))
    assert len(shown) < 220
    assert shown[carets.index("^") : carets.rindex("^") + 1] == "BAD"


def test_a_span_of_several_lines_is_shown_by_its_first():
    source = SourceText("one {\n two\n}")
    assert render_excerpt(source.span(4, 12)) == ["  --> <string>:1:5", " 1 |  one {", "   |      ^"]


def test_an_empty_span_at_the_end_gets_one_caret():
    assert render_excerpt(SourceText("ab").span(2, 2))[-1] == "   |    ^"


def test_an_embedded_text_points_into_its_host_through_the_escapes():
    host = SourceText('x [condition="a=\\"b\\""]', "g.dot")
    literal = host.span(13, 22)
    inner = host.embedded(literal, 'a="b"', lambda: [14, 15, 16, 18, 19, 21])
    span = inner.span(2, 5)
    assert span.text == '"b"'
    assert span.outermost().text == '\\"b\\"'
    assert span.place == "g.dot:1:17"


def test_spans_of_equal_texts_are_equal():
    assert SourceText("abc").span(0, 1) == SourceText("abc").span(0, 1)
    assert SourceText("abc").span(0, 1) != SourceText("abc").span(0, 2)


def test_of_a_long_line_only_the_excerpt_is_copied():
    """A line of 100,000 characters may have as many findings as names."""
    copied = []

    class Text(str):
        __slots__ = ()

        def __getitem__(self, place):
            copied.append(part := str.__getitem__(self, place))
            return part

    source = SourceText(Text("a" * 100_000 + "\n"), "long.dot")
    render_excerpt(source.span(50_000, 50_004))
    assert sum(map(len, copied)) < 1_000
