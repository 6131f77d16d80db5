"""What can stand at the cursor of an ``%%attractor`` cell (pure).

The text before the cursor is incomplete by nature, so it is not parsed: a scanner finds out whether the
cursor stands on the magic line, between statements, at an attribute's name or in its value, and the
tables of the model say which words fit there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from attractor_nb.model.attributes import AttributeSpec, AttrType, Scope, attribute, attributes_of
from attractor_nb.model.shapes import SHAPE_TO_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterable

MAGIC: Final = "%%attractor"
BACKENDS: Final = ("simulated", "local", "llm", "claude", "codex", "gemini")
KEYWORDS: Final = ("digraph", "graph", "node", "edge", "subgraph")

_OPTIONS: Final = ("--run", "--quiet", "--param", "--write", "--backend", "--auto-approve", "--live")
_VALUES_OF_OPTION: Final = {"--backend": BACKENDS, "--live": ("auto", "on", "off")}
_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|\#[^\n]*|/\*.*?(\*/|\Z))
      | (?P<string>"(\\.|[^"\\])*(?P<closed>"|\Z))
      | (?P<arrow>->)
      | (?P<word>[^\s"\[\]{}=,;]+?(?=->|[\s"\[\]{}=,;]|\Z))
      | (?P<mark>.)""",
    re.VERBOSE | re.DOTALL,
)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True, slots=True)
class Completion:
    """A word that fits. ``kind`` is for the icon in the editor's list, ``meaning`` for its hint."""

    text: str
    kind: str
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Suggestions:
    """The words that fit, and the text before the cursor that they replace."""

    fragment: str
    items: tuple[Completion, ...]


NOTHING: Final = Suggestions("", ())


def suggest(cell: str, cursor: int) -> Suggestions:
    """The words that fit at an offset of a cell; nothing for a cell of another kind."""
    first, line_end, _ = cell.partition("\n")
    if not first.startswith(MAGIC):
        return NOTHING
    if not line_end or cursor <= len(first):
        return _on_magic_line(cell[:cursor])
    body = cell[len(first) + 1 :]
    return _in_body(body[: cursor - len(first) - 1], body)


def _on_magic_line(text: str) -> Suggestions:
    words = re.split(r"\s+", text)
    if len(words) < 2:  # the magic's own name is still being typed
        return NOTHING
    fragment, before = words[-1], words[-2]
    if before in _VALUES_OF_OPTION:
        return _fitting(fragment, (Completion(word, "param") for word in _VALUES_OF_OPTION[before]))
    if fragment.startswith("-"):
        return _fitting(fragment, (Completion(word, "param") for word in _OPTIONS))
    return NOTHING


@dataclass(slots=True)
class _Place:
    """Where the cursor stands, after scanning the text before it."""

    fragment: str = ""
    is_in_string: bool = False
    is_in_list: bool = False
    is_value: bool = False
    name: str = ""
    statement: str = ""
    has_arrow: bool = False

    @property
    def scope(self) -> Scope:
        if self.has_arrow or self.statement == "edge":
            return Scope.EDGE
        return Scope.GRAPH if self.statement == "graph" or not self.is_in_list else Scope.NODE


def _in_body(before: str, body: str) -> Suggestions:
    place = _scan(before)
    if place.is_value:
        spec = attribute(place.scope, place.name)
        return _fitting(place.fragment, () if spec is None else _values(spec, body))
    if place.is_in_string:
        return NOTHING
    if place.is_in_list:
        rows = attributes_of(place.scope)
        return _fitting(
            place.fragment,
            (Completion(row.name, "property", row.meaning) for row in rows if not row.alias_of),
        )
    words = [Completion(name, "variable", "node") for name in node_ids(body, place.fragment)]
    return _fitting(place.fragment, (*words, *(Completion(word, "keyword") for word in KEYWORDS)))


def _scan(before: str) -> _Place:
    place = _Place()
    for token in _TOKEN.finditer(before):
        is_last = token.end() == len(before)
        text = token.group()
        match token.lastgroup:
            case "space":
                # A newline ends a statement outside a list, but a value may stand on the next line.
                if "\n" in text and not place.is_in_list and not place.is_value:
                    place = _Place()
            case "arrow":
                place.has_arrow = True
            case "mark":
                place = _after_mark(place, text)
            case _:
                is_open_string = text.startswith('"') and (len(text) == 1 or not token["closed"])
                if is_last and (is_open_string or not text.startswith('"')):
                    place.is_in_string = is_open_string
                    place.fragment = text.removeprefix('"')
                elif place.is_value:
                    place.is_value = False
                else:
                    place.name = text.strip('"')
                    place.statement = place.statement or ("" if place.is_in_list else place.name)
    return place


def _after_mark(place: _Place, mark: str) -> _Place:
    if mark == "[":
        place.is_in_list, place.is_value = True, False
    elif mark == "=":
        place.is_value = True
    elif mark in ",;" and place.is_in_list:
        place.is_value, place.name = False, ""
    else:  # a bracket, a brace or a semicolon ends the statement
        return _Place()
    return place


def _values(spec: AttributeSpec, body: str) -> list[Completion]:
    if spec.name == "shape":
        return [Completion(shape, "value", kind) for shape, kind in SHAPE_TO_TYPE.items()]
    if spec.name == "type":
        return [Completion(kind, "value", f"as shape={shape}") for shape, kind in SHAPE_TO_TYPE.items()]
    match spec.type:
        case AttrType.BOOLEAN:
            return [Completion("true", "value"), Completion("false", "value")]
        case AttrType.CHOICE:
            return [Completion(choice, "value") for choice in spec.choices]
        case AttrType.NODE_ID:
            return [Completion(name, "variable", "node") for name in node_ids(body, "")]
        case _:
            return []


def node_ids(body: str, unfinished: str) -> list[str]:
    """Identifiers that stand where a node's id may stand, in order of first mention.

    The word under the cursor is left out when it is only mentioned there.

    >>> node_ids("digraph g { plan [label=x] plan -> build }", "")
    ['plan', 'build']
    """
    found: list[str] = []
    depth = 0
    is_name_next = False
    for token in _TOKEN.finditer(body):
        text = token.group()
        if token.lastgroup == "mark":
            depth += {"[": 1, "]": -1}.get(text, 0)
            if text == "=" and depth == 0 and found:
                found.pop()  # a graph attribute, not a node
                is_name_next = True
        elif token.lastgroup == "word" and depth == 0:
            if is_name_next:
                is_name_next = False
            elif text in {"digraph", "subgraph"}:
                is_name_next = True
            elif _IDENTIFIER.match(text) and text not in KEYWORDS:
                found.append(text)
    counts = {name: found.count(name) for name in dict.fromkeys(found)}
    return [name for name, count in counts.items() if name != unfinished or count > 1]


def _fitting(fragment: str, words: Iterable[Completion]) -> Suggestions:
    return Suggestions(fragment, tuple(word for word in words if word.text.startswith(fragment)))
