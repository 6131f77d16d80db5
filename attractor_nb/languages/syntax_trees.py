"""Reads a text into a tree of its grammar's rules, for the condition and stylesheet languages.

Their grammars spell their own terminals, so one lexer serves both: each state lexes only what it can use
next, as lark's contextual lexer does. Knows no language; a test holds the trees against lark's.
"""

from __future__ import annotations

import re
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from attractor_nb.languages.parse_tables import load_tables, run_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from attractor_nb.languages.parse_tables import Action

END = "$END"
"""lark's name for the end of the text."""


class Token(NamedTuple):
    """A terminal and where it stands."""

    kind: str
    text: str
    start: int
    end: int


class Branch(NamedTuple):
    """A rule and what it is made of."""

    rule: str
    parts: list[Token | Branch]

    @property
    def tokens(self) -> list[Token]:
        """The terminals directly under it."""
        return [part for part in self.parts if isinstance(part, Token)]

    @property
    def branches(self) -> list[Branch]:
        """The rules directly under it."""
        return [part for part in self.parts if isinstance(part, Branch)]


class ReadingStoppedError(Exception):
    """A text is outside its language; the language turns this into one of our errors.

    Attributes:
        offset: Where reading stopped; the length of the text when it ended too early.
        expected: Names of the terminals that could have stood there.
    """

    def __init__(self, offset: int, expected: frozenset[str]) -> None:
        super().__init__(offset, expected)
        self.offset = offset
        self.expected = expected


def parse_tree(language: str, text: str) -> Branch:
    """The syntax tree of a text in a language, named by its folder."""
    tables = load_tables(language)
    patterns, ignored, size = _patterns(language), tables.ignored, len(text)

    def lex(states: Sequence[int]) -> Iterator[Token]:
        offset = 0
        while offset < size:
            found = patterns[states[-1]].match(text, offset)
            kind = found.lastgroup if found else None
            if found is None or kind is None:
                raise ReadingStoppedError(offset, _expected(language, states[-1]))
            start, offset = offset, found.end()
            if kind not in ignored:
                yield Token(kind, found[0], start, offset)
        if END not in tables.states[states[-1]]:
            raise ReadingStoppedError(size, _expected(language, states[-1]))
        yield Token(END, "", size, size)

    # The lexer offers only what the state can use, so it is the lexer that stops, knowing what it sought.
    def refuse(token: Token, _: Token | None) -> ReadingStoppedError:
        return ReadingStoppedError(token.start, frozenset())

    return cast("Branch", run_tables(tables, lex, _actions(language), refuse))


@cache
def _patterns(language: str) -> Sequence[re.Pattern[str]]:
    """For each state, what it can use next, and what is ignored."""
    tables = load_tables(language)
    usable = [row.keys() | tables.ignored for row in tables.states]
    return [
        re.compile("|".join(f"(?P<{name}>{each})" for name, each in tables.terminals if name in names))
        for names in usable
    ]


def _expected(language: str, state: int) -> frozenset[str]:
    tables = load_tables(language)
    return frozenset(name for name, _ in tables.terminals if name in tables.states[state])


@cache
def _actions(language: str) -> Mapping[str, Action]:
    return {name: partial(_branch, name) for _, _, name in load_tables(language).rules}


def _branch(rule: str, parts: list[Any]) -> Branch:
    """A rule with the parts of lark's own helper rules, which repetitions become, in their place.

    A repetition is a helper that begins with the one before it and is no part of anything else, so it
    grows in place: to copy it for each of its parts would take the square of the time.
    """
    first = parts[0] if parts else None
    if isinstance(first, Branch) and first.rule.startswith("__") and rule.startswith("__"):
        spliced, parts = first.parts, parts[1:]
    else:
        spliced = []
    for part in parts:
        if isinstance(part, Branch) and part.rule.startswith("__"):
            spliced.extend(part.parts)
        else:
            spliced.append(part)
    return Branch(rule, spliced)
