"""Reasoning that stands inside the text of an answer (ruling 46): told apart from the answer.

Servers and chat templates that know nothing of reasoning leave it in the text, between marks. An answer may also
be *about* such marks: what stands in code or between quotes is text. The work is linear in the text's length.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_PAIRS: Final = (
    *((f"<{name}>", f"</{name}>") for name in ("think", "thinking", "thought", "reasoning", "seed:think")),
    ("[think]", "[/think]"),
    ("◁think▷", "◁/think▷"),
    ("<|start_thinking|>", "<|end_thinking|>"),
    ("<|channel>thought", "<channel|>"),
)
"""What begins reasoning, and what ends it, in small letters."""
_OPENINGS: Final = tuple(opening for opening, _ in _PAIRS)
_CLOSINGS: Final = tuple(closing for _, closing in _PAIRS)
_CLOSING_OF: Final = dict(_PAIRS)
_FINAL_CHANNEL: Final = "<|channel|>final<|message|>"
_CHANNEL: Final = r"<\|channel\|>(?P<channel>[a-z]{1,40}+)[^<>\n]{0,200}+(?:<\|constrain\|>[^<>\n]{0,40})?<\|message\|>"


def _any_of(name: str, words: tuple[str, ...]) -> str:
    return f"(?P<{name}>{'|'.join(map(re.escape, words))})"


_MARK: Final = re.compile(
    "|".join(
        [r"(?P<fence>^[ ]{0,3}(?:`{3,}|~{3,}))", _any_of("opening", _OPENINGS), _any_of("closing", _CLOSINGS), _CHANNEL]
    ),
    re.IGNORECASE | re.MULTILINE,
)
_CLOSING_PATTERNS: Final = {closing: re.compile(re.escape(closing), re.IGNORECASE) for closing in _CLOSINGS}
_LONE_CLOSING: Final = re.compile(rf"^[ \t]*{_any_of('closing', _CLOSINGS)}[ \t]*$", re.IGNORECASE | re.MULTILINE)
_CHANNELS: Final = re.compile(rf"{_CHANNEL}|<\|(?:end|return|call|start)\|>(?:assistant)?", re.IGNORECASE)
_WORN_CHANNELS: Final = re.compile(r"\A\s*analysis(?=\W|[A-Z])(.*?)assistant\s*final(?=\W|[A-Z])", re.DOTALL)
"""Channels whose marks a server took out, and left their names."""
_QUOTE: Final = re.compile(r'(?<!\\)"')


class Parted(NamedTuple):
    """A text in its two parts.

    Attributes:
        answer: What was answered; empty when the reasoning has no end.
        reasoning: What was only considered; empty when the text has none.
    """

    answer: str
    reasoning: str


def part_reasoning(text: str) -> Parted:
    r"""The answer in a text, and the reasoning in it.

    >>> part_reasoning("<think>Is it 4?</think>\n\nIt is 4.")
    Parted(answer='It is 4.', reasoning='Is it 4?')
    >>> part_reasoning("Is it 4?\n</think>\nIt is 4.").answer, part_reasoning("<think>Is it 4?").answer
    ('It is 4.', '')
    >>> part_reasoning('The parser knows "<think>" and `</think>`.').reasoning
    ''
    """
    if worn := _WORN_CHANNELS.match(text):
        return Parted(text[worn.end() :].strip(), worn[1].strip())
    return _Scan(text).parted()


class _Scan:
    """Goes through a text once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._answers: list[str] = []
        self._thoughts: list[str] = []
        self._began = 0
        """Where the piece of the answer that is looked at begins."""
        self._unclosed: set[str] = set()
        """What is known to close nothing any more."""
        self._line = _Line(text, 0)

    def parted(self) -> Parted:
        text, position, has_fences = self._text, 0, True
        while (mark := _MARK.search(text, position)) is not None:
            position = mark.end()
            if mark["channel"]:
                if not self._is_text(mark):
                    return _of_channels(text)
            elif mark["fence"]:
                end = self._end_of_fence(mark) if has_fences else None
                has_fences = end is not None  # without an end, it is none
                position = mark.end() if end is None else end
            elif mark["opening"]:
                end = self._end_of_reasoning(mark)
                if end is None:
                    return Parted("", self._all_thoughts(text[mark.end() :]))
                position = end
            elif not self._is_text(mark):
                self._close(mark.start(), mark.end())
        if not self._began and not self._thoughts:
            return Parted(text, "")
        self._answers.append(text[self._began :])
        return Parted("".join(self._answers).strip(), self._all_thoughts())

    def _all_thoughts(self, *last: str) -> str:
        pieces = (piece.strip() for piece in (*self._thoughts, *last))
        return "\n\n".join(piece for piece in pieces if piece)

    def _close(self, end: int, after: int) -> None:
        """What was taken for the answer was reasoning: its end came without its beginning."""
        self._thoughts += [*self._answers, self._text[self._began : end]]
        self._answers = []
        self._go_on(after)

    def _go_on(self, at: int) -> None:
        self._began = at
        self._line_at(at).begin(at)

    def _end_of_reasoning(self, opening: re.Match[str]) -> int | None:
        """Where the search goes on; None when this reasoning has no end."""
        closing = _CLOSING_OF[opening["opening"].lower()]
        if self._is_text(opening):
            return opening.end()
        end = None
        if closing not in self._unclosed:
            end = _CLOSING_PATTERNS[closing].search(self._text, opening.end())
        if end is None:
            self._unclosed.add(closing)
            return None if self._line.is_blank else opening.end()
        self._answers.append(self._text[self._began : opening.start()])
        self._thoughts.append(self._text[opening.end() : end.start()])
        self._go_on(end.end())
        return end.end()

    def _end_of_fence(self, fence: re.Match[str]) -> int | None:
        """The end of a block of code; None when it has none.

        A line in it that only ends reasoning, which nothing in it began, ends that: the block was the reasoning's.
        """
        mark = fence["fence"].strip()
        end = re.compile(rf"^ {{0,3}}{re.escape(mark[0])}{{{len(mark)},}}[ \t]*$", re.MULTILINE)
        found = end.search(self._text, fence.end())
        if found is None:
            return None
        lone = _LONE_CLOSING.search(self._text, fence.end(), found.start())
        if lone is not None:
            opening = next(opening for opening, closing in _PAIRS if closing == lone["closing"].lower())
            if opening not in self._text[fence.end() : lone.start()].lower():
                self._close(lone.start(), lone.end())
                return lone.end()
        return found.end()

    def _is_text(self, mark: re.Match[str]) -> bool:
        """Whether a mark stands in code or between quotes."""
        return self._line_at(mark.start()).is_quoted(mark.start())

    def _line_at(self, position: int) -> _Line:
        if position > self._line.end:
            self._line = _Line(self._text, self._text.rfind("\n", self._line.end, position) + 1)
        return self._line


