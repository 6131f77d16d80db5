"""What commands write, as whole lines, each after the name of its stage.

It knows no terminal, and shows nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.cli.stage_words import stage_path
from attractor_nb.model.terminal_text import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attractor_nb.model.events import StageEnd, StageOutput

MOST_CHARS_OF_A_LINE: Final = 4_000
_CHANNELS: Final = ("stdout", "stderr")
"""Channels of what commands write."""


class WrittenLines:
    """The lines that the commands of a run have ended, and those that they have begun."""

    def __init__(self) -> None:
        self._begun: dict[tuple[str, str, str], str] = {}

    def whole_lines(self, event: StageOutput) -> str:
        """The whole lines of what a command writes, or nothing; the rest waits for its line end."""
        if event.channel not in _CHANNELS:
            return ""
        place = event.branch, event.name, event.channel
        *lines, rest = (self._begun.pop(place, "") + event.text).split("\n")
        while len(rest) > MOST_CHARS_OF_A_LINE:  # a progress bar never ends its line
            lines.append(rest[:MOST_CHARS_OF_A_LINE])
            rest = rest[MOST_CHARS_OF_A_LINE:]
        if rest:
            self._begun[place] = rest
        name = stage_path(event.branch, event.name)
        return "\n".join(f"    {name} | {shown(line)}" for line in lines)

    def last_lines(self, event: StageEnd) -> Iterator[str]:
        """What a command wrote last, without a line end."""
        for channel in _CHANNELS:
            if rest := self._begun.pop((event.branch, event.name, channel), ""):
                yield f"    {stage_path(event.branch, event.name)} | {shown(rest)}"
