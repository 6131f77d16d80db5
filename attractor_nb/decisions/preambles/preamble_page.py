"""The page that a preamble is: its sections, the room that is left, and what stands somewhere already."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import msgspec

from attractor_nb.model.calls.prompt_sections import INPUTS_HEADING
from attractor_nb.model.calls.tokens import CHARACTERS_PER_TOKEN
from attractor_nb.model.excerpts import fair_shares

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attractor_nb.decisions.preambles.preamble_amounts import PreambleAmount
    from attractor_nb.decisions.preambles.preamble_past import PreamblePast
    from attractor_nb.decisions.preambles.preamble_text import PreambleText

INCIDENTS_HEADING: Final = "### Attempts and tool calls"
"""The last section of a summary: how results came about, which may differ where the results do not."""
FOR_A_SECTION: Final = 32
"""Characters for the lines around a heading, and for a word on what is left out under it."""


class PageSection(msgspec.Struct):
    """A heading, possibly empty, and what stands under it: lines, and texts in their room."""

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
    """What has been told so far, and how much room is left.

    Attributes:
        past: What there is to tell.
        amount: How much of it the mode tells.
        room_for_incidents: Characters that nothing else may take.
        left: Characters that are left of the others.
        stated: Context keys whose value stands somewhere.
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
