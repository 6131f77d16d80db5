"""Fault 18: huge and hostile DOT is read within its bound or refused with its place."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator

import pytest

from attractor_nb import Pipeline
from attractor_nb.errors import AttractorError, ConditionSyntaxError, DotSyntaxError, StylesheetSyntaxError
from attractor_nb.languages.condition import parse_condition
from attractor_nb.languages.dot import MAX_FINDINGS, read_dot
from attractor_nb.languages.stylesheet import parse_stylesheet
from attractor_nb.source import SourceText

MEGABYTE = 1_000_000
SECONDS_PER_MEGABYTE = 10.0
"""Bounds are of processor time, and ten times what an idle machine takes: who shares a core makes it longer."""
FLOOR_SECONDS = 2.0
"""The cost that a cold memory may add, for a text of any size."""
LEXER = "attractor_nb/languages/dot/lexer.py"


@pytest.fixture
def without_collector() -> Iterator[None]:
    """The cycle collector's rounds grow with what the whole process holds, and are no parser's doing."""
    gc.disable()
    yield
    gc.enable()


def filled(unit: str, head: str = "digraph G {", tail: str = "}", size: int = MEGABYTE) -> str:
    """A text of some size made of one part said again and again."""
    return head + unit * ((size - len(head) - len(tail)) // len(unit)) + tail


def refusal_of(text: str, read: Callable[[str], object]) -> AttractorError | None:
    """The refusal of a text, which shows its place; None where it is read."""
    refusal = None
    try:
        read(text)
    except (DotSyntaxError, ConditionSyntaxError, StylesheetSyntaxError) as error:
        refusal, shown = error, str(error)
    if refusal is not None:
        assert refusal.span is not None
        assert refusal.span.line >= 1
        assert "^" in shown
    return refusal


def seconds_for(text: str, read: Callable[[str], object]) -> float:
    """Processor time until a text is read or refused and the refusal shown."""
    began = time.process_time()
    refusal_of(text, read)
    return time.process_time() - began


def read(text: str) -> object:
    return read_dot(SourceText(text, "hostile.dot"))


ROWS = {
    "100,000 nodes": ("digraph G {" + "".join(f"n{number};" for number in range(100_000)) + "}", None),
    "a string of 10 MB": ('digraph G { a [prompt="' + "x" * 10 * MEGABYTE + '"] }', None),
    "50,000 attributes": ("digraph G { a [" + ", ".join(f"k{n}={n}" for n in range(50_000)) + "] }", None),
    "groups 100,000 deep": ("digraph G {" + "subgraph {" * 100_000 + "}" * 100_000 + "}", "nested more than"),
    "brackets 100,000 deep": ("digraph G { a [x=" + "[" * 100_000, ""),
    "a NUL": ("digraph G { a\0 }", "NUL"),
    "half a character": ('digraph G { a [label="\ud800"] }', "half a character"),
    "a byte order mark": ("\ufeffdigraph G { a }", None),
    "CR LF": ('digraph G {\r\n a [label="x"]\r\n a -> b\r\n}\r\n', None),
    "CR only": ('digraph G {\r a [label="x"]\r a -> b\r}\r', None),
    "bidirectional controls": ('digraph G { a [label="\u202ex\u2066"] // \u202e\n }', None),
    "an unclosed quote": ('digraph G { a [label="' + "x\n" * 500_000, "never closed"),
    "an unclosed comment": ("digraph G { a /* " + "* /" * 300_000, "never closed"),
    "250,001 statements": ("digraph G {" + "a\n" * 250_001 + "}", "more than 250,000 statements"),
}  # fmt: skip


@pytest.mark.protects(LEXER, "            if len(self.braces) > MAX_DEPTH:", instead="            if False:")
@pytest.mark.protects(LEXER, "        self._look_for_forbidden_characters()", instead="        pass")
@pytest.mark.protects("attractor_nb/languages/dot/parser.py", "if self._statements_left < 0:", instead="if False:")
@pytest.mark.campaign
def test_each_row_is_read_or_refused_with_its_place(figures):
    """Protected by the bounds on depth and statements, and by the search for forbidden characters."""
    worst = 0.0
    for name, (text, refusal) in ROWS.items():
        began = time.process_time()
        error = refusal_of(text, read)
        seconds = time.process_time() - began
        assert (error is None) == (refusal is None), f"{name}: {error}"
        assert error is None or refusal in error.message, name
        size = len(text.encode("utf-8", "surrogatepass")) / MEGABYTE
        assert seconds <= FLOOR_SECONDS + SECONDS_PER_MEGABYTE * size, f"{name}: {seconds:.2f} s"
        worst = max(worst, seconds / size if size > 0.5 else 0.0)
    figures.record(
        18,
        "huge and hostile texts",
        f"{len(ROWS)} of {len(ROWS)} read or refused with their place, at most {worst:.2f} s of the processor for 1 MB",
    )


TINY = (
    "a;", "a ", ";", "{}", "{a}", "[]", "a->b ", "a->", "//\n", "/**/", "#\n", "a[]", "a[b=c]", "node[]", "x=1 ",
    '"a" ', "\n", "\r", "\u202e", "0", "-", "<", '"', "\\", "=", ",", ":", "a:b ", "é",
)  # fmt: skip
INSIDE = ("a=1,", "a=1\n", "a=1;\n", "a=1,a=2,", '"a"=1,', "/**/", "a=", "a ", "a-", "][")


@pytest.mark.protects("attractor_nb/languages/dot/__init__.py", "and len(found) < MAX_FINDINGS", instead="")
@pytest.mark.usefixtures("without_collector")
@pytest.mark.campaign
def test_a_megabyte_of_the_shortest_parts_is_read_within_its_time_with_few_findings(campaign, figures):
    """Protected by the bound on findings: one for each of a megabyte of repetitions takes seconds.

    It may be up to 250,000 statements, each with its place in tree and graph.
    """
    texts = [*map(filled, TINY), *(filled(unit, "digraph G { a [", "] }") for unit in INSIDE)]
    worst = 0.0
    for text in texts if campaign.is_full else [filled("a;"), filled("{}"), texts[-7]]:
        size = len(text.encode()) / MEGABYTE
        taken = seconds_for(text, read) / size
        assert taken <= SECONDS_PER_MEGABYTE / 2, f"{text[:30]!r}: {taken:.2f} s for 1 MB"
        worst = max(worst, taken)
    found = read_dot(SourceText(filled("a=1,a=2,", "digraph G { a [", "] }"), "hostile.dot")).diagnostics
    assert sum(each.rule == "duplicate_attribute" for each in found) == MAX_FINDINGS
    figures.record(18, "a megabyte of the shortest parts", f"at most {worst:.2f} s of the processor for 1 MB")


GROWING = {
    "condition of words": (lambda size: filled("b ", "a=", "", size), parse_condition),
    "condition of clauses": (lambda size: filled("a=b && ", "", "a=b", size), parse_condition),
    "condition of a word, and an error": (lambda size: filled("b", "a=", " && c d", size), parse_condition),
    "stylesheet of a word, and an error": (lambda size: filled("m", "* { ", " == s", size), parse_stylesheet),
    "stylesheet of rules": (lambda size: filled("* { model: b } ", "", "", size), parse_stylesheet),
    "stylesheet of declarations": (lambda size: filled("model:b;", "* {", "}", size), parse_stylesheet),
}


@pytest.mark.protects(
    "attractor_nb/languages/syntax_trees.py",
    "spliced, parts = first.parts, parts[1:]",
    instead="spliced = list(first.parts); parts = parts[1:]",
)
@pytest.mark.usefixtures("without_collector")
@pytest.mark.kind("hostile text")
def test_time_grows_as_the_text_does(figures, monkeypatch):
    """Protected by repetitions that grow in place; copied for each part they take the square of the time, 256 times."""
    monkeypatch.setattr("attractor_nb.languages.condition.parser.MAX_CHARACTERS", MEGABYTE)
    monkeypatch.setattr("attractor_nb.languages.stylesheet.parser.MAX_CHARACTERS", MEGABYTE)
    ratios = {}
    for name, (make, parse) in GROWING.items():
        small = min(seconds_for(make(10_000), parse) for _ in range(3))
        ratios[name] = seconds_for(make(160_000), parse) / small
        assert ratios[name] < 80, f"{name}: sixteen times the text takes {ratios[name]:.1f} times the processor time"
    figures.record(
        18, "a text sixteen times as long", f"takes {max(ratios.values()):.1f} times the processor time, at most"
    )


@pytest.mark.parametrize(
    ("parse", "path", "text"),
    [
        pytest.param(parse_condition, "condition", "a=b && " * 200_000, id="condition"),
        pytest.param(parse_stylesheet, "stylesheet", "* { model: b } " * 70_000, id="stylesheet"),
    ],
)
@pytest.mark.protects(
    "attractor_nb/languages/condition/parser.py", "if len(source.text) > MAX_CHARACTERS:", instead="if False:"
)
def test_a_megabyte_of_condition_or_stylesheet_is_refused_at_once(parse, path, text):
    """Protected by the bound on their length."""
    error = refusal_of(text, parse)
    assert error is not None
    assert "is longer than" in error.message
    assert seconds_for(text, parse) < 1.0


@pytest.mark.protects("attractor_nb/languages/dot/parser.py", "statements_left -= 1", instead="statements_left -= 9")
@pytest.mark.campaign
def test_a_pipeline_of_100_000_nodes_is_made_and_linted_within_its_time(campaign, figures):
    """Protected by a bound on statements that leaves room for them."""
    count = campaign.count(sample=30_000, full=100_000)
    chain = "".join(f"n{number} -> n{number + 1}\n" for number in range(count))
    nodes = "".join(f'n{number} [prompt="p"]\n' for number in range(count + 1))
    text = f"digraph G {{ start [shape=Mdiamond] done [shape=Msquare] {nodes}{chain} start -> n0 n{count} -> done }}"

    began = time.process_time()
    pipeline = Pipeline(text)
    found = pipeline.lint()
    shown = repr(pipeline)
    seconds = time.process_time() - began
    assert not found.errors
    assert len(pipeline.graph.nodes) == count + 3
    assert f"{count + 3} nodes" in shown
    assert seconds <= count / 2_000
    figures.record(18, f"pipeline of {count:,} nodes, made, linted and shown", f"{seconds:.1f} s of the processor")
