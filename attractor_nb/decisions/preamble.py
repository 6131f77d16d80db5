"""What a fresh session is told about the run so far (spec 5.4; ruling 34).

A mode has a budget, and it is used: inputs and goal claim it first, then the stage before and what failed,
then the results of branches, then the rest, the newest first. What the first of them leave goes to the
others, and what all leave goes to those that were cut. What is left out is said, with its size and its name.

On the page what stays the same from stage to stage stands first, so that providers know it again, and what
may differ between runs that came to the same stands last. Budgets are estimates without a tokenizer
(``model.tokens``). Knows nothing of sessions or models; values are read through a callable, and only
those that there is room for.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import msgspec

from attractor_nb.decisions.fan_in_choice import UnreadableResults, candidates_of, output_of
from attractor_nb.decisions.notes import FAILURE, INCIDENTS, TOOL_CALL
from attractor_nb.model.calls.attachment import described, is_attachment, without_bytes
from attractor_nb.model.calls.prompt_sections import INPUTS_HEADING, fence_for, fenced, outside_fences
from attractor_nb.model.calls.tokens import CHARACTERS_PER_TOKEN
from attractor_nb.model.excerpts import fair_shares, first_lines, last_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from attractor_nb.decisions.notes import Note

BRANCHES_KEY: Final = "parallel.results"
TOOL_OUTPUT_KEY: Final = "tool.output"
TOOL_ERRORS_KEY: Final = "tool.stderr"
NOTABLE_HEADING: Final = "### Notable events"
INCIDENTS_HEADING: Final = "### Attempts and tool calls"
"""The last section of a summary: how results came about, which may differ where the results do not."""
MAX_CARRIED_CHARACTERS: Final = 64_000 * CHARACTERS_PER_TOKEN
"""Of all that ``carry`` names: half of the window of a model whose window nobody named."""
_STAGES_HEADING: Final = "### Earlier stages"
_VALUES_HEADING: Final = "### Values"
_BRANCHES_HEADING: Final = "### Branches"
_WANTED_HEADING: Final = "### Carried in full"
_FAILURES_HEADING: Final = "### What failed"
_BRIEF_STAGES: Final = 3
_MAX_FAILURES: Final = 3
_INLINE: Final = 160
"""Characters of a text of one line that stands on its label's line."""
_LEAST: Final = 120
"""Characters below which the part of a text says nothing, and only its size is told."""
_FOR_A_SECTION: Final = 32
"""Characters for the lines around a heading, and for a word on what is left out under it."""
_RUN: Final = "Run: "


class _Told(msgspec.Struct):
    """How a stage stands among the earlier ones; it is kept, for it changes only with what it is made of.

    Attributes:
        limit: Characters of its notes.
        line: Its line.
        owed: About how much it takes to say behind that line how much the stage said.
        value: A text that it left, and ``whole`` the line with all of it.
        replaced: The line with its excerpt, once a later visit has replaced that text; or empty.
    """

    limit: int
    line: str
    owed: int
    value: object = None
    whole: str = ""
    replaced: str = ""


@dataclass(slots=True)
class StageSummary:
    """What is remembered of a stage.

    Attributes:
        node_id: The node.
        label: Its display name.
        status: How it ended.
        notes: Its own summary, or why it failed.
        excerpt: The beginning of its response, or the end of its command's output: what is told of it when
            a later visit has replaced the whole.
        size: Characters of the whole, as far as they are known.
        keys: The context keys that it has set, of those that a later stage may be told; the first one has
            its response or output.
        command: The command that it ran, if it is one that runs commands.
        told: How it was told last.
        named: The same under the label of its node, and ``named_by`` the plan that has that.
    """

    node_id: str
    label: str
    status: str
    notes: str = ""
    excerpt: str = ""
    size: int = 0
    keys: tuple[str, ...] = ()
    command: str = ""
    told: _Told | None = field(default=None, init=False, repr=False, compare=False)
    named: StageSummary | None = field(default=None, init=False, repr=False, compare=False)
    named_by: object = field(default=None, init=False, repr=False, compare=False)

    @property
    def is_command(self) -> bool:
        """Whether it ran a command, of whose output the end counts."""
        return TOOL_OUTPUT_KEY in self.keys


