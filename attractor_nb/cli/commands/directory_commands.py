"""Commands about what runs and sessions left on the disk.

No ``from __future__ import annotations`` here: typer reads the annotations at run time.
"""

import os
import shutil
from pathlib import Path
from typing import Annotated

import typer

from attractor_nb.cli.option_choices import ExportedRows
from attractor_nb.cli.reporting import ExitCode
from attractor_nb.cli.shared_options import Backend, Json, Model, RunsDir, Server, Token, complete_runs

RUNS_HELP = """List runs and maps, newest first. A stopped one has the command that resumes it.

\b
  attractor-nb runs
  attractor-nb runs --status failed --since 24h
  attractor-nb runs --pipeline review --tag good --json
  attractor-nb runs --runs-dir out --text timeout
  attractor-nb runs --server http://127.0.0.1:8765 --token TOKEN
"""

DIFF_HELP = """Compare two runs: path, texts, context, cost. Or two maps: outcomes and outputs by inputs, cost.

\b
  attractor-nb diff .attractor/runs/first .attractor/runs/second
  attractor-nb diff first second --json | jq '.steps[] | select(.differs != [])'
  attractor-nb diff first second -o both.html       as a page
  attractor-nb diff MAP_DIR OTHER_MAP_DIR
  attractor-nb diff MAP_DIR OTHER_MAP_DIR --json | jq '.rows[] | select(.differs | index("outcome"))'
"""


def runs(
    runs_dir: RunsDir = None,
    status: Annotated[
        list[str] | None,
        typer.Option(
            "--status", help="Runs with this status, such as failed or running; repeatable.", show_default=False
        ),
    ] = None,
    pipeline: Annotated[
        str | None, typer.Option("--pipeline", metavar="NAME", help="Runs of this pipeline.", show_default=False)
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="Runs with this tag; repeatable.", show_default=False)
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="TIME", help="Runs started since: 24h, 7d, 2026-11-01 (UTC).", show_default=False
        ),
    ] = None,
    text: Annotated[
        str | None, typer.Option("--text", help="Runs with this text in any column.", show_default=False)
    ] = None,
    server: Server = None,
    token: Token = None,
    is_json: Json = False,
) -> int:
    """List runs."""
    from attractor_nb.cli.run_places import usual_server  # noqa: PLC0415 - commands load what they need

    given = {"status": status, "pipeline": pipeline, "tag": tag, "since": since, "text": text}
    conditions = {name: value for name, value in given.items() if value}
    if server is not None and runs_dir is not None:
        raise typer.BadParameter("--runs-dir names a local folder; a server has its own")
    if runs_dir is None and (server := server or usual_server()) is not None:
        from attractor_nb.cli.remote_runs.remote_history import show_runs_on  # noqa: PLC0415 - as above
        from attractor_nb.cli.remote_runs.server_client import read_address  # noqa: PLC0415 - as above

        return show_runs_on(read_address(server, token), conditions, is_json=is_json)
    from attractor_nb.cli.runs_list import show_runs  # noqa: PLC0415 - as above

    return show_runs(runs_dir or Path(".attractor/runs"), conditions, is_json=is_json)


DOCTOR_HELP = """Diagnose a run, a pipeline or this machine.

\b
  attractor-nb doctor                              keys, agents, extras, disk
  attractor-nb doctor review.dot --backend llm     what a run of it would need
  attractor-nb doctor .attractor/runs/2026-02-21T18-30-00Z-abcdefgh
  attractor-nb doctor MAP_DIR                      rows that failed or are damaged, and how to continue it
  attractor-nb doctor RUN_DIR --salvage NEW_DIR    save what is whole into a new run directory
  attractor-nb doctor RUN_DIR --json | jq .verdict

\b
Exit codes of a run directory: 0 healthy, 1 damaged but resumable or recoverable, 2 nothing to resume.
Exit codes otherwise: 0 ready, 1 not ready.
"""


