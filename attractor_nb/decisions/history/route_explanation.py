"""An explanation of the route out of a stage: the rules of spec 3.3 and 3.7 applied again, beside the record.

The record says where the run went. Here the same rules decide once more for the recorded outcome and context.
Each edge is explained: its condition, the values that its clauses saw, why it was or was not taken. A
disagreement of rules and record, after a change of the graph, is reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from attractor_nb.decisions.planning.plan import eligible
from attractor_nb.decisions.routing import (
    BRANCH_END,
    JUMPS,
    ConditionOutcome,
    Step,
    is_failed,
    match_condition,
    match_default,
    match_diamond,
    match_hint,
    match_weight,
    next_step,
    read_status,
    retry_step,
    taken_words,
)
from attractor_nb.decisions.run_state import RunState
from attractor_nb.decisions.traversal import diamonds_of
from attractor_nb.languages.condition.parser import ClauseVerdict, Lookup, explain_condition
from attractor_nb.model.events import (
    DebuggerChanged,
    Event,
    GoalGateUnsatisfied,
    ParallelBranchStarted,
    PipelineForked,
    PipelineRewound,
    PipelineStarted,
    StageEnd,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from attractor_nb.decisions.history.journal import Journal, VisitRecord
    from attractor_nb.decisions.planning.plan import Plan, PlannedEdge, PlannedNode


def all_route_reasons(
    plan: Plan, journal: Journal, resolve: Callable[[Any], Any] = lambda value: value
) -> Iterator[tuple[StageEnd, RouteReasons]]:
    """Each commit that counts, in order, with why the stage was left as it was; one pass over the events.

    Args:
        plan: The graph as it is now.
        journal: What was recorded.
        resolve: Gives the value of a recorded reference: large values are kept elsewhere.
    """
    replay = RouteReplay(plan)
    for event, values in journal.contexts():
        view = replay.apply(event)
        if view is not None and isinstance(event, StageEnd):
            yield event, reasons_for(plan, event, view, _lookup(values, resolve))


def views_at_commits(plan: Plan, journal: Journal) -> dict[int, CommitView]:
    """The view of the edges at each commit that counts, by its number; one pass over the events."""
    replay = RouteReplay(plan)
    views = ((event.sequence, replay.apply(event)) for event in journal.counted)
    return {number: view for number, view in views if view is not None}


class CommitView(msgspec.Struct, frozen=True):
    """The facts by which a stage was left."""

    seen: ConditionOutcome  #: What its edges saw: its own outcome, or for a diamond that of the stage before it.
    planned: PlannedNode | None  #: The node without the edges that were spent by then; None if the graph has none.


class RouteReplay:
    """The events of a run, applied one after another to a state."""

    def __init__(self, plan: Plan) -> None:
        """Begin before the first event."""
        self.state = RunState(plan.start)
        self._plan = plan
        self._diamonds = diamonds_of(plan)

    def apply(self, event: Event) -> CommitView | None:
        """Take in an event that counts; for a commit the view of its edges, before its own edge is counted."""
        is_commit = isinstance(event, StageEnd) and event.is_commit
        planned = self._plan.nodes.get(event.node_id) if is_commit else None
        if planned is not None:
            planned = eligible(self._plan, planned, self._position(event.branch).taken)
        self.state.apply(event, is_passed_through=event.node_id in self._diamonds)
        return CommitView(self._position(event.branch).seen, planned) if is_commit else None

    def _position(self, path: str) -> RunState:
        branch = self.state.branches.open.get(path)
        return self.state if branch is None else branch.state


def route_reasons_of(
    plan: Plan,
    journal: Journal,
    commit: StageEnd,
    view: CommitView,
    resolve: Callable[[Any], Any] = lambda value: value,
) -> RouteReasons:
    """The reasons for the route of one visit; see ``all_route_reasons``, and ``views_at_commits`` for ``view``."""
    values = journal.values_at(commit.sequence, commit.branch)
    return reasons_for(plan, commit, view, _lookup(values, resolve))


def reasons_for(plan: Plan, commit: StageEnd, view: CommitView, lookup: Lookup) -> RouteReasons:
    """The reasons for the route that a commit records.

    Args:
        plan: The graph as it is now.
        commit: The end of the visit.
        view: The facts by which it was left.
        lookup: Reads the context as it was behind the commit.
    """
    seen, planned = view.seen, view.planned
    if planned is None:
        return RouteReasons(
            commit.edge,
            commit.next_node,
            commit.route,
            commit.route_detail,
            _sentence(commit),
            (),
            (),
            f"the graph has no node {commit.name} any more: it was changed since",
        )
    step = None if planned.is_exit else next_step(plan, planned, commit.outcome, seen, lookup, commit.branch)
    rules = _rules(plan, planned, commit, seen, lookup)
    edges = plan.nodes[planned.id].edges
    candidates = tuple(_candidate(plan, planned, edge, commit, seen, lookup, step) for edge in edges)
    return RouteReasons(
        commit.edge,
        commit.next_node,
        commit.route,
        commit.route_detail,
        _sentence(commit),
        rules,
        candidates,
        _mismatch(commit, step),
    )


def _lookup(values: Mapping[str, Any], resolve: Callable[[Any], Any]) -> Lookup:
    return lambda key: resolve(values.get(key))


def _sentence(commit: StageEnd) -> str:
    """The target of the route and its reason, in one line."""
    route, detail, where = commit.route, commit.route_detail, commit.next_node
    if route in {"failed", "no_match"}:
        return f"the run failed here: {detail}"
    if route == BRANCH_END:
        return detail
    if not where:
        return "the run ends here"
    return f"to {where}: {because(route, detail)}"


def because(route: str, detail: str) -> str:
    """The reason for a route, in words: of the route and its detail, as recorded."""
    if route == "condition":
        return f"the condition `{detail}` holds"
    if route == "preferred_label":
        return f'the stage preferred the label "{detail}"'
    if route == "suggested_id":
        return f"the stage suggested {detail}"
    if route == "default":
        return "the edge is marked default=true, and no rule before it decided"
    if route in JUMPS:
        return f"it failed, and {detail} leads there"
    return detail or route


def _mismatch(commit: StageEnd, step: Step | None) -> str:
    target = "" if step is None else step.target
    edge = None if step is None or step.edge is None else step.edge.index
    if (target, edge) == (commit.next_node, commit.edge) and (step is None or step.reason == commit.route):
        return ""
    now = "would end here" if step is None else f"would go to {target}: {because(step.reason, step.detail)}"
    before = f"went to {commit.next_node} ({commit.route})" if commit.next_node else f"ended ({commit.route})"
    return (
        f"the run {before}, but by the graph as it is now it {now};"
        " the graph was changed since, or a value that decided was not recorded"
    )


def _rules(
    plan: Plan, planned: PlannedNode, commit: StageEnd, seen: ConditionOutcome, lookup: Lookup
) -> tuple[AskedRule, ...]:
    """The rules in the order in which they are asked, up to the first that gives a way on."""
    if planned.is_exit:
        return (AskedRule("exit", "the run ends at an exit", decides=True),)
    asked = [AskedRule("max_taken", f"{edge.target} is not eligible: {taken_words(edge)}") for edge in planned.spent]
    for name, step, otherwise in _asked(plan, planned, commit, seen, lookup):
        if step is not None:
            asked.append(AskedRule(name, f"{step.target}: {because(step.reason, step.detail)}", decides=True))
            return tuple(asked)
        asked.append(AskedRule(name, otherwise))
    asked.append(AskedRule("end", "no rule gave a next edge", decides=True))
    return tuple(asked)


def _asked(
    plan: Plan, planned: PlannedNode, commit: StageEnd, seen: ConditionOutcome, lookup: Lookup
) -> Iterator[tuple[str, Step | None, str]]:
    """Each rule of spec 3.3 and 3.7 that applies: its name, its way on, and what it means without one."""
    outcome = commit.outcome
    has_failed = is_failed(plan, planned, outcome, seen)
    count = len(planned.conditional)
    none_holds = f"none of {count} holds" if count else "no edge has one"
    yield "condition", match_condition(planned, seen, lookup), none_holds
    if planned.is_fan_out:
        yield ("join", next_step(plan, planned, outcome, seen, lookup, commit.branch), "its branches met nowhere")
        return
    hint = match_hint(planned, seen, outcome.suggested_next_ids)
    yield "preferred label, suggested ids", hint, _no_hint(seen, outcome.suggested_next_ids)
    yield "default=true", match_default(planned), "no edge is marked so"
    if has_failed and not plan.is_fail_continued:
        yield "a diamond behind it", match_diamond(plan, planned), "no unconditional edge enters one"
        unconditional = len(planned.unconditional)
        yield ("weight", None, f"{unconditional} unconditional, not for a failure" if unconditional else "no edge")
    else:
        yield "weight, then target id", match_weight(planned.unconditional), "no unconditional edge"
    if has_failed:
        yield ("retry targets", retry_step(plan, planned, commit.branch), "neither the node nor the graph has one")


def _no_hint(seen: ConditionOutcome, suggested: Sequence[str]) -> str:
    asked = [f'"{seen.preferred_label}"'] if seen.preferred_label else []
    asked += suggested
    return f"no edge for {', '.join(asked)}" if asked else "the stage asked for none"


def _candidate(
    plan: Plan,
    planned: PlannedNode,
    edge: PlannedEdge,
    commit: StageEnd,
    seen: ConditionOutcome,
    lookup: Lookup,
    step: Step | None,
) -> EdgeCandidate:
    values: tuple[ClauseVerdict, ...] = ()
    holds: bool | None = None
    if edge.condition is not None:
        label = seen.preferred_label
        values = tuple(explain_condition(edge.condition, read_status(planned, seen).value, label, lookup))
        holds = all(verdict.holds for verdict in values)
    is_taken = commit.edge == edge.index and commit.next_node == edge.target
    if is_taken:
        words = f"taken: {because(commit.route, commit.route_detail)}"
    else:
        words = _refused(plan, planned, edge, values, step, has_failed=is_failed(plan, planned, commit.outcome, seen))
    return EdgeCandidate(
        edge.index, edge.target, edge.edge.condition, values, holds, edge.weight, edge.edge.label, is_taken, words
    )


def _refused(
    plan: Plan,
    planned: PlannedNode,
    edge: PlannedEdge,
    values: Sequence[ClauseVerdict],
    step: Step | None,
    *,
    has_failed: bool,
) -> str:
    """The reason why an edge was not taken."""
    if edge in planned.spent:
        return f"not eligible: {taken_words(edge)}"
    failing = [verdict for verdict in values if not verdict.holds]
    if failing:
        saw = ", ".join(f'`{one.clause}` saw "{one.value[:MAX_SEEN_CHARACTERS]}"' for one in failing)
        return f"does not hold: {saw}"
    if planned.is_fan_out and edge.condition is None:
        return "begins a branch"
    if step is None:
        return "not for a failure" if has_failed else "not taken"
    if step.reason == "condition":
        if edge.condition is None:
            return f"not asked: the condition of {step.target} holds"
        return f"holds, too, but {_behind(edge, step)}"
    if step.reason in {"preferred_label", "suggested_id"}:
        return f"the stage asked for {step.target}"
    if step.reason == "default":
        return f"not for a failure: {step.target} is default=true" if has_failed else _behind_default(edge, step)
    if has_failed and not plan.is_fail_continued:
        return "not for a failure"
    return _behind(edge, step)


def _behind_default(edge: PlannedEdge, step: Step) -> str:
    return _behind(edge, step) if edge.edge.is_default else f"{step.target} is default=true"


def _behind(edge: PlannedEdge, step: Step) -> str:
    """The reason why one edge of two that could be taken comes second."""
    first = step.edge
    if first is None:
        return f"the run went to {step.target}"
    if first.weight > edge.weight:
        return f"weight {edge.weight} is lower than {first.weight}"
    if first.target == edge.target:
        return "the other edge to the same node comes first"
    return f"{step.target} comes first by target id"


# The reasons for a route as values: the rules that were applied, each edge, the next step.

MAX_SEEN_CHARACTERS: Final = 200
"""Of a value that a condition saw."""


class EdgeCandidate(msgspec.Struct, frozen=True):
    """An edge that leads out of a stage, and how it fared."""

    edge: int  #: Its position in ``Graph.edges``.
    target: str  #: Its target.
    condition: str  #: Its condition, or empty.
    values: tuple[ClauseVerdict, ...]  #: Value that each clause of the condition saw, and whether it held.
    holds: bool | None  #: True if the condition held; None for an edge without one.
    weight: int  #: Its priority.
    label: str  #: Its label, or empty.
    is_taken: bool  #: True if the run took it.
    words: str  #: Reason why it was taken or not.

    def to_plain(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "edge": self.edge,
            "target": self.target,
            "condition": self.condition,
            "values": [
                {"clause": one.clause, "value": one.value[:MAX_SEEN_CHARACTERS], "holds": one.holds}
                for one in self.values
            ],
            "holds": self.holds,
            "weight": self.weight,
            "label": self.label,
            "is_taken": self.is_taken,
            "words": self.words,
        }


class AskedRule(msgspec.Struct, frozen=True):
    """A rule that was asked for the next step."""

    name: str  #: The subject of the rule.
    words: str  #: Result of the rule.
    decides: bool = False  #: True if the next step is its.


class RouteReasons(msgspec.Struct, frozen=True):
    """The reasons for the route out of a visit."""

    edge: int | None  #: Position of the edge taken, or None for a jump or an end.
    target: str  #: Node where the run went; empty where it ended.
    route: str  #: Rule that decided, as recorded: ``condition``, ``weight``, ``retry_target``, ``end`` …
    detail: str  #: The record's own words.
    words: str  #: The same as a sentence.
    rules: tuple[AskedRule, ...]  #: The rules in their order, up to the one that decided.
    candidates: tuple[EdgeCandidate, ...]  #: Each edge that leads out, in source order.
    mismatch: str = ""  #: Decision of the current rules if it differs from the record; else empty.

    def to_plain(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "edge": self.edge,
            "target": self.target,
            "route": self.route,
            "detail": self.detail,
            "words": self.words,
            "rules": [{"name": one.name, "words": one.words, "decides": one.decides} for one in self.rules],
            "candidates": [one.to_plain() for one in self.candidates],
            "mismatch": self.mismatch,
        }


# The causes of a visit: an edge, a jump, a goal gate, a branch's beginning, a rewind, a restart.


class Arrival(msgspec.Struct, frozen=True):
    """The path by which a run reached a visit."""

    node: str  #: The stage that it came from; empty for the first.
    visit: int  #: The visit of that node, by number.
    edge: int | None  #: Position of the edge in ``Graph.edges``, or None.
    words: str  #: The same as a sentence.


def arrival_of(journal: Journal, visit: VisitRecord) -> Arrival:
    """The arrival at a visit, by the last event before it that names the next node."""
    found: Event | None = None
    by_hand: list[str] = []
    for event in journal.events_before(visit.sequence):
        if _leads(event, visit.branch):
            found = event
            break
        if event.branch == visit.branch and (words := _by_hand(event, visit.node_id)):
            by_hand.insert(0, words)
    arrival = _arrival(found, visit)
    return replace(arrival, words="; ".join([arrival.words, *by_hand]))


def _by_hand(event: Event, node_id: str) -> str:
    """The act of a person between the stage before and a visit, in words; empty for any other event."""
    changed = ""
    if isinstance(event, PipelineRewound | PipelineForked):
        parts = [*event.context, *(["the prompt"] if event.prompt else [])]
        changed = f" with {', '.join(parts)} changed" if parts else ""
    match event:
        case PipelineRewound() if event.node == node_id:
            return f"the run was rewound to just before it{changed}"
        case PipelineForked():
            return f"the run began as a fork just before it{changed}"
        case DebuggerChanged(change="context"):
            return f"{', '.join(event.context)} set by hand"
        case _:
            return ""


def _leads(event: Event, branch: str) -> bool:
    """True if an event says where the run, or one of its branches, continues."""
    if isinstance(event, ParallelBranchStarted | StageEnd):
        return event.branch == branch and (not isinstance(event, StageEnd) or event.is_commit)
    return not branch and isinstance(event, PipelineStarted | GoalGateUnsatisfied)


def _arrival(event: Event | None, visit: VisitRecord) -> Arrival:
    match event:
        case StageEnd():
            words = f"from {event.name}, visit {event.visit}: {because(event.route, event.route_detail)}"
            return Arrival(event.name, event.visit, event.edge, words)
        case GoalGateUnsatisfied():
            words = f"goal gate `{event.gate}` was not satisfied at the end, and sent the run back here"
            return Arrival(event.gate, 0, None, words)
        case ParallelBranchStarted():
            words = f"branch {event.id} of {event.name} begins here"
            return Arrival(event.name, event.visit, event.edge, words)
        case PipelineStarted() if event.restart_of:
            return Arrival("", 0, None, "a loop_restart edge began the run anew here")
        case PipelineStarted():
            return Arrival("", 0, None, "the run begins here")
        case _:
            return Arrival("", 0, None, f"no record says how the run reached {visit.node_id}")
