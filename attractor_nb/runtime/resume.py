"""Resuming a stored run: newest valid checkpoint, the log after it, and nothing twice (ruling 29)."""

from __future__ import annotations

import contextlib
import shlex
from dataclasses import replace
from functools import partial
from itertools import count, takewhile
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from attractor_nb.backends import AGENTS, is_agent
from attractor_nb.decisions.ambiguity import ASK, policy_of, question_id
from attractor_nb.decisions.bounds import bounds_of
from attractor_nb.decisions.log_history import counted_events, interviews_under_way
from attractor_nb.decisions.run_endings import unsatisfied_gate
from attractor_nb.errors import GraphChanged, OptionError, RunError, StorageError
from attractor_nb.model.calls.call_content import AGENT_TASK_FILE, request_file
from attractor_nb.model.events import (
    Event,
    InterviewCompleted,
    ModelCallEnded,
    PipelineResumed,
    PipelineRewound,
    PipelineStarted,
    StageStarted,
)
from attractor_nb.model.outcome import Usage
from attractor_nb.runtime.begin import Injected, RunStart
from attractor_nb.runtime.chosen_plugs import has_interviewer
from attractor_nb.runtime.handles.recorded_state import (
    directory_before,
    kept_directories,
    recorded_commit,
    restored_context,
    restored_state,
)
from attractor_nb.runtime.prepare.declared_inputs import later_inputs
from attractor_nb.runtime.prepare.text_sources import changed_source
from attractor_nb.runtime.prepare.trust import absolute_origin, check_trust
from attractor_nb.runtime.rewind import Rewind, check_rewind, check_still_counts, find_place
from attractor_nb.runtime.stored_state import (
    Latest,
    continue_legacy,
    inputs_of,
    open_latest,
    own_directory,
    read_latest,
    record_options,
    with_recorded_bounds,
)
from attractor_nb.runtime.workspace.workspace import Workspace, Worktree, resumed_workspace
from attractor_nb.storage.run_directory import SOURCE_NAME, first_directory
from attractor_nb.storage.stored_run import StoredRun, has_event_log, read_facts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from attractor_nb.context import Context
    from attractor_nb.decisions.planning.executable_surface import Command
    from attractor_nb.decisions.planning.plan import Plan
    from attractor_nb.decisions.run_state import InFlight, RunState
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.prepare.run_options import BackendSpec, RunOptions
    from attractor_nb.storage.run_store import DirectoryRunStore


_UNKNOWN = Usage(calls=1)


def continue_run(
    pipeline: Definition,
    logs_root: Path,
    options: RunOptions,
    seams: Injected,
    *,
    on_graph_change: str,
    rewind: Rewind | None = None,
    recorded: Sequence[Command] = (),
) -> RunStart:
    """Take ownership of a stored run and find its resume point: its current state, or before a visit.

    Args:
        pipeline: The pipeline that continues.
        logs_root: The run directory.
        options: How.
        seams: Clock, randomness and disk.
        on_graph_change: As of ``Pipeline.resume``.
        rewind: The visit to go back to, if any.
        recorded: What the directory has chosen by itself, as ``recorded_options.choices_of`` says.
    """
    if on_graph_change not in GRAPH_CHANGES:
        raise OptionError(f"on_graph_change must be one of {', '.join(GRAPH_CHANGES)}, not {on_graph_change!r}")
    plan = pipeline.compile(bounds_of(pipeline.graph, options.bounds))
    if rewind is not None:
        check_rewind(plan, logs_root, rewind)
    if not has_event_log(logs_root):
        if recorded:
            check_trust(pipeline, options, logs_root, recorded)
            options = replace(options, trust=True)
        return continue_legacy(pipeline, plan, logs_root, options, seams)
    if options.durability == "none":
        raise OptionError(
            'a run is resumed in its directory, and durability="none" keeps none', hint='use durability="fast"'
        )
    check_own_source(pipeline, logs_root, on_graph_change)
    check_trust(pipeline, options, logs_root, recorded)
    request = _ResumeRequest(pipeline, logs_root, options, seams, on_graph_change, rewind, recorded)
    if options.take_over:
        _resume_point(plan, read_latest(plan, logs_root), request)  # who may not continue must not rob the owner
    with contextlib.ExitStack() as owned:  # given up when it cannot continue: the next resume finds it free
        store, latest = open_latest(plan, logs_root, options, seams)
        owned.callback(store.close)
        beginning = _begun_again(store, latest, request, owned)
        owned.pop_all()
    return beginning


