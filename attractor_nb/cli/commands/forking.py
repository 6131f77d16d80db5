"""Forks from the command line.

No ``from __future__ import annotations`` here: typer reads the annotations at run time.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attractor_nb.cli.options import run_settings
from attractor_nb.cli.spread import spread

if TYPE_CHECKING:
    from attractor_nb.cli.execution import Settings

FORK_HELP = """Begin a run of its own that goes another way from just before a visit of a node.

\b
  attractor-nb fork .attractor/runs/first plan
  attractor-nb fork .attractor/runs/first plan --visit 2 --set tests=3 --prompt better.txt

The run that it comes from is read, never changed.
"""


@spread("settings", run_settings, without={"is_cached", "cache_dir", "cassette", "cassette_mode"})
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
    settings: "Settings",
) -> int:
    """Fork a run."""
    from attractor_nb.cli.execution import fork_directory  # noqa: PLC0415 - commands load what they need

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
