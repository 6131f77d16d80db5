"""Where a run works: a folder, a worktree, and what it changed there."""
