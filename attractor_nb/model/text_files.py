"""Texts of nodes that stand in files: `prompt="@prompts/plan.md"`; `@@` begins a text with `@`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attractor_nb.model.graph import Graph, Node

TEXT_FILE: Final = "text_file"
"""The lint rule that says what is wrong with them."""
MARK: Final = "@"
FILE_ATTRIBUTES: Final = ("prompt", "llm.system_prompt", "human.prompt", "manager.instructions")
"""Node attributes whose text may stand in a file: those that are nothing but a text to be read. A label is a
name that is drawn, too."""


class TextFileProblem(msgspec.Struct, frozen=True):
    """Why the file that a text names cannot be had.

    Attributes:
        node_id: The node.
        attribute: The attribute that names the file.
        message: What is wrong.
        remedy: How to fix it.
        near: The reference that was meant, most likely; empty when nobody can tell.
    """

    node_id: str
    attribute: str
    message: str
    remedy: str
    near: str = ""


def marked_texts(graph: Graph) -> Iterator[tuple[Node, str, str]]:
    """The texts that begin with the mark: their nodes, attributes and themselves."""
    for node in graph.nodes.values():
        for name in FILE_ATTRIBUTES:
            text = node.attrs.get(name)
            if isinstance(text, str) and text.startswith(MARK):
                yield node, name, text


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
    changed: dict[str, dict[str, str]] = {}
    for node, name, text in marked_texts(graph):
        changed.setdefault(node.id, {})[name] = literal(text)
    return graph.with_nodes(graph.nodes[node_id].with_attrs(texts) for node_id, texts in changed.items())
