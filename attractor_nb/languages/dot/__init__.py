"""The DOT subset of spec 2: text to syntax tree to graph, and back.

``parse_dot`` gives the graph; ``read_dot`` gives everything that reading found out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec

from attractor_nb.errors import DotSyntaxError, OptionError
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
from attractor_nb.lazy_imports import later
from attractor_nb.model.diagnostic import Diagnostic, Severity
from attractor_nb.source import SourceText

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from attractor_nb.languages.dot import syntax_recovery
    from attractor_nb.model.graph import Graph
else:
    syntax_recovery = later("attractor_nb.languages.dot.syntax_recovery")

__all__ = [
    "BYTE_ORDER_MARK",
    "BrokenText",
    "DotDocument",
    "DotTree",
    "apply_edits",
    "derived_class",
    "embed_value",
    "examine_dot",
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


class BrokenText(msgspec.Struct, frozen=True):
    """A DOT text with syntax errors, and the rest of what it says."""

    error: DotSyntaxError  #: Its first mistake, with the others.
    rest: DotDocument | None  #: The statements without a mistake; None where too little could be read.


def parse_dot(text: str | SourceText, *, name: str = "<string>", strict: bool = False) -> Graph:
    """Read a pipeline.

    >>> parse_dot('digraph G { plan [label="Plan"]; plan -> done }').nodes["plan"].label
    'Plan'

    Args:
        text: The DOT text.
        name: What to call it in messages, unless it is a ``SourceText`` that knows.
        strict: Whether attributes without commas are an error (ruling 1).

    Raises:
        DotSyntaxError: The text is outside the subset; the error has all mistakes.
    """
    source = _source(text, name)
    with gc_paused(len(source.text)):
        try:
            return lower(parse_syntax(source, strict=strict))
        except DotSyntaxError as error:
            raise _broken(source, error, is_strict=strict).error from None


def read_dot(text: str | SourceText, *, name: str = "<string>", strict: bool = False) -> DotDocument:
    """Read a pipeline and keep its tree and the warnings found on the way.

    Arguments and errors as of ``parse_dot``.
    """
    found = examine_dot(text, name=name, strict=strict)
    if isinstance(found, BrokenText):
        raise found.error
    return found


def examine_dot(text: str | SourceText, *, name: str = "<string>", strict: bool = False) -> DotDocument | BrokenText:
    """Read a pipeline as ``read_dot`` does, and one with syntax errors as far as possible."""
    source = _source(text, name)
    with gc_paused(len(source.text)):
        try:
            return _document(parse_syntax(source, strict=strict))
        except DotSyntaxError as error:
            return _broken(source, error, is_strict=strict)


def _document(tree: DotTree) -> DotDocument:
    graph = lower(tree)
    found = sorted((*tree.notices, *find_repeats(tree)), key=lambda notice: notice.span.start if notice.span else 0)
    return DotDocument(tree.source, tree, graph, tuple(found))


def _broken(source: SourceText, first: DotSyntaxError, *, is_strict: bool) -> BrokenText:
    if first.is_limit:
        return BrokenText(first, None)
    found = syntax_recovery.read_rest(source, first, is_strict=is_strict)
    others = [finding for mistake in found.mistakes[1:] for finding in mistake.diagnostics]
    error = DotSyntaxError(first.message, first.span, hint=first.hint, others=others)
    try:
        return BrokenText(error, _document(found.tree) if found.tree else None)
    except DotSyntaxError:  # more defaults than a graph may have
        return BrokenText(error, None)


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
