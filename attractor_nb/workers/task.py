"""Tasks for a worker and its reports, as plain data.

A task is JSON values alone; a report too, but for the bytes of files. A task says in which form it is: a
worker that knows another one refuses it before it does anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, Self, cast

from attractor_nb.model.graph import Edge, Graph, Node
from attractor_nb.model.vocabulary.value_forms import Duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.model.vocabulary.attribute_table import AttrValue

MAX_RETURNED_BYTES: Final = 64 * 1024 * 1024
"""Of all files of a stage together; what is over it stays behind, and is named."""
MAX_RETURNED_FILES: Final = 1000
MAX_OUTPUT_CHARACTERS: Final = 1024 * 1024
"""Of each output channel, as events; a command's files hold more of it."""
FORM: Final = 3
"""Of tasks and reports; it changes when one that is older would be misread."""
COMMAND, PROMPT, HANDLER, ROW = "command", "prompt", "handler", "row"
"""Kinds of work: a tool's command, a prompt for a backend, a custom handler's stage, a mapped run."""
SCOPE_NAMES: Final = (
    "run_id",
    "node_id",
    "visit",
    "attempt",
    "fidelity",
    "thread",
    "preamble",
    "complaint",
    "index",
    "branch",
    "has_item",
)
"""Fields of a ``StageScope`` that are sent."""


class _Plain:
    """Conversion of a dataclass of plain values to a dict and back."""

    __slots__ = ()

    def to_plain(self) -> dict[str, Any]:
        """A dict of its fields."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}  # type: ignore[arg-type]

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """The inverse of ``to_plain``; what a later version added is left out."""
        names = {entry.name for entry in fields(cls)}  # type: ignore[arg-type]
        return cls(**{name: value for name, value in plain.items() if name in names})


@dataclass(frozen=True, slots=True)
class StageTask(_Plain):
    """One attempt of a stage, or a row of a map, for a worker."""

    id: str  #: Unique among all tasks there ever were.
    form: int  #: ``FORM`` of the package that made it.
    kind: str  #: ``command``, ``prompt``, ``handler`` or ``row``.
    #: The work, by kind. ``command``: command, environment, stdin. ``prompt``: node, prompt, context and the
    #: backend's name, empty when it travels beside the task. ``handler``: node, context, and the graph as far as the
    #: node's edges reach. ``row``: see ``maps.row_run``.
    work: Mapping[str, Any]
    #: Facts of the attempt: ``SCOPE_NAMES``.
    scope: Mapping[str, Any] = field(default_factory=dict[str, Any])
    idempotency_key: str = ""  #: ``run:node:visit``, the same over re-runs.
    timeout_seconds: float | None = None  #: After which the worker ends the work by itself; None for never.
    is_once: bool = False  #: It may have an effect that must not happen twice: a worker begins only when no other has.
    lifeline: str = ""  #: Address of the coordinator on its own machine, or empty.
    topic: str = ""  #: Under which a Dask worker reports while it works, or empty.
    conversation: str | None = None  #: Under ``full`` fidelity what the stage's thread has said; None without a thread.


@dataclass(frozen=True, slots=True)
class StageReport(_Plain):
    """The report of a task: its result, files and output."""

    worker: str  #: Host and process that did it.
    #: The result, by kind. ``command``: exit_code, stdout, stderr, is_timed_out. ``prompt``: text, usage, is_truncated,
    #: note. Empty when there is an outcome, or when a handler returned None.
    value: Mapping[str, Any] = field(default_factory=dict[str, Any])
    outcome: Mapping[str, Any] = field(default_factory=dict[str, Any])  #: An outcome as plain values, or empty.
    is_failure: bool = False  #: The outcome is that of an exception or the time limit.
    changes: Mapping[str, Any] = field(default_factory=dict[str, Any])  #: Context values that the work set.
    logs: tuple[str, ...] = ()  #: Lines that it added to the run log.
    #: Files of the stage directory, by relative path.
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    left_out: tuple[str, ...] = ()  #: Files that did not travel, each with the reason.
    #: Output by channel, up to ``MAX_OUTPUT_CHARACTERS`` each.
    output: Mapping[str, str] = field(default_factory=dict[str, str])
    #: Announced model calls (``ModelCallEnded``), as plain events.
    calls: tuple[Mapping[str, Any], ...] = ()
    lost: str = ""  #: Reason why the work was not done, or not completed, and its effects are unknown; or empty.
    refused: str = ""  #: Reason why this worker cannot do it, or empty.
    conversation: str | None = None  #: Thread that the stage saved; None when it saved none.


def plain_node(node: Node) -> dict[str, Any]:
    """A node as JSON values."""
    return {
        "id": node.id,
        "attrs": _plain_attrs(node.attrs),
        "explicit": sorted(node.explicit),
        "classes": list(node.derived_classes),
    }


def node_of(plain: Mapping[str, Any]) -> Node:
    """The inverse of ``plain_node``; its position in the source is not known any more."""
    return Node(plain["id"], _attrs(plain["attrs"]), frozenset(plain["explicit"]), tuple(plain["classes"]))


def plain_graph(graph: Graph, node: Node) -> dict[str, Any]:
    """A graph as far as a node sees: its attributes, the node, its edges and the nodes at their ends."""
    incoming = (edge for edge in graph.incoming_edges(node.id) if edge.source != node.id)
    edges = [*graph.outgoing_edges(node.id), *incoming]
    near = dict.fromkeys([node.id, *(end for edge in edges for end in (edge.source, edge.target))])
    return {
        "name": graph.name,
        "attrs": _plain_attrs(graph.attrs),
        "nodes": [plain_node(graph.nodes[name]) for name in near if name in graph.nodes],
        "edges": [{"source": edge.source, "target": edge.target, "attrs": _plain_attrs(edge.attrs)} for edge in edges],
    }


def graph_of(plain: Mapping[str, Any]) -> Graph:
    """The inverse of ``plain_graph``."""
    nodes = [node_of(entry) for entry in plain["nodes"]]
    edges = [Edge(entry["source"], entry["target"], _attrs(entry["attrs"])) for entry in plain["edges"]]
    return Graph(plain["name"], _attrs(plain["attrs"]), {node.id: node for node in nodes}, tuple(edges))


def _plain_attrs(attrs: Mapping[str, AttrValue]) -> dict[str, Any]:
    return {name: {"ms": value.milliseconds} if isinstance(value, Duration) else value for name, value in attrs.items()}


def _attrs(plain: Mapping[str, Any]) -> dict[str, AttrValue]:
    return {
        name: Duration(cast("Any", value)["ms"]) if isinstance(value, dict) else value for name, value in plain.items()
    }
