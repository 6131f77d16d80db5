"""P6, P7 and H1: reading DOT, checking what was read, and the list of runs."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import texts
from environments import python_of
from goals import Goal, Row, Scale, compared
from measuring import Figures, MissingPeer, in_turns, precise_cpu_of, surroundings, worker

REPEATS = 3
PEERS = (("pydot", 0.05), ("sjk", 1.0), ("py-attractor", 1.0))


def reading(scale: Scale) -> list[Row]:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        short, long = Path(folder) / "short.dot", Path(folder) / "long.dot"
        short.write_text(texts.written_pipeline(scale.nodes))
        long.write_text(texts.written_pipeline(10 * scale.nodes))
        for peer, limit in PEERS if scale.with_peers else ():
            subject = f"{scale.nodes} nodes against {peer}, CPU"
            try:
                python = python_of(peer)
                figures = in_turns(
                    {
                        "ours": lambda _: worker("reading", "ours", short, REPEATS)["cpu"],
                        "peer": lambda _, peer=peer, python=python: worker("reading", peer, short, 1, python=python)[
                            "cpu"
                        ],
                    },
                    scale.slow_rounds,
                    warm_ups=0,
                )
            except MissingPeer as missing:
                rows.append(Row(subject, limit, missing=str(missing)))
                continue
            rows.append(compared(subject, limit, figures["ours"], figures["peer"], unit="ms"))
        figures = in_turns(
            {
                "long": lambda _: worker("reading", "ours", long, REPEATS)["cpu"] / 10,
                "short": lambda _: worker("reading", "ours", short, REPEATS)["cpu"],
            },
            scale.slow_rounds,
            warm_ups=0,
        )
        rows.append(
            compared(
                f"a node of {10 * scale.nodes} against one of {scale.nodes}, CPU",
                1.3,
                figures["long"],
                figures["short"],
                per=scale.nodes,
            )
        )
    rows.append(_tables(scale))
    return rows


def _tables(scale: Scale) -> Row:
    """CPU from an interpreter that has our base layer to one that has read its first text."""
    code = (
        "import time, attractor_nb.model.graph, attractor_nb.errors, json, re, dataclasses\n"
        "begin = time.process_time()\n"
        "from attractor_nb.languages.dot import parse_dot\n"
        "parse_dot('digraph tiny { a -> b }')\n"
        "print(time.process_time() - begin)"
    )

    def first_reading(_: int) -> float:
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=surroundings()
        )
        return float(done.stdout)

    taken = in_turns({"ours": first_reading}, scale.rounds)["ours"]
    subject = "grammar, parser and first text, CPU"
    return Row(subject, 30, taken.median * 1e3, taken.minimum * 1e3, unit="ms")


def checking(scale: Scale) -> list[Row]:
    import networkx as nx

    from attractor_nb import parse_dot, validate

    graphs = [parse_dot(texts.written_pipeline(size)) for size in (scale.nodes, 10 * scale.nodes)]
    short, long = graphs

    def build(_: int) -> float:
        def work() -> None:
            graph = nx.DiGraph()
            graph.add_nodes_from(long.nodes)
            graph.add_edges_from((edge.source, edge.target) for edge in long.edges)

        return precise_cpu_of(work)

    figures = in_turns(
        {
            "long": lambda _: precise_cpu_of(lambda: validate(long)),
            "build": build,
            "short": lambda _: precise_cpu_of(lambda: validate(short)),
        },
        scale.rounds,
    )
    subject = f"all rules on {10 * scale.nodes} nodes against building the same nx.DiGraph, CPU"
    tenth = type(figures["long"])(tuple(value / 10 for value in figures["long"].values))
    return [
        compared(subject, 5, figures["long"], figures["build"], unit="ms"),
        compared(
            f"a node of {10 * scale.nodes} against one of {scale.nodes}, CPU",
            1.3,
            tenth,
            figures["short"],
            per=scale.nodes,
        ),
    ]


def listing(scale: Scale) -> list[Row]:
    few, many = scale.kept, 10 * scale.kept
    found: dict[str, Any] = worker("listing", few, many, scale.rounds)
    ours, more = found[str(few)], found[str(many)]

    def row(subject: str, limit: float, mine: float, other: float) -> Row:
        return compared(subject, limit, Figures((mine,)), Figures((other,)), unit="ms")

    return [
        row(f"{few:,} runs in a new process against reading every run, CPU", 0.25, ours["new"], ours["read"]),
        row("asked again in that process, CPU", 0.1, ours["again"], ours["read"]),
        row(f"{many:,} runs in a new process against {few:,}, CPU", 10, more["new"], ours["new"]),
        row("asked again in that process, CPU", 10, more["again"], ours["again"]),
    ]


GOALS = [
    Goal(
        "P6",
        "DOT text to a typed graph with spans",
        reading,
        "py-attractor, which has no spans, stands in for sjk, which cannot be fetched from a registry.",
    ),
    Goal(
        "P7",
        "lint",
        checking,
        "The growth from 1,000 to 10,000 nodes was 1.08 in one run and 1.53 in another; building the networkx "
        "graph of the same sizes grew as much when it was measured beside it. Larger graphs leave the "
        "processor's caches.",
    ),
    Goal(
        "H1",
        "the list of runs",
        listing,
        "Copies of the directory of one run of five stages; the best of all rounds. The files were in the "
        "system's memory. What is more than ten times for ten times the runs is "
        "memory: the lines of 20,000 runs leave the processor's caches, and Python's collector walks over them. "
        "`python tests/benchmarks --only H1`.",
    ),
]
