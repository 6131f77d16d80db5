"""Breakpoints, which pause a run: parsed from text, and matched against a moment of a walk.

| text | stops |
| --- | --- |
| ``plan``, ``plan@2`` | before each visit of a node; before that visit |
| ``plan->review`` | before a stage that is entered by that edge |
| ``after:plan`` | when the node has an outcome, and no edge is chosen yet |
| ``on:error`` | likewise, of any stage that has failed and is not tried again |
| ``context.n=3`` | before a stage, when a condition begins to hold (spec 10) |
| ``review>draft`` | any of these in the child run of ``review`` |

This module knows the graph and the values of a moment. It knows no run.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from attractor_nb.decisions.retries import final_outcome, should_retry
from attractor_nb.errors import OptionError
from attractor_nb.languages.condition.parser import Condition, evaluate_condition, parse_condition
from attractor_nb.model.outcome import Outcome
from attractor_nb.model.stop import Stop
from attractor_nb.model.texts import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from attractor_nb.decisions.commits import Execute, StageResult
    from attractor_nb.decisions.planning.plan import Plan
    from attractor_nb.decisions.run_state import RunState
    from attractor_nb.model.events import StageStarted
    from attractor_nb.model.graph import Graph


ON_ERROR: Final = "on:error"
AFTER: Final = "after:"
BEFORE_MOMENT: Final = "before"
AFTER_MOMENT: Final = "after"
_ID: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_CHILD: Final = re.compile(rf"\s*({_ID})\s*(?<!-)>\s*(?=\S)")
_NODE: Final = re.compile(rf"({_ID})(?:@([1-9][0-9]{{0,8}}))?")
_EDGE: Final = re.compile(rf"({_ID})\s*->\s*({_ID})")
_PREFIX: Final = re.compile(rf"{_ID}\s*:\s*(.*)")
_FORMS: Final = 'a node ("plan"), an edge ("plan->review"), "after:plan", "on:error" or a condition ("context.n=3")'


class Breakpoint(msgspec.Struct, frozen=True):
    """A place at which a run pauses."""

    text: str  #: As users write it; the same text is the same breakpoint.
    path: str = ""  #: Nodes whose child runs lead there: ``review>``; empty for the run itself.
    node: str = ""  #: Stop before it, or after it; empty for the other kinds.
    visit: int = 0  #: Only before this visit; 0 for each.
    source: str = ""  #: Stop at the edge from here to ``node``; or empty.
    is_after: bool = False  #: Stop when there is an outcome.
    is_error: bool = False  #: Stop when it is a failure.
    condition: Condition | None = None  #: Stop when it begins to hold; or None.


class WalkMoment(NamedTuple):
    """The position of a walk between two steps."""

    node: str  #: The stage that is next, or that has just ended.
    visit: int  #: Number of its visit.
    is_after: bool = False  #: It has ended.
    came_from: str = ""  #: Before a stage: where the edge begins by which it is entered; empty after a jump.
    is_error: bool = False  #: After it: it has failed, and is not tried again.
    status: str = "success"  #: The outcome that conditions see.
    label: str = ""  #: The preferred label that they see.
    lookup: Callable[[str], object] = lambda _: None  #: Gives a value of the context.


def read_breakpoint(text: object, graph: Graph) -> Breakpoint:
    """A breakpoint from its text."""
    if not isinstance(text, str) or not text.strip():
        raise OptionError(f"a breakpoint must be text, not {text!r:.80}", hint=f"use {_FORMS}")
    rest, path = text.strip(), ""
    while (found := _CHILD.match(rest)) is not None:
        owner, rest = found[1], rest[found.end() :]
        graph = _child_of(graph, owner)
        path += f"{owner}>"
    return _read_in(rest, path, graph)


def _read_in(text: str, path: str, graph: Graph) -> Breakpoint:
    if text == ON_ERROR:
        return Breakpoint(path + text, path, is_after=True, is_error=True)
    if text.startswith(AFTER):
        node = text.removeprefix(AFTER).strip()
        _check_node(node, graph)
        return Breakpoint(f"{path}{AFTER}{node}", path, node=node, is_after=True)
    if edge := _EDGE.fullmatch(text):
        source, target = edge.groups()
        _check_edge(source, target, graph)
        return Breakpoint(f"{path}{source}->{target}", path, node=target, source=source)
    if named := _NODE.fullmatch(text):
        _check_node(named[1], graph)
        return Breakpoint(path + text, path, node=named[1], visit=int(named[2] or 0))
    if prefixed := _PREFIX.fullmatch(text):
        hint = f'"{prefixed[1]}" alone stops before it' if prefixed[1] in graph.nodes else f"use {_FORMS}"
        raise OptionError(f"{text!r:.80} is not a breakpoint", hint=hint)
    return Breakpoint(path + text, path, condition=parse_condition(text))


def _child_of(graph: Graph, owner: str) -> Graph:
    _check_node(owner, graph)
    child = graph.children.get(owner)
    if child is None:
        with_children = ", ".join(graph.children) or "none"
        raise OptionError(
            f"node {owner!r} has no child pipeline, so nothing can stop in it", hint=f"nodes with one: {with_children}"
        )
    return child


def _check_node(node: str, graph: Graph) -> None:
    if node not in graph.nodes:
        raise OptionError(
            f"the pipeline has no node {node!r}{did_you_mean(node, graph.nodes)}", hint=f"a breakpoint is {_FORMS}"
        )


def _check_edge(source: str, target: str, graph: Graph) -> None:
    _check_node(source, graph)
    _check_node(target, graph)
    targets = list(dict.fromkeys(edge.target for edge in graph.outgoing_edges(source)))
    if target not in targets:
        raise OptionError(
            f"the pipeline has no edge {source}->{target}",
            hint=f"edges lead from {source} to {', '.join(targets) or 'nowhere'}",
        )


def holding(breakpoints: Iterable[Breakpoint], moment: WalkMoment) -> frozenset[str]:
    """The texts of the breakpoints that hold at a moment."""
    return frozenset(entry.text for entry in breakpoints if _holds(entry, moment))


def _holds(entry: Breakpoint, moment: WalkMoment) -> bool:
    if entry.condition is not None:
        return not moment.is_after and evaluate_condition(entry.condition, moment.status, moment.label, moment.lookup)
    if entry.is_after is not moment.is_after:
        return False
    if entry.is_error:
        return moment.is_error
    if entry.node != moment.node:
        return False
    if entry.source:
        return entry.source == moment.came_from
    return entry.visit in (0, moment.visit)


def first_to_stop(
    breakpoints: Sequence[Breakpoint], holds: frozenset[str], held_before: frozenset[str]
) -> Breakpoint | None:
    """The breakpoint at which a walk stops now, or None. A condition stops when it begins to hold.

    Args:
        breakpoints: All, in the order in which they were set.
        holds: The texts of those that hold now.
        held_before: Likewise at the last moment of this walk.
    """
    for entry in breakpoints:
        is_new = entry.condition is None or entry.text not in held_before
        if entry.text in holds and is_new:
            return entry
    return None


# The moments of a walk at which a run may pause, as breakpoints and users see them.


def moment_before(plan: Plan, state: RunState, started: StageStarted, lookup: Callable[[str], object]) -> WalkMoment:
    """The moment before a visit begins; ``lookup`` gives a value of the walk's context."""
    edge = None if state.incoming_edge is None else plan.edges[state.incoming_edge].edge
    seen = state.seen
    came_from = edge.source if edge is not None and edge.target == started.name else ""
    return WalkMoment(
        started.name,
        started.visit,
        came_from=came_from,
        status=seen.status.value,
        label=seen.preferred_label,
        lookup=lookup,
    )


