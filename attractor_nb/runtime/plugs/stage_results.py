"""``cache=``: where results of stages are kept, and what a stage's directory says of its look there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from attractor_nb.engine.stage_cache import StageCache
from attractor_nb.runtime.begin import DEFAULT_RUNS_BASE
from attractor_nb.storage.cache_store import CacheStore

if TYPE_CHECKING:
    from attractor_nb.decisions.plan import Plan
    from attractor_nb.runtime.prepare.run_options import RunOptions
    from attractor_nb.runtime.workspace.workspace import Workspace

CACHE_NAME = "cache"


def cache_directory(options: RunOptions) -> Path | None:
    """The directory that ``cache=`` means; None without one."""
    if options.cache is False:
        return None
    if options.cache is True:
        return Path(options.runs_dir or DEFAULT_RUNS_BASE).parent / CACHE_NAME
    return Path(options.cache)


def cache_of(options: RunOptions, plan: Plan, workspace: Workspace) -> StageCache | None:
    """The cache of a run; None without one, and beside a cassette: that has to hear of every call."""
    directory = cache_directory(options)
    if directory is None or options.cassette is not None:
        return None
    return StageCache(CacheStore(directory, options.disk), plan.name, workspace.directory)
