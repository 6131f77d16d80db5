"""Commands against a server of ours: ``submit``, ``runs`` and ``answer``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.cli.answering import ANSWERED_BY
from attractor_nb.cli.exit_codes import ExitCode
from attractor_nb.cli.inputs import STDIN, read_params, read_text
from attractor_nb.cli.reporting import print_json
from attractor_nb.cli.server_client import Client, ServerAddress, as_mapping, as_mappings
from attractor_nb.errors import RunError
from attractor_nb.model.outcome import Usage
from attractor_nb.pipeline.history import RunRow, RunTable
from attractor_nb.views.columns import one_line
from attractor_nb.views.history_table import history_table
from attractor_nb.views.table import table_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from attractor_nb.cli.answering import GivenAnswer
    from attractor_nb.cli.execution import Settings

PAGE: Final = 1_000
"""Runs that a server lists at a time."""


def submit_file(
    file: str, address: ServerAddress, settings: Settings, *, params: Iterable[str], trust: str | None
) -> ExitCode:
    """Have a server run the pipeline of a file, and print where it is to be found.

    Args:
        file: The file, or ``-`` for stdin.
        address: The server.
        settings: Backend and bounds.
        params: Values for the context, as of ``--param``.
        trust: Hash of the commands that it may run, or None.

    Raises:
        OptionError, SourceError, UntrustedSource, RunError: It cannot be read, or the server refuses it.
    """
    source = read_text(file)
    wish = {
        "name": "" if file == STDIN else Path(file).stem,
        "params": read_params(params),
        "backend": settings.backend.value if settings.backend else None,
        "trust": trust,
        **settings.bounds,
    }
    client = Client(address)
    body = {
        "source": source.text,
        **{name: value for name, value in wish.items() if value not in (None, "", {})},
    }
    answer = as_mapping(client.post(body=body))
    run_id = one_line(str(answer.get("id", "")))
    if not run_id:
        raise RunError(f"the server at {address.url} does not say the id of the run")
    url = client.url_of(run_id)
    if settings.is_json:
        print_json({"id": run_id, "url": url})
        return ExitCode.SUCCESS
    print(f"{run_id}\n{url}")
    print(f"watch it with `attractor-nb watch {url}`", file=sys.stderr)
    return ExitCode.SUCCESS


def show_runs_on(address: ServerAddress, conditions: Mapping[str, Any], *, is_json: bool) -> ExitCode:
    """Print the runs of a server, newest first, and those alone for which all conditions hold.

    Raises:
        OptionError: A condition means nothing, or no server is there.
    """
    entries = list(_listed(Client(address)))
    rows = RunTable(Path(), [_row(entry) for entry in entries])
    plain = {id(row): entry for row, entry in zip(rows, entries, strict=True)}
    chosen = rows.where(**conditions)
    if is_json:
        print_json([plain[id(row)] for row in chosen])
    elif chosen:
        print(table_text(history_table(chosen)))
    else:
        words = f"none of the {len(rows)} runs" if rows else "no runs"
        print(f"{words} on {address.url}{' fits' if rows else ''}", file=sys.stderr)
    return ExitCode.SUCCESS


def _listed(client: Client) -> Iterator[Mapping[str, Any]]:
    """All runs of a server, page by page."""
    offset = 0
    while True:
        page = as_mappings(as_mapping(client.get(query=f"limit={PAGE}&offset={offset}")).get("pipelines"))
        yield from page
        offset += len(page)
        if len(page) < PAGE:
            return


def _row(entry: Mapping[str, Any]) -> RunRow:
    """A run of a server as a line of the list; its id stands where a directory's name would."""
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
        lineage=str(entry.get("lineage") or ""),
        note=str(entry.get("note") or ""),
    )


def answer_on(address: ServerAddress, run_id: str, given: GivenAnswer, *, is_json: bool) -> ExitCode:
    """Hand in an answer at a server.

    Raises:
        RunNotFound, NoSuchGate, AlreadyAnswered, AnswerRefused: It does not count.
    """
    wish: dict[str, Any] = {"choice": given.choice, "text": given.text, "form": dict(given.fields)}
    body = {name: value for name, value in wish.items() if value}
    body["answered_by"] = ANSWERED_BY
    answer = Client(address).post(run_id, "questions", given.gate, "answer", body=body)
    if is_json:
        print_json(answer)
    else:
        print(f"✓ {one_line(given.gate)}: {one_line(given.choice or given.text) or 'filled in'}")
    return ExitCode.SUCCESS