class _Line:
    """A line of a text, or the rest of one behind reasoning. Each character of it is looked at once."""

    def __init__(self, text: str, start: int) -> None:
        end = text.find("\n", start)
        self.end = len(text) if end < 0 else end
        self._text = text
        self._last_code = text.rfind("`", start, self.end)
        self._closing_quote = start
        self.begin(start)

    def begin(self, position: int) -> None:
        """Only what is behind this counts."""
        self._looked_at = position
        self._is_code = False
        self._opening_quote: int | None = None
        self._is_blank = True

    def is_quoted(self, position: int) -> bool:
        """Whether code or a quotation is open at a position behind those asked about before."""
        between = self._text[self._looked_at : position]
        self._is_blank = self._is_blank and (not between or between.isspace())
        self._is_code ^= between.count("`") % 2 == 1
        for quote in _QUOTE.finditer(self._text, self._looked_at, position):
            self._opening_quote = quote.start() if self._opening_quote is None else None
        self._looked_at = position
        return (self._is_code and self._last_code >= position) or self._is_quotation(position)

    @property
    def is_blank(self) -> bool:
        """Whether there was nothing before the position that was asked about last."""
        return self._is_blank

    def _is_quotation(self, position: int) -> bool:
        """Whether the quotes on both sides look like those of one: reasoning may leave one open."""
        opening = self._opening_quote
        if opening is None or (opening and self._text[opening - 1].isalnum()):
            return False
        if self._closing_quote < position:
            found = _QUOTE.search(self._text, position, self.end)
            self._closing_quote = self.end if found is None else found.start()
        after = self._text[self._closing_quote + 1 : self._closing_quote + 2]
        return self._closing_quote < self.end and not after.isalnum()


def _of_channels(text: str) -> Parted:
    """A text whose parts say by name what they are: ``final`` is the answer, all else is not."""
    answers: list[str] = []
    thoughts: list[str] = []
    channel, position = "", 0
    for mark in _CHANNELS.finditer(text):
        (answers if channel == "final" else thoughts).append(text[position : mark.start()].strip())
        channel, position = (mark["channel"] or "").lower(), mark.end()
    (answers if channel == "final" else thoughts).append(text[position:].strip())
    return Parted("\n\n".join(filter(None, answers)), "\n\n".join(filter(None, thoughts)))


_STREAMED: Final = (*_PAIRS, ("<|channel|>analysis", _FINAL_CHANNEL), ("<|channel|>commentary", _FINAL_CHANNEL))
_MOST_CHARACTERS: Final = max(len(mark) for pair in _STREAMED for mark in pair)


class AnswerStream:
    r"""Takes an answer in pieces and hands it on without its reasoning, for people who watch.

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

    def feed(self, piece: str) -> str:
        """Take a piece; what of the answer is known by now."""
        self._rest += piece
        answer: list[str] = []
        while self._rest and (found := self._next()) is not None:
            answer.append(found)
        return "".join(answer)

    def finish(self) -> str:
        """Nothing more comes: what may have been a mark and was none."""
        rest, self._rest = self._rest, ""
        return "" if self._closing else rest

    def _next(self) -> str | None:
        """The next piece of the answer, possibly empty; None when more must come first."""
        if self._closing:
            return self._without_reasoning()
        if self._is_line_begun:
            line, end, self._rest = self._rest.partition("\n")
            self._is_line_begun = not end
            return line + end
        words = self._rest.lstrip()
        if not words:
            return self._handed_on(len(self._rest))
        blank, lower = len(self._rest) - len(words), words[:_MOST_CHARACTERS].lower()
        for opening, closing in _STREAMED if not self._fence else ():
            if lower.startswith(opening):
                self._closing = closing
                return self._handed_on(blank, blank + len(opening))
            if opening.startswith(lower):
                return None
        if words[:3] in ("`", "``", "~", "~~"):
            return None
        if words.startswith(("```", "~~~")) and words[:3] in (self._fence or words[:3]):
            self._fence = "" if self._fence else words[:3]
        self._is_line_begun = True
        return self._handed_on(blank)

    def _handed_on(self, length: int, after: int | None = None) -> str:
        piece, self._rest = self._rest[:length], self._rest[length if after is None else after :]
        return piece

    def _without_reasoning(self) -> str | None:
        at = self._rest.lower().find(self._closing)
        if at < 0:
            self._rest = self._rest[-_MOST_CHARACTERS:]
            return None
        self._rest, self._closing = self._rest[at + len(self._closing) :].lstrip(), ""
        return ""
