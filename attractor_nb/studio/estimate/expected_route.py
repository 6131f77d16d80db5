"""The expected route of a past run on a changed graph: recorded outcomes and contexts, new rules (pure).

Each recorded stage is left once more by the traversal's own rules (``failures.next_step``, goal gates), with
the outcome and the context that were recorded. While that leads where the run went the next stage is known.
Where it leads elsewhere knowledge ends: the outcome of a stage that was not executed is unknown.
Bounds are not looked at: they are another question.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.decisions.history.route_explanation import because
from attractor_nb.decisions.routing import ConditionOutcome, end_reason, next_step, read_status
from attractor_nb.decisions.run_endings import never_visited, redirect_target, unsatisfied_gate
from attractor_nb.decisions.run_state import RunState
from attractor_nb.decisions.traversal import diamonds_of
from attractor_nb.languages.condition.parser import Lookup, explain_condition
from attractor_nb.model.branch import enclosing
from attractor_nb.model.events import (
    Event,
    GoalGateUnsatisfied,
    ParallelBranchStarted,
    PipelineCompleted,
    PipelineFailed,
    PipelineStarted,
    StageEnd,
)
from attractor_nb.model.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from attractor_nb.decisions.history.journal import Journal
    from attractor_nb.decisions.planning.plan import Plan, PlannedNode
    from attractor_nb.model.graph import Graph

SAME: Final = "same"
ELSEWHERE: Final = "elsewhere"
MAX_DIAMONDS: Final = 1_000
"""Diamonds in a row that are walked through; a circle of them alone would have no end."""
_ENDS: Final = " ends"
_FAILS: Final = " fails"
"""What may become of a run at its end, beside going back to a node: no node is named so."""
_UNSEEN_ATTRS: Final = frozenset({"label", "class", "comment", "retry_target", "fallback_retry_target", "goal_gate"})
"""What of a node says nothing of what it comes to."""


@dataclass(frozen=True, slots=True)
class RerouteStep:
    """The place where a run would leave the way that it took."""

    node: str  #: The stage behind which it happens; empty when the run would begin elsewhere.
    visit: int  #: Number of the visit.
    branch: str  #: Path of the branch, or empty.
    before: str  #: Where the run went from there; empty where it ended.
    before_why: str  #: Why, as recorded.
    now: str  #: Where it would go; empty where it would end.
    now_why: str  #: Why, with what the conditions saw.
    known: str  #: How far that is known, in words.


@dataclass(frozen=True, slots=True)
class ExpectedRoute:
    """The expected route of one run on a changed graph."""

    turn: RerouteStep | None  #: Where it would leave its way; None when it would go the same way, as far as it went.
    assumed: tuple[str, ...]  #: Nodes that are not what they were, and whose recorded outcomes are taken all the same.
    steps: int  #: How many recorded stages were asked.

    @property
    def verdict(self) -> str:
        """``same`` or ``elsewhere``."""
        return SAME if self.turn is None else ELSEWHERE


def expect_route(
    plan: Plan, before: Graph, journal: Journal, resolve: Callable[[Any], Any] = lambda value: value
) -> ExpectedRoute:
    """Ask a changed graph where a past run would have gone.

    Args:
        plan: The changed graph.
        before: The graph that ran.
        journal: What was recorded, over the changed graph's attributes.
        resolve: Gives the value that a recorded one stands for: large ones are kept elsewhere.
    """
    walk = _Walk(plan, before, resolve)
    for event, values in journal.contexts():
        walk.state.apply(event, is_passed_through=event.node_id in walk.diamonds)
        walk.take(event, values)
        if walk.turn is not None:
            break
    return ExpectedRoute(walk.turn, tuple(walk.assumed), walk.steps)


class _Walk:
    """One run on its way once more."""

    def __init__(self, plan: Plan, before: Graph, resolve: Callable[[Any], Any]) -> None:
        self.plan = plan
        self.before = before
        self.state = RunState(plan.start)
        self.diamonds = diamonds_of(plan)
        self.assumed: dict[str, None] = {}
        self.steps = 0
        self.turn: RerouteStep | None = None
        self._resolve = resolve
        self._branches: dict[tuple[str, str], list[str]] = {}
        self._at_end: tuple[StageEnd, str, RerouteStep | None] | None = None

    def take(self, event: Event, values: Mapping[str, Any]) -> None:
        """Take what happened, and compare it with what would have."""
        if isinstance(event, PipelineStarted):
            self._begin(event)
        elif isinstance(event, ParallelBranchStarted):
            self._branches.setdefault((enclosing(event.branch), event.name), []).append(event.start_node)
        elif isinstance(event, GoalGateUnsatisfied):
            self._judge_end(event.target)
        elif isinstance(event, PipelineCompleted):
            self._judge_end(_ENDS)
        elif isinstance(event, PipelineFailed) and not event.bound:
            self._judge_end(_FAILS)
        elif isinstance(event, StageEnd):
            self._note_change(event.name)
            if event.is_commit:
                self._commit(event, values)

    def _begin(self, event: PipelineStarted) -> None:
        """Whether the run would begin elsewhere."""
        now, start = self.plan.start, event.start_node or self.plan.start
        if not event.restart_of and start != now:
            why = "it was the start"
            self.turn = RerouteStep("", 0, "", start, why, now, "it is the start now", self._known(now))

    def _note_change(self, node_id: str) -> None:
        """Remember a node whose recorded outcomes are taken although it is not what it was."""
        now, was = self.plan.graph.nodes.get(node_id), self.before.nodes.get(node_id)
        if now is None or was is None or node_id in self.assumed:
            return
        names = now.attrs.keys() | was.attrs.keys()
        if any(now.attrs.get(name) != was.attrs.get(name) for name in names - _UNSEEN_ATTRS):
            self.assumed[node_id] = None

    def _commit(self, event: StageEnd, values: Mapping[str, Any]) -> None:
        """Leave a recorded stage by the changed graph's rules."""
        self.steps += 1
        planned = self.plan.nodes.get(event.name)
        if planned is None:
            self.turn = self._turn(event, "", f"the graph has no node {event.name} any more", "not known")
            return
        if planned.is_exit:
            self._judge_end(_ENDS)
            return
        branches = self._branches.pop((event.branch, event.name), [])
        if planned.is_fan_out and sorted(branches) != sorted(edge.target for edge in planned.branches):
            others = {edge.target for edge in planned.branches} ^ set(branches)
            why = f"its branches are others: {', '.join(sorted(others))}"
            self.turn = self._turn(event, planned.join, why, "not known from its branches on")
            return
        self._leave(planned, event, lambda key: self._resolve(values.get(key)))

    def _leave(self, planned: PlannedNode, event: StageEnd, lookup: Lookup) -> None:
        branch = self.state.branches.open.get(event.branch)
        seen = (self.state if branch is None else branch.state).seen
        step = next_step(self.plan, planned, event.outcome, seen, lookup, event.branch)
        target = "" if step is None else step.target
        if target != event.next_node:
            if step is None:
                reason = end_reason(self.plan, planned, event.outcome, seen, lookup)
                why, known = (
                    (f"no edge matches: {reason}", "the run would fail here")
                    if reason
                    else ("no edge leads on", "the run would end here")
                )
            else:
                why = because(step.reason, step.detail)
                known = self._known_behind(target, seen, lookup)
            refused = _refused(planned, event.next_node, seen, lookup)
            self.turn = self._turn(event, target, f"{why}; {refused}" if refused else why, known)
        elif not event.branch and (self._is_exit(target) if target else not event.outcome.status.is_failure):
            self._at_end = event, *self._gates(event)

    def _is_exit(self, node_id: str) -> bool:
        return self.plan.nodes[node_id].is_exit

    def _gates(self, event: StageEnd) -> tuple[str, RerouteStep | None]:
        """The effect of goal gates on a run that reaches its end: it ends, fails, or goes back."""
        state = self.state
        gate = unsatisfied_gate(self.plan, state)
        if gate is None:
            unvisited = never_visited(self.plan, state.outcomes.keys() | state.skipped.keys())
            if not (self.plan.is_gate_strict and unvisited):
                return _ENDS, None
            why = f"goal gate {unvisited[0]} was never visited"
            return _FAILS, self._turn(event, "", why, "the run would fail")
        step = redirect_target(self.plan, gate)
        if step is None:
            why = f"goal gate {gate} has not succeeded, and there is no retry_target"
            return _FAILS, self._turn(event, "", why, "the run would fail")
        why = f"goal gate {gate} has not succeeded: {step.detail}"
        return step.target, self._turn(event, step.target, why, self._known(step.target))

    def _judge_end(self, recorded: str) -> None:
        """Compare what became of an end with what would."""
        if self._at_end is None:
            return
        event, now, turn = self._at_end
        self._at_end = None
        if now != recorded:
            why = "no goal gate keeps it from ending any more"
            self.turn = turn or self._turn(event, event.next_node, why, "the run would end in success")

    def _turn(self, event: StageEnd, now: str, why: str, known: str) -> RerouteStep:
        before_why = because(event.route, event.route_detail)
        return RerouteStep(event.name, event.visit, event.branch, event.next_node, before_why, now, why, known)

    def _known(self, target: str) -> str:
        """The limit of knowledge after a turn, in words."""
        if not target:
            return "the run would end here"
        if self._is_exit(target):
            return f"the run would end at {target}"
        return f"not known from {target} on"

    def _known_behind(self, target: str, seen: ConditionOutcome, lookup: Lookup) -> str:
        """The same, through diamonds: they execute nothing, so where they lead is known."""
        for _ in range(MAX_DIAMONDS):
            planned = self.plan.nodes[target]
            if not planned.is_conditional or self.plan.are_diamonds_own:
                return self._known(target)
            step = next_step(self.plan, planned, Outcome.success(), seen, lookup)
            if step is None:
                return f"no edge of {target} matches: the run would fail there"
            target = step.target
        return f"not known from {target} on"


def _refused(planned: PlannedNode, target: str, seen: ConditionOutcome, lookup: Lookup) -> str:
    """The reason why the edge to the recorded target is not taken any more."""
    edges = [edge for edge in planned.edges if edge.target == target]
    if not edges:
        return f"no edge leads to {target} any more" if target and planned.edges else ""
    for edge in edges:
        if edge.condition is None:
            continue
        status = read_status(planned, seen).value
        for verdict in explain_condition(edge.condition, status, seen.preferred_label, lookup):
            if not verdict.holds:
                return f'`{verdict.clause}` to {target} saw "{verdict.value[:80]}"'
    return ""
