"""Lint's findings and a source's commands as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attractor_nb.decisions.planning.executable_surface import executable_surface
from attractor_nb.errors import OptionError
from attractor_nb.model.diagnostic import Severity
from attractor_nb.redaction import redacted, redacted_value
from attractor_nb.source import render_excerpt
from attractor_nb.views.drawings.marks import SEVERITY_LETTERS
from attractor_nb.views.findings_table import finding_plain
from attractor_nb.views.shown_commands import shown_command

if TYPE_CHECKING:
    from attractor_nb.errors import SourceError
    from attractor_nb.model.diagnostic import Diagnostic
    from attractor_nb.model.graph import Edge, Graph
    from attractor_nb.pipeline.pipeline import Pipeline
    from attractor_nb.source import Span
    from attractor_nb.studio.edit.editor import Editor


def plain_finding(found: Diagnostic) -> dict[str, Any]:
    """A finding: what, where, how to fix it; without secrets, for it cites the source."""
    return redacted_value(
        {
            **finding_plain(found),
            "node": found.node_id,
            "edge": list(found.edge) if found.edge else None,
            **_shown_place(found.span),
            "report": "\n".join(found.report_lines()),
        }
    )


def plain_syntax_error(error: SourceError) -> dict[str, Any]:
    """A text that does not parse, in the form of a finding."""
    return redacted_value(
        {
            "rule": "syntax",
            "severity": Severity.ERROR.value,
            "letter": SEVERITY_LETTERS[Severity.ERROR],
            "place": f"{error.span.line}:{error.span.column}" if error.span is not None else "",
            "message": error.message,
            "node": "",
            "edge": None,
            "fix": error.hint,
            "can_fix": False,
            **_shown_place(error.span),
            "report": str(error),
        }
    )


def plain_surface(graph: Graph) -> dict[str, Any]:
    """What a graph executes, and the hash by which it is trusted; empty where it executes nothing."""
    surface = executable_surface(graph)
    if not surface:
        return {"hash": "", "commands": []}
    return {
        "hash": surface.full_hash,
        "commands": [
            {
                "node": entry.node_id,
                "attribute": entry.attribute,
                "text": redacted(entry.text),
                "shown": shown_command(redacted(entry.text)),
            }
            for entry in surface.commands
        ],
    }


def mended(pipeline: Pipeline, number: int) -> Pipeline:
    """The pipeline after the fix of a finding, by its place among the diagnostics."""
    found = pipeline.diagnostics
    if number >= len(found):
        raise OptionError(f"there is no finding {number}: the text has {len(found)}")
    return _sendable(pipeline.edit().fix_one(found[number]), type(pipeline))


def renamed(pipeline: Pipeline, node: str, new_id: str) -> Pipeline:
    """The pipeline with another id for a node."""
    return _sendable(pipeline.edit().rename(node, new_id), type(pipeline))


def plain_outline(graph: Graph) -> list[dict[str, Any]]:
    """The nodes in the order of the text: what each is, where it stands, and its edges."""
    return redacted_value(
        [
            {
                "node": node.id,
                "label": node.label,
                "type": graph.handler_types[node.id],
                "shape": node.shape,
                "classes": list(node.classes),
                **_shown_place(node.span),
                "incoming": [_end(edge, edge.source) for edge in graph.incoming_edges(node.id)],
                "outgoing": [_end(edge, edge.target) for edge in graph.outgoing_edges(node.id)],
            }
            for node in graph.nodes.values()
        ]
    )


def _end(edge: Edge, other: str) -> dict[str, str]:
    return {"node": other, "label": edge.label, "condition": edge.condition}


def _sendable(editor: Editor, kind: type[Pipeline]) -> Pipeline:
    """The pipeline of a changed text, if the text may be sent back as it is."""
    if redacted(editor.source) != editor.source:
        raise OptionError("the text contains a secret, and responses never repeat secrets", hint="change it by hand")
    made = editor.pipeline()
    assert isinstance(made, kind), "an editor keeps the kind of its pipeline"
    return made


def place_of(span: Span | None) -> dict[str, int]:
    """Where something begins and ends, from 1 on; 0 of what stands nowhere."""
    if span is None:
        return {"line": 0, "column": 0, "end_line": 0, "end_column": 0}
    outer = span.outermost()
    end_line, end_column = outer.source.position(outer.end)
    return {"line": span.line, "column": span.column, "end_line": end_line, "end_column": end_column}


def _shown_place(span: Span | None) -> dict[str, Any]:
    """The place of a finding, and the line with carets under it."""
    return {**place_of(span), "excerpt": "\n".join(render_excerpt(span)[1:]) if span is not None else ""}
