"""``lsp``: a language server for DOT files, so that any editor shows the findings and meanings that JupyterLab shows.

Lint and ``studio/edit`` answer for a text and an offset; here are the texts of the client and the places in them.
Nothing of a text is executed. Its files are those that ``validate`` reads in the folder that the editor has opened.
The loop only takes messages: each document has one thread, which reads the latest text.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import os
import sys
from bisect import bisect_right
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from lsprotocol import types
from pygls.exceptions import FeatureRequestError, JsonRpcContentModified, JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path, uri_scheme

from attractor_nb.cli.reporting import ExitCode, in_options
from attractor_nb.errors import AttractorError, InputsSyntaxError, OptionError, SourceError
from attractor_nb.languages.dot import BYTE_ORDER_MARK, parse_syntax
from attractor_nb.lint import BUILT_IN_RULES
from attractor_nb.model.diagnostic import Diagnostic, Fix, Severity, TextEdit, listed, rest_line
from attractor_nb.pipeline.pipeline import Pipeline
from attractor_nb.redaction import redacted
from attractor_nb.source import SourceText, Span
from attractor_nb.studio.edit.completion import suggest_in
from attractor_nb.studio.edit.editor import edits_between, references, whole_span
from attractor_nb.studio.edit.word_meanings import meaning_at, node_at
from attractor_nb.views.findings_table import can_fix

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from attractor_nb.model.graph import Node
    from attractor_nb.model.inputs import Input

    Answer = Callable[["OpenText", "EditorText", Any], Any]

NAME: Final = "attractor-nb"
DELAY_SECONDS: Final = 0.3
"""Pause after a key before a text is read, as in JupyterLab."""
LONGEST: Final = 500_000
"""Characters of the longest text that is read, as in JupyterLab."""
UNSAVED: Final = "a text that is not saved"
"""The origin of a text that is in no file."""
FIX_ALL: Final = f"{types.CodeActionKind.SourceFixAll.value}.{NAME}"
TRIGGERS: Final = tuple('[,= "${.#>&')
REQUEST_FAILED: Final = types.LSPErrorCodes.RequestFailed.value
_SEVERITIES: Final = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFO: types.DiagnosticSeverity.Information,
}
_KINDS: Final = {
    "keyword": types.CompletionItemKind.Keyword,
    "property": types.CompletionItemKind.Property,
    "value": types.CompletionItemKind.Value,
    "variable": types.CompletionItemKind.Variable,
}
_CODECS: Final = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
_RULES: Final = {rule.name: rule.page.partition("\n")[0].replace("`", "") for rule in BUILT_IN_RULES}


class EditorText:
    """A version of a text as an editor has it: lines, and columns in code units. It never changes."""

    def __init__(self, lines: list[str], version: int = 0, encoding: str = "utf-16") -> None:
        self._lines = lines
        self.version = version
        self._encoding = encoding

    @classmethod
    def of(cls, text: str, version: int = 0, encoding: str = "utf-16") -> EditorText:
        """A text, its version, and the encoding of its positions: ``utf-8``, ``utf-16`` or ``utf-32``."""
        return cls(_lines_of(text), version, encoding)

    @cached_property
    def text(self) -> str:
        """The whole text."""
        return "".join(self._lines)

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *accumulate(len(line) for line in self._lines[:-1])]

    @property
    def is_too_long(self) -> bool:
        """True if it is not read."""
        return len(self.text) > LONGEST

    def changed(self, change: types.TextDocumentContentChangeEvent, version: int = 0) -> EditorText:
        """The text after a change of a range, or of all."""
        if not isinstance(change, types.TextDocumentContentChangePartial):
            return EditorText.of(change.text, version, self._encoding)
        lines = self._lines
        first, start = self._place(change.range.start)
        last, end = self._place(change.range.end)
        above = max(0, first - 1)  # a change may begin with the second character of its line end
        before = "".join([*lines[above:first], lines[first][:start]])
        new = _lines_of(before + change.text + lines[last][end:])
        if last + 1 < len(lines):
            new.pop()  # it is empty: the last line that was changed has its end still
        return EditorText([*lines[:above], *new, *lines[last + 1 :]], version, self._encoding)

    def again(self) -> EditorText:
        """The same text, to be read once more."""
        return EditorText(self._lines, self.version, self._encoding)

    def offset(self, position: types.Position) -> int:
        """The offset of a position; the end of its line, or of the text, for one beyond it."""
        line, column = self._place(position)
        return self._starts[line] + column

    def position(self, offset: int) -> types.Position:
        """The position of an offset."""
        line = bisect_right(self._starts, offset) - 1
        before = self.text[self._starts[line] : offset]
        codec, width = _CODECS[self._encoding]
        units = len(before) if before.isascii() else len(before.encode(codec, "replace")) // width
        return types.Position(line, units)

    def range(self, start: int, end: int) -> types.Range:
        """The range between two offsets."""
        return types.Range(self.position(start), self.position(end))

    def range_of(self, span: Span) -> types.Range:
        """The range of a span."""
        return self.range(span.start, span.end)

    def shown_range(self, span: Span | None) -> types.Range:
        """The range to mark: a character beside an empty span, the first line without one."""
        if span is None:
            return self.range(0, len(self._lines[0].rstrip("\r\n")))
        _, start, end = span.outermost()
        if start < end:
            return self.range(start, end)
        if self.text[start : start + 1] not in {"", "\r", "\n"}:
            return self.range(start, start + 1)
        line_start = self._starts[bisect_right(self._starts, start) - 1]
        return self.range(max(line_start, start - 1), start)

    def _place(self, position: types.Position) -> tuple[int, int]:
        """The line and the character of a position, both of this text."""
        if position.line >= len(self._lines):
            return len(self._lines) - 1, len(self._lines[-1])
        line = self._lines[position.line].rstrip("\r\n")
        if line.isascii():
            return position.line, min(position.character, len(line))
        codec, width = _CODECS[self._encoding]
        before = line.encode(codec, "replace")[: position.character * width]
        return position.line, len(before.decode(codec, "ignore"))


def _lines_of(text: str) -> list[str]:
    """The lines of a text with their ends, as the protocol has them; the last one has none."""
    lines = list(io.StringIO(text, newline=""))
    return lines if lines and not lines[-1].endswith(("\r", "\n")) else [*lines, ""]


@dataclass(frozen=True, slots=True)
class Reading:
    """All that is known of a text."""

    text: EditorText
    pipeline: Pipeline | None = None  #: None where the text does not parse.
    findings: tuple[Diagnostic, ...] = ()  #: In source order.
    inputs: Sequence[Input] = ()  #: Those that the text declares.


def read(text: EditorText, place: Path | None, folders: Sequence[str] = ()) -> Reading:
    """Read and lint a text. A mistake in it is a finding, also one of its syntax.

    Args:
        text: The text.
        place: Its file; None for a text that is not saved, which has no files beside it.
        folders: The folders that the editor has opened, for the children of pipelines in them.
    """
    if text.is_too_long:
        message = f"the text has more than {LONGEST:,} characters, and is not checked while you type"
        fix = Fix(f"check it in a terminal: attractor-nb validate {place.name if place else 'FILE'}")
        return Reading(text, findings=(Diagnostic("not_checked", Severity.INFO, message, fix=fix),))
    # a mark of the byte order is no part of a pipeline; a blank keeps all offsets
    plain = text.text.replace(BYTE_ORDER_MARK, " ", 1) if text.text.startswith(BYTE_ORDER_MARK) else text.text
    source = SourceText(plain, place.name if place else "<editor>")
    own = Path(os.path.realpath(place)) if place else None
    roots = [folder for folder in folders if own is not None and own.is_relative_to(folder)]
    try:
        pipeline = Pipeline(source, origin=place or UNSAVED, child_roots=roots)
    except SourceError as error:
        return Reading(text, findings=error.diagnostics)
    except AttractorError as error:
        fix = Fix(error.hint) if error.hint else None
        return Reading(text, findings=(Diagnostic("syntax", Severity.ERROR, error.message, fix=fix),))
    try:
        inputs = pipeline.inputs
    except InputsSyntaxError:  # a finding tells it
        inputs = ()
    return Reading(text, pipeline, pipeline.diagnostics, inputs)


@dataclass(slots=True)
class OpenText:
    """A document that the editor has opened."""

    uri: str
    text: EditorText  #: The latest.
    place: Path | None  #: Its file.
    folders: Callable[[], list[str]]  #: Gives the folders that the editor has opened.
    #: Its only thread, so that readings of slow texts do not pile up.
    worker: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "attractor-nb-document"))
    timer: asyncio.TimerHandle | None = None  #: Runs until the text is read.
    _reading: Reading | None = None

    def read(self, text: EditorText) -> Reading:
        """One of its texts, read once; in the document's thread only."""
        if self._reading is None or self._reading.text is not text:
            self._reading = read(text, self.place, self.folders())
        return self._reading

    def close(self) -> None:
        """Read it no more."""
        if self.timer is not None:
            self.timer.cancel()
        self.worker.shutdown(wait=False, cancel_futures=True)