class ToldPast(NamedTuple):
    """What there is to tell.

    Attributes:
        value: The value of a context key; the second argument for one that is not there.
        kept: The same where it is at hand as it is; what is not a text there is asked for.
        goal: The pipeline's goal.
        run_id: The run.
        inputs: Names of the values that the run began with.
        stages: Completed stages, oldest first.
        keys: Context keys that stages have set, oldest first.
        events: Notable events and incidents, oldest first.
        wanted: What the stage must have whole, in this order.
        has_branches: The results of branches may be told; the task of a fan-in that asks has them itself.
    """

    value: Callable[[str, Any], Any]
    kept: Mapping[str, Any] = MappingProxyType({})
    goal: str = ""
    run_id: str = ""
    inputs: Sequence[str] = ()
    stages: Sequence[StageSummary] = ()
    keys: Sequence[str] = ()
    events: Sequence[Note] = ()
    wanted: Sequence[str] = ()
    has_branches: bool = True


class _Amount(msgspec.Struct, frozen=True):
    """How much a mode tells.

    Attributes:
        tokens: In all.
        notes: Characters of a stage's notes in a list.
        value: Characters of a value that no stage before has just set; 0 for none told.
        stages: How many of the stages before.
        events: Notable events.
        incidents: Attempts and tool calls.
        kept: Hundredths of the budget that only these may take.
        has_tools: Tool calls are among these.
    """

    tokens: int
    notes: int = 0
    value: int = 0
    stages: int = 1000
    events: int = 0
    incidents: int = 0
    kept: int = 0
    has_tools: bool = False


_AMOUNTS: Final = {
    "truncate": _Amount(350),
    "compact": _Amount(4000, notes=300, value=600),
    "summary:low": _Amount(600, notes=120, stages=_BRIEF_STAGES),
    "summary:medium": _Amount(1500, notes=300, value=400, events=8, incidents=4, kept=10),
    "summary:high": _Amount(3000, notes=600, value=800, events=20, incidents=20, kept=20, has_tools=True),
}
TOKEN_BUDGETS: Final = {mode: amount.tokens for mode, amount in _AMOUNTS.items()}
"""How many tokens a preamble has at most, by mode, beside what ``carry`` names; ``full`` has none."""
_MISSING: Final = object()


def build_preamble(mode: str, past: ToldPast) -> str:
    """The text that a stage's prompt begins with; empty when there is nothing to tell.

    Args:
        mode: The fidelity mode; a word that is none counts as ``compact``. Under ``full`` the session knows
            the rest, and what ``carry`` names is told alone.
        past: What there is to tell.
    """
    has_more = mode != "full" and (past.stages or past.keys or past.inputs or past.events)
    if not (has_more or past.wanted or mode == "truncate"):
        return ""
    page = _Page(past, _AMOUNTS.get(mode, _AMOUNTS["compact"]))
    if mode == "full":
        page.claim_wanted()
    elif mode == "truncate":
        page.claim_goal()
        page.claim_wanted()
        page.claim_run()
    else:
        page.claim_all(is_brief=mode == "summary:low")
    return page.text


def beginning_of(past: ToldPast) -> str:
    """What the first stage of a thread is told, whose session knows nothing yet: goal and inputs, if any."""
    page = _Page(past, _AMOUNTS["compact"])
    if past.inputs:
        page.claim_goal()
        page.claim_inputs(share=1)
    page.claim_wanted()
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


def budget_tokens(mode: str) -> int:
    """The most tokens that a mode's preamble takes; a word that is no mode counts as ``compact``.

    >>> [budget_tokens(mode) for mode in ("full", "truncate", "compact", "summary:high")]
    [0, 350, 4000, 3000]
    """
    return 0 if mode == "full" else _AMOUNTS.get(mode, _AMOUNTS["compact"]).tokens


