"""Texts that stand in files: `prompt="@prompts/plan.md"`; `@@` begins a text with `@`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from attractor_nb.model.graph import Graph
    from attractor_nb.model.vocabulary.attribute_kinds import AttrValue

TEXT_FILE: Final = "text_file"
"""The lint rule that says what is wrong with them."""
MARK: Final = "@"
FILE_ATTRIBUTES: Final = ("prompt", "llm.system_prompt", "human.prompt", "manager.instructions")
"""Node attributes whose text may stand in a file: those that are nothing but a text to be read. A label is a
name that is drawn, too."""
GRAPH_FILE_ATTRIBUTES: Final = ("model_stylesheet",)
"""The same of the graph."""


class TextFileProblem(msgspec.Struct, frozen=True):
    """Why the file that a text names cannot be had."""

    node_id: str  #: The node; empty where the graph names the file.
    attribute: str  #: The attribute that names the file.
    message: str  #: What is wrong.
    remedy: str  #: How to fix it.
    near: str = ""  #: The reference that was meant, most likely; empty when nobody can tell.

    @property
    def place(self) -> str:
        """What names the file, in words: ``prompt of "plan"``."""
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
    """How a text is written so that it names no file.

    >>> literal("@ada"), literal("Ada")
    ('@@ada', 'Ada')
    """
    return MARK + text if text.startswith(MARK) else text


def with_literal_texts(graph: Graph) -> Graph:
    """A graph whose texts are no references, written so that they are not taken for some."""
    return with_texts(graph, {(node_id, name): literal(text) for node_id, name, text in marked_texts(graph)})
