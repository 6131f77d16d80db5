"""Completions at the cursor of an ``%%attractor`` cell: its magic line here, its text in ``studio.edit`` (pure)."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final

from attractor_nb.studio.edit.completion import (
    NOTHING,
    FittingValue,
    Suggestions,
    fitting,
    no_models,
    no_registered,
    suggest_in,
)
from attractor_nb.studio.edit.text_outline import outline_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MAGIC: Final = "%%attractor"
BACKENDS: Final = ("simulated", "local", "llm", "claude", "codex", "gemini")
OPTIONS: Final = {
    "--run": "run it",
    "--quiet": "show only errors",
    "--param": "a value in the run's context",
    "--write": "also write the text to a file",
    "--backend": "what answers prompts",
    "--auto-approve": "answer gates with their first choice",
    "--gate": "who answers gates",
    "--live": "the live view: auto, on or off",
}
_GRAPH: Final = re.compile(r"\bdigraph\s+([A-Za-z_]\w*)")
_VALUES_OF_OPTION: Final = {
    "--backend": BACKENDS,
    "--gate": ("widgets", "auto", "pause", "deferred", "refuse"),
    "--live": ("auto", "on", "off"),
}


def suggest(
    cell: str,
    cursor: int,
    listed_models: Callable[[str], Sequence[str]] = no_models,
    registered: Callable[[str, str], str] = no_registered,
) -> Suggestions:
    """The words that fit at an offset of a cell; nothing for a cell of another kind.

    Args:
        cell: The cell, with the line of the magic.
        cursor: The offset.
        listed_models: Gives the models of a provider that a price list names; of all for an empty name.
        registered: Gives the JSON Schema of the model that a cell's pipeline, by its name, knows by a name.
    """
    first, line_end, body = cell.partition("\n")
    if not first.startswith(MAGIC):
        return NOTHING
    if not line_end or cursor <= len(first):
        return _on_magic_line(cell[:cursor], cell[len(first) :])
    return suggest_in(body, cursor - len(first) - 1, listed_models, partial(registered, _pipeline_name(first, body)))


def _pipeline_name(line: str, body: str) -> str:
    """The variable that the pipeline of a cell has: the word behind the magic, else the graph's name."""
    given = re.match(rf"{MAGIC}[ \t]+([A-Za-z_]\w*)", line) or _GRAPH.search(body)
    return given[1] if given else ""


def _on_magic_line(text: str, body: str) -> Suggestions:
    words = re.split(r"\s+", text)
    if len(words) < 2:  # the magic's own name is still being typed
        return NOTHING
    fragment, before = words[-1], words[-2]
    if before in _VALUES_OF_OPTION:
        return fitting(fragment, (FittingValue(word, "param") for word in _VALUES_OF_OPTION[before]))
    if before == "--param":
        inputs = outline_of("", body).inputs
        return fitting(fragment, (FittingValue(f"{name}=", "param", "input") for name in inputs))
    if fragment.startswith("-"):
        return fitting(fragment, (FittingValue(word, "param", meaning) for word, meaning in OPTIONS.items()))
    return NOTHING
