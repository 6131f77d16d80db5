"""Which stages may be taken from the cache, and what made one be executed after all.

A stage is kept only where its inputs say all that its result depends on, and where executing it leaves
nothing behind but its result. Whoever can do more, a command or an agent, has to be declared.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from attractor_nb.model.calls.call_content import COMMAND_CALL, HANDLER_CALL, InputChange, changed_inputs
from attractor_nb.model.vocabulary.repetition import FOR_EACH_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from attractor_nb.model.calls.call_content import StageCall
    from attractor_nb.model.graph import Node

UNCACHED_TYPES: Final[Mapping[str, str]] = {
    "start": "a start does nothing",
    "exit": "an exit does nothing",
    "conditional": "a diamond only routes",
    "wait.human": "people are asked anew each time",
    "parallel": "a fan-out only walks its branches; their stages are looked up one by one",
    "stack.manager_loop": "a manager supervises; its child's stages are looked up one by one",
    "pipeline": "a sub-pipeline only runs its child; the child's stages are looked up one by one",
    FOR_EACH_TYPE: "a stage with for_each only runs its items; they are looked up one by one",
}
"""Handler types that are never cached, and why."""
READS_ATTRIBUTE: Final = "cache.context"
"""Node attribute that names the context keys a command or a handler reads."""
FILES_ATTRIBUTE: Final = "cache.files"
SHOWN_CHARACTERS: Final = 160
"""How much of a value a change shows, around the place where it differs."""
_LEAD_CHARACTERS: Final = 40
_WITH_EFFECTS: Final = {COMMAND_CALL: "a command", HANDLER_CALL: "a function"}


def refusal(node: Node, handler_type: str, call: StageCall, fidelity: str = "") -> str:
    """Why a stage is neither looked up in the cache nor kept there; empty when it is.

    Args:
        node: The node.
        handler_type: What executes it.
        call: What its handler says of the call that it will make.
        fidelity: Its resolved fidelity mode.
    """
    if handler_type in UNCACHED_TYPES:
        return UNCACHED_TYPES[handler_type]
    if node.get("cache", bool, default=True) is False:
        return "the node says cache=false"
    if call.inputs is None:
        return call.problem or "nobody can say what its result depends on"
    if call.has_effects and not is_declared(node):
        what = _WITH_EFFECTS.get(call.inputs.kind, "an agent with tools")
        return f"{what} may change more than its result says; write cache=true on the node if it does not"
    if fidelity == "full" and call.has_effects:
        return "an agent keeps its session elsewhere, and full fidelity goes on with it"
    return ""


def is_declared(node: Node) -> bool:
    """Whether a node says itself that executing it leaves nothing behind but its result."""
    return node.attrs.get("cache") is True or node.get("idempotent", bool, default=False) is True


class StageComparison(msgspec.Struct, frozen=True):
    """In what a stage differs from an earlier one."""

    changes: tuple[InputChange, ...] = ()  #: What differs, values cut short.
    run_id: str = ""  #: The run of the earlier one; empty when there is none.


def nearest(earlier: Iterable[tuple[Mapping[str, Any], str]], now: Mapping[str, Any]) -> StageComparison:
    """What differs from that earlier entry which differs in the fewest inputs.

    Args:
        earlier: Inputs and run id of each, the newest first; among equals the first counts.
        now: The inputs now.
    """
    compared = [StageComparison(_opened(changed_inputs(before, now)), run_id) for before, run_id in earlier]
    best = min(compared, key=lambda one: len(one.changes), default=StageComparison())
    return StageComparison(tuple(_short(change) for change in best.changes), best.run_id)


def _opened(changes: Iterable[InputChange]) -> tuple[InputChange, ...]:
    """Changes of values that have names of their own, such as context and files, one by one."""
    found: list[InputChange] = []
    for change in changes:
        if isinstance(change.before, dict) and isinstance(change.now, dict):
            before, now = cast("dict[str, Any]", change.before), cast("dict[str, Any]", change.now)
            inner = changed_inputs(before, now)
            found += [InputChange(f"{change.name}.{one.name}", one.before, one.now) for one in inner]
        else:
            found.append(change)
    return tuple(found)


def _short(change: InputChange) -> InputChange:
    before, now = _text(change.before), _text(change.now)
    begin = 0
    if before is not None and now is not None:
        pairs = zip(before, now, strict=False)
        begin = next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(before), len(now)))
    begin = max(0, begin - _LEAD_CHARACTERS)
    return InputChange(change.name, _excerpt(before, begin), _excerpt(now, begin))


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _excerpt(text: str | None, begin: int) -> str | None:
    if text is None or len(text) <= SHOWN_CHARACTERS:
        return text
    end = begin + SHOWN_CHARACTERS
    return ("…" if begin else "") + text[begin:end] + ("…" if end < len(text) else "")
