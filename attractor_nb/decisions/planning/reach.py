"""How often a run can come to each node, before it has run: the path it likely takes, and the most it can do.

Knows no prices and no prompts: `estimates.py` puts those to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from attractor_nb.decisions.planning.cycles import find_cycles
from attractor_nb.decisions.routing import Seen, match_condition, match_default, match_weight
from attractor_nb.model.outcome import StageStatus
from attractor_nb.model.vocabulary.shapes import HUMAN_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from attractor_nb.decisions.planning.plan import Plan, PlannedEdge, PlannedNode
    from attractor_nb.languages.condition.evaluate import Lookup

_SUCCEEDED: Final = Seen(StageStatus.SUCCESS)
_ENDS: Final = frozenset({"start", "exit"})


class Visit(msgspec.Struct, frozen=True):
    """A visit on the likely path."""

    node_id: str  #: The node.
    edge: PlannedEdge | None  #: The edge by which it is entered; None at the start.
    before: tuple[Visit, ...]  #: The visits that come before it on its way: of a branch not those of the others.


def likely_path(plan: Plan, lookup: Lookup) -> list[Visit]:
    """The visits of a run in which nothing goes wrong, each node visited once.

    Every stage succeeds at its first attempt, every gate takes its first choice, every fan-out runs all its
    branches. Where a condition asks the context, it sees the run's inputs. Where the way leads back to where
    it was already, the best way that leads on is taken instead, whatever its condition.

    Args:
        plan: The plan.
        lookup: The value of a context key as the run begins; empty for one that is not there.
    """
    found: dict[str, Visit] = {}
    work: list[tuple[str, PlannedEdge | None, tuple[Visit, ...], str]] = [(plan.start, None, (), "")]
    while work:
        node_id, edge, before, stop = work.pop()
        if node_id in found or node_id == stop:
            continue
        planned = plan.nodes[node_id]
        visit = found[node_id] = Visit(node_id, edge, before)
        if planned.is_exit:
            continue
        path = (*before, visit)
        if planned.is_fan_out:
            if planned.join and planned.join != stop:
                work.append((planned.join, None, path, stop))  # taken up when all branches have been walked
            work += [(branch.target, branch, path, planned.join) for branch in reversed(planned.branches)]
        elif onward := _onward(planned, found, lookup):
            work.append((onward.target, onward, path, stop))
    return list(found.values())


def _onward(planned: PlannedNode, found: Mapping[str, Visit], lookup: Lookup) -> PlannedEdge | None:
    """The edge by which the likely path leaves a node, or None at its end."""
    ranked: list[PlannedEdge] = []
    if planned.handler_type == HUMAN_TYPE:
        ranked += planned.edges
    else:
        steps = (
            match_condition(planned, _SUCCEEDED, lookup),
            match_default(planned),
            match_weight(planned.unconditional),
        )
        ranked += [step.edge for step in steps if step is not None and step.edge is not None]
        ranked += [*planned.unconditional, *planned.defaults, *planned.conditional]
    return next((edge for edge in ranked if edge.target not in found), None)


def most_visits(plan: Plan) -> dict[str, int]:
    """How often a run can come to each node at most, taken alone; all together are bound by `max_steps`.

    A node on a way that leads back to it, by edges or by retry targets, can be visited until
    `max_node_visits` or `max_steps` ends the run; one that only a goal gate's redirect or a restart leads
    back to, as often as those are allowed; any other as often as branches come to it.
    """
    bounds = plan.bounds
    most = bounds.max_steps if bounds.max_node_visits is None else bounds.max_node_visits
    restarts = {
        node_id: {edge.target for edge in plan.nodes[node_id].edges if edge.is_restart} for node_id in plan.nodes
    }
    jumps = {
        node_id: {edge.target for edge in plan.nodes[node_id].edges if not edge.is_restart}
        | _retry_targets(plan, node_id)
        for node_id in plan.nodes
    }
    gates = {target for gate in plan.goal_gates for target in _retry_targets(plan, gate)}
    redirected = {node_id: found | gates if plan.nodes[node_id].is_exit else found for node_id, found in jumps.items()}
    cyclic, by_gates, by_restarts = _on_cycles(jumps), _on_cycles(redirected), set[str]()
    if any(restarts.values()):
        by_restarts = _on_cycles({node_id: found | restarts[node_id] for node_id, found in redirected.items()})
    branches = _branches_coming(plan, jumps)
    result: dict[str, int] = {}
    for node_id in plan.nodes:
        visits = branches.get(node_id, 0)
        if node_id in cyclic:
            visits = most
        elif node_id in by_gates:
            visits *= 1 + bounds.max_goal_gate_redirects
        if node_id in by_restarts and node_id not in cyclic:
            visits *= 1 + bounds.max_restarts
        result[node_id] = min(visits, most)
    return result


def has_loops(plan: Plan) -> bool:
    """Whether a way leads back to a node, so that bounds alone end the run."""
    edges = {
        node_id: {edge.target for edge in plan.nodes[node_id].edges} | _retry_targets(plan, node_id)
        for node_id in plan.nodes
    }
    return bool(_on_cycles(edges))


def _retry_targets(plan: Plan, node_id: str) -> set[str]:
    """Where a failure of a node may lead (ruling 15)."""
    planned = plan.nodes[node_id]
    if planned.handler_type in _ENDS:
        return set()
    return {*planned.retry_targets, *plan.graph_retry_targets}


def _on_cycles(successors: Mapping[str, Iterable[str]]) -> set[str]:
    targets = {node_id: sorted(found) for node_id, found in successors.items()}
    sources: dict[str, list[str]] = {node_id: [] for node_id in targets}
    for node_id, found in targets.items():
        for target in found:
            sources[target].append(node_id)
    return {node_id for cycle in find_cycles(targets, sources) for node_id in cycle}


def _branches_coming(plan: Plan, successors: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """How many paths that are walked side by side come to each node, each once; 0 for none."""
    regions: list[tuple[str, set[str]]] = [("", set(_region(plan, successors, plan.start, "")))]
    regions += [
        (node_id, set(_region(plan, successors, branch.target, plan.nodes[node_id].join)))
        for node_id in plan.nodes
        for branch in plan.nodes[node_id].branches
    ]
    counted: dict[str, int] = {}

    def count(node_id: str, within: frozenset[str]) -> int:
        if node_id not in counted:
            inner = within | {node_id}
            counted[node_id] = sum(
                1 if not fan_out or fan_out in inner else count(fan_out, inner)
                for fan_out, region in regions
                if node_id in region
            )
        return counted[node_id]

    return {node_id: count(node_id, frozenset()) for node_id in plan.nodes}


def _region(plan: Plan, successors: Mapping[str, Iterable[str]], start: str, stop: str) -> Iterator[str]:
    """What one way can come to until it stops; of a fan-out on it what is after its branches."""
    seen: set[str] = set()
    work = [start]
    while work:
        node_id = work.pop()
        if node_id in seen or node_id == stop:
            continue
        seen.add(node_id)
        yield node_id
        planned = plan.nodes[node_id]
        onward = set(successors[node_id])
        if planned.is_fan_out:
            onward -= {branch.target for branch in planned.branches}
            onward |= {planned.join} if planned.join else set[str]()
        work += sorted(onward)
