"""Scores of runs that exist: no row is run again."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from attractor_nb.errors import OptionError
from attractor_nb.evaluation.scorers import read_scorers
from attractor_nb.evaluation.scoring import Scoring, check_output
from attractor_nb.maps.map_work import ENDED_ROWS
from attractor_nb.runtime.handles.handle import new_job

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from attractor_nb.evaluation.evaluation_rows import EvaluationRow
    from attractor_nb.maps.map_launch import MapResult
    from attractor_nb.model.row_result import RowResult

ROWS_AT_ONCE = 4


def rescored(
    of_map: MapResult,
    rows: Sequence[EvaluationRow],
    scorers: object,
    *,
    repeat: int,
    output: Any,
    directory: Path | None = None,
) -> Scoring:
    """The stored runs of a map, scored with these scorers; blocks.

    Args:
        of_map: The result of the map.
        rows: Its rows.
        scorers: The scorers.
        repeat: Runs of each row.
        output: The output that is judged.
        directory: The directory of the evaluation, which keeps the scores; None for runs of others.
    """
    if of_map.directory is None:
        raise OptionError("nothing is kept of this evaluation", hint="evaluate the rows again")
    scoring = Scoring(of_map.pipeline, rows, read_scorers(scorers), repeat, check_output(output))
    if directory is not None:
        scoring.open(directory)
    else:
        scoring.look_in(of_map.directory)
    ended = [replace(result, was_finished=True) for result in of_map.rows if result.status in ENDED_ROWS]
    job = new_job("thread", "scoring")
    job.start(partial(_follow, scoring, ended))
    job.future.result()
    return scoring


async def _follow(scoring: Scoring, rows: Sequence[RowResult]) -> None:
    waiting = iter(rows)

    async def work() -> None:
        for result in waiting:
            await scoring.follow(result)

    try:
        await asyncio.gather(*(work() for _ in range(ROWS_AT_ONCE)))
    finally:
        await scoring.close()
