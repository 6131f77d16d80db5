"""Texts of a pipeline in files beside the pipeline's: read once, put in place before lint.

A file is of a text's kind, not hidden and below the folder of the DOT file, links followed; a text of the
caller's own has the working directory. A graph that came from a stream or over the network has no folder: it
may not make its host read a file. What was read is what runs, is hashed and is kept: a run directory has the
texts and not the names.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct, field

from attractor_nb.errors import DotSyntaxError, OptionError
from attractor_nb.languages.dot import DotDocument, apply_edits, read_dot
from attractor_nb.languages.dot.writer import quote
from attractor_nb.model.diagnostic import TextEdit
from attractor_nb.model.graph import MARK, Graph, TextFileProblem, literal, marked_texts, named_file, with_texts
from attractor_nb.model.texts import nearest, suggestion
from attractor_nb.runtime.prepare.sources import read_source
from attractor_nb.source import SourceText
from attractor_nb.storage.files.user_files import Outside, names_below, read_below

if TYPE_CHECKING:
    from collections.abc import Mapping


MAX_TEXT_BYTES: Final = 1024 * 1024
TEXT_KINDS: Final = frozenset({".md", ".txt", ".prompt", ".json", ".yaml", ".css"})
"""File suffixes of texts (ruling 43)."""
_LITERALLY: Final = f"or write {MARK}{MARK} for a text that begins with {MARK}"


class _Refused(Exception):
    """A file cannot be had."""

    def __init__(self, message: str, remedy: str, near: str = "") -> None:
        super().__init__(message)
        self.message, self.remedy, self.near = message, remedy, near


class TextFiles(Struct):
    """The files that texts of one pipeline name."""

    folder: Path | None  #: Their folder; None when none may be read.
    origin: str = ""  #: Origin of the pipeline, when it has no folder.
    #: Texts that were read, by name: each once, even if a file changes.
    read: dict[str, str] = field(default_factory=dict[str, str])

    def put_in(self, graph: Graph) -> tuple[Graph, list[TextFileProblem]]:
        """The graph with the texts in place of the names of files, and what is wrong with the others."""
        texts, problems = self._texts(graph)
        return with_texts(graph, texts), problems

    def contained(self, document: DotDocument) -> str:
        """The text of a pipeline with the texts of files in it; a file that cannot be had stays a name."""
        edits: dict[TextEdit, None] = {}  # a default block occurs once, for many nodes
        for (node_id, attribute), text in self._texts(document.graph)[0].items():
            thing = document.graph.nodes[node_id] if node_id else document.graph
            if named_file(thing.get(attribute, str, "")) is not None:
                edits[TextEdit(thing.attr_spans[attribute].value, quote(literal(text)))] = None
        return apply_edits(document.source, list(edits)) if edits else document.source.text

    def contained_graph(self, graph: Graph) -> Graph:
        """As ``contained``, of a graph."""
        texts = self._texts(graph)[0]
        return with_texts(graph, {place: literal(text) for place, text in texts.items()})

    def _texts(self, graph: Graph) -> tuple[dict[tuple[str, str], str], list[TextFileProblem]]:
        """The replacements of the texts that begin with the mark, by node and attribute, and the problems."""
        texts: dict[tuple[str, str], str] = {}
        problems: list[TextFileProblem] = []
        for node_id, attribute, text in marked_texts(graph):
            try:
                texts[node_id, attribute] = self._text(text)
            except _Refused as refused:
                found = TextFileProblem(node_id, attribute, refused.message, refused.remedy, refused.near)
                problems.append(found)
        return texts, problems

    def _text(self, text: str) -> str:
        name = named_file(text)
        if name is None:
            return text.removeprefix(MARK)
        if name not in self.read:
            self.read[name] = self._read(name)
        return self.read[name]

    def _read(self, name: str) -> str:
        shown = f'the file "{name}"' if len(name) <= 200 else "the file"
        if self.folder is None:
            raise _Refused(
                f"{shown} is not read: the pipeline came from {self.origin}, and has no files here",
                "write the text itself, or send the pipeline with its texts: `attractor-nb submit FILE`",
            )
        base = Path(os.path.realpath(self.folder))
        try:
            data = read_below(base, name, max_bytes=MAX_TEXT_BYTES, kinds=TEXT_KINDS)
        except Outside as problem:
            raise _Refused(f"{shown} {problem.message}", f"{problem.remedy}, {_LITERALLY}") from None
        except (FileNotFoundError, NotADirectoryError):
            near = nearest(name, names_below(base))
            raise _Refused(
                f"{shown} is not there; it was looked for in {base}{suggestion(near)}",
                f"correct the path, {_LITERALLY}",
                MARK + near if near else "",
            ) from None
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            raise _Refused(f"{shown} in {base} cannot be read: {reason}", "repair the file") from None
        if len(data) > MAX_TEXT_BYTES:
            raise _Refused(f"{shown} has more than {MAX_TEXT_BYTES} bytes", "give the stage less to read")
        try:
            read = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise _Refused(f"{shown} is not UTF-8 text (line {line})", "save it as UTF-8") from None
        if "\0" in read:
            raise _Refused(f"{shown} is not text: it has a NUL character", "name a text file")
        if not read.strip():
            raise _Refused(f"{shown} is empty", "write the text into it")
        return read.replace("\r\n", "\n")  # as version control may have written it on another system


class FromText(Protocol):
    """A definition, as far as it has a source text and the origin of that text."""

    @property
    def source(self) -> SourceText | None:
        """The text."""
        ...

    @property
    def origin(self) -> Path | str | None:
        """The origin of the text."""
        ...


def changed_source(pipeline: FromText, stored: Path, facts: Mapping[str, Any]) -> Path | None:
    """The file of a run or a map, when it, or a text beside it, is not now what was kept and continues.

    Args:
        pipeline: The pipeline that continues.
        stored: Where the text is kept.
        facts: The manifest.
    """
    path = Path(str(facts.get("source_path") or stored))
    if facts.get("is_source_redacted") or pipeline.origin != stored.absolute() or not path.is_file():
        return None
    with contextlib.suppress(OptionError):
        now = read_source(path)
        kept = pipeline.source
        if isinstance(now, SourceText) and kept is not None and _whole(now, path) != kept.text:
            return path
    return None


def _whole(written: SourceText, path: Path) -> str:
    if MARK in written.text:
        with contextlib.suppress(DotSyntaxError):  # it has changed, then
            return TextFiles(path.parent).contained(read_dot(written))
    return written.text


def with_text_files(written: SourceText, path: Path) -> SourceText:
    """The text of a pipeline's file with the texts of files in it, for a reader who does not have them."""
    if MARK not in written.text:
        return written
    files, document = TextFiles(path.parent), read_dot(written)
    for problem in files.put_in(document.graph)[1]:
        raise OptionError(f"{problem.place}: {problem.message}", hint=problem.remedy)
    return SourceText(files.contained(document), written.name)
