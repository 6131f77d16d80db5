"""Estimates of a run before it runs: its route from a past run, and its usage, expected and worst case.

Token counts are estimates without a tokenizer (`model/calls/messages.py`). Every other assumption is a field of
`Assumptions`. Knows neither prompts nor prices: the caller gives their sizes and a function.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.decisions.fidelity import resolve_thread
from attractor_nb.decisions.history.route_explanation import CommitView, RouteReplay, because
from attractor_nb.decisions.planning.plan import Plan, PlannedNode, Visit, likely_path, most_visits
from attractor_nb.decisions.preamble_page import budget_tokens
from attractor_nb.decisions.routing import ConditionOutcome, end_reason, next_step, read_status, taken_words
from attractor_nb.decisions.run_endings import never_visited, redirect_target, unsatisfied_gate
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
from attractor_nb.model.outcome import Outcome, Usage
from attractor_nb.model.vocabulary.value_forms import DEFAULT_MAX_ITEMS, FOR_EACH, MAX_ITEMS, list_key, value_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from attractor_nb.decisions.history.journal import Journal
    from attractor_nb.model.calls.providers import ModelName
    from attractor_nb.model.graph import Graph


_NOTHING: Final = Usage()


@dataclass(frozen=True, slots=True)
class Assumptions:
    """The assumptions of an estimate where nothing says otherwise."""

    response_tokens: int = 500  #: Tokens of an expected response; `llm.max_tokens` is the most.
    max_response_tokens: int = 8_192  #: Tokens of the longest response of a node without `llm.max_tokens`.
    carried_tokens: int = 500  #: Tokens that the preamble expects for each stage before; its mode's budget is the most.
    context_tokens: int = 200_000  #: The window of a model whose node has no `llm.context_tokens`.
    tool_requests: int = 4  #: Requests that a node with tools is expected to make.
    max_tool_requests: int = 50  #: The most that it may make.
    tool_tokens: int = 500  #: Tokens of what tools give back between two requests.
    max_tool_tokens: int = 12_500  #: The same at worst.


@dataclass(frozen=True, slots=True)
class NodeCalls:
    """The known facts of a node's calls."""

    prompt_tokens: int  #: Tokens of its own prompt and system prompt, without what is carried.
    models: tuple[ModelName, ...]  #: Its model, then those of `llm_fallback`.
    max_tokens: int | None = None  #: Its `llm.max_tokens`.
    context_tokens: int | None = None  #: Its `llm.context_tokens`.
    has_tools: bool = False  #: It may call tools.


@dataclass(frozen=True, slots=True)
class NodeEstimate:
    """The estimated usage of one node."""

    node_id: str  #: The node; of a child run's node the path, such as ``boss/test``.
    model: ModelName | None  #: Its model; empty for the whole of a child run.
    expected: Usage  #: Usage of its visits on the likely path.
    worst: Usage  #: Usage of its visits in the worst case, with all attempts, taken alone.


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """The estimated usage of a run."""

    nodes: tuple[NodeEstimate, ...]  #: Its nodes that ask models or run children, in source order.
    expected: Usage  #: All of them on the likely path.
    #: The costliest run that the bounds allow; less than the sum of the nodes where one bound holds for all of them
    #: together.
    worst: Usage
    is_shared: bool  #: One bound does hold for all of them together.
    assumptions: Assumptions  #: The assumptions.


