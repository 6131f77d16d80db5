"""Keeps what a stage changed in the worktree of its run: as a commit, and as a file of the stage (ruling 41)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from attractor_nb.model.events import RunWarning
from attractor_nb.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Callable

    from attractor_nb.decisions.effects import Execute
    from attractor_nb.model.events import StageStarted
    from attractor_nb.model.outcome import Outcome
    from attractor_nb.stage import StageFiles, StageScope, Workplace

CHANGES_FILE = "changes.diff"
MAX_NAME: Final = 200
"""Characters of a stage's path in the message of its commit."""
MAX_NOTES: Final = 4_000
"""Characters of its notes there."""
_CHANGES_NOTHING: Final = frozenset({"start", "exit", "conditional"})
"""Handler types that cannot change a file."""


def stage_message(run_id: str, started: StageStarted, branch: str, status: str, notes: str) -> str:
    """The message of a stage's commit: one line, what the stage said, and which attempt of which run it is.

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


async def keep_changes(
    place: Workplace,
    effect: Execute,
    scope: StageScope,
    files: StageFiles,
    outcome: Outcome,
    announce: Callable[[RunWarning], object],
) -> str:
    """Keep what an attempt changed before the log says that it ended; the commit, or empty where it changes nothing.

    An attempt that is killed here is cut off: a resume goes back to the commit of the stage before. What was left
    out is announced.
    """
    if effect.planned.handler_type in _CHANGES_NOTHING:
        return ""
    notes = outcome.failure_reason if outcome.status.is_failure else outcome.notes
    message = stage_message(scope.run_id, effect.started, scope.branch, outcome.status, notes)
    work = asyncio.ensure_future(asyncio.to_thread(place.keep, message))
    try:
        kept = await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])  # nobody may find the worktree in the middle of it
        raise
    for warning in kept.warnings:
        announce(RunWarning(message=warning, node=effect.planned.id))
    if kept.changes:
        files.write_text(CHANGES_FILE, redacted(kept.changes))
    return kept.commit
