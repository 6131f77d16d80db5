"""Transforms of attributes: `$goal` in prompts; models from stylesheet and graph (spec 8.5, 9.2).

A node's own attribute wins over the stylesheet, the stylesheet over a `node [...]` default block, that
block over the graph's attribute of the same name, and the graph over the system's default. A stylesheet
sets what is in `PROPERTIES`; endpoints, options that are passed on and the other attributes of `INHERITED`
come from the graph alone.
"""

from __future__ import annotations

from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec

from attractor_nb.errors import StylesheetSyntaxError
from attractor_nb.languages.stylesheet import Stylesheet, parse_stylesheet, resolve_properties
from attractor_nb.model.calls.model_options import PREFIX as OPTION_PREFIX
from attractor_nb.model.calls.providers import COMPATIBLE, ModelName, address_owner, read_model
from attractor_nb.model.calls.providers import PREFIX as ENDPOINT_PREFIX
from attractor_nb.model.vocabulary.attribute_table import CHILD_FILE, CHILD_FILES, AttrValue, Scope
from attractor_nb.model.vocabulary.attributes import attribute, coerce
from attractor_nb.model.vocabulary.shapes import DEFAULT_TYPE, PIPELINE_TYPE, SHAPE_TO_TYPE
from attractor_nb.model.vocabulary.variables import GOAL, settled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.model.graph import Graph, Node


_ADDRESS: Final = "llm.base_url"
INHERITED: Final = (
    "llm_model",
    "llm_provider",
    "reasoning_effort",
    "llm.system_prompt",
    _ADDRESS,
    "llm_fallback",
    "llm_fallback_on",
)
"""Attributes of the graph that its nodes have, unless they say otherwise."""


class VariableExpansion:
    """Replaces `$goal` in the prompt of each node; a graph without a goal stays unchanged.

    Other variables get their values when a stage begins (ruling 34). Variables in the text of the goal are
    never replaced.
    """

    def apply(self, graph: Graph) -> Graph:
        """The graph with expanded prompts."""
        if not graph.goal:
            return graph
        changed = [
            node.with_attrs({"prompt": prompt})
            for node in graph.nodes.values()
            if "$" in node.prompt and (prompt := settled(node.prompt, GOAL, graph.goal)) != node.prompt
        ]
        return graph.with_nodes(changed) if changed else graph


class StylesheetApplication:
    """Resolves the model properties of every node.

    A stylesheet that does not parse is ignored here; lint reports it, with its place.
    """

    def apply(self, graph: Graph) -> Graph:
        """The graph with resolved model properties; resolved values do not count as explicit."""
        stylesheet = _stylesheet(graph.model_stylesheet)
        defaults = {
            name: value
            for name, value in graph.attrs.items()
            if name in INHERITED or name.startswith((ENDPOINT_PREFIX, OPTION_PREFIX))
        }
        if not stylesheet.rules and not defaults:
            return graph
        changed = [
            node.with_attrs(changes)
            for node in graph.nodes.values()
            if (changes := _changes(node, stylesheet, defaults, graph))
        ]
        return graph.with_nodes(changed) if changed else graph


def _changes(node: Node, stylesheet: Stylesheet, defaults: dict[str, AttrValue], graph: Graph) -> dict[str, AttrValue]:
    changes = {name: value for name, value in defaults.items() if name not in node.attrs}
    styled = resolve_properties(stylesheet, node)
    if _ADDRESS in changes and not _is_at_address(graph, {**node.attrs, **changes, **styled}):
        del changes[_ADDRESS]
    for name, text in styled.items():
        row = attribute(Scope.NODE, name)
        value = text if row is None else coerce(row, text)
        if value is not None and name not in node.explicit:  # a wrong one lint reports
            changes[name] = value
    return {name: value for name, value in changes.items() if node.attrs.get(name) != value}


def _is_at_address(graph: Graph, attrs: Mapping[str, AttrValue]) -> bool:
    """True if the graph's address is for a node with these attributes: it belongs to one provider.

    That is the provider of the graph's own model. Where the graph names none it speaks OpenAI's language.
    """
    if not _named(attrs).model:
        return True
    whose, owner = _named(graph.attrs), address_owner(_named(attrs))
    return owner == address_owner(whose) or (not (whose.model or whose.provider) and owner == COMPATIBLE)


def _named(attrs: Mapping[str, AttrValue]) -> ModelName:
    return read_model(str(attrs.get("llm_model", "")), str(attrs.get("llm_provider", "")))


@lru_cache(maxsize=16)
def _stylesheet(text: str) -> Stylesheet:
    try:
        return parse_stylesheet(text)
    except StylesheetSyntaxError:
        return Stylesheet()


# The meaning of attributes in files of other runners of these pipelines (ruling 5).


class ForeignSubPipelines:
    """Reads `sub [shape=folder, dot_file="child.dot"]` as the sub-pipeline that it means (spec 9.4).

    As a model stage it would be asked the prompt "sub", and its answer would count as a success of the child. A node
    that says its type, has a shape with its own handler, or a prompt, stays what it is.
    """

    def apply(self, graph: Graph) -> Graph:
        """The graph with sub-pipelines in place of such nodes."""
        changed = [_as_sub_pipeline(node, name) for node in graph.nodes.values() if (name := _child_file(node))]
        return graph.with_nodes(changed) if changed else graph


def _child_file(node: Node) -> str:
    """The attribute by which a node of another dialect names its child, or empty."""
    is_task = SHAPE_TO_TYPE.get(node.shape, DEFAULT_TYPE) == DEFAULT_TYPE
    if not is_task or node.type or node.prompt or node.get(CHILD_FILE, str, "").strip():
        return ""
    return next((name for name in CHILD_FILES if str(node.attrs.get(name, "")).strip()), "")


def _as_sub_pipeline(node: Node, name: str) -> Node:
    read = node.with_attrs({"type": PIPELINE_TYPE, CHILD_FILE: str(node.attrs[name])})
    if name not in node.attr_spans:
        return read
    spans = MappingProxyType({**node.attr_spans, CHILD_FILE: node.attr_spans[name]})
    return msgspec.structs.replace(read, attr_spans=spans)
