"""The command ``runs``: the runs that are kept, with the columns and filters of ``runs()`` in Python."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from attractor_nb.cli.exit_codes import ExitCode
from attractor_nb.cli.reporting import print_json
from attractor_nb.cli.run_summary import resume_command, shown_path
from attractor_nb.pipeline.runs import runs
from attractor_nb.studio.history.history_table import history_table
from attractor_nb.views.table import table_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from attractor_nb.pipeline.runs import RunRow


def show_runs(base: Path, conditions: Mapping[str, Any], *, is_json: bool) -> ExitCode:
    """Print the runs under a runs base, newest first, and how to go on with those that stopped.

    Args:
        conditions: As of ``RunTable.where``.
        is_json: Print JSON.

    Raises:
        OptionError: A condition means nothing.
        StorageError: The base cannot be read.
    """
    found = runs(base)
    chosen = found.where(**conditions)
    if is_json:
        print_json([run_plain(row) for row in chosen])
        return ExitCode.SUCCESS
    if not chosen:
        words = f"none of the {len(found)} runs" if found else "no runs"
        print(f"{words} in {shown_path(base)}{' fits' if found else ''}", file=sys.stderr)
        return ExitCode.SUCCESS
    print(table_text(history_table(chosen, place=lambda row: shown_path(row.logs_root))))
    stopped = next((row for row in chosen if row.is_resumable and row.kind == "run"), None)
    if stopped is not None:
        print(f"\ncontinue the newest stopped run: {resume_command(stopped.logs_root)}", file=sys.stderr)
    return ExitCode.SUCCESS


def run_plain(row: RunRow) -> dict[str, Any]:
    """A run of the list as JSON values."""
    return {
        "run_id": row.run_id,
        "kind": row.kind,
        "pipeline": row.pipeline_name,
        "status": row.status,
        "start_time": row.start_time or None,
        "end_time": row.end_time,
        "duration_seconds": row.duration,
        "stages": row.stages,
        "usage": None if row.usage is None else row.usage.to_plain(),
        "tags": list(row.tags),
        "is_simulated": row.is_simulated,
        "mark": row.mark,
        "lineage": row.lineage or None,
        "note": row.note or None,
        "logs_root": str(row.logs_root),
        "is_resumable": row.is_resumable,
    }
