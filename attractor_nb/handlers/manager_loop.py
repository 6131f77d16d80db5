"""A supervisor of a child run: it observes it, judges it, steers it, and waits (spec 4.11).

The child is a separate run (``stage.Children``). In this process its events wake the manager, so the
interval only bounds the time between two observations: ``manager.max_cycles`` counts intervals, not events.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from attractor_nb.errors import OptionError, StorageError, TerminalError
from attractor_nb.handlers.codergen import TRUNCATED, answer_in, rendered_node
from attractor_nb.languages.condition import Condition, evaluate_condition, parse_condition
from attractor_nb.maybe_async import call
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.child import PREFIX, Child, ChildSnapshot, spent
from attractor_nb.model.events import RunWarning
from attractor_nb.model.inputs import sets_engine_key
from attractor_nb.model.outcome import Outcome, StageStatus, Usage
from attractor_nb.model.texts import did_you_mean
from attractor_nb.model.vocabulary.value_forms import Duration, comma_list, value_at
from attractor_nb.model.vocabulary.variables import Assignment, parse_mapping
from attractor_nb.stage import StageScope, current_stage

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.context import Context
    from attractor_nb.model.graph import Graph, Node
    from attractor_nb.protocols import CodergenBackend


MAX_INSTRUCTION_CHARACTERS = 20_000
"""Above this an instruction is cut: every prompt of the child would carry it."""


class ManagerLoopHandler:
    """Supervises the child run of a ``house`` node."""

    keeps_own_time = True
    writes_status = False

    def __init__(self, backend: CodergenBackend, guards: Mapping[str, GuardFunction] | None = None) -> None:
        self._backend = backend
        self._guards = guards or {}

    async def execute(self, node: Node, context: Context, graph: Graph, logs_root: Path) -> Outcome:  # noqa: ARG002 - the interface of all handlers
        """SUCCESS when the child has completed or the stop condition holds; else FAIL with the reason.

        A stage that is cancelled stops its child within a second, and takes it up when it is run again.
        """
        scope = current_stage()
        if scope.children is None:
            return Outcome.fail("there is nothing here that runs child pipelines", is_terminal=True)
        node = rendered_node(node, graph, context.get)
        charge = charge_of(node)
        if charge.is_started:
            child = await scope.children.start(node, {})
        else:
            child = await scope.children.join(node, charge.child_run)
        watch = _Watch(node, context, scope, charge, child, self._backend, self._guards)
        timeout = node.timeout
        try:
            async with asyncio.timeout(None if timeout is None else timeout.seconds):
                outcome = await watch.until_done()
            if child.snapshot().status == "failed":
                scope.check_spending()  # with a higher budget it resumes, and has not failed
        except TimeoutError:
            outcome = Outcome.retry(f"timeout: {node.id} took more than {timeout}")
        except BaseException:  # cancelled, too: no child outlives its stage
            await child.stop()
            raise
        look = await child.end()
        return replace(outcome, usage=spent(watch.own_usage + (look.own_usage or Usage())))


class _Watch(Struct):
    """One supervision."""

    node: Node
    context: Context
    scope: StageScope
    charge: Charge
    child: Child
    backend: CodergenBackend
    guards: Mapping[str, GuardFunction]
    own_usage: Usage = field(default_factory=Usage)  #: Usage of the manager's own model calls.
    _steered: int = 0

    async def until_done(self) -> Outcome:
        """Observe, judge, steer and wait until there is an outcome."""
        cycle, left = 1, self.charge.poll_seconds
        while True:
            outcome = await self._look(cycle)
            if outcome is not None:
                return outcome
            left -= await self.child.changed(max(0.0, left))
            if left <= 0:
                cycle, left = cycle + 1, self.charge.poll_seconds
                if cycle > self.charge.max_cycles:
                    return Outcome.fail("Max cycles exceeded")

    async def _look(self, cycle: int) -> Outcome | None:
        look = self.child.snapshot()
        values = look.to_context() if "observe" in self.charge.actions else look.status_values()
        self.context.apply_updates({**values, f"{PREFIX}cycle": cycle})
        if look.is_over:
            return _outcome_of(look)
        verdict = await judge(self.charge, self.guards, look, self.context)
        if verdict is not None:
            self.context.set(f"{PREFIX}guard", verdict.value)
        if verdict is GuardVerdict.ESCALATE:
            where = f" at {look.active_stage}" if look.active_stage else ""
            return Outcome.fail(f"Escalated: {self.child.name} was stopped{where}", is_terminal=True)
        if "steer" in self.charge.actions and verdict in (None, GuardVerdict.INTERVENE):
            await self._steer(look)
        if holds(self.charge.stop, self.context):
            return Outcome(StageStatus.SUCCESS, notes="Stop condition satisfied")
        return None

    async def _steer(self, look: ChildSnapshot) -> None:
        """Tell the child something, unless it was told something just now."""
        if look.steered_ago is not None and look.steered_ago < self.charge.cooldown_seconds:
            return
        text = self.charge.instructions or await self._composed(look)
        if not text.strip():
            return
        self._steered += 1
        self.scope.files.write_text(f"steer-{self._steered}.md", text)
        if not self.child.steer(text[:MAX_INSTRUCTION_CHARACTERS]):
            self._warn(f"{self.child.name} cannot receive an instruction: it runs in another process, or has ended")

    async def _composed(self, look: ChildSnapshot) -> str:
        """An instruction that a model writes; empty when it has none, and then supervision continues."""
        if not self.node.prompt.strip():
            return ""
        prompt = f"{self.node.prompt}\n\n{_telemetry(look)}"
        self.scope.files.write_text(f"steer-{self._steered + 1}.prompt.md", prompt)
        try:
            result: Any = await call(self.backend.run, self.node, prompt, self.context)
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001 - a model that is down must not end the child's work
            self._warn(f"{self.node.id} has no instruction: {type(error).__name__}: {error}")
            return ""
        usage = result.usage if isinstance(result, Outcome | Response) else None
        self.own_usage += usage or Usage()
        if isinstance(result, Outcome):
            return result.notes if result.status.is_success else ""
        if isinstance(result, Response) and result.is_truncated:  # half an instruction may say its opposite
            self._warn(f"{self.node.id} has no instruction: {TRUNCATED}")
            return ""
        if not isinstance(result, str):
            return ""
        return answer_in(result, self.scope.files, f"steer-{self._steered + 1}.reasoning.md")

    def _warn(self, message: str) -> None:
        self.scope.announce(RunWarning(message=message, node=self.node.id))


def _outcome_of(look: ChildSnapshot) -> Outcome:
    if look.status == "completed":
        return Outcome(StageStatus.SUCCESS, notes="Child completed")
    if look.status == "failed":
        return Outcome.fail(f"Child failed: {look.reason}" if look.reason else "Child failed")
    stopped = Outcome.fail(f"Child was stopped: {look.reason}" if look.reason else "Child was stopped")
    return replace(stopped, is_unmeasured=look.is_unmeasured)


def _telemetry(look: ChildSnapshot) -> str:
    """The description of the child for a model."""
    lines = [
        "## The child run",
        "",
        f"- Status: {look.status}",
        f"- Active stage: {look.active_stage or 'none'}",
        f"- Completed: {', '.join(look.completed) or 'nothing yet'}",
    ]
    lines += [f"- {node}: {count} failed attempts" for node, count in look.retries.items() if count]
    return "\n".join(lines)


# A stage that runs another pipeline and ends as that ends (spec 9.4).

_MISSING: Any = object()


class SubPipelineHandler:
    """Runs the pipeline that a node of type ``pipeline`` names."""

    keeps_own_time = True
    writes_status = False

    async def execute(self, node: Node, context: Context, graph: Graph, logs_root: Path) -> Outcome:  # noqa: ARG002 - the interface of all handlers
        """SUCCESS or FAIL as the child ends, with the values that ``pipeline.outputs`` names.

        A stage that is cancelled stops its child within a second, and takes it up when it is run again.
        """
        scope = current_stage()
        if scope.children is None:
            return Outcome.fail("there is nothing here that runs child pipelines", is_terminal=True)
        outputs = parse_mapping(node.get("pipeline.outputs", str, ""))
        inputs = _inputs(parse_mapping(node.get("pipeline.inputs", str, "")), context)
        child = await scope.children.start(node, inputs)
        timeout, late = node.timeout, False
        try:
            async with asyncio.timeout(None if timeout is None else timeout.seconds):
                await until_over(child, scope)
        except TimeoutError:
            late = True
        look = await child.end()
        if late:
            outcome = Outcome.retry(f"timeout: {node.id} took more than {timeout}")
        else:
            outcome = _outcome(node, graph, child, look, outputs)
        return replace(outcome, usage=look.own_usage)


async def until_over(child: Child, scope: StageScope) -> None:
    """Wait until a child run is over; no child outlives its stage."""
    try:
        while not child.snapshot().is_over:
            await child.changed(None)
        if child.snapshot().status == "failed":
            scope.check_spending()
    except BaseException:  # cancelled, too
        await child.stop()
        raise


def _inputs(assignments: Iterable[Assignment], context: Context) -> dict[str, Any]:
    """The inputs of the child."""
    found: dict[str, Any] = {}
    for assignment in assignments:
        value = value_at(context.get, assignment.key, _MISSING) if assignment.key else assignment.value
        if value is _MISSING:
            raise TerminalError(
                f'pipeline.inputs: the context has no "{assignment.key}" for "{assignment.name}"',
                hint="set it before this stage, or give a constant",
            )
        found[assignment.name] = value
    return found


def _outcome(node: Node, graph: Graph, child: Child, look: ChildSnapshot, outputs: Iterable[Assignment]) -> Outcome:
    updates: dict[str, Any] = {"last_stage": node.id, f"{node.id}.run_id": look.run_id}
    missing: list[str] = []
    owned: list[str] = []
    for assignment in outputs:
        value = value_at(child.value, assignment.key, _MISSING) if assignment.key else assignment.value
        if value is _MISSING:
            missing.append(assignment.key)
        elif sets_engine_key(assignment.name, value, graph.nodes):
            owned.append(assignment.name)
        else:
            updates[assignment.name] = value
    name = child.name
    if owned:
        listed = ", ".join(owned)
        reason = f"pipeline.outputs of {node.id} is a key that the engine sets for a stage: {listed}; name it otherwise"
        return Outcome.fail(reason, is_terminal=True).with_updates(updates)
    if look.status == "completed" and not missing:
        return Outcome(StageStatus.SUCCESS, notes=f"{name} completed", context_updates=updates)
    if look.status == "completed":
        reason = f"{name} completed without {', '.join(missing)}, which pipeline.outputs names"
    else:
        verb = "failed" if look.status == "failed" else "was stopped"
        reason = f"{name} {verb}: {look.reason}" if look.reason else f"{name} {verb}"
    failed = Outcome.fail(reason).with_updates(updates)
    return replace(failed, is_unmeasured=look.is_unmeasured)


# The settings of a manager, and its judgement of the child (spec 4.11): no waiting and no child here.

GuardFunction = Callable[..., Any]
"""Judges a child: given its ``ChildSnapshot`` and the context, a ``GuardVerdict``, its word, or a bool."""
ACTIONS: Final = ("observe", "steer", "wait")
DEFAULT_POLL_SECONDS: Final = 45.0
DEFAULT_COOLDOWN_SECONDS: Final = 60.0


class GuardVerdict(StrEnum):
    """The verdict of a guard about a child: continue, intervene with an instruction, or escalate."""

    CONTINUE = "continue"
    INTERVENE = "intervene"
    ESCALATE = "escalate"


class Charge(Struct, frozen=True):
    """The settings of a manager node."""

    poll_seconds: float  #: Time between two looks that are counted.
    max_cycles: int  #: Maximum number of these before it gives up.
    actions: frozenset[str]  #: Its actions in a cycle.
    stop: Condition | None  #: Condition on which it is done, or None.
    guard: Condition | None  #: Condition that should hold, or None.
    escalate: Condition | None  #: Condition on which it gives up its child, or None.
    guard_function: str  #: Name of a registered guard, or empty.
    instructions: str  #: The instruction for its child, or empty.
    cooldown_seconds: float  #: Least time between two instructions.
    is_started: bool  #: It starts its child; otherwise it attaches to an existing one.
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
    """True if a condition is there and holds."""
    if condition is None:
        return False
    outcome, label = context.get_string("outcome"), context.get_string("preferred_label")
    return evaluate_condition(condition, outcome, label, context.get)


async def judge(
    charge: Charge, guards: Mapping[str, GuardFunction], look: ChildSnapshot, context: Context
) -> GuardVerdict | None:
    """The verdict of the guards; None when there are none.

    Escalating takes precedence over intervening, and that over continuing.
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
