"""The preamble of a fresh session: a summary of the run so far (spec 5.4; ruling 34).

A mode has a budget, and it is used. Inputs and goal claim it first, then the stage before and the failures,
then the results of branches, then the rest, the newest first. Room that the first of them leave goes to the
others, and room that all leave goes to texts that were cut. An omission is reported with its size and name.

Parts that are the same from stage to stage come first on the page, so that providers can cache them. Parts that
may differ between equal runs come last. The module knows nothing of sessions or models. It reads values through
a callable, and only those that fit into the budget.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.decisions.fan_in_choice import Candidate, UnreadableResults, candidates_of, output_of
from attractor_nb.decisions.notes import FAILURE, INCIDENTS, TOOL_CALL, Note
from attractor_nb.decisions.preamble_page import (
    BRANCHES_KEY,
    COMPLETED,
    FOR_A_SECTION,
    INCIDENTS_HEADING,
    LEAST,
    TOOL_ERRORS_KEY,
    TOOL_OUTPUT_KEY,
    PageSection,
    PreambleLine,
    PreamblePage,
    PreamblePast,
    PreambleText,
    StageSummary,
    amount_of,
    clipped,
    is_one_line,
    one_line,
    text_of,
)
from attractor_nb.model.calls.call_content import outside_fences
from attractor_nb.model.calls.messages import CHARACTERS_PER_TOKEN
from attractor_nb.model.texts import fair_shares
from attractor_nb.model.vocabulary.value_forms import value_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


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
    """The preamble of the first stage of a thread, whose session is empty: goal and inputs, if any."""
    page = PreamblePage(past, amount_of("compact"))
    if past.inputs:
        claim_goal(page)
        claim_inputs(page, share=1)
    claim_wanted(page)
    page.grow()
    return page.text


def without_incidents(preamble: str) -> str:
    r"""A preamble without what may differ between runs with the same results: for keys of the cache.

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


# Sections of the run's values: its goal and inputs, results of branches, values of stages and of ``carry``.

MAX_CARRIED_CHARACTERS: Final = 64_000 * CHARACTERS_PER_TOKEN
"""Of all that ``carry`` names: half of the window of a model whose window is not known."""
_UNCUT: Final = 2**40
_MISSING: Final = object()


def claim_goal(page: PreamblePage) -> None:
    """The goal, in a quarter of the room at most."""
    if goal := page.past.goal.strip():
        page.add(page.goal, PreambleText("Goal", goal, len(goal), "graph.goal"), page.left // 4)


def claim_inputs(page: PreamblePage, *, share: int) -> None:
    """Claim room for the inputs of the run, each in its fair share of a part of the room."""
    texts: list[PreambleText] = []
    for name in page.past.inputs:
        if name not in page.stated and (value := page.past.value(name, _MISSING)) is not _MISSING:
            page.stated.add(name)
            texts.append(text_of(f"- {one_line(name, 80)}", value, name))
    page.share_out(page.inputs, texts, page.left // share)


def claim_branches(page: PreamblePage) -> None:
    """Claim room for the results of the last fan-out's branches, each by its name and in its fair share."""
    if BRANCHES_KEY in page.stated:
        return
    texts: list[PreambleText] = []
    for branch in _branches(page.past):
        notes = "" if branch.notes.startswith(COMPLETED) else branch.notes
        text = one_line(branch.failure_reason or notes, page.amount.notes)
        status = f"{branch.ending} - {text}" if text else branch.ending
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
    """Add the values that the node names in ``carry``, whole, outside the budget and within a model's window."""
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


# Sections of stages: the one before, the failures, and a line for each of the others with its output.

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
    """The stage before: in two thirds of the room, if there is more to describe than that stage."""
    before, begun = page.past.stages[-1], page.left
    page.before.heading = f"### The stage before: {_named(before)}"
    page.left -= len(page.before.heading) + FOR_A_SECTION
    page.write(page.before, _status_line(before, 4 * page.amount.notes))
    room = (begun * 2 // 3 if has_more else begun) - (begun - page.left)
    page.share_out(page.before, [*_lines_of_notes(before), *_texts_of(page, before)], room)


def claim_failures(page: PreamblePage) -> list[StageSummary]:
    """Claim room for failures that no later visit has undone, the newest first, each in a third of the room.

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
    """Claim room for the outputs of earlier stages, behind their lines."""
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
    """The size of a stage's output, behind its line; None when that is on the page already, or not known."""
    key = stage.keys[0]
    if not stage.size or key in page.stated:
        return None
    page.stated.add(key)
    return PreambleText(f"{line.text}. {_label_of(key)}", "", stage.size, key)


def _excerpt_of(page: PreamblePage, stage: StageSummary, line: PreambleLine) -> PreambleText | None:
    """The output of a stage, behind its line, which keeps it; None for none."""
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
    """The value that a stage left under a key: whole while the context has it, else its excerpt; None for none."""
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
    """The label of a value that a stage has left under a key, in the words of users."""
    return _LABELS.get(key, "Response" if key.endswith(".response") else one_line(key, 80))


def _named(stage: StageSummary) -> str:
    name = one_line(stage.node_id, 80)
    return f"{name} ({one_line(stage.label, 80)})" if stage.label and stage.label != stage.node_id else name


def _status_line(stage: StageSummary, limit: int) -> str:
    """The status of a stage and its notes, in one line."""
    notes = _own_notes(stage)
    return f"{stage.status} - {one_line(notes, limit)}" if notes.strip() else stage.status


def _own_notes(stage: StageSummary) -> str:
    """The notes of a stage, without its status and its output."""
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
