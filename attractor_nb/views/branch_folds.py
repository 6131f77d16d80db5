"""What events of fan-outs and child runs make of what is shown of a run (spec 4.8, 4.11).

Branches can be at one node at the same time: the node then shows what still goes on there. What was under
way in a branch that was cancelled is shown as skipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from attractor_nb.model.branch import enclosing
from attractor_nb.model.states import NodeStatus, RunStatus
from attractor_nb.views.state import BranchView, ChildView, EdgeState, FanOutView, ItemsView, NodeState, RunView

if TYPE_CHECKING:
    from attractor_nb.model.events import (
        ChildEnded,
        ChildStarted,
        ParallelBranchCompleted,
        ParallelBranchStarted,
        ParallelStarted,
        StageEnd,
        StageEvent,
    )

_PENDING: Final = NodeState()
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
    """What goes on at a node in any branch, the newest of it."""
    found = [state for name, state in view.active_by_branch.values() if name == node_id]
    return max(found, key=lambda state: state.since) if found else None


def fold_fan_out(view: RunView, event: ParallelStarted) -> tuple[str, ...]:
    """A fan-out begins. Passed again, or tried again, it begins with nothing; resumed it goes on."""
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
    """What was under way in a branch and in those within it; it is taken out."""
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
    """How the child run of a node stands, or those of its items; empty where it has had none on this visit."""
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
    """Show at its node how a child run stands."""
    state = view.nodes.get(event.name)
    if state is None or state.note == _child_note(view, event.name, state.visits):
        return ()
    return _refreshed(view, event.branch, event.name)


def fold_child_end(view: RunView, event: ChildEnded) -> tuple[str, ...]:
    """A stage is done with its child; of one whose events nobody heard this is all that is known."""
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
