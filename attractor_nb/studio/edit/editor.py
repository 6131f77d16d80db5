"""A pipeline's text while it is being changed: each change a small one, linted, taken back at will."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from attractor_nb.errors import AttractorError, OptionError, StylesheetSyntaxError
from attractor_nb.given_files import read_file
from attractor_nb.languages.condition import parse_condition
from attractor_nb.languages.dot import BYTE_ORDER_MARK, DotTree, apply_edits, embed_value, parse_dot, parse_syntax
from attractor_nb.languages.dot.attribute_edits import (
    remove_edge_attribute,
    remove_graph_attribute,
    remove_node_attribute,
    reread,
    set_edge_attribute,
    set_graph_attribute,
    set_node_attribute,
)
from attractor_nb.languages.dot.structure_edits import (
    add_edge,
    add_node,
    mentions,
    remove_edge,
    remove_node,
    rename_node,
)
from attractor_nb.languages.stylesheet import SelectorKind, parse_stylesheet
from attractor_nb.model.diagnostic import Diagnostic, TextEdit
from attractor_nb.model.graph import Graph, named_file
from attractor_nb.model.texts import did_you_mean
from attractor_nb.model.vocabulary.attribute_table import AttrType, Scope
from attractor_nb.model.vocabulary.attributes import Attributed, attribute, coerce
from attractor_nb.model.vocabulary.variables import NAMING_ATTRIBUTES, stages_named
from attractor_nb.redaction import redacted
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.runtime.prepare.sources import MAX_SOURCE_BYTES
from attractor_nb.source import SourceText, Span
from attractor_nb.storage.files.user_files import write_file
from attractor_nb.studio.edit.lint_report import LintReport
from attractor_nb.views.display import DisplayedPicture
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.findings_table import findings_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from attractor_nb.model.graph import Edge, Node
    from attractor_nb.runtime.definition import Definition


_MOST_ROUNDS: Final = 10


class Editor(DisplayedPicture):
    """Changes of one pipeline's text. The pipeline itself stays as it is; ``pipeline()`` is the changed one.

    Each change returns the editor, so that they can follow one another.
    """

    def __init__(self, pipeline: Definition) -> None:
        self._first = pipeline
        written = pipeline.source
        self._name = written.name if written else "<string>"
        self._first_line = written.first_line if written else 1
        self._before: list[Definition] = []
        self._after: list[Definition] = []
        self._now = pipeline if written else self._made(pipeline.to_dot())
        self._begun = self._now
        self._on_disk = self.source

    # -- what there is ---------------------------------------------------------------------------------

    @property
    def source(self) -> str:
        """The text as it is now."""
        return self._now.written

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The findings of lint in the current text."""
        return self._now.diagnostics

    @property
    def begun(self) -> str:
        """The text that it began with."""
        return self._begun.written

    @property
    def file(self) -> Path | None:
        """The file that the pipeline was read from, or None."""
        return Path(self._name) if isinstance(self._first.origin, Path) else None

    @property
    def can_undo(self) -> bool:
        """True if there is a change to take back."""
        return bool(self._before)

    @property
    def can_redo(self) -> bool:
        """True if a change was taken back and none was made since."""
        return bool(self._after)

    def pipeline(self) -> Definition:
        """The pipeline of the text as it is now, with all that the first one has."""
        return self._now

    def lint(self) -> LintReport:
        """The findings as a report."""
        return LintReport(self._now.diagnostics, self._now.source)

    def diff(self) -> str:
        """All changes as a unified diff; empty when there is none."""
        return redacted(_diff(self.begun, self.source, self._name, f"{self._name} (edited)"))

    def changed_lines(self) -> tuple[int, ...]:
        """The lines of the text, from 1 on, that are not those that it began with."""
        before, after = self.begun.splitlines(), self.source.splitlines()
        blocks = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        return tuple(line + 1 for kind, *_, start, end in blocks if kind != "equal" for line in range(start, end))

    # -- changes ---------------------------------------------------------------------------------------

    def set(self, target: Target = "", attributes: Mapping[str, object] | None = None, /, **named: object) -> Self:
        """Set attributes of a node, an edge or the graph; None removes one.

        >>> from attractor_nb import Pipeline
        >>> editor = Pipeline("digraph { start [shape=Mdiamond] done [shape=Msquare] start -> done }").edit()
        >>> editor.set("start", label="Go").set("start -> done", weight=2).source
        'digraph { start [shape=Mdiamond, label="Go"] done [shape=Msquare] start -> done [weight=2] }'

        Args:
            target: A node's id, an edge ("a -> b", ("a", "b"), or its position), or "" for the graph.
            attributes: Values by name, for names with dots.
            **named: Values by name.
        """
        changes = {**(attributes or {}), **named}
        place = find_place(self._now.parsed, target)
        return self._change(lambda tree: with_attributes(tree, place, changes))

    def rename(self, node: str, new_id: str) -> Self:
        """Give a node another id, in its edges, in attributes that name it and in the stylesheet as well."""
        return self._change(lambda tree: renamed(tree, node, new_id))

    def add_node(
        self, node: str, attributes: Mapping[str, object] | None = None, /, *, after: str = "", **named: object
    ) -> Self:
        """Add a node, behind another one's statement or behind the last one."""
        attrs = {**(attributes or {}), **named}
        return self._change(lambda tree: add_node(tree, node, attrs, after=after))

    def add_edge(
        self, source: str, target: str, attributes: Mapping[str, object] | None = None, /, **named: object
    ) -> Self:
        """Add an edge between two nodes."""
        attrs = {**(attributes or {}), **named}
        return self._change(lambda tree: add_edge(tree, source, target, attrs))

    def remove(self, target: Target, *names: str) -> Self:
        """Remove a node with its edges, or an edge; with names, these attributes of it."""
        place = find_place(self._now.parsed, target)
        if names:
            return self._change(lambda tree: with_attributes(tree, place, dict.fromkeys(names)))
        if place.scope is Scope.GRAPH:
            raise OptionError("the graph itself cannot be removed", hint='name a node, or an edge "a -> b"')
        if place.scope is Scope.NODE:
            return self._change(lambda tree: remove_node(tree, place.node_id))
        return self._change(lambda tree: remove_edge(tree, place.position))

    def fix(self, *rules: str) -> Self:
        """Apply the fixes of all findings, or of those of some rules, as one change.

        Fixes that become possible on the way are applied, too: errors first, then the rest (``LintReport.fix``).

        Args:
            *rules: Names of rules; all without any.
        """
        mended = self._now
        for _ in range(_MOST_ROUNDS):
            text = LintReport(mended.diagnostics, mended.source).fix(*rules).text
            if text == mended.written:
                break
            mended = self._made(text)
        return self.replace(mended.written)

    def fix_one(self, finding: Diagnostic) -> Self:
        """Apply the fix of one finding."""
        return self.replace(self.lint().fix_one(finding).text)

    def replace(self, source: str) -> Self:
        """Put another text in place of all."""
        return self._change(lambda _: source)

    def undo(self) -> Self:
        """Take the last change back: the text is byte for byte what it was."""
        if not self._before:
            raise OptionError("there is no change to undo", hint="nothing was changed")
        self._after.append(self._now)
        self._now = self._before.pop()
        return self

    def redo(self) -> Self:
        """Make the change again that was taken back last."""
        if not self._after:
            raise OptionError("there is no change to redo", hint="undo one first")
        self._before.append(self._now)
        self._now = self._after.pop()
        return self

    def _change(self, change: Callable[[DotTree], str]) -> Self:
        tree = parse_syntax(SourceText(self.source, self._name, self._first_line))
        text = change(tree)
        if text != self.source:
            made = self._made(text)
            self._before.append(self._now)
            self._after.clear()
            self._now = made
        return self

    def _made(self, text: str) -> Definition:
        return self._first.with_source(SourceText(text, self._name, self._first_line))

    # -- keeping ---------------------------------------------------------------------------------------

    def save(self, path: str | Path | None = None, *, overwrite: bool = False) -> Path:
        """Write the text to a file, whole or not at all.

        Args:
            path: Where; by default the file that the pipeline was read from.
            overwrite: Replace what is there even if it is not what the editor began with.

        Returns:
            The file.
        """
        own = self.file
        place = own if path is None else as_path(path, "path")
        if place is None:
            raise OptionError("the pipeline came from no file", hint='save("review.dot")')
        found = _text_of(place)
        mark = BYTE_ORDER_MARK if found is not None and found.startswith(BYTE_ORDER_MARK) else ""
        there = None if found is None else found.removeprefix(BYTE_ORDER_MARK)
        expected = self._on_disk if own is not None and place.resolve() == own.resolve() else None
        if there not in (None, expected, self.source) and not overwrite:
            what = "has changed since it was read" if expected is not None else "is there already"
            difference = _diff(expected or self.source, there or "", "as read" if expected else "here", str(place))
            raise OptionError(
                f"{place} {what}:\n{difference}",
                hint="look at the difference; save(…, overwrite=True) replaces it, another path keeps both",
            )
        write_file(place, mark + self.source)
        if expected is not None:
            self._on_disk = self.source
        return place

    # -- showing ---------------------------------------------------------------------------------------

    def __str__(self) -> str:
        parts = [self.diff().rstrip("\n") or "nothing was changed"]
        if self.diagnostics:
            parts.append(findings_text(self.diagnostics))
        return "\n".join(parts)

    def to_svg(self) -> str:
        """The graph as written, errors marked."""
        return render_svg(self._now.parsed, diagnostics=self.diagnostics)


