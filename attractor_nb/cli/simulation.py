"""Commands that are not run: what ``--simulate`` gives tool stages in place of a shell."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attractor_nb.views.columns import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class SimulatedResult:
    """A command that is said to have succeeded."""

    stdout: str
    exit_code: int = 0
    stderr: str = ""
    is_timed_out: bool = False


class SimulatedProcesses:
    """Starts nothing."""

    starts_nothing = True

    async def run(
        self,
        command: str | Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout_seconds: float | None = None,
        output_directory: Path | None = None,
        on_output: Any = None,
    ) -> SimulatedResult:
        """Say which command would have been run."""
        del cwd, env, stdin, timeout_seconds, output_directory, on_output
        text = command if isinstance(command, str) else shlex.join(command)
        return SimulatedResult(f"[Simulated] {one_line(text)}\n")
