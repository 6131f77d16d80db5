"""Nodes and edges by the hundred thousand.

A frozen dataclass sets each field through ``object.__setattr__``, which takes most of the time in which a
large text becomes a graph. Here a value is filled while it is still open and closed by its class. Open and
closed class have the same slots, so the result is the very value that the constructor makes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from attractor_nb.model.graph import Edge, Node
from attractor_nb.model.vocabulary.attributed import Attributed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.model.vocabulary.attributed import AttrSpan
    from attractor_nb.model.vocabulary.attributes import AttrValue
    from attractor_nb.source import Span


class _OpenNode(Attributed):
    __slots__ = ("attr_spans", "attrs", "derived_classes", "explicit", "id", "is_implicit", "span")


class _OpenEdge(Attributed):
    __slots__ = ("attr_spans", "attrs", "source", "span", "target")


def quick_node(
    node_id: str,
    attrs: Mapping[str, AttrValue],
    explicit: frozenset[str],
    derived_classes: tuple[str, ...],
    is_implicit: bool,  # noqa: FBT001 - the fields of Node in their order
    span: Span,
    attr_spans: Mapping[str, AttrSpan],
) -> Node:
    """What ``Node`` makes of the same fields (spec 2.6)."""
    node = _OpenNode()
    node.id = node_id
    node.attrs = attrs
    node.explicit = explicit
    node.derived_classes = derived_classes
    node.is_implicit = is_implicit
    node.span = span
    node.attr_spans = attr_spans
    node.__class__ = Node  # type: ignore[assignment]
    return cast("Node", node)


def quick_edge(
    source: str, target: str, attrs: Mapping[str, AttrValue], span: Span, attr_spans: Mapping[str, AttrSpan]
) -> Edge:
    """What ``Edge`` makes of the same fields (spec 2.7)."""
    edge = _OpenEdge()
    edge.source = source
    edge.target = target
    edge.attrs = attrs
    edge.span = span
    edge.attr_spans = attr_spans
    edge.__class__ = Edge  # type: ignore[assignment]
    return cast("Edge", edge)
