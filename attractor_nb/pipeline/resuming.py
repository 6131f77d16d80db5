"""Going on with a stored run: newest valid checkpoint, the log after it, and nothing twice (ruling 29)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from attractor_nb.backends import NAMED
from attractor_nb.decisions.ambiguity import ASK, policy_of, question_id
from attractor_nb.decisions.bounds import bounds_of
from attractor_nb.decisions.failures import end_reason, next_step
from attractor_nb.decisions.history import way_taken
from attractor_nb.decisions.routing import Seen
from attractor_nb.decisions.run_state import RunState
from attractor_nb.errors import GraphChanged, OptionError, RunError, RunNotFound
from attractor_nb.model.events import InterviewCompleted, PipelineResumed, PipelineStarted
from attractor_nb.model.outcome import Outcome, read_status
from attractor_nb.pipeline.asking import is_somebody_asked
from attractor_nb.pipeline.beginning import Beginning, Seams, begin
from attractor_nb.pipeline.recorded import (
    MAX_RESTART_HOPS,
    interviews_under_way,
    kept_directories,
    restart_directory,
    restored_context,
    restored_state,
)
from attractor_nb.pipeline.rewinding import Rewind, check_is_on_the_way, check_rewind, find_place
from attractor_nb.pipeline.trust import check_trust
from attractor_nb.storage.run_store import DirectoryRunStore
from attractor_nb.storage.stored_run import StoredRun, has_event_log, read_facts, read_run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from attractor_nb.context import Context
    from attractor_nb.decisions.plan import Plan
    from attractor_nb.model.events import Event
    from attractor_nb.pipeline.options import RunOptions
    from attractor_nb.pipeline.pipeline import Pipeline

GRAPH_CHANGES = ("error", "warn", "accept")
HOW_TO_GO_BACK = "go back with run.rewind(node) or `attractor-nb resume DIR --from NODE`, or start a new run"


def continue_run(
    pipeline: Pipeline,
    logs_root: Path,
    options: RunOptions,
    seams: Seams,
    *,
    on_graph_change: str,
    rewind: Rewind | None = None,
) -> Beginning:
    """Take ownership of a stored run and find where it goes on: where it stands, or before a visit.

    Raises:
        RunNotFound, RunLocked, GraphChanged, CheckpointCorrupt, RunError: It cannot go on, and why.
        OptionError: ``on_graph_change`` is none of its choices, or there is no such node to rewind to.
    """
    if on_graph_change not in GRAPH_CHANGES:
        raise OptionError(f"on_graph_change is one of {', '.join(GRAPH_CHANGES)}, not {on_graph_change!r}")
    plan = pipeline.compile(bounds_of(pipeline.graph, options.bounds))
    if rewind is not None:
        check_rewind(plan, logs_root, rewind)
    if not has_event_log(logs_root):
        return _continue_legacy(pipeline, plan, logs_root, options, seams)
    check_trust(plan.graph, pipeline.origin, options, logs_root)
    store, stored, state, inputs = _open_latest(plan, logs_root, options, seams)
    try:
        if state.ended and stored.manifest.get("status") != state.ended:
            store.save_manifest({"status": state.ended, "reason": state.reason})  # its end was cut off there
        check_is_on_the_way(stored)
        whole, rewound = stored, None
        if rewind is None:
            _check_end(state)
        else:
            place = find_place(stored, rewind)
            if place.stored.logs_root != stored.logs_root:
                store = _open_instead(store, place.stored.logs_root, options, seams)
            whole, stored, rewound = place.stored, place.shortened, place.record(state)
            inputs = _inputs_of(stored, inputs)
            state = restored_state(plan, stored)
            state.apply(rewound)
        warning = _check_graph(plan, stored, state, on_graph_change)
        _check_incoming_edge(plan, state)
        _check_interrupted(plan, state, interviews_under_way(stored.events), options)
        state.reopen()
        state.resumed_hops = 1 if state.fidelity == "full" else 0
        context = restored_context(plan, stored, inputs, store=store.values)
        if rewound is None and store.manifest.get("restarted_as"):
            store.save_manifest({"restarted_as": ""})  # a rewind, or a restart, that was cut off half way
    except BaseException:
        store.close()
        raise
    run_id = str(stored.manifest.get("run_id", ""))
    way = way_taken(stored.events)
    return Beginning(
        plan,
        store,
        context,
        state,
        run_id,
        inputs,
        sequence=whole.events[-1].sequence if whole.events else 0,
        events=way,
        kept=kept_directories(whole, way),
        interviews=interviews_under_way(way),
        warning=warning,
        rewound=rewound,
    )


def with_recorded_backend(options: RunOptions, logs_root: Path) -> RunOptions:
    """Options that answer prompts as the run did before, when nobody says otherwise.

    Raises:
        OptionError: It was a backend of the caller's own: going on with simulated answers would be a
            success that nobody had.
    """
    if options.backend is not None:
        return options
    recorded = str(read_facts(logs_root).get("backend", ""))
    if recorded in {"", "simulated"}:
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
    for hops in range(MAX_RESTART_HOPS):
        store = DirectoryRunStore.open(
            logs_root,
            durability=options.durability,
            clock=seams.clock,
            disk=seams.disk,
            take_over=options.take_over,
        )
        try:
            stored = read_run(logs_root)
            if not hops:
                _check_begun(stored)
            state = restored_state(plan, stored, before)
        except BaseException:
            store.close()
            raise
        inputs = _inputs_of(stored, inputs)
        restarted = restart_directory(stored, state)
        if restarted is None:
            return store, stored, state, inputs
        store.close()
        logs_root, before = restarted, state.restarted(state.restart_target)
    raise RunError(f"the restarts of {logs_root} have no end")


def _check_begun(stored: StoredRun) -> None:
    """Refuse a run whose first record never reached the disk: what it was given is not known."""
    if not stored.events and not stored.manifest.get("restart_of"):
        raise RunNotFound(
            f"the run in {stored.logs_root} had not begun: its log holds no record",
            hint="no stage of it was run; start the pipeline anew",
        )


def _inputs_of(stored: StoredRun, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    return next((event.inputs for event in stored.events if isinstance(event, PipelineStarted)), inputs)


def _open_instead(
    store: DirectoryRunStore, logs_root: Path, options: RunOptions, seams: Seams
) -> DirectoryRunStore:
    """Own an earlier directory of a run in place of its latest, which nobody has in between."""
    try:
        return DirectoryRunStore.open(
            logs_root,
            durability=options.durability,
            clock=seams.clock,
            disk=seams.disk,
            take_over=options.take_over,
        )
    finally:
        store.close()


def _check_end(state: RunState) -> None:
    if state.ended == "completed":
        raise RunError("the run has ended in success; there is nothing to go on with", hint=HOW_TO_GO_BACK)
    if state.ended == "failed" and not state.is_resumable:
        raise RunError(
            f"the run has failed for good: {state.reason}",
            hint=f"every stage is committed and none would run again; mend the cause, then {HOW_TO_GO_BACK}",
        )


_CHANGED = 'resume with pipeline.dot of the run directory, or say on_graph_change="accept" or "warn"'
_REDACTED = (
    "pipeline.dot of this run holds [redacted] in place of a secret that its source had: resume with your "
    "own pipeline, Pipeline(…).resume(directory)"
)


def _check_graph(plan: Plan, stored: StoredRun, state: RunState, on_graph_change: str) -> str:
    """Compare the graph with the one that ran; a warning, if one was asked for."""
    ran = str(stored.manifest.get("graph_hash", ""))
    for event in way_taken(stored.events):
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
        raise GraphChanged(message, hint=_REDACTED if stored.manifest.get("is_source_redacted") else _CHANGED)
    return message


def _check_interrupted(plan: Plan, state: RunState, interviews: Sequence[Event], options: RunOptions) -> None:
    """Say what becomes of a stage that was cut off; one that may have taken effect is not repeated unasked.

    Raises:
        RunError: A person must decide, and nobody is there to be asked.
    """
    flight = state.in_flight
    if flight is None or not flight.is_started or flight.node_id not in plan.nodes:
        return
    state.on_interrupted = policy_of(plan.nodes[flight.node_id], options.on_interrupted)
    if state.on_interrupted != ASK or is_somebody_asked(options):
        return
    asked = question_id(flight)
    if not any(isinstance(event, InterviewCompleted) and event.question_id == asked for event in interviews):
        raise RunError(
            f"stage {flight.node_id} was cut off and may have taken effect already",
            hint='on_interrupted="rerun" runs it again, on_interrupted="fail" records it as failed,'
            ' and an interviewer is asked: interviewer="console"',
        )


def _check_incoming_edge(plan: Plan, state: RunState) -> None:
    """Forget the edge to the next node when a changed graph has another one in its place."""
    index = state.incoming_edge
    if index is None:
        return
    edge = plan.edges[index].edge if index < len(plan.edges) else None
    ends = (state.completed[-1] if state.completed else "", state.next_node)
    if edge is None or (edge.source, edge.target) != ends:
        state.incoming_edge = None


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
