"""The replies of endpoints: an answer, or RFC 9457 problem details for each of our errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel
from starlette.responses import Response

from attractor_nb.decisions.planning.executable_surface import executable_surface
from attractor_nb.errors import (
    AlreadyAnswered,
    AnswerRefused,
    AttractorError,
    CheckpointCorrupt,
    ContextValueError,
    GateError,
    GraphChanged,
    NoSuchGate,
    OptionError,
    RunError,
    RunLocked,
    RunNotFound,
    SessionError,
    SessionNotFound,
    SourceError,
    StorageError,
    UntrustedSource,
    ValidationError,
)
from attractor_nb.model.diagnostic import Diagnostic, listed, unlisted
from attractor_nb.redaction import redacted, redacted_value
from attractor_nb.server.request_words import in_requests, report_in_requests
from attractor_nb.source import Span, render_excerpt
from attractor_nb.storage.files.strict_json import json_bytes
from attractor_nb.views.findings_table import finding_plain
from attractor_nb.views.shown_commands import shown_command

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attractor_nb.model.graph import Edge, Graph
    from attractor_nb.pipeline.pipeline import Pipeline
    from attractor_nb.studio.edit.editor import Editor


PROBLEM_TYPE: Final = "application/problem+json"
TYPE_PREFIX: Final = "urn:attractor-nb:problem:"

JSON_TYPE: Final = "application/json"


class Problem(Exception):
    """A request that is refused.

    Attributes:
        status: The HTTP status.
        kind: What it is, as the last part of the problem's type.
        title: The same for users; of each kind always the same words.
        detail: What is wrong with this request.
        hint: What to do about it, or empty.
        more: Further members of the document.
        headers: Further headers of the answer.
    """

    def __init__(
        self,
        status: int,
        kind: str,
        title: str,
        detail: str = "",
        *,
        hint: str = "",
        more: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail or title)
        self.status = status
        self.kind = kind
        self.title = title
        self.detail = detail or title
        self.hint = hint
        self.more = dict(more or {})
        self.headers = dict(headers or {})

    def to_plain(self) -> dict[str, Any]:
        """The problem document, without secrets: what is refused may be a text that has one."""
        return redacted_value(
            {
                "type": f"{TYPE_PREFIX}{self.kind}",
                "title": self.title,
                "status": self.status,
                "detail": self.detail,
                **({"hint": self.hint} if self.hint else {}),
                **self.more,
            }
        )


_KINDS: Final[tuple[tuple[type[AttractorError], int, str, str], ...]] = (
    (SourceError, 422, "source", "The source cannot be read"),
    (ValidationError, 422, "invalid-pipeline", "The pipeline has errors"),
    (UntrustedSource, 403, "untrusted-source", "The commands are not trusted"),
    (AlreadyAnswered, 409, "already-answered", "The gate has already been answered"),
    (AnswerRefused, 422, "answer-refused", "The answer is not valid"),
    (NoSuchGate, 404, "no-such-question", "There is no such open question"),
    (GateError, 409, "gate", "The gate does not accept this"),
    (SessionNotFound, 404, "no-session", "There is no session"),
    (SessionError, 409, "session", "The session cannot be read"),
    (RunNotFound, 404, "no-such-pipeline", "There is no such pipeline"),
    (RunLocked, 409, "locked", "Another process owns the run"),
    (GraphChanged, 409, "graph-changed", "The graph has changed since the run"),
    (CheckpointCorrupt, 409, "damaged", "The stored run is damaged"),
    (StorageError, 503, "storage", "The disk failed"),
    (RunError, 409, "run", "The run cannot do this"),
    (OptionError, 422, "option", "A value is invalid"),
    (ContextValueError, 422, "context-value", "A value cannot be stored"),
)
"""By class, the special before the general."""


def problem_of(error: AttractorError) -> Problem:
    """The problem document for one of our errors."""
    for kind, status, name, title in _KINDS:
        if isinstance(error, kind):
            more = _more_of(error)
            return Problem(status, name, title, error.message, hint=in_requests(error.hint), more=more)
    return internal_problem()


def stopping() -> Problem:
    """The problem for a request to a server that is shutting down."""
    return Problem(503, "stopping", "The server is shutting down", hint="try again when it is back")


def internal_problem() -> Problem:
    """An internal error; only the log has its details."""
    return Problem(500, "internal", "Internal server error", "see the server's log")


def _more_of(error: AttractorError) -> dict[str, Any]:
    match error:
        case ValidationError():
            return plain_findings(error.diagnostics)
        case SourceError(span=span) if span is not None:
            return {"line": span.line, "column": span.column, "report": report_in_requests(str(error))}
        case UntrustedSource():
            return {"surface_hash": error.surface_hash}
        case AnswerRefused():
            return {"fields": dict(error.fields)}
        case RunLocked():
            return {"owner": {name: error.owner[name] for name in ("pid", "host", "since") if name in error.owner}}
        case _:
            return {}


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that is complete."""

    body: Any  #: A model or plain values, sent as JSON; text and bytes are sent as they are.
    status: int = 200  #: The HTTP status.
    media_type: str = JSON_TYPE  #: Media type of the body.
    headers: Mapping[str, str] = field(default_factory=dict[str, str])  #: Further headers.

    @property
    def content(self) -> bytes:
        """The body's bytes."""
        if isinstance(self.body, bytes):
            return self.body
        if isinstance(self.body, str):
            return self.body.encode("utf-8", "replace")
        plain = self.body.model_dump() if isinstance(self.body, BaseModel) else self.body
        return json_bytes(plain)

    def to_response(self) -> Response:
        """The same for the wire."""
        return Response(self.content, self.status, dict(self.headers), self.media_type)


def problem_response(problem: Problem) -> Response:
    """A problem for the wire."""
    return Response(json_bytes(problem.to_plain()), problem.status, problem.headers, PROBLEM_TYPE)


# Lint's findings and a source's commands as plain values.


def plain_findings(diagnostics: Sequence[Diagnostic]) -> dict[str, Any]:
    """The findings of a text as fields of an answer: those that are listed, and how many more there are."""
    found = [plain_finding(one, number) for number, one in listed(diagnostics)]
    return {"diagnostics": found, "more_diagnostics": unlisted(diagnostics)}


def plain_finding(found: Diagnostic, number: int) -> dict[str, Any]:
    """A finding: what, where, how to fix it; without secrets, for it cites the source."""
    return redacted_value(
        {
            **finding_plain(found, number),
            "fix": in_requests(found.fix.title) if found.fix else "",
            "node": found.node_id,
            "edge": list(found.edge) if found.edge else None,
            **_shown_place(found.span),
            "report": report_in_requests("\n".join(found.report_lines())),
        }
    )


def plain_surface(graph: Graph) -> dict[str, Any]:
    """The commands that a graph executes, and the hash by which they are trusted; empty without commands."""
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
    """The nodes in the order of the text: what each is, its place, and its edges."""
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
    """The begin and end of a span, counted from 1; 0 without a span."""
    if span is None:
        return {"line": 0, "column": 0, "end_line": 0, "end_column": 0}
    outer = span.outermost()
    end_line, end_column = outer.source.position(outer.end)
    return {"line": span.line, "column": span.column, "end_line": end_line, "end_column": end_column}


def _shown_place(span: Span | None) -> dict[str, Any]:
    """The place of a finding, and the line with carets under it."""
    return {**place_of(span), "excerpt": "\n".join(render_excerpt(span)[1:]) if span is not None else ""}