def doctor(
    place: Annotated[
        Path | None,
        typer.Argument(
            metavar="[RUN_DIR|MAP_DIR|FILE]",
            help="A run or map directory or a .dot file; without it, this machine.",
            show_default=False,
            autocompletion=complete_runs,
        ),
    ] = None,
    target: Annotated[
        Path | None,
        typer.Option(
            "--salvage",
            metavar="NEW_DIR",
            help="Save the intact parts of a run into this new directory.",
            show_default=False,
        ),
    ] = None,
    backend: Backend = None,
    model: Model = None,
    is_online: Annotated[
        bool, typer.Option("--online", help="Check that the servers of a file's models answer.")
    ] = False,
    is_json: Json = False,
) -> int:
    """Diagnose a run directory, a pipeline or the machine."""
    from attractor_nb.cli.doctor import show_diagnosis, show_preflight  # noqa: PLC0415 - as above
    from attractor_nb.cli.option_choices import Settings  # noqa: PLC0415 - as above
    from attractor_nb.storage.map_directory import is_map  # noqa: PLC0415 - as above

    is_file = place is not None and (place.is_file() or place.suffix == ".dot")
    if place is None or is_file:
        if target is not None:
            raise typer.BadParameter("--salvage needs a run directory")
        return show_preflight(place, Settings(backend=backend, model=model), is_online=is_online, is_json=is_json)
    if backend is not None or model is not None or is_online:
        raise typer.BadParameter("--backend, --model and --online need a .dot file")
    if is_map(place):
        from attractor_nb.cli.map_execution import diagnose_map  # noqa: PLC0415 - as above

        if target is not None:
            raise typer.BadParameter("--salvage needs the run directory of a row, such as MAP_DIR/row-00000")
        return diagnose_map(place, is_json=is_json)
    return show_diagnosis(place, target=target, is_json=is_json)


CACHE_HELP = """Show the size of the stage cache, or empty it.

\b
  attractor-nb cache
  attractor-nb cache --clear
  attractor-nb cache --cache-dir out/cache --json
"""


def cache(
    cache_dir: Annotated[
        Path | None,
        typer.Option("--cache-dir", metavar="DIR", help="The cache; .attractor/cache by default.", show_default=False),
    ] = None,
    is_cleared: Annotated[bool, typer.Option("--clear", help="Remove all cached results.")] = False,
    is_json: Json = False,
) -> int:
    """Show or empty a cache."""
    from attractor_nb.cli.graph_reports import show_cache  # noqa: PLC0415 - as above

    return show_cache(cache_dir or Path(".attractor/cache"), is_cleared=is_cleared, is_json=is_json)


WATCH_HELP = """Watch a run, a map, or a session of agents, until it ends.

\b
  attractor-nb watch .attractor/runs/2026-02-21T18-30-00Z-q7kd2m4x
  attractor-nb watch http://127.0.0.1:8765/pipelines/RUN_ID --token TOKEN
  attractor-nb watch RUN_ID --server "$URL" --json | jq -r .type    its events, a line each
  attractor-nb watch MAP_DIR                           its rows: failures first, then those under way
  attractor-nb watch MAP_DIR --once --status failed --filter timeout    only these rows
  attractor-nb watch                                   the active session here
  attractor-nb watch .founder-mode/status/sessions/20260201-143022-abc12345
  attractor-nb watch --once --json | jq .summary

\b
Exit codes: 0 success, or it is active with --once; 1 failed; 130 stopped or cancelled; 2 nothing to watch.
"""


