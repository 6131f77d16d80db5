"""What files of other runners of these pipelines mean by attributes of their own (ruling 5)."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from attractor_nb.model.vocabulary.foreign_names import CHILD_FILE, CHILD_FILES
from attractor_nb.model.vocabulary.shapes import DEFAULT_TYPE, PIPELINE_TYPE, SHAPE_TO_TYPE

if TYPE_CHECKING:
    from attractor_nb.model.graph import Graph, Node


class ForeignSubPipelines:
    """Reads `sub [shape=folder, dot_file="child.dot"]` as the sub-pipeline that it means (spec 9.4).

    As a model stage it would be asked the prompt "sub", and its answer would count as a success of the child. A node
    that says its type, has a shape with a handler of its own, or a prompt, stays what it is.
    """

    def apply(self, graph: Graph) -> Graph:
        """The graph with sub-pipelines in place of such nodes."""
        changed = [_as_sub_pipeline(node, name) for node in graph.nodes.values() if (name := _child_file(node))]
        return graph.with_nodes(changed) if changed else graph


def _child_file(node: Node) -> str:
    """The attribute by which a node of another dialect names its child, or empty."""
    is_task = SHAPE_TO_TYPE.get(node.shape, DEFAULT_TYPE) == DEFAULT_TYPE
    if not is_task or node.type or node.prompt or node.get(CHILD_FILE, str, "").strip():
        return ""
    return next((name for name in CHILD_FILES if str(node.attrs.get(name, "")).strip()), "")


def _as_sub_pipeline(node: Node, name: str) -> Node:
    read = node.with_attrs({"type": PIPELINE_TYPE, CHILD_FILE: str(node.attrs[name])})
    if name not in node.attr_spans:
        return read
    spans = MappingProxyType({**node.attr_spans, CHILD_FILE: node.attr_spans[name]})
    return msgspec.structs.replace(read, attr_spans=spans)