class _Text:
    """A text under its label, in as much room as it has got.

    Attributes:
        label: What it is; a line of a list.
        text: The text, as far as it is known.
        size: Characters of the whole.
        name: The variable that has the whole; empty when nothing has it any more.
        is_end: The end of it counts, and not the beginning.
        room: Characters that the label and the text may take.
        whole: They, whole.
        need: What that takes.
    """

    __slots__ = ("is_end", "label", "name", "need", "room", "size", "text", "whole")

    def __init__(self, label: str, text: str, size: int, name: str = "", *, is_end: bool = False) -> None:
        self.label, self.text, self.size, self.name, self.is_end = label, text, size, name, is_end
        self.room = 0
        self.whole = self._composed()
        self.need = len(self.whole)

    def with_line(self, line: str) -> _Text:
        """The same behind the line of its stage."""
        label = f"{line}. {self.label.removeprefix('- ')}"
        return _Text(label, self.text, self.size, self.name, is_end=self.is_end)

    def rendered(self) -> str:
        """At most ``room`` characters; empty when not even the label fits."""
        if self.need <= self.room:
            return self.whole
        cut = last_lines if self.is_end else first_lines
        room = self.room - len(self._labelled(self.size)) - 5
        if room >= _LEAST:
            part = cut(self.text, room)
            part = cut(part, room - 2 * len(fence_for(part)))
            shown = f"{self._labelled(len(part))}:\n\n{fenced(part)}"
            if part.strip() and len(shown) <= self.room:
                return shown
        told = self._labelled(0)
        return told if len(told) <= self.room else ""

    def _composed(self) -> str:
        if not self.text:
            return self._labelled(0) if self.size else self.label
        if len(self.text) < self.size:
            return f"{self._labelled(len(self.text))}:\n\n{fenced(self.text)}"
        if len(self.text) <= _INLINE and "\n" not in self.text and "\r" not in self.text:
            return f"{self.label}: {self.text}"
        return f"{self.label}:\n\n{fenced(self.text)}"

    def _labelled(self, shown: int) -> str:
        """The label with how much there is, how much of it is here, and what has the rest."""
        size = f"{self.size:,} characters"
        if shown:
            size = f"the {'last' if self.is_end else 'first'} {shown:,} of {size}"
        where = f"; the whole is ${{{self.name}}}" if self.name else ""
        return f"{self.label} ({size}{where})"


_Blocks = list["_Text | str"]
"""What stands under a heading."""


def _section(heading: str, blocks: _Blocks) -> str:
    """A heading, what stands under it, with empty lines around fences, and how many were left out."""
    told: list[str] = []
    for block in blocks:
        if isinstance(block, str):
            told.append(block)
        elif text := block.whole if block.need <= block.room else block.rendered():
            told.append(text)
    if left_out := len(blocks) - len(told):
        told.append(f"({left_out} {'is' if left_out == 1 else 'are'} not told)")
    spaced = told[:1]
    for before, text in pairwise(told):
        if "\n" in text or "\n" in before:
            spaced.append("")
        spaced.append(text)
    body = "\n".join(spaced)
    return f"{heading}\n\n{body}" if heading else body


def _size_room(stage: StageSummary) -> int:
    """About how much it takes to say behind its line how much a stage said."""
    return len(f". Response ({stage.size:,} characters; the whole is ${{{stage.keys[0]}}})") if stage.keys else 0


