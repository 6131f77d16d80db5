"""An agent that has said its last word and does not end: it is given a grace, and then ended (ruling 47).

What it said is its answer, and what it reported was consumed. It knows no program and no stage.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

from attractor_nb.processes import CommandOutput

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from attractor_nb.protocols import CommandResult

ANSWER_GRACE_SECONDS: Final = 5.0
"""Between its last word and its end: it keeps its session, and ends its servers."""
WORK_GRACE_SECONDS: Final = 600.0
"""The same while work of its own goes on in the background, of which it may still hear."""


class SaysWhenOver(Protocol):
    """What listens to an agent.

    Attributes:
        grace_seconds: How long it may go on from then; None while it has not said its last word.
    """

    moved: asyncio.Event  #: Set whenever ``grace_seconds`` begins anew, or is no longer.

    @property
    def grace_seconds(self) -> float | None:
        """As above."""
        ...


async def ended_in_grace(work: Coroutine[Any, Any, CommandResult], agent: SaysWhenOver) -> tuple[CommandResult, bool]:
    """Await an agent's end, at most for its grace once it has said its last word.

    Args:
        work: Runs it; cancelling ends it and all that it started.
        agent: Says when it is over.

    Returns:
        How it ended, and whether it had to be ended: then the exit code is 0, for it says nothing.
    """
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            agent.moved.clear()
            moved = asyncio.ensure_future(agent.moved.wait())
            try:
                waited = {task, moved}
                done, _ = await asyncio.wait(waited, timeout=agent.grace_seconds, return_when=asyncio.FIRST_COMPLETED)
            finally:
                moved.cancel()
            if not done:
                break
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
    return (CommandOutput(0, "", ""), True) if task.cancelled() else (task.result(), False)
