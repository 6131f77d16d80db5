"""Forks from the command line.

No ``from __future__ import annotations`` here: typer reads the annotations at run time.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attractor_nb.cli.option_sets import spread
from attractor_nb.cli.shared_options import Server, Token, run_settings

if TYPE_CHECKING:
    from attractor_nb.cli.run_settings import Settings

FORK_HELP = """Start a new run from just before a visit of another run.

\b
  attractor-nb fork .attractor/runs/first plan
  attractor-nb fork .attractor/runs/first plan --visit 2 --set tests=3 --prompt better.txt
  attractor-nb fork RUN_ID plan --server "$URL" --prompt better.txt     on a server; watch it there

The run that it comes from is read, never changed.
"""


@spread("settings", run_settings, without={"is_cached", "cache_dir", "cassette", "cassette_mode"})
def fork(
    place: Annotated[
        str,
        typer.Argument(
            metavar="RUN_DIR|RUN_ID",
            help="The directory of the run; on a server, its id or URL.",
            show_default=False,
        ),
    ],
    node: Annotated[
        str, typer.Argument(metavar="NODE", help="The node where the fork starts.", show_default=False)
    ],
    *,
    visit: Annotated[
        int | None,
        typer.Option(
            "--visit",
            metavar="N",
            min=1,
            help="Number of the visit; the latest by default.",
            show_default=False,
        ),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a value of the context.", show_default=False),
    ] = None,
    prompt: Annotated[
        Path | None,
        typer.Option(
            "--prompt", metavar="FILE", help="File with a new prompt for the node.", show_default=False
        ),
    ] = None,
    graph: Annotated[
        str,
        typer.Option("--graph", metavar="FILE", help="Continue with this pipeline file.", show_default=False),
    ] = "",
    fork_root: Annotated[
        Path | None,
        typer.Option(
            "--logs-root",
            metavar="DIR",
            help="The fork's directory; by default beside that of the run.",
            show_default=False,
        ),
    ] = None,
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
            raise typer.BadParameter(
                "--graph and --logs-root apply to local runs, and this run is on a server"
            )
        return fork_on(address, node, settings, visit=visit, values=values or (), prompt=prompt)
    from attractor_nb.cli.run_execution import fork_directory  # noqa: PLC0415 - as above

    return fork_directory(
        Path(place),
        node,
        settings,
        visit=visit,
        values=values or (),
        prompt=prompt,
        graph=graph,
        fork_root=fork_root,
    )
