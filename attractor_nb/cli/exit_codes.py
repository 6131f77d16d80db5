"""The exit codes, which are a contract with scripts and CI."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ended."""

    SUCCESS = 0
    """It did what was asked; a pipeline succeeded."""
    FAILED = 1
    """The pipeline ran and failed, or the disk did."""
    INVALID_INPUT = 2
    """Nothing was run: arguments, a source, or a run directory cannot be used."""
    INTERRUPTED = 130
    """Ctrl-C or a request to end; a run that was going on can be resumed."""