def watch(
    place: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN_DIR|MAP_DIR|URL|SESSION_DIR]",
            help="A run, a map or a session; with --server a run's id; by default the active session here.",
            show_default=False,
            autocompletion=complete_runs,
        ),
    ] = None,
    is_once: Annotated[bool, typer.Option("--once", help="Show the current state and return.")] = False,
    status: Annotated[
        str,
        typer.Option(
            "--status",
            metavar="STATUS",
            help="Of a map: rows with this status, such as failed or running.",
            show_default=False,
        ),
    ] = "",
    words: Annotated[
        str,
        typer.Option(
            "--filter", metavar="TEXT", help="Of a map: rows that contain each of these words.", show_default=False
        ),
    ] = "",
    server: Server = None,
    token: Token = None,
    is_json: Annotated[
        bool,
        typer.Option("--json", help="A line of JSON for each event, or each row of a map; for a session, its status."),
    ] = False,
) -> int:
    """Show what is active."""
    from attractor_nb.cli.run_places import run_address  # noqa: PLC0415 - as above

    address = run_address(place or "", server, token)
    from attractor_nb.storage.map_directory import is_map  # noqa: PLC0415 - as above

    if (status or words) and (address is not None or place is None or not is_map(Path(place))):
        from attractor_nb.errors import OptionError  # noqa: PLC0415 - as above

        raise OptionError("--status and --filter choose rows of a map", hint="name the directory of a map")
    if address is not None:
        from attractor_nb.cli.run_watching import watch_server  # noqa: PLC0415 - each kind loads its own

        return watch_server(address, is_once=is_once, is_json=is_json)
    from attractor_nb.storage.stored_run import has_event_log  # noqa: PLC0415 - as above

    path = None if place is None else Path(place)
    if path is not None and has_event_log(path):
        from attractor_nb.cli.run_watching import watch_directory  # noqa: PLC0415 - as above

        return watch_directory(path, is_once=is_once, is_json=is_json)
    if path is not None and is_map(path):
        from attractor_nb.cli.map_execution import watch_map  # noqa: PLC0415 - as above
        from attractor_nb.views.row_table import RowQuery  # noqa: PLC0415 - as above

        return watch_map(path, RowQuery(words, status), is_once=is_once, is_json=is_json)
    if path is not None and not _may_hold_session(path):
        from attractor_nb.errors import RunNotFound  # noqa: PLC0415 - as above
        from attractor_nb.runtime.prepare.current_directory import here  # noqa: PLC0415 - as above

        here()  # an error says so when it was removed
        hint = "name the directory of a run, a map or a session; attractor-nb runs lists runs and maps"
        words = f"{path} contains neither a run nor a map nor a session"
        raise RunNotFound(words if path.is_dir() else f"there is no directory {path}", hint=hint)
    from attractor_nb.cli.run_watching import watch as watch_session  # noqa: PLC0415 - as above

    return watch_session(path, is_once=is_once, is_json=is_json)


def _may_hold_session(path: Path) -> bool:
    """True for a directory with a status, and for one that may not be looked into: reading it says so."""
    from attractor_nb.storage.run_directory import STATUS_NAME  # noqa: PLC0415 - as above

    return path.is_dir() and (os.path.lexists(path / STATUS_NAME) or not os.access(path, os.X_OK))


Place = Annotated[
    str,
    typer.Argument(
        metavar="RUN_DIR|RUN_ID",
        help="The run's directory; with --server the run's id, or its URL.",
        show_default=False,
        autocompletion=complete_runs,
    ),
]
"""A run that a command speaks to."""

ANSWER_HELP = """Answer an open question of a run.

\b
  attractor-nb answer .attractor/runs/2026-02-21T18-30-00Z-q7kd2m4x review approve
  attractor-nb answer RUN_DIR feedback --text "shorter, and with a picture"
  attractor-nb answer RUN_ID review A --server http://127.0.0.1:8765 --token TOKEN
  attractor-nb answer RUN_ID review A --server "$URL" --field score:=7 --field why=fast

A process that works on the run continues with the answer. Otherwise it is recorded and nothing is run:
`attractor-nb resume` resumes the run with it. The first answer counts; one that matches no choice is refused.
"""


