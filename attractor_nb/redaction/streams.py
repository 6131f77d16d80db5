"""Secrets in a text that arrives in pieces: one may be split anywhere.

Whatever may be the beginning of a secret is held back until it is known to be one or none.
"""

from __future__ import annotations

from typing import Final

from attractor_nb.redaction.forms import KEY_FORMS
from attractor_nb.redaction.redactor import REDACTOR, redacted

MAX_HELD: Final = 64 * 1024
"""No key is that long: what is held back for longer is given out, whole keys in it redacted."""


class StreamRedactor:
    """One stream of text without its secrets.

    >>> stream = StreamRedactor()
    >>> stream.feed("the key is AK"), stream.feed("IAABCDEFGH"), stream.feed("IJKLMNOP, keep it")
    ('the key is ', '', '[redacted], keep it')
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        """Take the next piece; what can be given out by now."""
        text = self._held + text
        end = _settled_length(text)
        if len(text) - end > MAX_HELD:
            end = len(text)
        self._held = text[end:]
        return redacted(text[:end])

    def finish(self) -> str:
        """What was held back, when nothing more follows."""
        text, self._held = self._held, ""
        return redacted(text)


def _settled_length(text: str) -> int:
    """How much of a text is settled, whatever follows it."""
    length = len(text)
    end = min(_open_literal(text), _open_key(text))
    if end < length:
        for start, stop in REDACTOR.secret_places(text):
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
