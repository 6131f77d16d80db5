"""Files of rows and of the inputs of a run: JSON Lines, CSV, JSON, TOML."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.errors import OptionError, ParamsSyntaxError
from attractor_nb.given_files import read_file
from attractor_nb.source import SourceText
from attractor_nb.storage.files.strict_json import JsonProblem, read_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from attractor_nb.source import Span

_EXAMPLE = '{"ticket": "42", "tries": 3}'
_LINES: Final = frozenset({".jsonl", ".ndjson", ".csv"})


def read_params_file(path: Path) -> list[dict[str, Any]]:
    """The rows of a file.

    JSON Lines has an object on each line. CSV has the keys on its first line, and its values are text; empty lines
    count for nothing. JSON is an array of objects, TOML has one array of tables, of any name.
    """
    suffix = path.suffix.lower()
    if suffix in _LINES:
        source = SourceText(read_file(path), str(path))
        rows = list(_csv_rows(source) if suffix == ".csv" else _json_rows(source))
    elif suffix in _VALUES:
        rows = _rows_of(path, read_value(path))
    else:
        raise OptionError(
            f"{path} has an unknown extension: rows are read from .jsonl, .csv, .json and .toml files",
            hint="name it .jsonl or .csv",
        )
    if not rows:
        raise OptionError(f"{path} has no rows, so there is nothing to run", hint=f"a row: {_EXAMPLE}")
    return rows


def read_params_object(path: Path) -> dict[str, Any]:
    """The inputs of one run: the object of a JSON file, or a TOML file."""
    suffix = path.suffix.lower()
    if suffix not in _VALUES:
        is_of_rows = suffix in _LINES
        raise OptionError(
            f"{path}: the inputs of a run are read from .json and .toml files",
            hint="attractor-nb map runs a pipeline over the rows of a file" if is_of_rows else "name it .json or .toml",
        )
    value = read_value(path)
    if not isinstance(value, dict):
        raise OptionError(
            f"{path} is {_kind(value)}, not an object",
            hint=f"an object: {_EXAMPLE}; attractor-nb map runs a pipeline over an array of them",
        )
    return cast("dict[str, Any]", value)


def read_value(path: Path) -> Any:
    """The value of a JSON or TOML file."""
    return _VALUES[path.suffix.lower()](SourceText(read_file(path), str(path)))


def _json_value(source: SourceText) -> Any:
    try:
        return read_json(source.text)
    except JsonProblem as problem:
        whole = source.span(0, len(source.text))
        raise ParamsSyntaxError(f"{source.name} {problem}", _place(whole), hint=f"an object: {_EXAMPLE}") from None


def _toml_value(source: SourceText) -> Any:
    import tomllib  # noqa: PLC0415 - for these files alone

    try:
        return tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"at line (\d+)", str(error))
        line = _line_span(source, int(at[1])) if at else None
        raise ParamsSyntaxError(f"{source.name} is not TOML: {error}", line, hint='a line: ticket = "42"') from None
    except RecursionError:
        raise ParamsSyntaxError(f"{source.name} is nested too deep", hint="put less into one another") from None


_VALUES: Final[Mapping[str, Callable[[SourceText], Any]]] = {".json": _json_value, ".toml": _toml_value}


def _rows_of(path: Path, value: Any) -> list[dict[str, Any]]:
    """The rows of a JSON array, or of the one array of tables of a TOML file."""
    if path.suffix.lower() == ".toml" and len(value) == 1:
        (value,) = value.values()
    if not isinstance(value, list):
        raise OptionError(
            f"{path} has no rows", hint="a .json file has an array of objects, a .toml file [[row]] tables"
        )
    rows = cast("list[object]", value)
    for row, inputs in enumerate(rows):
        if not isinstance(inputs, dict):
            raise OptionError(f"{path}: row {row} is {_kind(inputs)}, not an object", hint=f"a row: {_EXAMPLE}")
    return cast("list[dict[str, Any]]", rows)


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
    """The position of a JSON error in a line; the whole line for any other error."""
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
            number, before = before + 1, reader.line_num
            if not any(value.strip() for value in values):
                continue
            if header is None and values == ["sep=", ""]:  # Excel's own line, which names the separator
                continue
            if header is None:
                header = _header(values, _line_span(source, number))
            elif len(values) != len(header):
                line = _line_span(source, number)  # for errors alone: it counts lines from the beginning
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