def answer(
    place: Place,
    gate: Annotated[
        str, typer.Argument(metavar="GATE", help="The node that asks, or the question's id.", show_default=False)
    ],
    choice: Annotated[
        str, typer.Argument(metavar="CHOICE", help="Key, label or target of a choice.", show_default=False)
    ] = "",
    text: Annotated[str, typer.Option("--text", help="Free text, with or without a choice.", show_default=False)] = "",
    fields: Annotated[
        list[str] | None,
        typer.Option(
            "--field",
            metavar="KEY=TEXT",
            help="A field of a form, for a run on a server; KEY:=JSON for JSON.",
            show_default=False,
        ),
    ] = None,
    server: Server = None,
    token: Token = None,
    is_json: Json = False,
) -> int:
    """Answer a question."""
    from attractor_nb.cli.option_choices import GivenAnswer  # noqa: PLC0415 - as above
    from attractor_nb.cli.run_places import run_address  # noqa: PLC0415 - as above
    from attractor_nb.cli.source_inputs import read_params  # noqa: PLC0415 - as above

    given = GivenAnswer(gate, choice, text, read_params(fields or (), "--field"))
    address = run_address(place, server, token)
    if address is None:
        from attractor_nb.cli.answer_gate import answer_directory  # noqa: PLC0415 - as above

        return answer_directory(Path(place), given, is_json=is_json)
    from attractor_nb.cli.remote_runs.remote import answer_on  # noqa: PLC0415 - as above

    return answer_on(address, given, is_json=is_json)


TELL_HELP = """Tell the model of a running stage something.

\b
  attractor-nb tell .attractor/runs/first "Use two nails, no glue"
  attractor-nb tell RUN_DIR --node plan "Leave the public names as they are"
  git diff | attractor-nb tell RUN_DIR --node review -
  attractor-nb tell RUN_ID "Use two nails" --server http://127.0.0.1:8765 --token TOKEN

A model that works with tools receives it with its next request, an agent of the command line as its next
turn. Otherwise the next attempt of the node, or the next prompt of the run, carries it. A run that is not
active has it when `attractor-nb resume` continues it.
"""


def tell(
    place: Place,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="The message for the model; - reads stdin.", show_default=False)
    ],
    node: Annotated[
        str | None,
        typer.Option(
            "--node",
            metavar="NODE",
            help="The stage that receives it; by default the running one, or the next.",
            show_default=False,
        ),
    ] = None,
    server: Server = None,
    token: Token = None,
    is_json: Json = False,
) -> int:
    """Tell a run something."""
    from attractor_nb.account import signed_here  # noqa: PLC0415 - as above
    from attractor_nb.cli.option_choices import ANSWERED_BY  # noqa: PLC0415 - as above
    from attractor_nb.cli.reporting import print_json  # noqa: PLC0415 - as above
    from attractor_nb.cli.run_places import run_address  # noqa: PLC0415 - as above
    from attractor_nb.cli.run_summary import resume_command, shown_path  # noqa: PLC0415 - as above
    from attractor_nb.cli.source_inputs import read_message  # noqa: PLC0415 - as above
    from attractor_nb.pipeline.run import Run  # noqa: PLC0415 - as above
    from attractor_nb.views.table import one_line  # noqa: PLC0415 - as above

    said = read_message(text)
    if address := run_address(place, server, token):
        from attractor_nb.cli.remote_runs.remote import tell_on  # noqa: PLC0415 - as above

        return tell_on(address, node, said, is_json=is_json)
    run_dir = Path(place)
    run = Run.load(run_dir)
    receipt = run.tell(node, said, given_by=signed_here(ANSWERED_BY))
    resume = resume_command(run_dir) if run.is_done else None
    if is_json:
        print_json({**receipt.facts(), "logs_root": str(run_dir), "resume": resume})
    else:
        print(f"✓ {one_line(receipt.words)}")
        then = f"resume the run with `{resume}`" if resume else "the process of the run receives it"
        print(f"  recorded in {shown_path(run_dir)}; {then}")
    return ExitCode.SUCCESS


def diff(
    first: Annotated[
        Path, typer.Argument(metavar="A", help="The directory of the first run or map.", autocompletion=complete_runs)
    ],
    second: Annotated[
        Path, typer.Argument(metavar="B", help="The directory of the second.", autocompletion=complete_runs)
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write it to this file, as a page.", show_default=False),
    ] = None,
    is_json: Json = False,
) -> int:
    """Compare two runs, or two maps."""
    from attractor_nb.cli.reporting import print_json  # noqa: PLC0415 - commands load what they need
    from attractor_nb.maps.compare_maps import MapComparison  # noqa: PLC0415 - as above
    from attractor_nb.pipeline.compare import diff as compare  # noqa: PLC0415 - as above

    if output is not None:
        _check_page(output, "a comparison")
    found = compare(first, second)
    if output is not None:
        _report_page(found.export_html(output), is_json=is_json)
    elif is_json:
        print_json(found.to_plain())
    elif isinstance(found, MapComparison):
        from attractor_nb.cli.runs_list import is_terminal  # noqa: PLC0415 - as above

        print(found.details(shutil.get_terminal_size().columns if is_terminal() else 0))
    else:
        print(found.details())
    return ExitCode.SUCCESS  # that they differ is no failure


