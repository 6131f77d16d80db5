"""Events as changes of what is shown of a run.

A fold costs the same whatever the size of the graph, and its delta is what a live view is sent: the
picture is drawn once, then only states change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.model.branch import enclosing
from attractor_nb.model.events import (
    ChildEnded,
    ChildEvent,
    ChildStarted,
    DebuggerChanged,
    DebuggerStopped,
    Event,
    InterviewCompleted,
    InterviewStarted,
    InterviewTimeout,
    ModelCallEnded,
    ModelCallWaiting,
    ParallelBranchCompleted,
    ParallelBranchStarted,
    ParallelStarted,
    PipelineCompleted,
    PipelineFailed,
    PipelineForked,
    PipelineInterrupted,
    PipelineRestarted,
    PipelineResumed,
    PipelineRewound,
    PipelineStarted,
    StageCompleted,
    StageEnd,
    StageEvent,
    StageFailed,
    StageRetrying,
    StageStarted,
    ToolCallEnded,
)
from attractor_nb.model.outcome import Usage
from attractor_nb.model.states import NodeStatus, RunStatus
from attractor_nb.views.state import (
    BranchView,
    ChildView,
    Delta,
    EdgeState,
    FanOutView,
    ItemsView,
    NodeState,
    RunView,
    count_attempt,
    count_cut_off,
    count_saved,
    first_words,
    fold_call,
    fold_waiting,
    forget_under_way,
    note_child,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


# Events of fan-outs and child runs, folded into the view of a run (spec 4.8, 4.11).
#
# Branches can be at one node at the same time: the node then shows the one that is still active. Stages under way in
# a cancelled branch are shown as skipped.

_NO_PASS: Final = EdgeState()
_CANCELLED: Final = "skipped"


def put(view: RunView, branch: str, node_id: str, state: NodeState) -> None:
    """Set the state of a node, with what is known of its branches or child; ``branch`` is where it is."""
    if view.fan_outs and (fan_out := view.fan_outs.get((branch, node_id))):
        state = state._replace(progress=fan_out.progress, note=fan_out.note)
    elif view.children and (note := _child_note(view, node_id, state.visits)):
        state = state._replace(note=note)
    if branch:
        _note_in_branch(view, branch, node_id, state)
        if not state.status.is_active and (active := _active_at(view, node_id)):
            state = active
    view.nodes[node_id] = state


def _note_in_branch(view: RunView, path: str, node_id: str, state: NodeState) -> None:
    if state.status.is_active:
        view.active_by_branch[path] = node_id, state
    else:
        view.active_by_branch.pop(path, None)
    if branch := view.branches.get(path):
        branch.nodes[node_id] = state.visits or branch.nodes.get(node_id, 0)


def _active_at(view: RunView, node_id: str) -> NodeState | None:
    """The newest active state of a node in any branch."""
    found = [state for name, state in view.active_by_branch.values() if name == node_id]
    return max(found, key=lambda state: state.since) if found else None


def fold_fan_out(view: RunView, event: ParallelStarted) -> tuple[str, ...]:
    """A fan-out begins. Passed again, or tried again, it starts empty; resumed it continues."""
    key = event.branch, event.name
    before = view.fan_outs.get(key)
    changed: tuple[str, ...] = ()
    if before is None or before.is_over:
        changed = _cleared(view, before) if before else ()
        view.fan_outs[key] = FanOutView(event.name, event.branch, event.join_policy, event.branch_count)
    return (*changed, *_refreshed(view, event.branch, event.name))


def _cleared(view: RunView, fan_out: FanOutView) -> tuple[str, ...]:
    """Take back what an earlier pass showed within the branches."""
    changed: dict[str, None] = {}
    for branch in fan_out.branches.values():
        for key in [key for key in view.fan_outs if key[0] == branch.path]:
            changed.update(dict.fromkeys(_cleared(view, view.fan_outs.pop(key))))
        view.branches.pop(branch.path, None)
        view.active_by_branch.pop(branch.path, None)
        changed.update(dict.fromkeys(branch.nodes))
        if branch.status == _CANCELLED and branch.start_node in view.nodes:
            changed[branch.start_node] = None
    for node_id in changed:
        view.nodes[node_id] = NodeState(visits=view.nodes[node_id].visits)
    return tuple(changed)


def fold_branch(view: RunView, event: ParallelBranchStarted) -> tuple[str, ...]:
    """A branch begins: the edge that leads there is taken."""
    branch = BranchView(event.id, event.branch, event.start_node, event.edge, event.time)
    view.branches[event.branch] = branch
    within = enclosing(event.branch)
    if fan_out := view.fan_outs.get((within, event.name)):
        fan_out.branches[event.id] = branch
    _count_pass(view, event.edge, 1)
    return _refreshed(view, within, event.name)


def _count_pass(view: RunView, edge: int | None, change: int) -> None:
    if edge is not None:
        view.edges[edge] = EdgeState(view.edges.get(edge, _NO_PASS).passes + change)


def fold_branch_end(view: RunView, event: ParallelBranchCompleted) -> tuple[str, ...]:
    """A branch ended; of a cancelled one what was under way, or never began, is skipped."""
    branch, within = view.branches.get(event.branch), enclosing(event.branch)
    if branch is None:
        return ()
    branch.status, branch.reason = event.status, event.failure_reason
    branch.duration = event.duration or max(0.0, event.time - branch.since)
    if fan_out := view.fan_outs.get((within, event.name)):
        fan_out.ended[event.status] = fan_out.ended.get(event.status, 0) + 1
        if event.success and not fan_out.winner:
            fan_out.winner = event.id
    stopped = _stopped_in(view, branch.path)
    if event.status == _CANCELLED and not branch.nodes:
        _count_pass(view, branch.edge, -1)
        stopped[branch.start_node] = view.nodes.get(branch.start_node, _PENDING)
    for node_id, state in stopped.items():
        skipped = state._replace(status=NodeStatus.SKIPPED, since=event.time, until=None)
        view.nodes[node_id] = _active_at(view, node_id) or skipped
    return (*stopped, *_refreshed(view, within, event.name))


def _stopped_in(view: RunView, path: str) -> dict[str, NodeState]:
    """Remove and return the active states of a branch and of those within it."""
    own = view.active_by_branch.pop(path, None)
    found = {} if own is None else dict([own])
    if any(within == path or within.startswith(path + "/") for within, _ in view.fan_outs):
        inside = [key for key in view.active_by_branch if key.startswith(path + "/")]
        found.update(view.active_by_branch.pop(key) for key in inside)
    return found


def _refreshed(view: RunView, within: str, node_id: str) -> tuple[str, ...]:
    """Show the progress of a fan-out at its node."""
    state = view.nodes.get(node_id)
    if state is None:
        return ()
    put(view, within, node_id, state)
    return (node_id,)


def close_fan_out(view: RunView, event: StageEnd) -> None:
    """The stage of a fan-out ended, or this attempt at it."""
    if fan_out := view.fan_outs.get((event.branch, event.name)):
        fan_out.is_over = True


def _child_note(view: RunView, node_id: str, visit: int) -> str:
    """The note on the child run of a node, or on those of its items; empty if it has none on this visit."""
    if (items := view.items.get(node_id)) is not None:
        return items.note if items.visit == visit else ""
    child = view.children.get(node_id)
    return "" if child is None else child.note


def _fold_item(view: RunView, event: ChildStarted, item: int) -> None:
    """The run of an item begins, or is taken up; another visit begins with nothing."""
    items = view.items.get(event.name)
    if items is None or items.visit != event.visit:
        items = view.items[event.name] = ItemsView(event.visit, event.item_count)
    items.ended.pop(item, None)


def fold_child(view: RunView, event: ChildStarted) -> tuple[str, ...]:
    """A child run begins, or is taken up."""
    if event.item is not None:
        _fold_item(view, event, event.item)
    before = view.children.get(event.name)
    if before is None or before.id != event.child_id:
        view.children[event.name] = ChildView(event.child_id, event.pipeline, RunView())
    return _refreshed(view, event.branch, event.name)


def child_of(view: RunView, event: StageEvent, child_id: str) -> RunView | None:
    """The view of the child run that an event is about, if it is the latest of its node."""
    child = view.children.get(event.name)
    return child.view if child is not None and child.id == child_id else None


def refresh_child(view: RunView, event: StageEvent) -> tuple[str, ...]:
    """Show at its node the state of a child run."""
    state = view.nodes.get(event.name)
    if state is None or state.note == _child_note(view, event.name, state.visits):
        return ()
    return _refreshed(view, event.branch, event.name)


def fold_child_end(view: RunView, event: ChildEnded) -> tuple[str, ...]:
    """A stage is done with its child; of one whose events were not received this is all that is known."""
    view.marks.take(event)
    if event.item is not None and (items := view.items.get(event.name)) is not None:
        items.ended[event.item] = RunStatus.of(event.status)
    child = child_of(view, event, event.child_id)
    if child is None:
        return () if event.item is None else refresh_child(view, event)
    if not child.status.is_ended:
        child.status, child.reason = RunStatus.of(event.status), event.reason
    return refresh_child(view, event)


def emptied(view: RunView) -> dict[str, Any]:
    """The delta that takes back all that a view of a child showed."""
    return {
        "nodes": {node_id: _PENDING.to_plain() for node_id in view.nodes},
        "edges": {str(index): 0 for index in view.edges},
        "run": RunStatus.READY.value,
    }


_PENDING: Final = NodeState()
STANDS: Final = "stopped"
"""The note of a node at which a debugger has stopped the run."""


def take_event(view: RunView, event: Event) -> tuple[str, ...]:
    """Take an event into a view; the ids of the nodes that it changed."""
    fold = _FOLDS.get(type(event))
    return fold(view, event) if fold else ()


def fold_event(view: RunView, event: Event) -> tuple[RunView, Delta]:
    """Take an event into a view, and say what changed.

    Returns:
        The same view, changed in place, and what changed: an empty delta when nothing that is shown
        did.
    """
    delta: Delta = {}
    # What an event changes is taken from the view after the fold, and only for what it says it changed: so the delta
    # is as long as the change, and folding it elsewhere gives the same view.
    if isinstance(event, ChildEvent):
        changed = _fold_in_child(view, event, delta)
    elif isinstance(event, ChildStarted):
        before = view.children.get(event.name)
        changed = fold_child(view, event)
        if before is not None and before is not view.children[event.name]:
            delta["children"] = {event.name: emptied(before.view)}
    else:
        changed = take_event(view, event)
    if changed:
        delta["nodes"] = {node_id: view.nodes[node_id].to_plain() for node_id in changed}
    if (edge := _edge_of(view, event)) is not None:
        delta["edges"] = {str(edge): view.edges[edge].passes}
    if isinstance(event, _OF_THE_RUN):
        delta["run"] = view.status.value
    return view, delta


def _edge_of(view: RunView, event: Event) -> int | None:
    """The edge whose passes an event changed, or None."""
    if isinstance(event, StageEnd):
        return event.edge if event.is_commit else None
    if isinstance(event, ParallelBranchStarted | ParallelBranchCompleted):
        branch = view.branches.get(event.branch)
        return None if branch is None else branch.edge
    return None


def _fold_in_child(view: RunView, event: ChildEvent, delta: Delta) -> tuple[str, ...]:
    """Take an event of a child run; what it changes there goes into the delta."""
    child = child_of(view, event, event.child_id)
    if child is None:
        return ()
    if inside := fold_event(child, event.event)[1]:
        delta["children"] = {event.name: inside}
    note_child(view, event, child)
    return refresh_child(view, event)


def _take_in_child(view: RunView, event: ChildEvent) -> tuple[str, ...]:
    child = child_of(view, event, event.child_id)
    if child is None:
        return ()
    take_event(child, event.event)
    note_child(view, event, child)
    return refresh_child(view, event)


def merge_deltas(deltas: Iterable[Delta]) -> Delta:
    """One delta with the effect of several in a row: how a live view catches up.

    >>> merge_deltas([{"edges": {"1": 1}}, {"edges": {"1": 2}, "run": "fail"}])
    {'edges': {'1': 2}, 'run': 'fail'}
    """
    merged: Delta = {}
    for delta in deltas:
        take_delta(merged, delta)
    return merged


def take_delta(into: Delta, delta: Delta) -> None:
    """Take a delta into another one, which is changed; the time it takes is that of what has changed."""
    for part, changed in delta.items():
        if part in {"nodes", "edges"}:
            into.setdefault(part, {}).update(changed)
        elif part == "children":
            children = into.setdefault(part, {})
            for node_id, below in changed.items():
                take_delta(children.setdefault(node_id, {}), below)
        else:
            into[part] = changed


def _fold_started(view: RunView, event: StageStarted) -> tuple[str, ...]:
    view.marks.take(event)
    forget_under_way(view, event)
    put(view, event.branch, event.name, NodeState(_RUNNING, event.attempt, event.visit, since=event.time))
    return (event.name,)


def _fold_ended(view: RunView, event: StageEnd) -> tuple[str, ...]:
    outcome = event.outcome
    view.marks.take(event)
    status = NodeStatus.CACHED if event.is_cached else NodeStatus.of(outcome.status)
    reason = ""
    if isinstance(event, StageFailed):
        reason = first_words(event.error or outcome.failure_reason)
        status = NodeStatus.RETRYING if event.will_retry else NodeStatus.FAIL
    if view.fan_outs:
        close_fan_out(view, event)
    put(view, event.branch, event.name, NodeState(status, event.attempt, event.visit, reason, event.time))
    forget_under_way(view, event)
    if event.is_cached:
        count_saved(view, event)
    elif outcome.usage is not None:
        count_attempt(view, event, outcome.usage)
    # Only an attempt that ends its stage is a stage, and only that one continued by an edge.
    if status is not NodeStatus.RETRYING:
        view.stages += 1
        if event.edge is not None:
            before = view.edges.get(event.edge)
            view.edges[event.edge] = _ONCE if before is None else EdgeState(before.passes + 1)
    return (event.name,)


_RUNNING: Final = NodeStatus.RUNNING
_ONCE: Final = EdgeState(1)


def _fold_retrying(view: RunView, event: StageRetrying) -> tuple[str, ...]:
    before = view.nodes.get(event.name, _PENDING)
    until = event.time + event.delay
    state = NodeState(NodeStatus.RETRYING, event.attempt, event.visit, before.reason, event.time, until)
    put(view, event.branch, event.name, state)
    return (event.name,)


def _fold_question(view: RunView, event: InterviewStarted) -> tuple[str, ...]:
    before = view.nodes.get(event.stage, _PENDING)
    state = before._replace(status=NodeStatus.WAITING, since=event.time, until=event.deadline)
    put(view, event.branch, event.stage, state)
    return (event.stage,)


def _fold_stopped(view: RunView, event: DebuggerStopped) -> tuple[str, ...]:
    """A walk is paused: the node waits for a person, as at a gate."""
    before = view.nodes.get(event.node, _PENDING)
    state = before._replace(status=NodeStatus.WAITING, since=event.time, until=None, note=STANDS)
    put(view, event.branch, event.node, state)
    return (event.node,)


def _fold_answer(view: RunView, event: InterviewCompleted | InterviewTimeout) -> tuple[str, ...]:
    """The stage continues with the answer; that of a run which has stopped is pending until a resume."""
    before = view.nodes.get(event.stage, _PENDING)
    status = NodeStatus.PENDING if view.status.is_ended else _RUNNING
    note = before.note
    if isinstance(event, InterviewCompleted):
        note = f"answered: {first_words(event.label)}" if event.label else "answered"
    put(view, event.branch, event.stage, before._replace(status=status, since=event.time, until=None, note=note))
    return (event.stage,)


def _fold_begun(view: RunView, event: PipelineStarted) -> tuple[str, ...]:
    """In a restart directory what was spent before it counts too, wherever the view begins."""
    _carry_spending(view, event)
    view.marks.take(event)
    return _fold_running(view, event)


def _fold_resumed(view: RunView, event: PipelineResumed) -> tuple[str, ...]:
    count_cut_off(view, event.cut_off)
    view.marks.take(event)
    return _fold_running(view, event)


def _fold_running(view: RunView, _: PipelineStarted | PipelineResumed | PipelineRestarted) -> tuple[str, ...]:
    view.status, view.reason, view.next_node, view.bound = RunStatus.RUNNING, "", "", ""
    view.is_unmeasured = False
    return ()


def _fold_rewound(view: RunView, event: PipelineRewound) -> tuple[str, ...]:
    """A view that was folded from the events that count: what was spent behind the rewind counts too."""
    _carry_spending(view, event)
    view.under_way.clear()  # what an attempt had consumed that was cut off is in what is carried
    view.status, view.reason, view.next_node = RunStatus.RUNNING, "", ""
    return ()


def _fold_forked(view: RunView, event: PipelineForked) -> tuple[str, ...]:
    """Show the copied stages as they were; their cost is the parent's."""
    view.usage, view.usage_by_node, view.saved = Usage(), {}, Usage()
    for spent in (view.attempts, view.calls_by_node, view.cached):
        spent.clear()
    view.duration = 0.0
    view.status, view.reason, view.next_node = RunStatus.RUNNING, "", event.node
    return ()


