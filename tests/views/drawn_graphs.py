"""The graphs whose drawings are measured: a generated corpus, the project's examples, and hard cases.

Everything is deterministic: the same name gives the same text on every machine.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EXAMPLES = Path(__file__).parents[2] / "examples"
PER_KIND = 25
WORDS = [
    "plan",
    "read",
    "check",
    "write",
    "review",
    "collect",
    "compare",
    "build",
    "test",
    "deploy",
    "measure",
    "summarise",
    "translate",
    "the",
    "a",
    "of",
    "with",
    "all",
    "report",
    "invoice",
    "ticket",
    "branch",
    "release",
    "candidate",
    "customer",
]
SHAPES = ("box", "box", "box", "parallelogram", "hexagon", "diamond")


class _Text:
    """A graph's text while it is written."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.nodes: list[str] = []
        self.lines: list[str] = []
        self.node("start", "Mdiamond")

    def words(self, least: int, most: int) -> str:
        return " ".join(self.chance.choices(WORDS, k=self.chance.randint(least, most)))

    def node(self, name: str | None = None, shape: str = "box", label: str | None = None) -> str:
        name = name or f"n{len(self.nodes)}"
        self.nodes.append(name)
        words = self.words(1, 3) if label is None else label
        self.lines.append(f'  {name} [shape={shape}, label="{words}"]')
        return name

    def edge(self, source: str, target: str, label: str = "") -> None:
        self.lines.append(f"  {source} -> {target}{f' [label={chr(34)}{label}{chr(34)}]' if label else ''}")

    def chain(self, first: str, length: int, shapes: tuple[str, ...] = ("box",)) -> list[str]:
        names = [first]
        for _ in range(length):
            names.append(self.node(shape=self.chance.choice(shapes)))
            self.edge(names[-2], names[-1])
        return names

    def end(self, last: str) -> str:
        self.node("exit", "Msquare")
        self.edge(last, "exit")
        return "\n".join(["digraph g {", *self.lines, "}"]) + "\n"


def _chain(text: _Text) -> str:
    names = text.chain("start", text.chance.randint(1, 14), SHAPES)
    return text.end(names[-1])


def _loops(text: _Text) -> str:
    """A chain with ways back: to the node before, or far; some with labels."""
    names = text.chain("start", text.chance.randint(3, 10))
    for _ in range(text.chance.randint(1, 3)):
        late = text.chance.randrange(2, len(names))
        early = late - 1 if text.chance.random() < 0.5 else text.chance.randrange(1, late)
        text.edge(names[late], names[early], text.chance.choice(["", "[F] Fix", "again", "not yet, once more"]))
    return text.end(names[-1])


