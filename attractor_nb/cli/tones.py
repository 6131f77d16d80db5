"""Colours of texts at a terminal, by their meaning."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Tone(StrEnum):
    """The meaning of a text's colour; the value is rich's name of the style."""

    PLAIN = ""
    STRONG = "bold"
    QUIET = "dim"
    GOOD = "green"
    BAD = "red"
    BUSY = "blue"
    WAITING = "yellow"

    @classmethod
    def of(cls, status: str) -> Tone:
        """The tone of a state: of a run, a row, a node or an agent."""
        return _TONES.get(status, cls.QUIET)


_TONES: Final[dict[str, Tone]] = {
    **dict.fromkeys(("success", "partial_success", "cached", "complete"), Tone.GOOD),
    **dict.fromkeys(("fail", "failed"), Tone.BAD),
    **dict.fromkeys(("waiting", "retrying", "interrupted", "paused"), Tone.WAITING),
    "running": Tone.BUSY,
}
