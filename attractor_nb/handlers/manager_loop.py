"""A supervisor: it looks at a child run, judges it, steers it, and waits (spec 4.11).

The child is a run of its own (``stage.Children``). In this process its events wake the manager, so the
interval is only how often it looks when nothing happens: ``manager.max_cycles`` counts intervals, not
events.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from attractor_nb.calling import call
from attractor_nb.errors import StorageError
from attractor_nb.handlers.call_inputs import rendered_node
from attractor_nb.handlers.response_texts import answer_in
from attractor_nb.handlers.supervision import Charge, GuardFunction, GuardVerdict, charge_of, holds, judge
from attractor_nb.handlers.verdicts import TRUNCATED
from attractor_nb.model.calls.response import Response
from attractor_nb.model.child import PREFIX, spent
from attractor_nb.model.events import RunWarning
from attractor_nb.model.outcome import Outcome, StageStatus, Usage
from attractor_nb.stage import current_stage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from attractor_nb.context import Context
    from attractor_nb.model.child import Child, ChildSnapshot
    from attractor_nb.model.graph import Graph, Node
    from attractor_nb.protocols import CodergenBackend
    from attractor_nb.stage import StageScope

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
    own_usage: Usage = field(default_factory=Usage)  #: What the manager's own model calls consumed.
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
            self._warn(f"{self.child.name} cannot be told anything: it runs in another process, or has ended")

    async def _composed(self, look: ChildSnapshot) -> str:
        """An instruction that a model writes; empty when it has none, and then supervision goes on."""
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
    """What a model is told of the child."""
    lines = [
        "## The child run",
        "",
        f"- Status: {look.status}",
        f"- Active stage: {look.active_stage or 'none'}",
        f"- Completed: {', '.join(look.completed) or 'nothing yet'}",
    ]
    lines += [f"- {node}: {count} failed attempts" for node, count in look.retries.items() if count]
    return "\n".join(lines)
