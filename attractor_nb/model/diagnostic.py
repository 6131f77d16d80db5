"""Findings of lint, with their severity and their fixes (spec 7.1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from attractor_nb.redaction import redacted
from attractor_nb.source import Span, render_excerpt

if TYPE_CHECKING:
    from collections.abc import Sequence


class Severity(StrEnum):
    """The severity of a finding."""

    ERROR = "error"
    """The pipeline will not run."""
    WARNING = "warning"
    """It will run, perhaps not as meant."""
    INFO = "info"
    """Worth knowing."""


@dataclass(frozen=True, slots=True)
class TextEdit:
    """Replace the text under ``span`` (an empty span inserts) by ``text``. The span is outermost."""

    span: Span
    text: str = field(repr=False)  # it is for the source, which may have secrets


@dataclass(frozen=True, slots=True)
class Fix:
    """A change of the source that mends a finding."""

    title: str  #: The instruction: "declare node `fixes`".
    edits: tuple[TextEdit, ...] = ()  #: Text edits that do it, not overlapping. Empty when only a person can do it.

    def __post_init__(self) -> None:
        """Keep secrets out of the title; the edits are for the source, which has them."""
        object.__setattr__(self, "title", redacted(self.title))


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding of one rule.

    Attributes:
        rule: Identifier of the rule.
        severity: ERROR, WARNING or INFO.
        message: What is wrong, naming the thing.
        node_id: The node concerned, or empty.
        edge: Source and target of the edge concerned, or None.
        fix: How to fix it, or None.
        span: Its place, or None.
    """

    rule: str
    severity: Severity
    message: str
    node_id: str = ""
    edge: tuple[str, str] | None = None
    fix: Fix | None = None
    span: Span | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Keep secrets out of what is shown."""
        for name in ("message", "node_id"):
            object.__setattr__(self, name, redacted(getattr(self, name)))
        if self.edge is not None:
            object.__setattr__(self, "edge", (redacted(self.edge[0]), redacted(self.edge[1])))

    @property
    def is_error(self) -> bool:
        """True if it keeps the pipeline from running."""
        return self.severity is Severity.ERROR

    @property
    def place(self) -> str:
        """``line:column``, or empty."""
        return f"{self.span.line}:{self.span.column}" if self.span else ""

    def report_lines(self) -> list[str]:
        """``error[rule]: message``, the excerpt with carets, the fix."""
        lines = [f"{self.severity}[{self.rule}]: {self.message}"]
        if self.span is not None:
            lines.extend(render_excerpt(self.span))
        if self.fix is not None:
            lines.append(f" fix: {self.fix.title}")
        return lines


MOST_LISTED: Final = 500
"""Findings of one graph in an answer, a page, a text or an error; of those beyond them only the number is told."""
_GRAVEST_FIRST: Final = tuple(Severity)


def listed(diagnostics: Sequence[Diagnostic]) -> list[tuple[int, Diagnostic]]:
    """The findings that are listed, in source order, each with its position among all; of too many the gravest."""
    positions = range(len(diagnostics))
    if len(diagnostics) > MOST_LISTED:
        by_weight = sorted(positions, key=lambda position: _GRAVEST_FIRST.index(diagnostics[position].severity))
        positions = sorted(by_weight[:MOST_LISTED])
    return [(position, diagnostics[position]) for position in positions]


def unlisted(diagnostics: Sequence[Diagnostic]) -> int:
    """The number of findings that are not listed."""
    return max(0, len(diagnostics) - MOST_LISTED)


def rest_line(diagnostics: Sequence[Diagnostic]) -> str:
    """The line behind the findings that are listed: ``and 1,500 more findings``; empty when all are listed.

    Findings that are all errors are called errors.
    """
    return rest_words(unlisted(diagnostics), "error" if all(found.is_error for found in diagnostics) else "finding")


def rest_words(count: int, noun: str = "finding") -> str:
    """The same for a number of findings that are not listed."""
    return f"and {count:,} more {noun}{'s' * (count != 1)}" if count else ""
