"""Graphs for the tables of decisions, written as values: no parser takes part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from attractor_nb.decisions.planning.plan import Plan, compile_plan
from attractor_nb.model.graph import Edge, Graph, Node


def _edge(written: Sequence[Any]) -> Edge:
    source, target, *attrs = written
    return Edge(source, target, attrs[0] if attrs else {})


def _graph(edges: Sequence[Sequence[Any]] = (), nodes: dict[str, dict[str, Any]] | None = None, **attrs: Any) -> Graph:
    """A graph with ``start`` and ``done``; nodes that only edges name are made."""
    known: dict[str, dict[str, Any]] = {"start": {"shape": "Mdiamond"}, "done": {"shape": "Msquare"}, **(nodes or {})}
    for source, target, *_ in edges:
        known.setdefault(source, {})
        known.setdefault(target, {})
    return Graph(
        "demo",
        {name.replace("__", "."): value for name, value in attrs.items()},
        {name: Node(name, values) for name, values in known.items()},
        tuple(_edge(edge) for edge in edges),
    )


def _plan(edges: Sequence[Sequence[Any]] = (), nodes: dict[str, dict[str, Any]] | None = None, **attrs: Any) -> Plan:
    return compile_plan(_graph(edges, nodes, **attrs))


@pytest.fixture(scope="session")
def build() -> SimpleNamespace:
    """``build.graph(edges, nodes, **graph_attrs)`` and ``build.plan`` of the same."""
    graph: Callable[..., Graph] = _graph
    plan: Callable[..., Plan] = _plan
    return SimpleNamespace(graph=graph, plan=plan)
