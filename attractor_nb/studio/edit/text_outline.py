"""Nodes and attributes in the text of a pipeline, finished or not (pure).

A text that is being written does not parse, so it is scanned: for the nodes that it mentions, and for the
attributes that are sent with them and with the graph.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final

from attractor_nb.decisions.response_schemas import is_schema_name
from attractor_nb.decisions.schema_fields import field_keys
from attractor_nb.errors import InputsSyntaxError, MappingSyntaxError
from attractor_nb.languages.dot.writer import embed_value
from attractor_nb.model.inputs import ENGINE_KEYS, INPUTS, parse_inputs
from attractor_nb.model.vocabulary.shapes import (
    BUILT_IN_TYPES,
    CHILD_TYPES,
    DEFAULT_TYPE,
    FUNCTION_TYPE,
    HUMAN_TYPE,
    type_of_shape,
)
from attractor_nb.model.vocabulary.value_forms import FOR_EACH, ITEM, ITEM_KEYS, LIST_KEYS, list_key
from attractor_nb.model.vocabulary.variables import GOAL, parse_mapping
from attractor_nb.source import SourceText

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KEYWORDS: Final = ("digraph", "graph", "node", "edge", "subgraph")
TOKEN: Final = re.compile(
    r"""(?P<space>\s+|//[^\n]*|\#[^\n]*|/\*.*?(\*/|\Z))
      | (?P<string>"(\\.|[^"\\])*(?P<closed>"|\Z))
      | (?P<arrow>->)
      | (?P<word>[^\s"\[\]{}=,;]+?(?=->|[\s"\[\]{}=,;]|\Z))
      | (?P<mark>.)""",
    re.VERBOSE | re.DOTALL,
)
MOST_FIELDS: Final = 500
"""Most fields of one answer that are offered."""
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_QUOTE: Final = re.compile(r'\\.|"')
_SERVER: Final = re.compile(r"mcp\.(\w+)\.")
_NAMING: Final = frozenset({"digraph", "subgraph"})
_LEFT_BY_TYPE: Final = {
    "tool": ("tool.output", "tool.last_line", "tool.exit_code", "tool.stderr"),
    HUMAN_TYPE: ("human.gate.label", "human.gate.selected", "human.gate.text", "human.gate.form"),
    "parallel": ("parallel.results",),
}
"""Context keys that stages of a type leave."""


def no_schema(name: str) -> str:  # noqa: ARG001 - the shape of registered schemas
    """Nothing is registered."""
    return ""


@dataclass(slots=True)
class TextOutline:
    """The nodes, attributes and labels that a text mentions."""

    graph: dict[str, str] = field(default_factory=dict[str, str])  #: Attributes of the graph.
    #: Attributes of each node, in order of first mention.
    nodes: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    labels: list[str] = field(default_factory=list[str])  #: Labels of edges.
    #: Gives the JSON Schema of a registered model by its name; empty for any other text.
    registered: Callable[[str], str] = no_schema

    def schema_of(self, node_id: str) -> str:
        """The JSON Schema of the answers of a node: that which it holds, or that of the model which it names."""
        text = self.nodes.get(node_id, {}).get("response_schema", "").strip()
        return self.registered(text) or text if is_schema_name(text) else text

    def type_of(self, node_id: str) -> str:
        """The handler type of a node."""
        attrs = self.nodes.get(node_id, {})
        own = attrs.get("type") or (FUNCTION_TYPE if attrs.get("function") else "")
        return own or type_of_shape(attrs.get("shape", "box"))

    @property
    def inputs(self) -> list[str]:
        """The names of the declared inputs."""
        try:
            return [each.name for each in parse_inputs(self.graph.get(INPUTS, ""))]
        except InputsSyntaxError:
            return []

    @property
    def keys(self) -> dict[str, str]:
        """Context keys that inputs and stages give, each with who gives it."""
        found = dict.fromkeys(self.inputs, "input")
        for node_id, attrs in self.nodes.items():
            kind = self.type_of(node_id)
            for key in _LEFT_BY_TYPE.get(kind, ()):
                found.setdefault(key, f"left by {node_id}")
            if (kind == DEFAULT_TYPE or kind not in BUILT_IN_TYPES) and FOR_EACH not in attrs:
                found[f"{node_id}.response"] = f"left by {node_id}"
            found |= dict.fromkeys(self._answer_keys(node_id, attrs), f"left by {node_id}")
            if kind in CHILD_TYPES:
                found[f"{node_id}.run_id"] = f"left by {node_id}"
                found |= dict.fromkeys(_outputs(attrs), f"left by {node_id}")
        return found | ENGINE_KEYS

    def variables_in(self, node_id: str) -> dict[str, str]:
        """The variables that texts of a node may name, each with its source."""
        attrs = self.nodes.get(node_id, {})
        items = dict.fromkeys(self._item_keys(attrs), "of the list") if FOR_EACH in attrs else {}
        return {GOAL: "of the graph", **items, **self.keys}

    def _item_keys(self, attrs: dict[str, str]) -> Iterator[str]:
        yield from ITEM_KEYS
        for node_id in self.nodes:
            below, of_list = f"{node_id}.verdict.", list_key(attrs[FOR_EACH])
            if of_list.startswith(below):
                names = [*of_list.removeprefix(below).split("."), "0"]
                yield from islice(field_keys(self.schema_of(node_id), ITEM, names), MOST_FIELDS)

    def _answer_keys(self, node_id: str, attrs: dict[str, str]) -> list[str]:
        """The keys of a structured answer; those of the items of a list are in lists."""
        if FOR_EACH in attrs:
            return [f"{node_id}.{name}" for name in LIST_KEYS]
        key, schema = f"{node_id}.verdict", self.schema_of(node_id)
        return [key, *islice(field_keys(schema, key), MOST_FIELDS)] if schema else []

    @property
    def servers(self) -> list[str]:
        """The names of the MCP servers that the graph declares."""
        return list(dict.fromkeys(found[1] for name in self.graph if (found := _SERVER.match(name))))

    def values_of(self, name: str) -> list[str]:
        """The values that an attribute has anywhere in the text."""
        held = (self.graph, *self.nodes.values())
        return list(dict.fromkeys(attrs[name] for attrs in held if attrs.get(name)))


def _outputs(attrs: dict[str, str]) -> list[str]:
    try:
        return [each.name for each in parse_mapping(attrs.get("pipeline.outputs", ""))]
    except MappingSyntaxError:
        return []


def outline_of(before: str, after: str, registered: Callable[[str], str] = no_schema) -> TextOutline:
    """The outline of a text, without the word being written at the cursor.

    A string that is not closed yet would swallow what comes behind it: then the cursor's line is left out.
    """
    text = before + after
    if len([found for found in _QUOTE.findall(text) if found == '"']) % 2:
        text = before[: before.rfind("\n") + 1] + after[max(0, after.find("\n")) :]
    found = TextOutline(registered=registered)
    for statement in _statements(text):
        statement.tell(found)
    return found


@dataclass(slots=True)
class _Statement:
    ids: list[str] = field(default_factory=list[str])
    attrs: dict[str, str] = field(default_factory=dict[str, str])
    name: str = ""
    has_arrow: bool = False
    is_in_list: bool = False
    is_value: bool = False

    def take(self, text: str) -> None:
        """A word or a string of the statement."""
        if self.is_value:
            name = self.name if self.is_in_list else (self.ids.pop() if self.ids else "")
            self.attrs[name] = _value(text)
            self.is_value = False
            if not self.is_in_list:
                self.ids = ["graph"]
        elif self.is_in_list:
            self.name = _value(text)
        else:
            self.ids.append(text)

    def tell(self, outline: TextOutline) -> None:
        """Put what the statement says into the outline."""
        if self.ids[:1] == ["graph"]:
            outline.graph.update(self.attrs)
            return
        if self.ids and (self.ids[0] in KEYWORDS or self.ids[-2:-1] in (["digraph"], ["subgraph"])):
            return
        for node_id in self.ids:
            if _IDENTIFIER.match(node_id):
                held = outline.nodes.setdefault(node_id, {})
                if not self.has_arrow:
                    held.update(self.attrs)
        if self.has_arrow and self.attrs.get("label"):
            outline.labels.append(self.attrs["label"])


def _statements(text: str) -> Iterator[_Statement]:
    statement = _Statement()
    for token in TOKEN.finditer(text):
        part, kind = token.group(), token.lastgroup
        is_end = kind == "space" and "\n" in part and not (statement.is_in_list or statement.is_value)
        if kind == "arrow":
            statement.has_arrow = True
        elif kind in {"word", "string"}:
            statement.take(part)
        elif kind == "mark" and part == "[":
            statement.is_in_list = True
        elif kind == "mark" and part == "=":
            statement.is_value = True
        elif kind == "mark" and not (part in ",;" and statement.is_in_list):
            is_end = True
        if is_end:
            yield statement
            statement = _Statement()
    yield statement


def _value(text: str) -> str:
    """A word, or what a string holds."""
    if not text.startswith('"'):
        return text
    closed = text if len(text) > 1 and text.endswith('"') else f'{text}"'
    source = SourceText(closed)
    return embed_value(source.span(0, len(closed))).text


def node_ids(body: str, unfinished: str) -> list[str]:
    """Identifiers at the places of node ids, in order of first mention.

    The word under the cursor is left out when it is only mentioned there.

    >>> node_ids("digraph g { plan [label=x] plan -> build }", "")
    ['plan', 'build']
    """
    found: list[str] = []
    depth = 0
    is_name_next = False
    for token in TOKEN.finditer(body):
        text = token.group()
        if token.lastgroup == "mark":
            depth += {"[": 1, "]": -1}.get(text, 0)
            if text == "=" and depth == 0 and found:
                found.pop()  # a graph attribute, not a node
                is_name_next = True
        elif token.lastgroup == "word" and depth == 0:
            if is_name_next:
                is_name_next = False
            elif text in _NAMING:
                is_name_next = True
            elif _IDENTIFIER.match(text) and text not in KEYWORDS:
                found.append(text)
    counts = {name: found.count(name) for name in dict.fromkeys(found)}
    return [name for name, count in counts.items() if name != unfinished or count > 1]
