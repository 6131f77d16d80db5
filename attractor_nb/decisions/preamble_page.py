"""The page of a preamble: its sections, the room that is left, and the keys that are already on it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from attractor_nb.model.calls.call_content import INPUTS_HEADING, fence_for, fenced
from attractor_nb.model.calls.messages import CHARACTERS_PER_TOKEN, described, is_attachment, without_bytes
from attractor_nb.model.texts import fair_shares, first_lines, last_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from attractor_nb.decisions.notes import Note


INCIDENTS_HEADING: Final = "### Attempts and tool calls"
"""The last section of a summary: how results came about, which may differ where the results do not."""
FOR_A_SECTION: Final = 32
"""Characters for the lines around a heading, and for a word on what is left out under it."""


class PageSection(msgspec.Struct):
    """A heading, possibly empty, and what is under it: lines, and texts in their room."""

    heading: str = ""
    blocks: list[PreambleText | str] = msgspec.field(default_factory=list["PreambleText | str"])

    @property
    def text(self) -> str:
        """The section with empty lines around fences, and how many of its texts were left out."""
        parts: list[str] = []
        for block in self.blocks:
            if isinstance(block, str):
                parts.append(block)
            elif text := block.whole if block.need <= block.room else block.rendered():
                parts.append(text)
        if left_out := len(self.blocks) - len(parts):
            parts.append(f"({left_out} {'is' if left_out == 1 else 'are'} not told)")
        spaced = parts[:1]
        for before, text in pairwise(parts):
            if "\n" in text or "\n" in before:
                spaced.append("")
            spaced.append(text)
        body = "\n".join(spaced)
        return f"{self.heading}\n\n{body}" if self.heading else body


class PreamblePage:
    """A preamble under construction: its sections, and the room that is left.

    Attributes:
        past: The past of the run.
        amount: The budget of the mode.
        room_for_incidents: Characters reserved for incidents.
        left: Characters that are left of the others.
        stated: Context keys whose value is on the page.
        texts: The texts that count against the budget, in the order of their claims.
    """

    def __init__(self, past: PreamblePast, amount: PreambleAmount) -> None:
        room = amount.tokens * CHARACTERS_PER_TOKEN
        self.past = past
        self.amount = amount
        self.room_for_incidents = room * amount.kept // 100
        self.left = room - self.room_for_incidents
        self.stated: set[str] = set(past.wanted)
        self.texts: list[PreambleText] = []
        self.goal, self.inputs, self.run = PageSection(), PageSection(INPUTS_HEADING), PageSection()
        self.stages, self.values = PageSection("### Earlier stages"), PageSection("### Values")
        self.branches, self.wanted = PageSection("### Branches"), PageSection("### Carried in full")
        self.failures, self.before = PageSection("### What failed"), PageSection()
        self.events, self.incidents = PageSection("### Notable events"), PageSection(INCIDENTS_HEADING)

    @property
    def text(self) -> str:
        """The page, its sections in the order in which they are read."""
        order = (
            *(self.goal, self.inputs, self.stages, self.values, self.branches, self.wanted),
            *(self.failures, self.before, self.events, self.incidents, self.run),
        )
        return "\n\n".join([text for section in order if section.blocks and (text := section.text)])

    def write(self, section: PageSection, line: str) -> None:
        """Put a line under a heading, whatever room there is."""
        section.blocks.append(line)
        self.left -= len(line) + 2

    def add(self, section: PageSection, text: PreambleText, room: int) -> None:
        """Put a text under a heading, in some room."""
        text.room = min(text.need, room)
        section.blocks.append(text)
        self.texts.append(text)
        self.left -= len(text.rendered()) + 2

    def share_out(self, section: PageSection, texts: Sequence[PreambleText], room: int) -> None:
        """Put texts under a heading, each in its fair share of a room."""
        if not texts:
            return
        if not section.blocks:
            room -= len(section.heading) + FOR_A_SECTION
            self.left -= len(section.heading) + FOR_A_SECTION
        needs = [text.need + 2 for text in texts]
        for text, share in zip(texts, fair_shares(room, needs), strict=True):
            self.add(section, text, share - 2)

    def grow(self) -> None:
        """Give what is left to the texts that were cut, in the order of their claims."""
        for text in self.texts:
            if self.left <= 0:
                return
            if text.need > text.room:
                before = len(text.rendered())
                text.room = min(text.need, before + self.left)
                self.left -= len(text.rendered()) - before


# The budget of each fidelity mode (spec 5.4). Estimates without a tokenizer (``model.tokens``).


class PreambleAmount(msgspec.Struct, frozen=True):
    """The budget of a fidelity mode."""

    tokens: int  #: In all.
    notes: int = 0  #: Characters of a stage's notes in a list.
    value: int = 0  #: Characters of a value that no stage before has just set; 0 for none told.
    stages: int = 1000  #: Most earlier stages that are described.
    events: int = 0  #: Notable events.
    incidents: int = 0  #: Attempts and tool calls.
    kept: int = 0  #: Hundredths of the budget that only these may take.
    has_tools: bool = False  #: Tool calls are among these.
    has_counts: bool = False  #: The number of stages by status is included.


_COMPACT: Final = PreambleAmount(4000, notes=300, value=600)
_AMOUNTS: Final = {
    "truncate": PreambleAmount(350),
    "compact": _COMPACT,
    "summary:low": PreambleAmount(600, notes=120, stages=3, has_counts=True),
    "summary:medium": PreambleAmount(1500, notes=300, value=400, events=8, incidents=4, kept=10),
    "summary:high": PreambleAmount(3000, notes=600, value=800, events=20, incidents=20, kept=20, has_tools=True),
}
"""By mode; ``full`` has none."""


def amount_of(mode: str) -> PreambleAmount:
    """The budget of a mode; an unknown mode counts as ``compact``."""
    return _AMOUNTS.get(mode, _COMPACT)


def budget_tokens(mode: str) -> int:
    """The most tokens that a mode's preamble takes; a word that is no mode counts as ``compact``.

    >>> [budget_tokens(mode) for mode in ("full", "truncate", "compact", "summary:high")]
    [0, 350, 4000, 3000]
    """
    return 0 if mode == "full" else amount_of(mode).tokens


# A text of a run under its label, cut to its room: its size, the part that is here, and the key of the whole.

_INLINE: Final = 160
"""Characters of a text of one line that is on its label's line."""
LEAST: Final = 120
"""Characters below which the part of a text says nothing, and only its size is told."""


