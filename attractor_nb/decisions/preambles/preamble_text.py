"""A text of a run under its label, cut to its room: how much there is, how much of it is here, what has the rest."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.model.calls.attachment import described, is_attachment, without_bytes
from attractor_nb.model.calls.prompt_sections import fence_for, fenced
from attractor_nb.model.excerpts import first_lines, last_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

_INLINE: Final = 160
"""Characters of a text of one line that stands on its label's line."""
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
    r"""Whether a text has no line break of any kind, so that it can stand beside what the engine says.

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
