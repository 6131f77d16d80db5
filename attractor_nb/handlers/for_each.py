"""A stage that is run once for each item of a list (`for_each`), as child runs side by side (ruling 22).

What the run of an item executes is made of the node when the pipeline is prepared
(``decisions/planning/item_graphs.py``); how a child run continues is the business of ``stage.Children``; what the
results mean is decided as for the branches of a fan-out.
"""

from __future__ import annotations

import json
from collections import deque
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec.structs import replace

from attractor_nb.decisions.branch_policies import (
    FIRST_SUCCESS,
    ITEMS,
    WAIT_ALL,
    FanOutPolicy,
    JoinProgress,
    judged,
    kept,
    policy_of,
)
from attractor_nb.errors import OptionError
from attractor_nb.handlers.fan_out import DEFAULT_MAX_PARALLEL
from attractor_nb.handlers.manager_loop import until_over
from attractor_nb.model.branch import BranchResult, ItemResult
from attractor_nb.model.child import Child, Children, ChildSnapshot, ListItem
from attractor_nb.model.inputs import ENGINE_KEYS, INPUTS, RESERVED_PREFIXES, parse_inputs
from attractor_nb.model.outcome import Outcome, StageStatus, Usage
from attractor_nb.model.texts import did_you_mean
from attractor_nb.model.vocabulary.shapes import PIPELINE_TYPE
from attractor_nb.model.vocabulary.value_forms import (
    DEFAULT_MAX_ITEMS,
    FOR_EACH,
    MAX_ITEMS,
    OUTPUTS,
    RESULTS,
    list_key,
    value_at,
)
from attractor_nb.model.vocabulary.variables import parse_mapping
from attractor_nb.side_by_side import SideBySide
from attractor_nb.stage import StageScope, current_stage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from attractor_nb.context import Context
    from attractor_nb.model.graph import Graph, Node

SHOWN_CHARACTERS: Final = 60
"""Longest part of a value that a failure shows."""
_MISSING: Any = object()
_TYPES: Final = {str: "a text", bool: "a boolean", int: "a number", float: "a number", dict: "an object"}


class ForEachHandler:
    """Runs the items of a node, and tells the run how they ended."""

    keeps_own_time = True
    writes_status = False

    async def execute(self, node: Node, context: Context, graph: Graph, logs_root: Path) -> Outcome:  # noqa: ARG002 - the interface of all handlers
        """Run the items, and judge them by the join policy; a known mistake is a FAIL before the first item.

        An empty list is SUCCESS without a run.
        """
        scope = current_stage()
        if scope.children is None:
            return Outcome.fail("there is nothing here that runs child pipelines", is_terminal=True)
        values = _list_of(node, context, graph)
        if isinstance(values, Outcome):
            return values
        if not values:
            empty = f"{node.get(FOR_EACH, str, '')}: the list is empty, so nothing was run"
            return _told(Outcome.success(empty), node, ())
        try:
            policy = policy_of(node, len(values), ITEMS)
        except OptionError as error:
            return Outcome.fail(error.message, is_terminal=True)
        scope.check_spending()
        items = _Items(scope, scope.children, node, policy, values, _given(context))
        results = await items.run(max(1, node.get("max_parallel", int, DEFAULT_MAX_PARALLEL)))
        outcome = _told(_judged(policy, results), node, kept(policy, results))
        usages = [result.usage for result in results if result.usage is not None]
        return replace(outcome, usage=sum(usages, Usage()) if usages else None)


class _Items:
    """The runs of a stage's items."""

    def __init__(
        self,
        scope: StageScope,
        children: Children,
        node: Node,
        policy: FanOutPolicy,
        values: Sequence[Any],
        given: Mapping[str, Any],
    ) -> None:
        self._scope = scope
        self._children = children
        self._node = node
        self._policy = policy
        self._given = given
        self._items = [ListItem(index, len(values), value) for index, value in enumerate(values)]
        self._begun: dict[int, Child] = {}
        self._settling = JoinProgress(policy)

    async def run(self, max_parallel: int) -> tuple[ItemResult, ...]:
        """Run all of them, those that had ended before not again; all results, in the order of the list."""
        work = SideBySide(self._run_one, self._settled)
        waiting: deque[int] = deque()
        for item in self._items:
            child = await self._children.ended(self._node, item)
            if child is None:
                waiting.append(item.index)
            else:
                work.recall(item.index, await self._ends(item, child))
        await work.work_off(waiting, max_parallel)
        for index in waiting:
            work.results[index] = await self._cancelled(index, work.reason)
        return tuple(work.results[item.index] for item in self._items)

    def _settled(self, results: Sequence[BranchResult]) -> str:
        """The reason why the others need not run; one that could not be executed stops them (ruling 51)."""
        if results and results[-1].is_unmeasured:
            return f"cancelled: {results[-1].id} could not be executed"
        return self._settling(results)

    async def _run_one(self, index: int) -> ItemResult:
        item = self._items[index]
        child = self._begun[index] = await self._children.start(self._node, self._given, item)
        await until_over(child, self._scope)
        return await self._ends(item, child)

    async def _ends(self, item: ListItem, child: Child) -> ItemResult:
        """Be done with the run of an item that is over."""
        return _result(self._node, item, child, await child.end())

    async def _cancelled(self, index: int, reason: str) -> ItemResult:
        """An item that was not needed: its run never began, or was stopped."""
        child, usage, run_id = self._begun.get(index), None, ""
        if child is not None:
            look = await child.end()
            usage, run_id = look.own_usage, look.run_id
        name = _name(self._items[index])
        return ItemResult(name, StageStatus.SKIPPED, failure_reason=reason, usage=usage, index=index, run_id=run_id)