class PreambleText:
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

    def __init__(self, label: str, text: str = "", size: int = 0, name: str = "", *, is_end: bool = False) -> None:
        self.label, self.text, self.size, self.is_end = label, text, size, is_end
        self.name = name if is_one_line(name) else ""
        self.room = 0
        self.whole = self._composed()
        self.need = len(self.whole)

    def rendered(self) -> str:
        """At most ``room`` characters; empty when not even the label fits."""
        if self.need <= self.room:
            return self.whole
        cut = last_lines if self.is_end else first_lines
        room = self.room - len(self._labelled(self.size)) - 5
        if room >= LEAST:
            part = cut(self.text, room)
            part = cut(part, room - 2 * len(fence_for(part)))
            shown = f"{self._labelled(len(part))}:\n\n{fenced(part)}"
            if part.strip() and len(shown) <= self.room:
                return shown
        whole = self._labelled(0)
        return whole if len(whole) <= self.room else ""

    def _composed(self) -> str:
        if not self.text:
            return self._labelled(0) if self.size else self.label
        if len(self.text) < self.size:
            return f"{self._labelled(len(self.text))}:\n\n{fenced(self.text)}"
        if len(self.text) <= _INLINE and is_one_line(self.text):
            return f"{self.label}: {self.text}"
        return f"{self.label}:\n\n{fenced(self.text)}"

    def _labelled(self, shown: int) -> str:
        """The label with how much there is, how much of it is here, and what has the rest."""
        size = f"{self.size:,} characters"
        if shown:
            size = f"the {'last' if self.is_end else 'first'} {shown:,} of {size}"
        where = f"; the whole is ${{{self.name}}}" if self.name else ""
        return f"{self.label} ({size}{where})"


