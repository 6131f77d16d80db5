"""Resolution of fidelity and thread: the amount of context that a stage receives, and its session (spec 5.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.model.vocabulary.attribute_table import FIDELITY_MODES

if TYPE_CHECKING:
    from attractor_nb.model.graph import Edge, Graph, Node

DEFAULT_FIDELITY: Final = "compact"
DEGRADED_FIDELITY: Final = "summary:high"


def resolve_fidelity(edge: Edge | None, node: Node, graph: Graph) -> str:
    """The mode of a stage: the incoming edge's, the node's, the graph's, else ``compact``.

    A word that is no mode was reported by lint and counts as unset.
    """
    written = ("" if edge is None else edge.fidelity, node.fidelity, graph.get("default_fidelity", str, ""))
    return next((mode for mode in written if mode in FIDELITY_MODES), DEFAULT_FIDELITY)


def resolve_thread(edge: Edge | None, node: Node, graph: Graph, subgraph_class: str, previous_node: str) -> str:
    """The key of the session that a stage shares under ``full`` fidelity.

    The node's ``thread_id``, the edge's, the graph's, the innermost group's class, else the node before.
    """
    return (
        node.thread_id
        or ("" if edge is None else edge.thread_id)
        or graph.get("thread_id", str, "")
        or subgraph_class
        or previous_node
    )


def degrade_once(mode: str) -> str:
    """The mode of the first stage after a resume: sessions do not survive one (spec 5.3).

    >>> degrade_once("full"), degrade_once("truncate")
    ('summary:high', 'truncate')
    """
    return DEGRADED_FIDELITY if mode == "full" else mode


def entry_name(branch: str, node_id: str, visit: int, attempt: int) -> str:
    """The name of what one attempt said in its thread: no other attempt of the run ever has it.

    >>> entry_name("", "plan", 2, 1), entry_name("fan/a", "plan", 1, 3)
    ('plan:2.1', 'fan/a/plan:1.3')
    """
    return f"{branch}/{node_id}:{visit}.{attempt}" if branch else f"{node_id}:{visit}.{attempt}"
