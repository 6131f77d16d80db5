"""What is said of a node or an edge when the pointer rests on it, and to a screen reader (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.views.drawings.drawing import detail_of
from attractor_nb.views.metrics import ELLIPSIS
from attractor_nb.views.state import NodeState, NodeStatus

if TYPE_CHECKING:
    from attractor_nb.decisions.joins import Join
    from attractor_nb.model.graph import Edge, Node

TOOLTIP_CHARS: Final = 300
_NO_JOIN: Final = "no join: branches run to their ends"


def node_tooltip(
    node_id: str, node: Node | None, handler_type: str, state: NodeState, join: Join | None, tip: str
) -> str:
    """Everything that is known of a node in a line each; its label and prompt whole, as far as they go."""
    if node is None:
        return f"{node_id}\nnot declared"
    lines = [node.label] if node.label != node_id else []
    lines.append(
        f"{node_id} · {detail_of(node, handler_type)}" if handler_type != "tool" else f"{node_id} · tool"
    )
    lines += (text for text in (node.prompt, node.tool_command) if text)
    if join is not None:
        lines.append(f"branches meet at {join.node_id}" if join.node_id else _NO_JOIN)
    if state.note:
        lines.append(state.note)
    if state.status is not NodeStatus.PENDING:
        lines.append(state.status.replace("_", " ") + (f": {state.reason}" if state.reason else ""))
    return lines_of([*lines, tip])


def edge_tooltip(edge: Edge, passes: int, tip: str) -> str:
    """The ends of an edge, which a live view reads, and what is known of it."""
    lines = [f"{edge.source} → {edge.target}", edge.label, edge.condition, tip]
    if passes and not tip:
        lines.append("taken once" if passes == 1 else f"taken {passes} times")
    return lines_of(lines)


def lines_of(lines: list[str]) -> str:
    """The lines that say something, none of them endless."""
    return "\n".join(
        line if len(line) <= TOOLTIP_CHARS else line[:TOOLTIP_CHARS] + ELLIPSIS for line in lines if line
    )
