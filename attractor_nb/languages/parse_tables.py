"""Runs the parse tables that lark made from a ``grammar.lark``.

Importing lark costs about a hundred milliseconds and building a grammar as much again, so neither
happens when a pipeline is read: ``table_building`` has lark compile each grammar into the
``tables.json`` beside it, and this module is the loop over them. It keeps its own stacks, so nesting
never meets Python's recursion limit. It knows no terminal and no rule: a lexer supplies tokens, the
caller one action per rule.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Action = Callable[[list[Any]], Any]

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
    ignored: frozenset[str]  #: Names of the terminals that may stand anywhere.


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
