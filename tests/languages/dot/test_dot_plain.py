"""Runs of plain statements are read at once; the finer tokens, alone, say the same of every text."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attractor_nb.errors import DotSyntaxError
from attractor_nb.languages.dot import DotTree, parser
from attractor_nb.languages.dot.lower import lower
from attractor_nb.source import SourceText, Span

WORDS = [
    "a", "b ", "\n", ";", ";;", ",", "[", "]", "{", "}", "->", "a->b ", "a -> b -> c", "x=1 ", "x.y=1\n", "=", "[]",
    "[a=b]", "[x=1,y=2]", "[x=1;y=2]", "[x=1\ny=2]", "[x=1 y=2]", "[x=1;\ny=2;]", "[x=1,]", "[x=1;]", '[k="a;]\nb"]',
    '"a"', '"x"=1', "// c\n", "/* d */", "# e\n", "node", "edge[w=2]", "graph [label=Q]", "subgraph s {", "subgraph{", "subgraph node {", "{}", "{a}", "{b;}[", '{"a" c->d}', '"b"[x=1]', '"node"', "Node",
    "[node=1]", "[x=Edge]", "x=graph ", "[x=9999999999999999999]", "a [x=1] [y=2]", ":", "1", "-", "/", "é", '"',
]  # fmt: skip
BODIES = st.lists(st.sampled_from(WORDS), max_size=12).map("".join)
ALL_FINE = patch.object(parser, "_plain_states", frozenset[int])


def said(text: str, *, strict: bool) -> DotTree | tuple[str, Span | None, str]:
    """The tree, or what is wrong with the text."""
    try:
        return parser.parse_syntax(SourceText(text), strict=strict)
    except DotSyntaxError as error:
        return error.message, error.span, str(error)


@pytest.mark.parametrize("most", [2, 5, 250_000])
@given(body=BODIES, end=st.sampled_from(["}", "", "} ;", "} b"]), strict=st.booleans())
@settings(deadline=None)
def test_plain_runs_and_fine_tokens_say_the_same(most: int, body: str, end: str, strict: bool) -> None:
    text = f"digraph G {{{body}{end}"
    with patch.object(parser, "MAX_STATEMENTS", most):
        with ALL_FINE:
            expected = said(text, strict=strict)
        found = said(text, strict=strict)
    assert found == expected
    if isinstance(found, DotTree) and isinstance(expected, DotTree):
        assert lower(found) == lower(expected)


def test_semicolons_after_the_graph_are_refused() -> None:
    with pytest.raises(DotSyntaxError, match="nothing may follow the graph"):
        parser.parse_syntax(SourceText("digraph G {\n};"))


def test_a_comment_between_two_runs_leaves_the_bound_where_it_is() -> None:
    with (
        patch.object(parser, "MAX_STATEMENTS", 4),
        pytest.raises(DotSyntaxError, match="more than 4 statements") as refused,
    ):
        parser.parse_syntax(SourceText("digraph { a b c // d\n e f g h }"))
    assert refused.value.span is not None
    assert refused.value.span.text == "f"