@dataclass(frozen=True)
class Estimator:
    """Estimates one plan."""

    plan: Plan
    asked: Mapping[str, NodeCalls]  #: The nodes that ask models.
    children: Mapping[str, RunEstimate]  #: The estimates of child runs, by the node that runs them.
    price: Callable[[ModelName, Usage], float | None]  #: The price of a usage of a model, or None when it is not known.
    assumptions: Assumptions = field(default_factory=Assumptions)  #: The assumptions.

    def estimate(self, lookup: Lookup) -> RunEstimate:
        """The estimate of a run whose context begins with what ``lookup`` says."""
        visits = likely_path(self.plan, lookup)
        expected = {visit.node_id: _times(self._expected(visit), self._item_count(visit, lookup)) for visit in visits}
        most = most_visits(self.plan)
        units = {node_id: self._worst(node_id) for node_id in self.plan.nodes if self._consumes(node_id)}
        nodes = tuple(
            NodeEstimate(
                node_id,
                self.asked[node_id].models[0] if node_id in self.asked else None,
                expected.get(node_id, _NOTHING),
                _times(unit, most[node_id]),
            )
            for node_id, unit in units.items()
        )
        worst, is_shared = self._together(units, most)
        total = sum((node.expected for node in nodes), _NOTHING)
        return RunEstimate(nodes, total, worst, is_shared, self.assumptions)

    def _consumes(self, node_id: str) -> bool:
        return node_id in self.asked or node_id in self.children

    def _together(self, units: Mapping[str, Usage], most: Mapping[str, int]) -> tuple[Usage, bool]:
        """The costliest allotment of the run's steps to nodes; and whether they did not suffice for all."""
        left, worst, is_short = self.plan.bounds.max_steps, _NOTHING, False
        for node_id in sorted(units, key=lambda name: _weight(units[name]), reverse=True):
            visits = min(most[node_id], left)
            worst += _times(units[node_id], visits)
            is_short = is_short or visits < most[node_id]
            left -= visits
        return worst, is_short

    def _item_count(self, visit: Visit, lookup: Lookup) -> int:
        """The number of items of a visit: the length of a known list, else 1."""
        key = list_key(self.plan.nodes[visit.node_id].node.get(FOR_EACH, str, ""))

        def get(name: str, absent: object) -> object:
            value = lookup(name)
            return absent if value is None else value

        found = value_at(get, key) if key else None
        return min(len(cast("list[object]", found)), self._most_items(visit.node_id)) if isinstance(found, list) else 1

    def _most_items(self, node_id: str) -> int:
        """The maximum number of items in a node's list; 1 for a node without a list."""
        node = self.plan.nodes[node_id].node
        return node.get(MAX_ITEMS, int, DEFAULT_MAX_ITEMS) if FOR_EACH in node.attrs else 1

    def _expected(self, visit: Visit) -> Usage:
        """The usage of a visit on the likely path."""
        if visit.node_id in self.children:
            return self.children[visit.node_id].expected
        if visit.node_id not in self.asked:
            return _NOTHING
        asked, assumed = self.asked[visit.node_id], self.assumptions
        sent = self._sent(visit)
        response = _least(assumed.response_tokens, asked.max_tokens)
        requests = assumed.tool_requests if asked.has_tools else 1
        tokens = _exchange(sent, response, requests, assumed.tool_tokens, self._window(asked))
        return self._priced(asked.models[0], tokens)

    def _sent(self, visit: Visit) -> int:
        """Tokens that the first request of a visit sends: its prompt and what is carried."""
        asked = self.asked[visit.node_id]
        planned = self.plan.nodes[visit.node_id]
        mode = planned.fidelity if visit.edge is None else visit.edge.fidelity
        if mode != "full":
            stages = sum(before.edge is not None for before in visit.before)
            carried = min(budget_tokens(mode), self.assumptions.carried_tokens * stages)
            return asked.prompt_tokens + carried
        thread = self._thread(visit)
        thread_tokens = sum(self._thread_tokens_of(before) for before in visit.before if self._thread(before) == thread)
        return min(asked.prompt_tokens + thread_tokens, self._window(asked))

    def _thread_tokens_of(self, visit: Visit) -> int:
        """Tokens that a visit leaves in its thread."""
        asked = self.asked[visit.node_id]
        return asked.prompt_tokens + _least(self.assumptions.response_tokens, asked.max_tokens)

    def _thread(self, visit: Visit) -> str | None:
        """The thread that a visit has a part in, or None."""
        planned = self.plan.nodes[visit.node_id]
        mode = planned.fidelity if visit.edge is None else visit.edge.fidelity
        if visit.node_id not in self.asked or mode != "full":
            return None
        edge = None if visit.edge is None else visit.edge.edge
        previous = visit.before[-1].node_id if visit.before else visit.node_id
        return resolve_thread(edge, planned.node, self.plan.graph, planned.subgraph_class, previous)

    def _worst(self, node_id: str) -> Usage:
        """The worst-case usage of one visit of a node: all its attempts, each with all its models."""
        planned = self.plan.nodes[node_id]
        if node_id in self.children:
            return _times(self.children[node_id].worst, self._most_items(node_id) * planned.retry.max_attempts)
        asked, assumed = self.asked[node_id], self.assumptions
        window = self._window(asked)
        sent = min(asked.prompt_tokens + self._most_carried(planned, window), window)
        response = asked.max_tokens or assumed.max_response_tokens
        requests = assumed.max_tool_requests if asked.has_tools else 1
        tokens = _exchange(sent, response, requests, assumed.max_tool_tokens, window)
        attempt = sum((self._priced(name, tokens) for name in asked.models), _NOTHING)
        return _times(attempt, planned.retry.max_attempts)

    def _most_carried(self, planned: PlannedNode, window: int) -> int:
        entering = [edge for edge in self.plan.edges.values() if edge.target == planned.id]
        modes = {planned.fidelity, *(edge.fidelity for edge in entering)}
        return max(window if mode == "full" else budget_tokens(mode) for mode in modes)

    def _window(self, asked: NodeCalls) -> int:
        return asked.context_tokens or self.assumptions.context_tokens

    def _priced(self, name: ModelName, tokens: Usage) -> Usage:
        cost = self.price(name, tokens)
        return Usage(tokens.input_tokens, tokens.output_tokens, cost, tokens.calls)


def _exchange(sent: int, response: int, requests: int, tool_tokens: int, window: int) -> Usage:
    """The tokens of a talk: each request sends again what was said before it, the window at most."""
    received = sum(min(sent + turn * (response + tool_tokens), window) for turn in range(requests))
    return Usage(received, response * requests, calls=requests)


