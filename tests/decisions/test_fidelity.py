"""The amount of context that a stage gets, and its session (spec 5.4)."""

from __future__ import annotations

import pytest

from attractor_nb.decisions.fidelity import degrade_once, resolve_fidelity, resolve_thread
from attractor_nb.model.graph import Edge, Graph, Node
from attractor_nb.model.vocabulary.attribute_table import FIDELITY_MODES

MODES = {
    "the edge first": ("full", "truncate", "summary:low", "full"),
    "then the node": ("", "truncate", "summary:low", "truncate"),
    "then the graph": ("", "", "summary:low", "summary:low"),
    "else compact": ("", "", "", "compact"),
    "a word that is no mode counts as unset": ("loud", "most", "summary:low", "summary:low"),
}


@pytest.mark.parametrize(("edge", "node", "graph", "expected"), MODES.values(), ids=MODES)
def test_fidelity_is_resolved_from_edge_node_and_graph(edge, node, graph, expected):
    mode = resolve_fidelity(
        Edge("a", "b", {"fidelity": edge}), Node("b", {"fidelity": node}), Graph("g", {"default_fidelity": graph})
    )
    assert mode == expected


def test_a_node_that_was_jumped_to_has_no_edge_to_ask():
    assert resolve_fidelity(None, Node("b", {"fidelity": "full"}), Graph("g")) == "full"


THREADS = {
    "the node first": ("n", "e", "g", "class", "n"),
    "then the edge": ("", "e", "g", "class", "e"),
    "then the graph": ("", "", "g", "class", "g"),
    "then the group's class": ("", "", "", "class", "class"),
    "else the node before": ("", "", "", "", "previous"),
}


@pytest.mark.parametrize(("node", "edge", "graph", "group", "expected"), THREADS.values(), ids=THREADS)
def test_a_thread_is_resolved_from_node_edge_graph_group_and_the_node_before(node, edge, graph, group, expected):
    thread = resolve_thread(
        Edge("a", "b", {"thread_id": edge}),
        Node("b", {"thread_id": node}),
        Graph("g", {"thread_id": graph}),
        group,
        "previous",
    )
    assert thread == expected


def test_a_thread_without_an_edge_falls_through():
    assert resolve_thread(None, Node("b"), Graph("g"), "", "previous") == "previous"


@pytest.mark.parametrize("mode", FIDELITY_MODES)
def test_only_full_fidelity_is_degraded_after_a_resume(mode):
    assert degrade_once(mode) == ("summary:high" if mode == "full" else mode)
