"""The command ``runs``: the runs that are kept, with the columns and filters of ``runs()`` in Python."""

from __future__ import annotations

import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.cli.reporting import ExitCode, print_json
from attractor_nb.cli.run_summary import resume_command, shown_path
from attractor_nb.pipeline.runs import RunRow, runs
from attractor_nb.studio.history.history_table import UNKNOWN, history_table
from attractor_nb.views.table import Table, cells, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


_FACTS: Final = ("started", "took", "stages", "tokens", "cost", "tags")


def show_runs(base: Path, conditions: Mapping[str, Any], *, is_json: bool) -> ExitCode:
    """Print the runs under a runs base, newest first, and how to continue those that stopped.

    Args:
        conditions: As of ``RunTable.where``.
        is_json: Print JSON.
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
    print(shown_runs(history_table(chosen, place=lambda row: shown_path(row.logs_root))))
    stopped = next((row for row in chosen if row.is_resumable and not row.is_map), None)
    if stopped is not None:
        print(f"\nresume the newest stopped run: {resume_command(stopped.logs_root)}", file=sys.stderr)
    return ExitCode.SUCCESS


def shown_runs(table: Table) -> str:
    """The table of runs; at a terminal that is too narrow for it a block of lines for each run, which cuts nothing."""
    text = str(table)
    columns = shutil.get_terminal_size().columns if is_terminal() else 0
    if not columns or max(map(cells, text.split("\n"))) <= columns:
        return text
    titles = [column.title for column in table.columns]
    rows = [dict(zip(titles, map(one_line, row), strict=True)) for row in table.rows]
    return "\n".join(line for row in rows for line in _block(row, columns))


def is_terminal() -> bool:
    """True if a person reads stdout."""
    return sys.stdout.isatty()


def _block(row: Mapping[str, str], columns: int) -> Iterator[str]:
    """The lines of a run: which, when and how much, where, and why."""
    known = {title: cell for title, cell in row.items() if cell not in {"", UNKNOWN}}
    for title in ("stages", "tokens"):
        if known.get(title, "").replace(",", "").isdigit():
            known[title] += f" {title}"
    for titles in (("#", "status", "pipeline"), _FACTS, ("run directory",), ("note",)):
        line = "  ".join(known[title] for title in titles if title in known)
        indent = "" if titles[0] == "#" else "   "
        yield from textwrap.wrap(
            line,
            columns,
            initial_indent=indent,
            subsequent_indent="   ",
            break_long_words=False,
            break_on_hyphens=False,
        )


def run_plain(row: RunRow) -> dict[str, Any]:
    """A run of the list as JSON values."""
    return {
        "run_id": row.run_id,
        "kind": row.kind,
        "pipeline": row.pipeline_name,
        "inputs": row.inputs,
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
