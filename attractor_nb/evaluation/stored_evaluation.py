"""An evaluation as its directory stores it: rows, outputs and scores, also while a process works on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Never

from msgspec.structs import replace

from attractor_nb.errors import OptionError
from attractor_nb.evaluation.evaluation import Evaluation
from attractor_nb.evaluation.scorers import Scorer
from attractor_nb.evaluation.scoring import ScoreLine, read_head, stored_lines
from attractor_nb.maps.map_launch import MapResult
from attractor_nb.maps.row_run import stage_output
from attractor_nb.maps.stored_map import StoredMap, kept_values, read_stored_map
from attractor_nb.model.row_result import RowResult
from attractor_nb.model.vocabulary.value_forms import WHOLE_RESPONSE
from attractor_nb.redaction import redacted_value
from attractor_nb.runtime.definition import Definition
from attractor_nb.runtime.stored_execution import load_execution, read_definition
from attractor_nb.storage.map_directory import read_map

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from attractor_nb.evaluation.scorers import Score

UNDER_WAY: Final = "it is running"


def read_evaluation(path: Path, stored: StoredMap | None = None) -> Evaluation:
    """Read an evaluation with the latest stored scores of each scorer; it needs no owner, and scores nothing.

    Runs that have no score yet are unmeasured. The scorers themselves are not stored: ``rescore`` takes new ones.

    Args:
        path: Its directory.
        stored: Its map, if the caller has read it already.

    Raises:
        RunNotFound: No evaluation is there.
        CheckpointCorrupt: A file of it is damaged.
    """
    head, rows = read_head(path)
    facts = read_map(path)
    stored = read_stored_map(path) if stored is None else stored
    results = _results(stored, (head.output,) if head.output else (), head.only)
    scorers, scores = _scores(stored_lines(path), results)
    of_map = MapResult(
        stored.view.status,
        stored.view.reason,
        results,
        [row.inputs for _ in range(head.repeat) for row in rows],
        stored.map_id,
        path,
        read_definition(path, Definition),
        stored.view,
        tuple(map(str, facts.get("outputs", ()))),
    )
    return Evaluation(of_map, rows, scorers, head.repeat, head.output, scores, head.only, path)


def _results(stored: StoredMap, outputs: tuple[str, ...], only: str) -> list[RowResult]:
    """A result for each row of the map, with what is judged; a row under way is not finished."""
    ended = {row.row: row for row in stored.rows}
    found: list[RowResult] = []
    for number in range(stored.view.row_count):
        row = ended.get(number) or RowResult(number, "not_started", reason=UNDER_WAY)
        if outputs and number in stored.places and row.status != "not_started":
            row = replace(row, outputs=_outputs(stored.places[number], outputs, only))
        found.append(row)
    return found


def _outputs(place: Path, outputs: tuple[str, ...], only: str) -> dict[str, Any]:
    """The outputs of a row; the response of a stage that was executed anew is that of the row's own visit."""
    if not only or WHOLE_RESPONSE not in outputs:
        return kept_values(place, outputs)[0]
    run = load_execution(place)
    found = stage_output(run.result(0.0), only) if run.is_done else None
    return {} if found is None else {WHOLE_RESPONSE: redacted_value(found)}


def _scores(lines: Sequence[ScoreLine], results: Sequence[RowResult]) -> tuple[list[Scorer], dict[int, list[Score]]]:
    """The scorers in their order, and the latest scores of each for the runs that there are, by number of the row."""
    runs = {result.run_id: result.row for result in results if result.run_id}
    latest: dict[tuple[int, str], ScoreLine] = {}
    scorers: dict[str, Scorer] = {}
    for line in lines:
        if (row := runs.get(line.run)) is None:
            continue
        latest[row, line.scorer] = line
        scorers[line.scorer] = Scorer(line.scorer, _not_stored, frozenset(), line.version, line.is_lower_better)
    found: dict[int, list[Score]] = {}
    for (row, _), line in latest.items():
        found.setdefault(row, []).extend(line.scores)
    return list(scorers.values()), found


def _not_stored(judged: object) -> Never:
    del judged
    raise OptionError("the scorers of a stored evaluation are not stored", hint="evaluation.rescore(scorers)")
