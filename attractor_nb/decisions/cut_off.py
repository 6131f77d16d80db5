"""What an attempt had consumed that was cut off with its process (ruling 18).

The end of an attempt says what it consumed; this one has no end. Its calls are in the log, and of each
request there is a file that was written before it was made: what one without a call in the log cost, nobody
knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.model.events import ModelCallEnded, PipelineResumed, StageStarted
from attractor_nb.model.outcome import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from attractor_nb.decisions.run_state import InFlight
    from attractor_nb.model.events import Event

_UNKNOWN = Usage(calls=1)


def cut_off_usage(flight: InFlight, branch: str, events: Iterable[Event], asked: int) -> Usage:
    """What a cut-off attempt had consumed; nothing of one that an earlier resume has counted.

    Args:
        flight: The attempt.
        branch: Path of its branch, or empty.
        events: The log.
        asked: How many requests it has made.
    """
    own = (flight.node_id, flight.visit, flight.attempt, branch)
    spent, ended, is_counted = Usage(), 0, False
    for event in events:
        if isinstance(event, PipelineResumed):
            is_counted = True
        elif isinstance(event, StageStarted | ModelCallEnded) and own == (
            event.name,
            event.visit,
            event.attempt,
            event.branch,
        ):
            if isinstance(event, StageStarted):
                spent, ended, is_counted = Usage(), 0, False
            else:
                ended += 1
                spent += event.usage or Usage()
    if is_counted:
        return Usage()
    for _ in range(max(0, asked - ended)):
        spent += _UNKNOWN
    return spent
