"""A drawing takes time in proportion to its size: twice the graph, about twice the operations."""

import re
import sys

import pytest

from attractor_nb import parse_dot
from attractor_nb.views.drawings import branch_stacks
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.layout import ordering, skeleton

_TRACED = ("views/layout/", "branch_stacks")


def fan_outs_in_a_row(count):
    """Fan-outs of six branches."""
    lines = [
        f"f{one} [shape=component] j{one} [shape=tripleoctagon] j{one} -> f{one + 1} "
        + " ".join(f"f{one} -> b{one}_{branch} -> j{one}" for branch in range(6))
        for one in range(count)
    ]
    return [f"start -> f0 f{count} -> exit", *lines]


def fan_outs_within_fan_outs(count):
    lines = [
        f"f{one} [shape=component] j{one} [shape=tripleoctagon] f{one} -> f{one + 1} f{one} -> b{one} -> j{one} "
        f"j{one + 1} -> j{one}"
        for one in range(count)
    ]
    return [f"start -> f0 f{count} -> j{count} j0 -> exit", *lines]


def one_fan_out(count):
    return [
        "f [shape=component] j [shape=tripleoctagon] start -> f j -> exit",
        *(f"f -> b{n} -> j" for n in range(count)),
    ]


def branches_with_one_way_on(count):
    """Each branch leads to the same long way to the fan-in."""
    ways = " ".join(f"c{number} -> c{number + 1}" for number in range(count))
    return [
        f"f [shape=component] j [shape=tripleoctagon] start -> f j -> exit {ways} c{count} -> j",
        *(f"f -> b{number} -> c0" for number in range(count)),
    ]


def parallel_edges(count):
    return ["start -> a b -> exit", *["a -> b"] * count]


def loops(count):
    return ["start -> a -> exit", *["a -> a"] * count]


def undeclared_targets(count):
    return ["start -> a -> exit", *(f"a -> x{number}" for number in range(count))]


def subgraphs_side_by_side(count):
    return [f"subgraph cluster_{n} {{ label=S n{n} }} start -> n{n} -> exit" for n in range(count)]


def long_subgraphs(count):
    """A chain in which each node shares a subgraph with the one as far from the other end."""
    chain = " -> ".join(f"n{number}" for number in range(2 * count))
    groups = [f"subgraph cluster_{n} {{ label=S n{n}; n{2 * count - 1 - n} }}" for n in range(count)]
    return [*groups, f"start -> {chain} -> exit"]


def two_hubs_in_subgraphs(count):
    lines = [f"a -> n{number} -> exit b -> n{number}" for number in range(count)]
    return ["subgraph cluster_a { label=A a } subgraph cluster_b { label=B b } start -> a start -> b", *lines]


def lines_executed(lines):
    """The lines of code that the layout of a graph runs; the writing of its marks is left out."""
    graph = parse_dot("digraph { start [shape=Mdiamond] exit [shape=Msquare]\n" + "\n".join(lines) + "\n}")
    count = 0

    def trace(frame, event, _argument):
        nonlocal count
        count += event == "line"
        return trace if any(part in frame.f_code.co_filename for part in _TRACED) else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        render_svg(graph, is_whole=False)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        pytest.param(fan_outs_in_a_row, 40, id="fan-outs in a row", marks=pytest.mark.campaign),
        pytest.param(fan_outs_within_fan_outs, 40, id="fan-outs within fan-outs", marks=pytest.mark.campaign),
        pytest.param(one_fan_out, 300, id="one fan-out"),
        pytest.param(branches_with_one_way_on, 150, id="branches with one way on", marks=pytest.mark.campaign),
        pytest.param(parallel_edges, 200, id="parallel edges", marks=pytest.mark.campaign),
        pytest.param(loops, 200, id="loops", marks=pytest.mark.campaign),
        pytest.param(undeclared_targets, 200, id="undeclared targets", marks=pytest.mark.campaign),
        pytest.param(subgraphs_side_by_side, 150, id="subgraphs side by side", marks=pytest.mark.campaign),
        pytest.param(long_subgraphs, 60, id="long subgraphs"),
        pytest.param(two_hubs_in_subgraphs, 300, id="two hubs in subgraphs", marks=pytest.mark.campaign),
    ],
)
def test_twice_the_graph_takes_twice_the_operations(lines, count, monkeypatch):
    # The bounds of large drawings, made small: here they hold for graphs of some hundred nodes.
    monkeypatch.setattr(branch_stacks, "_MOST_WALKED", 500)
    monkeypatch.setattr(ordering, "_TOO_WIDE", 1_000)
    monkeypatch.setattr(skeleton, "MOST_PANEL_LAYERS", 500)
    lines_executed(lines(5))  # what is computed once for a process is computed
    assert lines_executed(lines(2 * count)) < 2.2 * lines_executed(lines(count))


@pytest.mark.parametrize(
    ("bound", "note"),
    [
        (1000, ""),
        (9, "too large a drawing: 1 subgraph without a frame"),
        (1, "too large a drawing: 3 subgraphs without a frame"),
    ],
    ids=["none", "one", "several"],
)
def test_a_drawing_that_is_too_large_says_how_many_subgraphs_have_no_frame(monkeypatch, bound, note):
    monkeypatch.setattr(skeleton, "MOST_PANEL_LAYERS", bound)
    groups = [f"subgraph cluster_{name} {{ label={name}; a{name}; b{name}; a{name} -> b{name} }}" for name in "xyz"]
    groups[2] = groups[2].replace("-> bz", "-> c1 -> c2 -> c3 -> c4 -> c5 -> bz")
    ways = " ".join(f"start -> a{name} b{name} -> exit" for name in "xyz")
    text = f"digraph {{ start [shape=Mdiamond] exit [shape=Msquare] {' '.join(groups)} {ways} }}"
    drawn = render_svg(parse_dot(text))
    assert re.findall(r">(too large a drawing[^<]*)<", drawn) == ([note] if note else [])
