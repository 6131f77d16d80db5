"""The usage of a run for its views: by attempt, by call, and by stages still running.

The end of an attempt says what it consumed in all. Until then its calls do: so a live view sees the price
grow while a stage goes on, and nothing is counted twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct

from attractor_nb.model.events import ModelCallEnded, StageOutput
from attractor_nb.model.outcome import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.model.events import ChildEvent, ModelCallWaiting, StageEnd, StageEvent, ToolCallEnded
    from attractor_nb.views.state import RunView

_NOTHING: Final = Usage()


class AttemptSpending(NamedTuple):
    """The usage of one attempt."""

    visit: int  #: Number of the visit to its node.
    attempt: int  #: Number of the try within the visit.
    status: str  #: How it ended.
    usage: Usage  #: What it consumed.
    branch: str = ""  #: Path of the branch that it was in, or empty.


class CallCount(NamedTuple):
    """Calls that a stage has made."""

    model: int = 0  #: Requests to models, those that failed too.
    tools: int = 0  #: Calls of tools, those that a hook skipped too.

    def plus(self, event: StageEvent) -> CallCount:
        """With one call more."""
        is_model = isinstance(event, ModelCallEnded)
        return CallCount(self.model + is_model, self.tools + (not is_model))

    @property
    def words(self) -> str:
        """For people; a single request is what everybody expects, and is not said.

        >>> CallCount(3, 2).words, CallCount(1, 1).words, CallCount(1).words
        ('3 requests, 2 tool calls', '1 tool call', '')
        """
        parts = [f"{self.model} requests"] if self.model > 1 else []
        return ", ".join([*parts, f"{self.tools} tool call{'s' * (self.tools != 1)}"] if self.tools else parts)


_NO_CALL: Final = CallCount()


class OpenSpending(Struct):
    """The usage of an attempt that is still running."""

    calls: CallCount = _NO_CALL
    usage: Usage = _NOTHING  #: What they consumed.
    child: Usage = _NOTHING  #: What its child run has consumed so far.


def so_far(view: RunView) -> Usage:
    """The known usage up to now, including attempts and child runs that are still running."""
    usage = view.usage
    for part in tuple(view.under_way.values()):  # the engine's thread may be at it
        usage = usage + part.usage + part.child
    return usage


def fold_call(view: RunView, event: ModelCallEnded | ToolCallEnded) -> tuple[str, ...]:
    """A model or a tool was called; the node says how often."""
    view.calls_by_node[event.name] = view.calls_by_node.get(event.name, _NO_CALL).plus(event)
    part = view.under_way.setdefault((event.branch, event.name), OpenSpending())
    part.calls = part.calls.plus(event)
    if isinstance(event, ModelCallEnded) and event.usage is not None:
        part.usage += event.usage
    state = view.nodes.get(event.name)
    if state is None or not state.status.is_active:
        return ()
    view.nodes[event.name] = state._replace(note=part.calls.words)
    return (event.name,)


def fold_waiting(view: RunView, event: ModelCallWaiting) -> tuple[str, ...]:
    """A request waits for its provider's rates; the node says so until it is made."""
    state = view.nodes.get(event.name)
    if state is None or not state.status.is_active:
        return ()
    view.nodes[event.name] = state._replace(note=f"waits for {event.rates}")
    return (event.name,)


def note_child(view: RunView, event: ChildEvent, child: RunView) -> None:
    """Take what the child run of a stage under way has consumed so far."""
    if isinstance(event.event, StageOutput):
        return
    state = view.nodes.get(event.name)
    if state is not None and state.status.is_active and (usage := so_far(child)) != _NOTHING:
        view.under_way.setdefault((event.branch, event.name), OpenSpending()).child = usage


def forget_under_way(view: RunView, event: StageEvent) -> None:
    """An attempt begins, or has ended: its end says the whole."""
    if view.under_way:
        view.under_way.pop((event.branch, event.name), None)


def count_attempt(view: RunView, event: StageEnd, usage: Usage) -> None:
    """Add what an attempt consumed that has ended."""
    view.usage += usage
    own = view.usage_by_node.get(event.name)
    view.usage_by_node[event.name] = usage if own is None else own + usage
    spent = AttemptSpending(event.visit, event.attempt, event.outcome.status.value, usage, event.branch)
    view.attempts.setdefault(event.name, []).append(spent)


def count_cut_off(view: RunView, cut_off: Mapping[str, Any]) -> None:
    """Add what attempts had consumed that were cut off with their process: no end of theirs will say it."""
    for (_, node_id), part in view.under_way.items():
        if node_id in cut_off:
            part.usage = _NOTHING
    for node_id, plain in cut_off.items():
        usage = Usage.from_plain(plain)
        view.usage += usage
        own = view.usage_by_node.get(node_id)
        view.usage_by_node[node_id] = usage if own is None else own + usage


def count_saved(view: RunView, event: StageEnd) -> None:
    """Add what a stage had consumed that came from the cache."""
    view.cached.append(event.name)
    if event.saved is not None:
        view.saved += event.saved
