"""Fault 18: huge and hostile DOT is read within its bound or refused with its place."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator

import pytest

from attractor_nb import Pipeline
from attractor_nb.errors import AttractorError, ConditionSyntaxError, DotSyntaxError, StylesheetSyntaxError
from attractor_nb.languages.condition import parse_condition
from attractor_nb.languages.dot import read_dot
from attractor_nb.languages.stylesheet import parse_stylesheet
from attractor_nb.source import SourceText

MEGABYTE = 1_000_000
SECONDS_PER_MEGABYTE = 1.0
FLOOR_SECONDS = 0.5
"""What other processes and a cold memory may cost, whatever the size of a text."""
REFERENCE_LOOP_SECONDS = 0.2
"""What a processor that shares its core with nobody takes for ten million empty turns."""
ATTEMPTS = 3
"""The same text, read again in the same process, takes from one to two times its least time on a shared machine."""
LEXER = "attractor_nb/languages/dot/lexer.py"


def slowness() -> float:
    """How much longer this machine takes than an idle one: what shares the core makes its seconds longer."""
    began = time.process_time()
    for _ in range(10_000_000):
        pass
    return max(1.0, (time.process_time() - began) / REFERENCE_LOOP_SECONDS)


def idle_seconds(measure: Callable[[], float], bound: float) -> float:
    """What an idle machine would take: the first of three measurements within its bound, or the least."""
    least = float("inf")
    for _ in range(ATTEMPTS):
        slower = slowness()
        least = min(least, measure() / slower)
        if least <= bound:
            break
    return least


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
@pytest.mark.protects(
    "attractor_nb/languages/dot/parser.py", "if self._lexer.statements_left < 0:", instead="if False:"
)
def test_each_row_is_read_or_refused_with_its_place(figures):
    """Protected by the bounds on depth and statements, and by the search for forbidden characters."""
    worst = 0.0
    for name, (text, refusal) in ROWS.items():
        error = refusal_of(text, read)
        assert (error is None) == (refusal is None), f"{name}: {error}"
        assert error is None or refusal in error.message, name
        size = len(text.encode("utf-8", "surrogatepass")) / MEGABYTE
        bound = FLOOR_SECONDS + SECONDS_PER_MEGABYTE * size
        seconds = idle_seconds(lambda text=text: seconds_for(text, read), bound)
        assert seconds <= bound, f"{name}: {seconds:.2f} s"
        worst = max(worst, seconds / size if size > 0.5 else 0.0)
    figures.record(
        18,
        "huge and hostile texts",
        f"{len(ROWS)} of {len(ROWS)} read or refused with their place, at most {worst:.2f} s for 1 MB, of an idle"
        " processor",
    )


TINY = (
    "a;", "a ", ";", "{}", "{a}", "[]", "a->b ", "a->", "//\n", "/**/", "#\n", "a[]", "a[b=c]", "node[]", "x=1 ",
    '"a" ', "\n", "\r", "\u202e", "0", "-", "<", '"', "\\", "=", ",", ":", "a:b ", "é",
)  # fmt: skip
INSIDE = ("a=1,", "a=1\n", "a=1;\n", "a=1,a=2,", '"a"=1,', "/**/", "a=", "a ", "a-", "][")
TINY_SECONDS_PER_MEGABYTE = 2.0
"""A megabyte of the shortest statements is up to 250,000 of them, each with its place in tree and graph."""


@pytest.mark.protects("attractor_nb/languages/dot/__init__.py", "and len(found) < MAX_FINDINGS", instead="")
@pytest.mark.usefixtures("without_collector")
def test_a_megabyte_of_the_shortest_parts_is_read_within_its_time(campaign, figures):
    """Protected by the bound on findings: one for each of a megabyte of repetitions takes seconds."""
    texts = [*map(filled, TINY), *(filled(unit, "digraph G { a [", "] }") for unit in INSIDE)]
    worst = 0.0
    for text in texts if campaign.is_full else [filled("a;"), filled("{}"), texts[-7]]:
        size = len(text.encode()) / MEGABYTE
        bound = TINY_SECONDS_PER_MEGABYTE * size
        taken = idle_seconds(lambda text=text: seconds_for(text, read), bound) / size
        assert taken <= TINY_SECONDS_PER_MEGABYTE, f"{text[:30]!r}: {taken:.2f} s for 1 MB"
        worst = max(worst, taken)
    figures.record(18, "a megabyte of the shortest parts", f"at most {worst:.2f} s for 1 MB, of an idle processor")


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
def test_time_grows_as_the_text_does(figures, monkeypatch):
    """Protected by repetitions that grow in place; copied for each part they take the square of the time."""
    monkeypatch.setattr("attractor_nb.languages.condition.parser.MAX_CHARACTERS", MEGABYTE)
    monkeypatch.setattr("attractor_nb.languages.stylesheet.parser.MAX_CHARACTERS", MEGABYTE)
    ratios = {}
    for name, (make, parse) in GROWING.items():
        small = min(seconds_for(make(10_000), parse) for _ in range(2))
        ratios[name] = min(seconds_for(make(80_000), parse) for _ in range(2)) / small
        assert ratios[name] < 20, f"{name}: eight times the text takes {ratios[name]:.1f} times the time"
    figures.record(18, "a text eight times as long", f"takes {max(ratios.values()):.1f} times as long, at most")


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
    assert idle_seconds(lambda: seconds_for(text, parse), 1.0) <= 1.0


@pytest.mark.protects(
    "attractor_nb/languages/dot/parser.py", "statements_left -= count", instead="statements_left -= 9 * count"
)
def test_a_pipeline_of_100_000_nodes_is_made_and_linted_within_its_time(campaign, figures):
    """Protected by a bound on statements that leaves room for them."""
    count = campaign.count(sample=30_000, full=100_000)
    chain = "".join(f"n{number} -> n{number + 1}\n" for number in range(count))
    nodes = "".join(f'n{number} [prompt="p"]\n' for number in range(count + 1))
    text = f"digraph G {{ start [shape=Mdiamond] done [shape=Msquare] {nodes}{chain} start -> n0 n{count} -> done }}"

    def made_and_shown() -> float:
        began = time.process_time()
        pipeline = Pipeline(text)
        found = pipeline.lint()
        shown = repr(pipeline)
        seconds = time.process_time() - began
        assert not found.errors
        assert len(pipeline.graph.nodes) == count + 3
        assert f"{count + 3} nodes" in shown
        return seconds

    bound = count / 10_000
    seconds = idle_seconds(made_and_shown, bound)
    assert seconds <= bound
    figures.record(18, f"pipeline of {count:,} nodes, made, linted and shown", f"{seconds:.1f} s of an idle processor")
