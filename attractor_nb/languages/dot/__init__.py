"""The DOT subset of spec 2: text to syntax tree to graph, and back.

``parse_dot`` gives the graph; ``read_dot`` gives everything that reading found out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec

from attractor_nb.errors import OptionError
from attractor_nb.gc_pause import gc_paused
from attractor_nb.languages.dot.edits import apply_edits
from attractor_nb.languages.dot.lower import derived_class, lower
from attractor_nb.languages.dot.parser import parse_syntax
from attractor_nb.languages.dot.syntax import (
    Attr,
    Block,
    DotTree,
    GraphDeclaration,
    NodeStatement,
    Statement,
    SubgraphStatement,
)
from attractor_nb.languages.dot.writer import embed_value, text_of, write_dot
from attractor_nb.model.diagnostic import Diagnostic, Severity
from attractor_nb.source import SourceText

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from attractor_nb.model.graph import Graph

__all__ = [
    "BYTE_ORDER_MARK",
    "DotDocument",
    "DotTree",
    "apply_edits",
    "derived_class",
    "embed_value",
    "lower",
    "parse_dot",
    "parse_syntax",
    "read_dot",
    "write_dot",
]

BYTE_ORDER_MARK = "\ufeff"


class DotDocument(msgspec.Struct, frozen=True):
    """A DOT text and what it says."""

    source: SourceText  #: The text, without a byte order mark.
    tree: DotTree  #: Its statements as written.
    graph: Graph  #: The resulting graph.
    #: Notices about tolerated syntax, in source order, each with its fix if there is one.
    diagnostics: tuple[Diagnostic, ...]


def parse_dot(text: str | SourceText, *, name: str = "<string>", strict: bool = False) -> Graph:
    """Read a pipeline.

    >>> parse_dot('digraph G { plan [label="Plan"]; plan -> done }').nodes["plan"].label
    'Plan'

    Args:
        text: The DOT text.
        name: What to call it in messages, unless it is a ``SourceText`` that knows.
        strict: Whether attributes without commas are an error (ruling 1).

    Raises:
        DotSyntaxError: The text is outside the subset.
    """
    source = _source(text, name)
    with gc_paused(len(source.text)):
        return lower(parse_syntax(source, strict=strict))


def read_dot(text: str | SourceText, *, name: str = "<string>", strict: bool = False) -> DotDocument:
    """Read a pipeline and keep its tree and the warnings found on the way.

    Arguments and errors as of ``parse_dot``.
    """
    source = _source(text, name)
    with gc_paused(len(source.text)):
        tree = parse_syntax(source, strict=strict)
        graph = lower(tree)
    found = sorted((*tree.notices, *find_repeats(tree)), key=lambda notice: notice.span.start if notice.span else 0)
    return DotDocument(source, tree, graph, tuple(found))


def _source(text: str | SourceText, name: str) -> SourceText:
    source = SourceText(text, name) if isinstance(text, str) else text
    if not isinstance(source, SourceText):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise OptionError(
            f"a graph is read from DOT text, not from {type(source).__name__}",
            hint='parse_dot("digraph { … }"), or parse_dot(path.read_text())',
        )
    if source.text.startswith(BYTE_ORDER_MARK):
        return replace(source, text=source.text[1:])
    return source


MAX_FINDINGS: Final = 1_000
"""More would not be read, and a text can be made of nothing else."""


def find_repeats(tree: DotTree) -> tuple[Diagnostic, ...]:
    """A WARNING ``duplicate_attribute`` for each value that a later one of the same name replaces.

    That is legal, and most often a slip. No more than ``MAX_FINDINGS`` of them.
    """
    nodes: dict[str, dict[str, Attr]] = {}
    found: list[Diagnostic] = []
    for statement, block in _blocks(tree.body):
        if isinstance(statement, NodeStatement):
            node_id = statement.id.text
            known = nodes.get(node_id)
            if known is None:
                known = nodes[node_id] = {}
            _look(tree, block, known, node_id, found)
        elif len(block.attrs) > 1:
            _look(tree, block, {}, "", found)
    return tuple(found)


def _blocks(body: Iterable[Statement]) -> Iterator[tuple[Statement, Block]]:
    """The statements that have attributes, those of inner groups included, in order."""
    for statement in body:
        if isinstance(statement, SubgraphStatement):
            yield from _blocks(statement.body)
        elif not isinstance(statement, GraphDeclaration) and statement.block is not None and statement.block.attrs:
            yield statement, statement.block


def _look(tree: DotTree, block: Block, known: dict[str, Attr], node_id: str, found: list[Diagnostic]) -> None:
    for attr in block.attrs:
        earlier = known.get(attr.name)
        known[attr.name] = attr
        if (
            earlier is not None
            and earlier.literal != attr.literal
            and len(found) < MAX_FINDINGS
            and text_of(earlier.literal) != text_of(attr.literal)
        ):
            found.append(
                Diagnostic(
                    "duplicate_attribute",
                    Severity.WARNING,
                    f'"{attr.name}" of {f"node {node_id}" if node_id else "this block"}'
                    f" replaces its value of line {tree.span(earlier).line}",
                    node_id=node_id,
                    span=tree.span(attr),
                )
            )
