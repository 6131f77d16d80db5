"""Secrets in a text that arrives in pieces: one may be split anywhere.

Whatever may be the beginning of a secret is held back until it is known to be one or none.
"""

from __future__ import annotations

from typing import Final

from attractor_nb.redaction.redactor import MARK, REDACTOR
from attractor_nb.redaction.secret_forms import KEY_FORMS

MAX_HELD: Final = 64 * 1024
"""No key is that long: what is held back for longer is given out, whole keys in it redacted."""


class StreamRedactor:
    """One stream of text without its secrets.

    Only a secret is held back: the letters that every key of a kind begins with tell nothing of it.

    >>> stream = StreamRedactor()
    >>> stream.feed("the key is AKIA"), stream.feed("ABCDEFGHIJ"), stream.feed("KLMNOP, keep it")
    ('the key is ', '', '[redacted], keep it')
    """

    __slots__ = ("_before", "_held")

    def __init__(self) -> None:
        self._before = ""
        self._held = ""

    def feed(self, text: str) -> str:
        """Take the next piece; what can be given out by now."""
        return self._given_out(self._before + self._held + text, is_end=False)

    def finish(self) -> str:
        """What was held back, when nothing more follows."""
        return self._given_out(self._before + self._held, is_end=True)

    def _given_out(self, text: str, *, is_end: bool) -> str:
        """The next part of the output, of a text that begins with what was given out already."""
        origin, length = len(self._before), len(text)
        places = REDACTOR.secret_places(text)
        end = length if is_end else max(origin, _settled_length(text, places))
        if length - end > MAX_HELD:
            end = length
        pieces: list[str] = []
        position = origin
        for start, stop in places:
            if origin < stop <= end:
                pieces += [text[position : max(start, position)], MARK]
                position = stop
        pieces.append(text[position:end])
        self._before, self._held = text[max(0, end - _LONGEST_ANCHOR) : end], text[end:]
        return "".join(pieces)


_LONGEST_ANCHOR: Final = max(len(form.anchor) for form in KEY_FORMS)


def _settled_length(text: str, places: list[tuple[int, int]]) -> int:
    """How much of a text is settled, whatever follows it."""
    end = min(_open_literal(text), _open_key(text))
    if end < len(text):
        for start, stop in places:
            if start < end < stop:
                return start
    return end


def _open_literal(text: str) -> int:
    """Where the first literal begins that the text ends in the middle of."""
    length = len(text)
    openings = REDACTOR.openings
    for start in range(max(0, length - REDACTOR.longest), length):
        entries = openings.get(text[start])
        if entries is None:
            continue
        rest = text[start:]
        for literal, shared in entries:
            # A base64 core shares a digit with each of its neighbours: the next one must be seen too.
            if length - start < len(literal) + shared and literal.startswith(rest):
                return max(0, start - shared)
    return length


def _open_key(text: str) -> int:
    """Where the first key begins that may go on behind the end of the text."""
    length = end = len(text)
    for form in KEY_FORMS:
        start = text.find(form.anchor)
        while 0 <= start < end:
            tail = form.open_tail.match(text, start + len(form.anchor))
            after = tail.end() if tail else start + 1
            if tail and after == length:
                end = start
                break
            start = text.find(form.anchor, max(after, start + 1))
    return end