class _Page:
    """The sections of a preamble, in the order in which they are read, and the room that is left."""

    def __init__(self, past: ToldPast, amount: _Amount) -> None:
        self._past = past
        self._amount = amount
        total = amount.tokens * CHARACTERS_PER_TOKEN
        self._for_incidents = total * amount.kept // 100
        self._left = total - self._for_incidents
        self._told: set[str] = set(past.wanted)  # keys whose value stands somewhere
        self._texts: list[_Text] = []  # those that count against the budget, in the order of their claims
        self._goal, self._inputs, self._stages, self._values = _Blocks(), _Blocks(), _Blocks(), _Blocks()
        self._branches, self._wanted, self._failures = _Blocks(), _Blocks(), _Blocks()
        self._before, self._events, self._incidents, self._run = _Blocks(), _Blocks(), _Blocks(), _Blocks()
        self._before_heading = ""
        self._has_branches = False

    @property
    def text(self) -> str:
        """The page."""
        order = (
            *(("", self._goal), (INPUTS_HEADING, self._inputs), (_STAGES_HEADING, self._stages)),
            *((_VALUES_HEADING, self._values), (_BRANCHES_HEADING, self._branches)),
            *((_WANTED_HEADING, self._wanted), (_FAILURES_HEADING, self._failures)),
            *((self._before_heading, self._before), (NOTABLE_HEADING, self._events)),
            *((INCIDENTS_HEADING, self._incidents), ("", self._run)),
        )
        sections: list[str] = []
        for heading, blocks in order:
            if blocks and (text := _section(heading, blocks)):
                sections.append(text)
        return "\n\n".join(sections)

    # -- claims, in their order ------------------------------------------------------------------------

    def claim_all(self, *, is_brief: bool) -> None:
        """Tell all that the mode tells."""
        has_more = bool(self._past.stages or self._past.keys)
        if self._past.has_branches:
            for stage in self._past.stages:
                self._has_branches = self._has_branches or BRANCHES_KEY in stage.keys
        self._left -= 3 * _FOR_A_SECTION  # stages, values, failures
        self.claim_goal()
        self.claim_inputs(share=2 if has_more else 1)
        earlier = self._claim_before()
        self._claim_branches()
        told = self._claim_stages(earlier, is_brief=is_brief)
        if self._past.events:
            self._claim_events()
        self._claim_values()
        self._claim_texts(earlier, told)
        self.grow()
        self.claim_wanted()
        if self._past.events:
            self._claim_incidents()

    def claim_goal(self) -> None:
        """The goal, in a quarter of the room at most."""
        if goal := self._past.goal.strip():
            self._add(self._goal, _Text("Goal", goal, len(goal), "graph.goal"), self._left // 4)

    def claim_run(self) -> None:
        """The run's id, behind all else: it is another in each run (spec 5.4, ``truncate``)."""
        if self._past.run_id:
            self._run.append(f"{_RUN}{_line(self._past.run_id, 200)}")

    def claim_inputs(self, *, share: int) -> None:
        """What the run was given, each in its fair share of a part of the room."""
        if not self._past.inputs:
            return
        texts: list[_Text] = []
        for name in self._past.inputs:
            if name not in self._told and (value := self._past.value(name, _MISSING)) is not _MISSING:
                self._told.add(name)
                texts.append(_text_of(f"- {_line(name, 80)}", value, name))
        self._share_out(self._inputs, INPUTS_HEADING, texts, self._left // share)

    def claim_wanted(self) -> None:
        """What the node names in ``carry``, whole, outside the budget and within a model's window."""
        if not self._past.wanted:
            return
        texts = [
            _Text(f"- {_line(name, 80)}: there is none yet", "", 0)
            if (value := self._named(name)) is _MISSING
            else _text_of(f"- {_line(name, 80)}", value, name)
            for name in self._past.wanted
        ]
        for text, room in zip(texts, fair_shares(MAX_CARRIED_CHARACTERS, [text.need for text in texts]), strict=True):
            text.room = room
            self._wanted.append(text)

    def _named(self, name: str) -> Any:
        """A value of the context, or what a branch of the last fan-out has set under that name."""
        value = self._past.value(name, _MISSING)
        if value is not _MISSING:
            return value
        for branch in _branches(self._past):
            if name in branch.context_updates:
                return branch.context_updates[name]
        return _MISSING

    def _claim_before(self) -> list[StageSummary]:
        """The stage before, and failures that no later visit has undone; the other stages, oldest first."""
        stages = list(self._past.stages)
        if not stages:
            return []
        before = stages.pop()
        room = self._left * 2 // 3 if len(stages) > 0 or self._has_branches else self._left
        used = self._left
        heading = self._before_heading = f"### The stage before: {_named_stage(before)}"
        self._left -= len(heading) + _FOR_A_SECTION
        self._before.append(self._taken(self._status_line(before, 4 * self._amount.notes)))
        room -= used - self._left
        self._share_out(self._before, heading, self._texts_of(before), room)
        seen, failures = {before.node_id}, list[StageSummary]()
        for stage in reversed(stages):
            if stage.node_id not in seen and stage.status in {"fail", "retry"}:
                failures.append(stage)
            seen.add(stage.node_id)
        for stage in failures[:_MAX_FAILURES]:
            line = f"- {_named_stage(stage)}: {self._status_line(stage, self._amount.notes)}"
            if len(line) < self._left // 3:
                self._failures.append(self._taken(line))
                self._share_out(self._failures, _FAILURES_HEADING, self._texts_of(stage), self._left // 3)
                stages = [each for each in stages if each is not stage]
        return stages

    def _claim_branches(self) -> None:
        """What came of the branches of the last fan-out, each by its name and in its fair share."""
        if not self._has_branches or BRANCHES_KEY in self._told:
            return
        texts: list[_Text] = []
        for branch in _branches(self._past):
            said = "" if branch.notes.startswith(_DONE) else branch.notes
            told = _line(branch.failure_reason or said, self._amount.notes)
            status = f"{branch.status.value} - {told}" if told else branch.status.value
            line = f"- {_line(branch.id, 80)} ({status})"
            output = output_of(branch, _UNCUT)
            texts.append(_Text(line, output, len(output), BRANCHES_KEY))
        self._share_out(self._branches, _BRANCHES_HEADING, texts, self._left * 3 // 4)

    def _claim_stages(self, earlier: Sequence[StageSummary], *, is_brief: bool) -> list[_Told]:
        """A line for each stage, the newest that there is room for; counts of all in a brief summary.

        Returns:
            The lines, oldest first: of the newest of ``earlier``.
        """
        if is_brief and self._past.stages:
            counts = _counted(stage.status for stage in self._past.stages)
            notable = _counted(note.kind for note in self._past.events if note.kind not in INCIDENTS)
            events = f"; notable events: {notable}" if notable else ""
            self._stages.append(self._taken(f"Stages so far: {counts}{events}."))
        room, lines, limit = self._left // 2, list[_Told](), self._amount.notes
        for stage in reversed(earlier[-self._amount.stages :]):
            told = stage.told
            if told is None or told.limit != limit:
                line = f"- {_named_stage(stage)}: {self._status_line(stage, limit)}"
                told = stage.told = _Told(limit, line, _size_room(stage))
            if (room := room - len(told.line) - 2) < 0:
                break
            self._left -= len(told.line) + 2
            lines.append(told)
        if left_out := len(earlier) - len(lines):
            line = f"({left_out} earlier {'stage is' if left_out == 1 else 'stages are'} not told)"
            self._stages.append(self._taken(line))
        lines.reverse()
        for told in lines:
            self._stages.append(told.line)
        return lines

    def _claim_texts(self, earlier: Sequence[StageSummary], lines: Sequence[_Told]) -> None:
        """What earlier stages said, the newest first, behind their lines; at last only how much it is.

        That much is kept free for those that are told: what is left out is said.
        """
        owed, kept, wanted = 0, self._past.kept, self._past.wanted
        for told in lines:
            owed += told.owed
        for back in range(1, len(lines) + 1):
            stage, told, whole = earlier[-back], lines[-back], ""
            owed -= told.owed
            free = self._left - owed
            room = len(told.line) + max(free * 2 // 3, min(self._left, _LEAST))
            if free >= _LEAST and stage.keys:
                key = stage.keys[0]
                if key in self._told:
                    whole = "" if key in wanted else told.replaced
                elif told.whole and kept.get(key) is told.value:
                    whole = told.whole
                if whole and len(whole) <= room:
                    self._told.add(key)
                    self._left -= len(whole) - len(told.line)
                    self._stages[-back] = whole
                    continue
            self._claim_text(stage, told, back, room, is_short=free < _LEAST)

    def _claim_text(self, stage: StageSummary, told: _Told, back: int, room: int, *, is_short: bool) -> None:
        """What one of them said, in some room; how it stands where it fits is kept for the next prompt."""
        key = stage.keys[0] if stage.keys else ""
        is_replaced = key in self._told
        for text in self._size_of(stage) if is_short else self._texts_of(stage, most=1):
            entry = text.with_line(told.line)
            if not is_short and is_replaced and key not in self._past.wanted:
                told.replaced = entry.whole
            elif not is_short and not is_replaced and type(self._past.kept.get(key)) is str:
                told.value, told.whole = self._past.kept[key], entry.whole
            entry.room = min(entry.need, room)
            shown = len(entry.rendered())
            if shown:  # else not even how much there is fits
                self._left -= shown - len(told.line)
                self._texts.append(entry)
                self._stages[-back] = entry

    def _size_of(self, stage: StageSummary) -> list[_Text]:
        """How much a stage said, where there is no room for any of it."""
        if not stage.size or not stage.keys or stage.keys[0] in self._told:
            return []
        key = stage.keys[0]
        self._told.add(key)
        return [_Text(f"- {_label_of(key)}", "", stage.size, key)]

    def _claim_values(self) -> None:
        """Values that no stage above has told, the newest that there is room for."""
        if not self._amount.value:
            return
        room, kept, left_out = self._left // 2, list[_Text](), 0
        for key in reversed(self._past.keys):
            if key in self._told:
                continue
            value = _MISSING if room <= 0 else self._past.value(key, _MISSING)
            if value is _MISSING or value is None:
                left_out += room <= 0
                continue
            text = _text_of(f"- {_line(key, 80)}", value, key)
            text.room = min(text.need, self._amount.value, room)
            if not (shown := text.rendered()):
                left_out, room = left_out + 1, 0
                continue
            self._told.add(key)
            room -= len(shown) + 2
            self._taken(shown)
            self._texts.append(text)
            kept.append(text)
        if left_out:
            values = "older value is" if left_out == 1 else "older values are"
            self._values.append(self._taken(f"({left_out} {values} not told)"))
        self._values += reversed(kept)

    def _claim_events(self) -> None:
        """Notable events, without the failures that are told as stages."""
        told = tuple(f"{stage.node_id} failed" for stage in self._past.stages)
        notable = [
            note
            for note in self._past.events
            if note.kind not in INCIDENTS and not (note.kind == FAILURE and note.text.startswith(told))
        ]
        newest = notable[-self._amount.events :] if self._amount.events else ()
        self._listed(NOTABLE_HEADING, self._events, newest, self._left // 3)

    def _claim_incidents(self) -> None:
        """How results came about: last, and in room of its own, so that it moves nothing else."""
        incidents = [
            note
            for note in self._past.events
            if note.kind in INCIDENTS and (self._amount.has_tools or note.kind != TOOL_CALL)
        ]
        if self._amount.incidents:
            newest = incidents[-self._amount.incidents :]
            self._listed(INCIDENTS_HEADING, self._incidents, newest, self._for_incidents)

    def _listed(self, heading: str, blocks: _Blocks, notes: Sequence[Note], room: int) -> None:
        kept: list[str] = []
        room -= len(heading) + 4
        for note in reversed(notes):
            line = f"- {_line(note.text, self._amount.notes)}"
            if (room := room - len(line) - 1) < 0:
                break
            kept.append(line)
        if kept and blocks is not self._incidents:
            self._left -= sum(len(line) + 1 for line in kept) + len(heading) + 4
        blocks += reversed(kept)

    # -- room ------------------------------------------------------------------------------------------

    def grow(self) -> None:
        """Give what is left to the texts that were cut, in the order of their claims."""
        for text in self._texts:
            if self._left <= 0:
                return
            if text.need > text.room:
                before = len(text.rendered())
                text.room = min(text.need, before + self._left)
                self._left -= len(text.rendered()) - before

    def _share_out(self, blocks: _Blocks, heading: str, texts: Sequence[_Text], room: int) -> None:
        if not texts:
            return
        if not blocks:
            room -= len(heading) + _FOR_A_SECTION
            self._left -= len(heading) + _FOR_A_SECTION
        needs = [text.need + 2 for text in texts]
        for text, share in zip(texts, fair_shares(room, needs), strict=True):
            self._add(blocks, text, share - 2)

    def _add(self, blocks: _Blocks, text: _Text, room: int) -> None:
        text.room = min(text.need, room)
        blocks.append(text)
        self._texts.append(text)
        self._left -= len(text.rendered()) + 2

    def _taken(self, line: str) -> str:
        self._left -= len(line) + 2
        return line

    # -- stages ----------------------------------------------------------------------------------------

    def _status_line(self, stage: StageSummary, limit: int) -> str:
        """How a stage ended and what it says of itself, in one line."""
        notes = stage.notes
        if notes == f"{_DONE}{stage.node_id}":
            notes = ""  # the status says so already
        if stage.is_command and stage.status in {"fail", "retry"}:
            notes = _first_clause(notes)  # the end of the output follows
            if stage.command:
                notes = notes.replace("the command", f"`{_line(stage.command, 200)}`", 1)
        return f"{stage.status} - {_line(notes, limit)}" if notes.strip() else stage.status

    def _texts_of(self, stage: StageSummary, most: int | None = None) -> list[_Text]:
        """What a stage left: whole while the context has it, else its excerpt."""
        texts: list[_Text] = []
        for key in stage.keys[:most]:
            if key == BRANCHES_KEY:
                continue
            label = _label_of(key)
            is_end = key in {TOOL_OUTPUT_KEY, TOOL_ERRORS_KEY}
            if key in self._past.wanted:
                texts.append(_Text(f"- {label}: in full above", "", 0))
            elif key not in self._told:
                self._told.add(key)
                value = self._past.value(key, None)
                if value is not None and value != "":
                    texts.append(_text_of(f"- {label}", value, key, is_end=is_end))
            elif key == stage.keys[0] and stage.excerpt:
                text = stage.excerpt.strip("\n")
                size = stage.size - len(stage.excerpt) + len(text)
                texts.append(_Text(f"- {label}, since replaced", text, size, is_end=is_end))
        return texts


_DONE: Final = "Stage completed: "
_UNCUT: Final = 2**40
_LABELS: Final = {
    TOOL_OUTPUT_KEY: "Output of the command",
    TOOL_ERRORS_KEY: "What the command wrote to stderr",
    "human.gate.text": "What the person wrote",
    "human.gate.form": "What the person filled in",
}


def _label_of(key: str) -> str:
    """What a stage has left under a key, in the words of people."""
    return _LABELS.get(key, "Response" if key.endswith(".response") else key)


def _branches(past: ToldPast) -> Sequence[Any]:
    try:
        return candidates_of(past.value(BRANCHES_KEY, None))
    except UnreadableResults:
        return ()


def _text_of(label: str, value: object, name: str, *, is_end: bool = False) -> _Text:
    if is_attachment(value):
        value = described(cast("dict[str, Any]", value))
    if not isinstance(value, str):
        value = json.dumps(without_bytes(value), ensure_ascii=False, default=str)
    text = value.replace("\r\n", "\n").strip("\n")
    if not text.strip():
        return _Text(f"{label}: (empty)", "", 0, name)
    return _Text(label, text, len(text), name, is_end=is_end)


def _named_stage(stage: StageSummary) -> str:
    name = _line(stage.node_id, 80)
    return f"{name} ({_line(stage.label, 80)})" if stage.label and stage.label != stage.node_id else name


def _first_clause(reason: str) -> str:
    """A reason without the output that it quotes."""
    ends = [place for mark in (": ", "; ", "\n") if (place := reason.find(mark)) >= 0]
    return reason[: min(ends, default=len(reason))]


def _counted(words: Iterable[str]) -> str:
    return ", ".join(f"{count} {word}" for word, count in Counter(words).items())


def _line(text: str, limit: int) -> str:
    """One line of at most ``limit`` characters."""
    flat = " ".join(text[: limit * 4 + 100].split())
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"
