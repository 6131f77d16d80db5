"""Going on from a checkpoint of the older layout, in a fresh directory (run-directory, Migration Path)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attractor_nb.decisions.failure_routes import end_reason, next_step
from attractor_nb.decisions.routing import Seen
from attractor_nb.errors import GraphChanged
from attractor_nb.model.outcome import Outcome, read_status
from attractor_nb.runtime.begin import Beginning, Seams, begin
from attractor_nb.storage.stored_run import read_run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from attractor_nb.context import Context
    from attractor_nb.decisions.plan import Plan
    from attractor_nb.decisions.run_state import RunState
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.prepare.run_options import RunOptions


CONTINUED_FROM = "continued_from"
"""Entry of the manifest: the older run, whose values no log has; only the checkpoints hold them."""


def continue_legacy(
    pipeline: Definition, plan: Plan, checkpoint_dir: Path, options: RunOptions, seams: Seams
) -> Beginning:
    """Begin where the checkpoint says.

    Raises:
        CheckpointCorrupt, GraphChanged, RunNotFound: It cannot go on, and why.
        OptionError, ContextValueError, StorageError, UntrustedSource: As ``begin``.
    """
    stored = read_run(checkpoint_dir)
    checkpoint = stored.checkpoint or {}
    completed: list[str] = list(checkpoint.get("completed_nodes", ()))
    current = str(checkpoint.get("current_node", ""))
    values: Mapping[str, Any] = checkpoint.get("context", {})
    if current not in plan.nodes:
        raise GraphChanged(f"the run stood at {current or 'no node'}, and the graph has no such node")
    start = begin(pipeline, options, seams)
    try:
        start.store.save_manifest({CONTINUED_FROM: str(checkpoint_dir.absolute())})
        start.context.apply_updates(values)
        state = start.state
        state.completed = completed
        for name in completed:
            state.visits[name] = state.visits.get(name, 0) + 1
        state.retries = dict(checkpoint.get("node_retries", {}))
        for name, status in checkpoint.get("node_outcomes", {}).items():
            if read := read_status(str(status)):
                state.outcomes[name] = read
        _place_legacy(plan, state, current, start.context)
    except BaseException:  # an interrupt, too, must give the run up, or a resume finds it locked
        start.store.close()
        raise
    return start


def _place_legacy(plan: Plan, state: RunState, current: str, context: Context) -> None:
    """Set where a legacy run goes on: at ``current``, or after it when it was completed."""
    status = read_status(context.get_string("outcome"))
    if status is not None:
        state.seen = Seen(status, context.get_string("preferred_label"))
    if current not in state.completed or status is None:
        state.next_node = current
        return
    planned = plan.nodes[current]
    outcome = Outcome(status, preferred_label=context.get_string("preferred_label"))
    step = next_step(plan, planned, outcome, state.seen, context.get)
    state.last_status = status
    state.next_node = step.target if step else ""
    state.incoming_edge = step.edge.index if step and step.edge else None
    if step is None and not planned.is_exit:
        state.last_reason = end_reason(plan, planned, outcome, state.seen, context.get)
        state.last_route = "no_match" if state.last_reason else "end"
