"""What is told of the run's events: notable ones, which are results, and incidents, which are how those came about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.decisions.notes import FAILURE, INCIDENTS, TOOL_CALL
from attractor_nb.decisions.preambles.preamble_text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attractor_nb.decisions.notes import Note
    from attractor_nb.decisions.preambles.preamble_page import PageSection, PreamblePage


def claim_events(page: PreamblePage) -> None:
    """Notable events, without the failures that are told as stages, in a third of the room."""
    if not page.amount.events:
        return
    told = tuple(f"{stage.node_id} failed" for stage in page.past.stages)
    notable = [
        note
        for note in page.past.events
        if note.kind not in INCIDENTS and not (note.kind == FAILURE and note.text.startswith(told))
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
