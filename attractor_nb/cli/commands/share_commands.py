"""Commands about runs that are over.

No ``from __future__ import annotations`` here: typer reads the annotations at run time.
"""

from pathlib import Path
from typing import Annotated

import typer

from attractor_nb.cli.exit_codes import ExitCode
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
    from attractor_nb.cli.reporting import print_json  # noqa: PLC0415 - commands load what they need
    from attractor_nb.studio.compare.compare_runs import diff as compare  # noqa: PLC0415 - as above

    found = compare(first, second)
    if is_json:
        print_json(found.to_plain())
    else:
        print(found.details())
    return ExitCode.SUCCESS  # that they differ is no failure


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
    from attractor_nb.cli.reporting import print_json  # noqa: PLC0415 - as above
    from attractor_nb.cli.run_summary import shown_path  # noqa: PLC0415 - as above
    from attractor_nb.cli.source_inputs import check_output  # noqa: PLC0415 - as above
    from attractor_nb.pipeline.run import Run  # noqa: PLC0415 - as above

    check_output(output)
    page = Run.load(run_dir).export_html(output)
    size = page.stat().st_size
    if is_json:
        print_json({"page": str(page), "bytes": size})
    else:
        print(f"{shown_path(page)}: {size:,} bytes")
    return ExitCode.SUCCESS
