"""Commands about runs that are over: ``diff`` compares two, ``export`` makes a page of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.cli.exit_codes import ExitCode
from attractor_nb.cli.reporting import print_json
from attractor_nb.cli.run_summary import shown_path
from attractor_nb.cli.source_inputs import check_output

if TYPE_CHECKING:
    from pathlib import Path


def show_difference(a: Path, b: Path, *, is_json: bool) -> ExitCode:
    """Print what two runs did differently. That they differ is no failure.

    Raises:
        RunNotFound, CheckpointCorrupt: One of them cannot be read.
    """
    from attractor_nb.studio.compare.compare_runs import diff  # noqa: PLC0415 - for this command only

    found = diff(a, b)
    if is_json:
        print_json(found.to_plain())
    else:
        print(found.details())
    return ExitCode.SUCCESS


def export_run(logs_root: Path, output: Path | None, *, is_json: bool = False) -> ExitCode:
    """Write a run as one page, and print where it is.

    Raises:
        RunNotFound, CheckpointCorrupt: It cannot be read.
        StorageError: The page cannot be written.
    """
    from attractor_nb.pipeline.run import Run  # noqa: PLC0415 - likewise

    check_output(output)
    page = Run.load(logs_root).export_html(output)
    size = page.stat().st_size
    if is_json:
        print_json({"page": str(page), "bytes": size})
    else:
        print(f"{shown_path(page)}: {size:,} bytes")
    return ExitCode.SUCCESS
