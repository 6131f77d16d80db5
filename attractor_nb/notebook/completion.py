"""Completions at the cursor of an ``%%attractor`` cell (pure).

The text before the cursor is incomplete by nature, so it is not parsed: a scanner finds out whether the
cursor stands on the magic line, between statements, at an attribute's name or in its value. What fits in a
value is in ``fitting_values``, what else the cell mentions in ``cell_outline``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from attractor_nb.model.vocabulary.attribute_table import Scope
from attractor_nb.model.vocabulary.attributes import attributes_of
from attractor_nb.notebook.cell_outline import KEYWORDS, TOKEN, node_ids, outline_of
from attractor_nb.notebook.fitting_values import NOTHING, FittingValue, Suggestions, Value, fitting, fitting_value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MAGIC: Final = "%%attractor"
BACKENDS: Final = ("simulated", "local", "llm", "claude", "codex", "gemini")
OPTIONS: Final = {
    "--run": "run it",
    "--quiet": "show only errors",
    "--param": "a value in the run's context",
    "--write": "also write the text to a file",
    "--backend": "what answers prompts",
    "--auto-approve": "answer gates with their first choice",
    "--live": "the live view: auto, on or off",
}
_GRAPH: Final = re.compile(r"\bdigraph\s+([A-Za-z_]\w*)")
_VALUES_OF_OPTION: Final = {"--backend": BACKENDS, "--live": ("auto", "on", "off")}


def _no_models(provider: str) -> Sequence[str]:  # noqa: ARG001 - the shape of a list of models
    return ()


def _no_schema(pipeline: str, name: str) -> str:  # noqa: ARG001 - the shape of registered models
    return ""


def suggest(
    cell: str,
    cursor: int,
    listed_models: Callable[[str], Sequence[str]] = _no_models,
    registered: Callable[[str, str], str] = _no_schema,
) -> Suggestions:
    """The words that fit at an offset of a cell; nothing for a cell of another kind.

    Args:
        cell: The cell, with the line of the magic.
        cursor: The offset.
        listed_models: Gives the models of a provider that a price list names; of all for an empty name.
        registered: Gives the JSON Schema of the model that a cell's pipeline, by its name, knows by a name.
    """
    first, line_end, _ = cell.partition("\n")
    if not first.startswith(MAGIC):
        return NOTHING
    if not line_end or cursor <= len(first):
        return _on_magic_line(cell[:cursor], cell[len(first) :])
    body, at = cell[len(first) + 1 :], cursor - len(first) - 1
    return _in_body(body[:at], body[at:], listed_models, partial(registered, _pipeline_name(first, body)))


def _pipeline_name(line: str, body: str) -> str:
    """The variable that the pipeline of a cell has: the word behind the magic, else the graph's name."""
    given = re.match(rf"{MAGIC}[ \t]+([A-Za-z_]\w*)", line) or _GRAPH.search(body)
    return given[1] if given else ""


def _on_magic_line(text: str, body: str) -> Suggestions:
    words = re.split(r"\s+", text)
    if len(words) < 2:  # the magic's own name is still being typed
        return NOTHING
    fragment, before = words[-1], words[-2]
    if before in _VALUES_OF_OPTION:
        return fitting(fragment, (FittingValue(word, "param") for word in _VALUES_OF_OPTION[before]))
    if before == "--param":
        inputs = outline_of("", body).inputs
        return fitting(fragment, (FittingValue(f"{name}=", "param", "input") for name in inputs))
    if fragment.startswith("-"):
        return fitting(fragment, (FittingValue(word, "param", meaning) for word, meaning in OPTIONS.items()))
    return NOTHING


@dataclass(slots=True)
class _Place:
    """The position of the cursor, after scanning the text before it."""

    fragment: str = ""
    is_in_string: bool = False
    is_in_list: bool = False
    is_value: bool = False
    name: str = ""
    statement: str = ""
    has_arrow: bool = False
    provider: str = ""

    @property
    def scope(self) -> Scope:
        if self.has_arrow or self.statement == "edge":
            return Scope.EDGE
        return Scope.GRAPH if self.statement == "graph" or not self.is_in_list else Scope.NODE


def _in_body(
    before: str, after: str, listed_models: Callable[[str], Sequence[str]], registered: Callable[[str], str]
) -> Suggestions:
    place = _scan(before)
    if place.is_value:
        outline = outline_of(before, after, registered)
        node_id = place.statement if place.scope is Scope.NODE else ""
        return fitting_value(
            Value(place.scope, place.name, place.fragment, after, place.provider, outline, listed_models, node_id)
        )
    if place.is_in_string:
        return NOTHING
    if place.is_in_list:
        rows = attributes_of(place.scope)
        return fitting(
            place.fragment, (FittingValue(row.name, "property", row.meaning) for row in rows if not row.alias_of)
        )
    words = [FittingValue(name, "variable", "node") for name in node_ids(before + after, place.fragment)]
    return fitting(place.fragment, (*words, *(FittingValue(word, "keyword") for word in KEYWORDS)))


def _scan(before: str) -> _Place:
    place = _Place()
    for token in TOKEN.finditer(before):
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
                    if place.name == "llm_provider":
                        place.provider = text.strip('"')
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
