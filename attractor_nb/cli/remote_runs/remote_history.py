"""The command ``runs`` of a server: the same table, columns and filters as of a directory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.cli.remote_runs.server_client import Client, ServerAddress, as_mapping, as_mappings
from attractor_nb.cli.reporting import ExitCode, print_json
from attractor_nb.cli.runs_list import run_plain, shown_runs
from attractor_nb.model.outcome import ResultMarks, Usage
from attractor_nb.pipeline.runs import RunRow, RunTable
from attractor_nb.studio.history.history_table import history_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PAGE: Final = 1_000
"""Runs that a server lists at a time."""


def show_runs_on(address: ServerAddress, conditions: Mapping[str, Any], *, is_json: bool) -> ExitCode:
    """Print the runs of a server, newest first, and those alone for which all conditions hold."""
    client = Client(address)
    found = RunTable(Path(), [_row(entry) for entry in _listed(client)])
    chosen = found.where(**conditions)
    if is_json:
        print_json([_plain(row, client) for row in chosen])
        return ExitCode.SUCCESS
    if not chosen:
        words = f"none of the {len(found)} runs" if found else "no runs"
        print(f"{words} on {address.url}{' fits' if found else ''}", file=sys.stderr)
        return ExitCode.SUCCESS
    print(shown_runs(history_table(chosen)))
    stopped = next((row for row in chosen if row.is_resumable and not row.is_map), None)
    if stopped is not None:
        command = f"attractor-nb resume {client.url_of(stopped.logs_root.name)}"
        print(f"\nresume the newest stopped run: {command}", file=sys.stderr)
    return ExitCode.SUCCESS


def _plain(row: RunRow, client: Client) -> dict[str, Any]:
    """As of a directory, but for where the run is."""
    run_id = row.logs_root.name
    plain = {name: value for name, value in run_plain(row).items() if name != "logs_root"}
    return {**plain, "id": run_id, "url": client.url_of(run_id)}


def _listed(client: Client) -> Iterator[Mapping[str, Any]]:
    """All runs of a server, page by page; one that moved to the next page meanwhile is not told twice."""
    offset = 0
    had: set[str] = set()
    while True:
        page = as_mappings(as_mapping(client.get(query=f"limit={PAGE}&offset={offset}")).get("pipelines"))
        for entry in page:
            if (run_id := str(entry.get("id", ""))) not in had:
                had.add(run_id)
                yield entry
        offset += len(page)
        if len(page) < PAGE:
            return


def _row(entry: Mapping[str, Any]) -> RunRow:
    """A run of a server as a line of the list; its id is where a directory's name would."""
    usage = entry.get("usage")
    return RunRow(
        Path(str(entry.get("id", ""))),
        str(entry.get("run_id") or entry.get("id", "")),
        str(entry.get("name") or ""),
        str(entry.get("status", "")),
        str(entry.get("start_time") or ""),
        entry.get("end_time"),
        kind=str(entry.get("kind") or "run"),
        duration=entry.get("duration"),
        stages=entry.get("stages"),
        usage=Usage.from_plain(as_mapping(usage)) if usage is not None else None,
        tags=tuple(entry.get("tags") or ()),
        inputs=str(entry.get("inputs") or ""),
        marks=ResultMarks.of_facts(entry),
        lineage=str(entry.get("lineage") or ""),
        note=str(entry.get("note") or ""),
    )
