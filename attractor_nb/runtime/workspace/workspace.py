"""The one place in which the commands, the agents and the model tools of a run work (ruling 41).

A ``WorkspacePlan`` is the choice before anything is made for a run: the directory in which it was started, the
one that ``workdir=`` names, or its own place. A ``Workspace`` is that place during the run.
"""

from __future__ import annotations

import glob
import shutil
import stat
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct, field

from attractor_nb.backends.llm.tools import McpServers
from attractor_nb.decisions.planning.executable_surface import executable_surface
from attractor_nb.errors import OptionError
from attractor_nb.model.vocabulary.isolation import IN_PLACE, ISOLATIONS, WORKSPACE, WORKTREE
from attractor_nb.model.vocabulary.value_forms import Duration
from attractor_nb.runtime.prepare.current_directory import here
from attractor_nb.runtime.prepare.run_options import RunOptions, as_path, checked_workdir
from attractor_nb.runtime.workspace.worktree import Repository, Worktree, find_repository, worktree_facts, worktree_of
from attractor_nb.stage import Kept, ToolServers
from attractor_nb.storage.files.atomic import entries_below
from attractor_nb.storage.files.disk import Disk, storage_error
from attractor_nb.storage.run_directory import WORKSPACE_NAME, WORKTREE_NAME, first_directory, make_workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from attractor_nb.model.graph import Graph, Node
    from attractor_nb.protocols import CommandResult, Processes
    from attractor_nb.runtime.prepare.trust import Origin


class Workspace(Protocol):
    """The working directory of a run, and of its children."""

    @property
    def isolation(self) -> str:
        """``workspace`` or ``worktree`` when it is the run's own, else empty."""
        ...

    @property
    def directory(self) -> Path:
        """The directory, absolute."""
        ...

    def keep(self, message: str) -> Kept:
        """Keep what a stage has changed, where anything is kept."""
        ...

    async def open(self) -> None:
        """Make ready."""
        ...

    async def close(self) -> None:
        """Leave it; one of a run that keeps nothing goes away."""
        ...


class Folder:
    """A directory as a place to work: one of the caller's, or a folder of the run's own."""

    def __init__(self, path: Path | None, isolation: str = "", filling: InitialFiles | None = None) -> None:
        """Take a place that is there; None for a temporary one, which is made when first asked for."""
        self._path = path
        self._filling = filling
        self._temporary: Path | None = None
        self.isolation = isolation

    @property
    def directory(self) -> Path:
        """The directory, absolute."""
        if self._path is not None:
            return self._path
        if self._temporary is None:
            self._temporary = Path(tempfile.mkdtemp(prefix="attractor-workspace-")).resolve()
            if self._filling is not None:
                self._filling.fill(self._temporary)
        return self._temporary

    def keep(self, message: str) -> Kept:  # noqa: ARG002 - the interface of workspaces
        """Nothing keeps what changes here."""
        return Kept()

    async def open(self) -> None:
        """Nothing is needed before it is requested."""

    async def close(self) -> None:
        """Remove a temporary directory."""
        directory, self._temporary = self._temporary, None
        if directory is not None:
            shutil.rmtree(directory, ignore_errors=True)


class WorkspacePlan(Struct, frozen=True):
    """The planned working place of a run; nothing is made yet."""

    directory: Path  #: The directory in which it works, or from which its own place is made.
    isolation: str = ""  #: ``workspace``, ``worktree``, or empty.
    filling: InitialFiles | None = None  #: Initial files of a workspace.
    repository: Repository | None = None  #: Repository of its worktree.
    is_recorded: bool = True  #: True if a manifest says it: with an executor there is no one place.

    def facts(self, logs_root: Path, run_id: str) -> dict[str, Any]:
        """The manifest entries of a run for it."""
        if not self.is_recorded:
            return {}
        root = first_directory(logs_root.absolute())
        if self.isolation == WORKSPACE:
            filled = {"workspace_from": self.filling.text} if self.filling else {}
            return {"workdir": str(root / WORKSPACE_NAME), "isolation": WORKSPACE, **filled}
        if self.repository is not None:
            place = root / WORKTREE_NAME
            return {
                "workdir": str(place / self.repository.prefix),
                "isolation": WORKTREE,
                "worktree": self.repository.facts(run_id),
            }
        return {"workdir": str(self.directory)}

    def made(self, logs_root: Path | None, run_id: str, disk: Disk, *, is_synced: bool) -> Workspace:
        """The place, made if it is the run's own.

        Args:
            logs_root: The run directory; None when nothing is kept.
            run_id: The run, for the name of its branch.
            disk: Makes directories.
            is_synced: Whether they survive a power loss.
        """
        if not self.isolation:
            return Folder(self.directory)
        if logs_root is None:
            return Folder(None, self.isolation, self.filling)
        root = first_directory(logs_root.absolute())
        if self.repository is not None:
            place = worktree_of(root / WORKTREE_NAME, self.repository.facts(run_id))
            place.make()
            return place
        path = make_workspace(disk, root, is_synced=is_synced)
        if self.filling is not None:
            self.filling.fill(path)
        return Folder(path, WORKSPACE)