def _skips(text: _Text) -> str:
    names = text.chain("start", text.chance.randint(5, 24))
    for _ in range(len(names) // 3):
        early = text.chance.randrange(len(names) - 2)
        late = min(len(names) - 1, early + text.chance.randrange(2, 8))
        text.edge(names[early], names[late], text.chance.choice(["", "skip"]))
    return text.end(names[-1])


def _fan(text: _Text, fan_out: str, count: int, depth: int = 1) -> str:
    """Branches of a fan-out and their join, which is returned."""
    ends = [text.chain(fan_out, text.chance.randint(1, 3))[-1] for _ in range(count)]
    if depth:
        inner = text.node(shape="component")
        text.edge(ends[0], inner)
        ends[0] = _fan(text, inner, 2, depth - 1)
    join = text.node(shape="tripleoctagon")
    for end in ends:
        text.edge(end, join)
    return join


def _fan_outs(text: _Text) -> str:
    before = text.chain("start", text.chance.randint(0, 2))[-1]
    fan_out = text.node(shape="component")
    text.edge(before, fan_out)
    join = _fan(text, fan_out, text.chance.randint(2, 6), 0)
    return text.end(text.chain(join, text.chance.randint(0, 2))[-1])


def _nested(text: _Text) -> str:
    fan_out = text.node(shape="component")
    text.edge("start", fan_out)
    return text.end(_fan(text, fan_out, text.chance.randint(2, 3), 1))


def _clusters(text: _Text) -> str:
    """A chain cut into labelled groups, with some edges between them."""
    last, groups, names = "start", text.chance.randint(2, 4), []
    for number in range(groups):
        begin = len(text.lines)
        members = text.chain(last, text.chance.randint(2, 4))[1:]
        within = text.lines[begin:]
        inside = [line for line in within if " -> " not in line]
        outside = [line for line in within if " -> " in line]
        title = text.words(1, 4)
        text.lines[begin:] = [f'  subgraph cluster_{number} {{ label="{title}"', *inside, "  }", *outside]
        names.append(members)
        last = members[-1]
    if text.chance.random() < 0.6:
        text.edge(names[0][0], names[-1][0], text.chance.choice(["", "skip"]))
    if text.chance.random() < 0.6:
        text.edge(names[-1][-1], names[0][-1], "again")
    return text.end(last)


def _decisions(text: _Text) -> str:
    """Checks with conditions: on to the next, or back, or aside to a repair that comes back."""
    last = "start"
    for _ in range(text.chance.randint(1, 4)):
        work = text.chain(last, 1)[-1]
        check = text.node(shape="diamond")
        text.edge(work, check)
        last = text.node()
        text.edge(check, last, "yes")
        if text.chance.random() < 0.5:
            text.edge(check, work, "no")
        else:
            repair = text.node()
            text.edge(check, repair, "no")
            text.edge(repair, work if text.chance.random() < 0.5 else last)
    return text.end(last)


def _long_labels(text: _Text) -> str:
    last = "start"
    for _ in range(text.chance.randint(2, 6)):
        name = text.node(label=text.words(6, 20), shape=text.chance.choice(SHAPES))
        text.edge(last, name, text.words(0, 9) if text.chance.random() < 0.6 else "")
        if text.chance.random() < 0.4:
            text.edge(name, name, text.words(1, 6))
        if text.chance.random() < 0.4 and last != "start":
            text.edge(name, last, text.words(2, 9))
        last = name
    return text.end(last)


KINDS: dict[str, Callable[[_Text], str]] = {
    "chain": _chain,
    "loops": _loops,
    "skips": _skips,
    "fan_outs": _fan_outs,
    "nested": _nested,
    "clusters": _clusters,
    "decisions": _decisions,
    "long_labels": _long_labels,
}


def generated(kind: str) -> dict[str, str]:
    """The graphs of one kind, by name."""
    return {f"{kind}-{number}": KINDS[kind](_Text(random.Random(f"{kind} {number}"))) for number in range(PER_KIND)}


def examples() -> dict[str, str]:
    """The project's examples."""
    return {path.stem: path.read_text() for path in sorted(EXAMPLES.glob("*.dot"))}


def skipping_chain(nodes: int, seed: int = 1) -> str:
    """A chain with half as many labelled skips as nodes, as the benchmarks draw it."""
    text = _Text(random.Random(seed))
    names = text.chain("start", nodes)
    for _ in range(nodes // 2):
        early = text.chance.randrange(nodes)
        text.edge(names[early], names[min(nodes - 1, early + text.chance.randrange(2, 12))], "skip")
    return text.end(names[-1])


def wide_fan_out(count: int) -> str:
    """A fan-out with so many branches of one node, and its join."""
    branches = "".join(f'  b{number} [label="Branch {number}"]\n  f -> b{number} -> j\n' for number in range(count))
    return f"digraph g {{\n  start [shape=Mdiamond]\n  f [shape=component]\n  j [shape=tripleoctagon]\n  exit [shape=Msquare]\n  start -> f\n{branches}  j -> exit\n}}\n"


def _lines(body: str) -> str:
    return f"digraph g {{\n  start [shape=Mdiamond]\n  exit [shape=Msquare]\n{body}}}\n"


HARD = {
    "a loop between two nodes": _lines('  start -> a -> b -> exit\n  b -> a [label="[F] Fix what was found"]\n'),
    "a labelled loop between two nodes": _lines(
        '  start -> a\n  a -> b [label="done"]\n  b -> a [label="not good enough yet"]\n  b -> exit\n'
    ),
    "twenty branches": wide_fan_out(20),
    "nine branches": wide_fan_out(9),
    "a chain of twelve": _lines("  start -> " + " -> ".join(f"step_{k}" for k in range(12)) + " -> exit\n"),
    "every pair of seven": _lines(
        "  start -> a\n"
        + "".join(f"  {a} -> {b}\n" for i, a in enumerate("abcdefg") for b in "abcdefg"[i + 1 :])
        + "  g -> exit\n"
    ),
    "ways back to one node": _lines(
        "  start -> plan -> write -> test -> review -> exit\n"
        + "".join(f'  {name} -> plan [label="from {name}"]\n' for name in ("write", "test", "review"))
    ),
    "five edges between two nodes": _lines(
        "  start -> a\n" + "".join(f'  a -> b [label="way {k}"]\n' for k in range(4)) + "  b -> a\n  b -> exit\n"
    ),
    "forty nodes": skipping_chain(40),
    "two hundred nodes": skipping_chain(200),
}


def corpus() -> Iterator[tuple[str, str]]:
    """All graphs: the name and the text of each."""
    for kind in KINDS:
        yield from generated(kind).items()
    yield from examples().items()
    yield from HARD.items()


QUICK_FAMILIES = {"clusters", "examples", "nested", "pipelines", "skips"}
"""The others belong to the campaign."""


def rows_of_drawings(families: tuple[str, ...]) -> list[Any]:
    """Each family, as a row of a parametrised test."""
    return [pytest.param(each, marks=() if each in QUICK_FAMILIES else pytest.mark.campaign) for each in families]
