"""Going on with a stored run: newest valid checkpoint, the log after it, and nothing twice (ruling 29)."""

from __future__ import annotations

import contextlib
import shlex
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, takewhile
from typing import TYPE_CHECKING, Any

from attractor_nb import backends
from attractor_nb.backends import NAMED
from attractor_nb.decisions.ambiguity import ASK, policy_of, question_id
from attractor_nb.decisions.bounds import bounds_of
from attractor_nb.decisions.cut_off import cut_off_usage
from attractor_nb.decisions.goal_gates import unsatisfied_gate
from attractor_nb.decisions.log_history import way_taken
from attractor_nb.errors import GraphChanged, OptionError, RunError, RunNotFound, StorageError
from attractor_nb.model.call_content import AGENT_TASK_FILE, request_file
from attractor_nb.model.events import (
    LOG_FORM,
    InterviewCompleted,
    PipelineResumed,
    PipelineStarted,
    UnknownEvent,
)
from attractor_nb.model.outcome import Usage
from attractor_nb.runtime.begin import (
    Beginning,
    Seams,
    backend_facts,
    describe_backend,
    is_answered_by_nobody,
)
from attractor_nb.runtime.handles.final_context import StoredValues
from attractor_nb.runtime.handles.recorded_state import (
    MAX_RESTART_HOPS,
    interviews_under_way,
    kept_directories,
    recorded_commit,
    restart_directory,
    restored_context,
    restored_state,
)
from attractor_nb.runtime.older_layout import CONTINUED_FROM, continue_legacy
from attractor_nb.runtime.plugs.interviewer import is_somebody_asked
from attractor_nb.runtime.prepare.declared_inputs import later_inputs
from attractor_nb.runtime.prepare.run_options import BOUNDS
from attractor_nb.runtime.prepare.text_sources import changed_source
from attractor_nb.runtime.prepare.trust import absolute_origin, check_trust
from attractor_nb.runtime.rewind import Rewind, check_is_on_the_way, check_rewind, find_place
from attractor_nb.runtime.workspace.workspace import Worktree, site_again, with_recorded_workdir
from attractor_nb.storage.run_directory import SOURCE_NAME, first_directory, utc_text
from attractor_nb.storage.run_store import DirectoryRunStore
from attractor_nb.storage.stored_run import StoredRun, check_directory, has_event_log, read_facts, read_run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from attractor_nb.decisions.plan import Plan
    from attractor_nb.decisions.run_state import RunState
    from attractor_nb.model.events import Event, PipelineRewound
    from attractor_nb.model.graph import Graph
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.prepare.run_options import RunOptions
    from attractor_nb.runtime.workspace.workspace import Workspace
    from attractor_nb.storage.event_lines import LogScan

GRAPH_CHANGES = ("error", "warn", "accept")