def isolation_of(options: RunOptions, graph: Graph, origin: Origin | None) -> str:
    """The kind of isolated place that a run gets; empty for none.

    A source from a stream or a request gets one unless it is trusted: such a text has a name and
    no place on this machine. A source with commands is trusted before this is called.
    """
    chosen = options.isolation or graph.get("isolation", str, "") or ""
    if chosen == IN_PLACE:
        return ""
    if chosen or options.workdir is not None:
        return chosen
    is_strange = isinstance(origin, str) and options.trust is False
    has_commands = is_strange and executable_surface(graph, acts_unasked=options.acts_unasked)
    return WORKSPACE if is_strange and not has_commands else ""


def site_of(options: RunOptions, graph: Graph, origin: Origin | None) -> WorkspacePlan:
    """The planned working place of a run."""
    check_places(options, graph)
    isolation = isolation_of(options, graph, origin)
    base = Path(options.workdir) if options.workdir is not None else here()
    if isolation == WORKSPACE:
        filling = None if options.workspace_from is None else filling_of(options.workspace_from)
        return WorkspacePlan(base, WORKSPACE, filling, is_recorded=options.executor is None)
    if isolation == WORKTREE:
        return WorkspacePlan(base, WORKTREE, repository=find_repository(base))
    return WorkspacePlan(base, is_recorded=options.executor is None)


def check_places(options: RunOptions, graph: Graph) -> None:
    """Check what options and graph say of the place to work against each other."""
    isolation = options.isolation or graph.get("isolation", str, "") or ""
    if isolation and isolation not in ISOLATIONS:
        raise OptionError(f"unknown isolation {isolation!r}", hint=f"use one of {', '.join(ISOLATIONS)}")
    if options.workspace_from is not None and isolation != WORKSPACE:
        raise OptionError("workspace_from needs a run in a workspace", hint='isolation="workspace"')
    if isolation == WORKSPACE and options.workdir is not None:
        raise OptionError(
            "a working directory and a workspace exclude each other",
            hint="leave one of them out; workspace_from= says what the workspace begins with",
        )
    if isolation == WORKTREE and options.durability == "none":
        raise OptionError(
            'a worktree belongs to a run that is kept, and durability="none" keeps nothing',
            hint='use durability="fast", or isolation="workspace"',
        )
    if options.executor is not None and (options.workdir is not None or isolation in {WORKSPACE, WORKTREE}):
        name = "isolation" if isolation else "workdir"
        raise OptionError(
            f"{name}= is a directory of this machine, and executor= has stages done elsewhere",
            hint="leave one of them out",
        )


