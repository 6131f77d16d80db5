"""lark for the condition and stylesheet languages: prebuilt tables, and one way for reading to stop.

Each grammar ships next to its tables (``tables.json``), which a test holds against the grammar. JSON,
unlike lark's own pickle, cannot run code when it is read. Knows nothing of any language.

Run ``python -m attractor_nb.languages.parse_tables`` after a change of either grammar.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from lark import Token, Tree

PACKAGES = ("attractor_nb.languages.condition", "attractor_nb.languages.stylesheet")


class TreeParser(Protocol):
    """What a language asks of lark."""

    def parse(self, text: str) -> Tree[Token]:
        """The syntax tree of a text."""
        ...


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


def parse_tree(package: str, text: str) -> Tree[Token]:
    """The syntax tree of a text in the language of a package.

    Raises:
        ReadingStoppedError: The text is outside the language.
    """
    from lark import UnexpectedCharacters, UnexpectedToken  # noqa: PLC0415 - lark takes longer to import than we do

    try:
        return load_parser(package).parse(text)
    except UnexpectedToken as error:
        token = cast("Token", error.token)
        offset = len(text) if token.type == "$END" else token.start_pos or 0
        raise ReadingStoppedError(offset, frozenset(error.expected)) from None
    except UnexpectedCharacters as error:
        raise ReadingStoppedError(cast("int", error.pos_in_stream), frozenset(error.allowed or ())) from None


@cache
def load_parser(package: str) -> TreeParser:
    """The parser of a package's language, from its tables.

    Tables of another lark version are passed over and the grammar is built instead, which is slower
    and always right.
    """
    import lark  # noqa: PLC0415 - as above

    tables = json.loads(_read(package, "tables.json"), object_pairs_hook=_with_integer_keys)
    if tables["lark"] != lark.__version__:
        return cast("TreeParser", _build(package))
    # Lark's own generated parsers load themselves by this method; the public way is a pickle.
    load = cast("Any", lark.Lark)._load_from_dict  # noqa: SLF001 - see above
    return cast("TreeParser", load(data=tables["data"], memo=tables["memo"]))


def build_tables(package: str) -> str:
    """The tables of a language's grammar, as JSON text."""
    import lark  # noqa: PLC0415 - as above
    from lark.grammar import Rule  # noqa: PLC0415 - as above
    from lark.lexer import TerminalDef  # noqa: PLC0415 - as above

    data, memo = _build(package).memo_serialize([TerminalDef, Rule])
    tables = {"lark": lark.__version__, "data": data, "memo": memo}
    return json.dumps(tables, sort_keys=True, separators=(",", ":"), default=sorted) + "\n"


def write_tables() -> None:
    """Write the tables of both languages next to their grammars."""
    for package in PACKAGES:
        with resources.as_file(resources.files(package) / "tables.json") as path:
            path.write_text(build_tables(package), encoding="utf-8")


def _build(package: str) -> Any:
    from lark import Lark  # noqa: PLC0415 - as above

    return Lark(_read(package, "grammar.lark"), parser="lalr")


def _read(package: str, name: str) -> str:
    return (resources.files(package) / name).read_text(encoding="utf-8")


def _with_integer_keys(pairs: list[tuple[str, Any]]) -> dict[Any, Any]:
    """A JSON object with the integer keys that JSON had to spell as text."""
    return {int(key) if key.isdigit() else key: value for key, value in pairs}


if __name__ == "__main__":
    write_tables()
