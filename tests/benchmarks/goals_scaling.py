"""P14: stages that are done by a worker of a Dask cluster."""

from __future__ import annotations

from goals import Goal, Row, Scale, compared
from measuring import Figures, worker

WORK_MILLISECONDS = 20


def dask_stages(scale: Scale) -> list[Row]:
    calls = max(10, scale.steps // 20)
    rows: list[Row] = []
    for milliseconds in (WORK_MILLISECONDS, 0):
        times = worker("dask_stage", calls, milliseconds, scale.slow_rounds)
        ours, bare = (Figures(tuple(times[name])) for name in ("stages", "bare"))  # type: ignore[arg-type]
        subject = f"a stage of {milliseconds} ms of work against client.submit of the same function, wall"
        rows.append(compared(subject, 1.3, ours, bare, per=calls, unit="ms"))
    return rows


GOALS = [
    Goal(
        "P14",
        "stages on a Dask worker",
        dask_stages,
        "One worker process, one call after another, nothing stored. A stage carries its context and brings back its files and output; "
        "a function that does nothing shows what that costs.",
    )
]