def lasting_outcome(state: RunState, effect: Execute, result: StageResult) -> Outcome | None:
    """The final outcome of a stage; None where it is tried again, or was cut off or lost."""
    if result.is_cut_off or result.lost or result.over_budget:
        return None
    failures = 1 + (state.in_flight.failures if state.in_flight else 0)
    if result.outcome.status.is_failure and should_retry(effect.planned.retry, result.outcome, failures):
        return None
    return final_outcome(effect.planned, result.outcome, failures)


def moment_after(started: StageStarted, outcome: Outcome) -> WalkMoment:
    """The moment after a stage has an outcome, before an edge is chosen."""
    return WalkMoment(
        started.name,
        started.visit,
        is_after=True,
        is_error=outcome.status.is_failure,
        status=outcome.status.value,
        label=outcome.preferred_label,
    )


def outcome_before(state: RunState) -> Outcome | None:
    """The outcome of the stage before the next one; None where there was none."""
    if not state.completed:
        return None
    reason = state.last_reason if state.last_status.is_failure else ""
    return Outcome(state.last_status, notes=state.last_notes, failure_reason=reason)


def stop_at(moment: WalkMoment, why: str, *, number: int, path: str, branch: str, outcome: Outcome | None) -> Stop:
    """The stop of a walk, as it is shown.

    Args:
        moment: Position of the stop.
        why: The breakpoint, ``step`` or ``pause``.
        number: Number of the stop.
        path: Nodes whose child runs lead to the run.
        branch: The branch in it.
        outcome: Outcome of the stage that has just ended.
    """
    return Stop(
        number=number,
        node=moment.node,
        moment=AFTER_MOMENT if moment.is_after else BEFORE_MOMENT,
        visit=moment.visit,
        breakpoint=why,
        branch=branch,
        path=path,
        edge=f"{moment.came_from}->{moment.node}" if moment.came_from else "",
        outcome=outcome,
    )