def _begun_again(
    store: DirectoryRunStore, latest: Latest, request: _ResumeRequest, owned: contextlib.ExitStack
) -> RunStart:
    """The starting point of a resumed run, whose directory this process owns.

    Args:
        store: The directory.
        latest: What it says.
        request: The request to resume.
        owned: Closes what is opened besides, if the resume fails.
    """
    options = with_recorded_bounds(request.options, latest.stored.manifest)
    plan = request.pipeline.compile(bounds_of(request.pipeline.graph, options.bounds))
    cut_off = _cut_off(store, latest.stored, latest.state)
    point, left = _resume_point(plan, latest, request), None
    if point.whole.logs_root != latest.stored.logs_root:
        store, left = own_directory(point.whole.logs_root, options, request.seams), store
        owned.callback(store.close)
    _reopen(point.state, options.backend)
    context = _context_there(plan, store, point)
    context.restore(added := later_inputs(request.pipeline, context))
    if point.rewound is not None:
        cut_off = {}  # what is set aside was spent: the record of the rewind carries it
    elif store.manifest.get("restarted_as"):
        store.save_manifest({"restarted_as": ""})  # a rewind, or a restart, that was cut off half way
    workspace, moved = _workspace_again(plan, store, point, options, request.recorded)
    changed = point.warning or _stored_goes_on(request.pipeline, request.logs_root)
    counted = counted_events(point.stored.events)
    return RunStart(
        plan,
        store,
        context,
        point.state,
        str(point.stored.manifest.get("run_id", "")),
        {**added, **point.inputs},
        workspace,
        unlisted=next((event.unlisted for event in counted.select(PipelineStarted)), ()),
        sequence=point.whole.events[-1].sequence if point.whole.events else 0,
        restart_of=str(directory_before(point.whole) or ""),
        events=counted,
        kept=kept_directories(point.whole, counted),
        interviews=interviews_under_way(counted),
        cut_off=cut_off,
        warning="; ".join(filter(None, (changed, moved))),
        rewound=point.rewound,
        left=left,
    )


def _context_there(plan: Plan, store: DirectoryRunStore, point: _ResumePoint) -> Context:
    """The context at the resume point; a rewind brings changes of its own."""
    context = restored_context(plan, point.stored, point.inputs, store=store.values)
    if point.rewound is not None:
        context.restore(point.rewound.context)
    return context


def _workspace_again(
    plan: Plan, store: DirectoryRunStore, point: _ResumePoint, options: RunOptions, recorded: Sequence[Command]
) -> tuple[Workspace, str]:
    """The workspace of a run, restored to its state and recorded; and a warning for the user, or empty."""
    stored = point.stored
    facts = read_facts(first_directory(stored.logs_root))
    workspace, place = resumed_workspace(options, facts, stored.logs_root)
    kept = _placed(workspace, plan, stored, point.state, is_rewind=point.rewound is not None)
    record_options(store, plan.graph, options, place, recorded)
    return workspace, _elsewhere(facts, place) or kept


def _elsewhere(facts: Mapping[str, Any], place: Mapping[str, Any]) -> str:
    """A warning that a run without its own place resumes in another working directory; else empty."""
    before, now = facts.get("workdir"), place.get("workdir")
    if before and now and before != now and not facts.get("isolation"):
        return f"the run worked in {before} before, and is resumed in {now}"
    return ""


