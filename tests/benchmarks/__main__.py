"""``python tests/benchmarks``: measure every goal beside its peers and write docs/benchmarks.md."""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import goals_branching
import goals_calling
import goals_mapping
import goals_reading
import goals_running
import goals_scaling
import goals_serving
import goals_showing
import goals_starting
import goals_watching
from goals import QUICK, TINY, Goal, Row, Scale
from measuring import ROOT
from report import merged, report, say

GOALS: list[Goal] = [
    *goals_running.GOALS,
    *goals_branching.GOALS,
    *goals_reading.GOALS,
    *goals_showing.GOALS,
    *goals_starting.GOALS,
    *goals_watching.GOALS,
    *goals_mapping.GOALS,
    *goals_calling.GOALS,
    *goals_scaling.GOALS,
    *goals_serving.GOALS,
]


def main() -> None:
    """Read the command line, measure, write."""
    parser = argparse.ArgumentParser(prog="python tests/benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="GOAL", choices=[goal.key for goal in GOALS])
    parser.add_argument("--scale", choices=("full", "quick", "tiny"), default="full")
    parser.add_argument("--output", type=Path, help="docs/benchmarks.md for a whole run, else nothing is written")
    parser.add_argument("--into", type=Path, metavar="PAGE", help="put the rows into this page, and leave its others")
    chosen = parser.parse_args()
    scale = {"full": Scale(), "quick": QUICK, "tiny": TINY}[chosen.scale]
    goals = [goal for goal in GOALS if not chosen.only or goal.key in chosen.only]
    # Nothing is deleted before the end: creating files right after many were deleted is far slower.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ["TMPDIR"] = folder
        measured = [(goal, _measured(goal, scale)) for goal in goals]
    is_whole = chosen.scale == "full" and not chosen.only
    output = chosen.output or (ROOT / "docs" / "benchmarks.md" if is_whole else None)
    if output is not None:
        output.write_text(report(measured, "make bench"), "utf-8")
        say(f"wrote {output}")
    if chosen.into is not None:
        chosen.into.write_text(merged(chosen.into.read_text("utf-8"), measured), "utf-8")
        say(f"wrote rows of {', '.join(goal.key for goal in goals)} into {chosen.into}")


def _measured(goal: Goal, scale: Scale) -> list[Row]:
    say(f"{goal.key} {goal.title}")
    rows = goal.measure(scale)
    for row in rows:
        verdict = row.missing or ("met" if row.is_met else "NOT MET")
        best = "" if row.best is None else f" (best {row.best:.3g})"
        say(f"  {row.subject}: {row.figure:.3g}{best} {row.unit}, at most {row.limit:g}  {row.detail}  {verdict}")
    return rows


if __name__ == "__main__":
    main()