def _carry_spending(view: RunView, event: PipelineStarted | PipelineRewound) -> None:
    if event.carried:
        view.usage, view.usage_by_node = event.carried.usage, dict(event.carried.usage_by_node)


def _fold_end(view: RunView, event: PipelineCompleted | PipelineFailed | PipelineInterrupted) -> tuple[str, ...]:
    """The end of the run; what was under way is shown as not reached, for it will be done again."""
    view.duration = event.duration
    match event:
        case PipelineCompleted():
            view.status = RunStatus.SUCCESS
        case PipelineFailed():
            view.status, view.reason, view.bound = RunStatus.FAIL, event.error, event.bound
        case PipelineInterrupted():
            view.status, view.reason, view.next_node = RunStatus.INTERRUPTED, event.reason, event.next_node
            view.is_unmeasured = event.is_unmeasured
    # A resume does again what the end cut off: it is pending from now on, with its visit and attempt kept.
    stopped = view.active_nodes
    view.active_by_branch.clear()
    view.under_way.clear()
    for node_id in stopped:
        before = view.nodes[node_id]
        note = "" if before.note == STANDS else before.note
        view.nodes[node_id] = before._replace(status=NodeStatus.PENDING, until=None, note=note)
    return stopped


def _fold_change(view: RunView, event: DebuggerChanged) -> tuple[str, ...]:
    view.marks.take(event)
    return ()


