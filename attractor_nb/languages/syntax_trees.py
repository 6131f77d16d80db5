"""Reads a text into a tree of its grammar's rules, for the condition and stylesheet languages.

Their grammars spell their own terminals, so one lexer serves both: each state lexes only what it can use
next, as lark's contextual lexer does. Knows no language; a test holds the trees against lark's.
"""

from __future__ import annotations

import json
import re
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    Action = Callable[[list[Any]], Any]


END = "$END"
"""lark's name for the end of the text."""


class Token(NamedTuple):
    """A terminal and its place."""

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
        expected: Names of the terminals that were expected there.
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


# Runs the parse tables that lark made from a ``grammar.lark``.
#
# Importing lark costs about a hundred milliseconds and building a grammar as much again, so neither happens when a
# pipeline is read: ``table_building`` has lark compile each grammar into the ``tables.json`` beside it, and
# the loop here runs them. It keeps its own stacks, so nesting never meets Python's recursion limit.

TokenT = TypeVar("TokenT", bound=tuple[Any, ...])


class Tables(NamedTuple):
    """A compiled LALR(1) grammar."""

    start: int  #: The first state.
    end: int  #: The state in which the whole text has been read.
    #: Per state, what to do on a symbol: a state to shift to, or ``-1 - rule`` to reduce.
    states: Sequence[Mapping[str, int]]
    rules: Sequence[tuple[str, int, str]]  #: Per rule, the symbol it makes, how many values it takes, and its name.
    #: Name and pattern of each terminal that the grammar itself spells, in the order in which lark tries them.
    terminals: Sequence[tuple[str, str]]
    ignored: frozenset[str]  #: Names of the terminals that are allowed anywhere.


@cache
def load_tables(language: str) -> Tables:
    """The tables beside a language's grammar; a language is named by its folder."""
    plain = json.loads((Path(__file__).parent / language / "tables.json").read_text("utf-8"))
    return Tables(
        start=plain["start"],
        end=plain["end"],
        states=plain["states"],
        rules=[(origin, size, name) for origin, size, name in plain["rules"]],
        terminals=[(name, pattern) for name, pattern in plain["terminals"]],
        ignored=frozenset(plain["ignored"]),
    )


def run_tables(
    tables: Tables,
    lex: Callable[[Sequence[int]], Iterable[TokenT]],
    actions: Mapping[str, Action],
    refuse: Callable[[TokenT, TokenT | None], Exception],
) -> Any:
    """Parse tokens and return what the last rule's action made.

    Args:
        tables: The grammar.
        lex: Makes the tokens, tuples whose first item is the terminal's name; the last one is lark's
            ``$END``. It is given the stack of states, whose last item is the one that the token about
            to be made will meet, so that a lexer can look for that state's terminals only.
        actions: By rule name, what to make of the list of values of its symbols. The value of a
            terminal is its whole token.
        refuse: Makes the error for a token that fits nowhere, from it and the token before it.
    """
    rows = tables.states
    bound = [(origin, -size, actions[name]) for origin, size, name in tables.rules]
    states, values = [tables.start], list[Any]()
    before: TokenT | None = None
    for token in lex(states):
        kind: str = token[0]
        move = rows[states[-1]].get(kind)
        while move is not None and move < 0:
            origin, first, action = bound[-1 - move]
            if first == -1:  # most rules: nothing need be cut off
                values[-1] = action(values[-1:])
                states[-1] = state = rows[states[-2]][origin]
            elif first:
                values[first:] = (action(values[first:]),)
                state = rows[states[first - 1]][origin]
                states[first:] = (state,)
            else:
                values.append(action([]))
                state = rows[states[-1]][origin]
                states.append(state)
            move = rows[state].get(kind)
        if move is None:
            if states[-1] == tables.end:
                break
            raise refuse(token, before)
        states.append(move)
        values.append(token)
        before = token
    return values[0]
