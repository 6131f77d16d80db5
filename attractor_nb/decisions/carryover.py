"""The context that a model stage receives of the run so far: fidelity, thread, preamble (spec 5.4, 9.2)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from attractor_nb.decisions.branch_policies import FAN_IN_TYPE
from attractor_nb.decisions.fidelity import degrade_once, resolve_thread
from attractor_nb.decisions.preamble import beginning_of, build_preamble
from attractor_nb.decisions.preamble_page import PreamblePast, StageSummary
from attractor_nb.model.branch import parts_of
from attractor_nb.model.vocabulary.shapes import FUNCTION_TYPE
from attractor_nb.model.vocabulary.value_forms import FOR_EACH_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from attractor_nb.decisions.commits import RunContext
    from attractor_nb.decisions.planning.plan import Plan, PlannedNode
    from attractor_nb.decisions.run_state import RunState

_WITHOUT_MODEL = frozenset(
    {"start", "exit", "conditional", "tool", "wait.human", "parallel", FUNCTION_TYPE, FOR_EACH_TYPE}
)


class PromptContext(msgspec.Struct, frozen=True):
    """The context that a stage receives of the run so far."""

    fidelity: str = ""  #: The mode; empty for a stage that calls no model.
    thread: str = ""  #: Under ``full`` the thread's key, else empty.
    #: Under ``full`` the entry that holds what the thread has said; empty at its beginning.
    thread_entry: str = ""
    #: The text that its prompt begins with, possibly empty; under ``full`` what a thread that begins is told, and what
    #: ``carry`` names.
    preamble: str = ""


def carry_over(plan: Plan, planned: PlannedNode, state: RunState, context: RunContext, run_id: str) -> PromptContext:
    """The context that a stage that calls a model receives of the run so far (spec 5.4).

    Values are read from the context, large ones from the store behind it (ruling 31), and only those that
    fit into the budget.
    """
    if planned.handler_type in _WITHOUT_MODEL or (planned.handler_type == FAN_IN_TYPE and not planned.asks_model):
        return PromptContext()
    incoming = None if state.incoming_edge is None else plan.edges[state.incoming_edge]
    fidelity = planned.fidelity if incoming is None else incoming.fidelity
    if state.resumed_hops:
        fidelity, state.resumed_hops = degrade_once(fidelity), 0
    past = _past(plan, planned, state, context, run_id)
    if fidelity != "full":
        return PromptContext(fidelity, preamble=build_preamble(fidelity, past))
    edge = None if incoming is None else incoming.edge
    previous = _node_before(planned, state)
    thread = resolve_thread(edge, planned.node, plan.graph, planned.subgraph_class, previous)
    thread_entry = state.threads.get(thread, "")
    preamble = build_preamble(fidelity, past) if thread_entry else beginning_of(past)
    return PromptContext(fidelity, thread, thread_entry=thread_entry, preamble=preamble)


def _node_before(planned: PlannedNode, state: RunState) -> str:
    """The node before a stage; of the first of a branch its fan-out, of the first of a restart itself."""
    if state.completed:
        return state.completed[-1]
    return parts_of(state.branch)[-2] if state.branch else planned.id


def _labelled(plan: Plan, recent: Iterable[StageSummary]) -> list[StageSummary]:
    """Summaries under their nodes' labels; a resume with another graph may not have a node any more."""
    labelled: list[StageSummary] = []
    for entry in recent:
        if entry.named is None or entry.named_by is not plan:
            planned = plan.nodes.get(entry.node_id)
            node = None if planned is None else planned.node
            entry.named_by = plan
            entry.named = (
                replace(entry) if node is None else replace(entry, label=node.label, command=node.tool_command)
            )
        labelled.append(entry.named)
    return labelled


def _past(plan: Plan, planned: PlannedNode, state: RunState, context: RunContext, run_id: str) -> PreamblePast:
    return PreamblePast(
        value=context.get,
        kept=context.kept,
        goal=plan.goal,
        run_id=run_id,
        inputs=state.inputs,
        stages=_labelled(plan, state.recent),
        keys=tuple([key for key in state.recent_keys if key not in state.inputs]),
        events=state.notes,
        wanted=planned.carry,
        has_branches=planned.handler_type != FAN_IN_TYPE,
    )
