"""Where a stored run, or the rows of a stored map, worked: what its facts say, and the same place again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.errors import OptionError
from attractor_nb.model.vocabulary.isolation import IN_PLACE, WORKSPACE, WORKTREE
from attractor_nb.runtime.prepare.current_directory import here
from attractor_nb.runtime.prepare.run_options import checked_workdir
from attractor_nb.runtime.workspace.workspace import Folder, Workspace, site_of
from attractor_nb.runtime.workspace.worktree import worktree_facts, worktree_of
from attractor_nb.storage.files.disk import Disk
from attractor_nb.storage.run_directory import WORKTREE_NAME, first_directory, make_workspace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.model.graph import Graph
    from attractor_nb.runtime.prepare.run_options import RunOptions
    from attractor_nb.runtime.prepare.trust import Origin


_GONE: Final = "bring it back, or name another: resume(…, workdir=DIR), --workdir DIR on the command line"


def with_recorded_workdir(options: RunOptions, facts: Mapping[str, Any]) -> RunOptions:
    """Options that work where the run did before, when nobody says otherwise."""
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
    """What the manifest of a map says of where its rows work."""
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
    """Options whose rows work as those of the map did before, when nobody says otherwise."""
    named = (options.workdir, options.isolation, options.workspace_from, options.executor)
    recorded = {name: facts[name] for name in ("workdir", "isolation", "workspace_from") if facts.get(name)}
    if any(value is not None for value in named) or not recorded:
        return options
    if "workdir" in recorded:
        if not Path(recorded["workdir"]).is_dir():
            raise OptionError(f"the map worked in {recorded['workdir']}, which is gone", hint=_GONE)
        recorded["workdir"] = checked_workdir(recorded["workdir"])
    return replace(options, **{"isolation": IN_PLACE, **recorded})


def site_again(options: RunOptions, facts: Mapping[str, Any], logs_root: Path) -> tuple[Workspace, dict[str, Any]]:
    """Where a run that goes on works, and what its manifest says of it.

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