def continue_run(
    pipeline: Definition,
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
        raise OptionError(
            f"on_graph_change must be one of {', '.join(GRAPH_CHANGES)}, not {on_graph_change!r}"
        )
    plan = pipeline.compile(bounds_of(pipeline.graph, options.bounds))
    if rewind is not None:
        check_rewind(plan, logs_root, rewind)
    if not has_event_log(logs_root):
        return continue_legacy(pipeline, plan, logs_root, options, seams)
    if options.durability == "none":
        raise OptionError(
            'a run goes on in its directory, and durability="none" keeps none', hint='use durability="fast"'
        )
    _check_own_source(pipeline, logs_root, on_graph_change)
    check_trust(plan.graph, pipeline.origin, options, logs_root)
    wish = _Wish(options, on_graph_change, rewind)
    if options.take_over:
        _way_on(plan, read_latest(plan, logs_root), wish)  # who may not go on must not rob the owner
    with contextlib.ExitStack() as owned:  # given up when it cannot go on: the next resume finds it free
        store, latest = _open_latest(plan, logs_root, options, seams)
        owned.callback(store.close)
        stored, state, left = latest.stored, latest.state, None
        options = with_recorded_bounds(options, stored.manifest)
        plan = pipeline.compile(bounds_of(pipeline.graph, options.bounds))
        cut_off = _cut_off(store, stored, state)
        way_on = _way_on(plan, latest, wish)
        if way_on.whole.logs_root != stored.logs_root:
            store, left = _open(way_on.whole.logs_root, options, seams), store
            owned.callback(store.close)
        stored, state = way_on.stored, way_on.state
        _reopen(state)
        context = restored_context(plan, stored, way_on.inputs, store=store.values)
        if way_on.rewound is not None:
            context.restore(way_on.rewound.context)
            cut_off = {}  # what is set aside was spent: the record of the rewind carries it
        added = later_inputs(pipeline, context)
        context.restore(added)
        if rewind is None and store.manifest.get("restarted_as"):
            store.save_manifest({"restarted_as": ""})  # a rewind, or a restart, that was cut off half way
        facts = read_facts(first_directory(stored.logs_root))
        workspace, place = site_again(options, facts, stored.logs_root)
        moved = _placed(workspace, plan, stored, state, is_rewind=rewind is not None)
        before, now = facts.get("workdir"), place.get("workdir")
        if before and now and before != now and not facts.get("isolation"):
            moved = f"the run worked in {before} before, and goes on in {now}"
        _record_options(store, plan.graph, options, place)
        owned.pop_all()
    way = way_taken(stored.events)
    return Beginning(
        plan,
        store,
        context,
        state,
        str(stored.manifest.get("run_id", "")),
        {**added, **way_on.inputs},
        workspace,
        sequence=way_on.whole.events[-1].sequence if way_on.whole.events else 0,
        events=way,
        kept=kept_directories(way_on.whole, way),
        interviews=interviews_under_way(way),
        cut_off=cut_off,
        warning="; ".join(filter(None, (way_on.warning or _stored_goes_on(pipeline, logs_root), moved))),
        rewound=way_on.rewound,
        left=left,
    )


def _stored_goes_on(pipeline: Definition, logs_root: Path) -> str:
    """That an edited file is not what goes on, and how it would; empty when it is as the run began."""
    path = changed_source(pipeline, logs_root / SOURCE_NAME, read_facts(logs_root))
    if path is None:
        return ""
    return (
        f"{path} has changed since this run began, or a file of its texts: the graph stored in the run "
        'directory goes on; the edited one does when a resume is given it with on_graph_change="accept"'
    )


def complete_end(pipeline: Definition, logs_root: Path, options: RunOptions, seams: Seams) -> None:
    """Do for a run that has ended what its process was killed before: name its end in the manifest, tidy up.

    Raises:
        RunLocked, CheckpointCorrupt, StorageError: It cannot be done, and why.
    """
    plan = pipeline.compile(bounds_of(pipeline.graph, options.bounds))
    store, _ = _open_latest(plan, logs_root, options, seams)
    store.close()


def _complete_manifest(store: DirectoryRunStore, latest: _Latest, *, is_restarted: bool) -> None:
    """Name the end of a directory in its manifest, when its process was killed before it did."""
    stored, state = latest.stored, latest.state
    status = "restarted" if is_restarted else state.ended
    if status and stored.manifest.get("status") != status:
        facts = {"status": status, "end_time": utc_text(stored.events[-1].time)}
        store.save_manifest(facts if is_restarted else {**facts, "reason": state.reason, **state.totals()})


def _placed(workspace: Workspace, plan: Plan, stored: StoredRun, state: RunState, *, is_rewind: bool) -> str:
    """Bring the run's worktree to where the run stands; what the user must know of it, or empty."""
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
    return f"what was in the worktree and does not count any more is kept on branch {kept}" if kept else ""


def _record_options(
    store: DirectoryRunStore, graph: Graph, options: RunOptions, place: Mapping[str, Any]
) -> None:
    """Keep what a later resume shall find, where it is not what the run had before."""
    now: dict[str, Any] = {
        "bounds": options.recorded_bounds,
        "backend": describe_backend(options.backend),
        "backend_facts": {},
        **backend_facts(options, graph),
        **place,
    }
    if is_answered_by_nobody(graph, options):
        now["is_simulated"] = True
    if any(store.manifest.get(name, {}) != value for name, value in now.items()):
        store.save_manifest(now)


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
    """How many requests the latest attempt of a stage has made, as its files say."""
    try:
        made = sum(1 for _ in takewhile(lambda number: read(request_file(number)) is not None, count(1)))
        return made + (read(AGENT_TASK_FILE) is not None)
    except StorageError:  # whatever lies there is none of ours
        return 0


def _reopen(state: RunState) -> None:
    """Go on; the first model stage, in each branch too, has less of the past with it (spec 5.3, step 6)."""
    state.reopen()
    for place in (state, *(branch.state for branch in state.branches.open.values())):
        place.resumed_hops = 1 if place.fidelity == "full" else 0


def with_recorded_plugs(options: RunOptions, logs_root: Path) -> RunOptions:
    """Options that answer prompts, and work, as and where the run did before, when nobody says otherwise.

    Raises:
        OptionError: It was a backend of the caller's own: going on with simulated answers would be a
            success that nobody had. Or its working directory is gone.
        RunNotFound: There is no such directory.
    """
    check_directory(logs_root)
    facts = read_facts(logs_root)
    first = read_facts(first_directory(logs_root)) if facts.get("restart_of") else facts
    return with_recorded_workdir(with_recorded_backend(options, facts), first)


def with_recorded_backend(options: RunOptions, manifest: Mapping[str, Any]) -> RunOptions:
    """Options that answer prompts as a manifest says, when nobody says otherwise; raises as above."""
    if options.backend is not None:
        return options
    recorded = str(manifest.get("backend", ""))
    if facts := manifest.get("backend_facts"):
        again = backends.ProviderBackend.rebuilt(facts)
        is_by_name = recorded == "llm" and not facts["options"]
        return replace(options, backend=recorded if is_by_name else again)
    if recorded in {"", "simulated"}:
        return options
    if recorded in NAMED:
        return replace(options, backend=recorded)
    raise OptionError(
        f"prompts of this run were answered by {recorded.removesuffix(' (own)')}, and no backend is given",
        hint='resume(…, backend=…) with the same, or backend="simulated"',
    )


def with_recorded_bounds(options: RunOptions, manifest: Mapping[str, Any]) -> RunOptions:
    """Options with the bounds that the run was given before, where nobody gives another."""
    recorded: Mapping[str, Any] = manifest.get("bounds", {})
    given = options.bounds
    return replace(
        options, **{name: recorded[name] for name in BOUNDS if name in recorded and name not in given}
    )


_OWN = {
    "params": "start a new run for other values: pipeline.run(params=…)",
    "logs_root": "leave it out: a run goes on in its own directory",
    "runs_dir": "leave it out: a run goes on in its own directory",
}


def check_own(logs_root: Path, given: Mapping[str, Any]) -> None:
    """Refuse what is a run's own and cannot be given anew; a run of the older layout gets a new directory.

    Raises:
        OptionError: It is given, and would have no effect.
    """
    for name, hint in _OWN.items():
        if given.get(name) and (name == "params" or has_event_log(logs_root)):
            raise OptionError(f"{name} is given, and a resume keeps what its run began with", hint=hint)


@dataclass(frozen=True, slots=True)
class _Wish:
    """How somebody wants to go on."""

    options: RunOptions
    on_graph_change: str
    rewind: Rewind | None


@dataclass(frozen=True, slots=True)
class _Latest:
    """Where a run stands: the directory that it came to, its state, and the run's inputs."""

    stored: StoredRun
    state: RunState
    inputs: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _WayOn:
    """Where a run goes on.

    Attributes:
        whole: The directory as it is.
        stored: The directory as far as it counts.
        state: The state there.
        inputs: The run's inputs.
        warning: What the user asked to be warned of, or empty.
        rewound: For a rewind: the record of it.
    """

    whole: StoredRun
    stored: StoredRun
    state: RunState
    inputs: Mapping[str, Any]
    warning: str
    rewound: PipelineRewound | None


def _way_on(plan: Plan, latest: _Latest, wish: _Wish) -> _WayOn:
    """Find where a run goes on, from what its directories say. Nothing is changed on the disk.

    Raises:
        GraphChanged, RunError: It cannot go on so, and why.
    """
    stored, state, inputs = latest.stored, latest.state, latest.inputs
    check_is_on_the_way(stored)
    whole, rewound = stored, None
    if wish.rewind is None:
        _check_end(plan, stored, state)
    else:
        place = find_place(stored, wish.rewind)
        whole, stored, rewound = place.stored, place.shortened, place.record(state)
        inputs = _inputs_of(stored, inputs)
        state = restored_state(plan, stored)
        state.apply(rewound)
    warning = _check_graph(plan, stored, state, wish.on_graph_change)
    _check_incoming_edge(plan, state)
    _check_interrupted(plan, state, interviews_under_way(stored.events), wish.options)
    return _WayOn(whole, stored, state, inputs, warning, rewound)


def check_fork(
    pipeline: Definition,
    plan: Plan,
    stored: StoredRun,
    state: RunState,
    options: RunOptions,
    on_graph_change: str,
) -> None:
    """Check that a run could go on in this state, before a directory is made for it.

    Args:
        pipeline: What would go on.
        plan: The same, compiled.
        stored: The parent's directory as if its log ended there.
        state: Where the fork begins.
        options: How it would go on.
        on_graph_change: As of ``Pipeline.resume``.

    Raises:
        GraphChanged, UntrustedSource: It could not, and why.
    """
    _check_own_source(pipeline, stored.logs_root, on_graph_change)
    check_trust(plan.graph, pipeline.origin, options, stored.logs_root)
    _check_graph(plan, stored, state, on_graph_change)


def _open_latest(
    plan: Plan, logs_root: Path, options: RunOptions, seams: Seams
) -> tuple[DirectoryRunStore, _Latest]:
    """Open the run, or the restart directory in which it goes on; an end that no manifest names is named."""
    before = None
    for _ in range(MAX_RESTART_HOPS):
        store = _open(logs_root, options, seams)
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


def read_latest(plan: Plan, logs_root: Path) -> _Latest:
    """What ``_open_latest`` would find, read without owning it."""
    before = None
    for _ in range(MAX_RESTART_HOPS):
        latest, restarted = _read_one(plan, logs_root, before)
        if restarted is None:
            return latest
        logs_root, before = restarted, latest
    raise _endless(logs_root)


def _read_one(
    plan: Plan, logs_root: Path, before: _Latest | None, scan: LogScan | None = None
) -> tuple[_Latest, Path | None]:
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
    latest = _Latest(stored, state, _inputs_of(stored, before.inputs if before else {}))
    return latest, restart_directory(stored, state)


def _endless(logs_root: Path) -> RunError:
    return RunError(f"the restarts of {logs_root} have no end")


def _check_form(stored: StoredRun) -> None:
    """Refuse a run whose log says more than this version understands: it could take it wrongly.

    Raises:
        RunError: A newer version has written it.
    """
    unknown = next(iter(stored.events.select(UnknownEvent)), None)
    first = stored.events[0] if stored.events else None
    form = first.schema_version if isinstance(first, PipelineStarted) else LOG_FORM
    if form > LOG_FORM or unknown is not None:
        what = f"its log has form {form}, and this one knows form {LOG_FORM}"
        if form <= LOG_FORM and unknown is not None:
            what = (
                f"record {unknown.sequence} of its log is a {unknown.type}, which this version does not know"
            )
        raise RunError(
            f"a newer version of attractor_nb has written the run in {stored.logs_root}: {what}",
            hint="update attractor_nb to go on with it; it can be looked at with this version",
        )


def _check_begun(stored: StoredRun) -> None:
    """Refuse a run of which neither log nor checkpoint says with what it began.

    Raises:
        RunNotFound: Its first record never reached the disk.
        RunError: It went on from an older run, and the checkpoint that holds what that had is gone.
    """
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


def _inputs_of(stored: StoredRun, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values that the run began with, large ones read: a restart has a directory of its own."""
    for event in stored.events.select(PipelineStarted):
        values = StoredValues(stored.logs_root)
        return {key: values.whole(value) for key, value in event.inputs.items()}
    return inputs


def _open(logs_root: Path, options: RunOptions, seams: Seams) -> DirectoryRunStore:
    """Own a directory of the run.

    Raises:
        RunNotFound: The disk refused, and the run had not begun: no way on is promised.
        StorageError: The disk refused.
    """
    try:
        return DirectoryRunStore.open(
            logs_root,
            durability=options.durability,
            clock=seams.clock,
            disk=seams.disk,
            take_over=options.take_over,
        )
    except StorageError:
        _check_begun(read_run(logs_root))
        raise


def _check_end(plan: Plan, stored: StoredRun, state: RunState) -> None:
    if state.ended == "completed":
        raise RunError(
            "the run has ended in success; there is nothing to go on with",
            hint=_how_to_go_back(plan, stored, state),
        )
    if state.ended == "failed" and not state.is_resumable:
        raise RunError(
            f"the run has failed for good: {state.reason}",
            hint="every stage is committed and none would run again; remove the cause, then "
            + _how_to_go_back(plan, stored, state),
        )


def rewind_of_failure(pipeline: Definition, logs_root: Path, options: RunOptions) -> Rewind | None:
    """The way back to where a run that has failed for good can be tried again; None for another run.

    Raises:
        RunNotFound, CheckpointCorrupt: It cannot be read.
    """
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
        (
            name
            for name in reversed(state.completed)
            if name not in ends and not plan.nodes[name].is_conditional
        ),
        plan.start,
    )


_CHANGED = 'resume with pipeline.dot of the run directory, or say on_graph_change="accept" or "warn"'
_REDACTED = (
    "pipeline.dot of this run holds [redacted] in place of a secret that its source had: resume with your "
    "own pipeline, Pipeline(…).resume(directory)"
)


def _check_own_source(pipeline: Definition, logs_root: Path, on_graph_change: str) -> None:
    """Refuse the source that a run directory keeps without its secrets: it cannot be what ran.

    Said before anybody is asked to trust commands that would not be run either.
    """
    if on_graph_change != "error" or pipeline.origin != absolute_origin(logs_root / SOURCE_NAME):
        return
    facts = read_facts(logs_root)
    if facts.get("is_source_redacted") and facts.get("graph_hash") != pipeline.graph.content_hash:
        raise GraphChanged(
            "the pipeline that the run directory keeps is not the one that ran", hint=_REDACTED
        )


def _check_graph(plan: Plan, stored: StoredRun, state: RunState, on_graph_change: str) -> str:
    """Compare the graph with the one that ran; a warning, if one was asked for."""
    ran = str(stored.manifest.get("graph_hash", ""))
    for event in way_taken(stored.events).select(PipelineStarted, PipelineResumed):
        ran = event.graph_hash or ran
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
    """Say what becomes of stages that were cut off; one that may have taken effect is not repeated unasked.

    Raises:
        RunError: A person must decide, and nobody is there to be asked.
    """
    answered = {event.question_id for event in interviews if isinstance(event, InterviewCompleted)}
    under_way = (branch.state for branch in state.branches.open.values() if branch.end is None)
    for place in (state, *under_way):
        flight = place.in_flight
        if flight is None or not flight.is_started or flight.node_id not in plan.nodes:
            continue
        place.on_interrupted = policy_of(plan.nodes[flight.node_id], options.on_interrupted)
        if place.on_interrupted != ASK or is_somebody_asked(options):
            continue
        within = f"{place.branch}/" if place.branch else ""
        if within + question_id(flight) not in answered:
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