_OF_THE_RUN: Final = (
    PipelineStarted,
    PipelineResumed,
    PipelineRewound,
    PipelineForked,
    PipelineRestarted,
    PipelineCompleted,
    PipelineFailed,
    PipelineInterrupted,
)
_FOLDS: Final = cast(
    "dict[type[Event], Callable[[RunView, Event], tuple[str, ...]]]",
    {
        PipelineStarted: _fold_begun,
        PipelineResumed: _fold_resumed,
        PipelineRewound: _fold_rewound,
        PipelineForked: _fold_forked,
        PipelineRestarted: _fold_running,
        PipelineCompleted: _fold_end,
        PipelineFailed: _fold_end,
        PipelineInterrupted: _fold_end,
        StageStarted: _fold_started,
        StageCompleted: _fold_ended,
        StageFailed: _fold_ended,
        StageRetrying: _fold_retrying,
        ModelCallEnded: fold_call,
        ModelCallWaiting: fold_waiting,
        ToolCallEnded: fold_call,
        InterviewStarted: _fold_question,
        InterviewCompleted: _fold_answer,
        InterviewTimeout: _fold_answer,
        DebuggerStopped: _fold_stopped,
        DebuggerChanged: _fold_change,
        ParallelStarted: fold_fan_out,
        ParallelBranchStarted: fold_branch,
        ParallelBranchCompleted: fold_branch_end,
        ChildStarted: fold_child,
        ChildEnded: fold_child_end,
        ChildEvent: _take_in_child,
    },
)
