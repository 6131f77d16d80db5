"""The result of a run that has stopped: made of the run, its state and its manifest, live or read again.

It does not know how the run went on, nor what is done with the result.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from attractor_nb.lazy_imports import later
from attractor_nb.model.states import as_result
from attractor_nb.redaction import redacted
from attractor_nb.runtime.handles.run_result import RunResult
from attractor_nb.runtime.workspace.worktree import worktree_facts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.context import Context
    from attractor_nb.decisions.run_state import RunState
    from attractor_nb.engine.runner import RunOutcome
    from attractor_nb.runtime.execution import Execution
    from attractor_nb.runtime.handles.event_fold import Followed
    from attractor_nb.runtime.workspace import worktree_changes
else:
    worktree_changes = later("attractor_nb.runtime.workspace.worktree_changes")


def result_of(
    run: Execution,
    followed: Followed,
    state: RunState,
    context: Context,
    ended: RunOutcome,
    manifest: Mapping[str, Any] | None = None,
) -> RunResult:
    """The result of a run that has stopped; its manifest is read where the caller does not have it."""
    place = worktree_changes.place_facts(run.logs_root) if manifest is None else manifest
    worktree = worktree_facts(place) or {}
    return RunResult(
        status=as_result(ended.status),
        reason=redacted(ended.reason),
        run_id=run.id,
        logs_root=run.logs_root,
        completed_nodes=tuple(state.completed),
        node_outcomes=dict(state.outcomes),
        visits=dict(state.visits),
        context=context,
        usage=state.usage,
        usage_by_node=dict(state.usage_by_node),
        duration=ended.duration,
        next_node=state.next_node,
        bound=state.bound,
        graph=run.graph,
        followed=followed,
        read=run.read_stage_file,
        workdir=Path(place["workdir"]) if place.get("workdir") else None,
        branch=str(worktree.get("branch", "")),
    )
