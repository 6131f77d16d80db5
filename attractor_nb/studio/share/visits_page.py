"""Every visit of a run as one table: what an exported page shows where no script runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from attractor_nb.views.columns import one_line
from attractor_nb.views.marks import STATUS_LETTERS
from attractor_nb.views.metrics import ELLIPSIS
from attractor_nb.views.state import NodeStatus
from attractor_nb.views.table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_ROWS: Final = 500
WORDS: Final = 160
_LETTERS: Final = {
    **{status.value: letter for status, letter in STATUS_LETTERS.items()},
    "retry": STATUS_LETTERS[NodeStatus.FAIL],
}
_STATES: Final = {
    "success": "ok",
    "partial_success": "ok",
    "fail": "error",
    "retry": "error",
    "cut off": "warn",
}


def stages_table(stages: Iterable[Mapping[str, Any]]) -> Table:
    """The table of visits.

    Args:
        stages: Plain forms of inspections (``studio.inspect.inspection``), in order.
    """
    stages = list(stages)
    more = len(stages) - MAX_ROWS
    return Table(
        "Stages",
        (
            Column("stage", "place"),
            Column("status", "state"),
            Column("attempts", "number"),
            Column("used"),
            Column("said"),
            Column("why on"),
        ),
        [_row(stage) for stage in stages[:MAX_ROWS]],
        states=[_STATES.get(str(stage.get("status")), "") for stage in stages[:MAX_ROWS]],
        notes=[f"and {more:,} more visits"] if more > 0 else [],
    )


def _row(stage: Mapping[str, Any]) -> tuple[str, ...]:
    status = str(stage.get("status", ""))
    visit = stage.get("visit") or 1
    letter = _LETTERS.get(status, "")
    said = stage.get("reason") or stage.get("response") or stage.get("notes") or ""
    why: Mapping[str, Any] = stage.get("why_next") or {}
    return (
        f"{stage['node']}" + (f", visit {visit}" if visit > 1 else ""),
        f"{letter} {status.replace('_', ' ')}".strip(),
        str(len(stage.get("attempts", ())) or 1),
        str(stage.get("usage_words", "")),
        _cut(str(said)),
        _cut(str(why.get("words", ""))),
    )


def _cut(text: str) -> str:
    line = one_line(text[: 4 * WORDS])
    return line if len(line) <= WORDS else line[: WORDS - 1] + ELLIPSIS