class RunWorkplace(Struct, frozen=True):
    """The workplace of a run's stages (``stage.Workplace``)."""

    graph: Graph
    workspace: Workspace
    processes: Processes
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict[str, "Callable[..., Any]"])
    servers: ToolServers = field(default_factory=McpServers)

    @property
    def directory(self) -> Path:
        """The working directory, absolute."""
        return self.workspace.directory

    @property
    def is_kept(self) -> bool:
        """True if what stages change is kept by commits."""
        return self.workspace.isolation == WORKTREE

    def keep(self, message: str) -> Kept:
        """Keep what a stage has changed; see ``Workspace.keep``."""
        return self.workspace.keep(message)

    def hook(self, node: Node, when: str) -> str:
        """The command of ``tool_hooks.<when>``: the node's before the graph's; empty when there is none.

        A node that gives an empty one has none.
        """
        name = f"tool_hooks.{when}"
        return self._holder(node, name).get(name, str, "").strip()

    def hook_seconds(self, node: Node) -> float:
        """The time limit of each of its hooks, in seconds."""
        name = "tool_hooks.timeout"
        found = self._holder(node, name).get(name, Duration)
        assert found is not None, "the attribute has a default"
        return found.seconds

    def _holder(self, node: Node, name: str) -> Node | Graph:
        return node if name in node.attrs else self.graph


class InWorkspace:
    """Starts commands in the run's working directory unless they name one."""

    def __init__(self, processes: Processes, workspace: Workspace) -> None:
        self._processes = processes
        self._workspace = workspace
        self.starts_nothing = getattr(processes, "starts_nothing", False)

    async def run(self, command: str | Sequence[str], *, cwd: Path | None = None, **options: Any) -> CommandResult:
        """Run a command; see ``protocols.Processes``."""
        return await self._processes.run(command, cwd=cwd or self._workspace.directory, **options)


def child_workdir(text: str, workspace: Workspace) -> Path | None:
    """The directory that ``stack.child_workdir`` names, from where the parent works; None when it is empty."""
    if not text.strip():
        return None
    base = workspace.directory
    directory = base / text
    if not directory.is_dir():
        raise OptionError(
            f'stack.child_workdir "{text}" is not a directory in {base}', hint="make it before this stage, or fix it"
        )
    directory = directory.resolve()
    if workspace.isolation and not directory.is_relative_to(base.resolve()):
        raise OptionError(
            f'stack.child_workdir "{text}" leads out of the {workspace.isolation} of the run',
            hint="name a directory below it",
        )
    return directory


__all__ = [
    "Folder",
    "InWorkspace",
    "RunWorkplace",
    "Workspace",
    "WorkspacePlan",
    "Worktree",
    "check_places",
    "child_workdir",
    "site_of",
]


# The working place of a stored run or of a stored map's rows: read from its facts, and opened again.

_GONE: Final = "restore it, or name another: resume(…, workdir=DIR), --workdir DIR on the command line"


def with_recorded_workdir(options: RunOptions, facts: Mapping[str, Any]) -> RunOptions:
    """Options that work where the run did before, by default."""
    if options.executor is not None:
        return options
    own, recorded = str(facts.get("isolation", "")), str(facts.get("workdir", ""))
    if own:
        if options.workdir is not None or options.isolation not in {None, own}:
            raise OptionError(f"the run works in its own {own}", hint="leave workdir and isolation out")
        return replace(options, isolation=own, workspace_from=None)
    if options.isolation == WORKTREE:
        raise OptionError("a run gets its worktree when it begins", hint="start it anew, or leave isolation out")
    if options.workdir is not None or options.isolation is not None or not recorded:
        return options
    if not Path(recorded).is_dir():
        raise OptionError(f"the run worked in {recorded}, and that directory is gone", hint=_GONE)
    return replace(options, workdir=checked_workdir(recorded), isolation=IN_PLACE)


def recorded_for_rows(options: RunOptions, graph: Graph, origin: Origin | None) -> dict[str, str]:
    """The manifest entries of a map for the working place of its rows."""
    site = site_of(options, graph, origin)
    if not site.is_recorded:
        return {}
    found = {} if site.isolation == WORKSPACE else {"workdir": str(site.directory)}
    if site.isolation:
        found["isolation"] = site.isolation
    if site.filling is not None:
        found["workspace_from"] = site.filling.text
    return found


def with_workdir_of_rows(options: RunOptions, facts: Mapping[str, Any]) -> RunOptions:
    """Options whose rows work as those of the map did before, by default."""
    named = (options.workdir, options.isolation, options.workspace_from, options.executor)
    recorded = {name: facts[name] for name in ("workdir", "isolation", "workspace_from") if facts.get(name)}
    if any(value is not None for value in named) or not recorded:
        return options
    if "workdir" in recorded:
        if not Path(recorded["workdir"]).is_dir():
            raise OptionError(f"the map worked in {recorded['workdir']}, which is gone", hint=_GONE)
        recorded["workdir"] = checked_workdir(recorded["workdir"])
    return replace(options, **{"isolation": IN_PLACE, **recorded})


