"""Where a stored run stands: its latest directory, state and inputs (ruling 29); also of the older layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from attractor_nb.decisions.failure_routes import end_reason, next_step
from attractor_nb.decisions.limits.bounds import bounds_of
from attractor_nb.decisions.routing import Seen
from attractor_nb.errors import GraphChanged, RunError, RunNotFound, StorageError
from attractor_nb.model.events import LOG_FORM, PipelineStarted, UnknownEvent
from attractor_nb.model.outcome import Outcome, read_status
from attractor_nb.runtime.begin import Beginning, Seams, begin
from attractor_nb.runtime.handles.recorded_state import (
    MAX_RESTART_HOPS,
    StoredValues,
    restart_directory,
    restored_state,
)
from attractor_nb.storage.run_directory import utc_text
from attractor_nb.storage.run_store import DirectoryRunStore
from attractor_nb.storage.stored_run import StoredRun, read_run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from attractor_nb.context import Context
    from attractor_nb.decisions.planning.plan import Plan
    from attractor_nb.decisions.run_state import RunState
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.prepare.run_options import RunOptions
    from attractor_nb.storage.log.event_lines import LogScan

CONTINUED_FROM = "continued_from"
"""Entry of the manifest: the older run, whose values no log has; only the checkpoints hold them."""


def continue_legacy(
    pipeline: Definition, plan: Plan, checkpoint_dir: Path, options: RunOptions, seams: Seams
) -> Beginning:
    """Begin where the checkpoint says."""
    stored = read_run(checkpoint_dir)
    checkpoint = stored.checkpoint or {}
    completed: list[str] = list(checkpoint.get("completed_nodes", ()))
    current = str(checkpoint.get("current_node", ""))
    values: Mapping[str, Any] = checkpoint.get("context", {})
    if current not in plan.nodes:
        raise GraphChanged(f"the run stopped at {current or 'no node'}, which the graph does not have")
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


def complete_end(pipeline: Definition, logs_root: Path, options: RunOptions, seams: Seams) -> None:
    """Do for a run that has ended what its process was killed before: name its end in the manifest, tidy up."""
    plan = pipeline.compile(bounds_of(pipeline.graph, options.bounds))
    store, _ = open_latest(plan, logs_root, options, seams)
    store.close()


def _complete_manifest(store: DirectoryRunStore, latest: Latest, *, is_restarted: bool) -> None:
    """Name the end of a directory in its manifest, when its process was killed before it did."""
    stored, state = latest.stored, latest.state
    status = "restarted" if is_restarted else state.ended
    if status and stored.manifest.get("status") != status:
        facts = {"status": status, "end_time": utc_text(stored.events[-1].time)}
        store.save_manifest(facts if is_restarted else {**facts, "reason": state.reason, **state.totals()})


class Latest(Struct, frozen=True):
    """Where a run stands: the directory that it came to, its state, and the run's inputs."""

    stored: StoredRun
    state: RunState
    inputs: Mapping[str, Any]


def open_latest(plan: Plan, logs_root: Path, options: RunOptions, seams: Seams) -> tuple[DirectoryRunStore, Latest]:
    """Open the run, or the restart directory in which it goes on; an end that no manifest names is named."""
    before = None
    for _ in range(MAX_RESTART_HOPS):
        store = own_directory(logs_root, options, seams)
        try:
            latest, restarted = _read_one(plan, logs_root, before, store.scan)
            _complete_manifest(store, latest, is_restarted=restarted is not None)
        except BaseException:  # an interrupt, too, must give the run up, or a resume finds it locked
            store.close()
            raise
        if restarted is None:
            return store, latest
        store.close()
        logs_root, before = restarted, latest
    raise _endless(logs_root)


def read_latest(plan: Plan, logs_root: Path) -> Latest:
    """What ``open_latest`` would find, read without owning it."""
    before = None
    for _ in range(MAX_RESTART_HOPS):
        latest, restarted = _read_one(plan, logs_root, before)
        if restarted is None:
            return latest
        logs_root, before = restarted, latest
    raise _endless(logs_root)


def _read_one(
    plan: Plan, logs_root: Path, before: Latest | None, scan: LogScan | None = None
) -> tuple[Latest, Path | None]:
    """Read one directory of a run, and where it restarted.

    What a restart directory does not say, because its first record was never written, the one before
    it does.
    """
    stored = read_run(logs_root, scan)
    _check_form(stored)
    if before is None:
        _check_begun(stored)
        state = restored_state(plan, stored)
    else:
        state = restored_state(plan, stored, before.state.restarted(before.state.restart_target))
    latest = Latest(stored, state, inputs_of(stored, before.inputs if before else {}))
    return latest, restart_directory(stored, state)


def _endless(logs_root: Path) -> RunError:
    return RunError(f"the restarts of {logs_root} have no end")


def _check_form(stored: StoredRun) -> None:
    """Refuse a run whose log says more than this version understands: it could take it wrongly."""
    unknown = next(iter(stored.events.select(UnknownEvent)), None)
    first = stored.events[0] if stored.events else None
    form = first.schema_version if isinstance(first, PipelineStarted) else LOG_FORM
    if form > LOG_FORM or unknown is not None:
        what = f"its log has form {form}, and this one knows form {LOG_FORM}"
        if form <= LOG_FORM and unknown is not None:
            what = f"record {unknown.sequence} of its log is a {unknown.type}, which this version does not know"
        raise RunError(
            f"a newer version of attractor_nb has written the run in {stored.logs_root}: {what}",
            hint="update attractor_nb to go on with it; it can be looked at with this version",
        )


def _check_begun(stored: StoredRun) -> None:
    """Refuse a run of which neither log nor checkpoint says with what it began."""
    if not stored.events and not stored.manifest.get("restart_of"):
        raise RunNotFound(
            f"the run in {stored.logs_root} had not begun: its log holds no record",
            hint="no stage of it was run; start the pipeline anew",
        )
    if stored.checkpoint is None and (older := stored.manifest.get(CONTINUED_FROM)):
        raise RunError(
            f"{stored.logs_root} went on from a checkpoint of the older layout, and has no checkpoint that "
            "holds what that had",
            hint=f"resume the older run again: attractor-nb resume {older} --graph FILE",
        )


def inputs_of(stored: StoredRun, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values that the run began with, large ones read: a restart has a directory of its own."""
    for event in stored.events.select(PipelineStarted):
        values = StoredValues(stored.logs_root)
        return {key: values.whole(value) for key, value in event.inputs.items()}
    return inputs


def own_directory(logs_root: Path, options: RunOptions, seams: Seams) -> DirectoryRunStore:
    """Own a directory of the run."""
    try:
        return DirectoryRunStore.open(
            logs_root, durability=options.durability, clock=seams.clock, disk=seams.disk, take_over=options.take_over
        )
    except StorageError:
        _check_begun(read_run(logs_root))
        raise
