"""What a fresh session is told about the run so far (spec 5.4).

Budgets are estimates without a tokenizer: four characters count as one token. The newest stages and
values are kept, the rest is counted. Knows nothing of prompts, sessions or models.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CHARACTERS_PER_TOKEN: Final = 4
BRIEF_STAGES: Final = 3
HIDDEN_PREFIXES: Final = ("internal.", "graph.")
"""Context keys that are the engine's own, or say what the goal says already."""


@dataclass(frozen=True, slots=True)
class StageSummary:
    """What is told of a stage.

    Attributes:
        node_id: The node.
        label: Its display name.
        status: How it ended.
        notes: Its own summary.
        response_excerpt: The beginning of what it produced.
        attempts: How often it was tried.
    """

    node_id: str
    label: str
    status: str
    notes: str = ""
    response_excerpt: str = ""
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class _Amount:
    """How much a mode tells: tokens in all, characters of each note, response and value, log entries."""

    tokens: int
    notes: int
    response: int
    value: int
    logs: int


_AMOUNTS: Final = {
    "compact": _Amount(1000, 200, 200, 120, 0),
    "summary:low": _Amount(600, 120, 0, 0, 0),
    "summary:medium": _Amount(1500, 300, 200, 200, 5),
    "summary:high": _Amount(3000, 600, 600, 400, 20),
}


def build_preamble(
    mode: str,
    *,
    goal: str,
    run_id: str,
    stages: Sequence[StageSummary],
    values: Mapping[str, object],
    logs: Sequence[str],
) -> str:
    """The text that a stage's prompt begins with; empty for ``full``, whose session knows.

    Args:
        mode: The fidelity mode; a word that is none counts as ``compact``.
        goal: The pipeline's goal.
        run_id: The run.
        stages: Completed stages, oldest first.
        values: Context values, oldest first; ``internal.`` and ``graph.`` keys are left out.
        logs: The run log, oldest first.
    """
    if mode == "full":
        return ""
    amount = _AMOUNTS.get(mode, _AMOUNTS["compact"])
    budget = amount.tokens * CHARACTERS_PER_TOKEN
    head = [f"Goal: {_clipped(goal, budget // 4)}"] if goal else []
    if run_id:
        head.append(f"Run: {_clipped(run_id, 200)}")
    if mode == "truncate":
        return "\n".join(head)
    remaining = budget - sum(len(line) + 1 for line in head)
    if mode == "summary:low":
        return "\n".join([*head, *_brief(stages, amount, remaining)])
    lines = _section(
        "Completed stages", [_stage_entry(stage, amount) for stage in stages], remaining * 3 // 5
    )
    remaining -= sum(len(line) + 1 for line in lines)
    entries = [
        f"- {_clipped(key, 80)}: {_value(value, amount.value)}"
        for key, value in values.items()
        if not key.startswith(HIDDEN_PREFIXES)
    ]
    lines += _section("Context", entries, remaining * 3 // 4 if amount.logs else remaining)
    if amount.logs:
        remaining = budget - sum(len(line) + 1 for line in [*head, *lines])
        notable = [f"- {_clipped(entry, amount.notes)}" for entry in logs[-amount.logs :]]
        lines += _section("Notable events", notable, remaining)
    return "\n".join([*head, *lines])


def _brief(stages: Sequence[StageSummary], amount: _Amount, budget: int) -> list[str]:
    """Counts by status, and as many of the last three stages as the budget takes."""
    if not stages:
        return []
    counts = Counter(stage.status for stage in stages)
    told = ", ".join(f"{count} {status}" for status, count in counts.items())
    first = f"Recent stages: {told}."
    entries = [_stage_entry(stage, amount) for stage in stages[-BRIEF_STAGES:]]
    return [first, *_section("The last of them", entries, budget - len(first) - 1)]


def _section(title: str, entries: Sequence[str], budget: int) -> list[str]:
    """A titled list of the newest entries that the budget takes, in their order; empty without any."""
    used = len(title) + 24
    kept: list[str] = []
    for entry in reversed(entries):
        used += len(entry) + 1
        if used > budget:
            break
        kept.append(entry)
    if not kept:
        return []
    heading = f"{title}:" if len(kept) == len(entries) else f"{title} (the newest {len(kept)}):"
    return [heading, *reversed(kept)]


def _stage_entry(stage: StageSummary, amount: _Amount) -> str:
    name = stage.node_id
    if stage.label and stage.label != name:
        name = f"{name} ({_clipped(stage.label, 80)})"
    tries = f" after {stage.attempts} attempts" if stage.attempts > 1 else ""
    entry = f"- {name}: {stage.status}{tries}"
    if stage.notes:
        entry += f" - {_clipped(stage.notes, amount.notes)}"
    if stage.response_excerpt and amount.response:
        entry += f"\n  response: {_clipped(stage.response_excerpt, amount.response)}"
    return entry


def _value(value: object, limit: int) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return _clipped(text, limit)


def _clipped(text: str, limit: int) -> str:
    """One line of at most ``limit`` characters."""
    flat = " ".join(text[: limit * 4 + 100].split())
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"
