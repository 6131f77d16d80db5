"""Completions at the cursor of a pipeline's text (pure).

The text before the cursor is incomplete by nature, so it is not parsed: a scanner finds out whether the
cursor is between statements, at an attribute's name or in its value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from attractor_nb.languages.stylesheet import PROPERTIES
from attractor_nb.model.calls.providers import PROVIDERS
from attractor_nb.model.outcome import StageStatus
from attractor_nb.model.vocabulary.attribute_table import AGENT_TOOLS, FALLBACK_REASONS, AttributeSpec, AttrType, Scope
from attractor_nb.model.vocabulary.attributes import attribute, attributes_of
from attractor_nb.model.vocabulary.shapes import MANAGER_CONDITIONS, PIPELINE_TYPE, SHAPE_TO_TYPE
from attractor_nb.model.vocabulary.value_forms import CONTEXT_PREFIX, comma_list
from attractor_nb.model.vocabulary.variables import FILTERS, NAMING_ATTRIBUTES
from attractor_nb.studio.edit.text_outline import KEYWORDS, TOKEN, TextOutline, no_schema, node_ids, outline_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


def no_models(provider: str) -> Sequence[str]:  # noqa: ARG001 - the shape of a list of models
    """No price list is known."""
    return ()


def no_registered(pipeline: str, name: str) -> str:  # noqa: ARG001 - the shape of registered models
    """No pipeline has registered anything."""
    return ""


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


def suggest_in(
    text: str,
    cursor: int,
    listed_models: Callable[[str], Sequence[str]] = no_models,
    registered: Callable[[str], str] = no_schema,
) -> Suggestions:
    """The words that fit at an offset of a text.

    >>> text = "digraph { plan [sh"
    >>> [word.text for word in suggest_in(text, len(text)).items]
    ['shape']

    Args:
        text: The text, finished or not.
        cursor: The offset.
        listed_models: Gives the models of a provider that a price list names; of all for an empty name.
        registered: Gives the JSON Schema of the model that is registered under a name.
    """
    before, after = text[:cursor], text[cursor:]
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
                # A newline ends a statement outside a list, but a value may be on the next line.
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


# Completions of an attribute's value, up to the word that is being written (pure).

ACTIONS: Final = ("observe", "steer", "wait")
CONDITIONS: Final = frozenset({"condition", *MANAGER_CONDITIONS})
_VARIABLE: Final = re.compile(r"\$(\{?)([A-Za-z_][\w.]*)?\Z")
_FILTER: Final = re.compile(r"\$\{[\w.]+(:[ \t]*\w*)\Z")
_LAST_ENTRY: Final = re.compile(r"[^,\s]*\Z")
_CLAUSE: Final = re.compile(r"(?P<key>[\w.\-]*)\s*(?:(?P<sign>!?=)\s*(?P<value>[^&]*))?\Z")
_PLAIN: Final = re.compile(r"[A-Za-z_]\w*\Z")
_SELECTOR: Final = re.compile(r"[#.]?[\w-]*\Z")
_ASSIGNED: Final = re.compile(r"=\s*([\w.]*)\Z")


@dataclass(frozen=True, slots=True)
class FittingValue:
    """A word that fits. ``kind`` is for the icon in the editor's list, ``meaning`` for its hint."""

    text: str
    kind: str
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Suggestions:
    """The words that fit, and the text before the cursor that they replace."""

    fragment: str
    items: tuple[FittingValue, ...]


NOTHING: Final = Suggestions("", ())


@dataclass(frozen=True, slots=True)
class Value:
    """A value that is being written."""

    scope: Scope  #: Scope of the attribute.
    name: str  #: The attribute.
    written: str  #: The value up to the cursor.
    after: str  #: Text after the cursor.
    provider: str  #: The ``llm_provider`` that is beside it; empty without one.
    outline: TextOutline  #: Other names in the text.
    listed_models: Callable[[str], Sequence[str]]  #: The models of a provider, or of all, that a price list names.
    node_id: str = ""  #: The node that it is of; empty where it is of none.


def fitting(fragment: str, words: Iterable[FittingValue]) -> Suggestions:
    """Those of the words that begin with what is written."""
    return Suggestions(fragment, tuple(word for word in words if word.text.startswith(fragment)))


def fitting_value(value: Value) -> Suggestions:
    """The completions for a value that is being written."""
    if value.name in NAMING_ATTRIBUTES and "$" in value.written:
        return _variables(value)
    if value.name in CONDITIONS:
        return _in_condition(value)
    if value.name == "model_stylesheet":
        return _in_stylesheet(value)
    if (entries := _ENTRIES.get(value.name)) is not None:
        return fitting(_last(_LAST_ENTRY, value.written), entries(value))
    if value.name in {"pipeline.inputs", "pipeline.outputs"}:
        found = _ASSIGNED.search(value.written)
        names = value.outline.keys if value.name == "pipeline.inputs" else {}
        return fitting(found[1], _keys(names)) if found else NOTHING
    words: Iterable[FittingValue] = ()
    if value.name == "llm_model":
        words = _models(value)
    elif value.name == "llm_provider":
        words = _words("value", (entry.name for entry in PROVIDERS))
    elif (spec := attribute(value.scope, value.name)) is not None:
        words = _of_spec(spec, value.outline)
    return fitting(value.written, words)