def _stored_goes_on(pipeline: Definition, logs_root: Path) -> str:
    """That an edited file is not what is active, and how it would; empty when it is as the run began."""
    path = changed_source(pipeline, logs_root / SOURCE_NAME, read_facts(logs_root))
    if path is None:
        return ""
    return (
        f"{path} has changed since this run began, or a file of its texts: the run is resumed with the "
        'graph stored in its directory; to use the edited one, resume with it and on_graph_change="accept"'
    )


def _placed(workspace: Workspace, plan: Plan, stored: StoredRun, state: RunState, *, is_rewind: bool) -> str:
    """Bring the run's worktree to the state of the run; a warning for the user, or empty."""
    if not isinstance(workspace, Worktree):
        return ""
    flight = state.in_flight
    is_cut_off = (
        flight is not None
        and flight.is_started
        and (planned := plan.nodes.get(flight.node_id)) is not None
        and planned.handler_type != "wait.human"  # a person may mend something while the gate waits
    )
    kept = workspace.stand_at(recorded_commit(stored), is_cut_off=is_cut_off or is_rewind)
    return f"what was discarded from the worktree is kept on branch {kept}" if kept else ""


def _cut_off(store: DirectoryRunStore, stored: StoredRun, state: RunState) -> dict[str, Usage]:
    """By node: what attempts had consumed that were cut off with their process; the state counts it, too."""
    found: dict[str, Usage] = {}
    under_way = (branch.state for branch in state.branches.open.values() if branch.end is None)
    for place in (state, *under_way):
        flight = place.in_flight
        if flight is None or not flight.is_started:
            continue
        asked = _requests(partial(store.read_stage_file, flight.node_id, branch=place.branch))
        usage = cut_off_usage(flight, place.branch, stored.events, asked)
        if usage != Usage():
            state.spend(flight.node_id, usage)
            found[flight.node_id] = found.get(flight.node_id, Usage()) + usage
    return found


def _requests(read: Callable[[str], str | None]) -> int:
    """The number of requests that the latest attempt of a stage has made, counted in its files."""
    try:
        made = sum(1 for _ in takewhile(lambda number: read(request_file(number)) is not None, count(1)))
        return made + (read(AGENT_TASK_FILE) is not None)
    except StorageError:  # the file there is foreign
        return 0


def _reopen(state: RunState, backend: BackendSpec) -> None:
    """Resume; the first model stage, in each branch too, has less of the past with it (spec 5.3, step 6).

    A run of a single stage gives it all that it had in the parent: that stage is to be executed with the same past.
    The session of an agent is stored elsewhere and may change, so such a stage has less, too.
    """
    state.reopen()
    has_session = is_agent(backend) or (isinstance(backend, str) and backend in AGENTS)
    if state.last_step and not has_session:
        return
    for place in (state, *(branch.state for branch in state.branches.open.values())):
        place.resumed_hops = 1 if place.fidelity == "full" else 0


class _ResumeRequest(Struct, frozen=True):
    """A request to resume a run, with its options."""

    pipeline: Definition
    logs_root: Path
    options: RunOptions
    seams: Injected
    on_graph_change: str
    rewind: Rewind | None
    recorded: Sequence[Command]


class _ResumePoint(Struct, frozen=True):
    """The point at which a run resumes."""

    whole: StoredRun  #: The directory as it is.
    stored: StoredRun  #: The directory as far as it counts.
    state: RunState  #: The state there.
    inputs: Mapping[str, Any]  #: The run's inputs.
    warning: str  #: Requested warning, or empty.
    rewound: PipelineRewound | None  #: For a rewind: the record of it.