EXPORT_HELP = """Write a run, a map or an evaluation as one HTML page. It needs no kernel and no network.

\b
  attractor-nb export .attractor/runs/first
  attractor-nb export .attractor/runs/first -o first.html
  attractor-nb export .attractor/runs/first --json | jq -r .page
  attractor-nb export MAP_DIR -o triage.html                 its rows as a table
  attractor-nb export EVALUATION_DIR -o scores.html          its verdict, scores and rows
  attractor-nb export MAP_DIR -o triage.html --rows failed   and a page of each failed row in triage-rows/
"""


def export(
    run_dir: Annotated[
        Path, typer.Argument(metavar="RUN_DIR|MAP_DIR", help="A run or map directory.", autocompletion=complete_runs)
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it to this file.", show_default=False)
    ] = None,
    rows: Annotated[
        ExportedRows | None,
        typer.Option("--rows", help="Of a map: a page of each of these rows, too.", show_default=False),
    ] = None,
    is_json: Json = False,
) -> int:
    """Export a run or a map."""
    from attractor_nb.storage.map_directory import is_evaluation, is_map  # noqa: PLC0415 - as above

    if output is not None:
        _check_page(output, "a run")
    if is_evaluation(run_dir):
        from attractor_nb.evaluation.stored_evaluation import read_evaluation  # noqa: PLC0415 - as above

        if rows is not None:
            raise typer.BadParameter(f"--rows is for a map; attractor-nb export {run_dir}/row-00000 writes one row")
        page = read_evaluation(run_dir).export_html(output or "evaluation.html")
    elif is_map(run_dir):
        from attractor_nb.maps.map_page import export_map  # noqa: PLC0415 - as above

        page = export_map(run_dir, output, rows=rows.value if rows else None)
    elif rows is not None:
        raise typer.BadParameter("--rows needs the directory of a map")
    else:
        from attractor_nb.pipeline.run import Run  # noqa: PLC0415 - as above

        page = Run.load(run_dir).export_html(output)
    _report_page(page, is_json=is_json)
    return ExitCode.SUCCESS


def _check_page(output: Path, what: str) -> None:
    """Refuse a file that no page can be written to."""
    from attractor_nb.cli.source_inputs import check_output  # noqa: PLC0415 - as above
    from attractor_nb.errors import OptionError  # noqa: PLC0415 - as above

    check_output(output)
    if output.suffix.lower() not in {"", ".html", ".htm"}:
        raise OptionError(f"-o {output}: {what} is exported as an HTML page", hint="name it .html")


def _report_page(page: Path, *, is_json: bool) -> None:
    """Say where a page was written."""
    from attractor_nb.cli.reporting import print_json  # noqa: PLC0415 - as above
    from attractor_nb.cli.run_summary import shown_path  # noqa: PLC0415 - as above

    size = page.stat().st_size
    if is_json:
        print_json({"page": str(page), "bytes": size})
    else:
        print(f"{shown_path(page)}: {size:,} bytes")


SKILL_HELP = """Install the guide with which an assistant writes pipelines: attributes, rules, commands.

It is written for Claude Code (.claude/skills), and for Codex and others (.agents/skills).

\b
  attractor-nb skill install                  in this project
  attractor-nb skill install --directory ~    for all your projects
"""


def install_skill(
    directory: Annotated[
        Path, typer.Option("--directory", metavar="DIR", help="The project, or your home directory.")
    ] = Path(),
    is_json: Json = False,
) -> int:
    """Write the guide for assistants."""
    from attractor_nb.cli import skill  # noqa: PLC0415 - as above

    return skill.install_skill(directory, is_json=is_json)
