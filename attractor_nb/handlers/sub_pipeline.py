"""A stage that runs another pipeline and ends as that ends (spec 9.4)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from attractor_nb.errors import TerminalError
from attractor_nb.model.inputs import sets_engine_key
from attractor_nb.model.outcome import Outcome, StageStatus
from attractor_nb.model.vocabulary.mappings import parse_mapping
from attractor_nb.model.vocabulary.value_paths import value_at
from attractor_nb.stage import current_stage

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from attractor_nb.context import Context
    from attractor_nb.model.child import Child, ChildSnapshot
    from attractor_nb.model.graph import Graph, Node
    from attractor_nb.model.vocabulary.mappings import Assignment
    from attractor_nb.stage import StageScope

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
    """What the child begins with."""
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
        reason = f"pipeline.outputs of {node.id} would set what the engine says of a stage: {listed}; name it otherwise"
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
