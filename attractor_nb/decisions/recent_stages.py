"""What is remembered of a committed stage for the preambles of later ones (spec 5.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from attractor_nb.decisions.preambles.preamble_past import BRANCHES_KEY, TOOL_ERRORS_KEY, TOOL_OUTPUT_KEY, StageSummary
from attractor_nb.model.excerpts import last_lines
from attractor_nb.model.inputs import ENGINE_KEYS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attractor_nb.model.events import StageEnd

RECENT_STAGES: Final = 30
_RECENT_KEYS: Final = 50
_KEYS_OF_A_STAGE: Final = 12
_EXCERPT_LENGTH: Final = 1000
_NOTES_LENGTH: Final = 2000
_HIDDEN_PREFIXES: Final = ("internal.", "graph.", "parallel.", "tool.", "human.gate.")
"""Keys that are the engine's own, or that are told with the stage that has set them."""
_HIDDEN_ENDINGS: Final = (".response", ".run_id", ".logs_root")
"""Endings of keys that are told with their stage, or are of no use to a model."""
_OUTPUT_KEYS: Final = (TOOL_OUTPUT_KEY, BRANCHES_KEY, "human.gate.text", "human.gate.form")
"""Keys of what a stage came to, beside its response; it has one of them."""
_MAY_BE_EMPTY: Final = frozenset({TOOL_OUTPUT_KEY, BRANCHES_KEY})
_MORE_KEYS: Final = {TOOL_OUTPUT_KEY: (TOOL_ERRORS_KEY,), "human.gate.text": ("human.gate.form",)}


def remember_keys(recent: dict[str, None], changed: Mapping[str, Any]) -> list[str]:
    """Take in which keys were set, the newest last, of those that have no other place in a preamble; these."""
    keys = list[str]()
    for key in changed:
        if key in ENGINE_KEYS or key.startswith(_HIDDEN_PREFIXES) or key.endswith(_HIDDEN_ENDINGS):
            continue
        recent.pop(key, None)
        recent[key] = None
        keys.append(key)
    while len(recent) > _RECENT_KEYS:
        del recent[next(iter(recent))]
    return keys[-_KEYS_OF_A_STAGE:]


def stage_summary(event: StageEnd, keys: Sequence[str]) -> StageSummary:
    """What is remembered of a stage that was committed and has set these keys."""
    changed = event.context
    main = f"{event.name}.response"
    if main not in changed:
        main = next((key for key in _OUTPUT_KEYS if changed.get(key) or (key in changed and key in _MAY_BE_EMPTY)), "")
    output, is_end = changed.get(main, changed.get("last_response", "")), main == TOOL_OUTPUT_KEY
    text = output if isinstance(output, str) else ""
    more = [key for key in _MORE_KEYS.get(main, ()) if key in changed]
    return StageSummary(
        node_id=event.name,
        label=event.name,
        status=event.outcome.status.value,
        notes=(event.outcome.failure_reason or event.outcome.notes)[:_NOTES_LENGTH],
        excerpt=last_lines(text, _EXCERPT_LENGTH) if is_end else text[:_EXCERPT_LENGTH],
        size=len(text),
        keys=(main, *more, *keys)[:_KEYS_OF_A_STAGE] if main else tuple(keys),
    )
