"""The pipeline as a value: graph, nodes, edges, subgraphs (spec 2).

A graph is what the DOT text means: chains expanded, defaults applied, subgraphs flattened, values
typed. It is immutable; a transform returns a changed copy. Where something is in the source is
kept beside it for messages, and takes no part in comparisons.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Final

import msgspec

from attractor_nb.model.vocabulary.attribute_table import AttrValue, Scope
from attractor_nb.model.vocabulary.attributes import NO_ATTRS, NO_SPANS, Attributed, AttrSpan
from attractor_nb.model.vocabulary.shapes import FUNCTION_TYPE, SHAPE_ALIASES, type_of_shape
from attractor_nb.model.vocabulary.value_forms import FOR_EACH, FOR_EACH_TYPE, Duration, comma_list, is_repeated
from attractor_nb.source import SourceText, Span


class _Placed(Attributed, msgspec.Struct, frozen=True, eq=False, gc=False):
    """An element of a source. Its position counts neither in comparisons nor in its ``repr``."""

    def _meaning(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__struct_fields__ if name not in {"span", "attr_spans"}}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self._meaning() == other._meaning()

    __hash__ = None  # type: ignore[assignment] - its attributes are a mapping

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._meaning().items())})"


class Node(_Placed, frozen=True):
    """A stage of the pipeline (spec 2.6).

    Attributes:
        id: The DOT identifier.
        attrs: Every attribute, typed where the table knows it: explicit ones and inherited defaults.
        explicit: Names written on the node itself, as against inherited from a default block. The
            stylesheet overrides the inherited ones (spec 8.5).
        derived_classes: Classes from the labels of enclosing subgraphs, outermost first (spec 2.10).
        is_implicit: It appears only in edges (ruling 4).
        span: Its declaration, or its first mention.
        attr_spans: Place of each attribute; a default's span is in its default block.
    """

    id: str
    attrs: Mapping[str, AttrValue] = msgspec.field(default_factory=lambda: NO_ATTRS)
    explicit: frozenset[str] = frozenset()
    derived_classes: tuple[str, ...] = ()
    is_implicit: bool = False
    span: Span | None = None
    attr_spans: Mapping[str, AttrSpan] = msgspec.field(default_factory=lambda: NO_SPANS)

    _scope: ClassVar[Scope] = Scope.NODE

    @property
    def label(self) -> str:
        """Display name; the id when there is none."""
        return self.get("label", str) or self.id

    @property
    def shape(self) -> str:
        """The shape as written; ``box`` by default."""
        return self.get("shape", str, "box") or "box"

    @property
    def type(self) -> str:
        """The explicit handler type, or empty."""
        return self.get("type", str, "")

    @property
    def handler_type(self) -> str:
        """The explicit type, else the function's or the shape's (spec 4.2); ``Graph.handler_types`` knows all ends."""
        return self.type or (FUNCTION_TYPE if self.get("function", str) else type_of_shape(self.shape))

    @property
    def prompt(self) -> str:
        """The instruction as written, possibly empty."""
        return self.get("prompt", str, "")

    @property
    def max_retries(self) -> int | None:
        """Additional attempts, or None when the node does not say."""
        return self.get("max_retries", int)

    @property
    def goal_gate(self) -> bool:
        """True if the run may end only after this node succeeded (spec 3.4)."""
        return self.get("goal_gate", bool, False)

    @property
    def retry_target(self) -> str:
        """The target after a failure, or empty."""
        return self.get("retry_target", str, "")

    @property
    def fallback_retry_target(self) -> str:
        """The target when ``retry_target`` is missing, or empty."""
        return self.get("fallback_retry_target", str, "")

    @property
    def fidelity(self) -> str:
        """The node's own fidelity mode, or empty."""
        return self.get("fidelity", str, "")

    @property
    def thread_id(self) -> str:
        """The node's own thread, or empty."""
        return self.get("thread_id", str, "")

    @property
    def timeout(self) -> Duration | None:
        """Time one attempt may take, or None."""
        return self.get("timeout", Duration)

    @property
    def llm_model(self) -> str:
        """Model name, or empty."""
        return self.get("llm_model", str, "")

    @property
    def llm_provider(self) -> str:
        """Provider name, or empty."""
        return self.get("llm_provider", str, "")

    @property
    def reasoning_effort(self) -> str:
        """``low``, ``medium`` or ``high``."""
        return self.get("reasoning_effort", str, "high")

    @property
    def auto_status(self) -> bool:
        """True if silence counts as success (appendix C)."""
        return self.get("auto_status", bool, False)

    @property
    def allow_partial(self) -> bool:
        """True if exhausted retries end in partial success (spec 3.5)."""
        return self.get("allow_partial", bool, False)

    @property
    def tool_command(self) -> str:
        """The command of a tool stage, or empty."""
        return self.get("tool_command", str, "")

    @property
    def classes(self) -> tuple[str, ...]:
        """Stylesheet classes: the node's own first, then those of its subgraphs (spec 2.10, 2.12)."""
        if "class" not in self.attrs and not self.derived_classes:
            return ()
        return tuple(dict.fromkeys((*comma_list(self.get("class", str, "")), *self.derived_classes)))

    def with_attrs(self, changes: Mapping[str, AttrValue], *, explicit: bool = False) -> Node:
        """A copy with attributes added or replaced; ``explicit`` counts them as the node's own."""
        names = self.explicit | changes.keys() if explicit else self.explicit
        return msgspec.structs.replace(
            self, attrs=MappingProxyType({**self.attrs, **changes}), explicit=frozenset(names)
        )


