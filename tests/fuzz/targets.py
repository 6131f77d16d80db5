"""Claims about any bytes, one function for each reader of foreign data.

A target takes bytes and returns None; it raises ``BrokenPromiseError`` only when a promise is broken:

* Only the errors that a reader names leave it: never a RecursionError, a KeyError or an assertion.
* The error can be shown, and its carets lie on the text.
* It takes at most ``SECONDS_PER_MEGABYTE`` of processor time beyond ``FLOOR_SECONDS``.
* What was read and written again reads as the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from zlib import crc32

from attractor_nb.errors import (
    CheckpointCorrupt,
    ConditionSyntaxError,
    DotSyntaxError,
    SourceError,
    StatusFileError,
    StylesheetSyntaxError,
)
from attractor_nb.languages.condition import parse_condition
from attractor_nb.languages.condition.parser import mend_condition
from attractor_nb.languages.dot import DotDocument, embed_value, parse_dot, read_dot, write_dot
from attractor_nb.languages.dot.writer import quote
from attractor_nb.languages.stylesheet import parse_stylesheet
from attractor_nb.lint import validate
from attractor_nb.model.checkpoint import Checkpoint
from attractor_nb.sessions.tracker import session_of
from attractor_nb.source import SourceText, Span
from attractor_nb.storage.files.strict_json import JsonProblem, json_bytes, read_json
from attractor_nb.storage.log.event_lines import encode_event, scan_lines, token_of
from attractor_nb.storage.manifest_file import Manifest
from attractor_nb.storage.sealed_file import seal, unseal, wrong_shape
from attractor_nb.storage.stages.status_file import read_status_file, redacted_status

SECONDS_PER_MEGABYTE = 10.0
"""Ten times what an idle machine takes: who shares a core makes it longer."""
FLOOR_SECONDS = 2.0
"""The cost that loading and a processor's caches may add, for an input of any size."""

Target = Callable[[bytes], None]


class BrokenPromiseError(Exception):
    """A target did what it must never do."""


def text_from(data: bytes) -> str:
    """Any bytes as a text; those that are no UTF-8 become lone surrogates, which files cannot hold."""
    return data.decode("utf-8", "surrogateescape")


def check_dot(data: bytes) -> None:
    """DOT: read, linted as a whole, and written in both ways."""
    source = SourceText(text_from(data), "fuzz.dot")
    try:
        document = read_dot(source)
    except DotSyntaxError as error:
        _check_shown(error, source)
        return
    for found in document.diagnostics:
        _check_span(found.span)
        str(found)
    _check_written(document)
    for found in validate(document.graph):
        str(found)


def check_condition(data: bytes) -> None:
    """An edge condition: read, shown from within a DOT string, mended."""
    text = text_from(data)
    try:
        condition = parse_condition(text)
    except ConditionSyntaxError as error:
        _check_shown(error, None)
        mended = mend_condition(text)
        if mended is not None:
            parse_condition(mended)
        _check_embedded(text, parse_condition)
        return
    for clause in condition.clauses:
        _check_span(clause.span)
    for found in condition.notices:
        _check_span(found.span)
        str(found)


def check_stylesheet(data: bytes) -> None:
    """A model stylesheet: read, shown from within a DOT string."""
    text = text_from(data)
    try:
        sheet = parse_stylesheet(text)
    except StylesheetSyntaxError as error:
        _check_shown(error, None)
        _check_embedded(text, parse_stylesheet)
        return
    for found in sheet.notices:
        _check_span(found.span)
        str(found)


def check_json(data: bytes) -> None:
    """Our reader of JSON: what it takes is written and read as the same."""
    try:
        value = read_json(data)
    except JsonProblem as problem:
        str(problem)
        return
    if read_json(json_bytes(value)) != value:
        raise BrokenPromiseError("what was read is not what was written")


def check_status(data: bytes) -> None:
    """The status.json of a stage."""
    text = data.decode("utf-8", "replace")
    redacted_status(text)
    try:
        outcome = read_status_file(text, targets={"a", "review", "done"})
    except StatusFileError as error:
        _check_report(str(error))
        return
    str(outcome)


def check_sealed(data: bytes) -> None:
    """Checkpoint and manifest: the very bytes, and the same with a right checksum."""
    for content in (data, _sealed_anyhow(data)):
        try:
            plain = unseal(content)
        except JsonProblem as problem:
            str(problem)
            continue
        for check in (Checkpoint.from_plain, Manifest.from_plain):
            try:
                check(plain)
            except ValueError as error:
                wrong_shape(error)
        if unseal(seal(plain)) != plain:
            raise BrokenPromiseError("what was sealed is not what is unsealed")


