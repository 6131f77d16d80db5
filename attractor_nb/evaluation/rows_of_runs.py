"""Runs that exist as rows of an evaluation: to start a data set, and to be scored without running anything."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.errors import OptionError
from attractor_nb.evaluation.evaluation import Evaluation
from attractor_nb.evaluation.evaluation_rows import EvaluationRow, check_ids
from attractor_nb.evaluation.rescoring import rescored
from attractor_nb.maps.map_launch import MapResult
from attractor_nb.maps.map_view import MapView
from attractor_nb.maps.row_run import RowTask, row_result
from attractor_nb.model.vocabulary.value_forms import WHOLE_RESPONSE
from attractor_nb.redaction import redacted
from attractor_nb.runtime.execution import Execution
from attractor_nb.runtime.handles.run_result import RunResult
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.runtime.stored_execution import is_path, load_execution
from attractor_nb.runtime.stored_state import inputs_of
from attractor_nb.storage.map_directory import is_map
from attractor_nb.storage.run_directory import first_directory
from attractor_nb.storage.run_index import list_runs
from attractor_nb.storage.stored_run import read_facts, read_run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from attractor_nb.model.row_result import RowResult
    from attractor_nb.runtime.definition import Definition

_EXAMPLE: Final = 'runs().where(pipeline="triage", status=["completed", "failed"])'


def rows_from(runs: object) -> list[dict[str, Any]]:
    """Rows to start a data set: of each run its id, its inputs and, if it succeeded, its output as ``expected``.

    The output is that of the last stage. What is expected is what came out: correct it where that was wrong.

    Args:
        runs: A run, or several: handles, results, rows of ``runs()``, or run directories. A map stands for its rows.

    Raises:
        OptionError: There is no run, or one has not ended.
    """
    rows: list[dict[str, Any]] = []
    for number, place in enumerate(_places(runs)):
        result = _result(number, place, load_execution(place))
        row = {"id": result.run_id, **_inputs(place)}
        if result.is_success and WHOLE_RESPONSE in result.outputs:
            row["expected"] = result.outputs[WHOLE_RESPONSE]
        rows.append(row)
    return rows


def evaluate_runs(pipeline: Definition, runs: object, scorers: object, output: Any = None) -> Evaluation:
    """The scores of runs that exist; nothing is run.

    Args:
        pipeline: The pipeline that ran.
        runs: As of ``rows_from``.
        scorers: As of ``evaluate``.
        output: The output that is judged, as of ``evaluate``.

    Raises:
        OptionError: A run is of another graph or has not ended, or a scorer is unusable.
    """
    places = list(_places(runs))
    for place in places:
        if read_facts(place).get("graph_hash") != pipeline.graph.content_hash:
            raise OptionError(
                f"the run in {place} is not of this version of {pipeline.name}, and an evaluation is of one graph",
                hint="evaluate the runs of each version with the pipeline of such a run: Run.load(directory).pipeline",
            )
    results = [_result(number, place, load_execution(place, pipeline)) for number, place in enumerate(places)]
    rows: list[EvaluationRow] = []
    for result, place in zip(results, places, strict=True):
        inputs = _inputs(place)
        rows.append(EvaluationRow(result.row, result.run_id, inputs, {"id": result.run_id, **inputs}))
    check_ids(rows)
    of_map = _as_map(pipeline, rows, results)
    scoring = rescored(of_map, rows, scorers, repeat=1, output=WHOLE_RESPONSE if output is None else output)
    return Evaluation(of_map, rows, scoring.scorers, 1, scoring.output, dict(scoring.scores))


def _places(runs: object) -> Iterator[Path]:
    """The directories of runs."""
    given = [runs] if isinstance(runs, Execution | RunResult) or is_path(runs) or hasattr(runs, "logs_root") else runs
    if isinstance(given, MapResult):
        given = [given.directory] if given.directory is not None else []
    if not isinstance(given, Iterable):
        raise OptionError(f"runs must be runs or their directories, not {type(given).__name__}", hint=_EXAMPLE)
    is_empty = True
    for each in cast("Iterable[object]", given):
        place: Any = getattr(each, "logs_root", each)
        if not is_path(place):
            raise OptionError(f"{each!r:.60} is no run", hint=_EXAMPLE)
        path = as_path(place, "runs")
        found = sorted(row.logs_root for row in list_runs(path)) if is_map(path) else [path]
        is_empty = is_empty and not found
        yield from found
    if is_empty:
        raise OptionError("there are no runs", hint=_EXAMPLE)


def _result(number: int, place: Path, run: Execution) -> RowResult:
    if not run.is_done:
        raise OptionError(f"the run {run.id} in {place} has not ended", hint=_EXAMPLE)
    # Its directory is absolute: the runs of an evaluation may come from several places.
    return row_result(RowTask(number, {}, place, (WHOLE_RESPONSE,)), run.result(0.0), str(place.absolute()))


def _inputs(place: Path) -> Mapping[str, Any]:
    """The inputs that a run began with."""
    return inputs_of(read_run(first_directory(place)), {})


def _as_map(pipeline: Definition, rows: list[EvaluationRow], results: list[RowResult]) -> MapResult:
    """The runs as the rows of a map without an id: it has no directory of its own to keep scores in."""
    view = MapView(redacted(pipeline.name), len(results))
    for result in results:
        view.take(result)
    statuses = {result.status for result in results}
    status = "interrupted" if "interrupted" in statuses else "fail" if "fail" in statuses else "success"
    view.end(status, "")
    base = Path(os.path.commonpath([Path(result.directory).parent for result in results]))
    return MapResult(status, "", results, [row.inputs for row in rows], "", base, pipeline, view, (WHOLE_RESPONSE,))
