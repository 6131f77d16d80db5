"""Commands that run a pipeline, or continue a run in a fork.

No ``from __future__ import annotations`` here: typer reads the annotations at run time.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from attractor_nb.cli.option_choices import GraphChange, OnInterrupted, Settings
from attractor_nb.cli.shared_options import (
    AutoApprove,
    File,
    Json,
    RunsDir,
    Server,
    Simulate,
    Strict,
    Token,
    complete_runs,
    run_params,
    run_settings,
    with_options,
)

RUN_HELP = """Run a pipeline. Progress goes to stderr, the result to stdout.

\b
  attractor-nb run review.dot
  attractor-nb run review.dot --backend local
  attractor-nb run review.dot --simulate --auto-approve
  attractor-nb run review.dot --cassette review.json   record once, then replay for free
  attractor-nb run review.dot --param ticket=42 --param 'tries:=3' --param text=@ticket.md
  attractor-nb run review.dot --params inputs.json     or .toml
  attractor-nb run review.dot --backend llm --model gpt-5.2
  attractor-nb run review.dot --auto-approve --json -q | jq .status
  cat review.dot | attractor-nb run - --logs-root out/review
"""

FORK_HELP = """Start a new run from just before a visit of another run.

\b
  attractor-nb fork .attractor/runs/first plan
  attractor-nb fork .attractor/runs/first plan --visit 2 --set tests=3 --prompt better.txt
  attractor-nb fork RUN_ID plan --server "$URL" --prompt better.txt     on a server; watch it there

The run that it comes from is read, never changed.
"""


OtherGraph = Annotated[
    str, typer.Option("--graph", metavar="FILE", help="Resume with this pipeline file.", show_default=False)
]


@with_options("settings", run_settings)
@with_options("params", run_params)
def run(
    file: File,
    *,
    params: dict[str, Any],
    logs_root: Annotated[
        Path | None, typer.Option("--logs-root", help="The directory of this run; new or empty.", show_default=False)
    ] = None,
    runs_dir: RunsDir = None,
    settings: "Settings",
    is_strict: Strict = False,
) -> int:
    """Run a pipeline."""
    from attractor_nb.cli.run_execution import run_file  # noqa: PLC0415 - commands load what they need

    return run_file(file, settings, params=params, logs_root=logs_root, runs_dir=runs_dir, is_strict=is_strict)


RESUME_HELP = """Resume a stopped run. Recorded stages are not run again.

\b
  attractor-nb resume .attractor/runs/2026-02-21T18-30-00Z-q7kd2m4x
  attractor-nb resume DIR --max-steps 50               a bound had ended it
  attractor-nb resume DIR --on-interrupted rerun       a tool stage was cut off
  attractor-nb resume DIR --graph mended.dot --on-graph-change accept
  attractor-nb resume DIR --from review --visit 2      back to before that visit
  attractor-nb resume DIR --take-over                  its owner is frozen, or its machine gone
  attractor-nb resume RUN_ID --server "$URL"           on a server; `attractor-nb watch` shows it
"""
RewindTo = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="NODE",
        help="Go back to just before a visit of this node; later stages are set aside.",
        show_default=False,
    ),
]


@with_options("settings", run_settings)
def resume(
    place: Annotated[
        str,
        typer.Argument(
            metavar="DIR|RUN_ID",
            help="The run directory; on a server, the run's id or URL.",
            show_default=False,
            autocompletion=complete_runs,
        ),
    ],
    *,
    rewind_to: RewindTo = None,
    visit: Annotated[
        int | None,
        typer.Option(
            "--visit",
            metavar="N",
            min=1,
            help="Number of the visit for --from; the latest by default.",
            show_default=False,
        ),
    ] = None,
    graph: OtherGraph = "",
    on_graph_change: Annotated[
        GraphChange, typer.Option("--on-graph-change", help="What to do when the pipeline has changed.")
    ] = GraphChange.ERROR,
    on_interrupted: Annotated[
        OnInterrupted | None,
        typer.Option("--on-interrupted", help="What to do with an interrupted stage.", show_default=False),
    ] = None,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Take the run from an owner that is frozen or gone.")
    ] = False,
    server: Server = None,
    token: Token = None,
    settings: "Settings",
) -> int:
    """Resume a run."""
    from attractor_nb.cli.run_places import run_address  # noqa: PLC0415 - as above

    how: dict[str, Any] = {
        "on_graph_change": on_graph_change,
        "on_interrupted": on_interrupted,
        "rewind_to": rewind_to,
        "visit": visit,
    }
    address = run_address(place, server, token)
    if address is not None:
        from attractor_nb.cli.remote_runs.remote import resume_on  # noqa: PLC0415 - as above

        if graph or take_over:
            raise typer.BadParameter("--graph and --take-over apply to local runs, and this run is on a server")
        return resume_on(address, settings, **how)
    from attractor_nb.cli.run_execution import resume_directory  # noqa: PLC0415 - as above

    return resume_directory(Path(place), settings, graph=graph, take_over=take_over, **how)


DEMO_HELP = """Run a real pipeline on the language model of this machine.

\b
  attractor-nb demo
  attractor-nb demo --simulate      without a model
"""


def demo(
    is_simulated: Simulate = False,
    is_auto_approved: AutoApprove = False,
    runs_dir: RunsDir = None,
    is_json: Json = False,
) -> int:
    """Run the pipeline that comes with the package."""
    from attractor_nb.cli.demonstration import show_demo  # noqa: PLC0415 - as above

    return show_demo(is_simulated=is_simulated, is_auto_approved=is_auto_approved, runs_dir=runs_dir, is_json=is_json)


ForkRoot = Annotated[
    Path | None,
    typer.Option(
        "--logs-root",
        metavar="DIR",
        help="The fork's directory; by default beside that of the run.",
        show_default=False,
    ),
]


@with_options("settings", run_settings, without={"is_cached", "cache_dir", "cassette", "cassette_mode"})
def fork(
    place: Annotated[
        str,
        typer.Argument(
            metavar="RUN_DIR|RUN_ID",
            help="The directory of the run; on a server, its id or URL.",
            show_default=False,
            autocompletion=complete_runs,
        ),
    ],
    node: Annotated[str, typer.Argument(metavar="NODE", help="The node where the fork starts.", show_default=False)],
    *,
    visit: Annotated[
        int | None,
        typer.Option(
            "--visit", metavar="N", min=1, help="Number of the visit; the latest by default.", show_default=False
        ),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=TEXT",
            help="Change a value of the context; KEY=@FILE and KEY:=JSON as --param.",
            show_default=False,
        ),
    ] = None,
    prompt: Annotated[
        Path | None,
        typer.Option("--prompt", metavar="FILE", help="File with a new prompt for the node.", show_default=False),
    ] = None,
    graph: OtherGraph = "",
    fork_root: ForkRoot = None,
    server: Server = None,
    token: Token = None,
    settings: "Settings",
) -> int:
    """Fork a run."""
    from attractor_nb.cli.run_places import run_address  # noqa: PLC0415 - commands load what they need

    address = run_address(place, server, token)
    if address is not None:
        from attractor_nb.cli.remote_runs.remote import fork_on  # noqa: PLC0415 - as above

        if graph or fork_root is not None:
            raise typer.BadParameter("--graph and --logs-root apply to local runs, and this run is on a server")
        return fork_on(address, node, settings, visit=visit, values=values or (), prompt=prompt)
    from attractor_nb.cli.run_execution import fork_directory  # noqa: PLC0415 - as above

    return fork_directory(
        Path(place), node, settings, visit=visit, values=values or (), prompt=prompt, graph=graph, fork_root=fork_root
    )
