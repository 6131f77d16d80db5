"""When a run has gone on for too long, and along which cycle (ruling 18).

Counts and sums come from the caller; this module only compares them.
"""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from attractor_nb.errors import OptionError
from attractor_nb.model.nearest_name import did_you_mean
from attractor_nb.model.vocabulary.duration import Duration, parse_duration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attractor_nb.model.graph import Graph, Node
    from attractor_nb.model.outcome import Usage

MAX_CYCLE_NODES: Final = 12
SPENDING: Final = frozenset({"max_budget_usd", "max_tokens_total"})
"""The bounds on money and tokens, which nodes may have of their own."""
NO_OVERRIDES: Final[Mapping[str, object]] = MappingProxyType({})
_LEAST: Final = {"max_steps": 1, "max_node_visits": 1}
_NUMBERS: Final = frozenset({"max_budget_usd", "max_duration_seconds"})


class Reached(msgspec.Struct, frozen=True):
    """A bound that a run has come to."""

    bound: str  #: Its name, as a caller raises it: ``max_steps``, ``max_duration`` …
    reason: str  #: Bound, count and cycle in words.


class RunPosition(msgspec.Struct, frozen=True):
    """Where a run stands; put into words only when they are needed.

    >>> str(RunPosition(["start", "plan"], "plan")), str(RunPosition(["start"], "plan"))
    ('in the cycle plan -> plan', 'before plan')
    >>> str(RunPosition(["start"], "plan", "plan was cut off"))
    'plan was cut off'
    """

    completed: Sequence[str]  #: Ids of the stages executed so far, in order.
    node_id: str  #: The node that is next, or under way.
    moment: str = ""  #: What the run is doing there, when it is more than about to begin.
    outer: RunPosition | None = None  #: For a branch: where its fan-out stands, of which the cycle may be.

    @property
    def cycle(self) -> str:
        """The cycle that the next node closes, or else one around it; empty without any."""
        own = cycle_of([*self.completed, self.node_id])
        return own or (self.outer.cycle if self.outer else "")

    def __str__(self) -> str:
        words = [f"in the cycle {cycle}" if (cycle := self.cycle) else "", self.moment]
        return ", ".join(word for word in words if word) or f"before {self.node_id}"


class RunBounds(msgspec.Struct, frozen=True):
    """How far a run may go. None means without end."""

    max_steps: int = 1000  #: Stages that may be executed.
    max_node_visits: int | None = None  #: Visits that any one node may get.
    max_restarts: int = 10  #: How often ``loop_restart`` edges may be taken.
    max_goal_gate_redirects: int = 10  #: How often unsatisfied goal gates may send the run back.
    max_budget_usd: float | None = None  #: Cost at which it is stopped.
    max_tokens_total: int | None = None  #: Tokens at which it is stopped.
    max_duration_seconds: float | None = None  #: Running time at which it is stopped.

    @property
    def are_spending(self) -> bool:
        """Whether money, tokens or time may run out: most runs have no such bound."""
        spending = (self.max_budget_usd, self.max_tokens_total, self.max_duration_seconds)
        return spending != (None, None, None)

    def are_far(self, steps: int, node_visits: int) -> bool:
        """Whether one more stage surely reaches none of them, as in nearly all steps; False says nothing."""
        return (
            steps < self.max_steps
            and (self.max_node_visits is None or node_visits < self.max_node_visits)
            and (self.max_budget_usd is self.max_tokens_total is self.max_duration_seconds is None)
        )


_NAMES: Final = RunBounds.__struct_fields__


def bounds_of(graph: Graph, overrides: Mapping[str, object] = NO_OVERRIDES) -> RunBounds:
    """The graph's bounds, with a caller's own in their place.

    Args:
        graph: Gives the bounds that nobody overrides.
        overrides: Values by the names of ``RunBounds``, or ``max_duration``; None keeps the graph's. A
            duration is a number of seconds, a Duration, or its text (``15m``).
    """
    duration = graph.get("max_duration", Duration)
    bounds = RunBounds(
        graph.get("max_steps", int, 1000),
        graph.get("max_node_visits", int),
        graph.get("max_restarts", int, 10),
        graph.get("max_goal_gate_redirects", int, 10),
        graph.get("max_budget_usd", float),
        graph.get("max_tokens_total", int),
        None if duration is None else duration.seconds,
    )
    changes: dict[str, Any] = {}
    for given, value in overrides.items():
        name = "max_duration_seconds" if given == "max_duration" else given
        if name not in _NAMES:
            raise OptionError(
                f'"{given}" is not a bound of a run{did_you_mean(given, _NAMES)}',
                hint=f"the bounds are {', '.join(_NAMES)}",
            )
        if value is not None:
            changes[name] = checked_bound(given, name, value)
    return replace(bounds, **changes) if changes else bounds