class DotServer(LanguageServer):
    """The server of one editor."""

    def __init__(self) -> None:
        super().__init__(NAME, version("attractor_nb"), max_workers=1)  # pyright: ignore[reportUnknownMemberType] - untyped *args
        self.documents: dict[str, OpenText] = {}
        self._publishing: set[asyncio.Task[None]] = set()
        # Texts are kept here: pygls ends lines where the protocol does not, for one at a form feed.
        keeping: list[tuple[str, Callable[[Any], None]]] = [
            (types.TEXT_DOCUMENT_DID_OPEN, self._open),
            (types.TEXT_DOCUMENT_DID_CHANGE, self._change),
            (types.TEXT_DOCUMENT_DID_SAVE, self._read_all_again),
            (types.TEXT_DOCUMENT_DID_CLOSE, self._close),
        ]
        for name, keep in keeping:
            self.protocol.fm.add_builtin_feature(name, keep)  # pyright: ignore[reportUnknownMemberType] - untyped too
        answers: list[tuple[str, object, Answer]] = [
            (types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=TRIGGERS), self._completion),
            (types.TEXT_DOCUMENT_HOVER, None, self._hover),
            (types.TEXT_DOCUMENT_DEFINITION, None, self._definition),
            (types.TEXT_DOCUMENT_REFERENCES, None, self._references),
            (types.TEXT_DOCUMENT_PREPARE_RENAME, None, self._rename_range),
            (types.TEXT_DOCUMENT_RENAME, None, self._rename),
            (types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, None, self._symbols),
            (types.TEXT_DOCUMENT_CODE_ACTION, _ACTIONS, self._actions),
        ]
        for name, options, answer in answers:
            self.feature(name, options)(self._answering(answer))

    # -- texts -------------------------------------------------------------------------------------------

    def _open(self, params: types.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        path = to_fs_path(item.uri) if uri_scheme(item.uri) == "file" else None
        encoding = str(getattr(self.workspace.position_encoding, "value", self.workspace.position_encoding))
        text = EditorText.of(item.text, item.version, encoding)
        document = OpenText(item.uri, text, Path(path) if path else None, self._folders)
        self.documents[item.uri] = document
        self._read_soon(document, 0)

    def _change(self, params: types.DidChangeTextDocumentParams) -> None:
        document = self.documents[params.text_document.uri]
        for change in params.content_changes:
            document.text = document.text.changed(change, params.text_document.version)
        self._read_soon(document, DELAY_SECONDS)

    def _close(self, params: types.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        self.documents.pop(uri).close()
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    def _read_all_again(self, _: types.DidSaveTextDocumentParams) -> None:
        """Read all texts: what was saved may be the child of another one."""
        for document in self.documents.values():
            document.text = document.text.again()
            self._read_soon(document, 0)

    def report_server_error(self, error: Exception, source: object) -> None:
        """Tell the editor's log, in place of a message over the text; a request has its own answer."""
        if source is not FeatureRequestError:
            self._report(error)

    def shutdown(self) -> None:
        """End, after the readings that have begun."""
        for document in self.documents.values():
            document.close()
        super().shutdown()

    def _folders(self) -> list[str]:
        """The real paths of the folders that the editor has opened."""
        root = [self.workspace.root_uri] if self.workspace.root_uri else []
        uris = [*(folder.uri for folder in self.workspace.folders.values()), *root]
        return [os.path.realpath(path) for uri in uris if uri_scheme(uri) == "file" and (path := to_fs_path(uri))]

    # -- findings ----------------------------------------------------------------------------------------

    def _read_soon(self, document: OpenText, delay: float) -> None:
        if document.timer is not None:
            document.timer.cancel()
        document.timer = asyncio.get_running_loop().call_later(delay, self._begin, document)

    def _begin(self, document: OpenText) -> None:
        task = asyncio.ensure_future(self._publish(document))
        self._publishing.add(task)
        task.add_done_callback(self._publishing.discard)

    async def _publish(self, document: OpenText) -> None:
        """Send the findings of the latest text; those of an older one are of no use."""
        try:
            loop = asyncio.get_running_loop()
            text, shown = await loop.run_in_executor(document.worker, _shown_findings, document)
        except Exception as error:  # noqa: BLE001 - no text ends the server
            self._report(error)
            return
        if text is document.text and self.documents.get(document.uri) is document:
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(document.uri, shown, text.version))

    def _report(self, error: Exception) -> None:
        """Tell the editor's log of an internal error, without what the text has."""
        message = f"internal error: {type(error).__name__}: {redacted(str(error))[:500]}"
        self.window_log_message(types.LogMessageParams(types.MessageType.Error, message))

    # -- answers -----------------------------------------------------------------------------------------

    def _answering(self, answer: Answer) -> Callable[[Any], Coroutine[Any, Any, Any]]:
        """The handler of a request: the answer is made in the document's thread."""

        async def handle(params: Any) -> Any:
            document = self.documents.get(params.text_document.uri)
            if document is None or document.text.is_too_long:
                return None
            text = document.text

            def answered() -> Any:
                if document.text is not text:
                    raise JsonRpcContentModified("the text has changed since")
                return answer(document, text, params)

            try:
                return await asyncio.get_running_loop().run_in_executor(document.worker, answered)
            except JsonRpcException:
                raise
            except AttractorError as error:
                hint = f"; {in_options(error.hint)}" if error.hint else ""
                raise JsonRpcException(f"{error.message}{hint}", REQUEST_FAILED) from None
            except Exception as error:  # noqa: BLE001 - no request ends the server
                self._report(error)
                return None

        return handle

    def _completion(self, document: OpenText, text: EditorText, params: types.CompletionParams) -> types.CompletionList:
        from attractor_nb.backends.llm.metered_requests import listed_models  # noqa: PLC0415 - a list of a megabyte

        del document
        cursor = text.offset(params.position)
        found = suggest_in(text.text, cursor, listed_models)
        replaced = text.range(cursor - len(found.fragment), cursor)
        items = [
            types.CompletionItem(
                label=word.text,
                kind=_KINDS[word.kind],
                detail=word.meaning.replace("`", "") or None,
                sort_text=f"{number:05}",
                filter_text=word.text,
                text_edit=types.TextEdit(replaced, word.text),
            )
            for number, word in enumerate(found.items)
        ]
        return types.CompletionList(is_incomplete=False, items=items)

    def _hover(self, document: OpenText, text: EditorText, params: types.HoverParams) -> types.Hover | None:
        """The meaning of a word, and of the rules of the findings there. Plain text: a label could have links."""
        reading, offset = document.read(text), text.offset(params.position)
        graph = reading.pipeline.graph if reading.pipeline else None
        meaning = meaning_at(text.text, offset, graph, reading.inputs)
        here = [found.rule for found in reading.findings if _is_at(found.span, offset, offset)]
        rules = [f"{name}: {_RULES[name]}" for name in dict.fromkeys(here) if name in _RULES]
        parts = [*(["\n".join(meaning.lines)] if meaning else []), *rules]
        if not parts:
            return None
        content = types.MarkupContent(types.MarkupKind.PlainText, "\n\n".join(parts))
        return types.Hover(content, text.range(meaning.start, meaning.end) if meaning else None)

    def _definition(
        self, document: OpenText, text: EditorText, params: types.DefinitionParams
    ) -> types.Location | None:
        named = _named(document, text, params.position)
        span = named.node.span if named else None
        return None if span is None else types.Location(document.uri, text.range_of(span.outermost()))

    def _references(
        self, document: OpenText, text: EditorText, params: types.ReferenceParams
    ) -> list[types.Location] | None:
        named = _named(document, text, params.position)
        if named is None:
            return None
        declared = named.node.span.outermost().start if named.node.span else None
        return [
            types.Location(document.uri, text.range_of(span))
            for span in references(parse_syntax(named.source), named.node.id)
            if params.context.include_declaration or span.start != declared
        ]

    def _rename_range(
        self, document: OpenText, text: EditorText, params: types.PrepareRenameParams
    ) -> types.PrepareRenamePlaceholder | None:
        named = _named(document, text, params.position)
        return named and types.PrepareRenamePlaceholder(text.range(*named.place), named.node.id)

    def _rename(self, document: OpenText, text: EditorText, params: types.RenameParams) -> types.WorkspaceEdit:
        named = _named(document, text, params.position)
        if named is None:
            raise OptionError("there is no node here", hint="put the cursor on the id of a node")
        after = named.pipeline.edit().rename(named.node.id, params.new_name).source
        return self._edit(document, text, edits_between(named.source, after))

    def _symbols(
        self, document: OpenText, text: EditorText, params: types.DocumentSymbolParams
    ) -> list[types.DocumentSymbol]:
        del params
        pipeline = document.read(text).pipeline
        if pipeline is None:
            return []
        return [
            types.DocumentSymbol(
                name=redacted(node.id),
                detail=redacted(node.label if node.label != node.id else pipeline.graph.handler_types[node.id]),
                kind=types.SymbolKind.Function,
                range=text.range_of(whole_span(node, node.span.outermost())),
                selection_range=text.range_of(node.span.outermost()),
            )
            for node in pipeline.graph.nodes.values()
            if node.span is not None
        ]

    def _actions(self, document: OpenText, text: EditorText, params: types.CodeActionParams) -> list[types.CodeAction]:
        """The fixes of the findings in a range, and those of all if that is asked for."""
        reading, wanted = document.read(text), params.context.only
        pipeline = reading.pipeline
        if pipeline is None or pipeline.source is None:
            return []
        if wanted and any(_is_within(FIX_ALL, kind) for kind in wanted):
            edits = edits_between(pipeline.source, pipeline.edit().fix().source)
            edit = self._edit(document, text, edits)
            return [types.CodeAction("Fix all findings", FIX_ALL, edit=edit)] if edits else []
        if wanted and not any(_is_within(types.CodeActionKind.QuickFix.value, kind) for kind in wanted):
            return []
        start, end = text.offset(params.range.start), text.offset(params.range.end)
        return [
            types.CodeAction(
                f"Fix: {found.fix.title}",
                types.CodeActionKind.QuickFix,
                diagnostics=[_shown_finding(text, found)],
                is_preferred=True,
                edit=self._edit(document, text, found.fix.edits),
            )
            for _, found in listed(reading.findings)
            if found.fix is not None and can_fix(found) and _is_at(found.span, start, end)
        ]

    def _edit(self, document: OpenText, text: EditorText, edits: Sequence[TextEdit]) -> types.WorkspaceEdit:
        """The edits as the client takes them: of this version only, where it can say so."""
        made = [types.TextEdit(text.range_of(edit.span), edit.text) for edit in edits]
        workspace = self.client_capabilities.workspace
        if workspace and workspace.workspace_edit and workspace.workspace_edit.document_changes:
            known = types.OptionalVersionedTextDocumentIdentifier(document.uri, text.version)
            return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(known, made)])
        return types.WorkspaceEdit(changes={document.uri: made})


