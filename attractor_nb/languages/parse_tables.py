"""Runs the parse tables that lark made, for the condition and stylesheet languages.

Importing lark costs about eighty milliseconds, so it is not there when a pipeline is read:
``table_building`` has it compile each grammar into the ``tables.json`` beside it, and this module is the
loop over them. Each state lexes only what it can use next, as lark's contextual lexer does. Knows no
language; a test holds the tables against the grammars.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


class Tables:
    """A compiled LALR(1) grammar.

    Attributes:
        start: The first state.
        end: The state in which the whole text has been read.
        states: Per state, what to do on a symbol: a state to shift to, or ``-1 - rule`` to reduce.
        rules: Per rule, the symbol it makes, how many values it takes, and its name.
    """

    def __init__(
        self,
        *,
        start: int,
        end: int,
        states: Sequence[Mapping[str, int]],
        rules: Sequence[tuple[str, int, str]],
        terminals: Sequence[tuple[str, str]],
        ignored: Sequence[str],
    ) -> None:
        self.start = start
        self.end = end
        self.states = states
        self.rules = rules
        self._terminals = terminals
        self._ignored = frozenset(ignored)
        self._patterns: dict[int, re.Pattern[str]] = {}

    def next_token(self, state: int, text: str, offset: int) -> Token:
        """The token that a state can use at or, past what is ignored, after an offset.

        Raises:
            ReadingStoppedError: There is none.
        """
        pattern = self._patterns.get(state)
        if pattern is None:
            pattern = self._patterns[state] = self._pattern(state)
        while offset < len(text):
            found = pattern.match(text, offset)
            kind = found.lastgroup if found else None
            if found is None or kind is None:
                raise ReadingStoppedError(offset, self._expected(state))
            if kind not in self._ignored:
                return Token(kind, found[0], offset, found.end())
            offset = found.end()
        if END not in self.states[state]:
            raise ReadingStoppedError(len(text), self._expected(state))
        return Token(END, "", offset, offset)

    def _pattern(self, state: int) -> re.Pattern[str]:
        usable = self.states[state].keys() | self._ignored
        alternatives = [f"(?P<{name}>{pattern})" for name, pattern in self._terminals if name in usable]
        return re.compile("|".join(alternatives))

    def _expected(self, state: int) -> frozenset[str]:
        return frozenset(name for name, _ in self._terminals if name in self.states[state])


def parse_tree(language: str, text: str) -> Branch:
    """The syntax tree of a text in a language, named by its folder.

    Raises:
        ReadingStoppedError: The text is outside the language.
    """
    tables = load_tables(language)
    states, values = [tables.start], list[Token | Branch]()
    offset = 0
    while True:
        token = tables.next_token(states[-1], text, offset)
        offset = token.end
        move = tables.states[states[-1]][token.kind]
        while move < 0:
            origin, size, name = tables.rules[-1 - move]
            parts = values[len(values) - size :]
            del values[len(values) - size :], states[len(states) - size :]
            branch = Branch(name, _spliced(parts))
            values.append(branch)
            states.append(tables.states[states[-1]][origin])
            if states[-1] == tables.end:
                return branch
            move = tables.states[states[-1]][token.kind]
        states.append(move)
        values.append(token)


def _spliced(parts: list[Token | Branch]) -> list[Token | Branch]:
    """The parts of a rule with those of lark's own helper rules, which repetitions become, in their place."""
    spliced: list[Token | Branch] = []
    for part in parts:
        if isinstance(part, Branch) and part.rule.startswith("__"):
            spliced.extend(part.parts)
        else:
            spliced.append(part)
    return spliced


@cache
def load_tables(language: str) -> Tables:
    """The tables beside a language's grammar."""
    plain = json.loads((Path(__file__).parent / language / "tables.json").read_text("utf-8"))
    return Tables(
        start=plain["start"],
        end=plain["end"],
        states=plain["states"],
        rules=[(origin, size, name) for origin, size, name in plain["rules"]],
        terminals=[(name, pattern) for name, pattern in plain["terminals"]],
        ignored=plain["ignored"],
    )
