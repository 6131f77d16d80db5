"""What a fresh session is told about the run so far (spec 5.4).

Budgets are estimates without a tokenizer (``model.tokens``). The newest stages, values and events are kept,
the rest is counted. Knows nothing of prompts, sessions or models.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.decisions.notes import INCIDENTS, TOOL_CALL
from attractor_nb.model.tokens import CHARACTERS_PER_TOKEN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from attractor_nb.decisions.notes import Note

BRIEF_STAGES: Final = 3
HIDDEN_PREFIXES: Final = ("internal.", "graph.", "parallel.branch.")
"""Context keys that are the engine's own, or say what the goal or ``parallel.results`` say already."""
BRANCHES_KEY: Final = "parallel.results"
NOTABLE_TITLE: Final = "Notable events"
INCIDENTS_TITLE: Final = "Attempts and tool calls"
"""The last section of a summary: how results came about, which may differ where the results do not."""


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
    """How much a mode tells.

    Attributes:
        tokens: In all.
        goal: Characters of the goal.
        notes: Characters of a stage's notes.
        response: Characters of a response.
        value: Characters of a value.
        events: Notable events.
        incidents: Attempts and tool calls.
        has_tools: Tool calls are among these.
    """

    tokens: int
    goal: int
    notes: int
    response: int
    value: int
    events: int = 0
    incidents: int = 0
    has_tools: bool = False


_AMOUNTS: Final = {
    "truncate": _Amount(350, 1000, 0, 0, 0),
    "compact": _Amount(1000, 1000, 200, 200, 120),
    "summary:low": _Amount(600, 600, 120, 0, 0),
    "summary:medium": _Amount(1500, 1500, 300, 200, 200, events=8, incidents=4),
    "summary:high": _Amount(3000, 3000, 600, 600, 400, events=20, incidents=20, has_tools=True),
}
TOKEN_BUDGETS: Final = {mode: amount.tokens for mode, amount in _AMOUNTS.items()}
"""How many tokens a preamble has at most, by mode; ``full`` has none."""


def build_preamble(
    mode: str,
    *,
    goal: str,
    run_id: str,
    stages: Sequence[StageSummary],
    values: Mapping[str, object],
    events: Sequence[Note],
) -> str:
    """The text that a stage's prompt begins with; empty for ``full``, whose session knows.

    Args:
        mode: The fidelity mode; a word that is none counts as ``compact``.
        goal: The pipeline's goal.
        run_id: The run.
        stages: Completed stages, oldest first.
        values: Context values, oldest first; ``internal.`` and ``graph.`` keys are left out.
        events: Notable events and incidents, oldest first.
    """
    if mode == "full":
        return ""
    amount = _AMOUNTS.get(mode, _AMOUNTS["compact"])
    page = _Page(amount.tokens * CHARACTERS_PER_TOKEN)
    page.add_head(_clipped(goal, amount.goal), _clipped(run_id, 200))
    if mode == "truncate":
        return page.text
    notable = [note for note in events if note.kind not in INCIDENTS]
    if mode == "summary:low":
        _add_brief(page, stages, notable, amount)
        return page.text
    page.add("Completed stages", [_stage_entry(stage, amount) for stage in stages], 3 / 5)
    entries = [
        f"- {_clipped(key, 80)}: {_value(key, value, amount.value)}"
        for key, value in values.items()
        if not key.startswith(HIDDEN_PREFIXES)
    ]
    page.add("Context", entries, 3 / 5 if amount.events else 1)
    incidents = [
        note for note in events if note.kind in INCIDENTS and (amount.has_tools or note.kind != TOOL_CALL)
    ]
    if amount.events:
        page.add(NOTABLE_TITLE, _lines(notable[-amount.events :], amount), 1 / 2 if incidents else 1)
        page.add(INCIDENTS_TITLE, _lines(incidents[-amount.incidents :], amount), 1)
    return page.text


def without_incidents(preamble: str) -> str:
    r"""A preamble without what may differ between runs that came to the same: for keys of the cache.

    >>> without_incidents("Goal: x\nAttempts and tool calls:\n- plan, attempt 1 failed")
    'Goal: x'
    """
    return preamble.partition(f"\n{INCIDENTS_TITLE}")[0]


