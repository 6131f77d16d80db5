"""Lint's findings and a source's commands as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attractor_nb.decisions.executable_surface import executable_surface
from attractor_nb.redaction import redacted, redacted_value

if TYPE_CHECKING:
    from attractor_nb.errors import SourceError
    from attractor_nb.model.diagnostic import Diagnostic
    from attractor_nb.model.graph import Graph
    from attractor_nb.source import Span


def plain_finding(found: Diagnostic) -> dict[str, Any]:
    """A finding: what, where, how to mend it; without secrets, for it cites the source."""
    return redacted_value(
        {
            "rule": found.rule,
            "severity": found.severity.value,
            "message": found.message,
            "node": found.node_id,
            "edge": list(found.edge) if found.edge else None,
            "fix": found.fix.title if found.fix else "",
            **_place(found.span),
            "report": "\n".join(found.report_lines()),
        }
    )


def plain_syntax_error(error: SourceError) -> dict[str, Any]:
    """A text that does not parse, in the form of a finding."""
    return redacted_value(
        {
            "rule": "syntax",
            "severity": "error",
            "message": error.message,
            "node": "",
            "edge": None,
            "fix": error.hint,
            **_place(error.span),
            "report": str(error),
        }
    )


def plain_surface(graph: Graph) -> dict[str, Any]:
    """What a graph would execute, and the hash that vouches for it; empty where it executes nothing."""
    surface = executable_surface(graph)
    if not surface:
        return {"hash": "", "commands": []}
    return {
        "hash": surface.full_hash,
        "commands": [
            {"node": entry.node_id, "attribute": entry.attribute, "text": redacted(entry.text)}
            for entry in surface.commands
        ],
    }


def _place(span: Span | None) -> dict[str, int]:
    return {"line": span.line, "column": span.column} if span is not None else {"line": 0, "column": 0}
