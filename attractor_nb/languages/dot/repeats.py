"""Attributes that are set twice: legal, the later one wins, and most often a slip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.languages.dot.literals import text_of
from attractor_nb.languages.dot.syntax import GraphDeclaration, NodeStatement, SubgraphStatement
from attractor_nb.model.diagnostic import Diagnostic, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from attractor_nb.languages.dot.syntax import Attr, Block, DotTree, Statement

MAX_FINDINGS: Final = 1_000
"""Nobody reads more, and a text can be made of nothing else."""


def find_repeats(tree: DotTree) -> tuple[Diagnostic, ...]:
    """A WARNING ``duplicate_attribute`` for each value that a later one of the same name replaces.

    No more than ``MAX_FINDINGS`` of them.
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
        elif (
            not isinstance(statement, GraphDeclaration)
            and statement.block is not None
            and statement.block.attrs
        ):
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
