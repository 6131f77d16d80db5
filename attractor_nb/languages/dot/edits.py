"""Applies the edits that fixes consist of to a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attractor_nb.model.diagnostic import TextEdit
    from attractor_nb.source import SourceText


def apply_edits(source: SourceText, edits: Sequence[TextEdit]) -> str:
    """The text of ``source`` after all edits; insertions at one place keep their order."""
    text = source.text
    pieces: list[str] = []
    position = 0
    for edit in sorted(edits, key=lambda edit: (edit.span.start, edit.span.end)):
        start, end = edit.span.start, edit.span.end
        if end > len(text):
            raise OptionError("an edit reaches beyond the end of the text", hint="lint the text again")
        if start < position:
            raise OptionError(
                f"two edits overlap at {edit.span.place}", hint="apply one fix, lint again, then the next"
            )
        pieces += (text[position:start], edit.text)
        position = end
    return "".join((*pieces, text[position:]))
