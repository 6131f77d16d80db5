"""A pipeline's text while it is being changed: each change a small one, linted, taken back at will."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from attractor_nb.errors import OptionError
from attractor_nb.languages.dot import BYTE_ORDER_MARK, parse_syntax
from attractor_nb.languages.dot.structure_edits import add_edge, add_node, remove_edge, remove_node
from attractor_nb.model.vocabulary.attribute_kinds import Scope
from attractor_nb.redaction import redacted
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.source import SourceText
from attractor_nb.storage.files.user_files import write_file
from attractor_nb.studio.edit.draft import find_place, renamed, with_attributes
from attractor_nb.studio.edit.lint_report import LintReport
from attractor_nb.views.drawings.still import picture_bundle
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.findings_table import findings_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from attractor_nb.languages.dot import DotTree
    from attractor_nb.model.diagnostic import Diagnostic
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.studio.edit.draft import Target

_MOST_ROUNDS: Final = 10


class Editor:
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
        """What lint finds in the text as it is now."""
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
        """Whether there is a change to take back."""
        return bool(self._before)

    @property
    def can_redo(self) -> bool:
        """Whether a change was taken back and none was made since."""
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

        What a fix lays bare is mended, too: errors come first, then what is left (``LintReport.fix``).

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
            raise OptionError("there is no change to take back", hint="nothing was changed")
        self._after.append(self._now)
        self._now = self._before.pop()
        return self

    def redo(self) -> Self:
        """Make the change again that was taken back last."""
        if not self._after:
            raise OptionError("there is no change to make again", hint="undo one first")
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

    __repr__ = __str__

    def to_svg(self) -> str:
        """The graph as written, errors marked."""
        return render_svg(self._now.parsed, diagnostics=self.diagnostics)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002 - the signature of Jupyter's hook
        return picture_bundle(self.to_svg(), str(self))


def _diff(before: str, after: str, name: str, new_name: str) -> str:
    lines = difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), name, new_name)
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def _text_of(place: Path) -> str | None:
    """What a file holds; None when it is not there."""
    try:
        return place.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise OptionError(f"{place} cannot be read: {reason}", hint="save to another file") from None
