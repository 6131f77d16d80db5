"""The sources of a pipeline, and the text behind each; the text is not interpreted here."""

from __future__ import annotations

import os
from pathlib import Path

from attractor_nb.errors import OptionError
from attractor_nb.given_files import read_file
from attractor_nb.model.graph import Graph
from attractor_nb.source import SourceText

Source = str | Path | SourceText | Graph
MAX_SOURCE_BYTES = 20 * 1024 * 1024


def read_source(source: Source) -> SourceText | Graph:
    """The text behind a source: a text, a path, or a text that is a path to a .dot file."""
    if isinstance(source, SourceText | Graph):
        return source
    if not isinstance(source, str | Path):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise OptionError(
            f"a pipeline is made of DOT text, a path or a graph, not of {type(source).__name__}",
            hint='Pipeline("digraph { … }") or Pipeline(Path("review.dot"))',
        )
    path = named_file(source)
    if path is None:
        return SourceText(str(source))
    return SourceText(read_file(path, max_bytes=MAX_SOURCE_BYTES, encoding="utf-8"), str(path))


def named_file(source: object) -> Path | None:
    """The file that a source names; None when it is the text or the graph itself."""
    if isinstance(source, Path):
        return _in_home(source)
    if not isinstance(source, str) or "{" in source or "\n" in source:
        return None
    name = source.strip()
    return _in_home(name) if name.endswith((".dot", ".gv")) else None


def _in_home(path: str | Path) -> Path:
    return Path(os.path.expanduser(path))  # noqa: PTH111 - a name that is no user's stays as it is
