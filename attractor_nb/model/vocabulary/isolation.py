"""The names of the places that a run can have of its own (ruling 41)."""

from typing import Final

IN_PLACE: Final = "none"
WORKSPACE: Final = "workspace"
WORKTREE: Final = "worktree"
ISOLATIONS: Final = (IN_PLACE, WORKSPACE, WORKTREE)
