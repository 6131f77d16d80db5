"""What a fresh session is told about the run so far (spec 5.4; ruling 34).

A mode has a budget, and it is used: inputs and goal claim it first, then the stage before and what failed,
then the results of branches, then the rest, the newest first. What the first of them leave goes to the
others, and what all leave goes to those that were cut. What is left out is said, with its size and its name.

On the page what stays the same from stage to stage stands first, so that providers know it again, and what
may differ between runs that came to the same stands last. Knows nothing of sessions or models; values are
read through a callable, and only those that there is room for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.decisions.notes import FAILURE, INCIDENTS, TOOL_CALL
from attractor_nb.decisions.preambles.preamble_amounts import amount_of
from attractor_nb.decisions.preambles.preamble_page import FOR_A_SECTION, INCIDENTS_HEADING, PreamblePage
from attractor_nb.decisions.preambles.preamble_past import BRANCHES_KEY
from attractor_nb.decisions.preambles.preamble_stages import claim_before, claim_failures, claim_lines, claim_texts
from attractor_nb.decisions.preambles.preamble_text import one_line
from attractor_nb.decisions.preambles.preamble_values import (
    claim_branches,
    claim_goal,
    claim_inputs,
    claim_values,
    claim_wanted,
)
from attractor_nb.model.calls.prompt_sections import outside_fences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attractor_nb.decisions.notes import Note
    from attractor_nb.decisions.preambles.preamble_page import PageSection
    from attractor_nb.decisions.preambles.preamble_past import PreamblePast, StageSummary


def claim_events(page: PreamblePage) -> None:
    """Notable events, without the failures that are told as stages, in a third of the room."""
    if not page.amount.events:
        return
    failures = tuple(f"{stage.node_id} failed" for stage in page.past.stages)
    notable = [
        note
        for note in page.past.events
        if note.kind not in INCIDENTS and not (note.kind == FAILURE and note.text.startswith(failures))
    ]
    page.left -= _listed(page, page.events, notable[-page.amount.events :], page.left // 3)


def claim_incidents(page: PreamblePage) -> None:
    """Incidents: last, and in room of their own, so that they move nothing else."""
    if not page.amount.incidents:
        return
    incidents = [
        note
        for note in page.past.events
        if note.kind in INCIDENTS and (page.amount.has_tools or note.kind != TOOL_CALL)
    ]
    _listed(page, page.incidents, incidents[-page.amount.incidents :], page.room_for_incidents)


def _listed(page: PreamblePage, section: PageSection, notes: Sequence[Note], room: int) -> int:
    """Write a line for each note, the newest that there is room for; how much of it they take."""
    lines, taken = list[str](), len(section.heading) + 4
    for note in reversed(notes):
        line = f"- {one_line(note.text, page.amount.notes)}"
        if taken + len(line) + 1 > room:
            break
        taken += len(line) + 1
        lines.append(line)
    section.blocks += reversed(lines)
    return taken if lines else 0


_RUN: Final = "Run: "


def build_preamble(mode: str, past: PreamblePast) -> str:
    """The text that a stage's prompt begins with; empty when there is nothing to tell.

    Args:
        mode: The fidelity mode; a word that is none counts as ``compact``. Under ``full`` the session knows
            the rest, and what ``carry`` names is told alone.
        past: What there is to tell.
    """
    has_more = mode != "full" and (past.stages or past.keys or past.inputs or past.events)
    if not (has_more or past.wanted or mode == "truncate"):
        return ""
    page = PreamblePage(past, amount_of(mode))
    if mode == "full":
        claim_wanted(page)
    elif mode == "truncate":
        claim_goal(page)
        claim_wanted(page)
        if past.run_id:  # behind all else: it is another in each run
            page.run.blocks.append(f"{_RUN}{one_line(past.run_id, 200)}")
    else:
        _claim_all(page)
    return page.text


def beginning_of(past: PreamblePast) -> str:
    """What the first stage of a thread is told, whose session knows nothing yet: goal and inputs, if any."""
    page = PreamblePage(past, amount_of("compact"))
    if past.inputs:
        claim_goal(page)
        claim_inputs(page, share=1)
    claim_wanted(page)
    page.grow()
    return page.text


def without_incidents(preamble: str) -> str:
    r"""A preamble without what may differ between runs that came to the same: for keys of the cache.

    >>> without_incidents("Goal: x\n\n### Attempts and tool calls\n\n- plan, attempt 1 failed")
    'Goal: x'
    >>> without_incidents("Goal: x\n\nRun: k7f3")
    'Goal: x'
    """
    for line, start in outside_fences(preamble):
        if line == INCIDENTS_HEADING or line.startswith(_RUN):
            return preamble[:start].rstrip("\n")
    return preamble


def _claim_all(page: PreamblePage) -> None:
    """Each part claims its room, and may then grow into what all of them leave."""
    past, has_branches = page.past, False
    if past.has_branches:
        for stage in past.stages:
            has_branches = has_branches or BRANCHES_KEY in stage.keys
    page.left -= 3 * FOR_A_SECTION  # stages, values, failures
    claim_goal(page)
    claim_inputs(page, share=2 if past.stages or past.keys else 1)
    earlier: list[StageSummary] = []
    if past.stages:
        claim_before(page, has_more=has_branches or len(past.stages) > 1)
        earlier = claim_failures(page)
    if has_branches:
        claim_branches(page)
    lines = claim_lines(page, earlier)
    if past.events:
        claim_events(page)
    claim_values(page)
    claim_texts(page, earlier, lines)
    page.grow()
    claim_wanted(page)
    if past.events:
        claim_incidents(page)
