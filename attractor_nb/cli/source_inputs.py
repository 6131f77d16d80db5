"""Inputs from outside: sources from files and stdin, values from ``--param``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attractor_nb.errors import OptionError
from attractor_nb.given_files import read_file
from attractor_nb.runtime.prepare.sources import MAX_SOURCE_BYTES, read_source
from attractor_nb.source import SourceText
from attractor_nb.storage.files.strict_json import JsonProblem, read_json
from attractor_nb.storage.log.lock import LOCK_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from attractor_nb.pipeline.pipeline import Pipeline as PipelineType

STDIN = "-"


def read_text(file: str) -> SourceText:
    """The DOT text of a file, or of stdin for ``-``."""
    if file == STDIN:
        return SourceText(_read_stdin(), "<stdin>")
    source = read_source(Path(file))
    assert isinstance(source, SourceText), "a path is read as text"
    return source


def read_message(text: str) -> str:
    """A message as it was typed; for ``-`` what stdin holds."""
    return _read_stdin() if text == STDIN else text


def _read_stdin() -> str:
    data = sys.stdin.buffer.read(MAX_SOURCE_BYTES + 1)
    if len(data) > MAX_SOURCE_BYTES:
        raise OptionError(f"stdin has more than {MAX_SOURCE_BYTES:,} bytes, and no more are read", hint="send less")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise OptionError("stdin is not UTF-8 text", hint="encode it as UTF-8") from None


def check_output(output: Path | None, *inputs: str | Path | None) -> None:
    """Check that a file may be written: it replaces what is there, but neither an input nor a part of a run."""
    if output is None:
        return
    place = output.resolve()
    if any(place == Path(given).resolve() for given in inputs if given is not None):
        raise OptionError(f"{output} is an input file", hint="name another output file")
    if not place.parent.is_dir():
        raise OptionError(f"{output} cannot be written: there is no directory {output.parent}", hint="make it first")
    if (place.parent / LOCK_NAME).exists():
        raise OptionError(f"{output} is in the directory of a run", hint="name a file elsewhere")


def read_pipeline(file: str, *, is_strict: bool = False, params: Mapping[str, Any] | None = None) -> PipelineType:
    """The pipeline of a file, or of stdin for ``-``, with inputs of every run; lint errors do not raise yet."""
    from attractor_nb.pipeline.pipeline import Pipeline  # noqa: PLC0415 - loads all that runs

    return Pipeline(read_text(file), strict=is_strict, params=params, origin="stdin" if file == STDIN else Path(file))


def read_params(given: Iterable[str], option: str = "--param") -> dict[str, Any]:
    """Context values from ``key=text``, ``key=@file`` and ``key:=json``; ``@@`` begins a text with an at sign.

    Args:
        given: The values of the option.
        option: Its name, for messages.

    >>> read_params(["ticket=42", "tries:=3", "flags:=[true]", "user=@@ada"])
    {'ticket': '42', 'tries': 3, 'flags': [True], 'user': '@ada'}
    """
    values: dict[str, Any] = {}
    for entry in given:
        key, separator, text = entry.partition("=")
        is_json = key.endswith(":")
        key = key.removesuffix(":").strip()
        if not separator or not key:
            raise OptionError(
                f"{option} {entry!r} is not a key and a value",
                hint=f"{option} ticket=42 for text, {option} ticket=@FILE for a file's, {option} 'tries:=3' for JSON",
            )
        text = _given_text(key, text, option)
        values[key] = _read_json(key, text, option) if is_json else text
    return values


def _given_text(key: str, text: str, option: str) -> str:
    if not text.startswith("@") or text.startswith("@@"):
        return text.removeprefix("@")
    try:
        return read_file(Path(os.path.expanduser(text[1:])))  # noqa: PTH111 - without a home it stays as it is
    except OptionError as error:
        hint = f"{error.hint}; for the text itself: {option} {key}=@{text}"
        raise OptionError(f"{option} {key}: {error.message}", hint=hint) from None


def _read_json(key: str, text: str, option: str) -> Any:
    try:
        return read_json(text)
    except JsonProblem as problem:
        raise OptionError(f"{option} {key}:= {problem}", hint=f"{option} {key}=… takes the value as text") from None
