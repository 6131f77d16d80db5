"""The meaning of the word at a place of a text, and the node that it names (pure).

An attribute, a shape, a variable, a key of a condition, a selector of the stylesheet, a node: the same sentences that
``navigation.js`` of the extension of JupyterLab makes from the same tables, which the build of the wheel writes there.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from attractor_nb.model.inputs import ENGINE_KEYS, STAGE_KEYS, Input
from attractor_nb.model.vocabulary.attribute_table import TABLE, AttributeSpec, Scope
from attractor_nb.model.vocabulary.attributes import literal_text
from attractor_nb.model.vocabulary.shapes import SHAPE_TO_TYPE
from attractor_nb.model.vocabulary.value_forms import CONTEXT_PREFIX, Duration
from attractor_nb.model.vocabulary.variables import GOAL, NAMING_ATTRIBUTES, NODE_KEYS
from attractor_nb.redaction import redacted
from attractor_nb.studio.edit.completion import CONDITIONS
from attractor_nb.studio.edit.text_outline import TOKEN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from attractor_nb.model.graph import Edge, Graph, Node

SCOPES: Final = {Scope.GRAPH: "the graph", Scope.NODE: "a node", Scope.EDGE: "an edge", Scope.SUBGRAPH: "a subgraph"}
TYPES: Final = {
    "start": "the start of a run",
    "exit": "the end of a run, where its goal gates are checked",
    "codergen": "a prompt to a model",
    "wait.human": "a question to a person",
    "conditional": "a branch point: runs nothing; its edges test the outcome of the previous stage",
    "tool": "a command",
    "parallel": "several branches at once: each edge starts one",
    "parallel.fan_in": "the join of branches; chooses the best of them",
    "stack.manager_loop": "supervises a run of another pipeline, and steers it",
}
CONTEXT_KEYS: Final = {GOAL: "the goal of the graph", **ENGINE_KEYS, **STAGE_KEYS}
MOST_NAMED: Final = 8
"""Most edges of a node, or nodes of a selector, that are named."""
_STYLESHEET: Final = "model_stylesheet"
_WORD: Final = re.compile(r"[A-Za-z_][\w.]*", re.ASCII)
_VARIABLE: Final = re.compile(r"\$(?:\{([^${}\n]+)\}|([A-Za-z_]\w*))", re.ASCII)
_OF_STAGE: Final = re.compile(rf"(\w+)\.({'|'.join(NODE_KEYS)})\Z", re.ASCII)
_ASSIGNED: Final = re.compile(r"[ \t]*=")
_SET: Final = re.compile(r"[ \t]*[=:]")
_OPENED: Final = re.compile(r"[ \t]*\{")


def default_of(spec: AttributeSpec) -> str:
    """The default of an attribute as it is written in DOT, or nothing."""
    if spec.default is None or spec.default == "":
        return ""
    return str(spec.default) if isinstance(spec.default, Duration) else literal_text(spec.default)


def meaning_of(spec: AttributeSpec) -> str:
    """The meaning of an attribute, with the name that it is another name of."""
    return f"{spec.meaning} Another name of `{spec.alias_of}`." if spec.alias_of else spec.meaning


@dataclass(frozen=True, slots=True)
class Meaning:
    """The meaning of a piece of a text."""

    start: int  #: Offset at which the piece begins.
    end: int  #: Offset at which it ends.
    lines: tuple[str, ...]  #: Plain text, without secrets.


@dataclass(frozen=True, slots=True)
class NamedNode:
    """A node where a text names it."""

    node_id: str
    start: int  #: Offset at which its id begins.
    end: int  #: Offset at which it ends.


@dataclass(frozen=True, slots=True)
class _Word:
    """A word, or a variable, and its surroundings."""

    name: str  #: The word; of a variable its name.
    start: int
    end: int
    attribute: str | None  #: The attribute in whose string it is; None outside of strings.
    before: str  #: The line before it.
    after: str  #: The line behind it.

    @property
    def is_key(self) -> bool:
        """True for a key of the context: a variable, or in a condition what is not compared with."""
        if self.attribute in NAMING_ATTRIBUTES:
            return True
        compared = self.before.rstrip().endswith("=") or self.before.endswith("'")
        return self.attribute in CONDITIONS and not compared

    @property
    def is_selector(self) -> bool:
        """True for the selector of a rule of the stylesheet."""
        return self.attribute == _STYLESHEET and bool(_OPENED.match(self.after))


def meaning_at(text: str, offset: int, graph: Graph | None = None, inputs: Sequence[Input] = ()) -> Meaning | None:
    """The meaning of the word at an offset; None where it has none.

    >>> meaning_at("digraph { start [shape=Mdiamond] }", 25).lines
    ('Mdiamond', 'start: the start of a run')

    Args:
        text: The text, finished or not.
        offset: The offset.
        graph: The graph of the text; None where it does not parse, and nodes are not known.
        inputs: The inputs that it declares.
    """
    word = _word_at(text, offset)
    if word is None:
        return None
    lines = _lines_of(word, graph, inputs)
    return Meaning(word.start, word.end, tuple(redacted(line) for line in lines)) if lines else None


def node_at(text: str, offset: int, graph: Graph) -> NamedNode | None:
    """The node that is named at an offset: by its id, or by a key of the context that its stage sets."""
    word = _word_at(text, offset)
    if word is None:
        return None
    if word.is_key:
        key = word.name.removeprefix(CONTEXT_PREFIX)
        found = _OF_STAGE.match(key)
        if found is None or found[1] not in graph.nodes:
            return None
        start = text.index(key, word.start)
        return NamedNode(found[1], start, start + len(found[1]))
    if word.name not in graph.nodes or (word.attribute == _STYLESHEET and not word.before.endswith("#")):
        return None
    return NamedNode(word.name, word.start, word.end)


def _word_at(text: str, offset: int) -> _Word | None:
    """The word at an offset. The words of a text with variables are prose, and only its variables count."""
    attribute = _attribute_at(text, offset)
    line_start = text.rfind("\n", 0, offset) + 1
    line_end = text.find("\n", offset)
    line = text[line_start : len(text) if line_end < 0 else line_end]
    is_prose = attribute in NAMING_ATTRIBUTES
    for found in (_VARIABLE if is_prose else _WORD).finditer(line):
        start, end = found.start() + line_start, found.end() + line_start
        if start <= offset <= end:
            name = (found[1] or found[2]).partition(":")[0].strip() if is_prose else found[0]
            return _Word(name, start, end, attribute, line[: found.start()], line[found.end() :])
    return None


def _attribute_at(text: str, offset: int) -> str | None:
    """The attribute in whose string an offset is; None outside of strings."""
    name, is_value = "", False
    for token in TOKEN.finditer(text):
        if token.start() >= offset:
            return None
        match token.lastgroup:
            case "string":
                if offset < token.end() or not token["closed"]:
                    return name if is_value else ""
                name, is_value = token.group()[1:-1], False  # a name may be quoted
            case "word":
                name, is_value = token.group(), False
            case "mark":
                is_value = token.group() == "="
            case _:
                pass
    return None


def _lines_of(word: _Word, graph: Graph | None, inputs: Sequence[Input]) -> list[str]:
    if word.is_key:
        return _lines_of_key(word.name.removeprefix(CONTEXT_PREFIX), graph, inputs)
    if found := _lines_of_vocabulary(word):
        return found
    if word.attribute in CONDITIONS:
        return []
    if word.attribute == _STYLESHEET:
        return _lines_of_selector(word, graph) if graph and word.is_selector else []
    return _lines_of_node(graph.nodes[word.name], graph) if graph and word.name in graph.nodes else []


def _lines_of_vocabulary(word: _Word) -> list[str]:
    """The rows of the table of attributes, or a shape."""
    is_property = word.attribute == _STYLESHEET and _SET.match(word.after)
    if is_property or (word.attribute is None and _ASSIGNED.match(word.after)):
        names = (word.name, f"llm_{word.name}", f"llm.{word.name}") if is_property else (word.name,)
        for name in names:  # a stylesheet leaves the beginning out
            if rows := [row for row in TABLE if row.name == name]:
                return [line for row in rows for line in _lines_of_row(word.name, row)]
    named = word.before.rstrip()
    is_shape = word.attribute == "shape" or (word.attribute is None and named.endswith("="))
    if is_shape and word.name in SHAPE_TO_TYPE and (word.attribute or named[:-1].rstrip().endswith("shape")):
        kind = SHAPE_TO_TYPE[word.name]
        return [word.name, f"{kind}: {TYPES[kind]}"]
    return []


def _lines_of_row(name: str, row: AttributeSpec) -> list[str]:
    default = default_of(row)
    facts = [f"of {SCOPES[row.scope]}", ", ".join(row.choices) or row.type.value, default and f"default {default}"]
    return [f"{name} ({' · '.join(filter(None, facts))})", meaning_of(row).replace("`", "")]


def _lines_of_key(name: str, graph: Graph | None, inputs: Sequence[Input]) -> list[str]:
    """The origin of a key of the context: an input, what a stage leaves, what the engine sets."""
    declared = next((each for each in inputs if each.name == name), None)
    of_stage = _OF_STAGE.match(name)
    if name == GOAL and graph and graph.goal:
        return [f"{name} (variable)", f"the goal of the graph: {graph.goal}"]
    if declared is not None:
        needed = "required" if declared.is_required else f"default {_shown(declared.default)}"
        facts = " · ".join(filter(None, ("input", declared.type, needed)))
        return [f"{name} ({facts})", *filter(None, [declared.description])]
    if graph and of_stage and of_stage[1] in graph.nodes:
        what = (
            f"the complete response of the stage {of_stage[1]}"
            if of_stage[2] == "response"
            else f"the id of the run that the stage {of_stage[1]} began"
        )
        return [f"{name} (variable)", what, *_lines_of_node(graph.nodes[of_stage[1]], graph)]
    unknown = "a value of the context: a parameter of the run, or set by a stage"
    return [f"{name} (variable)", CONTEXT_KEYS.get(name, unknown)]


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _lines_of_selector(word: _Word, graph: Graph) -> list[str]:
    """The nodes that a rule of the stylesheet selects."""
    sign = word.before[-1:] if word.before[-1:] in {"#", "."} else ""
    is_selected: dict[str, Callable[[Node], bool]] = {
        "#": lambda node: node.id == word.name,
        ".": lambda node: word.name in node.classes,
        "": lambda node: node.shape == word.name,
    }
    selected = [node for node in graph.nodes.values() if is_selected[sign](node)]
    told = f"selects {_listed(node.id for node in selected)}" if selected else "selects no node"
    of_node = _lines_of_node(selected[0], graph) if sign == "#" and selected else []
    return [f"{sign}{word.name} (rule of the stylesheet)", told, *of_node]


def _lines_of_node(node: Node, graph: Graph) -> list[str]:
    def told(title: str, edges: Sequence[Edge], other: Callable[[Edge], str]) -> list[str]:
        ends = [" ".join(filter(None, (other(edge), edge.label or edge.condition))) for edge in edges]
        return [f"{title} {_listed(ends)}"] if ends else []

    name = node.id if node.label == node.id else f"{node.id}: {node.label}"
    return [
        f"{name} ({graph.handler_types[node.id]})",
        *told("from", graph.incoming_edges(node.id), lambda edge: edge.source),
        *told("to", graph.outgoing_edges(node.id), lambda edge: edge.target),
    ]


def _listed(texts: Iterable[str]) -> str:
    """The first of some texts, and how many more there are."""
    every = list(texts)
    more = len(every) - MOST_NAMED
    return ", ".join([*every[:MOST_NAMED], *([f"and {more} more"] if more > 0 else [])])
