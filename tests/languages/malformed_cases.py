"""Sources that a language refuses, and what is said about each."""

import tomllib
from pathlib import Path

import pytest


def cases_of(language):
    """The malformed sources of a language, each with its message, place, carets and hint."""
    return tomllib.loads((Path(__file__).parent / "malformed" / f"{language}.toml").read_text("utf-8"))["case"]


def check_refusal(case, parse, kind):
    """Parse a malformed source, and compare the error with the case."""
    with pytest.raises(kind) as caught:
        parse(case["source"])
    error = caught.value
    found = {
        "name": case["name"],
        "source": case["source"],
        "message": error.report_lines()[0],
        "place": f"{error.span.line}:{error.span.column}",
        "carets": error.span.text,
        "hint": error.hint,
    }
    assert found == case
