"""Whether a stored run can go on: what refuses a resume, and what to do instead. Changes no file."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from attractor_nb.decisions.ambiguity import ASK, policy_of, question_id
from attractor_nb.decisions.goal_gates import unsatisfied_gate
from attractor_nb.decisions.limits.bounds import bounds_of
from attractor_nb.decisions.log_history import counted_events
from attractor_nb.errors import GraphChanged, RunError
from attractor_nb.model.events import InterviewCompleted, PipelineResumed, PipelineStarted
from attractor_nb.runtime.latest_state import read_latest
from attractor_nb.runtime.plugs.chosen_plugs import has_interviewer
from attractor_nb.runtime.prepare.trust import absolute_origin, check_trust
from attractor_nb.runtime.rewind import Rewind
from attractor_nb.storage.run_directory import SOURCE_NAME
from attractor_nb.storage.stored_run import StoredRun, read_facts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from attractor_nb.decisions.planning.executable_surface import Command
    from attractor_nb.decisions.planning.plan import Plan
    from attractor_nb.decisions.run_state import RunState
    from attractor_nb.model.events import Event
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.prepare.run_options import RunOptions


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
    """Check that a run could go on in this state, before a directory is made for it.

    Args:
        pipeline: What would go on.
        plan: The same, compiled.
        stored: The parent's directory as if its log ended there.
        state: Where the fork begins.
        options: How it would go on.
        on_graph_change: As of ``Pipeline.resume``.
        recorded: What the parent's directory chooses by itself, as ``recorded_options.choices_of`` says.
    """
    check_own_source(pipeline, stored.logs_root, on_graph_change)
    check_trust(pipeline, options, stored.logs_root, recorded)
    check_graph(plan, stored, state, on_graph_change)


def check_end(plan: Plan, stored: StoredRun, state: RunState) -> None:
    """Refuse a run that has ended."""
    if state.ended == "completed":
        raise RunError("the run has succeeded; there is nothing to resume", hint=_how_to_go_back(plan, stored, state))
    if state.ended == "failed" and not state.is_resumable:
        raise RunError(
            f"the run has failed for good: {state.reason}",
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

    Said before anybody is asked to trust commands that would not be run either.
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
            f"the run continues at {missing[0]}, which the graph does not have",
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