def _diff(before: str, after: str, name: str, new_name: str) -> str:
    lines = difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), name, new_name)
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def _text_of(place: Path) -> str | None:
    """The content of a file. None if it does not exist."""
    return read_file(place, max_bytes=MAX_SOURCE_BYTES, encoding="utf-8") if place.exists() else None


# One change of a pipeline's text: which thing of the graph is meant, and the text after it (pure).

Target = str | int | tuple[str, str] | tuple[str, str, int]
"""Target of a change: "" for the graph, a node's id, "a -> b" or ("a", "b") for the first such edge,
("a", "b", 1) for the second, or an edge's position."""

STYLESHEET: Final = "model_stylesheet"
_EDGE: Final = re.compile(r"\s*(\w+)\s*->\s*(\w+)\s*\Z")


@dataclass(frozen=True, slots=True)
class EditTarget:
    """The thing that a target means."""

    scope: Scope  #: Graph, node or edge.
    node_id: str = ""
    position: int = -1  #: The edge's place in ``Graph.edges``, if it is one.

    def thing(self, graph: Graph) -> Attributed:
        """The thing itself."""
        if self.scope is Scope.NODE:
            return graph.nodes[self.node_id]
        return graph if self.scope is Scope.GRAPH else graph.edges[self.position]


def find_place(graph: Graph, target: object) -> EditTarget:
    """Resolve a target to a place in the graph."""
    if target == "":
        return EditTarget(Scope.GRAPH)
    if isinstance(target, int) and not isinstance(target, bool):
        if 0 <= target < len(graph.edges):
            return EditTarget(Scope.EDGE, position=target)
        raise OptionError(f"the graph has no edge number {target}", hint=f"it has {len(graph.edges)}, from 0 on")
    if isinstance(target, str) and "->" not in target:
        if target in graph.nodes:
            return EditTarget(Scope.NODE, target)
        raise OptionError(f'there is no node "{target}"{did_you_mean(target, graph.nodes)}')
    return _edge_place(graph, target)


