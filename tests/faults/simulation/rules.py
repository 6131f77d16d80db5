"""The rules of a run, written down a second time, and shorter: what an oracle judges logs by.

Nothing here is taken from the engine's decisions. It reads the graph as it was drawn, and for each commit of
a log says where the run had to go (spec 3.3, 3.4, 3.7; rulings 12, 14 to 20).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from attractor_nb.model.events import GoalGateUnsatisfied, PipelineCompleted, StageEnd
from tests.faults.simulation.sights import commits_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from attractor_nb.model.events import Event
    from tests.faults.simulation.drawn_graphs import DrawnEdge, DrawnGraph

NOWHERE = ""
_GOOD = {"success", "partial_success"}


@dataclass(slots=True)
class Walk:
    """The position of a run after some of the events of a directory.

    Attributes:
        context: The context.
        seen: Status and label that conditions see.
        path: Committed nodes.
        statuses: The last status of each node that was not skipped.
        stale: Gates to be executed again, and what had failed before a restart.
        redirects: How often gates sent the run back.
        taken: How often each edge was taken, by its position in the graph.
    """

    context: dict[str, Any] = field(default_factory=dict[str, Any])
    seen: tuple[str, str] = ("success", "")
    path: list[str] = field(default_factory=list[str])
    statuses: dict[str, str] = field(default_factory=dict[str, str])
    stale: set[str] = field(default_factory=set[str])
    redirects: int = 0
    taken: Counter[int] = field(default_factory=Counter[int])


def judge(graph: DrawnGraph, way: list[Event], before: Walk) -> tuple[Walk, list[str]]:
    """Walk along the events of a directory; where they take us, and what is wrong with them.

    Args:
        graph: The graph.
        way: The events.
        before: The walk in the directory before a restart: what was unsatisfied there (ruling 45) and taken.
    """
    walk, wrong = Walk(stale=left_unsatisfied(before), taken=before.taken.copy()), list[str]()
    commits = {id(event) for event in commits_of(way)}
    expected: str | None = None
    for event in way:
        if isinstance(event, StageEnd) and id(event) in commits:
            if expected not in (None, event.name):
                wrong.append(f"{event.name} was executed, and {expected} was next")
            expected = _step(graph, walk, event)
            if event.next_node != expected:
                wrong.append(
                    f"from {event.name}, visit {event.visit}, the run went to {event.next_node!r} by"
                    f" {event.route}, and the rules say {expected!r}"
                )
            wrong += _wrong_edge(graph, event)
            if event.edge is not None:
                walk.taken[event.edge] += 1
        elif isinstance(event, StageEnd):  # an attempt that is tried again
            walk.context.update(event.context)
        elif isinstance(event, GoalGateUnsatisfied):
            wrong += _redirect(graph, walk, event)
            expected = event.target
        elif isinstance(event, PipelineCompleted):
            wrong += [f"success, and goal gate {gate} is not satisfied" for gate in _unsatisfied(graph, walk)]
    return walk, wrong


def _step(graph: DrawnGraph, walk: Walk, event: StageEnd) -> str:
    """Take a commit in; where it must lead."""
    status, name = str(event.outcome.status), event.name
    is_own = graph.attrs.get("conditional_outcome") == "own"
    walk.context.update(event.context)
    walk.path.append(name)
    if status != "skipped":
        walk.statuses[name] = status
        walk.stale.discard(name)
    if graph.nodes[name].kind != "diamond" or is_own or status not in _GOOD:
        walk.seen = ("success" if status == "skipped" else status, event.outcome.preferred_label)
    if graph.nodes[name].kind == "exit":
        return NOWHERE
    return next(_targets(graph, walk, name, status, event.outcome.suggested_next_ids), NOWHERE)


def _targets(graph: DrawnGraph, walk: Walk, name: str, status: str, suggested: tuple[str, ...]) -> Iterator[str]:
    """The possible targets of a stage, best first."""
    left = [edge for index, edge in enumerate(graph.edges) if not 0 < edge.max_taken <= walk.taken[index]]
    edges = sorted(
        [edge for edge in left if edge.source == name], key=lambda edge: (-edge.weight, edge.target, edge.label)
    )
    guarded, free = [edge for edge in edges if edge.clauses], [edge for edge in edges if not edge.clauses]
    is_diamond, is_own = graph.nodes[name].kind == "diamond", "conditional_outcome" in graph.attrs
    has_failed = status == "fail" or (is_diamond and walk.seen[0] == "fail" and not guarded and not is_own)
    read, label = walk.seen
    if read == "partial_success" and not any(
        ("outcome", read) == (key, value) for edge in guarded for key, _, value in edge.clauses
    ):
        read = "success"  # no condition tells the two apart
    yield from (edge.target for edge in guarded if holds(edge, (read, label), walk.context))
    labelled = [edge.target for edge in free if label and edge.label == label]
    yield from (target for target in labelled if target in suggested)
    yield from labelled
    yield from (target for target in suggested if any(edge.target == target for edge in free))
    yield from (edge.target for edge in free if edge.is_default)
    plain = [edge.target for edge in free if not edge.is_default]
    if not has_failed or "on_fail" in graph.attrs:
        yield from plain
    elif not is_own:
        yield from (target for target in plain if graph.nodes[target].kind == "diamond")
    if has_failed:
        yield from _jumps(graph, name)


def _jumps(graph: DrawnGraph, name: str) -> Iterator[str]:
    for attrs in (graph.nodes[name].attrs, graph.attrs):
        yield from (str(attrs[key]) for key in ("retry_target", "fallback_retry_target") if key in attrs)


def left_unsatisfied(walk: Walk) -> set[str]:
    """The stages that a restart has to execute again: the stale and the failed ones (ruling 45)."""
    return walk.stale | {name for name, status in walk.statuses.items() if status not in _GOOD}


def holds(edge: DrawnEdge, seen: tuple[str, str], context: Mapping[str, Any]) -> bool:
    """True if an edge's condition is true."""
    for key, operator, value in edge.clauses:
        found = {"outcome": seen[0], "preferred_label": seen[1]}.get(key)
        if found is None:
            found = str(context.get(key, context.get(key.removeprefix("context."), "")))
        if (found == value) != (operator == "="):
            return False
    return True