def check_session(data: bytes) -> None:
    """The status.json of a session: the very bytes, and the same with a right checksum."""
    for content in (data, _sealed_anyhow(data)):
        try:
            values, session = session_of(content)
        except JsonProblem as problem:
            str(problem)
        except ValueError as error:
            wrong_shape(error)
        else:
            session.to_plain()
            seal(values)


def check_log(data: bytes) -> None:
    """Lines of the log: the very bytes, and each line with a right checksum and number."""
    for content in (data, _summed_lines(data)):
        try:
            scan = scan_lines(content, path="events.jsonl")
        except CheckpointCorrupt as error:
            _check_report(str(error))
            continue
        if list(scan.ends) != sorted(scan.ends) or scan.offset + scan.cut_bytes > len(content):
            raise BrokenPromiseError("the records of a log do not lie within it")
        for event in scan.events:
            if not token_of(encode_event(event).rstrip(b"\n")):
                raise BrokenPromiseError("an event that was read cannot be written")


def _check_written(document: DotDocument) -> None:
    """The graph written reads as the same graph."""
    written = write_dot(document.graph)
    if parse_dot(written) != document.graph:
        raise BrokenPromiseError(f"the graph written is another one:\n{written}")


def _check_shown(error: SourceError, source: SourceText | None) -> None:
    if error.span is None:
        raise BrokenPromiseError(f"no place: {error.message}")
    if source is not None and error.span.source.text != source.text.removeprefix("\ufeff"):
        raise BrokenPromiseError("the place is in another text")
    _check_span(error.span)
    _check_report(str(error))


def _check_span(span: Span | None) -> None:
    """A span lies in its text, and its place can be said."""
    if span is None:
        return
    outer = span.outermost()
    if not 0 <= outer.start <= outer.end <= len(outer.source.text):
        raise BrokenPromiseError(f"the place {outer.start}-{outer.end} is outside of the text")
    if not (span.line >= 1 and span.column >= 1):
        raise BrokenPromiseError(f"there is no place {span.place}")


def _check_report(report: str) -> None:
    if not report.strip():
        raise BrokenPromiseError("an error without words")


def _check_embedded(text: str, parse: Callable[[SourceText], object]) -> None:
    """The same text in a DOT string is refused with its carets in the DOT text."""
    if "\0" in text or not text.isprintable():
        return
    source = SourceText(f"digraph G {{ a -> b [x={quote(text)}] }}", "outer.dot")
    edge = read_dot(source).graph.edges[0]
    try:
        parse(embed_value(edge.attr_spans["x"].value))
    except SourceError as error:
        _check_shown(error, None)
        if error.span is not None and error.span.outermost().source.text != source.text:
            raise BrokenPromiseError("the carets are not in the DOT text") from None


def _sealed_anyhow(data: bytes) -> bytes:
    """The bytes in place of a body, under a checksum that is right: what an able enemy would write."""
    try:
        value = read_json(data)
    except JsonProblem:
        return data
    return seal({key: each for key, each in value.items() if key != "checksum"}) if isinstance(value, dict) else data


def _summed_lines(data: bytes) -> bytes:
    lines = [line for line in data.split(b"\n") if line.endswith(b"}")]
    return b"".join(b'%b,"crc":"%08x"}\n' % (line[:-1], crc32(line)) for line in lines)


TARGETS: dict[str, Target] = {
    "dot": check_dot,
    "condition": check_condition,
    "stylesheet": check_stylesheet,
    "json": check_json,
    "status": check_status,
    "sealed": check_sealed,
    "session": check_session,
    "log": check_log,
}


def run_target(name: str, data: bytes) -> None:
    """Give bytes to a target and hold it to its time.

    Raises:
        BrokenPromiseError: A promise is broken; the message says which.
    """
    before = bytes(data)
    began = time.process_time()
    try:
        TARGETS[name](data)
    except BrokenPromiseError:
        raise
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        raise BrokenPromiseError(f"{name} raises {type(error).__name__}: {error}") from error
    taken = time.process_time() - began
    if taken > FLOOR_SECONDS + SECONDS_PER_MEGABYTE * len(data) / 1e6:
        raise BrokenPromiseError(f"{name} takes {taken:.2f} s for {len(data)} bytes")
    if data != before:
        raise BrokenPromiseError(f"{name} changes its input")
