"""Has lark compile the grammars of the three languages.

A developer runs ``python -m attractor_nb.languages.table_building`` after a change of any
``grammar.lark``; it has no part in reading a pipeline. The DOT grammar declares its terminals
(``%declare``) because its lexer is our own, and names every rule (``-> name``) because the name selects
the action.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lark import Lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

if TYPE_CHECKING:
    from collections.abc import Mapping

LANGUAGES = ("condition", "dot", "stylesheet")
_REDUCE = 1


def build_tables(grammar: str) -> str:
    """The content of ``tables.json`` for the text of a grammar (see ``syntax_trees.Tables``)."""
    parser = Lark(grammar, parser="lalr", maybe_placeholders=False)
    data, memo = parser.memo_serialize([TerminalDef, Rule])  # pyright: ignore[reportUnknownMemberType] - lark types its list loosely
    table: dict[str, Any] = data["parser"]["parser"]
    rows = _named_rows(table)
    numbers = _visiting_order(rows, table["start_states"]["start"])
    rule_keys = sorted({argument for row in rows.values() for is_reduce, argument in row.values() if is_reduce})
    states = [
        {
            symbol: -1 - rule_keys.index(argument) if is_reduce else numbers[argument]
            for symbol, (is_reduce, argument) in sorted(rows[state].items())
        }
        for state in numbers
    ]
    tables = {
        "start": numbers[table["start_states"]["start"]],
        "end": numbers[table["end_states"]["start"]],
        "states": states,
        "rules": [_plain_rule(memo[key]) for key in rule_keys],
        "terminals": _plain_terminals(parser),
        "ignored": sorted(parser.ignore_tokens),
    }
    return json.dumps(tables, separators=(",", ":")).replace("},{", "},\n{") + "\n"


def write_tables(folder: Path) -> None:
    """Write the tables of every language beside their grammars, below a folder."""
    for language in LANGUAGES:
        grammar = (folder / language / "grammar.lark").read_text("utf-8")
        (folder / language / "tables.json").write_text(build_tables(grammar), "utf-8")


def _named_rows(table: Mapping[str, Any]) -> dict[int, dict[str, tuple[bool, int]]]:
    """Per state, by the name of a symbol: whether to reduce, and by which rule or to which state to go."""
    return {
        state: {
            table["tokens"][symbol]: (what == _REDUCE, argument["@"] if what == _REDUCE else argument)
            for symbol, (what, argument) in moves.items()
        }
        for state, moves in table["states"].items()
    }


def _visiting_order(rows: Mapping[int, Mapping[str, tuple[bool, int]]], start: int) -> dict[int, int]:
    """New numbers for the states, in the order in which they are reached; lark's own vary."""
    numbers = {start: 0}
    for state in (queue := [start]):
        for _, (is_reduce, target) in sorted(rows[state].items()):
            if not is_reduce and target not in numbers:
                numbers[target] = len(numbers)
                queue.append(target)
    return numbers


def _plain_rule(rule: Mapping[str, Any]) -> list[Any]:
    name = rule["origin"]["name"]
    return [name, len(rule["expansion"]), rule["alias"] or name]


def _plain_terminals(parser: Lark) -> list[list[str]]:
    """Name and pattern of each terminal, in the order in which lark tries them."""
    ranked = sorted(
        parser.terminals,
        key=lambda each: (-each.priority, -each.pattern.max_width, -len(each.pattern.value), each.name),
    )
    return [[each.name, each.pattern.to_regexp()] for each in ranked]


if __name__ == "__main__":
    write_tables(Path(__file__).parent)
