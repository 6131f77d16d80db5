"""A graph, and the state of each node of a run, as plain text and as tables.

The text table says everything that the drawing does, for readers who cannot see it and for places
that cannot draw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

from attractor_nb.model.redacted import redacted_graph
from attractor_nb.model.states import NodeStatus, stage_state, stage_word
from attractor_nb.views.display import Displayed
from attractor_nb.views.drawings.drawing import AGAIN, TIMES, bound_text, detail_of
from attractor_nb.views.state import AttemptSpending, EdgeState, NodeState, RunView
from attractor_nb.views.summary_line import usage_words
from attractor_nb.views.table import Column, Table, aligned, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attractor_nb.model.graph import Edge, Graph, Node
    from attractor_nb.model.outcome import Usage

SHOWN_NODES: Final = 500
"""Most rows shown: a cell keeps all its output."""
_NO_STATE: Final = NodeState()
_NO_PASS: Final = EdgeState()

_STATES: Final = {
    NodeStatus.SUCCESS: "ok",
    NodeStatus.CACHED: "ok",
    NodeStatus.PARTIAL_SUCCESS: "ok",
    NodeStatus.WAITING: "warn",
    NodeStatus.RETRYING: "warn",
    NodeStatus.FAIL: "error",
}
_KINDS: Final = {"state": "state", "node": "place", "attempts of": "place", "visit": "number", "try": "number"}


def graph_text(graph: Graph) -> str:
    """Headline and table: what a pipeline shows where nothing can be drawn. Of a huge one its beginning."""
    lines = text_table(graph).splitlines()
    if (more := len(lines) - 1 - SHOWN_NODES) > 0:
        lines[SHOWN_NODES + 1 :] = [f"… and {more:,} more nodes"]
    return "\n".join([headline(graph), *lines])


def headline(graph: Graph) -> str:
    """``pipeline review: 7 nodes, 9 edges``."""
    graph = redacted_graph(graph)
    nodes, edges = len(graph.nodes), len(graph.edges)
    name = one_line(graph.label) or "without a name"
    return f"pipeline {name}: {nodes} node{'s' * (nodes != 1)}, {edges} edge{'s' * (edges != 1)}"


def text_table(
    graph: Graph,
    states: Mapping[str, NodeState] | None = None,
    edges: Mapping[int, EdgeState] | None = None,
    usage: Mapping[str, Usage] | None = None,
) -> str:
    """Every node with its type, whole label and outgoing edges; with states also its status.

    Arguments are as of ``table_rows``.
    """
    return aligned(table_rows(graph, states, edges, usage))


def table_rows(
    graph: Graph,
    states: Mapping[str, NodeState] | None = None,
    edges: Mapping[int, EdgeState] | None = None,
    usage: Mapping[str, Usage] | None = None,
) -> list[list[str]]:
    """The cells of ``text_table``, the headings first.

    Args:
        states: States of nodes; without them there is no state column.
        edges: Edges taken, by position in ``graph.edges``: their number of passes is shown.
        usage: What nodes have consumed; where none has, there is no column for it.
    """
    graph = redacted_graph(graph)
    routes: dict[str, list[str]] = {}
    for index, edge in enumerate(graph.edges):
        passes = (edges or {}).get(index, _NO_PASS).passes
        routes.setdefault(edge.source, []).append(_route_text(edge, passes))
    header = ["node", "type", "label", *(["used"] if usage else []), "leads to"]
    rows: list[list[str]] = []
    for node in graph.nodes.values():
        row = [
            node.id,
            _type(node, graph.handler_types[node.id]),
            one_line(node.label) if node.label != node.id else "",
        ]
        if states is not None:
            row.insert(0, _state_text(states.get(node.id, _NO_STATE)))
        if usage:
            row.append(", ".join(usage_words(usage[node.id])) if node.id in usage else "")
        rows.append([*row, "; ".join(routes.get(node.id, ()))])
    if states is not None:
        header.insert(0, "state")
    return [header, *rows]


def run_table(view: RunView, graph: Graph) -> str:
    """Every node in its current state with what it consumed; then, where a node was tried again, each attempt."""
    table = text_table(graph, view.nodes, view.edges, view.usage_by_node).splitlines()
    if (more := len(table) - 1 - SHOWN_NODES) > 0:
        table[SHOWN_NODES + 1 :] = [f"… and {more:,} more nodes"]
    if attempts := attempt_rows(view):
        table += ["", aligned(attempts)]
    return "\n".join(table)


def attempt_rows(view: RunView) -> list[list[str]]:
    """The attempts of nodes that were tried again, the headings first; nothing where none was."""
    rows = [row for name, spent in tuple(view.attempts.items()) if len(spent) > 1 for row in _attempts(name, spent)]
    return [["attempts of", "visit", "try", "outcome", "used"], *rows] if rows else []


def _attempts(name: str, spent: Sequence[AttemptSpending]) -> list[list[str]]:
    return [
        [name, str(entry.visit), str(entry.attempt), stage_word(entry.status), ", ".join(usage_words(entry.usage))]
        for entry in spent
    ]


def text_tree(graph: Graph, states: Mapping[str, NodeState] | None = None) -> str:
    """The graph as a tree from its start; a node met before is named again with an arrow back."""
    graph = redacted_graph(graph)
    lines: list[str] = []
    seen: set[str] = set()
    unseen = iter(graph.nodes)
    roots = [node.id for node in graph.start_nodes] or list(graph.nodes)[:1]
    stack: list[tuple[str, str, str, str]] = [(root, "", "", "") for root in reversed(roots)]
    while True:
        while stack:
            node_id, prefix, branch, caption = stack.pop()
            is_known = node_id in seen
            lines.append(f"{prefix}{branch}{caption}{_tree_entry(graph, node_id, states, is_known=is_known)}")
            if is_known or node_id not in graph.nodes:
                continue
            seen.add(node_id)
            inner = prefix + {"": "", "├─ ": "│  ", "└─ ": "   "}[branch]
            out = graph.outgoing_edges(node_id)
            if len(out) == 1 and out[0].target not in seen:
                # A straight line stays a straight line: only branches indent.
                stack.append((out[0].target, inner, "", _caption(out[0])))
                continue
            for position, edge in reversed(list(enumerate(out))):
                joint = "└─ " if position == len(out) - 1 else "├─ "
                stack.append((edge.target, inner, joint, _caption(edge)))
        rest = next((node_id for node_id in unseen if node_id not in seen), None)
        if rest is None:
            return "\n".join(lines)
        stack.append((rest, "", "", ""))


def _type(node: Node, handler_type: str) -> str:
    gate = ", goal gate" if node.goal_gate else ""
    return one_line(handler_type) + gate


def _route_text(edge: Edge, passes: int) -> str:
    """``done if outcome=success``, ``plan "[F] Fix"``, with the passes of an edge that was taken."""
    parts = [edge.target]
    if edge.label:
        parts.append(f'"{one_line(edge.label)}"')
    if edge.condition:
        parts.append(f"if {one_line(edge.condition)}")
    if edge.max_taken is not None:
        parts.append(bound_text(edge))
    if passes:
        parts.append(f"({TIMES}{passes})")
    return " ".join(parts)


def _state_text(state: NodeState) -> str:
    parts = [stage_state(state.status)]
    if state.attempt > 1:
        parts.append(f"{TIMES}{state.attempt}")
    if state.visits > 1:
        parts.append(f"{AGAIN}{state.visits}")
    if state.reason:
        parts.append(f"({one_line(state.reason)})")
    return " ".join(parts)


def _caption(edge: Edge) -> str:
    """The text before a target in the tree."""
    text = " ".join(filter(None, (one_line(edge.label) or one_line(edge.condition), bound_text(edge))))
    return f"{text} → " if text else ""


def _tree_entry(graph: Graph, node_id: str, states: Mapping[str, NodeState] | None, *, is_known: bool) -> str:
    node = graph.nodes.get(node_id)
    if node is None:
        return f"{node_id} (not declared)"
    if is_known:
        return f"↩ {node_id}"
    mark = "" if states is None else states.get(node_id, _NO_STATE).status.letter + " "
    reason = "" if states is None else states.get(node_id, _NO_STATE).reason
    is_failed = states is not None and states.get(node_id, _NO_STATE).status is NodeStatus.FAIL
    after = (
        f": {one_line(reason)}"
        if is_failed and reason
        else f"  ({one_line(detail_of(node, graph.handler_types[node_id]))})"
    )
    return f"{mark}{node_id}{after}"


class RunDetails(Displayed, str):
    """The details as a text, which a notebook shows as tables."""

    __slots__ = ("_tables",)
    _tables: str

    def __new__(cls, text: str, html: str) -> Self:
        """A text that has the same as HTML beside it."""
        made = super().__new__(cls, text)
        made._tables = html
        return made

    def _html(self) -> str:
        return self._tables


def run_details(view: RunView, graph: Graph, facts: Mapping[str, str]) -> RunDetails:
    """The details of a run.

    Args:
        facts: What else is known of it, by name.
    """
    text = "\n".join([*(f"{name} {value}" for name, value in facts.items()), "", run_table(view, graph)])
    nodes = table_rows(graph, view.nodes, view.edges, view.usage_by_node)
    states = [_STATES.get(view.nodes[name].status, "") if name in view.nodes else "" for name in graph.nodes]
    more = len(nodes) - 1 - SHOWN_NODES
    notes = (f"… and {more:,} more nodes",) if more > 0 else ()
    shown = slice(None, SHOWN_NODES)
    tables = [
        Table("Facts of the run", (Column("fact"), Column("value", "place")), [*facts.items()]),
        _table("States of the nodes", nodes[: SHOWN_NODES + 1], states[shown], notes),
    ]
    if attempts := attempt_rows(view):
        tables.append(_table("Attempts of nodes that were tried again", attempts))
    return RunDetails(text, "\n".join(table.to_html() for table in tables))


def _table(label: str, rows: Sequence[Sequence[str]], states: Sequence[str] = (), notes: Sequence[str] = ()) -> Table:
    head, *body = rows
    columns = tuple(Column(title, _KINDS.get(title, "text")) for title in head)
    return Table(label, columns, body, states=states, notes=notes)
