"""``workdir=``: where agents and the tools of models work, and where the commands of a graph run.

Without it agents and tools have a directory of the run's own, made when the first of them needs it, and
commands run where they always did.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attractor_nb.backends.llm.tools import McpServers
from attractor_nb.errors import OptionError
from attractor_nb.model.duration import Duration
from attractor_nb.pipeline.options import checked_workdir
from attractor_nb.storage.memory_store import MemoryRunStore
from attractor_nb.storage.run_directory import WORKSPACE_NAME, first_directory, make_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from attractor_nb.model.graph import Graph, Node
    from attractor_nb.pipeline.options import RunOptions
    from attractor_nb.protocols import CommandResult, Processes, RunStore
    from attractor_nb.stage import ToolServers
    from attractor_nb.storage.disk import Disk


class Workspace:
    """A directory that is made when first asked for; one of a run that keeps nothing goes away with it."""

    def __init__(self, path: Path | None, disk: Disk, *, is_synced: bool = False) -> None:
        """Take a place; None for a temporary one."""
        self._path = path
        self._disk = disk
        self._is_synced = is_synced
        self._temporary: Path | None = None

    @property
    def directory(self) -> Path:
        """The directory, absolute.

        Raises:
            StorageError: It cannot be made.
        """
        if self._path is not None:
            make_directory(self._disk, self._path, is_synced=self._is_synced)
            return self._path
        if self._temporary is None:
            self._temporary = Path(tempfile.mkdtemp(prefix="attractor-workspace-"))
        return self._temporary

    async def open(self) -> None:
        """Nothing is needed before somebody asks."""

    async def close(self) -> None:
        """Remove a temporary directory."""
        directory, self._temporary = self._temporary, None
        if directory is not None:
            shutil.rmtree(directory, ignore_errors=True)


def workspace_of(options: RunOptions, store: RunStore, disk: Disk, parents: Workspace | None) -> Workspace:
    """Where agents and tools of a run work: in ``workdir``, or where its parent's do, or beside its stages.

    After a restart it is the same place.
    """
    if options.workdir is not None:
        return Workspace(Path(options.workdir), disk)
    if parents is not None:
        return parents
    if isinstance(store, MemoryRunStore):
        return Workspace(None, disk)
    place = first_directory(store.logs_root) / WORKSPACE_NAME
    return Workspace(place, disk, is_synced=options.durability == "full")


@dataclass(frozen=True, slots=True)
class RunWorkplace:
    """Where the stages of a run work (``stage.Workplace``)."""

    graph: Graph
    workspace: Workspace
    processes: Processes
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict[str, "Callable[..., Any]"])
    servers: ToolServers = field(default_factory=McpServers)

    @property
    def directory(self) -> Path:
        """The working directory, absolute."""
        return self.workspace.directory

    def hook(self, node: Node, when: str) -> str:
        """The command of ``tool_hooks.<when>``: the node's before the graph's; empty when there is none.

        A node that gives an empty one has none.
        """
        name = f"tool_hooks.{when}"
        return self._giver(node, name).get(name, str, "").strip()

    def hook_seconds(self, node: Node) -> float:
        """How long each of its hooks may take."""
        name = "tool_hooks.timeout"
        found = self._giver(node, name).get(name, Duration)
        assert found is not None, "the attribute has a default"
        return found.seconds

    def _giver(self, node: Node, name: str) -> Node | Graph:
        return node if name in node.attrs else self.graph


class InDirectory:
    """Starts commands in a directory unless they name one."""

    def __init__(self, processes: Processes, directory: Path) -> None:
        self._processes = processes
        self._directory = directory
        self.starts_nothing = getattr(processes, "starts_nothing", False)

    async def run(
        self, command: str | Sequence[str], *, cwd: Path | None = None, **options: Any
    ) -> CommandResult:
        """Run a command; see ``protocols.Processes``."""
        return await self._processes.run(command, cwd=cwd or self._directory, **options)


def within_workdir(processes: Processes, options: RunOptions) -> Processes:
    """What starts a run's commands, in ``workdir`` if one is given."""
    return processes if options.workdir is None else InDirectory(processes, Path(options.workdir))


def child_workdir(text: str) -> Path | None:
    """The directory that ``stack.child_workdir`` names; None when it is empty.

    Raises:
        OptionError: There is no such directory.
    """
    if not text.strip():
        return None
    directory = Path.cwd() / text
    if not directory.is_dir():
        raise OptionError(
            f'stack.child_workdir "{text}" is no directory in {Path.cwd()}',
            hint="make it before this stage, or mend it",
        )
    return directory.resolve()


def with_recorded_workdir(options: RunOptions, facts: Mapping[str, Any]) -> RunOptions:
    """Options that work where the run did before, when nobody says otherwise.

    Raises:
        OptionError: That directory is gone.
    """
    recorded = str(facts.get("workdir", ""))
    if options.workdir is not None or not recorded:
        return options
    return replace(options, workdir=checked_workdir(recorded))


def recorded_workdir(options: RunOptions) -> dict[str, str]:
    """What a manifest says of it."""
    return {} if options.workdir is None else {"workdir": str(options.workdir)}
