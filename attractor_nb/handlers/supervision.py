"""What a manager is told to do, and how it judges its child (spec 4.11): no waiting and no child here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from attractor_nb.calling import call
from attractor_nb.errors import OptionError, TerminalError
from attractor_nb.languages.condition import Condition, evaluate_condition, parse_condition
from attractor_nb.model.nearest_name import did_you_mean
from attractor_nb.model.vocabulary.comma_lists import comma_list
from attractor_nb.model.vocabulary.duration import Duration

if TYPE_CHECKING:
    from attractor_nb.context import Context
    from attractor_nb.model.child import ChildSnapshot
    from attractor_nb.model.graph import Node

GuardFunction = Callable[..., Any]
"""Judges a child: given its ``ChildSnapshot`` and the context, a ``GuardVerdict``, its word, or a bool."""
ACTIONS: Final = ("observe", "steer", "wait")
DEFAULT_POLL_SECONDS: Final = 45.0
DEFAULT_COOLDOWN_SECONDS: Final = 60.0


class GuardVerdict(StrEnum):
    """What a guard says about a child: let it go on, tell it something, or give it up."""

    CONTINUE = "continue"
    INTERVENE = "intervene"
    ESCALATE = "escalate"


class Charge(Struct, frozen=True):
    """What a manager node is told to do."""

    poll_seconds: float  #: Time between two looks that are counted.
    max_cycles: int  #: How many of these before it gives up.
    actions: frozenset[str]  #: What it does in a cycle.
    stop: Condition | None  #: Condition on which it is done, or None.
    guard: Condition | None  #: Condition for going on, or None.
    escalate: Condition | None  #: Condition on which it gives up its child, or None.
    guard_function: str  #: Name of a registered guard, or empty.
    instructions: str  #: What it tells its child, or empty.
    cooldown_seconds: float  #: Least time between two instructions.
    is_started: bool  #: It starts its child; else it takes up one that exists.
    child_run: str  #: Run directory of that one, or empty.


def charge_of(node: Node) -> Charge:
    """Read a manager node."""
    actions = actions_of(node)
    for name in actions:
        if name not in ACTIONS:
            raise TerminalError(f'manager.actions has no "{name}"{did_you_mean(name, ACTIONS)}')
    return Charge(
        poll_seconds=node.get("manager.poll_interval", Duration, _seconds(DEFAULT_POLL_SECONDS)).seconds,
        max_cycles=node.get("manager.max_cycles", int, 1000),
        actions=frozenset(actions),
        stop=_condition(node, "manager.stop_condition"),
        guard=_condition(node, "manager.guard"),
        escalate=_condition(node, "manager.escalate"),
        guard_function=node.get("manager.guard_function", str, ""),
        instructions=node.get("manager.instructions", str, ""),
        cooldown_seconds=node.get("manager.steer_cooldown", Duration, _seconds(DEFAULT_COOLDOWN_SECONDS)).seconds,
        is_started=node.get("stack.child_autostart", bool, True),
        child_run=node.get("stack.child_run", str, ""),
    )


def actions_of(node: Node) -> list[str]:
    """The words of ``manager.actions``."""
    return list(comma_list(node.get("manager.actions", str, "") or "observe,wait"))


def holds(condition: Condition | None, context: Context) -> bool:
    """Whether a condition is there and holds."""
    if condition is None:
        return False
    outcome, label = context.get_string("outcome"), context.get_string("preferred_label")
    return evaluate_condition(condition, outcome, label, context.get)


async def judge(
    charge: Charge, guards: Mapping[str, GuardFunction], look: ChildSnapshot, context: Context
) -> GuardVerdict | None:
    """What the guards say; None when there are none.

    Giving up counts more than intervening, and that more than going on.
    """
    if holds(charge.escalate, context):
        return GuardVerdict.ESCALATE
    verdict = await _verdict_of(charge.guard_function, guards, look, context) if charge.guard_function else None
    if charge.guard is not None and verdict in (None, GuardVerdict.CONTINUE):
        return GuardVerdict.CONTINUE if holds(charge.guard, context) else GuardVerdict.INTERVENE
    return verdict


async def _verdict_of(
    name: str, guards: Mapping[str, GuardFunction], look: ChildSnapshot, context: Context
) -> GuardVerdict:
    function = guards.get(name)
    if function is None:
        raise TerminalError(f'no guard is registered as "{name}"', hint=f'Pipeline(…, guards={{"{name}": …}})')
    answer: Any = await call(function, look, context)
    if isinstance(answer, bool):
        return GuardVerdict.CONTINUE if answer else GuardVerdict.INTERVENE
    if answer in GuardVerdict.__members__.values():
        return GuardVerdict(answer)
    raise TerminalError(
        f'the guard "{name}" said {answer!r}', hint=f"a guard says {', '.join(GuardVerdict)}, or True or False"
    )


def checked_guards(guards: Mapping[str, Any]) -> dict[str, GuardFunction]:
    """Guards that can be called."""
    for name, function in guards.items():
        if not callable(function):
            raise OptionError(
                f"guard {name!r} is {type(function).__name__}, not a function",
                hint='guards={"sprint": lambda child, context: "continue"}',
            )
    return dict(guards)


def _condition(node: Node, name: str) -> Condition | None:
    text = node.get(name, str, "")
    return parse_condition(text) if text.strip() else None


def _seconds(seconds: float) -> Duration:
    return Duration(round(seconds * 1000))
