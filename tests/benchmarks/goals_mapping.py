"""M1: many runs of one pipeline in one process."""

from __future__ import annotations

from goals import Goal, Row, Scale, compared
from measuring import in_turns, worker

MOST_BYTES = 2048


def mapped_runs(scale: Scale) -> list[Row]:
    count = scale.steps
    figures = in_turns(
        {
            "map": lambda _: worker("mapping", "map:none", count)["cpu"],
            "runs": lambda _: worker("mapping", "runs", count)["cpu"],
        },
        scale.slow_rounds,
        warm_ups=0,
    )
    rows = [
        compared(
            f"a run of 5 stages, one of {count} of a map, against runs one by one, CPU",
            1.3,
            figures["map"],
            figures["runs"],
            per=count,
        )
    ]
    long = worker("mapping", "map:none", 10 * count)
    detail = f"{long['cpu'] / (10 * count) * 1e6:.4g} µs a run, {long['grown'] / 1e6:.3g} MB in all"
    kept = long["grown"] / (10 * count)
    rows.append(Row(f"memory kept for a run of a map of {10 * count}", MOST_BYTES, kept, unit="B", detail=detail))
    return rows


GOALS = [
    Goal(
        "M1",
        "a pipeline of five simulated stages mapped over many inputs",
        mapped_runs,
        "Nothing stored. What stays of a run is its inputs, its status and its usage.",
    )
]
