"""The volatile facts of a run and how each of its nodes stands: a text, and tables where HTML is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

from attractor_nb.views.state import NodeStatus
from attractor_nb.views.table import Column, Table, table_html
from attractor_nb.views.text_table import SHOWN_NODES, attempt_rows, run_table, table_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attractor_nb.model.graph import Graph
    from attractor_nb.views.state import RunView

_STATES: Final = {
    NodeStatus.SUCCESS: "ok",
    NodeStatus.CACHED: "ok",
    NodeStatus.PARTIAL_SUCCESS: "ok",
    NodeStatus.WAITING: "warn",
    NodeStatus.RETRYING: "warn",
    NodeStatus.FAIL: "error",
}
_KINDS: Final = {
    "state": "state",
    "node": "place",
    "attempts of": "place",
    "visit": "number",
    "try": "number",
}


class RunDetails(str):
    """The details as a text, which a notebook shows as tables."""

    __slots__ = ("_html",)
    _html: str

    def __new__(cls, text: str, html: str) -> Self:
        """A text that has the same as HTML beside it."""
        made = super().__new__(cls, text)
        made._html = html
        return made

    def __repr__(self) -> str:
        return str(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002 - the signature of Jupyter's hook
        return {"text/html": self._html, "text/plain": str(self)}


def run_details(view: RunView, graph: Graph, facts: Mapping[str, str]) -> RunDetails:
    """The details of a run.

    Args:
        view: The run.
        graph: What it runs.
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
        _table("Nodes as they stand", nodes[: SHOWN_NODES + 1], states[shown], notes),
    ]
    if attempts := attempt_rows(view):
        tables.append(_table("Attempts of nodes that were tried again", attempts))
    return RunDetails(text, "\n".join(table_html(table) for table in tables))


def _table(
    label: str, rows: Sequence[Sequence[str]], states: Sequence[str] = (), notes: Sequence[str] = ()
) -> Table:
    head, *body = rows
    columns = tuple(Column(title, _KINDS.get(title, "text")) for title in head)
    return Table(label, columns, body, states=states, notes=notes)
