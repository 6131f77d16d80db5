"""The recorded state of a stored run: its state, its open questions and its context.

Resume, rewind and the handle of a loaded run all read it here, so a run looks the same to each of
them. Checkpoint and log give the same result; the checkpoint is only faster to read.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attractor_nb.context import Context, ValueStore
from attractor_nb.decisions.kept_state import state_of
from attractor_nb.decisions.log_history import counted_events, displaced, reaches_behind
from attractor_nb.decisions.run_state import RunState
from attractor_nb.decisions.traversal import diamonds_of
from attractor_nb.engine.runner import mirror_graph
from attractor_nb.engine.time_limits import SystemClock
from attractor_nb.errors import CheckpointCorrupt, OptionError
from attractor_nb.interrupts import held_interrupts
from attractor_nb.model.events import DebuggerChanged, PipelineForked, PipelineRewound, StageEnd
from attractor_nb.model.redacted import is_reference
from attractor_nb.storage.files.disk import Disk
from attractor_nb.storage.run_directory import VISITS_NAME, RunDirectory
from attractor_nb.storage.stages.artifact_store import ArtifactStore
from attractor_nb.storage.stored_run import StoredRun, has_event_log, read_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.decisions.planning.plan import Plan
    from attractor_nb.model.events.logged_events import LoggedEvents

MAX_RESTART_HOPS = 10_000


def effective_checkpoint_and_tail(stored: StoredRun) -> tuple[Mapping[str, Any] | None, LoggedEvents]:
    """The newest checkpoint, unless a rewind went behind it, and the events after it that count."""
    checkpoint = stored.checkpoint
    if checkpoint is not None and reaches_behind(stored.tail, checkpoint["log_sequence"]):
        return None, counted_events(stored.events)
    return checkpoint, counted_events(stored.tail)


def restored_state(plan: Plan, stored: StoredRun, before: RunState | None = None) -> RunState:
    """The state that checkpoint and log say.

    Args:
        plan: The plan.
        stored: The run.
        before: How it began; at the start node if not given.
    """
    checkpoint, events = effective_checkpoint_and_tail(stored)
    if checkpoint is None or "state" not in checkpoint:
        state, events = before or RunState(plan.start), counted_events(stored.events)
    else:
        try:
            state = state_of(checkpoint)
        except ValueError as error:
            raise CheckpointCorrupt(
                f"{stored.logs_root}: the state in checkpoint.json has a foreign shape ({error})",
                hint="remove checkpoint*.json: the log alone is enough to resume",
            ) from None
    state.apply_all(events, diamonds_of(plan))
    return state


def restored_context(plan: Plan, stored: StoredRun, inputs: Mapping[str, Any], *, store: ValueStore) -> Context:
    """The context that checkpoint and log say.

    Args:
        plan: The plan, whose graph attributes it mirrors.
        stored: The run.
        inputs: The values that the caller gave.
        store: Where its large values are.
    """
    context = Context(store=store)
    checkpoint, events = effective_checkpoint_and_tail(stored)
    if checkpoint is not None:
        context.restore(checkpoint.get("context", {}), tuple(checkpoint.get("logs", ())))
    else:
        mirror_graph(plan, context)
        context.apply_updates(inputs)
    values, logs = dict[str, Any](), list[str]()
    for event in events.select(StageEnd, DebuggerChanged, PipelineForked, PipelineRewound):
        if not event.branch:  # a branch changes its own copy
            values.update(event.context)
            logs += event.logs if isinstance(event, StageEnd) else ()
    context.restore(values, tuple(logs))
    context.take_changes()
    return context


def kept_directories(stored: StoredRun, counted: LoggedEvents) -> dict[str, str | None]:
    """The directories of stages whose own directory holds a visit that was set aside.

    Args:
        stored: The directory as it is.
        counted: The events of it that count.

    Returns:
        For each such node the directory of its latest visit that counts, or None when there was none.
    """
    return {
        node_id: f"{stored.stage_directory(node_id).name}/{VISITS_NAME}/{kept[0]}.{kept[1]}" if kept else None
        for node_id, kept in displaced(stored.events, counted).items()
    }


def restart_directory(stored: StoredRun, state: RunState) -> Path | None:
    """The directory in which a run continued after a ``loop_restart``, even if both were moved; None without one."""
    if not state.restart_logs_root:
        return None
    recorded = Path(state.restart_logs_root)
    first = stored.logs_root.parent if stored.manifest.get("restart_of") else stored.logs_root
    places = (first / recorded.name, recorded)
    return next((place for place in places if place.is_dir() and place != stored.logs_root), None)


def recorded_commit(stored: StoredRun) -> str:
    """The commit of the run's worktree that its latest stage left; empty when none of its stages left one.

    A restart continues in the worktree as it is, so the records of the directories before it count, too.
    """
    seen: StoredRun | None = stored
    for _ in range(MAX_RESTART_HOPS):
        if seen is None:
            break
        for event in reversed(counted_events(seen.events).select(StageEnd)):
            if event.commit:
                return event.commit
        before = directory_before(seen)
        seen = None if before is None else read_run(before)
    return ""


def directory_before(stored: StoredRun) -> Path | None:
    """The directory that a ``loop_restart`` continued here, even if both were moved; None for the first."""
    recorded = str(stored.manifest.get("restart_of", ""))
    if not recorded:
        return None
    root = stored.logs_root
    linked = Path(os.path.normpath(root / recorded))
    places = (linked, root.parent / linked.name, root.parent)
    return next((place for place in places if place != root and has_event_log(place)), None)


class StoredValues:
    """Large values of a run that has ended, read from its directory on demand."""

    def __init__(self, logs_root: Path) -> None:
        self._logs_root = logs_root

    def externalize(self, key: str, value: Any) -> dict[str, Any]:  # noqa: ARG002 - the interface of value stores
        """Refuse: the directory has no owner now."""
        raise OptionError(f"the run has ended; {key!r} is too large to be kept in its context")

    def resolve(self, reference: Mapping[str, Any]) -> Any:
        """The value behind a reference."""
        disk = Disk()
        with held_interrupts():  # or the open directory would never be closed
            root = RunDirectory(disk, self._logs_root)
            try:
                return ArtifactStore(SystemClock(), disk=disk, root=root).resolve(reference)
            finally:
                root.close()

    def whole(self, value: Any) -> Any:
        """A recorded value, read where the record only refers to it."""
        return self.resolve(value) if is_reference(value) else value


def ended_context(values: Mapping[str, Any], logs: tuple[str, ...], store: ValueStore) -> Context:
    """A context of recorded values; large ones stay where they are until they are read."""
    ended = Context(store=store)
    ended.restore(values, logs)
    return ended
