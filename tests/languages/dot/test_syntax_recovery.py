"""A text with syntax errors gives all of them, and what its other statements say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attractor_nb.errors import DotSyntaxError
from attractor_nb.languages.dot import BrokenText, DotDocument, examine_dot, parse_dot
from attractor_nb.languages.dot.lower import MAX_DEFAULTS
from attractor_nb.languages.dot.parser import parse_syntax
from attractor_nb.languages.dot.syntax_recovery import MAX_MISTAKES

if TYPE_CHECKING:
    from attractor_nb.languages.dot import DotTree

SEVERAL = """digraph G {
  start [shape=Mdiamond]
  plan [label="Plan", prompt: "Plan it"]
  start -- plan
  plan -> work
  work [label=]
  check [shape=hexagon
  work -> check
  2nd [label="b"]
}
"""


def examined(text: str) -> tuple[list[tuple[int, str]], DotDocument]:
    """Line and message of each syntax error, and the rest."""
    found = examine_dot(text)
    assert isinstance(found, BrokenText)
    assert found.error.span is not None
    assert found.rest is not None, "the rest can be read"
    mistakes = [(found.error.span.line, found.error.message)]
    for other in found.error.others:
        assert other.rule == "syntax"
        assert other.span is not None
        mistakes.append((other.span.line, other.message))
    return mistakes, found.rest


def test_all_mistakes_are_found_and_the_rest_is_read() -> None:
    mistakes, rest = examined(SEVERAL)

    assert mistakes == [
        (3, 'a name and its value are joined by "=", not ":"'),
        (4, "undirected edges are not supported"),
        (6, "a value is missing after label ="),
        (7, '"[" is never closed'),
        (9, '"2nd" cannot be a node id: it begins with a digit'),
    ]
    assert "start" in rest.graph.nodes
    assert [(edge.source, edge.target) for edge in rest.graph.edges] == [("plan", "work"), ("work", "check")]


def test_of_a_text_whose_other_statements_are_more_than_a_graph_may_have_only_the_mistakes_are_told() -> None:
    defaults = ", ".join(f"a{number}=x" for number in range(MAX_DEFAULTS + 1))
    found = examine_dot(f"digraph {{\n  a -- b\n  node [{defaults}]\n  c [label=]\n}}")

    assert isinstance(found, BrokenText)
    assert found.rest is None
    assert found.error.message == "undirected edges are not supported"
    assert [other.message for other in found.error.others] == ["a value is missing after label ="]


@pytest.mark.parametrize("rest", ["", " " * 100, " // why", "  // why\n  // so", " /* why */", "\n" * 100])
def test_a_statement_goes_on_behind_an_arrow_at_the_end_of_a_line(rest: str) -> None:
    mistakes, read = examined(f"digraph {{\n  a ->{rest}\n  b [prompt=]\n  c -> d\n}}")

    assert [message for _, message in mistakes] == ["a value is missing after prompt ="]
    assert [(edge.source, edge.target) for edge in read.graph.edges] == [("c", "d")]


def test_the_end_of_a_long_line_is_no_keyword() -> None:
    _, read = examined(f"digraph {{\n  my_node{' ' * 76}\n  b [prompt=]\n  c -> d\n}}")

    assert list(read.graph.nodes) == ["my_node"]


def test_one_error_reports_them_all() -> None:
    with pytest.raises(DotSyntaxError) as caught:
        parse_dot(SEVERAL, name="g.dot")

    report = str(caught.value)
    places = [line.removeprefix("  --> ") for line in report.splitlines() if line.startswith("  --> ")]
    assert places == ["g.dot:3:29", "g.dot:4:9", "g.dot:6:9", "g.dot:7:9", "g.dot:9:3"]
    assert report.count("hint: ") + report.count("fix: ") == len(places)


@pytest.mark.parametrize(
    ("text", "lines", "edges"),
    [
        pytest.param('a [label="Plan]\nb [prompt="Do it", x="1"]\nc -> d\ne -- f', [1, 4], 1, id="quote missing at a line's end"),
        pytest.param('a [prompt="Say 5" nails\nthem"]\nc -> d\ne => f', [1, 4], 1, id="quote inside a string of two lines"),
        pytest.param('a [prompt="one\nSay "hi to\nevery one\nbye"]\nc -> d\nd -> a', [2], 2, id="quote inside a long text"),
        pytest.param('a [\nlabel="x",\nprompt="y"\nb [label="z"]\nc -> d\ne - f', [1, 6], 1, id="bracket missing"),
        pytest.param("a -- b; c -> d; e -- f", [1, 1], 1, id="several on one line"),
        pytest.param("subgraph 1x { c -> d }\nsubgraph y { a -- b\nd -> e }", [1, 2], 2, id="a group's bad name"),
        pytest.param("a -> { b c }\nc -> d\ne --> f", [1, 3], 1, id="edge to a group"),
        pytest.param("node\na -> b\nc -> d", [2], 2, id="defaults without a block"),
        pytest.param("a ->\n-> b\nc -> d\ne --\nf", [2, 4], 1, id="chain over several lines"),
        pytest.param('a [color=#ff0000, label="x"]\nc -> d\nb [x=', [1, 3], 1, id="number sign in a value"),
        pytest.param("a /* why\nc -> d", [1], 1, id="comment never closed"),
    ],
)  # fmt: skip
def test_where_a_statement_with_a_mistake_ends(text: str, lines: list[int], edges: int) -> None:
    mistakes, rest = examined(f"digraph G {{ {text}\n}}\n")

    assert [line for line, _ in mistakes] == lines
    assert len(rest.graph.edges) == edges


@pytest.mark.parametrize(
    ("text", "messages", "edges"),
    [
        pytest.param(
            "digraph G {\na -> b\n}\nc -> d\nd -- e\n}",
            ['nothing may follow the graph, found "c"', "undirected edges are not supported"], 2, id="a brace too many",
        ),
        pytest.param("digraph G { a -> b } c -> d", ['nothing may follow the graph, found "c"'], 2, id="a brace too early"),
        pytest.param("digraph A { a -> b }\ndigraph B { c -> d }", ["only one graph is allowed in a file"], 1, id="two graphs"),
        pytest.param(
            "digraph A { a -> b\nsubgraph x {\nb -- c\n",
            ["undirected edges are not supported", '"{" is never closed', '"{" is never closed'], 1, id="braces left open",
        ),
        pytest.param(
            "strict digraph my-graph {\na -> b\nc -- d }",
            ['"strict" graphs are not supported', "undirected edges are not supported"], 1, id="the line of the graph",
        ),
    ],
)  # fmt: skip
def test_mistakes_around_the_graph(text: str, messages: list[str], edges: int) -> None:
    mistakes, rest = examined(text)

    assert [message for _, message in mistakes] == messages
    assert len(rest.graph.edges) == edges


_MISTAKES = (
    "x -- y",
    'x [label="a" b: 1]',
    "x [a=]",
    "1x [a=b]",
    "x => y",
    'x [a="b]',
    "x [a=b",
    "x:p -> y",
    "x & y -> z",
)
_STATEMENTS = (
    "n%d -> m%d",
    'n%d [label="l%d"]',
    'n%d [prompt="two\nlines %d", x=1]',
    "subgraph s%d { k%d }",
    "node [w=%d%d]",
)


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 50)), min_size=1, max_size=25))
def test_each_mistake_is_found_where_it_is_and_nothing_else(choices: list[tuple[bool, int]]) -> None:
    lines, expected, good = ["digraph {"], list[int](), 0
    for number, (is_mistake, which) in enumerate(choices):
        if is_mistake:
            expected.append("\n".join(lines).count("\n") + 2)
            # A string that is never closed is noticed at the next quote.
            lines += [_MISTAKES[which % len(_MISTAKES)], f'after{number} -> it [label="{number}"]']
            good += 1
        else:
            lines.append(_STATEMENTS[which % len(_STATEMENTS)] % (number, number))
            good += 1
    text = "\n".join([*lines, "}"])
    if not expected:
        parse_dot(text)
        return
    found = examine_dot(text)
    assert isinstance(found, BrokenText)
    assert found.error.span is not None
    starts = [found.error.span, *(other.span for other in found.error.others if other.span)]
    seen = [_first_line(span.line, expected) for span in starts]
    assert seen == expected[:MAX_MISTAKES]
    if len(expected) < MAX_MISTAKES:
        assert found.rest is not None
        assert len(found.rest.tree.body) == good


def _first_line(line: int, expected: list[int]) -> int:
    """The mistake that a place belongs to: a missing quote is noticed after the next one."""
    return max((each for each in expected if each <= line), default=0)


def test_the_search_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "digraph {\n" + "a -- b\n" * 500 + "}"

    found = examine_dot(text)
    assert isinstance(found, BrokenText)
    assert len(found.error.others) == MAX_MISTAKES - 1
    assert found.rest is None

    read = list[int]()

    def counted(*args: Any, **options: Any) -> DotTree:
        read.append(1)
        return parse_syntax(*args, **options)

    monkeypatch.setattr("attractor_nb.languages.dot.syntax_recovery.MAX_CHARACTERS", 5 * len(text))
    monkeypatch.setattr("attractor_nb.languages.dot.syntax_recovery.parse_syntax", counted)
    found = examine_dot(text)
    assert isinstance(found, BrokenText)
    assert len(read) == 5
    assert len(found.error.others) == 5


@pytest.mark.parametrize(
    "text", ["digraph {\n" + "\n" * 200_000 + "a -- b }", "digraph { a [x=\n" + "b\n" * 200_000 + "}"]
)
def test_long_texts_take_linear_time(text: str) -> None:
    """A search that looked at each line end as far as the next word would take minutes."""
    assert isinstance(examine_dot(text), BrokenText)


@pytest.mark.parametrize("comment", ["// x", "# x", "/* x", ""])
def test_a_block_that_the_text_ends_in_is_read_with_a_brace_behind_it(comment: str) -> None:
    found = examine_dot(f"[ digraph G {{ }} start [ {comment}")
    assert isinstance(found, BrokenText)
    assert found.error.span is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [("digraph G {" + "a;" * 250_002 + "}", "250,000 statements"), ("digraph G {" + "{" * 300, "nested more than")],
    ids=["too many statements", "too deep"],
)
def test_a_text_that_is_too_large_is_refused_once(text: str, message: str) -> None:
    found = examine_dot(text)
    assert isinstance(found, BrokenText)
    assert message in found.error.message
    assert (found.error.others, found.rest) == ((), None)


def test_a_mistake_before_a_limit_is_reported_with_the_limit_once() -> None:
    found = examine_dot("digraph G { a [x=] " + "{" * 300)
    assert isinstance(found, BrokenText)
    assert [other.message.partition(" ")[0] for other in found.error.others] == ["groups"]
