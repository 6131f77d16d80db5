"""Forks from the command line.

No ``from __future__ import annotations`` here: typer reads the annotations at run time.
"""

from pathlib import Path
from typing import Annotated

import typer

from attractor_nb.cli.choices import Durability
from attractor_nb.cli.commands.running import read_settings
from attractor_nb.cli.options import (
    AutoApprove,
    Backend,
    DurabilityOption,
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
    Simulate,
    Trust,
    Verbose,
    Workdir,
)

FORK_HELP = """Begin a run of its own that goes another way from just before a visit of a node.

\b
  attractor-nb fork .attractor/runs/first plan
  attractor-nb fork .attractor/runs/first plan --visit 2 --set tests=3 --prompt better.txt

The run that it comes from is read, never changed.
"""


def fork(
    directory: Annotated[
        Path, typer.Argument(metavar="RUN_DIR", help="The directory of the run.", show_default=False)
    ],
    node: Annotated[str, typer.Argument(metavar="NODE", help="Where it goes on.", show_default=False)],
    *,
    visit: Annotated[
        int | None,
        typer.Option(
            "--visit",
            metavar="N",
            min=1,
            help="Before which visit, by number; the latest by default.",
            show_default=False,
        ),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Another value in the context.", show_default=False),
    ] = None,
    prompt: Annotated[
        Path | None,
        typer.Option(
            "--prompt", metavar="FILE", help="Another prompt of the node, for this fork.", show_default=False
        ),
    ] = None,
    graph: Annotated[
        str, typer.Option("--graph", metavar="FILE", help="Go on with this pipeline.", show_default=False)
    ] = "",
    fork_root: Annotated[
        Path | None,
        typer.Option(
            "--logs-root",
            metavar="DIR",
            help="The fork's own directory; beside that of the run by default.",
            show_default=False,
        ),
    ] = None,
    is_simulated: Simulate = False,
    is_trusted: Trust = False,
    is_auto_approved: AutoApprove = False,
    gates: Gates = None,
    backend: Backend = None,
    workdir: Workdir = None,
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
    """Fork a run."""
    from attractor_nb.cli.execution import fork_directory  # noqa: PLC0415 - commands load what they need

    settings = read_settings(
        backend=backend,
        is_simulated=is_simulated,
        is_trusted=is_trusted,
        is_auto_approved=is_auto_approved,
        gates=gates,
        workdir=workdir,
        max_steps=max_steps,
        max_node_visits=max_node_visits,
        max_restarts=max_restarts,
        max_goal_gate_redirects=max_goal_gate_redirects,
        max_budget_usd=max_budget_usd,
        max_tokens_total=max_tokens_total,
        max_duration=max_duration,
        durability=durability,
        is_quiet=is_quiet,
        is_verbose=is_verbose,
        is_json=is_json,
    )
    return fork_directory(
        directory,
        node,
        settings,
        visit=visit,
        values=values or (),
        prompt=prompt,
        graph=graph,
        fork_root=fork_root,
    )
