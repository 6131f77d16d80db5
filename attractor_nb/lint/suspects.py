"""Attributes that are not what the attribute table knows: one pass over the graph for several rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from attractor_nb.model.graph import Edge, Graph, Node
from attractor_nb.model.vocabulary.attribute_kinds import AttributeSpec, AttrType, AttrValue, Scope
from attractor_nb.model.vocabulary.attributes import attributes_of, literal_text
from attractor_nb.model.vocabulary.duration import Duration
from attractor_nb.model.vocabulary.foreign_names import GRAPHVIZ_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Thing = Graph | Node | Edge


class Suspect(NamedTuple):
    """An attribute that some rule has something to say about."""

    thing: Thing  #: Whose attribute it is.
    scope: Scope
    name: str  #: The attribute's name.
    value: AttrValue
    row: AttributeSpec | None  #: The table's row for it, or None for a name that the table does not have.

    @property
    def node_id(self) -> str:
        """The id of the node, or empty."""
        return self.thing.id if isinstance(self.thing, Node) else ""

    @property
    def ends(self) -> tuple[str, str] | None:
        """Source and target of the edge, or None."""
        return (self.thing.source, self.thing.target) if isinstance(self.thing, Edge) else None


def find_suspects(graph: Graph) -> list[Suspect]:
    """All attributes of unknown name, wrong type, no choice or too small a number, in source order."""
    suspects: list[Suspect] = []
    for scope, things in ((Scope.GRAPH, (graph,)), (Scope.NODE, graph.nodes.values()), (Scope.EDGE, graph.edges)):
        claim_of = _CLAIMS[scope].get
        for thing in things:
            for name, value in thing.attrs.items():
                holds = claim_of(name, _is_unknown)
                if holds is not None and not holds(value):
                    suspects.append(Suspect(thing, scope, name, value, _ROWS[scope].get(name)))
    return suspects


def _is_unknown(_: AttrValue) -> bool:
    """What no value of an attribute outside the table satisfies."""
    return False


def _claim(row: AttributeSpec) -> Callable[[AttrValue], bool] | None:
    """What a value of the attribute has to satisfy; None when any will do."""
    minimum = row.minimum
    match row.type:
        case AttrType.BOOLEAN:
            return lambda value: isinstance(value, bool)
        case AttrType.INTEGER:
            return lambda value: type(value) is int and (minimum is None or value >= minimum)
        case AttrType.FLOAT:
            return lambda value: (
                isinstance(value, int | float) and not isinstance(value, bool) and (minimum is None or value >= minimum)
            )
        case AttrType.DURATION:
            return lambda value: isinstance(value, Duration) and (minimum is None or value.milliseconds >= minimum)
        case AttrType.CHOICE:
            return lambda value: not value or literal_text(value) in row.choices
        case _:
            return None


_ROWS: Final = {
    scope: {row.name: row for row in attributes_of(scope)} for scope in (Scope.GRAPH, Scope.NODE, Scope.EDGE)
}
_CLAIMS: Final[dict[Scope, Mapping[str, Callable[[AttrValue], bool] | None]]] = {
    scope: {**dict.fromkeys(GRAPHVIZ_NAMES), **{name: _claim(row) for name, row in rows.items()}}
    for scope, rows in _ROWS.items()
}
