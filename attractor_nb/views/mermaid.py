"""A graph as Mermaid flowchart text, for pages that draw Mermaid themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.model.redacted import redacted_graph
from attractor_nb.model.states import NodeStatus
from attractor_nb.views.drawings.drawing import SHAPE_OF_TYPE, bound_text
from attractor_nb.views.drawings.theme import LIGHT
from attractor_nb.views.markup import clean
from attractor_nb.views.outlines import Shape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attractor_nb.model.graph import Graph
    from attractor_nb.views.state import RunView

_BRACKETS: Final = {
    Shape.START: ('(["', '"])'),
    Shape.EXIT: ('(["', '"])'),
    Shape.HEXAGON: ('{{"', '"}}'),
    Shape.DIAMOND: ('{"', '"}'),
    Shape.PARALLELOGRAM: ('[/"', '"/]'),
    Shape.FAN_OUT: ('[["', '"]]'),
    Shape.FAN_IN: ('[["', '"]]'),
    Shape.HOUSE: ('[/"', '"\\]'),
}
_COLOURS: Final = {
    NodeStatus.RUNNING: "running",
    NodeStatus.WAITING: "waiting",
    NodeStatus.RETRYING: "retrying",
    NodeStatus.SUCCESS: "success",
    NodeStatus.PARTIAL_SUCCESS: "success",
    NodeStatus.FAIL: "fail",
    NodeStatus.SKIPPED: "pending",
}
_RESERVED: Final = frozenset(
    {"call", "class", "classdef", "click", "default", "direction", "end", "flowchart", "graph", "href"}
    | {"interpolate", "linkstyle", "style", "subgraph"}
)
"""Words that a Mermaid parser takes for its own, whatever their case."""
_DIRECTIONS: Final = {"TB": "TB", "TD": "TB", "LR": "LR", "BT": "BT", "RL": "RL"}
_ESCAPED: Final = str.maketrans({char: f"#{ord(char)};" for char in '"#&<>`\\'} | {"\n": "<br/>", "\r": ""})
"""Mermaid writes characters as ``#`` code ``;``; a line break is its only markup here."""


def to_mermaid(graph: Graph, view: RunView | None = None) -> str:
    """The graph as a Mermaid flowchart.

    Nodes keep their ids, but for the words that Mermaid reserves, which get an underscore.

    Args:
        view: A run of it: nodes are coloured by their states and say them, edges taken are thick.
    """
    graph = redacted_graph(graph)
    lines = [*_lines(graph, view)]
    if view is not None:
        lines += _state_lines(graph, view)
    return "\n".join((*lines, ""))


def _state_lines(graph: Graph, view: RunView) -> Iterator[str]:
    """The colours of states, and which nodes have them."""
    names = _names(graph)
    members: dict[str, list[str]] = {}
    for node_id, state in view.nodes.copy().items():
        if node_id in names and state.status is not NodeStatus.PENDING:
            members.setdefault(_COLOURS.get(state.status, "cached"), []).append(names[node_id])
    for colour, nodes in members.items():
        fill, line = LIGHT[f"{colour}-fill"], LIGHT[f"{colour}-line"]
        yield f"  classDef state_{colour} fill:{fill},stroke:{line},color:{LIGHT['ink']}"
        yield f"  class {','.join(nodes)} state_{colour}"


def _sign(view: RunView | None, node_id: str) -> str:
    """The letter of a state before the label: colour alone is not accessible."""
    state = None if view is None else view.nodes.get(node_id)
    if state is None or state.status is NodeStatus.PENDING:
        return ""
    return f"{state.status.letter} "


def _lines(graph: Graph, view: RunView | None = None) -> Iterator[str]:
    yield "flowchart " + _DIRECTIONS.get(graph.get("rankdir", str, "TB").upper(), "TB")
    names = _names(graph)
    home: dict[str, int | None] = dict.fromkeys(graph.nodes)
    for position, group in enumerate(graph.subgraphs):
        home.update({member: position for member in group.members if member in home})
    written = {
        node_id: _node(names[node_id], _sign(view, node_id) + node.label, graph.item_types[node_id])
        for node_id, node in graph.nodes.items()
    }
    yield from ("  " + written[node_id] for node_id, group in home.items() if group is None)
    yield from _groups(graph, home, written, None, "  ")
    edges = {} if view is None else view.edges.copy()
    taken = {index for index, edge in edges.items() if edge.passes}
    for index, edge in enumerate(graph.edges):
        caption = " ".join(filter(None, (edge.label or edge.condition, bound_text(edge))))
        label = f'|"{_text(caption)}"|' if caption.strip() else ""
        arrow = "==>" if index in taken else "-->"
        yield f"  {names[edge.source]} {arrow}{label} {names[edge.target]}"


def _groups(
    graph: Graph, home: dict[str, int | None], written: dict[str, str], parent: int | None, indent: str
) -> Iterator[str]:
    for position, group in enumerate(graph.subgraphs):
        if group.parent != parent:
            continue
        yield f'{indent}subgraph group{position}["{_text(group.label or group.id) or " "}"]'
        inside = indent + "  "
        yield from (inside + written[node_id] for node_id, where in home.items() if where == position)
        yield from _groups(graph, home, written, position, inside)
        yield f"{indent}end"


def _node(name: str, label: str, handler_type: str) -> str:
    opening, closing = _BRACKETS.get(SHAPE_OF_TYPE.get(handler_type, Shape.BOX), ('["', '"]'))
    return f"{name}{opening}{_text(label) or ' '}{closing}"


def _names(graph: Graph) -> dict[str, str]:
    """A Mermaid id for every id that nodes and edges mention."""
    ids = dict.fromkeys(graph.nodes)
    for edge in graph.edges:
        ids.update({edge.source: None, edge.target: None})
    names: dict[str, str] = {}
    for node_id in ids:
        is_plain = node_id.isascii() and node_id.isidentifier()
        name = node_id if is_plain and node_id.lower() not in _RESERVED else (node_id if is_plain else "node") + "_"
        while name in names.values() or (name != node_id and name in ids):
            name += "_"
        names[node_id] = name
    return names


def _text(label: str) -> str:
    return clean(label.strip()).translate(_ESCAPED)