def _wrong_edge(graph: DrawnGraph, event: StageEnd) -> list[str]:
    if event.edge is None:
        return []
    edge = graph.edges[event.edge]
    is_right = (edge.source, edge.target) == (event.name, event.next_node)
    return [] if is_right else [f"{event.name} left by {edge.text()} for {event.next_node}"]


def _redirect(graph: DrawnGraph, walk: Walk, event: GoalGateUnsatisfied) -> list[str]:
    wrong: list[str] = []
    unsatisfied, jump = _unsatisfied(graph, walk), next(_jumps(graph, event.gate), NOWHERE)
    if event.gate not in unsatisfied:
        wrong.append(f"gate {event.gate} sent the run back and was satisfied")
    if event.target != jump:
        wrong.append(f"gate {event.gate} sent the run to {event.target}, not to {jump!r}")
    walk.redirects += 1
    if event.redirects != walk.redirects:
        wrong.append(f"redirect {event.redirects} is the {walk.redirects}. one")
    if event.target in walk.path:
        last = len(walk.path) - 1 - walk.path[::-1].index(event.target)
        walk.stale.update(name for name in walk.path[last:] if _is_gate(graph, name))
    return wrong


def _is_gate(graph: DrawnGraph, name: str) -> bool:
    return "goal_gate" in graph.nodes[name].attrs


def _unsatisfied(graph: DrawnGraph, walk: Walk) -> list[str]:
    unsatisfied = [name for name, status in walk.statuses.items() if status not in _GOOD or name in walk.stale]
    unsatisfied += [name for name in walk.stale if name not in walk.statuses]
    if "strict_gates" in graph.attrs:  # ruling 17a: one that was only ever skipped does not count
        unsatisfied += [name for name in walk.path if name not in walk.statuses]
    return [name for name in unsatisfied if _is_gate(graph, name)]


def wrong_counts(walk: Walk, bounds: Mapping[str, int], reached: str) -> list[str]:
    """Errors in the counts of a run in a directory; ``reached`` is the bound that ended it."""
    visits = max(Counter(walk.path).values(), default=0)
    counts = {"max_steps": len(walk.path), "max_node_visits": visits, "max_goal_gate_redirects": walk.redirects}
    wrong = [
        f"{name}={bounds[name]} and {count} were made"
        for name, count in counts.items()
        if name in bounds and count > bounds[name]
    ]
    if reached in counts and counts[reached] != bounds.get(reached):
        wrong.append(f"ended by {reached}={bounds.get(reached)} after {counts[reached]}")
    return wrong