class Edge(_Placed, frozen=True):
    """A route from one node to another (spec 2.7).

    Attributes:
        source: Id of the node it leaves.
        target: Id of the node it enters.
        attrs: Every attribute, defaults included.
        span: The ``source -> target`` text, or for a chain the two ids concerned.
        attr_spans: Place of each attribute.
    """

    source: str
    target: str
    attrs: Mapping[str, AttrValue] = msgspec.field(default_factory=lambda: NO_ATTRS)
    span: Span | None = None
    attr_spans: Mapping[str, AttrSpan] = msgspec.field(default_factory=lambda: NO_SPANS)

    _scope: ClassVar[Scope] = Scope.EDGE

    @property
    def label(self) -> str:
        """Caption and routing key, or empty."""
        return self.get("label", str, "")

    @property
    def condition(self) -> str:
        """The guard as written, or empty."""
        return self.get("condition", str, "")

    @property
    def weight(self) -> int:
        """Priority among equals; higher wins."""
        return self.get("weight", int, 0)

    @property
    def fidelity(self) -> str:
        """Fidelity for the target, or empty."""
        return self.get("fidelity", str, "")

    @property
    def thread_id(self) -> str:
        """Thread for the target, or empty."""
        return self.get("thread_id", str, "")

    @property
    def loop_restart(self) -> bool:
        """True if taking it starts over in a fresh run directory."""
        return self.get("loop_restart", bool, False)

    @property
    def max_taken(self) -> int | None:
        """Number of times that a run may take it, or None for any number."""
        return self.get("max_taken", int)

    @property
    def is_default(self) -> bool:
        """True if it is taken when nothing else matches (ruling 12)."""
        return self.get("default", bool, False)


@dataclass(frozen=True, slots=True)
class Subgraph:
    """A group of nodes, kept for drawing, classes and threads after flattening (spec 2.10)."""

    id: str  #: Its DOT name, or empty.
    label: str  #: Its title, or empty.
    derived_class: str  #: The class its label derives, or empty.
    members: tuple[str, ...]  #: Ids of the nodes declared in it, nested groups included, in source order.
    parent: int | None = None  #: Position of the enclosing group in ``Graph.subgraphs``, or None.
    #: Its own attributes, without the node and edge defaults.
    attrs: Mapping[str, AttrValue] = field(default_factory=lambda: NO_ATTRS)
    span: Span | None = field(default=None, compare=False, repr=False)  #: Its header in the source.


