"""What comes from outside: sources from files and stdin, values from ``--param``, rows from a file."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from attractor_nb.errors import OptionError, ParamsSyntaxError
from attractor_nb.runtime.prepare.sources import read_source
from attractor_nb.source import SourceText
from attractor_nb.storage.files.strict_json import JsonProblem, read_json
from attractor_nb.storage.log.lock import LOCK_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from attractor_nb.pipeline.pipeline import Pipeline as PipelineType
    from attractor_nb.source import Span

STDIN = "-"

_EXAMPLE = '{"ticket": "42", "tries": 3}'


def read_text(file: str) -> SourceText:
    """The DOT text of a file, or of stdin for ``-``.

    Raises:
        OptionError: It cannot be read, or is not UTF-8.
    """
    if file == STDIN:
        return SourceText(_read_stdin(), "<stdin>")
    source = read_source(Path(file))
    assert isinstance(source, SourceText), "a path is read as text"
    return source


def read_message(text: str) -> str:
    """A message as it was typed; for ``-`` what stdin holds.

    Raises:
        OptionError: Stdin is not UTF-8.
    """
    return _read_stdin() if text == STDIN else text


def _read_stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError:
        raise OptionError("stdin is not UTF-8 text", hint="encode it as UTF-8") from None


def check_output(output: Path | None, *inputs: str | Path | None) -> None:
    """Check that a file may be written: it replaces what is there, but neither an input nor a part of a run.

    Raises:
        OptionError: It is one of the inputs, whatever it is called here, or is in the directory of a run.
    """
    if output is None:
        return
    place = output.resolve()
    if any(place == Path(given).resolve() for given in inputs if given is not None):
        raise OptionError(f"{output} is an input file", hint="name another output file")
    if (place.parent / LOCK_NAME).exists():
        raise OptionError(f"{output} is in the directory of a run", hint="name a file elsewhere")


def read_pipeline(file: str, *, is_strict: bool = False) -> PipelineType:
    """The pipeline of a file, or of stdin for ``-``; lint errors do not raise yet.

    Raises:
        OptionError, DotSyntaxError: It cannot be read.
    """
    from attractor_nb.pipeline.pipeline import Pipeline  # noqa: PLC0415 - loads all that runs

    return Pipeline(read_text(file), strict=is_strict, origin="stdin" if file == STDIN else Path(file))


def read_prompt(file: Path) -> str:
    """The prompt that a file holds.

    Raises:
        OptionError: It cannot be read, or is not UTF-8.
    """
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise OptionError(f"{file} is not UTF-8 text", hint="encode it as UTF-8") from None
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise OptionError(f"cannot read the prompt {file}: {reason}", hint="name an existing file") from None


def read_params(given: Iterable[str], option: str = "--param") -> dict[str, Any]:
    """Context values from ``key=text`` and ``key:=json``.

    Args:
        given: The values of the option.
        option: Its name, for messages.

    >>> read_params(["ticket=42", "tries:=3", "flags:=[true]"])
    {'ticket': '42', 'tries': 3, 'flags': [True]}

    Raises:
        OptionError: One of them is neither.
    """
    values: dict[str, Any] = {}
    for entry in given:
        key, separator, text = entry.partition("=")
        is_json = key.endswith(":")
        key = key.removesuffix(":").strip()
        if not separator or not key:
            raise OptionError(
                f"{option} {entry!r} is not a key and a value",
                hint=f"{option} ticket=42 for text, {option} 'tries:=3' for JSON",
            )
        values[key] = _read_json(key, text, option) if is_json else text
    return values


def _read_json(key: str, text: str, option: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise OptionError(
            f"{option} {key}:= is not JSON: {error}", hint=f"{option} {key}=… takes the value as text"
        ) from None


def read_params_file(path: Path) -> list[dict[str, Any]]:
    """The rows of a file, one dict for each line; empty lines count for nothing.

    JSON Lines has an object on each line. CSV has the keys on its first line, and its values are text.

    Raises:
        OptionError: The file cannot be read, has no rows, or is of another kind.
        ParamsSyntaxError: A line is not what it should be.
    """
    readers = {".jsonl": _json_rows, ".ndjson": _json_rows, ".csv": _csv_rows}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise OptionError(
            f"--params {path} has an unknown extension: rows are read from .jsonl and .csv files",
            hint="name it .jsonl or .csv",
        )
    rows = list(reader(SourceText(_read(path), str(path))))
    if not rows:
        raise OptionError(f"{path} has no rows, so there is nothing to run", hint=f"a row: {_EXAMPLE}")
    return rows


def _read(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OptionError(f"{path} cannot be read: {reason}", hint="check the path") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise OptionError(f"{path} is not UTF-8 text (line {line})", hint="save it as UTF-8") from None


def _lines(source: SourceText) -> Iterator[Span]:
    """The lines that are not empty, without their ends."""
    start = 0
    for text in source.text.split("\n"):
        if text.strip():
            yield source.span(start, start + len(text.rstrip("\r")))
        start += len(text) + 1


def _json_rows(source: SourceText) -> Iterator[dict[str, Any]]:
    for line in _lines(source):
        try:
            value = read_json(line.text)
        except JsonProblem as problem:
            reason = str(problem).partition(" at 1:")[0]
            raise ParamsSyntaxError(
                f"line {line.line} {reason}", _place(line), hint=f"one object on each line: {_EXAMPLE}"
            ) from None
        if not isinstance(value, dict):
            raise ParamsSyntaxError(
                f"line {line.line} is {_kind(value)}, not an object", line, hint=f"one object on each line: {_EXAMPLE}"
            )
        yield cast("dict[str, Any]", value)


def _place(line: Span) -> Span:
    """Where JSON goes wrong in a line; the whole line when its fault is another one."""
    try:
        json.loads(line.text)
    except json.JSONDecodeError as error:
        start = line.start + min(error.pos, len(line.text))
        return line.source.span(start, min(start + 1, line.end))
    except (ValueError, RecursionError):
        return line
    return line


def _kind(value: object) -> str:
    kinds: dict[type, str] = {list: "an array", str: "a text", bool: "a truth value", type(None): "null"}
    return kinds.get(type(value), "a number")


def _csv_rows(source: SourceText) -> Iterator[dict[str, Any]]:
    csv.field_size_limit(max(csv.field_size_limit(), len(source.text)))
    lines = io.StringIO(source.text, newline="")  # str.splitlines would end a row within a value, at U+2028 for one
    reader = csv.reader(lines, delimiter=_separator(source.text), strict=True)
    header: Sequence[str] | None = None
    before = 0
    try:
        for values in reader:
            line, before = _line_span(source, before + 1), reader.line_num
            if not any(value.strip() for value in values):
                continue
            if header is None:
                header = _header(values, line)
            elif len(values) != len(header):
                raise ParamsSyntaxError(
                    f"line {line.line} has {len(values)} values, and the first line names {len(header)}",
                    line,
                    hint=f'put a value that contains the separator into quotes: "a{reader.dialect.delimiter} b"',
                )
            else:
                yield dict(zip(header, values, strict=True))
    except csv.Error as error:
        raise ParamsSyntaxError(
            f"line {before + 1} is not valid CSV: {error}",
            _line_span(source, before + 1),
            hint="double a quotation mark inside a value, and close one that begins a value",
        ) from None


def _separator(text: str) -> str:
    r"""The separator of the columns: a semicolon or tab of the first line, where that has no comma.

    >>> _separator("ticket;tries\n1,5;2"), _separator("ticket\n1;2")
    (';', ',')
    """
    first = re.sub(r'"[^"]*"', "", text.lstrip("\r\n").partition("\n")[0])
    return next((each for each in (",", ";", "\t") if each in first), ",")


def _header(values: Sequence[str], line: Span) -> list[str]:
    names = [value.strip() for value in values]
    seen: set[str] = set()
    for name in names:
        if not name:
            raise ParamsSyntaxError("a column has no name", line, hint="the first line names the keys: ticket,tries")
        if name in seen:
            raise ParamsSyntaxError(f"the column {name} occurs twice", line, hint="give each column a different name")
        seen.add(name)
    return names


def _line_span(source: SourceText, number: int) -> Span:
    start = 0
    for _ in range(number - 1):
        start = source.text.find("\n", start) + 1
    end = source.text.find("\n", start)
    return source.span(start, len(source.text) if end < 0 else end)
