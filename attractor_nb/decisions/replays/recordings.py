"""The lookup of the recorded call that answers a call, and the report of a miss (docs/cassettes.md).

Calls are matched within their stage: by kind and by all inputs. Equal calls are given in the order of their
visits and attempts, each once. The module reads no files and calls nothing.
"""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec.structs import replace

from attractor_nb.model.calls.call_content import (
    MODEL_CALL,
    CallInputs,
    CallSite,
    InputChange,
    RecordedCall,
    changed_inputs,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

OWN_INPUTS: Final = frozenset({"prompt", "carried", "conversation"})
"""Inputs of a model call that the run knows without its backend, which alone knows the rest."""
MAX_SHORT: Final = 300
"""Of a value of the context or the conversation, more than this is known by its hash."""
_MAX_CHANGES: Final = 6
_MAX_DIFF_LINES: Final = 14
_MAX_LINE: Final = 160
_MAX_SHOWN: Final = 70


def find_call(
    calls: Sequence[RecordedCall],
    used: Collection[int],
    place: CallSite,
    inputs: CallInputs,
    *,
    is_described: bool = True,
) -> int | None:
    """The position of the call that answers, or None.

    That of the same visit and attempt comes first, then the next one that was made later. One that was made
    earlier never answers: in a run that is resumed it was given before.

    Args:
        calls: All calls of the stage, in the order of their visits.
        used: Positions of those that were given.
        place: Where the call is made now.
        inputs: What goes into it.
        is_described: Whether the backend said what goes in beside the prompt; else that is not compared.
    """
    digest = inputs.digest
    later: list[tuple[tuple[int, int], int]] = []
    for position, call in enumerate(calls):
        if position in used or call.place.turn < place.turn or call.inputs.kind != inputs.kind:
            continue
        if call.digest == digest or (not is_described and _is_same_task(call.inputs, inputs)):
            later.append((call.place.turn, position))
    return min(later)[1] if later else None


def _is_same_task(recorded: CallInputs, now: CallInputs) -> bool:
    return now.kind == MODEL_CALL and _of_run(recorded).values == _of_run(now).values


def _of_run(inputs: CallInputs) -> CallInputs:
    """The inputs of a call that a run knows without its backend."""
    values = {name: value for name, value in inputs.values.items() if name in OWN_INPUTS}
    return CallInputs(inputs.kind, inputs.node_id, values)


def nearest_call(
    calls: Sequence[RecordedCall], used: Collection[int], place: CallSite, inputs: CallInputs
) -> RecordedCall | None:
    """The recorded call of the stage that differs least; one that was not given yet before others."""
    same_kind = [pair for pair in enumerate(calls) if pair[1].inputs.kind == inputs.kind]

    def distance(pair: tuple[int, RecordedCall]) -> tuple[bool, int, int]:
        position, call = pair
        changes = len(changed_inputs(call.inputs.values, inputs.values))
        return position in used, changes, abs(call.place.visit - place.visit)

    return min(same_kind, key=distance)[1] if same_kind else None


def miss_report(
    calls: Sequence[RecordedCall],
    used: AbstractSet[int],
    place: CallSite,
    inputs: CallInputs,
    stages: Iterable[str],
    *,
    is_described: bool = True,
) -> tuple[str, tuple[str, ...]]:
    """The reason why no recorded call answers, and the names of the inputs that changed.

    Args:
        calls: All recorded calls of the stage.
        used: Positions of those that were given.
        place: Where the call is made.
        inputs: What goes into it.
        stages: The stages that have recorded calls.
        is_described: Whether the backend said what goes in beside the prompt.
    """
    if not is_described:
        calls = [replace(call, inputs=_of_run(call.inputs)) for call in calls]
    nearest = nearest_call(calls, used, place, inputs)
    if nearest is None:
        known = ", ".join(sorted(set(stages))[:12]) or "none"
        return f"no {inputs.kind} call of this stage was recorded; stages with calls: {known}", ()
    changes = changed_inputs(nearest.inputs.values, inputs.values)
    if not changes:
        count = sum(call.digest == nearest.digest for call in calls)
        times = {1: "once", 2: "twice"}.get(count, f"{count} times")
        return f"it was recorded {times}, and is made more often now", ()
    names = tuple(change.name for change in changes)
    shown = [line for change in changes[:_MAX_CHANGES] for line in _change_lines(change, "")]
    more = [f"  and {len(changes) - _MAX_CHANGES} more"] if len(changes) > _MAX_CHANGES else []
    what = f"its {', '.join(names)} changed since visit {nearest.place.visit} was recorded"
    return "\n".join([what, *shown, *more]), names


def _change_lines(change: InputChange, within: str) -> list[str]:
    """The change of an input, for users."""
    before, now = change.before, change.now
    name = f"{within}{change.name}"
    if isinstance(before, dict) and isinstance(now, dict):
        inner = changed_inputs(cast("dict[str, Any]", before), cast("dict[str, Any]", now))
        lines = [line for each in inner[:_MAX_CHANGES] for line in _change_lines(each, f"{name}.")]
        return lines if len(inner) <= _MAX_CHANGES else [*lines, f"  and {len(inner) - _MAX_CHANGES} more"]
    if isinstance(before, str) and isinstance(now, str) and len(before) + len(now) > _MAX_SHOWN:
        return [f"  {name}:", *_text_diff(before, now)]
    return [f"  {name}: {_shown(before)} → {_shown(now)}"]


def _text_diff(before: str, now: str) -> list[str]:
    diff = list(difflib.unified_diff(before.splitlines(), now.splitlines(), n=1, lineterm=""))[2:]
    lines = [f"    {_cut(line)}" for line in diff if not line.startswith("@@")]
    if len(lines) <= _MAX_DIFF_LINES:
        return lines
    return [*lines[:_MAX_DIFF_LINES], f"    … {len(lines) - _MAX_DIFF_LINES} more lines"]


def _cut(line: str) -> str:
    return line if len(line) <= _MAX_LINE else f"{line[: _MAX_LINE - 1]}…"


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"


def shortened(inputs: CallInputs) -> CallInputs:
    """The inputs as they are recorded: long values of the context, and the conversation, by their hash.

    They are what earlier calls answered, and those answers are on record in full.
    """
    values = dict(inputs.values)
    context: Any = values.get("context")
    if isinstance(context, dict):
        entries = cast("dict[str, Any]", context)
        values["context"] = {key: _short(value, inputs.kind) for key, value in entries.items()}
    if "conversation" in values:
        values["conversation"] = _short(values["conversation"], inputs.kind)
    return CallInputs(inputs.kind, inputs.node_id, values)


def _short(value: Any, kind: str) -> Any:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    if len(text) <= MAX_SHORT:
        return value
    digest = CallInputs(kind, "", {"value": value}).digest
    return {"begins": text[:_MAX_SHOWN], "characters": len(text), "sha256": digest}


def unused_lines(calls: Iterable[RecordedCall]) -> list[str]:
    """Recorded calls that were not made, one line each."""
    return [str(call).removeprefix("the ") for call in calls]


def stage_names(calls: Mapping[tuple[str, str, str], Sequence[RecordedCall]]) -> list[str]:
    """The stages that have recorded calls, by their paths."""
    return ["/".join(part for part in stage if part) for stage in calls]