@dataclass(frozen=True)
class Graph(Attributed):
    """A whole pipeline (spec 2.5).

    Attributes:
        name: The name after ``digraph``, or empty.
        attrs: Graph attributes.
        nodes: All nodes by id, in order of first mention. An edge may name a node that is not here:
            lint reports it.
        edges: All edges in source order, chains expanded.
        subgraphs: All groups, outer before inner.
        children: By node: the pipelines that its stages run (spec 4.11, 9.4), as they will run. What a graph
            says does not show them; the preparation of a run finds them.
        source: The text it came from, if any.
    """

    name: str
    attrs: Mapping[str, AttrValue] = field(default_factory=lambda: NO_ATTRS)
    nodes: Mapping[str, Node] = field(default_factory=dict[str, Node])
    edges: tuple[Edge, ...] = ()
    subgraphs: tuple[Subgraph, ...] = ()
    children: Mapping[str, Graph] = field(default_factory=lambda: _NO_CHILDREN)
    attr_spans: Mapping[str, AttrSpan] = field(default_factory=lambda: NO_SPANS, compare=False, repr=False)
    source: SourceText | None = field(default=None, compare=False, repr=False)

    _scope: ClassVar[Scope] = Scope.GRAPH

    @property
    def goal(self) -> str:
        """The goal of the pipeline, or empty."""
        return self.get("goal", str, "")

    @property
    def label(self) -> str:
        """Display name: the ``label``, else the graph's name."""
        return self.get("label", str, "") or self.name

    @property
    def model_stylesheet(self) -> str:
        """The stylesheet text, or empty."""
        return self.get("model_stylesheet", str, "")

    @cached_property
    def _out_edges(self) -> dict[str, tuple[Edge, ...]]:
        return _grouped((edge.source, edge) for edge in self.edges)

    @cached_property
    def _in_edges(self) -> dict[str, tuple[Edge, ...]]:
        return _grouped((edge.target, edge) for edge in self.edges)

    def outgoing_edges(self, node_id: str) -> tuple[Edge, ...]:
        """Edges that leave a node, in source order."""
        return self._out_edges.get(node_id, ())

    def incoming_edges(self, node_id: str) -> tuple[Edge, ...]:
        """Edges that enter a node, in source order."""
        return self._in_edges.get(node_id, ())

    @cached_property
    def start_nodes(self) -> tuple[Node, ...]:
        """Candidates for the start: by shape or type, else by alias, else by id (rulings 6a, 7)."""
        return self._ends("start", ("start", "Start"))

    @cached_property
    def exit_nodes(self) -> tuple[Node, ...]:
        """Candidates for the exit: by shape or type, else by alias, else by id (rulings 6a, 7)."""
        return self._ends("exit", ("exit", "end", "Exit", "End"))

    @cached_property
    def handler_types(self) -> Mapping[str, str]:
        """The handler type of each node: as ``item_types``, but ``for_each`` for one that runs for each list item."""
        types, nodes = self.item_types, self.nodes
        repeated = [name for name, node in nodes.items() if FOR_EACH in node.attrs]
        own = {name: FOR_EACH_TYPE for name in repeated if is_repeated(nodes[name].attrs, types[name])}
        return {**types, **own} if own else types

    @cached_property
    def item_types(self) -> Mapping[str, str]:
        """The handler type of each node: its type or shape's, or that of the end it is (rulings 6a, 7).

        Of a node that is run for each item of a list, the one that executes an item.
        """
        types = dict(self._own_types)
        for ends, handler_type in ((self.start_nodes, "start"), (self.exit_nodes, "exit")):
            types.update((node.id, handler_type) for node in ends if not node.type)
        return types

    @cached_property
    def _own_types(self) -> dict[str, str]:
        return {node.id: node.handler_type for node in self.nodes.values()}

    def _ends(self, handler_type: str, ids: tuple[str, ...]) -> tuple[Node, ...]:
        nodes = self.nodes
        if by_shape := tuple(nodes[name] for name, found in self._own_types.items() if found == handler_type):
            return by_shape
        aliases = {shape for shape, meant in SHAPE_ALIASES.items() if type_of_shape(meant) == handler_type}
        by_alias = tuple(node for node in nodes.values() if not node.type and node.shape in aliases)
        return by_alias or tuple(nodes[name] for name in ids if name in nodes)

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of what the graph means; comments and formatting do not count (ruling 29)."""
        return hashlib.sha256(_HASHED_FORM.encode(self.to_plain()).encode()).hexdigest()

    def to_plain(self) -> dict[str, Any]:
        """The graph as JSON values: name, attributes, nodes, edges, subgraphs; children where it has any."""
        nested = {node_id: child.to_plain() for node_id, child in self.children.items()}
        return {
            **({"children": nested} if nested else {}),
            "name": self.name,
            "attrs": plain_attrs(self.attrs),
            "nodes": [
                {"id": node.id, "attrs": plain_attrs(node.attrs), "classes": list(node.classes)}
                for node in self.nodes.values()
            ],
            "edges": [
                {"source": edge.source, "target": edge.target, "attrs": plain_attrs(edge.attrs)} for edge in self.edges
            ],
            "subgraphs": [
                {"id": group.id, "label": group.label, "members": list(group.members), "parent": group.parent}
                for group in self.subgraphs
            ],
        }

    def mirrored(self) -> dict[str, Any]:
        """The attributes as the keys of a run's context: ``graph.goal`` and so on (spec 3.1, 5.1)."""
        plain = {f"graph.{name}": value for name, value in plain_attrs(self.attrs).items()}
        return {**plain, "graph.goal": self.goal}

    def with_attrs(self, changes: Mapping[str, AttrValue]) -> Graph:
        """A copy with attributes added or replaced."""
        return replace(self, attrs=MappingProxyType({**self.attrs, **changes}))

    def with_nodes(self, changed: Iterable[Node]) -> Graph:
        """A copy in which the given nodes replace, or join, those of the same id."""
        nodes = dict(self.nodes)
        nodes.update((node.id, node) for node in changed)
        return replace(self, nodes=nodes)

    def with_edges(self, edges: Iterable[Edge]) -> Graph:
        """A copy with these edges in place of all others."""
        return replace(self, edges=tuple(edges))