def _of_spec(spec: AttributeSpec, outline: TextOutline) -> Iterable[FittingValue]:
    if spec.name == "shape":
        return [FittingValue(shape, "value", kind) for shape, kind in SHAPE_TO_TYPE.items()]
    if spec.name == "type":
        types = [FittingValue(kind, "value", f"as shape={shape}") for shape, kind in SHAPE_TO_TYPE.items()]
        return [*types, FittingValue(PIPELINE_TYPE, "value", "runs another pipeline")]
    if spec.name == "human.default_choice":
        return _words("value", [*outline.labels, *outline.nodes])
    match spec.type:
        case AttrType.BOOLEAN:
            return _words("value", ("true", "false"))
        case AttrType.CHOICE:
            return _words("value", spec.choices)
        case AttrType.NODE_ID:
            return [FittingValue(name, "variable", "node") for name in outline.nodes]
        case _:
            return ()


def _words(kind: str, words: Iterable[str]) -> list[FittingValue]:
    return [FittingValue(word, kind) for word in dict.fromkeys(words)]


def _keys(keys: dict[str, str]) -> list[FittingValue]:
    return [FittingValue(f"{CONTEXT_PREFIX}{key}", "variable", origin) for key, origin in keys.items()]


def _last(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[0] if found else ""


def _variables(value: Value) -> Suggestions:
    """After ``$`` or ``${`` the names, and after ``${name:`` the filters."""
    closing = "" if value.after.startswith("}") else "}"
    if found := _FILTER.search(value.written):
        return fitting(found[1], _words("keyword", (f":{name} 4000{closing}" for name in FILTERS)))
    found = _VARIABLE.search(value.written)
    if found is None:
        return NOTHING
    braces = found[1]
    items = [
        FittingValue(f"${name}" if not braces and _PLAIN.match(name) else f"${{{name}{closing}", "variable", origin)
        for name, origin in value.outline.variables_in(value.node_id).items()
        if name.startswith(found[2] or "")
    ]
    return Suggestions(found[0], tuple(items))


def _in_condition(value: Value) -> Suggestions:
    """A key, or behind its sign what it can be."""
    clause = _CLAUSE.search(value.written.rpartition("&&")[2].lstrip())
    if clause is None:
        return NOTHING
    key = clause["key"]
    if clause["sign"] is None:
        own = [
            FittingValue("outcome", "variable", "how the stage ended"),
            FittingValue("preferred_label", "variable", "the label that the stage prefers"),
        ]
        names = {each.text for each in own}
        keys = {key: origin for key, origin in value.outline.keys.items() if key not in names}
        bare = [] if CONTEXT_PREFIX.startswith(key) or key.startswith(CONTEXT_PREFIX) else _bare(keys)
        return fitting(key, [*own, *_keys(keys), *bare])
    written = clause["value"]
    if key == "outcome":
        return fitting(written, _words("value", StageStatus))
    if key == "preferred_label":
        labels = (each if _PLAIN.match(each) else f'\\"{each}\\"' for each in value.outline.labels)
        return fitting(written, _words("value", labels))
    return NOTHING


def _bare(keys: dict[str, str]) -> list[FittingValue]:
    return [FittingValue(key, "variable", origin) for key, origin in keys.items()]


def _in_stylesheet(value: Value) -> Suggestions:
    """A selector; within a rule a property, and behind its colon what it can be."""
    _, brace, rule = value.written.rpartition("{")
    if not brace or "}" in rule:
        fragment = _last(_SELECTOR, rule.rpartition("}")[2])
        classes = _classes(value.outline)
        return fitting(
            fragment,
            [
                FittingValue("*", "keyword", "every node"),
                *(FittingValue(shape, "keyword", "nodes of a shape") for shape in SHAPE_TO_TYPE),
                *(FittingValue(f".{name}", "keyword", "nodes of a class") for name in classes),
                *(FittingValue(f"#{name}", "variable", "node") for name in value.outline.nodes),
            ],
        )
    name, colon, written = rule.rpartition(";")[2].partition(":")
    if not colon:
        return fitting(name.lstrip(), _words("property", PROPERTIES))
    provider = re.search(r"llm_provider\s*:\s*([\w-]+)", rule)
    inner = Value(
        Scope.NODE,
        name.strip(),
        written.lstrip().removeprefix('\\"'),
        value.after,
        provider[1] if provider else "",
        value.outline,
        value.listed_models,
    )
    return fitting_value(inner)


def _classes(outline: TextOutline) -> list[str]:
    lists = (comma_list(attrs.get("class", "")) for attrs in outline.nodes.values())
    return list(dict.fromkeys(name for names in lists for name in names))


def _models(value: Value) -> list[FittingValue]:
    """The models that the text names already, then those of the provider, or of all that a name tells."""
    here = [FittingValue(name, "value", "in this text") for name in value.outline.values_of("llm_model")]
    known = {each.text for each in here}
    listed = [name for name in value.listed_models(value.provider) if name not in known]
    return [*here, *_words("value", listed)]


def _tools(value: Value) -> list[FittingValue]:
    served = (f"mcp:{name}/*" for name in value.outline.servers)
    return _words("value", [*AGENT_TOOLS, *served])


_ENTRIES: Final[dict[str, Callable[[Value], list[FittingValue]]]] = {
    "allowed_tools": _tools,
    "llm_fallback": _models,
    "llm_fallback_on": lambda _: _words("value", FALLBACK_REASONS),
    "manager.actions": lambda _: _words("value", ACTIONS),
    "carry": lambda value: _bare(value.outline.keys),
    "cache.context": lambda value: _bare(value.outline.keys),
    "human.review": lambda value: _words("value", (f"{name}/response.md" for name in value.outline.nodes)),
    "class": lambda value: _words("value", _classes(value.outline)),
}
"""Words for comma-separated lists."""