def node_bounds(node: Node) -> RunBounds | None:
    """The bounds on spending of a node, over all its attempts and visits; None without one."""
    bounds = RunBounds(
        max_budget_usd=node.get("max_budget_usd", float), max_tokens_total=node.get("max_tokens_total", int)
    )
    return bounds if bounds.are_spending else None


def checked_bound(given: str, name: str, value: object) -> int | float:
    """The value of a bound.

    Args:
        given: What the caller calls it.
        name: Which of ``RunBounds`` it is like.
        value: A number; for ``max_duration_seconds`` also a Duration or its text.
    """
    least = _LEAST.get(name, 0)
    number: object = value
    if name == "max_duration_seconds":
        duration = parse_duration(value) if isinstance(value, str) else value
        number = duration.seconds if isinstance(duration, Duration) else duration
    kinds = (int, float) if name in _NUMBERS else (int,)
    if isinstance(number, kinds) and not isinstance(number, bool) and least <= number < math.inf:
        return number
    what = "a duration such as 15m or 1.5h, or seconds" if name == "max_duration_seconds" else "a number"
    what = what if name in _NUMBERS else "a whole number"
    raise OptionError(f"{given} cannot be {value!r}", hint=f"give {what}, at least {least}")


def exceeded(
    bounds: RunBounds,
    *,
    steps: int,
    node_id: str,
    node_visits: int,
    usage: Usage,
    elapsed_seconds: float,
    completed: Sequence[str],
    outer: RunPosition | None = None,
) -> Reached | None:
    """Why the next stage may not be executed, or None when it may. Asked before each stage.

    Args:
        bounds: The run's bounds.
        steps: Stages executed so far, all visits counted.
        node_id: The node that is next.
        node_visits: Visits that this node has had so far.
        usage: What the run has consumed so far.
        elapsed_seconds: Running time so far.
        completed: Ids of the stages executed so far, in order.
        outer: For a branch: where its fan-out stands.
    """
    where = RunPosition(completed, node_id, outer=outer)
    if steps >= bounds.max_steps:
        what = f"{counted(steps, 'stage')} executed"
        return _reached("max_steps", bounds.max_steps, what, where)
    visits = bounds.max_node_visits
    if visits is not None and node_visits >= visits:
        what = f"{node_id} had {counted(node_visits, 'visit')}"
        return _reached("max_node_visits", visits, what, where)
    if not bounds.are_spending:
        return None
    return used_up(bounds, usage, elapsed_seconds, where)


def used_up(bounds: RunBounds, usage: Usage, elapsed_seconds: float, where: RunPosition) -> Reached | None:
    """Why nothing more may be spent, or None when it may. Asked before each attempt.

    A cost or token bound of 0 lets free stages go on. Sums of prices are compared as people add them:
    ten times 0.1 is 1.
    """
    budget = bounds.max_budget_usd
    cost = usage.cost_usd or 0.0
    if budget is not None and cost > 0 and (cost >= budget or math.isclose(cost, budget)):
        return _reached("max_budget_usd", f"{budget:g}", f"${cost:.4f} spent", where)
    tokens = bounds.max_tokens_total
    if tokens is not None and (total := usage.total_tokens) > 0 and total >= tokens:
        return _reached("max_tokens_total", tokens, f"{counted(total, 'token')} used", where)
    seconds = bounds.max_duration_seconds
    if seconds is not None and elapsed_seconds >= seconds:
        limit = Duration(round(seconds * 1000))
        return _reached("max_duration", limit, f"{elapsed_seconds:.1f} s of running time", where)
    return None


def cycle_of(completed: Sequence[str]) -> str:
    """The cycle that the last node closes, or empty when it was never there before.

    >>> cycle_of(["start", "plan", "implement", "review", "plan"])
    'plan -> implement -> review -> plan'
    """
    last = len(completed) - 1
    for position in range(last - 1, -1, -1):
        if completed[position] == completed[last]:
            nodes = list(completed[position:])
            if len(nodes) > MAX_CYCLE_NODES:
                half = MAX_CYCLE_NODES // 2
                nodes = [*nodes[:half], "…", *nodes[-half:]]
            return " -> ".join(nodes)
    return ""


def _reached(bound: str, limit: object, what: str, where: RunPosition) -> Reached:
    return Reached(bound, f"{bound}={limit} reached: {what}, {where}")


def counted(number: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "stage"), counted(2, "stage")
    ('1 stage', '2 stages')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
