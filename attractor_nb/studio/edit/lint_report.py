"""The findings of a pipeline as a value that reads well in a cell, and their fixes."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

from attractor_nb.errors import OptionError
from attractor_nb.languages.dot import apply_edits
from attractor_nb.model.diagnostic import Diagnostic, Severity, TextEdit
from attractor_nb.redaction import redacted
from attractor_nb.views.findings_table import findings_text

if TYPE_CHECKING:
    from attractor_nb.source import SourceText


@dataclass(frozen=True, slots=True)
class FixPreview:
    """The preview of fixes. Nothing is changed until the caller uses ``text``."""

    text: str  #: The mended source.
    diff: str  #: The change as a unified diff; empty when there is nothing to fix.
    fixed: tuple[Diagnostic, ...]  #: The findings whose fix is in it.

    def __str__(self) -> str:
        return self.diff or "nothing to fix"

    __repr__ = __str__


class LintReport(Sequence[Diagnostic]):
    """All findings of a pipeline in source order."""

    def __init__(self, diagnostics: Sequence[Diagnostic], source: SourceText | None) -> None:
        self._diagnostics = tuple(diagnostics)
        self._source = source

    @overload
    def __getitem__(self, index: int) -> Diagnostic: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Diagnostic, ...]: ...
    def __getitem__(self, index: int | slice) -> Diagnostic | tuple[Diagnostic, ...]:
        return self._diagnostics[index]

    def __len__(self) -> int:
        return len(self._diagnostics)

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self._diagnostics)

    def of(self, severity: Severity) -> tuple[Diagnostic, ...]:
        """The findings of one severity."""
        return tuple(found for found in self._diagnostics if found.severity is severity)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The findings that keep the pipeline from running."""
        return self.of(Severity.ERROR)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """The findings after which it runs, perhaps not as meant."""
        return self.of(Severity.WARNING)

    def fix(self, *rules: str) -> FixPreview:
        """Preview the fixes of all rules, or of those named, in the source.

        Errors are mended first: a warning may be nothing but their consequence. It is left for the next
        round, as is a fix that would overlap an earlier one.
        """
        mendable = [
            found
            for found in self._diagnostics
            if found.fix is not None and found.fix.edits and (not rules or found.rule in rules)
        ]
        return self._preview([found for found in mendable if found.is_error] or mendable)

    def fix_one(self, finding: Diagnostic) -> FixPreview:
        """Preview the fix of one finding in the source."""
        if not any(found is finding for found in self._diagnostics):
            raise OptionError("this finding is not in the report", hint="lint the text again")
        if finding.fix is None or not finding.fix.edits:
            raise OptionError(f"{finding.rule} has no fix that can be applied", hint="correct the text by hand")
        return self._preview([finding])

    def _preview(self, chosen: Sequence[Diagnostic]) -> FixPreview:
        if self._source is None:
            return FixPreview("", "", ())
        taken: list[TextEdit] = []
        fixed: list[Diagnostic] = []
        for found in chosen:
            assert found.fix is not None, "mendable findings have a fix"
            if all(_is_apart(edit, other) for edit in found.fix.edits for other in taken):
                taken.extend(edit for edit in found.fix.edits if edit not in taken)
                fixed.append(found)
        text = apply_edits(self._source, taken)
        diff = difflib.unified_diff(
            self._source.text.splitlines(keepends=True),
            text.splitlines(keepends=True),
            self._source.name,
            f"{self._source.name} (fixed)",
        )
        return FixPreview(text, redacted("".join(diff)), tuple(fixed))

    def __str__(self) -> str:
        return findings_text(self._diagnostics) or "no findings"

    __repr__ = __str__


def _is_apart(edit: TextEdit, other: TextEdit) -> bool:
    """True if two edits can both be made; the same edit twice counts as one."""
    return edit == other or edit.span.end <= other.span.start or other.span.end <= edit.span.start