def _times(usage: Usage, count: int) -> Usage:
    cost = None if usage.cost_usd is None else usage.cost_usd * count
    if not count:
        return _NOTHING
    return Usage(
        usage.input_tokens * count,
        usage.output_tokens * count,
        cost,
        usage.calls * count,
        unpriced=usage.unpriced_calls * count,
        cached_tokens=usage.cached_tokens * count,
        estimated_calls=usage.estimated_calls * count,
    )


def _weight(usage: Usage) -> tuple[float, int]:
    return usage.cost_usd or 0.0, usage.total_tokens


def _least(tokens: int, limit: int | None) -> int:
    return tokens if limit is None else min(tokens, limit)


# The expected route of a past run on a changed graph: recorded outcomes and contexts, new rules (pure).
#
# Each recorded stage is left once more by the traversal's own rules (``failures.next_step``, goal gates), with
# the outcome and the context that were recorded. While that leads where the run went the next stage is known.
# Where it leads elsewhere knowledge ends: the outcome of a stage that was not executed is unknown.
# Bounds are not looked at: they are another question.

SAME: Final = "same"
ELSEWHERE: Final = "elsewhere"
MAX_DIAMONDS: Final = 1_000
"""Diamonds in a row that are walked through; a circle of them alone would have no end."""
_ENDS: Final = " ends"
_FAILS: Final = " fails"
"""Possible ends of a run, beside going back to a node: no node has such a name."""
_UNSEEN_ATTRS: Final = frozenset({"label", "class", "comment", "retry_target", "fallback_retry_target", "goal_gate"})
"""Attributes of a node that do not affect its outcome."""


@dataclass(frozen=True, slots=True)
class RerouteStep:
    """The place where a run would leave the way that it took."""

    node: str  #: The stage behind which it happens; empty when the run would begin elsewhere.
    visit: int  #: Number of the visit.
    branch: str  #: Path of the branch, or empty.
    before: str  #: Node where the run went from there; empty where it ended.
    before_why: str  #: Recorded reason.
    now: str  #: Node where it would go; empty where it would end.
    now_why: str  #: Reason, with the values that the conditions saw.
    known: str  #: Known part of the new path, in words.


@dataclass(frozen=True, slots=True)
class ExpectedRoute:
    """The expected route of one run on a changed graph."""

    turn: RerouteStep | None  #: Step at which it would leave its path; None for the same path, as far as it went.
    assumed: tuple[str, ...]  #: Nodes that are not what they were, and whose recorded outcomes are taken all the same.
    steps: int  #: Number of recorded stages that were checked.

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
        resolve: Gives the value of a recorded reference: large values are kept elsewhere.
    """
    walk = _Walk(plan, before, resolve)
    for event, values in journal.contexts():
        walk.take(event, values)
        if walk.turn is not None:
            break
    return ExpectedRoute(walk.turn, tuple(walk.assumed), walk.steps)


class _Walk:
    """One run on its way once more."""

    def __init__(self, plan: Plan, before: Graph, resolve: Callable[[Any], Any]) -> None:
        self.plan = plan
        self.before = before
        self._replay = RouteReplay(plan)
        self.assumed: dict[str, None] = {}
        self.steps = 0
        self.turn: RerouteStep | None = None
        self._resolve = resolve
        self._branches: dict[tuple[str, str], list[str]] = {}
        self._at_end: tuple[StageEnd, str, RerouteStep | None] | None = None

    def take(self, event: Event, values: Mapping[str, Any]) -> None:
        """Take what happened, and compare it with what would have."""
        view = self._replay.apply(event)
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
            if view is not None:
                self._commit(event, view, values)

    def _begin(self, event: PipelineStarted) -> None:
        """True if the run would begin elsewhere."""
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

    def _commit(self, event: StageEnd, view: CommitView, values: Mapping[str, Any]) -> None:
        """Leave a recorded stage by the changed graph's rules."""
        self.steps += 1
        planned = view.planned
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
        self._leave(planned, event, view.seen, lambda key: self._resolve(values.get(key)))

    def _leave(self, planned: PlannedNode, event: StageEnd, seen: ConditionOutcome, lookup: Lookup) -> None:
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
        state = self._replay.state
        gate = unsatisfied_gate(self.plan, state)
        if gate is None:
            unvisited = never_visited(self.plan, state.outcomes.keys() | state.skipped.keys())
            if not (self.plan.is_gate_strict and unvisited):
                return _ENDS, None
            why = f"goal gate `{unvisited[0]}` was never visited"
            return _FAILS, self._turn(event, "", why, "the run would fail")
        step = redirect_target(self.plan, gate)
        if step is None:
            why = f"goal gate `{gate}` has not succeeded, and there is no retry_target"
            return _FAILS, self._turn(event, "", why, "the run would fail")
        why = f"goal gate `{gate}` has not succeeded: {step.detail}"
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
    if not edges and (spent := [edge for edge in planned.spent if edge.target == target]):
        return f"the edge to {target} is not eligible: {taken_words(spent[0])}"
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
