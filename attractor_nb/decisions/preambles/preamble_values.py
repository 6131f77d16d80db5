"""What is told of the run's values: its goal and inputs, results of branches, what stages set, what ``carry`` names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from attractor_nb.decisions.fan_outs.fan_in_choice import UnreadableResults, candidates_of, output_of
from attractor_nb.decisions.preambles.preamble_past import BRANCHES_KEY, COMPLETED
from attractor_nb.decisions.preambles.preamble_text import PreambleText, one_line, text_of
from attractor_nb.model.calls.tokens import CHARACTERS_PER_TOKEN
from attractor_nb.model.excerpts import fair_shares
from attractor_nb.model.vocabulary.value_paths import value_at

if TYPE_CHECKING:
    from attractor_nb.decisions.fan_outs.fan_in_choice import Candidate
    from attractor_nb.decisions.preambles.preamble_page import PreamblePage
    from attractor_nb.decisions.preambles.preamble_past import PreamblePast

MAX_CARRIED_CHARACTERS: Final = 64_000 * CHARACTERS_PER_TOKEN
"""Of all that ``carry`` names: half of the window of a model whose window nobody named."""
_UNCUT: Final = 2**40
_MISSING: Final = object()


def claim_goal(page: PreamblePage) -> None:
    """The goal, in a quarter of the room at most."""
    if goal := page.past.goal.strip():
        page.add(page.goal, PreambleText("Goal", goal, len(goal), "graph.goal"), page.left // 4)


def claim_inputs(page: PreamblePage, *, share: int) -> None:
    """What the run was given, each in its fair share of a part of the room."""
    texts: list[PreambleText] = []
    for name in page.past.inputs:
        if name not in page.stated and (value := page.past.value(name, _MISSING)) is not _MISSING:
            page.stated.add(name)
            texts.append(text_of(f"- {one_line(name, 80)}", value, name))
    page.share_out(page.inputs, texts, page.left // share)


def claim_branches(page: PreamblePage) -> None:
    """What came of the branches of the last fan-out, each by its name and in its fair share."""
    if BRANCHES_KEY in page.stated:
        return
    texts: list[PreambleText] = []
    for branch in _branches(page.past):
        notes = "" if branch.notes.startswith(COMPLETED) else branch.notes
        text = one_line(branch.failure_reason or notes, page.amount.notes)
        status = f"{branch.status.value} - {text}" if text else branch.status.value
        output = output_of(branch, _UNCUT)
        texts.append(PreambleText(f"- {one_line(branch.id, 80)} ({status})", output, len(output), BRANCHES_KEY))
    page.share_out(page.branches, texts, page.left * 3 // 4)


def claim_values(page: PreamblePage) -> None:
    """Values that no stage has told, the newest that half of the room has place for."""
    if not page.amount.value:
        return
    room, kept, left_out = page.left // 2, list[PreambleText](), 0
    for key in reversed(page.past.keys):
        if key in page.stated:
            continue
        value = _MISSING if room <= 0 else page.past.value(key, _MISSING)
        if value is _MISSING or value is None:
            left_out += room <= 0
            continue
        text = text_of(f"- {one_line(key, 80)}", value, key)
        text.room = min(text.need, page.amount.value, room)
        if not (shown := text.rendered()):
            left_out, room = left_out + 1, 0
            continue
        page.stated.add(key)
        room -= len(shown) + 2
        page.left -= len(shown) + 2
        page.texts.append(text)
        kept.append(text)
    if left_out:
        values = "older value is" if left_out == 1 else "older values are"
        page.write(page.values, f"({left_out} {values} not told)")
    page.values.blocks += reversed(kept)


def claim_wanted(page: PreamblePage) -> None:
    """What the node names in ``carry``, whole, outside the budget and within a model's window."""
    if not page.past.wanted:
        return
    texts = [
        PreambleText(f"- {one_line(name, 80)}: there is none yet")
        if (value := _wanted_value(page.past, name)) is _MISSING
        else text_of(f"- {one_line(name, 80)}", value, name)
        for name in page.past.wanted
    ]
    for text, room in zip(texts, fair_shares(MAX_CARRIED_CHARACTERS, [text.need for text in texts]), strict=True):
        text.room = room
    page.wanted.blocks += texts


def _wanted_value(past: PreamblePast, name: str) -> Any:
    """A value of the context, or what a branch of the last fan-out has set under that name."""
    value = value_at(past.value, name, _MISSING)
    if value is not _MISSING:
        return value
    for branch in _branches(past):
        if name in branch.context_updates:
            return branch.context_updates[name]
    return _MISSING


def _branches(past: PreamblePast) -> tuple[Candidate, ...]:
    try:
        return candidates_of(past.value(BRANCHES_KEY, None))
    except UnreadableResults:
        return ()