_NO_CHILDREN: Mapping[str, Graph] = MappingProxyType({})
_HASHED_FORM = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False)
"""Stored hashes are of its text: no setting of it that changes a byte may change."""


def _grouped(pairs: Iterable[tuple[str, Edge]]) -> dict[str, tuple[Edge, ...]]:
    groups: dict[str, list[Edge]] = {}
    for key, edge in pairs:
        groups.setdefault(key, []).append(edge)
    return {key: tuple(edges) for key, edges in groups.items()}


def plain_attrs(attrs: Mapping[str, AttrValue]) -> dict[str, Any]:
    """Attributes as JSON values: a duration as its text."""
    if not attrs:
        return {}
    return {name: str(value) if isinstance(value, Duration) else value for name, value in attrs.items()}


# Texts that are in files: `prompt="@prompts/plan.md"`; `@@` begins a text with `@`.

TEXT_FILE: Final = "text_file"
"""The lint rule that says what is wrong with them."""
MARK: Final = "@"
FILE_ATTRIBUTES: Final = ("prompt", "llm.system_prompt", "human.prompt", "manager.instructions")
"""Node attributes whose text may be in a file: those that are nothing but a text to be read. A label is a
name that is drawn, too."""
GRAPH_FILE_ATTRIBUTES: Final = ("model_stylesheet",)
"""The same of the graph."""


class TextFileProblem(msgspec.Struct, frozen=True):
    """The reason why a text file that an attribute names cannot be used."""

    node_id: str  #: The node; empty where the graph names the file.
    attribute: str  #: The attribute that names the file.
    message: str  #: The problem.
    remedy: str  #: The remedy.
    near: str = ""  #: The reference that was meant, most likely; empty if none is near.

    @property
    def place(self) -> str:
        """The attribute that names the file, in words: ``prompt of "plan"``."""
        return place_of(self.node_id, self.attribute)


def place_of(node_id: str, attribute: str) -> str:
    """An attribute of a node, or of the graph, in words.

    >>> place_of("plan", "prompt"), place_of("", "model_stylesheet")
    ('prompt of "plan"', 'model_stylesheet')
    """
    return f'{attribute} of "{node_id}"' if node_id else attribute


def marked_texts(graph: Graph) -> Iterator[tuple[str, str, str]]:
    """The texts that begin with the mark: ids of their nodes, attributes and themselves; the graph has no id."""
    for node_id, attrs, names in _with_texts(graph):
        for name in names:
            text = attrs.get(name)
            if isinstance(text, str) and text.startswith(MARK):
                yield node_id, name, text


def _with_texts(graph: Graph) -> Iterator[tuple[str, Mapping[str, AttrValue], Sequence[str]]]:
    yield "", graph.attrs, GRAPH_FILE_ATTRIBUTES
    for node in graph.nodes.values():
        yield node.id, node.attrs, FILE_ATTRIBUTES


def with_texts(graph: Graph, texts: Mapping[tuple[str, str], str]) -> Graph:
    """A graph with other texts, by node and attribute; those of the graph itself are by an empty id."""
    changed: dict[str, dict[str, str]] = {}
    for (node_id, attribute), text in texts.items():
        changed.setdefault(node_id, {})[attribute] = text
    own = changed.pop("", None)
    if changed:
        graph = graph.with_nodes(graph.nodes[node_id].with_attrs(attrs) for node_id, attrs in changed.items())
    return graph if own is None else graph.with_attrs(own)


def named_file(text: str) -> str | None:
    """The file that a text names; None when it names none.

    >>> named_file("@prompts/plan.md"), named_file("@@ada, please review"), named_file("Plan it.")
    ('prompts/plan.md', None, None)
    """
    is_reference = text.startswith(MARK) and not text.startswith(MARK * 2)
    return text.removeprefix(MARK).strip() if is_reference else None


def literal(text: str) -> str:
    """Escape a text so that it names no file.

    >>> literal("@ada"), literal("Ada")
    ('@@ada', 'Ada')
    """
    return MARK + text if text.startswith(MARK) else text


def with_literal_texts(graph: Graph) -> Graph:
    """A graph whose texts are no references, written so that they are not taken for some."""
    return with_texts(graph, {(node_id, name): literal(text) for node_id, name, text in marked_texts(graph)})
