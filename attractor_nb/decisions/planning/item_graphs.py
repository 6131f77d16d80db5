"""The pipeline of one item: a stage with `for_each` between a start and its own exit.

The run of an item is a child run like any other. Its pipeline is made when the one around it is prepared, so
that trust, hash and views see it; what it begins with is known only when the stage is reached.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec

from attractor_nb.model.graph import Edge, Graph, Node, with_literal_texts
from attractor_nb.model.vocabulary.value_forms import FOR_EACH, ITEM_KEYS, MAX_ITEMS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.model.vocabulary.attribute_table import AttrValue

_READS: Final = "cache.context"
_OF_THE_WHOLE: Final = frozenset(
    {
        FOR_EACH,
        MAX_ITEMS,
        "max_parallel",
        "join_policy",
        "join_k",
        "join_quorum",
        "error_policy",
        "goal_gate",
        "retry_target",
        "fallback_retry_target",
        "class",
        "max_budget_usd",
        "max_tokens_total",
    }
)
"""Node attributes that are about all items together, or whose work is done when the graph is prepared."""
_OF_THE_PIPELINE: Final = frozenset(
    {
        "label",
        "inputs",
        "inputs_schema",
        "model_stylesheet",
        "retry_target",
        "fallback_retry_target",
        "on_fail",
        "conditional_outcome",
        "max_goal_gate_redirects",
        "strict_gates",
        "max_steps",
        "max_node_visits",
        "max_restarts",
        "max_budget_usd",
        "max_tokens_total",
        "max_duration",
        "isolation",
    }
)
"""Graph attributes that are about the run around: its way, its inputs, its bounds, its place."""


def item_graph(graph: Graph, node: Node) -> Graph:
    """The pipeline that is run for each item of a node's list.

    The graph attribute ``for_each`` of it says what it is.

    Args:
        graph: The graph around, with its transforms applied and its texts in place.
        node: A node of it with ``for_each``.
    """
    attrs = {name: value for name, value in graph.attrs.items() if name not in _OF_THE_PIPELINE}
    start, end = _free("start", node.id), _free("exit", node.id)
    nodes = {
        start: Node(start, MappingProxyType({"shape": "Mdiamond"})),
        node.id: msgspec.structs.replace(node, attrs=MappingProxyType(_own(node)), derived_classes=()),
        end: Node(end, MappingProxyType({"shape": "Msquare"})),
    }
    made = Graph(
        node.id,
        MappingProxyType({**attrs, FOR_EACH: node.attrs[FOR_EACH]}),
        nodes,
        (Edge(start, node.id), Edge(node.id, end)),
    )
    return with_literal_texts(made)


def _own(node: Node) -> Mapping[str, AttrValue]:
    """The attributes of the node that the stage of one item has; it reads the item, too."""
    attrs = {name: value for name, value in node.attrs.items() if name not in _OF_THE_WHOLE}
    if isinstance(read := attrs.get(_READS), str):
        attrs[_READS] = ", ".join([read, *ITEM_KEYS] if read.strip() else ITEM_KEYS)
    return attrs


def _free(name: str, taken: str) -> str:
    return name if name != taken else f"{name}_"
