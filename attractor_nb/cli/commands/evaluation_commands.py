"""The command that scores a pipeline on data.

No ``from __future__ import annotations`` here: typer reads the annotations at run time.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attractor_nb.cli.commands.map_commands import NOT_OF_A_MAP, FailedRows, OnGraphChange, map_options
from attractor_nb.cli.shared_options import Param, complete_maps, run_settings, with_options

if TYPE_CHECKING:
    from attractor_nb.cli.option_choices import Settings

EVALUATE_HELP = """Score a pipeline on data, and compare it with a baseline.

\b
  attractor-nb evaluate triage.dot --rows tickets.jsonl --scorers equals
  attractor-nb evaluate triage.dot --rows tickets.csv --scorers checks:correct --scorers cost --repeat 3
  attractor-nb evaluate triage.dot --rows tickets.jsonl --scorers equals --save-baseline base.jsonl
  attractor-nb evaluate triage.dot --rows tickets.jsonl --scorers equals --baseline base.jsonl --max-worse 0.02
  attractor-nb evaluate triage.dot --rows tickets.jsonl --scorers equals --at-least equals=0.8 --markdown summary.md
  attractor-nb evaluate --resume .attractor/runs/2026-02-21T18-30-00Z-q7kd2m4x --scorers equals

\b
Only declared inputs reach the pipeline; id, expected, group, metadata and all other columns are for scorers.
--param gives an input to all rows that lack it.
Scorers: MODULE:NAME, a function of your own or a list or dict of them, from the working directory or installed
(judge and json_schema need arguments: scorers = [judge(…)] in checks.py is checks:scorers);
or equals[:COLUMN], contains[:TEXT], matches:REGEX, route:NODE, visits:NODE, cost, latency.
Exit codes: 0 scored and good, 1 a gate failed or rows are unmeasured, 2 invalid input, 3 paused, 130 interrupted.
"""


@with_options("settings", run_settings, without=NOT_OF_A_MAP)
@with_options("options", map_options, without=("outputs",))
def evaluate(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A .dot file, or - for stdin.", show_default=False)] = "",
    *,
    rows: Annotated[
        Path | None,
        typer.Option(
            "--rows",
            metavar="FILE",
            help="The rows: .jsonl, .csv, .json, .toml or .parquet, or a dataset of pydantic-evals.",
            show_default=False,
        ),
    ] = None,
    scorers: Annotated[
        list[str] | None,
        typer.Option("--scorers", metavar="SCORER", help="MODULE:NAME, or a ready one.", show_default=False),
    ] = None,
    common: Param = None,
    repeat: Annotated[
        int | None, typer.Option("--repeat", min=1, help="Runs of each row; 1 by default.", show_default=False)
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            metavar="KEY",
            help="The context value that is judged; by default the response of the last stage.",
            show_default=False,
        ),
    ] = None,
    inputs: Annotated[
        str | None,
        typer.Option(
            "--inputs",
            metavar="A,B",
            help="The columns that are inputs, where the pipeline declares none.",
            show_default=False,
        ),
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", metavar="FILE", help="Compare with this baseline.", show_default=False)
    ] = None,
    max_worse: Annotated[
        list[str] | None,
        typer.Option(
            "--max-worse",
            metavar="[SCORE=]NUMBER",
            help="Fail if a score may be worse than the baseline by more than this: any score, or the named one.",
            show_default=False,
        ),
    ] = None,
    at_least: Annotated[
        list[str] | None,
        typer.Option(
            "--at-least", metavar="SCORE=NUMBER", help="Fail if the mean of a score is smaller.", show_default=False
        ),
    ] = None,
    max_unmeasured: Annotated[
        int, typer.Option("--max-unmeasured", min=0, help="Fail if more runs have no score.")
    ] = 0,
    save_baseline: Annotated[
        Path | None,
        typer.Option(
            "--save-baseline",
            metavar="FILE",
            help="Write the scores as a baseline, unless a gate failed.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="A .jsonl or .csv file for the results, or the evaluation's own directory.",
            show_default=False,
        ),
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", metavar="FILE", help="Write a summary as Markdown.", show_default=False)
    ] = None,
    resumed: Annotated[
        Path | None,
        typer.Option(
            "--resume", metavar="DIR", help="Resume this evaluation.", show_default=False, autocompletion=complete_maps
        ),
    ] = None,
    failed: FailedRows = None,
    on_graph_change: OnGraphChange = None,
    options: dict[str, Any],
    settings: "Settings",
) -> int:
    """Score a pipeline on data."""
    from attractor_nb.cli.evaluation_execution import EvaluationSettings, evaluate_file, resume_evaluation  # noqa: PLC0415 - commands load what they need
    from attractor_nb.cli.map_execution import MapSettings  # noqa: PLC0415 - as above
    from attractor_nb.cli.source_inputs import read_params  # noqa: PLC0415 - as above

    given = {"failed": failed, "on_graph_change": on_graph_change}
    resume = {name: word.value for name, word in given.items() if word is not None}
    of_map = MapSettings(options=options, out=out, resume=resume, common=read_params(common or ()))
    own = EvaluationSettings(
        scorers=scorers or (),
        baseline_file=baseline,
        max_worse=max_worse or (),
        at_least=at_least or (),
        max_unmeasured=max_unmeasured,
        save_baseline=save_baseline,
        markdown=markdown,
    )
    of_new = {"rows": rows, "param": common, "repeat": repeat, "output": output, "inputs": inputs}
    if resumed is not None:
        if name := next((name for name, value in of_new.items() if value is not None), None):
            raise typer.BadParameter(f"an evaluation is resumed with its own rows and options: leave --{name} out")
        return resume_evaluation(resumed, file, settings, of_map, own)
    if not file:
        raise typer.BadParameter("name the pipeline's FILE, or an evaluation to resume: --resume DIR")
    if rows is None:
        raise typer.BadParameter("evaluate needs rows: --rows FILE.jsonl, or --resume DIR to resume an evaluation")
    named = None if inputs is None else [name.strip() for name in inputs.split(",") if name.strip()]
    return evaluate_file(file, rows, settings, of_map, own, repeat=repeat or 1, output=output, inputs=named)
