"""An explanation of a node's repeated visits: the way back of each round, and the edge that decided for it.

Between two visits of a node the run took a number of edges. The one that decided is the last at which another
edge could have kept the run away from the node: the values that its condition saw explain the next visit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from attractor_nb.decisions.routing import JUMPS
from attractor_nb.model.events import Event, GoalGateUnsatisfied, PipelineFailed, StageEnd, StageStarted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from attractor_nb.decisions.history.route_explanation import RouteReasons
    from attractor_nb.decisions.planning.plan import Plan

CHOSEN: Final = frozenset({"preferred_label", "suggested_id"})
MAX_PATH: Final = 30
MAX_VALUE: Final = 40
MAX_REASON: Final = 120
MAX_FOUND: Final = 12


class LoopIteration(msgspec.Struct, frozen=True):
    """The way from one visit of a node to the next."""

    visit: int  #: Number of the visit that it led to.
    path: tuple[str, ...]  #: The nodes from visit to visit, both included.
    decider: str  #: The node, or goal gate, that decided.
    decider_visit: int  #: The visit of that node, by number.
    kind: str  #: ``found`` (a condition), ``chose`` (a label, an id), ``failed`` (a jump), ``gate`` or ``went``.
    found: str  #: The reason: values that the condition saw, the label, or the reason of a failure.
    words: str  #: Description of the iteration in one line.
    is_restart: bool = False  #: A ``loop_restart`` edge was on the way.

    def to_plain(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "visit": self.visit,
            "path": list(self.path),
            "decider": self.decider,
            "decider_visit": self.decider_visit,
            "kind": self.kind,
            "found": self.found,
            "words": self.words,
            "is_restart": self.is_restart,
        }


class LoopReport(msgspec.Struct, frozen=True):
    """The report that explains the number of visits of a node."""

    node: str  #: The node.
    visits: int  #: Number of visits; those that a rewind discarded do not count.
    rounds: tuple[LoopIteration, ...]  #: Iterations that led back to it, oldest first.
    retries: tuple[str, ...]  #: Attempts that failed and were tried again within a visit, a line each.
    ending: str  #: Reason why there was no further visit, or the progress so far.
    statement: str  #: All of it, as short as it can be said.


Hop = StageEnd | GoalGateUnsatisfied


def explain_looping(
    plan: Plan,
    node_id: str,
    events: Sequence[Event],
    by_commit: Mapping[int, RouteReasons],
    *,
    is_ended: bool,
    branch: str = "",
) -> LoopReport:
    """Explain the number of visits of a node.

    Args:
        plan: The graph.
        node_id: A node of it.
        events: Those that count, in order; of a run that was restarted those of all its directories.
        by_commit: Why each commit among them went where it did, by ``id`` of the event.
        is_ended: Whether the run has stopped.
        branch: Path of the branch to inspect; outside of all when empty.
    """
    avoiding = _avoiding(plan, node_id)
    rounds: list[LoopIteration] = []
    hops: list[Hop] = []
    retries: list[str] = []
    visits: list[int] = []
    for event in events:
        if event.branch != branch:
            continue
        if isinstance(event, StageStarted) and event.name == node_id and event.attempt == 1:
            if visits:
                rounds.append(_round(plan, avoiding, hops, by_commit, node_id, event.visit))
            visits.append(event.visit)
            hops = []
        elif isinstance(event, GoalGateUnsatisfied) or (isinstance(event, StageEnd) and event.is_commit):
            hops.append(event)
        elif isinstance(event, StageEnd) and event.name == node_id:
            reason = _short(event.outcome.failure_reason, MAX_REASON)
            retries.append(f"visit {event.visit}: attempt {event.attempt} failed and was tried again: {reason}")
    ending = _ending(hops, rounds, by_commit, events, is_ended=is_ended) if visits else ""
    statement = _statement(node_id, len(visits), rounds, len(retries))
    return LoopReport(node_id, len(visits), tuple(rounds), tuple(retries), ending, statement)


def _avoiding(plan: Plan, node_id: str) -> frozenset[str]:
    """The nodes from which an end can be reached without passing a node."""
    leading: dict[str, list[str]] = {}
    sources = set[str]()
    for edge in plan.graph.edges:
        leading.setdefault(edge.target, []).append(edge.source)
        sources.add(edge.source)
    ends = [name for name in plan.graph.nodes if name not in sources or plan.nodes[name].is_exit]
    found = {name for name in ends if name != node_id}
    waiting = list(found)
    while waiting:
        for source in leading.get(waiting.pop(), ()):
            if source != node_id and source not in found:
                found.add(source)
                waiting.append(source)
    return frozenset(found)


def _round(
    plan: Plan,
    avoiding: frozenset[str],
    hops: Sequence[Hop],
    by_commit: Mapping[int, RouteReasons],
    node_id: str,
    visit: int,
) -> LoopIteration:
    path = [hop.name for hop in hops if isinstance(hop, StageEnd)]
    if len(path) > MAX_PATH:
        path = [*path[: MAX_PATH // 2], "…", *path[-MAX_PATH // 2 :]]
    deciding = next((hop for hop in reversed(hops) if _decides(plan, avoiding, hop)), hops[-1] if hops else None)
    if deciding is None:
        words = "nothing recorded led back; the run was resumed or restarted there"
        return LoopIteration(visit, (node_id,), "", 0, "went", "", words)
    is_restart = any(
        hop.edge is not None and hop.edge < len(plan.edges) and plan.edges[hop.edge].is_restart
        for hop in hops
        if isinstance(hop, StageEnd)
    )
    who, number, kind, found, words = _decision(deciding, by_commit.get(id(deciding)))
    return LoopIteration(visit, (*path, node_id), who, number, kind, found, words, is_restart)


def _decides(plan: Plan, avoiding: frozenset[str], hop: Hop) -> bool:
    """True if another way out of a stage could have kept the run away."""
    if isinstance(hop, GoalGateUnsatisfied) or hop.route in JUMPS:
        return True
    planned = plan.nodes.get(hop.name)
    return planned is not None and any(edge.target in avoiding and edge.index != hop.edge for edge in planned.edges)


def _decision(hop: Hop, reasons: RouteReasons | None) -> tuple[str, int, str, str, str]:
    """The decider of a round: its node, visit, kind of decision and cause, and all of it as a line."""
    if isinstance(hop, GoalGateUnsatisfied):
        words = f"goal gate `{hop.gate}` was not satisfied at the end: back to {hop.target}"
        return hop.gate, 0, "gate", "", words
    name, number = hop.name, hop.visit
    if hop.route in JUMPS:
        reason = _short(hop.outcome.failure_reason or "no reason given", MAX_REASON)
        return (
            name,
            number,
            "failed",
            reason,
            f"{name} failed ({reason}); {hop.route_detail}: back to {hop.next_node}",
        )
    if hop.route in CHOSEN:
        chosen = f'"{_short(hop.route_detail)}"'
        return name, number, "chose", chosen, f"{name} chose {chosen}: to {hop.next_node}"
    found = _found(reasons)
    words = f"{name} found {found}: to {hop.next_node}" if found else f"{name} went to {hop.next_node}"
    if hop.route_detail:
        words += f" ({hop.route}: {_short(hop.route_detail, MAX_REASON)})"
    return name, number, "found" if found else "went", found, words


def _found(reasons: RouteReasons | None) -> str:
    """The values that decided: those that the taken condition saw, or else those that refused the others."""
    if reasons is None:
        return ""
    taken = [one for one in reasons.candidates if one.is_taken and one.values]
    looked = taken or [one for one in reasons.candidates if one.holds is False]
    seen: dict[str, str] = {}
    for candidate in looked:
        for verdict in candidate.values:
            if verdict.holds or not taken:
                key = verdict.clause.partition("!=")[0].partition("=")[0].strip().removeprefix("context.")
                seen.setdefault(key, f"{key}={_short(verdict.value) or 'nothing'}")
    return " and ".join(seen.values())


def _ending(
    hops: Sequence[Hop],
    rounds: Sequence[LoopIteration],
    by_commit: Mapping[int, RouteReasons],
    events: Sequence[Event],
    *,
    is_ended: bool,
) -> str:
    """The reason why there was no further visit."""
    last = events[-1] if events else None
    if isinstance(last, PipelineFailed):
        return f"the run ended there: {_short(last.error, MAX_REASON * 2)}"
    deciders = {one.decider for one in rounds}
    left = next((hop for hop in hops if isinstance(hop, StageEnd) and hop.name in deciders), None)
    if left is not None and left.next_node:
        return f"then {_decision(left, by_commit.get(id(left)))[4]}"
    if not is_ended:
        return "the run is still active"
    return "" if not rounds else "then the run did not return to it"


def _statement(node_id: str, visits: int, rounds: Sequence[LoopIteration], retries: int) -> str:
    if not visits:
        return f"{node_id} was not visited"
    again = f", and tried again {_times(retries)} within a visit" if retries else ""
    if visits == 1:
        return f"{node_id} was visited once{again}: nothing led back to it"
    groups: dict[tuple[str, str], list[str]] = {}
    for one in rounds:
        groups.setdefault((one.decider, one.kind), []).append(one.found)
    causes = " and ".join(_cause(who, kind, found) for (who, kind), found in groups.items())
    return f"{node_id} was visited {_times(visits)} because {causes}{again}"


def _cause(who: str, kind: str, found: Sequence[str]) -> str:
    often = "" if len(found) == 1 else f" {_times(len(found))}"
    match kind:
        case "found":
            return f"{who} found {_listed(found)}"
        case "chose":
            return f"{who} chose {_listed(found)}"
        case "failed":
            return f"{who} failed{often} ({_listed(dict.fromkeys(found))})"
        case "gate":
            return f"goal gate `{who}` was not satisfied{often}"
        case _:
            return f"{who} leads back to it" if who else "the run began there again"


def _listed(found: Iterable[str]) -> str:
    """Values in the order in which they were met; of the same in a row the number.

    >>> _listed(["n=0", "n=1"]), _listed(["n=0", "n=0", "n=1"])
    ('n=0, n=1', 'n=0 twice, n=1')
    """
    counted: list[tuple[str, int]] = []
    for value in found:
        if counted and counted[-1][0] == value:
            counted[-1] = (value, counted[-1][1] + 1)
        else:
            counted.append((value, 1))
    words = [value if count == 1 else f"{value} {_times(count)}" for value, count in counted]
    if len(words) > MAX_FOUND:
        words[MAX_FOUND // 2 : -MAX_FOUND // 2] = ["…"]
    return ", ".join(words)


def _times(count: int) -> str:
    """A count in words.

    >>> _times(1), _times(2), _times(3)
    ('once', 'twice', '3 times')
    """
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _short(text: str, limit: int = MAX_VALUE) -> str:
    flat = " ".join(text[: 4 * limit].split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"
