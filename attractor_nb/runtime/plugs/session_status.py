"""The status of a run's branches as a session of agents, for everybody to see (status-schema; ruling 33)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from attractor_nb.calling import call
from attractor_nb.decisions.joins import PARALLEL_TYPE
from attractor_nb.errors import AttractorError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from attractor_nb.engine.event_stream import EventStream
    from attractor_nb.model.events import Event
    from attractor_nb.model.graph import Graph
    from attractor_nb.sessions import SessionRecorder

LOGGER = logging.getLogger(__name__)


class SessionFeed:
    """Keeps the session for as long as the run lasts; a fault of it is never the run's."""

    def __init__(self, recorder: SessionRecorder) -> None:
        self._recorder = recorder

    async def open(self) -> None:
        """Nothing is needed before the first fan-out."""

    async def close(self) -> None:
        """Write what is left; the run has announced its end."""
        try:
            await call(self._recorder.close)
        except AttractorError as error:
            LOGGER.warning("the session's status cannot be written: %s", error)


def feed_of(
    place: bool | str | Path,  # noqa: FBT001 - the option as the user gives it
    graph: Graph,
    source_file: str,
    before: Iterable[Event],
    stream: EventStream,
) -> tuple[SessionFeed, ...]:
    """What feeds the session of a run: one, or nothing where nobody asked or there are no branches.

    Args:
        place: The directory under which the session lies; True: the working directory; False: none.
        graph: What runs.
        source_file: The pipeline's file.
        before: What was recorded before a resume.
        stream: Where the events come from.
    """
    if place is False or PARALLEL_TYPE not in graph.handler_types.values():
        return ()
    from attractor_nb.sessions import SessionRecorder  # noqa: PLC0415 - a fifth of what a pipeline loads, for few

    recorder = SessionRecorder("." if place is True else place, source_file=source_file)
    recorder.recall(before)
    stream.add_sink(recorder.take)
    return (SessionFeed(recorder),)
