"""JSON as a tree of ``prose.py`` in which objects and arrays open and close.

It is what the text says: doubled keys, the order of keys and the digits of numbers stay as they were written.
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

MAX_ROWS: Final = 1_500
"""Lines of all objects and arrays; what comes behind is counted."""
MAX_DEPTH: Final = 24
OPEN_ROWS: Final = 10
"""An object or array with more lines than that is folded at first; the outermost is open."""
ProseNode = str | list[Any]
"""A text, or ``[tag.class, attributes if any, *nodes]``; see ``prose.py``."""


_Entry = tuple[list[ProseNode], Any]
"""What stands before a value, and the value."""


class _Number(NamedTuple):
    digits: str


class _Object(NamedTuple):
    entries: list[tuple[str, Any]]


def json_node(text: str) -> ProseNode | None:
    """The tree of a text that is a JSON object or array and nothing else; None for any other.

    >>> json_node('{"n": 1.50}')[1][3]
    ['div.row', ['.key', '"n"'], ': ', ['.number', '1.50']]
    """
    if text.lstrip()[:1] not in {"{", "["}:
        return None
    try:
        value = json.loads(
            text,
            object_pairs_hook=_Object,
            parse_int=_Number,
            parse_float=_Number,
            parse_constant=_Number,
        )
    except (ValueError, RecursionError):
        return None
    writer = _Writer()
    return ["div.json", writer.value(value, [], 0)]


class _Writer:
    """Writes values as nodes, within its bounds."""

    def __init__(self) -> None:
        self._rows = 0

    def value(self, value: Any, before: list[ProseNode], depth: int) -> ProseNode:
        """A value behind its key: a line, or something to fold."""
        if isinstance(value, _Object) and value.entries:
            inside = [([[".key", _quoted(key)], ": "], entry) for key, entry in value.entries]
            return self._fold(before, "{}", inside, depth)
        if isinstance(value, list) and value:
            return self._fold(before, "[]", [([], entry) for entry in value], depth)  # pyright: ignore[reportUnknownVariableType] - of JSON
        return ["div.row", *before, _scalar(value)]

    def _fold(self, before: list[ProseNode], brackets: str, inside: list[_Entry], depth: int) -> ProseNode:
        one, many = ("key", "keys") if brackets == "{}" else ("entry", "entries")
        count = f" {len(inside):,} {one if len(inside) == 1 else many} "
        if depth == MAX_DEPTH:
            words = f"{count}in it, too deep to be shown "
            return ["div.row", *before, brackets[0], [".count", words], brackets[1]]
        began = self._rows
        nodes: list[ProseNode] = []
        for name, entry in inside:
            if self._rows >= MAX_ROWS:
                nodes.append(["div.row.note", f"… {len(inside) - len(nodes):,} more"])
                break
            self._rows += 1
            nodes.append(self.value(entry, name, depth + 1))
        is_open = depth == 0 or self._rows - began <= OPEN_ROWS
        head = ["summary", *before, brackets[0], [".count", count], [".shut", brackets[1]]]
        opened: list[ProseNode] = [{"open": ""}] if is_open else []  # pyright: ignore[reportAssignmentType] - attributes stand there
        return ["details.fold", *opened, head, *nodes, ["div.end", brackets[1]]]


def _scalar(value: Any) -> ProseNode:
    if isinstance(value, str):
        return [".string", _quoted(value)]
    if isinstance(value, _Number):
        return [".number", value.digits]
    if isinstance(value, _Object):
        return "{}"
    if isinstance(value, list):
        return "[]"
    return [".literal", {None: "null", True: "true", False: "false"}[value]]


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
