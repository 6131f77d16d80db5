"""Runs the parse tables that lark made from ``grammar.lark``.

Importing lark costs about a hundred milliseconds and building a grammar as much again, so neither
happens when a pipeline is read: ``build`` has lark compile the grammar into plain JSON, and this
module is the loop over it. It keeps its own stacks, so nesting never meets Python's recursion limit.
It knows no terminal and no rule: a lexer supplies tokens, the caller one action per rule.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

Action = Callable[[list[Any]], Any]

TokenT = TypeVar("TokenT", bound=tuple[Any, ...])


@dataclass(frozen=True, slots=True)
class Tables:
    """A compiled LALR(1) grammar.

    Attributes:
        grammar_hash: SHA-256 of the grammar's text, so that a test can tell when the tables are stale.
        start: The first state.
        end: The state in which the whole text has been read.
        states: Per state, what to do on a symbol: a state to shift to, or ``-1 - rule`` to reduce.
        rules: Per rule, the symbol it makes, how many values it takes, and its name.
    """

    grammar_hash: str
    start: int
    end: int
    states: Sequence[Mapping[str, int]]
    rules: Sequence[tuple[str, int, str]]


def load_tables() -> Tables:
    """Read the ``tables.json`` beside this module."""
    plain = json.loads(Path(__file__).with_name("tables.json").read_text("utf-8"))
    rules = [(origin, size, name) for origin, size, name in plain["rules"]]
    return Tables(plain["grammar_hash"], plain["start"], plain["end"], plain["states"], rules)


def run_tables(
    tables: Tables,
    tokens: Iterable[TokenT],
    actions: Mapping[str, Action],
    refuse: Callable[[TokenT], Exception],
) -> Any:
    """Parse tokens and return what the last rule's action made.

    Args:
        tables: The grammar.
        tokens: Tuples whose first item is the terminal's name; the last one is lark's ``$END``.
        actions: By rule name, what to make of the list of values of its symbols. The value of a
            terminal is its whole token.
        refuse: Makes the error for a token that fits nowhere.
    """
    rows, rules = tables.states, tables.rules
    bound = [(origin, size, actions[name]) for origin, size, name in rules]
    states, values = [tables.start], list[Any]()
    for token in tokens:
        kind: str = token[0]
        move = rows[states[-1]].get(kind)
        while move is not None and move < 0:
            origin, size, action = bound[-1 - move]
            if size:
                made = action(values[-size:])
                del values[-size:], states[-size:]
            else:
                made = action([])
            values.append(made)
            state = rows[states[-1]][origin]
            states.append(state)
            move = rows[state].get(kind)
        if move is None:
            if states[-1] == tables.end:
                break
            raise refuse(token)
        states.append(move)
        values.append(token)
    return values[0]