_ACTIONS: Final = types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix, FIX_ALL])


def _is_within(kind: str, wanted: str) -> bool:
    """True if a kind of actions is one that is wanted, or below it."""
    return kind == wanted or kind.startswith(f"{wanted}.")


def _is_at(span: Span | None, start: int, end: int) -> bool:
    """True if a finding touches a range; one without a place is at the beginning."""
    outer = span.outermost() if span else None
    return (outer.start <= end and start <= outer.end) if outer else start == 0


def _shown_findings(document: OpenText) -> tuple[EditorText, list[types.Diagnostic]]:
    """The findings of the latest text."""
    text = document.text
    found = document.read(text).findings
    shown = [_shown_finding(text, each) for _, each in listed(found)]
    if more := rest_line(found):
        shown.append(_shown_finding(text, Diagnostic("more_findings", Severity.INFO, more)))
    return text, shown


def _shown_finding(text: EditorText, found: Diagnostic) -> types.Diagnostic:
    """A finding; a fix that only a person can make is part of its message."""
    by_hand = f"\n{in_options(found.fix.title)}" if found.fix and not can_fix(found) else ""
    return types.Diagnostic(
        text.shown_range(found.span),
        f"{found.message}{by_hand}",
        severity=_SEVERITIES[found.severity],
        code=found.rule,
        source=NAME,
    )


