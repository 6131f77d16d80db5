"""``run.why("node")``: whether a stage came from the cache, and if not, what had changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from attractor_nb.decisions.replays.cache_keys import UNCACHED_TYPES
from attractor_nb.errors import OptionError
from attractor_nb.model.bounded_json import read_bounded_json
from attractor_nb.model.calls.call_content import INPUTS_FILE, CacheLook, InputChange
from attractor_nb.model.states import NodeStatus
from attractor_nb.model.texts import did_you_mean
from attractor_nb.views.table import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from attractor_nb.model.graph import Graph
    from attractor_nb.views.state import RunView

NO_CACHE = "the run had no cache; give it one: run(cache=True)"


class Why(Struct, frozen=True):
    """The reason the latest attempt of a stage was executed, or was not. Its ``repr`` is a readable explanation."""

    node_id: str  #: The node.
    is_hit: bool  #: Its result came from the cache.
    reason: str  #: The reason, in one sentence.
    #: For a stage that was executed: what differs from the nearest earlier result of this node.
    changes: tuple[InputChange, ...] = ()
    compared_with: str = ""  #: The run of that result, or of the one that was taken; empty when there was none.
    key: str = ""  #: Digest of all that goes into the stage; empty when it is not one for the cache.

    def __str__(self) -> str:
        lines = [f"{self.node_id}: {self.reason}"]
        for change in self.changes:
            lines.append(f"  {change.name}")
            lines.append(f"    before  {_shown(change.before)}")
            lines.append(f"    now     {_shown(change.now)}")
        return "\n".join(lines)

    __repr__ = __str__


def why(node_id: str, graph: Graph, view: RunView, read: Callable[[str, str], str | None]) -> Why:
    """The result of a stage's cache lookup, read from its directory.

    Args:
        node_id: The node.
        graph: What runs, or ran.
        view: Its state.
        read: Reads a file of a stage's directory.
    """
    if node_id not in graph.nodes:
        raise OptionError(f"there is no node {node_id!r}{did_you_mean(node_id, graph.nodes)}")
    state = view.nodes.get(node_id)
    if state is None or (state.status is NodeStatus.PENDING and not state.visits):
        return Why(node_id, is_hit=False, reason="it was not reached")
    handler_type = graph.handler_types.get(node_id, "")
    if handler_type in UNCACHED_TYPES:
        return Why(node_id, is_hit=False, reason=f"executed: {UNCACHED_TYPES[handler_type]}")
    look = _look(read(node_id, INPUTS_FILE))
    if look is None:
        return Why(node_id, is_hit=False, reason=f"executed: {NO_CACHE}")
    reason = _reason(look)
    return Why(node_id, look.is_hit, reason, look.changes, look.compared_with, look.key)


def words_of_look(text: str) -> str:
    """The result of a cache lookup in words, from the text of the file that records it; empty for another form."""
    look = _look(text)
    return "" if look is None else _reason(look)


def _look(text: str | None) -> CacheLook | None:
    if text is None:
        return None
    try:
        return CacheLook.from_plain(read_bounded_json(text))
    except ValueError:
        return None


def _reason(look: CacheLook) -> str:
    if look.is_hit:
        return f"cached: run {look.compared_with} had executed it with the same inputs"
    if look.refused:
        return f"executed: {look.refused}"
    if look.changes:
        names = ", ".join(change.name for change in look.changes)
        reason = f"executed: {names} changed since run {look.compared_with}"
    elif look.compared_with:
        reason = f"executed: the result that run {look.compared_with} had kept could not be used"
    else:
        reason = "executed: the cache had no result of it"
    return f"{reason}; its result was not kept: {look.not_kept}" if look.not_kept else reason


def _shown(value: object) -> str:
    return "(none)" if value is None else one_line(str(value))
