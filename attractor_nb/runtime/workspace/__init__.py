"""The working place of a run: a folder or a worktree, and the changes made there."""
