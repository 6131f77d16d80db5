"""What a gate lays before the person who decides: texts of earlier stages, as they stand when it asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.errors import StorageError
from attractor_nb.model.comma_lists import comma_list
from attractor_nb.model.nearest_name import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from attractor_nb.context import Context
    from attractor_nb.model.graph import Graph, Node

ATTRIBUTE: Final = "human.review"
RESPONSE: Final = "response.md"
MAX_TEXTS: Final = 8
MAX_CHARACTERS: Final = 16_000
"""Of one text; the whole is in the run directory."""
_LATEST: Final = "last_stage"


def under_review(
    node: Node, graph: Graph, context: Context, read_file: Callable[[str, str], str | None]
) -> list[dict[str, str]]:
    """The texts to be judged, each with ``name``, ``text`` and ``note``.

    ``human.review`` names files of stages, ``plan/response.md``, with commas; a stage's id alone means its
    response. Without it the latest response is shown, if there is one.

    Args:
        node: The gate.
        graph: Says which stages there are.
        context: Says which stage was the latest.
        read_file: Given a node and a file name, its text; None when there is none.
    """
    named = comma_list(node.get(ATTRIBUTE, str, ""))
    if named:
        return [_text(name, graph, read_file) for name in named[:MAX_TEXTS]]
    latest = context.get(_LATEST, "")
    found = _text(latest, graph, read_file) if isinstance(latest, str) and latest else {}
    return [found] if found.get("text") else []


def _text(name: str, graph: Graph, read_file: Callable[[str, str], str | None]) -> dict[str, str]:
    stage, _, file = name.partition("/")
    shown = f"{stage}/{file or RESPONSE}"
    if stage not in graph.nodes:
        return {
            "name": shown,
            "text": "",
            "note": f"there is no stage {stage}{did_you_mean(stage, graph.nodes)}",
        }
    try:
        text = read_file(stage, file or RESPONSE)
    except StorageError as error:
        return {"name": shown, "text": "", "note": f"cannot be shown: {error.message}"}
    if text is None:
        return {"name": shown, "text": "", "note": "there is no such file yet"}
    if "\0" in text:
        return {"name": shown, "text": "", "note": f"is no text: {len(text):,} characters"}
    cut = len(text) > MAX_CHARACTERS
    note = f"the first {MAX_CHARACTERS:,} of {len(text):,} characters" if cut else ""
    return {"name": shown, "text": text[:MAX_CHARACTERS], "note": note}