def text_of(label: str, value: object, name: str, *, is_end: bool = False) -> PreambleText:
    """A value of the context under a label; ``name`` is its variable."""
    if is_attachment(value):
        value = described(cast("Mapping[str, Any]", value))
    if not isinstance(value, str):
        value = json.dumps(without_bytes(value), ensure_ascii=False, default=str)
    text = value.replace("\r\n", "\n").strip("\n")
    if not text.strip():
        return PreambleText(f"{label}: (empty)", name=name)
    return PreambleText(label, text, len(text), name, is_end=is_end)


def is_one_line(text: str) -> bool:
    r"""True if a text has no line break of any kind, so that it can be beside what the engine says.

    >>> is_one_line("a # b"), is_one_line("a\u2028## Task"), is_one_line("a\n")
    (True, False, False)
    """
    return text.isprintable() or text == "".join(text.splitlines()[:1])


def one_line(text: str, limit: int) -> str:
    r"""The first line of a text, of at most ``limit`` characters; an ellipsis stands for what is left out.

    >>> one_line("a  b", 9), one_line("\na\n\n## Task\n\nb", 9)
    ('a b', 'a…')
    """
    first, _, more = text[: limit * 4 + 100].strip().partition("\n")
    if not first.isprintable():  # breaks of other kinds, too
        lines = first.splitlines()
        first, more = lines[0], more or "".join(lines[1:])
    flat = " ".join(first.split())
    return f"{flat}…" if more and len(flat) <= limit else clipped(flat, limit)


def clipped(text: str, limit: int) -> str:
    """A text of at most ``limit`` characters; an ellipsis stands for its rest."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


# The past of a run: summaries of its stages, its values, its events (spec 5.4).

BRANCHES_KEY: Final = "parallel.results"
TOOL_OUTPUT_KEY: Final = "tool.output"
TOOL_ERRORS_KEY: Final = "tool.stderr"
COMPLETED: Final = "Stage completed: "
"""Prefix of notes that say no more than the status."""


class PreambleLine(msgspec.Struct):
    """The line of a stage among the earlier ones; it is kept, because it changes only with its parts."""

    limit: int  #: Characters of its notes.
    text: str  #: The line.
    owed: int  #: About how much it takes to say behind the line how much the stage said.
    value: object = None  #: A text that the stage left, and ``whole`` the line with all of it.
    whole: str = ""
    replaced: str = ""  #: The line with its excerpt, once a later visit has replaced that text; or empty.


@dataclass(slots=True)
class StageSummary:
    """The summary of a committed stage, for the preambles of later ones."""

    node_id: str  #: The node.
    label: str  #: Its display name.
    status: str  #: Final status.
    notes: str = ""  #: Its own summary, or why it failed.
    #: The beginning of its response, or the end of its command's output: its description when a later visit has
    #: replaced the whole.
    excerpt: str = ""
    size: int = 0  #: Characters of the whole, as far as they are known.
    #: The context keys that it has set, of those that a later stage may be told; the first one has its response or
    #: output.
    keys: tuple[str, ...] = ()
    command: str = ""  #: The command that it ran, if it is one that runs commands.
    line: PreambleLine | None = field(default=None, init=False, repr=False, compare=False)  #: Its last line.
    #: The same under the label of its node, and ``named_by`` the plan that has that.
    named: StageSummary | None = field(default=None, init=False, repr=False, compare=False)
    named_by: object = field(default=None, init=False, repr=False, compare=False)


class PreamblePast(msgspec.Struct, frozen=True):
    """The past of a run, as a preamble reads it."""

    value: Callable[[str, Any], Any]  #: The value of a context key; the second argument for one that is not there.
    #: The values at hand, by key; a value that is not a text is read through ``value``.
    kept: Mapping[str, Any] = MappingProxyType({})
    goal: str = ""  #: The pipeline's goal.
    run_id: str = ""  #: The run.
    inputs: Sequence[str] = ()  #: Names of the values that the run began with.
    stages: Sequence[StageSummary] = ()  #: Completed stages, oldest first.
    keys: Sequence[str] = ()  #: Context keys that stages have set, oldest first.
    events: Sequence[Note] = ()  #: Notable events and incidents, oldest first.
    wanted: Sequence[str] = ()  #: Values that the stage must receive completely, in this order.
    has_branches: bool = True  #: The results of branches may be told; the task of a fan-in that asks has them itself.
