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
from attractor_nb.evaluation.scoring import EvaluationHead, read_head
from attractor_nb.maps.map_launch import MapResult, MapRun
from attractor_nb.maps.map_view import MapView
from attractor_nb.maps.row_run import RowTask, row_result
from attractor_nb.model.texts import no_such_key
from attractor_nb.model.vocabulary.value_forms import WHOLE_RESPONSE
from attractor_nb.redaction import redacted
from attractor_nb.runtime.execution import Execution
from attractor_nb.runtime.handles.run_result import RunResult
from attractor_nb.runtime.past import RecordedVisit, read_history
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.runtime.stored_execution import is_path, load_execution
from attractor_nb.runtime.stored_state import inputs_of
from attractor_nb.storage.map_directory import is_evaluation, is_map, row_number
from attractor_nb.storage.run_directory import first_directory
from attractor_nb.storage.run_index import list_runs
from attractor_nb.storage.stored_run import read_facts, read_run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from attractor_nb.model.row_result import RowResult
    from attractor_nb.runtime.definition import Definition

_EXAMPLE: Final = 'runs().where(pipeline="triage", status=["completed", "failed"])'


def rows_from(runs: object, *, stage: str | None = None, visit: int | None = None) -> list[dict[str, Any]]:
    """Rows to start a data set: of each run its id, its inputs and, if it succeeded, its output as ``expected``.

    The output is that of the last stage. What is expected is what came out: correct it where that was wrong.

    Args:
        runs: A run, or several: handles, results, rows of ``runs()``, or run directories. A map stands for its rows.
        stage: The stage whose response is expected in place of the output, such as for ``evaluate(…, only=stage)``.
        visit: Which of its visits, by number; the latest by default.

    Raises:
        OptionError: There is no run, or one has not ended.
    """
    rows: list[dict[str, Any]] = []
    for number, place in enumerate(run_directories(runs)):
        run = load_execution(place)
        result = _result(number, place, run)
        row = {"id": result.run_id, **_inputs(place)}
        if stage is not None:
            answers = _answers_of(run, stage, visit)
        else:
            answers = [result.outputs[WHOLE_RESPONSE]] if result.is_success and WHOLE_RESPONSE in result.outputs else []
        if answers:
            row["expected"] = answers[0]
        rows.append(row)
    return rows


def _answers_of(run: Execution, stage: str, visit: int | None) -> list[Any]:
    """The response of a stage in a visit, or the output of its command; empty without either."""
    if stage not in run.graph.nodes:
        raise no_such_key("the pipeline", "node", stage, run.graph.nodes)
    visits = [one for one in read_history(run).visits_of(stage) if not one.is_set_aside]
    counted = [one for one in visits if visit in (None, one.record.number)]
    return answers_at(counted[-1]) if counted else []


def answers_at(visit: RecordedVisit) -> list[Any]:
    """The response of a visit that succeeded, or the output of its command; empty without either."""
    commit = visit.record.commit
    if commit is None or commit.outcome.status.is_failure:
        return []
    keys = (f"{visit.record.node_id}.response", "tool.output")
    return [visit.place.resolve(commit.context[key]) for key in keys if key in commit.context][:1]


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
    places = list(run_directories(runs))
    for place in places:
        if read_facts(place).get("graph_hash") != pipeline.graph.content_hash:
            raise OptionError(
                f"the run in {place} is not of this version of {pipeline.name}, and an evaluation is of one graph",
                hint="evaluate the runs of each version with the pipeline of such a run: Run.load(directory).pipeline",
            )
    results = [_result(number, place, load_execution(place, pipeline)) for number, place in enumerate(places)]
    rows = rows_of(places)
    check_ids(rows)
    of_map = _as_map(pipeline, rows, results)
    scoring = rescored(of_map, rows, scorers, repeat=1, output=WHOLE_RESPONSE if output is None else output)
    return Evaluation(of_map, rows, scoring.scorers, 1, scoring.output, dict(scoring.scores))


def rows_of(places: Sequence[Path]) -> list[EvaluationRow]:
    """The rows that stored runs are of: with all columns where an evaluation ran them, else their ids and inputs.

    The repeats of a row are rows of one group: they are one piece of evidence.
    """
    evaluations: dict[Path, tuple[EvaluationHead, list[EvaluationRow]] | None] = {}
    rows: list[EvaluationRow] = []
    for number, place in enumerate(places):
        around, row = place.absolute().parent, row_number(place.name)
        if around not in evaluations:
            evaluations[around] = read_head(around) if is_evaluation(around) else None
        evaluation = evaluations[around]
        if evaluation is None or row is None:
            inputs = _inputs(place)
            run_id = str(read_facts(place).get("run_id", ""))
            rows.append(EvaluationRow(number, run_id, inputs, {"id": run_id, **inputs}))
            continue
        head, known = evaluation
        of = known[row % len(known)]
        columns, name = dict(of.columns), of.id
        if head.repeat > 1:
            name = f"{of.id}, run {row // len(known)}"
            columns["group"] = of.group or of.id
        rows.append(EvaluationRow(number, name, of.inputs, {**columns, "id": name}))
    return rows


def run_directories(runs: object) -> Iterator[Path]:
    """The directories of runs: of handles, results, an evaluation or map, rows of ``runs()``, and directories.

    Raises:
        OptionError: There is no run.
    """
    given = [runs] if isinstance(runs, Execution | RunResult) or is_path(runs) or hasattr(runs, "logs_root") else runs
    if isinstance(given, Evaluation | MapRun):
        given = [given.directory] if given.directory is not None else []
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