def budget_tokens(mode: str) -> int:
    """The most tokens that a mode's preamble takes; a word that is no mode counts as ``compact``.

    >>> [budget_tokens(mode) for mode in ("full", "truncate", "compact", "summary:high")]
    [0, 350, 1000, 3000]
    """
    return 0 if mode == "full" else _AMOUNTS.get(mode, _AMOUNTS["compact"]).tokens


class _Page:
    """Lines that keep to a budget of characters."""

    def __init__(self, budget: int) -> None:
        self._lines: list[str] = []
        self._left = budget

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    def add_head(self, goal: str, run_id: str) -> None:
        if goal:
            self._take([f"Goal: {goal}"])
        if run_id:
            self._take([f"Run: {run_id}"])

    def add_line(self, line: str) -> None:
        """A line, if there is room."""
        if len(line) < self._left:
            self._take([line])

    def add(self, title: str, entries: Sequence[str], share: float) -> None:
        """A titled list of the newest entries, in their order, as many as a share of what is left takes."""
        used = len(title) + 24
        kept: list[str] = []
        for entry in reversed(entries):
            used += len(entry) + 1
            if used > self._left * share:
                break
            kept.append(entry)
        if kept:
            heading = f"{title}:" if len(kept) == len(entries) else f"{title} (the newest {len(kept)}):"
            self._take([heading, *reversed(kept)])

    def _take(self, lines: Sequence[str]) -> None:
        self._lines += lines
        self._left -= sum(len(line) + 1 for line in lines)


def _add_brief(page: _Page, stages: Sequence[StageSummary], notable: Sequence[Note], amount: _Amount) -> None:
    """Counts of stages and events, and the last three stages."""
    if stages:
        page.add_line(f"Recent stages: {_counted(stage.status for stage in stages)}.")
    if notable:
        page.add_line(f"{NOTABLE_TITLE}: {_counted(note.kind for note in notable)}.")
    page.add("The last stages", [_stage_entry(stage, amount) for stage in stages[-BRIEF_STAGES:]], 1)


def _counted(words: Iterable[str]) -> str:
    return ", ".join(f"{count} {word}" for word, count in Counter(words).items())


def _lines(notes: Sequence[Note], amount: _Amount) -> list[str]:
    return [f"- {_clipped(note.text, amount.notes)}" for note in notes]


def _stage_entry(stage: StageSummary, amount: _Amount) -> str:
    name = stage.node_id
    if stage.label and stage.label != name:
        name = f"{name} ({_clipped(stage.label, 80)})"
    tries = f" after {stage.attempts} attempts" if stage.attempts > 1 else ""
    entry = f"- {name}: {stage.status}{tries}"
    if stage.notes and stage.notes != f"Stage completed: {stage.node_id}":  # the status says so already
        entry += f" - {_clipped(stage.notes, amount.notes)}"
    if stage.response_excerpt and amount.response:
        entry += f"\n  response: {_clipped(stage.response_excerpt, amount.response)}"
    return entry


def _value(key: str, value: object, limit: int) -> str:
    if key == BRANCHES_KEY and isinstance(value, list):
        return _branches(cast("list[Any]", value), limit)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return _clipped(text, limit)


def _branches(results: Sequence[Any], limit: int) -> str:
    """What came of each branch (``BranchResult.to_plain``), in as many characters each."""
    told: list[str] = []
    for result in results:
        plain = cast("dict[str, Any]", result) if isinstance(result, dict) else {}
        said = plain.get("context_updates", {}).get("last_response") or plain.get("failure_reason", "")
        told.append(f"{plain.get('id')} {plain.get('status')}" + (f" - {said}" if said else ""))
    room = limit // max(1, len(told))
    return _clipped("; ".join(_clipped(branch, room) for branch in told), limit)


def _clipped(text: str, limit: int) -> str:
    """One line of at most ``limit`` characters."""
    flat = " ".join(text[: limit * 4 + 100].split())
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"
