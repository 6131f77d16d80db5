"""What the commit of a stage says, in the worktree of a run (ruling 41)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from attractor_nb.model.events import StageStarted

MAX_NAME: Final = 200
MAX_NOTES: Final = 4_000


def stage_message(run_id: str, started: StageStarted, branch: str, status: str, notes: str) -> str:
    """One line, what the stage said, and which attempt of which run it is.

    Args:
        run_id: The run.
        started: The attempt.
        branch: Path of the branch that it is in, or empty.
        status: How it ended.
        notes: What it said of itself, or why it failed.

    >>> from attractor_nb.model.events import StageStarted
    >>> print(stage_message("r1", StageStarted(name="fix", index=3, visit=2), "", "success", "it passes"))
    fix: success
    <BLANKLINE>
    it passes
    <BLANKLINE>
    Attractor-Run: r1
    Attractor-Stage: fix, visit 2, attempt 1
    <BLANKLINE>
    """
    path = f"{branch}/{started.name}" if branch else started.name
    name = "".join(char if char.isprintable() else "_" for char in path)[:MAX_NAME]
    words = "".join(char for char in notes if char.isprintable() or char in "\n\t").strip()[:MAX_NOTES]
    body = f"{words}\n\n" if words else ""
    trailers = f"Attractor-Stage: {name}, visit {started.visit}, attempt {started.attempt}\n"
    return f"{name}: {status}\n\n{body}Attractor-Run: {run_id}\n{trailers}"
