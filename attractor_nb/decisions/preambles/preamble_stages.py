"""What is told of stages: the one before, what failed, and a line for each of the others with what it said."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from attractor_nb.decisions.notes import INCIDENTS
from attractor_nb.decisions.preambles.preamble_page import FOR_A_SECTION
from attractor_nb.decisions.preambles.preamble_past import (
    BRANCHES_KEY,
    COMPLETED,
    TOOL_ERRORS_KEY,
    TOOL_OUTPUT_KEY,
    PreambleLine,
)
from attractor_nb.decisions.preambles.preamble_text import LEAST, PreambleText, clipped, is_one_line, one_line, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from attractor_nb.decisions.preambles.preamble_page import PreamblePage
    from attractor_nb.decisions.preambles.preamble_past import StageSummary

_MAX_FAILURES: Final = 3
_COMMAND_LENGTH: Final = 200
_COMMAND_READ: Final = 900
"""Characters of a command that are read for that many in one line."""
_FAILED: Final = frozenset({"fail", "retry"})
_COMMAND_KEYS: Final = frozenset({TOOL_OUTPUT_KEY, TOOL_ERRORS_KEY})
_LABELS: Final = {
    TOOL_OUTPUT_KEY: "Output of the command",
    TOOL_ERRORS_KEY: "What the command wrote to stderr",
    "human.gate.text": "What the person wrote",
    "human.gate.form": "What the person filled in",
}


def claim_before(page: PreamblePage, *, has_more: bool) -> None:
    """The stage before: in two thirds of the room, if there is more to tell of than that stage."""
    before, begun = page.past.stages[-1], page.left
    page.before.heading = f"### The stage before: {_named(before)}"
    page.left -= len(page.before.heading) + FOR_A_SECTION
    page.write(page.before, _status_line(before, 4 * page.amount.notes))
    room = (begun * 2 // 3 if has_more else begun) - (begun - page.left)
    page.share_out(page.before, [*_lines_of_notes(before), *_texts_of(page, before)], room)


def claim_failures(page: PreamblePage) -> list[StageSummary]:
    """What failed and no later visit has undone, the newest first, each in a third of the room.

    Returns:
        The stages before that one and beside these, oldest first.
    """
    *earlier, before = page.past.stages
    seen, failures = {before.node_id}, list["StageSummary"]()
    for stage in reversed(earlier):
        if stage.node_id not in seen and stage.status in _FAILED:
            failures.append(stage)
        seen.add(stage.node_id)
    for stage in failures[:_MAX_FAILURES]:
        line = f"- {_named(stage)}: {_status_line(stage, page.amount.notes)}"
        if len(line) < page.left // 3:
            page.write(page.failures, line)
            page.share_out(page.failures, [*_lines_of_notes(stage), *_texts_of(page, stage)], page.left // 3)
            earlier = [each for each in earlier if each is not stage]
    return earlier


def claim_lines(page: PreamblePage, earlier: Sequence[StageSummary]) -> list[PreambleLine]:
    """A line for each earlier stage, the newest that half of the room has place for.

    Returns:
        The lines, oldest first: of the newest of ``earlier``.
    """
    if page.amount.has_counts and page.past.stages:
        counts = _counted(stage.status for stage in page.past.stages)
        notable = _counted(note.kind for note in page.past.events if note.kind not in INCIDENTS)
        events = f"; notable events: {notable}" if notable else ""
        page.write(page.stages, f"Stages so far: {counts}{events}.")
    room, lines, limit = page.left // 2, list[PreambleLine](), page.amount.notes
    for stage in reversed(earlier[-page.amount.stages :]):
        line = stage.line
        if line is None or line.limit != limit:
            size = f". Response ({stage.size:,} characters; the whole is ${{{stage.keys[0]}}})" if stage.keys else ""
            text = f"- {_named(stage)}: {_status_line(stage, limit)}"
            line = stage.line = PreambleLine(limit, text, owed=len(size))
        if (room := room - len(line.text) - 2) < 0:
            break
        page.left -= len(line.text) + 2
        lines.append(line)
    if left_out := len(earlier) - len(lines):
        page.write(page.stages, f"({left_out} earlier {'stage is' if left_out == 1 else 'stages are'} not told)")
    lines.reverse()
    for line in lines:
        page.stages.blocks.append(line.text)
    return lines


def claim_texts(page: PreamblePage, earlier: Sequence[StageSummary], lines: Sequence[PreambleLine]) -> None:
    """What the earlier stages said, behind their lines."""
    # The newest speaks first and takes two thirds of what is free. Free is what is left when each older line can
    # still say how much its stage said, for what is left out is said; where hardly anything is free, so does this
    # one. A text that fits is composed once: it is the same in the next prompt as long as its value is.
    owed, kept, wanted = 0, page.past.kept, page.past.wanted
    for line in lines:
        owed += line.owed
    for back in range(1, len(lines) + 1):
        stage, line = earlier[-back], lines[-back]
        if not stage.keys:
            continue
        owed -= line.owed
        free, key, whole = page.left - owed, stage.keys[0], ""
        if key in page.stated and not stage.excerpt:
            continue  # a later visit tells it
        room = len(line.text) + max(free * 2 // 3, min(page.left, LEAST))
        if key in page.stated:
            whole = "" if key in wanted else line.replaced
        elif line.whole and kept.get(key) is line.value:
            whole = line.whole
        if whole and free >= LEAST and len(whole) <= room:
            page.stated.add(key)
            page.left -= len(whole) - len(line.text)
            page.stages.blocks[-back] = whole
            continue
        entry = _size_of(page, stage, line) if free < LEAST else _excerpt_of(page, stage, line)
        if entry is None:
            continue
        entry.room = min(entry.need, room)
        if shown := len(entry.rendered()):  # else not even how much there is fits
            page.left -= shown - len(line.text)
            page.texts.append(entry)
            page.stages.blocks[-back] = entry


def _size_of(page: PreamblePage, stage: StageSummary, line: PreambleLine) -> PreambleText | None:
    """How much a stage said, behind its line; None when that stands somewhere, or is not known."""
    key = stage.keys[0]
    if not stage.size or key in page.stated:
        return None
    page.stated.add(key)
    return PreambleText(f"{line.text}. {_label_of(key)}", "", stage.size, key)


def _excerpt_of(page: PreamblePage, stage: StageSummary, line: PreambleLine) -> PreambleText | None:
    """What a stage said, behind its line, which keeps it; None for nothing."""
    key = stage.keys[0]
    is_replaced = key in page.stated
    entry = _left_under(page, stage, key, f"{line.text}. ")
    if entry is None:
        return None
    if not is_replaced:
        value = page.past.kept.get(key)
        if type(value) is str:
            line.value, line.whole = value, entry.whole
    elif key not in page.past.wanted:
        line.replaced = entry.whole
    return entry


def _lines_of_notes(stage: StageSummary) -> list[PreambleText]:
    """The notes of a stage, where they are several lines: its status line has the first alone."""
    notes = _own_notes(stage).strip()
    if is_one_line(notes):
        return []
    label = "- Reason" if stage.status in _FAILED else "- Notes"
    return [PreambleText(label, notes, len(notes))]


def _texts_of(page: PreamblePage, stage: StageSummary) -> list[PreambleText]:
    """All that a stage left."""
    return [text for key in stage.keys if (text := _left_under(page, stage, key, "- "))]


def _left_under(page: PreamblePage, stage: StageSummary, key: str, lead: str) -> PreambleText | None:
    """What a stage left under a key: whole while the context has it, else its excerpt; None for nothing."""
    if key == BRANCHES_KEY:
        return None
    label, is_end = f"{lead}{_label_of(key)}", key in _COMMAND_KEYS
    if key in page.past.wanted:
        return PreambleText(f"{label}: in full above")
    if key not in page.stated:
        page.stated.add(key)
        value = page.past.value(key, None)
        return None if value is None or value == "" else text_of(label, value, key, is_end=is_end)
    if key != stage.keys[0] or not stage.excerpt:
        return None
    text = stage.excerpt.strip("\n")
    return PreambleText(f"{label}, since replaced", text, stage.size - len(stage.excerpt) + len(text), is_end=is_end)


def _label_of(key: str) -> str:
    """What a stage has left under a key, in the words of people."""
    return _LABELS.get(key, "Response" if key.endswith(".response") else one_line(key, 80))


def _named(stage: StageSummary) -> str:
    name = one_line(stage.node_id, 80)
    return f"{name} ({one_line(stage.label, 80)})" if stage.label and stage.label != stage.node_id else name


def _status_line(stage: StageSummary, limit: int) -> str:
    """How a stage ended and what it says of itself, in one line."""
    notes = _own_notes(stage)
    return f"{stage.status} - {one_line(notes, limit)}" if notes.strip() else stage.status


def _own_notes(stage: StageSummary) -> str:
    """What a stage says of itself beside its status and its output."""
    notes = stage.notes
    if notes == f"{COMPLETED}{stage.node_id}":
        return ""  # the status says so already
    if TOOL_OUTPUT_KEY in stage.keys and stage.status in _FAILED:
        notes = _first_clause(notes)  # the end of the output follows
        if stage.command:
            command = clipped(" ".join(stage.command[:_COMMAND_READ].split()), _COMMAND_LENGTH)
            notes = notes.replace("the command", f"`{command}`", 1)
    return notes


def _first_clause(reason: str) -> str:
    """A reason without the output that it quotes."""
    ends = [place for mark in (": ", "; ", "\n") if (place := reason.find(mark)) >= 0]
    return reason[: min(ends, default=len(reason))]


def _counted(words: Iterable[str]) -> str:
    return ", ".join(f"{count} {word}" for word, count in Counter(words).items())