def _edge_place(graph: Graph, target: object) -> EditTarget:
    found = _EDGE.match(target) if isinstance(target, str) else None
    match found.groups() if found else target:
        case (str(source), str(goal)):
            number = 0
        case (str(source), str(goal), int(number)):
            pass
        case _:
            raise OptionError(
                f"{target!r} names no part of a graph", hint='name a node "plan", or an edge "plan -> done"'
            )
    same = [at for at, edge in enumerate(graph.edges) if (edge.source, edge.target) == (source, goal)]
    if not 0 <= number < len(same):
        leaving = [f"{source} -> {edge.target}" for edge in graph.outgoing_edges(source)]
        hint = f"its edges: {', '.join(leaving)}" if leaving else f"no edge leaves {source}"
        raise OptionError(f"there is no edge {source} -> {goal}", hint=hint)
    return EditTarget(Scope.EDGE, position=same[number])


def with_attributes(tree: DotTree, place: EditTarget, attrs: Mapping[str, object]) -> str:
    """The text with attributes set; those that are None removed."""
    for name, value in attrs.items():
        match place.scope:
            case Scope.NODE if value is None:
                text = remove_node_attribute(tree, place.node_id, name)
            case Scope.NODE:
                text = set_node_attribute(tree, place.node_id, name, value)
            case Scope.EDGE if value is None:
                text = remove_edge_attribute(tree, place.position, name)
            case Scope.EDGE:
                text = set_edge_attribute(tree, place.position, name, value)
            case _ if value is None:
                text = remove_graph_attribute(tree, name)
            case _:
                text = set_graph_attribute(tree, name, value)
        tree = reread(tree, text)
    return tree.source.text


