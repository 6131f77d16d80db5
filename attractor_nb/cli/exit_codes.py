"""The exit codes, which are a contract with scripts and CI."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class ExitCode(IntEnum):
    """How a command ended."""

    SUCCESS = 0
    """It did what was asked; a pipeline succeeded."""
    FAILED = 1
    """The pipeline ran and failed, or the disk did; or a stage could not be tried, and a resume may go on."""
    INVALID_INPUT = 2
    """Nothing was run: arguments, a source, or a run directory cannot be used."""
    PAUSED = 3
    """The run is paused, at a gate or after a number of stages: a resume goes on, once the gate is answered."""
    INTERRUPTED = 130
    """Ctrl-C or a request to end; a run that was going on can be resumed."""

    @classmethod
    def of(cls, status: str, *, is_unmeasured: bool = False) -> ExitCode:
        """What looking at a run, a map or a session ends with that stands so; 0 as long as it goes on.

        Args:
            status: How it stands.
            is_unmeasured: It is interrupted because a stage could not be executed, and nobody stopped it (ruling 51).
        """
        if is_unmeasured and status == "interrupted":
            return cls.FAILED
        return _CODES.get(status, cls.INTERRUPTED)


_CODES: Final[dict[str, ExitCode]] = {
    **dict.fromkeys(("ready", "running", "success", "complete"), ExitCode.SUCCESS),
    **dict.fromkeys(("fail", "failed"), ExitCode.FAILED),
    "paused": ExitCode.PAUSED,
}