def resumed_workspace(
    options: RunOptions, facts: Mapping[str, Any], logs_root: Path
) -> tuple[Workspace, dict[str, Any]]:
    """The workspace of a resumed run, and its manifest entries.

    Args:
        options: With ``with_recorded_workdir`` applied.
        facts: The manifest of the run's first directory.
        logs_root: A directory of the run.
    """
    root = first_directory(logs_root.absolute())
    if options.isolation == WORKTREE and (found := worktree_facts(facts)):
        place: Workspace = worktree_of(root / WORKTREE_NAME, found)
        return place, {"workdir": str(place.directory)}
    if options.isolation == WORKSPACE:
        path = make_workspace(options.disk or Disk(), root, is_synced=False)
        return Folder(path, WORKSPACE), {"workdir": str(path), "isolation": WORKSPACE}
    directory = Path(options.workdir) if options.workdir is not None else here()
    return Folder(directory), {"workdir": str(directory)} if options.executor is None else {}


# ``workspace_from=``: the initial files of a run's workspace, copied from the caller's files.

MAX_FILES: Final = 20_000
MAX_BYTES: Final = 1024 * 1024 * 1024
LEFT_OUT: Final = frozenset({".git", ".attractor"})
"""Folders that no workspace begins with: what version control and runs keep is theirs."""


class InitialFiles(Struct, frozen=True):
    """Files for a workspace."""

    text: str  #: Text of the caller.
    files: tuple[tuple[Path, str], ...]  #: Each file and where it goes, relative to the workspace.

    def fill(self, workspace: Path) -> None:
        """Copy the files."""
        for source, name in self.files:
            target = workspace / name
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target, follow_symlinks=False)
            except OSError as error:
                raise storage_error(error, "copy", source) from error


def filling_of(given: object) -> InitialFiles:
    """The files that ``workspace_from`` names: those below a folder, or those that a pattern matches.

    Links are left out, and so are ``.git`` and ``.attractor``. Those of a folder keep their place in it,
    those of a pattern their place below the working directory.
    """
    text = str(as_path(given, "workspace_from"))
    if Path(text).is_dir():
        base, found = Path(text), _files_below(Path(text))
    else:
        base, found = here(), _matches(text)
    files: list[tuple[Path, str]] = []
    size = 0
    for path in found:
        size += path.lstat().st_size
        files.append((path.absolute(), path.relative_to(base).as_posix()))
        if len(files) > MAX_FILES or size > MAX_BYTES:
            raise OptionError(
                f"workspace_from {text!r} has more than {MAX_FILES:,} files or {MAX_BYTES >> 30} GiB",
                hint="name less of it, such as a folder below, or a pattern",
            )
    if not files and not Path(text).is_dir():
        raise OptionError(
            f"workspace_from {text!r} matches no file in {here()}", hint='a folder, or a pattern such as "src/**/*.py"'
        )
    return InitialFiles(text, tuple(files))


def _matches(pattern: str) -> Iterator[Path]:
    """The plain files of a pattern, below the working directory."""
    if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
        raise OptionError(
            f"workspace_from {pattern!r} leads out of the working directory", hint="name the folder itself"
        )
    for name in sorted(glob.glob(pattern, recursive=True)):  # noqa: PTH207 - Path.glob finds hidden files, too
        path = here() / name
        if _is_wanted(path) and not LEFT_OUT.intersection(Path(name).parts) and not _is_behind_link(name):
            yield path


def _is_behind_link(name: str) -> bool:
    """True if the way to a file leads through a link."""
    return any((here() / parent).is_symlink() for parent in Path(name).parents)


def _files_below(folder: Path) -> Iterator[Path]:
    for name, facts in entries_below(folder, is_left_out=lambda path: path.rpartition("/")[2] in LEFT_OUT):
        if stat.S_ISREG(facts.st_mode):
            yield folder / name


def _is_wanted(path: Path) -> bool:
    return stat.S_ISREG(path.lstat().st_mode)
