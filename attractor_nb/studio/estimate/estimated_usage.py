"""Estimates of the usage of a run before it runs: expected, and worst case.

Token counts are estimates without a tokenizer (`model/calls/messages.py`). Every other assumption is a field of
`Assumptions`. Knows neither prompts nor prices: the caller gives their sizes and a function.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast

from attractor_nb.decisions.fidelity import resolve_thread
from attractor_nb.decisions.planning.plan import Plan, PlannedNode, Visit, likely_path, most_visits
from attractor_nb.decisions.preamble_page import budget_tokens
from attractor_nb.model.outcome import Usage
from attractor_nb.model.vocabulary.value_forms import DEFAULT_MAX_ITEMS, FOR_EACH, MAX_ITEMS, list_key, value_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from attractor_nb.languages.condition.parser import Lookup
    from attractor_nb.model.calls.providers import ModelName

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
    expected: Usage  #: What its visits on the likely path consume.
    worst: Usage  #: What its visits consume at worst, with all attempts, taken alone.


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """The estimated usage of a run."""

    nodes: tuple[NodeEstimate, ...]  #: Its nodes that ask models or run children, in source order.
    expected: Usage  #: All of them on the likely path.
    #: The costliest run that the bounds allow; less than the sum of the nodes where one bound holds for all of them
    #: together.
    worst: Usage
    is_shared: bool  #: One bound does hold for all of them together.
    assumptions: Assumptions  #: What was taken for granted.


@dataclass(frozen=True)
class Estimator:
    """Estimates one plan."""

    plan: Plan
    asked: Mapping[str, NodeCalls]  #: The nodes that ask models.
    children: Mapping[str, RunEstimate]  #: The estimates of child runs, by the node that runs them.
    price: Callable[[ModelName, Usage], float | None]  #: The price of a usage of a model, or None when it is not known.
    assumptions: Assumptions = field(default_factory=Assumptions)  #: What is taken for granted.

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
