"""Going on with a stored run: newest valid checkpoint, the log after it, and nothing twice (ruling 29)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attractor_nb.backends import NAMED
from attractor_nb.context import Context
from attractor_nb.decisions.bounds import bounds_of
from attractor_nb.decisions.failures import end_reason, next_step
from attractor_nb.decisions.routing import Seen
from attractor_nb.decisions.run_state import RunState
from attractor_nb.decisions.traversal import diamonds_of
from attractor_nb.engine.runner import mirror_graph
from attractor_nb.errors import CheckpointCorrupt, GraphChanged, OptionError, RunError, RunNotFound
from attractor_nb.model.events import (
    Event,
    InterviewCompleted,
    InterviewStarted,
    PipelineResumed,
    PipelineStarted,
    StageEnd,
)
from attractor_nb.model.outcome import Outcome, read_status
from attractor_nb.pipeline.beginning import Beginning, Seams, begin
from attractor_nb.storage.manifest_file import read_manifest
from attractor_nb.storage.run_store import DirectoryRunStore
from attractor_nb.storage.stored_run import StoredRun, has_event_log, read_run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attractor_nb.decisions.plan import Plan
    from attractor_nb.pipeline.options import RunOptions
    from attractor_nb.pipeline.pipeline import Pipeline

GRAPH_CHANGES = ("error", "warn", "accept")
MAX_RESTART_HOPS = 10_000


def continue_run(
    pipeline: Pipeline, logs_root: Path, options: RunOptions, seams: Seams, *, on_graph_change: str
) -> Beginning:
    """Take ownership of a stored run and find where it goes on.

    Raises:
        RunNotFound, RunLocked, GraphChanged, CheckpointCorrupt, RunError: It cannot go on, and why.
        OptionError: ``on_graph_change`` is none of its choices.
    """
    if on_graph_change not in GRAPH_CHANGES:
        raise OptionError(f"on_graph_change is one of {', '.join(GRAPH_CHANGES)}, not {on_graph_change!r}")
    plan = pipeline.compile(bounds_of(pipeline.graph, options.bounds))
    if not has_event_log(logs_root):
        return _continue_legacy(pipeline, plan, logs_root, options, seams)
    store, stored, state, inputs = _open_latest(plan, logs_root, options, seams)
    try:
        if state.ended and stored.manifest.get("status") != state.ended:
            store.save_manifest({"status": state.ended, "reason": state.reason})  # its end was cut off there
        _check_end(state)
        warning = _check_graph(plan, stored, state, on_graph_change)
        _check_incoming_edge(plan, state)
        _check_interrupted(plan, state, options)
        state.reopen()
        state.resumed_hops = 1 if state.fidelity == "full" else 0
        context = _restored_context(plan, store, stored, inputs)
    except BaseException:
        store.close()
        raise
    run_id = str(stored.manifest.get("run_id", ""))
    return Beginning(
        plan,
        store,
        context,
        state,
        run_id,
        inputs,
        sequence=stored.events[-1].sequence if stored.events else 0,
        events=stored.events,
        interviews=_interviews_under_way(stored.events),
        warning=warning,
    )


def with_recorded_backend(options: RunOptions, logs_root: Path) -> RunOptions:
    """Options that answer prompts as the run did before, when nobody says otherwise.

    Raises:
        OptionError: It was a backend of the caller's own: going on with simulated answers would be a
            success that nobody had.
    """
    manifest, _ = read_manifest(logs_root)
    recorded = str((manifest or {}).get("backend", ""))
    if options.backend is not None or recorded in {"", "simulated"}:
        return options
    if recorded in NAMED:
        return replace(options, backend=recorded)
    raise OptionError(
        f"prompts of this run were answered by {recorded.removesuffix(' (own)')}, and no backend is given",
        hint='resume(…, backend=…) with the same, or backend="simulated"',
    )


def _open_latest(
    plan: Plan, logs_root: Path, options: RunOptions, seams: Seams
) -> tuple[DirectoryRunStore, StoredRun, RunState, Mapping[str, Any]]:
    """Open the run, or the restart directory in which it goes on; with it the run's inputs.

    What a restart directory does not say, because its first record was never written, the one before
    it does.
    """
    before, inputs = RunState(plan.start), dict[str, Any]()
    for _ in range(MAX_RESTART_HOPS):
        store = DirectoryRunStore.open(
            logs_root, durability=options.durability, clock=seams.clock, disk=seams.disk
        )
        try:
            stored = read_run(logs_root)
            _check_begun(stored)
            state = restored_state(plan, stored, before)
        except BaseException:
            store.close()
            raise
        inputs = next((event.inputs for event in stored.events if isinstance(event, PipelineStarted)), inputs)
        restarted = restart_directory(stored, state)
        if restarted is None:
            return store, stored, state, inputs
        store.close()
        logs_root, before = restarted, state.restarted(state.restart_target)
    raise RunError(f"the restarts of {logs_root} have no end")


def restart_directory(stored: StoredRun, state: RunState) -> Path | None:
    """Where a run went on after a ``loop_restart``: beside this directory, even if both were moved."""
    if not state.restart_logs_root:
        return None
    recorded = Path(state.restart_logs_root)
    first = stored.logs_root.parent if stored.manifest.get("restart_of") else stored.logs_root
    places = (first / recorded.name, recorded)
    return next((place for place in places if place.is_dir() and place != stored.logs_root), None)


def restored_state(plan: Plan, stored: StoredRun, before: RunState | None = None) -> RunState:
    """The state that checkpoint and log say.

    Args:
        plan: The plan.
        stored: The run.
        before: How it began; at the start node if not given.

    Raises:
        CheckpointCorrupt: The checkpoint's state has a foreign shape.
    """
    if stored.checkpoint is None or "state" not in stored.checkpoint:
        state, events = before or RunState(plan.start), stored.events
    else:
        try:
            state = RunState.from_checkpoint(stored.checkpoint)
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointCorrupt(
                f"{stored.logs_root}: the state in checkpoint.json has a foreign shape ({error})",
                hint="remove checkpoint*.json: the log alone is enough to go on",
            ) from None
        events = stored.tail
    state.apply_all(events, diamonds_of(plan))
    return state


def _check_begun(stored: StoredRun) -> None:
    """Refuse a run whose first record never reached the disk: what it was given is not known."""
    if not stored.events and not stored.manifest.get("restart_of"):
        raise RunNotFound(
            f"the run in {stored.logs_root} had not begun: its log holds no record",
            hint="no stage of it was run; start the pipeline anew",
        )


def _check_end(state: RunState) -> None:
    if state.ended == "completed":
        raise RunError("the run has ended in success; there is nothing to go on with", hint="start a new run")
    if state.ended == "failed" and not state.is_resumable:
        raise RunError(
            f"the run has failed for good: {state.reason}",
            hint="every stage is committed and none would run again; mend the cause and start a new run",
        )


def _check_graph(plan: Plan, stored: StoredRun, state: RunState, on_graph_change: str) -> str:
    """Compare the graph with the one that ran; a warning, if one was asked for."""
    ran = str(stored.manifest.get("graph_hash", ""))
    for event in stored.events:
        if isinstance(event, PipelineStarted | PipelineResumed) and event.graph_hash:
            ran = event.graph_hash
    missing = [name for name in (state.next_node,) if name and name not in plan.nodes]
    if missing:
        raise GraphChanged(
            f"the run goes on at {missing[0]}, and the graph has no such node",
            hint="resume with the graph that ran: its text is pipeline.dot in the run directory",
        )
    if not ran or ran == plan.graph.content_hash or on_graph_change == "accept":
        return ""
    message = f"the graph is not the one that ran ({plan.graph.content_hash[:8]} against {ran[:8]})"
    if on_graph_change == "error":
        raise GraphChanged(
            message,
            hint='resume with pipeline.dot of the run directory, or say on_graph_change="accept" or "warn"',
        )
    return message


def _check_interrupted(plan: Plan, state: RunState, options: RunOptions) -> None:
    """A stage that was cut off and may have taken effect is not repeated unasked."""
    flight = state.in_flight
    if flight is None or not flight.is_started or flight.node_id not in plan.nodes:
        return
    policy = options.on_interrupted or plan.nodes[flight.node_id].on_interrupted
    if policy == "ask":
        raise RunError(
            f"stage {flight.node_id} was cut off and may have taken effect already",
            hint='on_interrupted="rerun" runs it again, on_interrupted="fail" records it as failed',
        )
    state.is_flight_lost = policy == "fail"


def _check_incoming_edge(plan: Plan, state: RunState) -> None:
    """Forget the edge to the next node when a changed graph has another one in its place."""
    index = state.incoming_edge
    if index is None:
        return
    edge = plan.edges[index].edge if index < len(plan.edges) else None
    ends = (state.completed[-1] if state.completed else "", state.next_node)
    if edge is None or (edge.source, edge.target) != ends:
        state.incoming_edge = None


def _restored_context(
    plan: Plan, store: DirectoryRunStore, stored: StoredRun, inputs: Mapping[str, Any]
) -> Context:
    context = Context(store=store.values)
    if stored.checkpoint is not None:
        context.restore(stored.checkpoint.get("context", {}), tuple(stored.checkpoint.get("logs", ())))
        events = stored.tail
    else:
        mirror_graph(plan, context)
        context.apply_updates(inputs)
        events = stored.events
    for event in events:
        if isinstance(event, StageEnd):
            context.restore(event.context, event.logs)
    context.take_changes()
    return context


def _interviews_under_way(events: Sequence[Event]) -> tuple[Event, ...]:
    """Questions and answers since the last attempt that ended: those of a gate that was cut off.

    An attempt that was cut off as well does not hide them: the answer that one resume took and could
    not commit is there for the next.
    """
    found: list[Event] = []
    for event in reversed(events):
        if isinstance(event, InterviewStarted | InterviewCompleted):
            found.append(event)
        elif isinstance(event, StageEnd):
            break
    return tuple(reversed(found))


def _continue_legacy(
    pipeline: Pipeline, plan: Plan, checkpoint_dir: Path, options: RunOptions, seams: Seams
) -> Beginning:
    """Go on in a fresh directory from a checkpoint of the older layout (run-directory, Migration Path)."""
    stored = read_run(checkpoint_dir)
    checkpoint = stored.checkpoint or {}
    completed: list[str] = list(checkpoint.get("completed_nodes", ()))
    current = str(checkpoint.get("current_node", ""))
    values: Mapping[str, Any] = checkpoint.get("context", {})
    if current not in plan.nodes:
        raise GraphChanged(f"the run stood at {current or 'no node'}, and the graph has no such node")
    start = begin(pipeline, options, seams)
    try:
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
    except BaseException:
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
