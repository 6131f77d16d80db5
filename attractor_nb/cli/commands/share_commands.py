"""Commands about runs that are over.

No ``from __future__ import annotations`` here: typer reads the annotations at run time.
"""

from pathlib import Path
from typing import Annotated

import typer

from attractor_nb.cli.shared_options import Json

DIFF_HELP = """Compare two runs: path, texts, context, cost.

\b
  attractor-nb diff .attractor/runs/first .attractor/runs/second
  attractor-nb diff first second --json | jq '.steps[] | select(.differs != [])'
"""


def diff(
    first: Annotated[Path, typer.Argument(metavar="A", help="The run directory of the first run.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="The run directory of the second run.")],
    is_json: Json = False,
) -> int:
    """Compare two runs."""
    from attractor_nb.cli.share_report import show_difference  # noqa: PLC0415 - commands load what they need

    return show_difference(first, second, is_json=is_json)


EXPORT_HELP = """Write a run as one HTML page. It needs no kernel and no network.

\b
  attractor-nb export .attractor/runs/first
  attractor-nb export .attractor/runs/first -o first.html
  attractor-nb export .attractor/runs/first --json | jq -r .page
"""


def export(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="The run directory.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write it to this file.", show_default=False),
    ] = None,
    is_json: Json = False,
) -> int:
    """Export a run."""
    from attractor_nb.cli.share_report import export_run  # noqa: PLC0415 - as above

    return export_run(run_dir, output, is_json=is_json)
