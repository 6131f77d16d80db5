"""A fake for tests that starts no commands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class FakeResult:
    """The result of a command (``protocols.CommandResult``)."""

    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0
    is_timed_out: bool = False


@dataclass(frozen=True, slots=True)
class FakeCommand:
    """A command as it would have been run."""

    command: str | Sequence[str]
    cwd: Path | None
    env: Mapping[str, str]
    stdin: bytes
    timeout_seconds: float | None
    output_directory: Path | None


@dataclass
class FakeProcesses:
    """Starts no command; gives the results that it was told (``protocols.Processes``).

    Attributes:
        results: The results of the next commands, in order; the last one is repeated.
        commands: The commands that it was asked to run.
    """

    starts_nothing: ClassVar[bool] = True
    results: Iterable[FakeResult | Exception] = ()
    commands: list[FakeCommand] = field(default_factory=list[FakeCommand])

    def __post_init__(self) -> None:
        self._left = list(self.results) or [FakeResult()]

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
    ) -> FakeResult:
        """Record the command, stream the output of the next result, and return that result."""
        self.commands.append(
            FakeCommand(command, cwd, dict(env or {}), stdin, timeout_seconds, output_directory)
        )
        result = self._left.pop(0) if len(self._left) > 1 else self._left[0]
        if isinstance(result, Exception):
            raise result
        if on_output is not None:
            for channel in ("stdout", "stderr"):
                if text := getattr(result, channel):
                    on_output(channel, text)
        return result
