"""Attributes that are set twice: legal, the later one wins, and most often a slip."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.languages.dot.literals import text_of
from attractor_nb.languages.dot.syntax import Declaration, NodeStatement, SubgraphStatement
from attractor_nb.model.diagnostic import Diagnostic, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from attractor_nb.languages.dot.syntax import Attr, Block, DotTree, Statement


def find_repeats(tree: DotTree) -> tuple[Diagnostic, ...]:
    """A WARNING ``duplicate_attribute`` for each value that a later one of the same name replaces."""
    nodes: dict[str, dict[str, Attr]] = {}
    found: list[Diagnostic] = []
    for statement in _flat(tree.body):
        if isinstance(statement, NodeStatement):
            known = nodes.setdefault(statement.id.text, {})
            found += _repeats(tree, statement.block, known, f"node {statement.id.text}", statement.id.text)
        elif not isinstance(statement, SubgraphStatement | Declaration):
            found += _repeats(tree, statement.block, {}, "this block", "")
    return tuple(found)


def _flat(body: Iterable[Statement]) -> Iterator[Statement]:
    for statement in body:
        yield statement
        if isinstance(statement, SubgraphStatement):
            yield from _flat(statement.body)


def _repeats(
    tree: DotTree, block: Block | None, known: dict[str, Attr], whose: str, node_id: str
) -> Iterator[Diagnostic]:
    for attr in block.attrs if block else ():
        earlier = known.get(attr.name)
        known[attr.name] = attr
        if earlier is not None and text_of(earlier.literal) != text_of(attr.literal):
            line = tree.span(earlier).line
            yield Diagnostic(
                "duplicate_attribute",
                Severity.WARNING,
                f'"{attr.name}" of {whose} replaces its value of line {line}',
                node_id=node_id,
                span=tree.span(attr),
            )
