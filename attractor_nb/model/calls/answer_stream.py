"""An answer that arrives in pieces, handed on without its reasoning (ruling 46). What a mark is, ``reasoning`` says."""

from __future__ import annotations

import re
from typing import Final

from attractor_nb.model.calls.reasoning import ASIDES, BLANKS, CONTENT_NAMES, FINAL_CHANNEL, PAIRS, PATTERNS

_CHANNELS: Final = (("<|channel|>analysis", FINAL_CHANNEL), ("<|channel|>commentary", FINAL_CHANNEL))
_MARKS: Final = (*PAIRS, *_CHANNELS)
_OF_THE_BEGINNING: Final = (*_MARKS, *ASIDES)
"""The marks that count as long as nothing was answered."""
_MOST_CHARACTERS: Final = max(len(mark) for pair in _OF_THE_BEGINNING for mark in pair) + 8
"""The length of a mark, with the blanks that the end of a tag may have."""
_FIRST_CHARACTERS: Final = tuple({opening[0] for opening, _ in _OF_THE_BEGINNING})
_WRITTEN: Final = {
    mark: PATTERNS.get(mark) or re.compile(re.escape(mark), re.IGNORECASE)
    for pair in _OF_THE_BEGINNING
    for mark in pair
}
_BEGUN: Final = {
    opening: re.compile(re.escape(opening[:-1]) + r"\s[^<>]{0,250}\Z", re.IGNORECASE)
    for opening, _ in _OF_THE_BEGINNING
    if re.fullmatch(r"<[\w:]+>", opening)
}
"""Tags whose attributes have not ended yet."""


class AnswerStream:
    r"""Takes an answer in pieces and hands it on without its reasoning, for users who watch.

    What was handed on cannot be taken back: an end of reasoning without a beginning changes nothing here.

    >>> stream = AnswerStream()
    >>> [stream.feed(piece) for piece in ("<th", "ink>Is it 4?</th", "ink>", "It ", "is 4.")], stream.finish()
    (['', '', '', 'It ', 'is 4.'], '')
    """

    def __init__(self) -> None:
        self._rest = ""
        self._closing = ""
        self._fence = ""
        self._is_line_begun = False
        self._is_answer_begun = False
        self._held: list[str] = []
        """An element that is the answer if nothing follows it."""

    def feed(self, piece: str) -> str:
        """Take a piece; what of the answer is known by now."""
        self._rest += piece
        answer: list[str] = []
        while self._rest and (found := self._next()) is not None:
            answer.append(found)
        return "".join(answer)

    def finish(self) -> str:
        """Nothing more comes: what may have been a mark and was none, or an element that was all."""
        rest, self._rest = self._rest, ""
        if self._closing:
            return ""
        return rest if rest.strip() else "".join(self._held) + rest

    def _next(self) -> str | None:
        """The next piece of the answer, possibly empty; None when more must come first."""
        if self._closing:
            return self._without_reasoning()
        if self._is_line_begun:
            line, end, self._rest = self._rest.partition("\n")
            self._is_line_begun = not end
            return line + end
        found = BLANKS.match(self._rest)
        blank = 0 if found is None else found.end()
        if self._held:
            if blank == len(self._rest):
                return None
            self._rest, blank, self._held = self._rest[blank:], 0, []
        if blank == len(self._rest):
            return self._handed_on(blank)
        return self._begin_line(blank, self._rest[blank : blank + _MOST_CHARACTERS])

    def _begin_line(self, blank: int, words: str) -> str | None:
        """The text handed on at the beginning of a line, which ends at its first words at most."""
        if not self._fence and words.startswith(_FIRST_CHARACTERS):
            lower = words.lower()
            for opening, closing in _MARKS if self._is_answer_begun else _OF_THE_BEGINNING:
                if (mark := _WRITTEN[opening].match(self._rest, blank)) is not None:
                    self._closing = closing
                    self._held = [mark.group()] if closing in CONTENT_NAMES else []
                    return self._handed_on(blank, mark.end())
                is_begun = opening in _BEGUN and _BEGUN[opening].match(self._rest, blank) is not None
                if is_begun or opening.startswith(lower):
                    return None
        if words in ("`", "``", "~", "~~"):
            return None
        if words.startswith(("```", "~~~")) and words[:3] in (self._fence or words[:3]):
            self._fence = "" if self._fence else words[:3]
        self._is_line_begun = self._is_answer_begun = True
        return self._handed_on(blank)

    def _handed_on(self, length: int, after: int | None = None) -> str:
        piece, self._rest = self._rest[:length], self._rest[length if after is None else after :]
        return piece

    def _without_reasoning(self) -> str | None:
        end = _WRITTEN[self._closing].search(self._rest)
        after = max(0, len(self._rest) - _MOST_CHARACTERS) if end is None else end.end()
        if self._held:
            self._held.append(self._rest[:after])
        self._rest = self._rest[after:]
        if end is None:
            return None
        self._closing = ""
        if not self._held:
            self._rest = self._rest.lstrip()
        return ""