def _resume_point(plan: Plan, latest: Latest, request: _ResumeRequest) -> _ResumePoint:
    """Find the resume point of a run in its directories. Nothing is changed on the disk."""
    stored, state, inputs = latest.stored, latest.state, latest.inputs
    check_still_counts(stored)
    whole, rewound = stored, None
    if request.rewind is None:
        check_end(plan, stored, state)
    else:
        place = find_place(stored, request.rewind)
        whole, stored, rewound = place.stored, place.shortened, place.record(state)
        inputs = inputs_of(stored, inputs)
        state = restored_state(plan, stored)
        state.apply(rewound)
    warning = check_graph(plan, stored, state, request.on_graph_change)
    check_incoming_edge(plan, state)
    check_interrupted(plan, state, interviews_under_way(stored.events), request.options)
    return _ResumePoint(whole, stored, state, inputs, warning, rewound)


def cut_off_usage(flight: InFlight, branch: str, events: Iterable[Event], asked: int) -> Usage:
    """The usage of a cut-off attempt; empty for one that an earlier resume has counted.

    Args:
        flight: The attempt.
        branch: Path of its branch, or empty.
        events: The log.
        asked: How many requests it has made.
    """
    own = (flight.node_id, flight.visit, flight.attempt, branch)
    spent, ended, is_counted = Usage(), 0, False
    for event in events:
        if isinstance(event, PipelineResumed):
            is_counted = True
        elif isinstance(event, StageStarted | ModelCallEnded) and own == (
            event.name,
            event.visit,
            event.attempt,
            event.branch,
        ):
            if isinstance(event, StageStarted):
                spent, ended, is_counted = Usage(), 0, False
            else:
                ended += 1
                spent += event.usage or Usage()
    if is_counted:
        return Usage()
    for _ in range(max(0, asked - ended)):
        spent += _UNKNOWN
    return spent


# Checks that a stored run can resume: each refusal, and what to do instead. They change no file.

GRAPH_CHANGES = ("error", "warn", "accept")


def check_fork(
    pipeline: Definition,
    plan: Plan,
    stored: StoredRun,
    state: RunState,
    options: RunOptions,
    on_graph_change: str,
    recorded: Sequence[Command],
) -> None:
    """Check that a run could continue in this state, before a directory is made for it.

    Args:
        pipeline: The pipeline that would continue.
        plan: The same, compiled.
        stored: The parent's directory as if its log ended there.
        state: Where the fork begins.
        options: The options with which it would continue.
        on_graph_change: As of ``Pipeline.resume``.
        recorded: What the parent's directory chooses by itself, as ``recorded_options.choices_of`` says.
    """
    check_own_source(pipeline, stored.logs_root, on_graph_change)
    check_trust(pipeline, options, stored.logs_root, recorded)
    check_graph(plan, stored, state, on_graph_change)


def check_end(plan: Plan, stored: StoredRun, state: RunState) -> None:
    """Refuse a run that has ended."""
    if state.ended == "completed":
        raise RunError("the run has completed; there is nothing to resume", hint=_how_to_go_back(plan, stored, state))
    if state.ended == "failed" and not state.is_resumable:
        raise RunError(
            f"the run has failed permanently: {state.reason}",
            hint="every stage is committed and none would run again; remove the cause, then "
            + _how_to_go_back(plan, stored, state),
        )


def rewind_of_failure(pipeline: Definition, logs_root: Path, options: RunOptions) -> Rewind | None:
    """The way back to where a run that has failed for good can be tried again; None for another run."""
    plan = pipeline.compile(bounds_of(pipeline.graph, options.bounds))
    state = read_latest(plan, logs_root).state
    if state.ended != "failed" or state.is_resumable:
        return None
    return Rewind(_place_to_go_back_to(plan, state))


def _how_to_go_back(plan: Plan, stored: StoredRun, state: RunState) -> str:
    """The calls that go back to where there is something to be done differently."""
    node_id = _place_to_go_back_to(plan, state)
    command = shlex.join(["attractor-nb", "resume", str(stored.logs_root), "--from", node_id])
    return f"go back with run.rewind({node_id!r}) or `{command}`, or start a new run"


