"""Keeps what a stage changed in the worktree of its run: as a commit, and as a file of the stage (ruling 41)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from attractor_nb.decisions.commit_messages import stage_message
from attractor_nb.redaction import redacted

if TYPE_CHECKING:
    from attractor_nb.decisions.effects import Execute
    from attractor_nb.model.outcome import Outcome
    from attractor_nb.stage import StageFiles, StageScope, Workplace

CHANGES_FILE = "changes.diff"
_CHANGES_NOTHING: Final = frozenset({"start", "exit", "conditional"})
"""Handler types that cannot change a file."""


async def keep_changes(
    place: Workplace, effect: Execute, scope: StageScope, files: StageFiles, outcome: Outcome
) -> str:
    """Keep what an attempt changed before the log says that it ended; the commit, or empty where it changes nothing.

    An attempt that is killed here is cut off: a resume goes back to the commit of the stage before.

    Raises:
        StorageError: It cannot be kept.
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
    if kept.changes:
        files.write_text(CHANGES_FILE, redacted(kept.changes))
    return kept.commit
