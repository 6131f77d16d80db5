"""Lint findings as a table: HTML for a notebook, text for a terminal. No finding, no table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from attractor_nb.model.diagnostic import listed, rest_line
from attractor_nb.views.drawings.drawing import SEVERITY_LETTERS
from attractor_nb.views.drawings.theme import Theme, root_class
from attractor_nb.views.markup import element, joined, style_sheet
from attractor_nb.views.output_styles import findings_css
from attractor_nb.views.table import aligned, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from attractor_nb.model.diagnostic import Diagnostic

_COLUMNS: Final = ("", "place", "message", "fix")


def findings_text(diagnostics: Sequence[Diagnostic]) -> str:
    """One line for each finding: mark, place, message and rule, fix; empty without findings."""
    if not diagnostics:
        return ""
    lines = aligned(
        [
            [
                SEVERITY_LETTERS[found.severity],
                found.place,
                f"{one_line(found.message)} [{found.rule}]",
                f"fix: {one_line(found.fix.title)}" if found.fix else "",
            ]
            for _, found in listed(diagnostics)
        ]
    )
    return f"{lines}\n{rest}" if (rest := rest_line(diagnostics)) else lines


def can_fix(found: Diagnostic) -> bool:
    """True if a click can fix it."""
    return bool(found.fix and found.fix.edits)


def finding_plain(found: Diagnostic, number: int) -> dict[str, Any]:
    """A finding as a view is given it, with its position among all findings of the text."""
    return {
        "number": number,
        "severity": found.severity.value,
        "letter": SEVERITY_LETTERS[found.severity],
        "place": found.place,
        "line": found.span.line if found.span else 0,
        "rule": found.rule,
        "message": found.message,
        "fix": found.fix.title if found.fix else "",
        "can_fix": can_fix(found),
    }


def findings_html(diagnostics: Sequence[Diagnostic], theme: Theme = "auto", *, place: str = "") -> str:
    """The findings as an HTML table; empty without findings.

    Args:
        theme: ``light``, ``dark``, or ``auto``, which follows the page.
        place: The key by which a live view finds the table, to stand in for it.
    """
    if not diagnostics:
        return ""
    head = element("tr", None, *(element("th", {"scope": "col"}, column) for column in _COLUMNS))
    table = element(
        "table",
        {"aria-label": "Lint findings"},
        element("thead", None, head),
        element("tbody", None, joined(_row(found) for _, found in listed(diagnostics))),
    )
    rest = [element("div", {"class": "place"}, words)] if (words := rest_line(diagnostics)) else []
    classes = f"attractor-findings {root_class()} {theme}"
    inner = element("div", {"class": classes}, style_sheet(findings_css()), table, *rest)
    return str(element("div", {"data-attractor-place": place}, inner) if place else inner)


def _row(found: Diagnostic) -> Markup:
    severity = {"class": "sign", "title": found.severity.value, "aria-label": found.severity.value}
    message = element("td", {"title": found.rule}, found.message)
    fix = found.fix.title if found.fix else ""
    return element(
        "tr",
        {"class": f"severity-{found.severity.value}"},
        element("td", severity, SEVERITY_LETTERS[found.severity]),
        element("td", {"class": "place"}, found.place),
        message,
        element("td", None, fix),
    )
