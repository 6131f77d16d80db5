"""The DOT files that the page shows and may save, and what an editor's page asks about any text."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.errors import SourceError
from attractor_nb.redaction import redacted, redacted_value
from attractor_nb.server.replies import Problem, Reply, place_of, plain_findings
from attractor_nb.server.response_models import DocumentItem, DocumentList, DocumentText, Edited, Picture
from attractor_nb.server.run_service import posted_pipeline
from attractor_nb.storage.files.document_files import Document, DocumentConflict, DocumentFolder, NoDocument

if TYPE_CHECKING:
    from attractor_nb.model.graph import Edge, Graph, Node
    from attractor_nb.server.request_calls import Call

_SECRET: Final = "it holds a secret, and no answer repeats one"  # noqa: S105 - words about one
_TYPES: Final = {"svg": "image/svg+xml", "mermaid": "text/vnd.mermaid", "png": "image/png"}


def list_documents(call: Call) -> Reply:
    """The DOT files below the folder that is served."""
    server = call.server
    if server.documents is None:
        return Reply(DocumentList(documents=[], is_served=False, is_editable=False, is_cut=False))
    found, is_cut = server.documents.list()
    lines = [DocumentItem(path=line.path, bytes=line.size, modified=line.modified) for line in found]
    return Reply(DocumentList(documents=lines, is_served=True, is_editable=server.settings.is_editing, is_cut=is_cut))


def get_document(call: Call) -> Reply:
    """A DOT file."""
    folder, path = _folder(call), call.path["path"]
    try:
        document = folder.read(path)
    except NoDocument as error:
        raise _no_document(path, error) from None
    return Reply(_shown(call, document))


def save_document(call: Call) -> Reply:
    """Save a DOT file, if it still is what was read."""
    folder, path, change = _folder(call), call.path["path"], call.body
    if not call.server.settings.is_editing:
        raise Problem(
            403,
            "read-only",
            "Files are only shown here",
            "the server was started without --edit",
            hint="attractor-nb serve --edit",
        )
    try:
        document = folder.write(path, change.text, change.digest)
    except NoDocument as error:
        raise _no_document(path, error) from None
    except DocumentConflict as error:
        more = {"document": _shown(call, error.document).model_dump()} if error.document else {}
        raise Problem(
            409,
            "document-changed",
            "The file is not what was read",
            f"{path}: {error}",
            hint="both texts are kept: look at the file's, then save over it or take it",
            more=more,
        ) from None
    except OSError as error:
        raise Problem(503, "storage", "The disk refused", f"{path} cannot be written: {error.strerror}") from None
    return Reply(_shown(call, document))


def edit(call: Call) -> Reply:
    """Change a text as an editor's page asks; nothing is kept."""
    from attractor_nb.studio.edit.editor_requests import EditorRequests  # noqa: PLC0415 - see serving.py

    asked = call.body
    try:
        editor = posted_pipeline(asked.source).edit()
    except SourceError as error:
        return Reply(Edited(replies=[], **plain_findings(error.diagnostics)))
    service = EditorRequests(editor)
    replies, is_changed = service.answer(asked.message) if asked.message is not None else ([], False)
    after = editor.source
    if is_changed and redacted(after) != after:
        refusal = {"kind": "said", "words": f"Nothing was changed: {_SECRET}. Change it by hand.", "is_error": True}
        return Reply(Edited(replies=[refusal]))
    state = {**service.state(), "version": 0} if is_changed or asked.message is None else None
    return Reply(
        Edited(
            replies=redacted_value(replies),
            state=state,
            source=after if is_changed else "",
            places=plain_places(editor.pipeline().parsed) if state is not None else [],
        )
    )


def picture(call: Call) -> Reply:
    """A text as a picture to take along."""
    asked = call.body
    pipeline = posted_pipeline(asked.source)
    name = redacted(pipeline.name) or "pipeline"
    encoding = "text"
    if asked.format == "mermaid":
        content = redacted(pipeline.to_mermaid())
    elif asked.format == "svg":
        content = pipeline.to_svg()
    else:
        from attractor_nb.studio.export_page import png_of  # noqa: PLC0415 - what draws is an extra

        content = base64.b64encode(png_of(pipeline.to_svg(), theme=asked.theme)).decode("ascii")
        encoding = "base64"
    return Reply(Picture(name=name, media_type=_TYPES[asked.format], encoding=encoding, content=content))


def plain_places(graph: Graph) -> list[dict[str, Any]]:
    """The positions of nodes and edges: the span of each name, and as ``whole`` the span to its last attribute."""
    from attractor_nb.studio.edit.editor import whole_span  # noqa: PLC0415 - as above

    things: list[tuple[dict[str, Any], Node | Edge]] = [
        *(({"node": node.id}, node) for node in graph.nodes.values()),
        *(({"edge": number}, edge) for number, edge in enumerate(graph.edges)),
    ]
    return [
        {**about, **place_of(thing.span), "whole": place_of(whole_span(thing, thing.span))}
        for about, thing in things
        if thing.span is not None
    ]


def _folder(call: Call) -> DocumentFolder:
    if call.server.documents is None:
        raise Problem(404, "no-documents", "No files are shown here", hint="attractor-nb serve --documents DIR")
    return call.server.documents


def _shown(call: Call, document: Document) -> DocumentText:
    if redacted(document.text) != document.text:
        raise Problem(409, "secret", "The file cannot be shown", f"{document.path}: {_SECRET}")
    return DocumentText(
        path=document.path,
        text=document.text,
        digest=document.digest,
        modified=document.modified,
        is_editable=call.server.settings.is_editing,
    )


def _no_document(path: str, error: NoDocument) -> Problem:
    return Problem(404, "no-such-document", "There is no such file", f"{path[:200]}: {error}")
