"""The command that runs a pipeline over many inputs.

No ``from __future__ import annotations`` here: typer reads the annotations at run time.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from attractor_nb.cli.option_choices import Failed, GraphChange, OnFailure, OnInterrupted, Settings
from attractor_nb.cli.shared_options import Param, RunsDir, complete_maps, run_settings, with_options

NOT_OF_A_MAP = ("max_node_visits", "max_restarts", "max_goal_gate_redirects", "is_verbose")
"""Options of ``run`` that a map does not have."""
MAP_HELP = """Run a pipeline over many inputs. Each row is a separate run; several run at a time.

\b
  attractor-nb map review.dot --params tickets.jsonl
  attractor-nb map review.dot --params tickets.csv --max-parallel 8 --output answer
  attractor-nb map review.dot --params tickets.csv --param guide=@style.md
  attractor-nb map review.dot --params tickets.jsonl --out results.jsonl    or results.csv
  attractor-nb map --resume .attractor/runs/2026-02-21T18-30-00Z-q7kd2m4x

\b
A .jsonl file has an object on each line; a .csv file the keys on its first line, and its values are text.
A .json file is an array of objects, a .toml file one array of tables. --param gives all rows a value.
Exit codes: 0 all rows succeeded, 1 a row failed or was not started, 2 invalid input, 130 interrupted.
"""

FailedRows = Annotated[
    Failed | None,
    typer.Option(
        "--failed", help="With --resume: keep failed rows, or retry each from its failed stage.", show_default=False
    ),
]
OnGraphChange = Annotated[
    GraphChange | None,
    typer.Option(
        "--on-graph-change", help="With --resume: what to do when the pipeline has changed.", show_default=False
    ),
]


def map_options(
    *,
    max_parallel: Annotated[
        int, typer.Option("--max-parallel", min=1, help="Number of rows that run at the same time.")
    ] = 4,
    on_failure: Annotated[
        OnFailure, typer.Option("--on-failure", help="After a failed row: continue, or start no further rows.")
    ] = OnFailure.CONTINUE,
    outputs: Annotated[
        list[str] | None,
        typer.Option("--output", metavar="KEY", help="A context value to store in the results.", show_default=False),
    ] = None,
    runs_dir: RunsDir = None,
    max_budget_usd_all: Annotated[
        float | None,
        typer.Option(
            "--max-budget-usd-all", min=0, help="Start no further rows at this cost of all rows.", show_default=False
        ),
    ] = None,
    max_tokens_all: Annotated[
        int | None,
        typer.Option(
            "--max-tokens-all", min=0, help="Start no further rows at this token count of all rows.", show_default=False
        ),
    ] = None,
    max_duration_all: Annotated[
        str | None,
        typer.Option(
            "--max-duration-all",
            metavar="TIME",
            help="Start no further rows after this time, such as 15m.",
            show_default=False,
        ),
    ] = None,
    on_interrupted: Annotated[
        OnInterrupted | None,
        typer.Option("--on-interrupted", help="With --resume: what to do with interrupted stages.", show_default=False),
    ] = None,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="With --resume: take over from an owner that is frozen or gone.")
    ] = False,
) -> dict[str, Any]:
    """The options of a map: those of ``MapOptions``, and the ones that only a map or a resume has."""
    return {
        "max_parallel": max_parallel,
        "on_failure": on_failure.value,
        "outputs": outputs,
        "runs_dir": runs_dir,
        "max_budget_usd_all": max_budget_usd_all,
        "max_tokens_all": max_tokens_all,
        "max_duration_all": max_duration_all,
        "on_interrupted": on_interrupted.value if on_interrupted else None,
        "take_over": take_over or None,
    }


@with_options("settings", run_settings, without=NOT_OF_A_MAP)
@with_options("options", map_options)
def map_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A .dot file, or - for stdin.", show_default=False)] = "",
    *,
    params: Annotated[
        Path | None,
        typer.Option("--params", metavar="FILE", help="The rows: .jsonl, .csv, .json or .toml.", show_default=False),
    ] = None,
    common: Param = None,
    resumed: Annotated[
        Path | None,
        typer.Option(
            "--resume", metavar="DIR", help="Resume this map.", show_default=False, autocompletion=complete_maps
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="A .jsonl or .csv file for the results, or the map's own directory.", show_default=False
        ),
    ] = None,
    failed: FailedRows = None,
    on_graph_change: OnGraphChange = None,
    options: dict[str, Any],
    settings: "Settings",
) -> int:
    """Run a pipeline over many inputs."""
    from attractor_nb.cli.map_execution import MapSettings, map_file, resume_map  # noqa: PLC0415 - commands load what they need
    from attractor_nb.cli.source_inputs import read_params  # noqa: PLC0415 - as above

    given = {"failed": failed, "on_graph_change": on_graph_change}
    resume = {name: word.value for name, word in given.items() if word is not None}
    own = MapSettings(options=options, out=out, resume=resume, common=read_params(common or ()))
    if resumed is not None:
        return resume_map(resumed, file, params, settings, own)
    if not file:
        raise typer.BadParameter("name the pipeline's FILE, or a map to resume: --resume DIR")
    return map_file(file, params, settings, own)