def renamed(tree: DotTree, old: str, new: str) -> str:
    """The text in which a node has another id, also where the stylesheet selects it or a prompt names it."""
    tree = reread(tree, rename_node(tree, old, new))
    graph = parse_dot(tree.source)
    edits = {TextEdit(span, f"#{new}") for span in _selectors(graph, old)}
    edits |= {TextEdit(span, new) for span in _variables(graph, old)}
    return apply_edits(tree.source, sorted(edits, key=lambda edit: edit.span.start))


def references(tree: DotTree, node_id: str) -> list[Span]:
    """The places that name a node, in the order of the text: those that ``renamed`` changes, without quotes."""
    graph = parse_dot(tree.source)
    found = [embed_value(span) for span in mentions(tree, node_id)]
    places = {source.span(0, len(source.text)).outermost() for source in found}
    places |= {Span(at.source, at.start + 1, at.end) for at in _selectors(graph, node_id)}  # behind the "#"
    return sorted({*places, *_variables(graph, node_id)}, key=lambda span: span.start)


def edits_between(source: SourceText, after: str) -> list[TextEdit]:
    """The edits that make ``after`` of a text: line by line where both have as many lines, else one.

    >>> [(edit.span.text, edit.text) for edit in edits_between(SourceText("plan -> b"), "draft -> b")]
    [('plan', 'draft')]
    """
    lines, new_lines = source.text.split("\n"), after.split("\n")
    if len(lines) != len(new_lines):
        return [_smallest_edit(source, 0, source.text, after)]
    edits: list[TextEdit] = []
    start = 0
    for line, new_line in zip(lines, new_lines, strict=True):
        if line != new_line:
            edits.append(_smallest_edit(source, start, line, new_line))
        start += len(line) + 1
    return edits


def _smallest_edit(source: SourceText, offset: int, before: str, after: str) -> TextEdit:
    """One edit of the part of a text that begins at an offset: the beginning and the end that both have stay."""
    start = _same(before, after)
    kept = _same(before[start:][::-1], after[start:][::-1])
    end = len(before) - kept
    return TextEdit(source.span(offset + start, offset + end), after[start : len(after) - kept])


def _same(one: str, other: str) -> int:
    """The number of characters with which both texts begin."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (first, second) in pairs if first != second), min(len(one), len(other)))


def whole_span(thing: Node | Edge, named: Span) -> Span:
    """From the name to the end of the last attribute that is behind it, before anything else begins."""
    ends = [at.value.end for at in thing.attr_spans.values()]
    return Span(named.source, named.start, max([named.end, *(end for end in ends if end > named.end)]))


def _selectors(graph: Graph, node_id: str) -> Iterator[Span]:
    """The selectors of a node's id in the stylesheet."""
    written = graph.attr_spans.get(STYLESHEET)
    if written is None:
        return
    try:
        sheet = parse_stylesheet(embed_value(written.value))
    except StylesheetSyntaxError:  # lint reports it; what it selects is unknown
        return
    for rule in sheet.rules:
        if rule.selector.kind is SelectorKind.ID and rule.selector.name == node_id and rule.selector.span:
            yield rule.selector.span.outermost()


def _variables(graph: Graph, node_id: str) -> Iterator[Span]:
    """The references to a node's values in texts; one in a default block counts for each node that inherits it."""
    for node in graph.nodes.values():
        for name in NAMING_ATTRIBUTES:
            written = node.attr_spans.get(name)
            if written is None or "$" not in written.value.text:
                continue
            source = embed_value(written.value)
            for start, end in stages_named(source.text):
                if source.text[start:end] == node_id:
                    yield source.span(start, end).outermost()


def value_problem(scope: Scope, name: str, text: str) -> str:
    """The problem with a value while it is being typed; empty if there is none."""
    row = attribute(scope, name)
    try:
        if (scope, name) == (Scope.EDGE, "condition") and text.strip():
            parse_condition(text)
        if (scope, name) == (Scope.GRAPH, STYLESHEET) and named_file(text) is None:
            parse_stylesheet(text)
    except AttractorError as error:
        return str(error)
    if row is None or not text:
        return ""
    if coerce(row, text) is None:
        return f"this is no {row.type.value}"
    if row.type is AttrType.CHOICE and text not in row.choices:
        return f"one of {', '.join(row.choices)}"
    return ""
