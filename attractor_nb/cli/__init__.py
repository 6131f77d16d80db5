"""The command ``attractor-nb``: pipelines from a terminal, a Makefile or CI.

Results go to stdout, progress and reports to stderr. The package may use everything below it and
nothing of the notebook; nothing imports it.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence


COLLECTED_AFTER: Final = 10_000
"""New objects after which Python looks for cycles. Its own 700 cost a command a tenth of its start."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code.

    Args:
        arguments: The arguments after the command's name; those of the process by default.
    """
    gc.set_threshold(COLLECTED_AFTER, *gc.get_threshold()[1:])
    try:
        from attractor_nb.interrupts import held_interrupts  # noqa: PLC0415 - where an interrupt is caught

        with held_interrupts():  # imports that are broken off show tracebacks of their own
            from attractor_nb.cli.entry import run_command_line  # noqa: PLC0415 - typer is for the command only
        return run_command_line(arguments)
    except KeyboardInterrupt:
        from attractor_nb.cli.reporting import ExitCode  # noqa: PLC0415 - likewise

        return ExitCode.INTERRUPTED
