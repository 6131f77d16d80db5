"""The model that answers each prompt, and the part of the graph that chose it (spec 8.5).

The values are those that the transforms wrote on the nodes; this module finds their origin.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from attractor_nb.decisions.branch_policies import FAN_IN_TYPE
from attractor_nb.languages.stylesheet import Stylesheet, winning_declarations
from attractor_nb.model.calls.providers import ModelName, read_model
from attractor_nb.model.vocabulary.attributes import literal_text
from attractor_nb.model.vocabulary.shapes import DEFAULT_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attractor_nb.model.graph import Graph, Node
    from attractor_nb.source import Span

NODE: Final = "node"
STYLESHEET: Final = "stylesheet"
BLOCK: Final = "node [...]"
GRAPH: Final = "graph"
DETECTED: Final = "model's name"
BACKEND: Final = "backend"
DEFAULT: Final = "default"


@dataclass(frozen=True, slots=True)
class ValueChoice:
    """A value and who gave it."""

    value: str  #: The value; empty if none was given.
    #: ``node``, ``stylesheet``, ``node [...]`` (a default block), ``graph``, ``model's name`` (a provider that it
    #: tells), ``backend`` (its default), or ``default`` (the system's).
    origin: str
    selector: str = ""  #: The stylesheet's selector that won, or empty.
    span: Span | None = field(default=None, compare=False, repr=False)  #: Its place in the source, or None.

    @property
    def line(self) -> int | None:
        """The line of the source on which it is written, counted from 1."""
        return None if self.span is None else self.span.line

    @property
    def reason(self) -> str:
        """The origin of the value, in a few words: ``stylesheet .code, line 8``."""
        who = f"{self.origin} {self.selector}".strip()
        if self.span is None:
            return who
        source = self.span.source
        is_in_file = self.selector and source.host is None and not source.name.startswith("<")
        return f"{who}, {source.name} line {self.line}" if is_in_file else f"{who}, line {self.line}"


class ModelChoice(msgspec.Struct, frozen=True):
    """The model of one node."""

    node_id: str  #: The node.
    model: ValueChoice  #: Its `llm_model`.
    provider: ValueChoice  #: Its `llm_provider`, or the provider that the model's name tells.
    effort: ValueChoice  #: Its `reasoning_effort`.
    name: ModelName  #: Model and provider as they are called.


def model_choices(graph: Graph, stylesheet: Stylesheet, default: ModelName | None = None) -> list[ModelChoice]:
    """The model of each node that asks one, in source order.

    Args:
        graph: The graph, with its transforms applied.
        stylesheet: Its stylesheet; spans point to where it says things.
        default: The backend's own model, for nodes without a model.
    """
    return [model_choice(node, graph, stylesheet, default) for node in nodes_that_ask(graph)]


def nodes_that_ask(graph: Graph) -> Iterator[Node]:
    """The nodes whose prompt a model answers: tasks, and fan-ins that have a prompt (spec 4.5, 4.9)."""
    for node_id, handler_type in graph.handler_types.items():
        if handler_type == DEFAULT_TYPE or (handler_type == FAN_IN_TYPE and graph.nodes[node_id].prompt):
            yield graph.nodes[node_id]


def is_model_asked(graph: Graph) -> bool:
    """True if any node of a graph or of its child pipelines asks a backend."""
    return any(True for _ in nodes_that_ask(graph)) or any(map(is_model_asked, graph.children.values()))


def model_choice(node: Node, graph: Graph, stylesheet: Stylesheet, default: ModelName | None = None) -> ModelChoice:
    """The model of a node; arguments as of ``model_choices``."""
    default = default or ModelName("")
    styled = winning_declarations(stylesheet, node)

    def given(name: str, fallback: str, origin: str) -> ValueChoice:
        if name not in node.attrs:
            return ValueChoice(fallback, origin if fallback else DEFAULT)
        value = literal_text(node.attrs[name])
        own = node.attr_spans.get(name)
        if name in node.explicit:
            return ValueChoice(value, NODE, span=own.value if own else None)
        if name in styled:
            selector, declaration = styled[name]
            return ValueChoice(value, STYLESHEET, str(selector), declaration.span)
        if own is not None or name not in graph.attrs:
            return ValueChoice(value, BLOCK, span=own.value if own else None)
        whole = graph.attr_spans.get(name)
        return ValueChoice(value, GRAPH, span=whole.value if whole else None)

    model = given("llm_model", default.model, BACKEND)
    provider = given("llm_provider", "", DEFAULT)
    effort = given("reasoning_effort", node.reasoning_effort, DEFAULT)
    name = read_model(model.value, provider.value)
    if not provider.value:
        origin = DETECTED if name.provider else BACKEND
        name = name if name.provider else ModelName(name.model, default.provider)
        provider = ValueChoice(name.provider, origin if name.provider else DEFAULT)
    return ModelChoice(node.id, model, provider, effort, name)
