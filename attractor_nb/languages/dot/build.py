"""Has lark compile ``grammar.lark`` into ``tables.json``: ``python -m attractor_nb.languages.dot.build``.

Run when the grammar changes, by a developer or the Makefile; never when a pipeline is read. The grammar
declares its terminals (``%declare``) because the lexer is our own, and names every rule (``-> name``)
because the name selects the action.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lark import Lark
from lark.grammar import Rule
from lark.lexer import Lexer

if TYPE_CHECKING:
    from collections.abc import Iterator

REDUCE = 1


class _NoLexer(Lexer):
    """Stands where lark wants a lexer; the tables are all we ask for."""

    def __init__(self, lexer_conf: object) -> None:
        del lexer_conf

    def lex(self, lexer_state: object, parser_state: object) -> Iterator[Any]:
        raise NotImplementedError


def compile_grammar(grammar: str) -> dict[str, Any]:
    """The tables of a grammar as JSON values (see ``lalr.Tables``)."""
    parser = Lark(grammar, parser="lalr", lexer=_NoLexer, maybe_placeholders=False)
    data, memo = parser.memo_serialize([Rule])  # pyright: ignore[reportUnknownMemberType] - lark types its list loosely
    plain = json.loads(json.dumps({"table": data["parser"]["parser"], "rules": memo}))
    table: dict[str, Any] = plain["table"]
    names: dict[str, str] = table["tokens"]
    order = list(plain["rules"])
    rules = [plain["rules"][key] for key in order]
    states: dict[int, dict[str, int]] = {}
    for number, moves in table["states"].items():
        states[int(number)] = {
            names[symbol]: -1 - order.index(str(argument["@"])) if what == REDUCE else argument
            for symbol, (what, argument) in moves.items()
        }
    numbers = _renumber(states, table["start_states"]["start"])
    return {
        "grammar_hash": grammar_hash(grammar),
        "start": 0,
        "end": numbers[table["end_states"]["start"]],
        "states": [
            {symbol: move if move < 0 else numbers[move] for symbol, move in sorted(states[number].items())}
            for number in numbers
        ],
        "rules": [
            [rule["origin"]["name"], len(rule["expansion"]), rule["alias"] or rule["origin"]["name"]]
            for rule in rules
        ],
    }


def _renumber(states: dict[int, dict[str, int]], start: int) -> dict[int, int]:
    """New numbers in the order in which states are reached, for lark's own order changes from run to run."""
    numbers = {start: 0}
    for number in (queue := [start]):
        for _, move in sorted(states[number].items()):
            if move >= 0 and move not in numbers:
                numbers[move] = len(numbers)
                queue.append(move)
    return numbers


def grammar_hash(grammar: str) -> str:
    """SHA-256 of a grammar's text."""
    return hashlib.sha256(grammar.encode()).hexdigest()


def tables_text(grammar: str) -> str:
    """The content of ``tables.json`` for a grammar, one state a line."""
    rows = json.dumps(compile_grammar(grammar), separators=(",", ":"))
    return rows.replace("},{", "},\n{") + "\n"


def main() -> None:
    """Compile the grammar beside this file."""
    folder = Path(__file__).parent
    text = tables_text((folder / "grammar.lark").read_text("utf-8"))
    (folder / "tables.json").write_text(text, "utf-8")
    sys.stdout.write("tables.json written\n")


if __name__ == "__main__":
    main()
