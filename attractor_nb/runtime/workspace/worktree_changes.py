"""``run.changes()``: what a run has changed in its worktree, compared with where it began."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attractor_nb.errors import OptionError
from attractor_nb.lazy_imports import later
from attractor_nb.redaction import redacted
from attractor_nb.runtime.workspace.worktree import worktree_facts, worktree_of
from attractor_nb.storage.run_directory import WORKTREE_NAME, first_directory
from attractor_nb.storage.stored_run import read_facts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from attractor_nb.views import changes_view
    from attractor_nb.views.changes_view import Changes
else:
    changes_view = later("attractor_nb.views.changes_view")


def place_facts(logs_root: Path) -> Mapping[str, Any]:
    """What the manifest of a run says of where it works; empty for a run that keeps nothing."""
    first = first_directory(logs_root)
    return read_facts(first) if first.is_dir() else {}


def changes_of(logs_root: Path) -> Changes:
    """What the run of a directory has changed."""
    facts = place_facts(logs_root)
    found = worktree_facts(facts)
    if found is None:
        where = facts.get("workdir", "")
        raise OptionError(
            f"nothing keeps what the run changes{f' in {where}' if where else ''}",
            hint='a run with isolation="worktree" has a branch of its own, and a commit for each stage',
        )
    worktree = worktree_of(first_directory(logs_root) / WORKTREE_NAME, found)
    numbers, diff = worktree.difference(worktree.base, "")
    return changes_view.Changes(
        worktree.branch,
        str(worktree.repository),
        worktree.base,
        changes_view.read_numstat(redacted(numbers)),
        changes_view.cut_diff(redacted(diff)),
    )