@dataclass(frozen=True, slots=True)
class _Named:
    """A node where a text names it."""

    pipeline: Pipeline
    source: SourceText
    node: Node
    place: tuple[int, int]  #: Offsets at which its id begins and ends.


def _named(document: OpenText, text: EditorText, position: types.Position) -> _Named | None:
    """The node that is named at a position."""
    pipeline = document.read(text).pipeline
    if pipeline is None or pipeline.source is None:
        return None
    found = node_at(text.text, text.offset(position), pipeline.graph)
    return found and _Named(pipeline, pipeline.source, pipeline.graph.nodes[found.node_id], (found.start, found.end))


def serve_editor() -> ExitCode:
    """Serve one editor over stdin and stdout until it closes them."""
    logging.getLogger("pygls").setLevel(logging.CRITICAL)  # it would write whole requests to stderr
    # Only the protocol goes to the editor: what anything else prints is for stderr. The folder is one in which
    # the user has no files: the current directory counts among those whose pipelines may be children.
    with open(os.dup(1), "wb") as out, contextlib.chdir(Path(__file__).parent):  # noqa: PTH123 - a descriptor
        os.dup2(2, 1)
        DotServer().start_io(cast("io.BufferedReader", sys.stdin.buffer), out)
    return ExitCode.SUCCESS