def _place_to_go_back_to(plan: Plan, state: RunState) -> str:
    """The goal gate that kept the run from ending, else the latest stage that did some work.

    A diamond passes on what the stage before it reported, so a run that failed there failed in that stage.
    """
    gate = unsatisfied_gate(plan, state) if state.ended == "failed" else None
    if gate in state.completed:
        return gate
    ends = {plan.start, *(node.id for node in plan.graph.exit_nodes)}
    return next(
        (name for name in reversed(state.completed) if name not in ends and not plan.nodes[name].is_conditional),
        plan.start,
    )


_CHANGED = 'resume with pipeline.dot of the run directory, or say on_graph_change="accept" or "warn"'
_REDACTED = (
    "pipeline.dot of this run holds [redacted] in place of a secret that its source had: resume with your "
    "own pipeline, Pipeline(…).resume(directory)"
)


def check_own_source(pipeline: Definition, logs_root: Path, on_graph_change: str) -> None:
    """Refuse the source that a run directory keeps without its secrets: it cannot be what ran.

    Said before the user is asked to trust commands that would not be run either.
    """
    if on_graph_change != "error" or pipeline.origin != absolute_origin(logs_root / SOURCE_NAME):
        return
    facts = read_facts(logs_root)
    if facts.get("is_source_redacted") and facts.get("graph_hash") != pipeline.graph.content_hash:
        raise GraphChanged("the pipeline that the run directory keeps is not the one that ran", hint=_REDACTED)


def check_graph(plan: Plan, stored: StoredRun, state: RunState, on_graph_change: str) -> str:
    """Compare the graph with the one that ran; a warning, if one was asked for."""
    ran = str(stored.manifest.get("graph_hash", ""))
    for event in counted_events(stored.events).select(PipelineStarted, PipelineResumed):
        ran = event.graph_hash or ran
    missing = [name for name in (state.next_node,) if name and name not in plan.nodes]
    if missing:
        raise GraphChanged(
            f"the run would resume at {missing[0]}, which the graph does not have",
            hint="resume with the graph that ran: its text is pipeline.dot in the run directory",
        )
    if not ran or ran == plan.graph.content_hash or on_graph_change == "accept":
        return ""
    message = f"the graph is not the one that ran ({plan.graph.content_hash[:8]} against {ran[:8]})"
    if on_graph_change == "error":
        raise GraphChanged(message, hint=_REDACTED if stored.manifest.get("is_source_redacted") else _CHANGED)
    return message


def check_interrupted(plan: Plan, state: RunState, interviews: Sequence[Event], options: RunOptions) -> None:
    """Say what becomes of stages that were cut off; one that may have taken effect is not repeated unasked."""
    answered = {event.question_id for event in interviews if isinstance(event, InterviewCompleted)}
    under_way = (branch.state for branch in state.branches.open.values() if branch.end is None)
    for place in (state, *under_way):
        flight = place.in_flight
        if flight is None or not flight.is_started or flight.node_id not in plan.nodes:
            continue
        place.on_interrupted = policy_of(plan.nodes[flight.node_id], options.on_interrupted)
        if place.on_interrupted != ASK or has_interviewer(options):
            continue
        within = f"{place.branch}/" if place.branch else ""
        if within + question_id(flight) not in answered:
            raise RunError(
                f"stage {flight.node_id} was cut off and may have taken effect already",
                hint='on_interrupted="rerun" runs it again, on_interrupted="fail" records it as failed,'
                ' and an interviewer is asked: interviewer="console"',
            )


def check_incoming_edge(plan: Plan, state: RunState) -> None:
    """Forget the edge to the next node when a changed graph has another one in its place."""
    index = state.incoming_edge
    if index is None:
        return
    edge = plan.edges[index].edge if index < len(plan.edges) else None
    ends = (state.completed[-1] if state.completed else "", state.next_node)
    if edge is None or (edge.source, edge.target) != ends:
        state.incoming_edge = None