def _absence(key: str, context: Context, graph: Graph) -> str:
    """Why a key is missing, or what to do about it."""
    stage, separator, _ = key.partition(".verdict")
    is_answer = separator and stage in graph.nodes and "response_schema" in graph.nodes[stage].attrs
    if is_answer and f"{stage}.response" not in context and f"{stage}.verdict" not in context:
        return f'"{stage}" has left no answer, as a simulated stage leaves none'
    return "set it before this stage"


def _list_of(node: Node, context: Context, graph: Graph) -> list[Any] | Outcome:
    """The items of a node, or the failure that there is no list of them."""
    written = node.get(FOR_EACH, str, "")
    key = list_key(written)
    if not key:
        return Outcome.fail(f'for_each is "{written}", not of the form "item in KEY"', is_terminal=True)
    value = value_at(context.get, key, _MISSING)
    if value is _MISSING:
        reason = f'for_each: the context has no "{key}"{did_you_mean(key, context)}; {_absence(key, context, graph)}'
        return Outcome.fail(reason, is_terminal=True)
    if not isinstance(value, list):
        kind = "null" if value is None else _TYPES[type(value)]
        shown = "" if value is None else f", {_beginning(value)}"
        remedy = "ask for one with response_schema, or set one"
        if key in {each.name for each in parse_inputs(graph.get(INPUTS, str, ""))}:
            remedy = f"""give the input as a list: --param '{key}:=["…"]', or params={{"{key}": […]}} in Python"""
        reason = f'for_each: "{key}" is not a list, but {kind}{shown}; {remedy}'
        return Outcome.fail(reason, is_terminal=True)
    found = cast("list[Any]", value)
    most = node.get(MAX_ITEMS, int, DEFAULT_MAX_ITEMS)
    if len(found) > most:
        reason = f'for_each: "{key}" has {len(found):,} items, and max_items={most} are allowed'
        return Outcome.fail(f"{reason}; make the list shorter, or raise max_items", is_terminal=True)
    return found


def _beginning(value: Any) -> str:
    """The first characters of a value, as JSON."""
    shown: object = value[: 2 * SHOWN_CHARACTERS] if isinstance(value, str) else cast("object", value)
    text = json.dumps(shown, ensure_ascii=False)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}\N{HORIZONTAL ELLIPSIS}"


def _given(context: Context) -> dict[str, Any]:
    """The context values for the run of each item: all but the engine's own of this run."""
    return {key: context.get(key) for key in context if not _is_engines_own(key)}


def _is_engines_own(key: str) -> bool:
    """True if a key says something of the run that it is in, and of no other."""
    return key in ENGINE_KEYS or key.startswith(RESERVED_PREFIXES)


def _name(item: ListItem) -> str:
    return f"item {item.index}"


def _result(node: Node, item: ListItem, child: Child, look: ChildSnapshot) -> ItemResult:
    """The result of an item's run: that of its one stage."""
    commit = child.commit_of(node.id)
    updates = {} if commit is None else {key: child.value(key) for key in commit.context if not _is_engines_own(key)}
    status, reason, notes = StageStatus.FAIL, look.reason, "" if commit is None else commit.outcome.notes
    if look.status == "completed":
        status, reason = StageStatus.SUCCESS if commit is None else commit.outcome.status, ""
    elif not reason:
        reason = f"its run was {look.status}"
    return ItemResult(
        _name(item),
        status,
        notes=notes,
        context_updates=updates,
        failure_reason=reason,
        usage=look.own_usage,
        is_unmeasured=look.is_unmeasured,
        index=item.index,
        run_id=look.run_id,
        output=_output(node, updates) if status.is_success else None,
    )


def _output(node: Node, updates: Mapping[str, Any]) -> Any:
    """The output of an item: its response, the output of its command, else the values that its stage has set."""
    for key in (f"{node.id}.response", "tool.output"):
        if key in updates:
            return updates[key]
    if node.handler_type == PIPELINE_TYPE:
        named = {each.name for each in parse_mapping(node.get("pipeline.outputs", str, ""))}
        return {key: value for key, value in updates.items() if key in named}
    return {key.removeprefix(f"{node.id}."): value for key, value in updates.items()}


def _judged(policy: FanOutPolicy, results: Sequence[ItemResult]) -> Outcome:
    """The outcome of the stage; one item that could not be executed makes it unmeasured (ruling 51)."""
    if policy.join == WAIT_ALL and all(result.status.is_skipped for result in results):
        return Outcome(StageStatus.SKIPPED, notes=f"{len(results)} of {len(results)} items were skipped")
    outcome = judged(policy, results)
    unmeasured = next((result for result in results if result.is_unmeasured), None)
    is_won = policy.join == FIRST_SUCCESS and outcome.status.is_success
    if unmeasured is None or is_won:
        return outcome
    reason = f"{unmeasured.id} could not be executed: {unmeasured.failure_reason}"
    return Outcome(StageStatus.FAIL, notes=outcome.notes, failure_reason=reason, is_unmeasured=True)


def _told(outcome: Outcome, node: Node, results: Sequence[ItemResult]) -> Outcome:
    """The outcome with the results of the items, and their status."""
    return outcome.with_updates(
        {
            "last_stage": node.id,
            f"{node.id}.{OUTPUTS}": [result.output for result in results],
            f"{node.id}.{RESULTS}": [result.to_plain() for result in results],
        }
    )
