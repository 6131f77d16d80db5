"""One stage of stored runs as rows of an evaluation: it is executed anew with the context that it had there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from attractor_nb.errors import OptionError
from attractor_nb.evaluation.evaluation_rows import check_ids, read_entries
from attractor_nb.evaluation.rows_of_runs import rows_of, run_directories
from attractor_nb.maps.map_work import plain_value
from attractor_nb.maps.row_run import StoredStage
from attractor_nb.model.texts import did_you_mean, no_such_key
from attractor_nb.model.vocabulary.shapes import CONDITIONAL_TYPE, HUMAN_TYPE
from attractor_nb.storage.stored_run import read_facts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attractor_nb.evaluation.evaluation_rows import EvaluationRow
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.prepare.run_options import EvaluationOptions

_EXAMPLE: Final = 'evaluate(scorers=…, runs=runs().where(…), only="write")'
_REFUSED: Final = {
    "start": "a start node, which does no work",
    "exit": "an exit node, which does no work",
    CONDITIONAL_TYPE: "a diamond, which only passes on the outcome of the stage before it",
    HUMAN_TYPE: "a human gate: a person answers it, and not this pipeline",
    "parallel": "a fan-out, whose branches are stages of their own",
}


def stage_rows(
    pipeline: Definition, runs: object, own: EvaluationOptions, given: object = None
) -> tuple[list[EvaluationRow], list[StoredStage]]:
    """The rows of an evaluation of one stage, and for each the stored stage that it executes anew.

    Args:
        pipeline: The pipeline whose stage is executed.
        runs: Stored runs of it, of any version; as of ``evaluate``.
        own: The options of the evaluation, with its stage.
        given: Rows by id, such as those with the expected answers: only their runs are used. None for all runs.

    Raises:
        OptionError: There are no runs, the node is unknown or cannot be executed alone, or a run or row is unusable.
    """
    if runs is None or own.inputs is not None:
        needed = "only needs stored runs, in which the stage is executed anew"
        useless = "a stage has the stored context of its run, so inputs would do nothing"
        raise OptionError(needed if runs is None else useless, hint=f"runs=…, only={own.only!r}")
    node = check_stage(pipeline, own.only)
    places = list(run_directories(runs))
    for place in places:
        name = str(read_facts(place).get("pipeline_name", ""))
        if name != pipeline.name:
            raise OptionError(
                f"the run in {place} is of the pipeline {name}, not of {pipeline.name}",
                hint=f'choose its runs: runs().where(pipeline="{pipeline.name}")',
            )
    rows = rows_of(places)
    check_ids(rows)
    if given is not None:
        rows = _described(rows, given)
    stored = [StoredStage(node, places[row.number].absolute()) for row in rows]
    return [replace(row, number=number) for number, row in enumerate(rows)], stored


def check_stage(pipeline: Definition, only: object) -> str:
    """The node that is executed alone; refuses one that does no work by itself."""
    graph = pipeline.graph
    if not isinstance(only, str):
        raise OptionError(f"only must be the id of a node, not {type(only).__name__}", hint=_EXAMPLE)
    if only not in graph.nodes:
        raise no_such_key("the pipeline", "node", only, graph.nodes)
    if kind := _REFUSED.get(graph.handler_types[only]):
        raise OptionError(f"{only} is {kind}, so it cannot be evaluated alone", hint="name a stage that does work")
    return only


def _described(rows: Sequence[EvaluationRow], given: object) -> list[EvaluationRow]:
    """The rows that were given, each with the inputs of the run of its id."""
    entries, is_text = read_entries(given)
    by_id = {row.id: row for row in rows}
    found: list[EvaluationRow] = []
    for number, entry in enumerate(entries):
        columns: dict[str, Any] = {str(key): plain_value(value) for key, value in entry.items()}
        name = str(columns.get("id", ""))
        if name not in by_id:
            unknown = f'there is no run "{name}"{did_you_mean(name, by_id)}' if name else "it has no id"
            raise OptionError(
                f"row {number}: {unknown}",
                hint="with only=… the id of a row is the id of a run, or of a row of the evaluation that ran it",
            )
        run = by_id[name]
        changed = [key for key, value in run.inputs.items() if not is_text and columns.get(key, value) != value]
        if changed:
            raise OptionError(
                f'row {number}: its "{changed[0]}" is not the one that the run {name} had',
                hint="a stage is executed with the stored context of its run: leave the column out, or evaluate the "
                "whole pipeline on the row",
            )
        try:
            json.dumps(columns, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise OptionError(f"row {number} is not a JSON value: {error}", hint="use JSON values") from None
        found.append(replace(run, columns={**run.columns, **columns, **run.inputs, "id": name}))
    if not found:
        raise OptionError("there are no rows to evaluate", hint="leave rows out to evaluate all runs")
    check_ids([replace(row, number=number) for number, row in enumerate(found)])
    return found
