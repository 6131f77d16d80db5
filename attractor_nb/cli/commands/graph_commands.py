"""Commands that only look at a pipeline: nothing is run.

No ``from __future__ import annotations`` here: typer reads the annotations at run time.
"""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from attractor_nb.cli.option_choices import Engine, GraphFormat
from attractor_nb.cli.shared_options import File, Files, Json, Strict, run_flags, run_params, with_options

PARSE_HELP = """Print a parsed pipeline as canonical DOT or JSON.

\b
  attractor-nb parse review.dot
  attractor-nb parse review.dot --json | jq '.nodes[].id'
"""


def parse(file: File, is_json: Json = False, is_strict: Strict = False) -> int:
    """Print what a pipeline means."""
    from attractor_nb.cli.graph_reports import show_parsed  # noqa: PLC0415 - commands load what they need

    return show_parsed(file, is_json=is_json, is_strict=is_strict)


VALIDATE_HELP = """Print the lint findings with places and fixes. Exit code 2 if there are errors.

\b
  attractor-nb validate review.dot
  attractor-nb validate *.dot --strict             several files; warnings count, too (for CI)
  attractor-nb validate review.dot --fix           what the fixes would change
  attractor-nb validate review.dot --fix --write   change it
"""


def validate(
    files: Files,
    is_json: Json = False,
    is_strict: Annotated[bool, typer.Option("--strict", help="Exit with code 2 for warnings, too.")] = False,
    is_fixed: Annotated[bool, typer.Option("--fix", help="Print what the fixes change, as a diff.")] = False,
    is_written: Annotated[bool, typer.Option("--write", help="With --fix: change the file.")] = False,
) -> int:
    """Print or mend what lint finds."""
    from attractor_nb.cli.graph_reports import fix_findings, matched, show_findings, show_findings_as_json, worst_of  # noqa: PLC0415 - as above

    if is_written and not is_fixed:
        raise typer.BadParameter("--write needs --fix")
    if is_fixed and is_json:
        raise typer.BadParameter("--fix prints a diff; remove --json")
    files = matched(files)
    if is_fixed:
        return worst_of(files, partial(fix_findings, is_written=is_written, is_strict=is_strict))
    if is_json:
        return show_findings_as_json(files, is_strict=is_strict)
    return worst_of(files, partial(show_findings, is_strict=is_strict))


LINT_HELP = VALIDATE_HELP.replace("attractor-nb validate", "attractor-nb lint")

COMMANDS_HELP = """Print the commands that a pipeline would run, and their hash.

\b
  attractor-nb commands review.dot
  attractor-nb commands .attractor/runs/2026-02-21T18-30-00Z-q7kd2m4x
  ATTRACTOR_TRUST=3f2a9c01b7de attractor-nb run review.dot    no other commands than these
"""


def commands(file: File, is_json: Json = False) -> int:
    """Print what would be executed."""
    from attractor_nb.cli.run_execution import show_commands  # noqa: PLC0415 - as above

    return show_commands(file, is_json=is_json)


GRAPH_HELP = """Draw a pipeline, without running it or sending it anywhere.

\b
  attractor-nb graph review.dot
  attractor-nb graph review.dot -o review.svg          or .png, .dot, .json, .mmd, .txt
  attractor-nb graph review.dot --format mermaid
  attractor-nb graph review.dot --engine neato -o review.pdf    by Graphviz
"""


def graph(
    file: File,
    graph_format: Annotated[
        GraphFormat | None,
        typer.Option(
            "--format", "-f", help="The format; by default that of the suffix of -o, or text.", show_default=False
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write it to this file.", show_default=False)
    ] = None,
    engine: Annotated[
        Engine | None,
        typer.Option(
            help="Graphviz draws it with this layout engine; it also has pdf, ps, eps, jpg, gif and webp.",
            show_default=False,
        ),
    ] = None,
    is_json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False,
) -> int:
    """Draw a pipeline."""
    from attractor_nb.cli.graph_reports import show_graph  # noqa: PLC0415 - as above

    return show_graph(file, GraphFormat.JSON if is_json else graph_format, output, engine)


ESTIMATE_HELP = """Estimate the usage of a run, expected and at worst. No model is called.

\b
  attractor-nb estimate review.dot
  attractor-nb estimate review.dot --max-node-visits 3
  attractor-nb estimate review.dot --json | jq .worst.cost_usd
"""


@with_options("params", run_params)
@with_options("bounds", run_flags, only=("max_steps", "max_node_visits"))
def estimate(file: File, *, params: dict[str, Any], bounds: dict[str, Any], is_json: Json = False) -> int:
    """Say what a run will consume."""
    from attractor_nb.cli.graph_reports import show_estimate  # noqa: PLC0415 - as above

    return show_estimate(file, params=params, bounds=bounds, is_json=is_json)


ANALYSE_HELP = """Say what every run passes, and which gates it can avoid.

\b
  attractor-nb analyse review.dot
  attractor-nb analyse review.dot --json | jq .must_pass
"""


@with_options("params", run_params)
def analyse(file: File, *, params: dict[str, Any], is_json: Json = False) -> int:
    """Say what holds for all runs."""
    from attractor_nb.cli.graph_reports import show_analysis  # noqa: PLC0415 - as above

    return show_analysis(file, params=params, is_json=is_json)


MODELS_HELP = """List the model for each prompt, and the rule that selects it.

\b
  attractor-nb models review.dot
  attractor-nb models review.dot --json | jq '.nodes[].model.value'
"""


def models(file: File, is_json: Json = False) -> int:
    """List the models."""
    from attractor_nb.cli.graph_reports import show_models  # noqa: PLC0415 - as above

    return show_models(file, is_json=is_json)


HANDLERS_HELP = """List the handler types, their shapes and what they do.

\b
  attractor-nb handlers
  attractor-nb handlers --json
"""


def handlers(is_json: Json = False) -> int:
    """List the handler types."""
    from attractor_nb.cli.graph_reports import show_handlers  # noqa: PLC0415 - as above

    return show_handlers(is_json=is_json)
