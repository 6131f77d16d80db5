"""Agents installed on this machine, with their versions."""

from __future__ import annotations

import asyncio
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from attractor_nb.backends.agents.agent_events import plain_text
from attractor_nb.backends.agents.claude import Claude
from attractor_nb.backends.agents.dialects import Codex, Dialect, Gemini
from attractor_nb.errors import AttractorError, OptionError
from attractor_nb.processes import LocalProcesses

if TYPE_CHECKING:
    from attractor_nb.protocols import Processes

DIALECTS: Final[tuple[Dialect, ...]] = (Claude(), Codex(), Gemini())
"""All agents that we know."""
VERSION_SECONDS: Final = 10.0
"""Time limit for an agent to report its version: its first start takes a while."""
_VERSION: Final = re.compile(r"(?<!\d)\d+\.\d+[\w.+-]*")


@dataclass(frozen=True, slots=True)
class InstalledAgent:
    """The installation of an agent on this machine."""

    name: str  #: ``claude``, ``codex`` or ``gemini``.
    executable: str = ""  #: Path of its program, or empty when there is none on the PATH.
    version: str = ""  #: The version that it reports, or empty.
    problem: str = ""  #: Reason why its version is unknown though it is installed, or empty.
    install: str = ""  #: The command that installs it.

    @property
    def is_installed(self) -> bool:
        """True if its program is there."""
        return bool(self.executable)


async def installed_agents(
    *, processes: Processes | None = None, timeout_seconds: float = VERSION_SECONDS
) -> tuple[InstalledAgent, ...]:
    """Look for all agents on the PATH and ask each for its version, at the same time.

    Args:
        processes: Starts them.
        timeout_seconds: How long one may take; then it is ended, and its version stays unknown.
    """
    starter = processes or LocalProcesses()
    return tuple(await asyncio.gather(*(_look(dialect, starter, timeout_seconds) for dialect in DIALECTS)))


def find_executable(dialect: Dialect, executable: str = "") -> str:
    """The path of an agent's program.

    Args:
        dialect: The agent.
        executable: Its path or name, where it is not that of the agent.
    """
    if found := shutil.which(executable or dialect.name):
        return found
    if executable:
        raise OptionError(
            f"there is no program {executable!r}, which should be {dialect.title}",
            hint="give its path, or remove executable= to search the PATH",
        )
    raise OptionError(
        f"the agent {dialect.name} is not installed: there is no program {dialect.name!r} on the PATH",
        hint=f"install {dialect.title} ({dialect.install}) and start it once to log in, or give the backend "
        "its path: executable=…",
    )


async def _look(dialect: Dialect, processes: Processes, timeout_seconds: float) -> InstalledAgent:
    path = shutil.which(dialect.name) or ""
    if not path:
        return InstalledAgent(dialect.name, install=dialect.install)
    try:
        result = await processes.run([path, "--version"], timeout_seconds=timeout_seconds)
    except AttractorError as error:
        return InstalledAgent(dialect.name, path, problem=error.message, install=dialect.install)
    version = _VERSION.search(plain_text(result.stdout))
    if result.is_timed_out:
        problem = f"it did not say its version within {timeout_seconds:g} s"
    elif result.exit_code != 0:
        lines = plain_text(result.stderr).strip().splitlines()
        problem = f"it ended with exit code {result.exit_code}{f': {lines[-1][:200]}' if lines else ''}"
    elif version is None:
        problem = "it did not say its version"
    else:
        return InstalledAgent(dialect.name, path, version[0], install=dialect.install)
    return InstalledAgent(dialect.name, path, problem=problem, install=dialect.install)
