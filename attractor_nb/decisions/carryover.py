"""What a model stage is given of the run so far: fidelity, thread, preamble (spec 5.4, 9.2)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from attractor_nb.decisions.fidelity import degrade_once, resolve_thread
from attractor_nb.decisions.joins import FAN_IN_TYPE
from attractor_nb.decisions.preamble import build_preamble

if TYPE_CHECKING:
    from attractor_nb.decisions.plan import Plan, PlannedNode
    from attractor_nb.decisions.preamble import StageSummary
    from attractor_nb.decisions.run_state import RunState

_WITHOUT_MODEL = frozenset({"start", "exit", "conditional", "tool", "wait.human", "parallel"})


def carry_over(plan: Plan, planned: PlannedNode, state: RunState, run_id: str) -> tuple[str, str, str]:
    """Fidelity mode, thread key and preamble of a stage that calls a model (spec 5.4)."""
    if planned.handler_type in _WITHOUT_MODEL or (
        planned.handler_type == FAN_IN_TYPE and not planned.asks_model
    ):
        return "", "", ""
    incoming = None if state.incoming_edge is None else plan.edges[state.incoming_edge]
    fidelity = planned.fidelity if incoming is None else incoming.fidelity
    if state.resumed_hops:
        fidelity, state.resumed_hops = degrade_once(fidelity), 0
    if fidelity == "full":
        previous = state.completed[-1] if state.completed else ""
        edge = None if incoming is None else incoming.edge
        return fidelity, resolve_thread(edge, planned.node, plan.graph, planned.subgraph_class, previous), ""
    if not state.recent:
        return fidelity, "", ""
    return fidelity, "", _preamble(plan, state, fidelity, run_id)


def _labelled(plan: Plan, entry: StageSummary) -> StageSummary:
    """A summary under its node's label; a resume with another graph may not have that node any more."""
    planned = plan.nodes.get(entry.node_id)
    return entry if planned is None else replace(entry, label=planned.node.label)


def _preamble(plan: Plan, state: RunState, fidelity: str, run_id: str) -> str:
    return build_preamble(
        fidelity,
        goal=plan.graph.goal,
        run_id=run_id,
        stages=tuple(_labelled(plan, entry) for entry in state.recent),
        values=state.recent_values,
        logs=(),
    )
