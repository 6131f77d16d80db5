"""Where things stand in the source, and the edits that mend them there."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from attractor_nb.languages.dot.literals import embed_value, is_quoted, quote, spell
from attractor_nb.model.diagnostic import Fix, TextEdit
from attractor_nb.model.text_files import named_file
from attractor_nb.source import SourceText

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.model.graph import Edge, Graph
    from attractor_nb.model.vocabulary.attribute_kinds import AttrValue
    from attractor_nb.model.vocabulary.attributed import AttrSpan
    from attractor_nb.source import Span


class AttributedElement(Protocol):
    """A graph, node or edge."""

    @property
    def attrs(self) -> Mapping[str, AttrValue]:
        """Its attributes."""
        ...

    @property
    def attr_spans(self) -> Mapping[str, AttrSpan]:
        """Where they stand."""
        ...


def name_span(thing: AttributedElement, name: str) -> Span | None:
    """Where the name of an attribute stands; else the thing itself."""
    found = thing.attr_spans.get(name)
    return found.name if found else getattr(thing, "span", None)


def value_span(thing: AttributedElement, name: str) -> Span | None:
    """Where the value of an attribute stands; else the thing itself."""
    found = thing.attr_spans.get(name)
    return found.value if found else getattr(thing, "span", None)


def embedded_text(thing: AttributedElement, name: str, value: str) -> SourceText:
    """The value of an attribute as a text whose spans point into the source.

    When a transform changed the value, or it never stood in a source, its spans point into itself, and it has the name
    of the file that it was read from.
    """
    found = thing.attr_spans.get(name)
    if found is None:
        return SourceText(value, f"<{name}>")
    text = embed_value(found.value)
    return text if text.text == value else SourceText(value, named_file(text.text) or f"<{name}>")


def target_span(edge: Edge) -> Span | None:
    """Where the target of an edge stands."""
    span = edge.span
    if span is None or not span.text.endswith(edge.target):
        return span
    return span.source.span(span.end - len(edge.target), span.end)


def source_span(edge: Edge) -> Span | None:
    """Where the source of an edge stands."""
    span = edge.span
    if span is None or not span.text.startswith(edge.source):
        return span
    return span.source.span(span.start, span.start + len(edge.source))


def replacing(span: Span | None, text: str, title: str) -> Fix:
    """The fix that puts another text under a span, or only says so where there is no span."""
    return Fix(title, (TextEdit(span, text),) if span is not None else ())


def replacing_value(thing: AttributedElement, name: str, value: AttrValue, title: str) -> Fix:
    """The fix that gives an attribute another value where it is written."""
    found = thing.attr_spans.get(name)
    return replacing(found.value if found else None, spell(value), title)


def renaming(thing: AttributedElement, name: str, new_name: str, title: str) -> Fix:
    """The fix that renames an attribute where it is written."""
    found = thing.attr_spans.get(name)
    return replacing(found.name if found else None, new_name, title)


def outward(fix: Fix | None) -> Fix | None:
    """A fix inside a condition or stylesheet as a fix of the text that it is embedded in."""
    if fix is None or not fix.edits:
        return fix
    return Fix(fix.title, tuple(edit for edit in map(_outward_edit, fix.edits) if edit))


def _outward_edit(edit: TextEdit) -> TextEdit | None:
    text, host = edit.span.source, edit.span.source.host
    if host is None:
        return None
    if is_quoted(host.text):
        return TextEdit(edit.span.outermost(), quote(edit.text)[1:-1])
    changed = text.text[: edit.span.start] + edit.text + text.text[edit.span.end :]
    return TextEdit(host, quote(changed))


def appending(graph: Graph, statement: str, title: str) -> Fix:
    """The fix that adds a statement at the end of the graph.

    Only says so when the last brace of the source may stand in a comment.
    """
    source = graph.source
    end = _end_of_graph(source.text) if source else None
    if source is None or end is None:
        return Fix(title)
    start, is_alone = end
    insertion = f"    {statement}\n" if is_alone else f" {statement} "
    return Fix(title, (TextEdit(source.span(start, start), insertion),))


@lru_cache(maxsize=8)  # one for each text: a graph of one line may have a finding at each of 20,000 nodes
def _end_of_graph(text: str) -> tuple[int, bool] | None:
    """Place for a statement before the last brace, and whether the brace is alone on its line."""
    body = text.rstrip()
    line = body[body.rfind("\n") + 1 :]
    if not body.endswith("}") or any(sign in line for sign in ("//", "#", "*")):
        return None
    brace = len(body) - 1
    is_alone = not line[:-1].strip()
    return (brace - len(line) + 1 if is_alone else brace), is_alone
