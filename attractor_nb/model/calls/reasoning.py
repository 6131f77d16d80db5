"""Reasoning that is inside the text of an answer (ruling 46): told apart from the answer.

Servers and chat templates that know nothing of reasoning leave it in the text, between marks. An answer may also
be *about* such marks: what is in code or between quotes is text. The work is linear in the text's length.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final, NamedTuple

_TAGS: Final = ("think", "thinking", "thought", "reasoning", "seed:think", "longcat_think", "mm:think")
_ASIDE_TAGS: Final = ("scratchpad", "inner_monologue", "analysis", "reflection")
CONTENT_NAMES: Final = ("</analysis>", "</reflection>")
"""Ends of elements that may be the answer, where they are all of it."""
PAIRS: Final = (
    *((f"<{name}>", f"</{name}>") for name in _TAGS),
    ("[think]", "[/think]"),
    ("◁think▷", "◁/think▷"),
    ("<|start_thinking|>", "<|end_thinking|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|channel>thought", "<channel|>"),
    ("<unused94>", "<unused95>"),
)
"""Beginnings and ends of reasoning, in small letters."""
ASIDES: Final = tuple((f"<{name}>", f"</{name}>") for name in _ASIDE_TAGS)
"""The same for elements of documents, too: they are reasoning at the beginning of an answer alone."""
_ANSWER_BEGINS: Final = "[begin final response]"
"""Ends reasoning that nothing began."""
_ANSWER_ENDS: Final = "[end final response]"
_OPENINGS: Final = tuple(opening for opening, _ in PAIRS)
_CLOSINGS: Final = (*(closing for _, closing in PAIRS), _ANSWER_BEGINS)
_ASIDE_OPENINGS: Final = tuple(opening for opening, _ in ASIDES)
_ASIDE_CLOSINGS: Final = tuple(closing for _, closing in ASIDES)
_CLOSING_OF: Final = dict((*PAIRS, *ASIDES))
_OPENING_OF: Final = {closing: opening for opening, closing in PAIRS}
FINAL_CHANNEL: Final = "<|channel|>final<|message|>"
_CHANNEL: Final = r"<\|channel\|>(?P<channel>[a-z]{1,40}+)[^<>\n]{0,200}+(?:<\|constrain\|>[^<>\n]{0,40})?<\|message\|>"


_INSIDE_OF_TAG: Final = re.compile(r"(?<=[a-z])\s[^<>]*>\Z")


def _written(mark: str) -> str:
    """The pattern of a mark: a tag may have blanks and attributes."""
    if mark[0] == "<" and mark[1:-1] in _TAGS:
        return re.escape(mark[:-1]) + r"(?:\s{1,8}[\w:-]{1,40}=[^<>]{0,200}+)?\s{0,8}>"
    if mark in _ASIDE_OPENINGS:
        return re.escape(mark[:-1]) + r"(?:\s[^<>]{0,250}+)?(?<!/)>"
    if mark[:2] == "</":
        return re.escape(mark[:-1]) + r"\s{0,8}>"
    return re.escape(mark)


def _any_of(name: str, words: tuple[str, ...]) -> str:
    return f"(?P<{name}>{'|'.join(map(_written, words))})"


def _rest_of(name: str, words: tuple[str, ...]) -> str:
    """The pattern of marks whose first character has been read."""
    rests: dict[str, list[str]] = {}
    for word in words:
        first = re.escape(word[0])
        rests.setdefault(first, []).append(_written(word)[len(first) :])
    found = "|".join(f"(?<={first})(?:{'|'.join(rest)})" for first, rest in rests.items())
    return f"(?P<{name}>{found})"


def _name_of(mark: str) -> str:
    """A mark unchanged among the pairs: in small letters, a tag without blanks and attributes."""
    return _INSIDE_OF_TAG.sub(">", mark.lower())


_LINE_BEGINS: Final = "|".join(f"(?<=^{' ' * blanks}[`~])" for blanks in range(4))
# A pattern that begins with a set of characters is searched for at 3 ns a character, in place of 80.
_MARK: Final = re.compile(
    r"[<\[◁`~](?=[a-z/|`~])(?:"
    + "|".join(
        [
            rf"(?P<fence>(?:{_LINE_BEGINS})(?:(?<=`)`{{2,}}|(?<=~)~{{2,}}))",
            _rest_of("opening", _OPENINGS),
            _rest_of("closing", _CLOSINGS),
            _rest_of("aside", _ASIDE_OPENINGS),
            _rest_of("aside_end", _ASIDE_CLOSINGS),
            _rest_of("end", (_ANSWER_ENDS,)),
            f"(?<=<){_CHANNEL.removeprefix('<')}",
        ]
    )
    + ")",
    re.IGNORECASE | re.MULTILINE,
)
PATTERNS: Final = {
    mark: re.compile(_written(mark), re.IGNORECASE)
    for mark in (*_OPENINGS, *_CLOSINGS, *_ASIDE_OPENINGS, *_ASIDE_CLOSINGS)
}
BLANKS: Final = re.compile(r"[\s\ufeff\u200b]*+")
"""Characters that may precede an answer."""
_LONE_CLOSING: Final = re.compile(rf"^[ \t]*{_any_of('closing', _CLOSINGS)}[ \t]*$", re.IGNORECASE | re.MULTILINE)
_CHANNELS: Final = re.compile(rf"{_CHANNEL}|<\|(?:end|return|call|start)\|>(?:assistant)?", re.IGNORECASE)
_WORN_CHANNELS: Final = re.compile(
    r"\A[\s\ufeff\u200b]*+analysis(?=\W|[A-Z])(.*?)assistant\s*final(?=\W|[A-Z])", re.DOTALL
)
"""Channels whose marks a server took out, and left their names."""
_WORN_AND_CUT: Final = re.compile(r"\A[\s\ufeff\u200b]*+analysis(?=\s*[A-Z{])")
"""The same, cut off before the answer."""
_PERHAPS_CUT: Final = re.compile(r"\A[\s\ufeff\u200b]*+analysis\b(?![ \t]*[:,.])")
_GOES_ON: Final = re.compile(r"[ \t]++[^\W_]|[-,.;:!?)/'\u2019]|\s*+\Z")
"""Continuation of prose after a tag that it mentions."""
_QUOTE: Final = re.compile(r'(?<!\\)"')


class Parted(NamedTuple):
    """A text in its two parts."""

    answer: str  #: The answer; empty when the reasoning has no end.
    reasoning: str  #: The reasoning; empty when the text has none.


def part_reasoning(text: str, *, is_decision: bool = False) -> Parted:
    r"""The answer in a text, and the reasoning in it.

    Args:
        text: What a model wrote.
        is_decision: A verdict or a choice is read from the answer. Then every beginning without an end means that
            there was no answer, even where a sentence may only mention the mark.

    >>> part_reasoning("<think>Is it 4?</think>\n\nIt is 4.")
    Parted(answer='It is 4.', reasoning='Is it 4?')
    >>> part_reasoning("Is it 4?\n</think>\nIt is 4.").answer, part_reasoning("<think>Is it 4?").answer
    ('It is 4.', '')
    >>> part_reasoning('The parser knows "<think>" and `</think>`.').reasoning
    ''
    """
    if worn := _WORN_CHANNELS.match(text):
        return Parted(text[worn.end() :].strip(), worn[1].strip())
    if cut := _WORN_AND_CUT.match(text) or (is_decision and _PERHAPS_CUT.match(text)):
        return Parted("", text[cut.end() :].strip())
    if _MARK.search(text) is None:
        return Parted(text, "")
    return _Scan(text, is_decision=is_decision).parted()


class _Scan:
    """Goes through a text once."""

    def __init__(self, text: str, *, is_decision: bool) -> None:
        self._text = text
        self._is_decision = is_decision
        self._answers: list[str] = []
        self._thoughts: list[str] = []
        self._began = 0
        """Position at which the current piece of the answer begins."""
        self._unclosed: set[str] = set()
        """Ends that are known not to occur any more."""
        self._elements: Counter[str] = Counter()
        """Elements of the answer that are open, by their ends."""
        self._last_ends: dict[str, int] = {}
        """Position of the last end of an element, by the end."""
        self._has_answer = False
        self._line = _Line(text, 0)
        self._first = 0
        self._go_on(0)

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
            elif mark["opening"] or mark["aside"]:
                end = self._end_of_reasoning(mark)
                if end is None:
                    answered = (*self._answers, text[self._began : mark.start()])
                    return Parted("", self._all_thoughts(*answered, text[mark.end() :]))
                position = end
            elif not self._is_text(mark):
                self._end(mark)
        if not self._began and not self._thoughts:
            return Parted(text, "")
        self._keep(len(text))
        return Parted("".join(self._answers).strip(), self._all_thoughts())

    def _all_thoughts(self, *last: str) -> str:
        pieces = (piece.strip() for piece in (*self._thoughts, *last))
        return "\n\n".join(piece for piece in pieces if piece)

    def _end(self, mark: re.Match[str]) -> None:
        """Take out an end that nothing began: of reasoning, or of the answer behind it."""
        if mark["aside_end"]:
            closing = _name_of(mark.group())
            if self._elements[closing]:
                self._elements[closing] -= 1
            elif not self._is_mentioned(mark):
                self._close(mark.start(), mark.end())
        elif mark["closing"]:
            self._close(mark.start(), mark.end())
        elif self._thoughts:
            self._keep(mark.start())
            self._go_on(mark.end())

    def _close(self, end: int, after: int) -> None:
        """Turn the text taken for the answer into reasoning: its end mark came without its beginning."""
        self._thoughts += [*self._answers, self._text[self._began : end]]
        self._answers, self._has_answer = [], False
        self._elements.clear()
        self._go_on(after)

    def _keep(self, end: int) -> None:
        """The piece that ends there is of the answer."""
        self._answers.append(self._text[self._began : end])
        self._has_answer = self._has_answer or self._first < end

    def _go_on(self, at: int) -> None:
        self._began, self._first = at, _end_of_blanks(self._text, at)
        self._line_at(at).begin(at)

    def _end_of_reasoning(self, opening: re.Match[str]) -> int | None:
        """The position where the search continues. None if this reasoning has no end."""
        closing = _CLOSING_OF[_name_of(opening.group())]
        if self._is_text(opening):
            return opening.end()
        if opening["aside"] and (self._has_answer or self._first < opening.start()):
            return self._end_of_element(opening, closing)
        end = None
        if closing not in self._unclosed:
            end = PATTERNS[closing].search(self._text, opening.end())
        if end is None:
            self._unclosed.add(closing)
            return opening.end() if self._is_mentioned(opening) else None
        if (
            closing in CONTENT_NAMES
            and not self._is_decision
            and _end_of_blanks(self._text, end.end()) == len(self._text)
        ):
            return end.end()
        self._keep(opening.start())
        self._thoughts.append(self._text[opening.end() : end.start()])
        self._go_on(end.end())
        return end.end()

    def _end_of_element(self, opening: re.Match[str], closing: str) -> int | None:
        """The position where the search continues in an element of the answer. None if a decision lacks its end."""
        self._elements[closing] += 1
        if self._is_decision:
            last = self._last_ends.get(closing)
            if last is None:
                ends = [end.start() for end in PATTERNS[closing].finditer(self._text, opening.end())]
                last = self._last_ends[closing] = ends[-1] if ends else 0
            if last < opening.end():
                return None
        return opening.end()

    def _is_mentioned(self, opening: re.Match[str]) -> bool:
        """True if a sentence continues around a mark without an end, so that it only speaks of it."""
        if self._is_decision:
            return False
        before = self._line.before
        return (before.isalnum() or before in tuple(",;(/")) and bool(_GOES_ON.match(self._text, opening.end()))

    def _end_of_fence(self, fence: re.Match[str]) -> int | None:
        """The end of a block of code; None when it has none.

        A line in it that only ends reasoning, which nothing in it began, ends that: the block was the reasoning's.
        """
        mark = fence.group()
        end = re.compile(rf"^ {{0,3}}{re.escape(mark[0])}{{{len(mark)},}}[ \t]*$", re.MULTILINE)
        found = end.search(self._text, fence.end())
        if found is None:
            return None
        lone = _LONE_CLOSING.search(self._text, fence.end(), found.start())
        if lone is not None:
            opening = _OPENING_OF.get(_name_of(lone["closing"]))
            if opening is None or not PATTERNS[opening].search(self._text, fence.end(), lone.start()):
                self._close(lone.start(), lone.end())
                return lone.end()
        return found.end()

    def _is_text(self, mark: re.Match[str]) -> bool:
        """True if a mark is in code or between quotes."""
        return self._line_at(mark.start()).is_quoted(mark.start())

    def _line_at(self, position: int) -> _Line:
        if position > self._line.end:
            self._line = _Line(self._text, self._text.rfind("\n", self._line.end, position) + 1)
        return self._line


def _end_of_blanks(text: str, at: int) -> int:
    found = BLANKS.match(text, at)
    return at if found is None else found.end()


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
        self.before = ""
        """The last character before the position that was asked about last, but for blanks; empty for none."""

    def is_quoted(self, position: int) -> bool:
        """True if code or a quotation is open at a position behind those asked about before."""
        between = self._text[self._looked_at : position]
        self.before = between.rstrip()[-1:] or self.before
        self._is_code ^= between.count("`") % 2 == 1
        for quote in _QUOTE.finditer(self._text, self._looked_at, position):
            self._opening_quote = quote.start() if self._opening_quote is None else None
        self._looked_at = position
        return (self._is_code and self._last_code >= position) or self._is_quotation(position)

    def _is_quotation(self, position: int) -> bool:
        """True if the quotes on both sides look like those of one: reasoning may leave one open."""
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
