"""An evaluation in a notebook: its rows as a table, and the run of the row that is clicked beneath it.

As of ``history_view`` the output of the cell is static, and the widget stands in for it: a saved notebook has the
table, and nothing that needs a kernel.
"""

from __future__ import annotations

# anywidget and traitlets have no types: whatever is theirs is unknown here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUntypedBaseClass=false
from os import urandom
from typing import TYPE_CHECKING, Any, Final

import anywidget
import traitlets

from attractor_nb.errors import AttractorError
from attractor_nb.evaluation.evaluated_row import dots, is_bad, row_words
from attractor_nb.redaction import redacted
from attractor_nb.views.frontend import script, widget_styles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.evaluation.evaluated_row import EvaluatedRow
    from attractor_nb.evaluation.evaluation import Evaluation
    from attractor_nb.notebook.view_actions import OpenViews

MOST_ROWS: Final = 200
"""Rows that the table offers, those that failed first; ``evaluation.run(id)`` opens any."""


class EvaluationView(anywidget.AnyWidget):
    """The scores and rows of an evaluation; a click on a row shows its run beneath."""

    _esm = script("evaluation_view")
    _css = widget_styles()
    headline = traitlets.Unicode().tag(sync=True)
    scores = traitlets.Dict().tag(sync=True)  #: The table of scores: ``columns``, ``rows``, ``notes``.
    #: The rows: ``id``, ``state`` (error, warn, ok), ``runs`` (a sign for each), ``output``, ``expected``, ``reason``.
    rows = traitlets.List().tag(sync=True)
    count = traitlets.Int().tag(sync=True)  #: The number of all rows.
    opened = traitlets.Dict().tag(sync=True)  #: The run that is shown: ``row``, ``repeat``; empty for none.
    beneath = traitlets.List().tag(sync=True)  #: Its ``place`` and ``title``.
    place = traitlets.Unicode().tag(sync=True)  #: The key that marks the static output.

    def __init__(self, evaluation: Evaluation, views: OpenViews, place: str = "") -> None:
        self._evaluation = evaluation
        self._views = views
        table = evaluation.scores_table
        scores = {
            "columns": [column.title for column in table.columns],
            "rows": [list(row) for row in table.rows],
            "notes": list(table.notes),
        }
        super().__init__(
            headline=redacted(evaluation.headline()),
            scores=scores,
            rows=rows_of_view(evaluation),
            count=len(evaluation),
            place=place,
        )
        self.on_msg(self._on_message)

    def _on_message(self, _widget: object, content: dict[str, Any], _buffers: object) -> None:
        match content.get("kind"):
            case "open":
                try:
                    self._open(content)
                except AttractorError as error:
                    self.send({"kind": "said", "problem": redacted(str(error))})
            case "close":
                self.beneath, self.opened = [], {}
            case _:
                pass

    def _open(self, content: Mapping[str, Any]) -> None:
        row = self._evaluation[str(content.get("row", ""))]
        asked = content.get("repeat")
        repeat = asked if type(asked) is int else _first_bad(row)
        run: Any = self._evaluation.run(row.id, repeat)  # the class of a pipeline's runs is its own: a ``Run``
        view = self._views.open(run, key=urandom(8).hex())
        which = f", run {repeat + 1} of {len(row.results)}" if len(row.results) > 1 else ""
        self.opened = {"row": row.id, "repeat": repeat}
        self.beneath = [{"place": view.key, "title": redacted(f"Row {row.id}{which}")}]


def rows_of_view(evaluation: Evaluation) -> list[dict[str, Any]]:
    """The rows as plain values: those that failed, those without a score, the others."""
    failed = {row.id for row in evaluation.failures}
    unmeasured = {row.id for row in evaluation.unmeasured} - failed
    states = {row.id: "error" if row.id in failed else "warn" if row.id in unmeasured else "ok" for row in evaluation}
    ordered = sorted(evaluation, key=lambda row: list(_ORDER).index(states[row.id]))
    return [
        {
            "id": row.id,
            "state": states[row.id],
            "runs": dots(row) if evaluation.repeat > 1 else "",
            **row_words(row, _ORDER[states[row.id]]),
        }
        for row in ordered[:MOST_ROWS]
    ]


_ORDER: Final = {"error": "", "warn": "unmeasured", "ok": "scored"}
"""The states in the order of the table, and whose reasons are shown."""


def _first_bad(row: EvaluatedRow) -> int:
    """The first run of a row that is not good, else the first."""
    bad = (
        repeat for repeat in range(len(row.results)) if any(is_bad(scores[repeat]) for scores in row.scores.values())
    )
    return next(bad, 0)
