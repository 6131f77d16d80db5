"""The DOT subset of spec 2: text to syntax tree to graph, and back.

``parse_dot`` gives the graph; ``read_dot`` gives everything that reading found out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from attractor_nb.collector import paused_collector
from attractor_nb.errors import OptionError
from attractor_nb.languages.dot.edits import apply_edits
from attractor_nb.languages.dot.formatter import write_tree
from attractor_nb.languages.dot.literals import embed_value
from attractor_nb.languages.dot.lower import derived_class, lower
from attractor_nb.languages.dot.parser import parse_syntax
from attractor_nb.languages.dot.repeats import find_repeats
from attractor_nb.languages.dot.syntax import DotTree
from attractor_nb.languages.dot.writer import write_dot
from attractor_nb.source import SourceText

if TYPE_CHECKING:
    from attractor_nb.model.diagnostic import Diagnostic
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
    "write_tree",
]

BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True, slots=True)
class DotDocument:
    """A DOT text and what it says.

    Attributes:
        source: The text, without a byte order mark.
        tree: Its statements as written.
        graph: What they mean.
        diagnostics: What was read out of generosity, in source order, each with its fix if there is one.
    """

    source: SourceText
    tree: DotTree
    graph: Graph
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
    with paused_collector(len(source.text)):
        return lower(parse_syntax(source, strict=strict))


def read_dot(text: str | SourceText, *, name: str = "<string>", strict: bool = False) -> DotDocument:
    """Read a pipeline and keep its tree and the warnings found on the way.

    Arguments and errors as of ``parse_dot``.
    """
    source = _source(text, name)
    with paused_collector(len(source.text)):
        tree = parse_syntax(source, strict=strict)
        graph = lower(tree)
    found = sorted(
        (*tree.notices, *find_repeats(tree)), key=lambda notice: notice.span.start if notice.span else 0
    )
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
