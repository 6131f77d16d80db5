"""Tables in a cell that follow a map or a session of agents, and remain as static ones at the end."""

# IPython's display has no types.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import contextvars
import threading
import time
from typing import TYPE_CHECKING, Any, Final, Protocol

from IPython.core.getipython import get_ipython
from IPython.display import DisplayHandle, display

from attractor_nb.errors import AttractorError
from attractor_nb.logs import own_logger
from attractor_nb.notebook.environment import is_live, probe
from attractor_nb.notebook.saved_output import bundle_of, placed
from attractor_nb.platforms import HAS_THREADS
from attractor_nb.runtime.prepare.current_directory import here
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.sessions.tracker import follow_session, gone_agents, session_to_watch
from attractor_nb.views.session_table import session_html, session_text

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from attractor_nb.model.session import Session


# The live table of a map: a bar and a table that follow it, and remain as a picture at its end.
#
# The table is displayed in the cell that starts the map. From then on its own thread replaces its content, a few
# times a second at most, so that the kernel is free.

LOGGER = own_logger(__name__)
INTERVAL_SECONDS: Final = 0.25


class ShownMap(Protocol):
    """The part of a map that the live table needs; the public ``MapRun`` implements it."""

    @property
    def is_done(self) -> bool:
        """True if it has ended."""
        ...

    def when_done(self, function: Callable[[], object], /) -> None:
        """Call a function at its end."""
        ...


class LiveMap:
    """The live table of one map. It does not hold the map: the presenter keeps the table only as long as that lives."""

    def __init__(
        self,
        *,
        interval_seconds: float = INTERVAL_SECONDS,
        place: str = "",
        at_end: Callable[[Any], object] | None = None,
    ) -> None:
        """Make it.

        Args:
            interval_seconds: The shortest time between two pictures.
            place: The key of the view that stands in for the last picture; empty without one.
            at_end: Called with the map behind its last picture.
        """
        self._interval_seconds = interval_seconds
        self._place = place
        self._at_end = at_end
        self._handles: list[DisplayHandle] = []
        self._is_over = threading.Event()

    @property
    def is_over(self) -> bool:
        """True if the last picture is in its place."""
        return self._is_over.is_set()

    def show(self, shown: ShownMap) -> None:
        """Display the map in the current cell's output, and follow it from there."""
        handle = display(self._bundle(shown), raw=True, display_id=True)
        assert handle is not None, "a display id was asked for"
        self._handles.append(handle)

    def follow(self, shown: ShownMap) -> None:
        """Begin to follow the map; call it when the map has a job."""
        ended = threading.Event()
        # The context carries the cell's identity; see ``painting``.
        context = contextvars.copy_context()
        if not HAS_THREADS:  # the last picture alone
            shown.when_done(lambda: context.run(self._end, shown))
            return
        shown.when_done(ended.set)
        target: tuple[Any, ...] = (self._follow, shown, ended)
        threading.Thread(target=context.run, args=target, name="attractor-map", daemon=True).start()

    def wait(self, timeout: float) -> bool:
        """Wait until the last picture is in its place."""
        return self._is_over.wait(timeout)

    def _follow(self, shown: ShownMap, ended: threading.Event) -> None:
        try:
            while not ended.wait(self._interval_seconds):
                self._paint(shown)
            self._end(shown)
        except Exception:  # a fault of the display is never the map's
            LOGGER.exception("the live table could not follow the map")
        finally:
            self._is_over.set()

    def _end(self, shown: ShownMap) -> None:
        self._paint(shown)
        if self._at_end is not None:
            self._at_end(shown)

    def _bundle(self, shown: ShownMap) -> dict[str, str]:
        bundle = bundle_of(shown)
        return {**bundle, "text/html": placed(self._place, bundle["text/html"])} if self._place else bundle

    def _paint(self, shown: ShownMap) -> None:
        bundle = self._bundle(shown)
        for handle in tuple(self._handles):
            handle.update(bundle, raw=True)


# The live table of a session of agents, which remains as a static one at its end.
#
# The table is displayed in the cell that asks for it. From then on its own thread replaces its content, so that
# the kernel is free; a saved notebook shows the last state on any page.

SESSION_INTERVAL_SECONDS: Final = 1.0
"""The seconds of what runs move on, and scrolling is not disturbed."""


def watch_session(
    session_dir: str | os.PathLike[str] | None = None,
    *,
    wait: bool = False,
    pause: Callable[[float], object] = time.sleep,
) -> None:
    """Show a session in this cell until it has ended.

    Without a user (nbconvert, papermill), and in a terminal, it is shown in its current state.

    Args:
        session_dir: The session; None for the active one of the working directory.
        wait: Return when it has ended; otherwise at once.
        pause: Waits between two looks.
    """
    place = session_to_watch(as_path(session_dir, "the session") if session_dir else None, here())
    states = follow_session(place, interval_seconds=SESSION_INTERVAL_SECONDS, wait=pause, is_each_look=True)
    session = next(states)
    around = probe(get_ipython())
    if not around.has_kernel:
        if wait:
            *_, session = (session, *states)
        print(bundle_of_session(session)["text/plain"])  # noqa: T201 - what a terminal shows
        return
    handle = display(bundle_of_session(session), raw=True, display_id=True)
    if session.is_ended:
        return
    if wait:
        _follow(handle, states)
    elif is_live(around):
        # The context carries the cell's identity; see ``painting``.
        context = contextvars.copy_context()
        target: tuple[Any, ...] = (_follow, handle, states)
        threading.Thread(target=context.run, args=target, name="attractor-watch", daemon=True).start()


def bundle_of_session(session: Session) -> dict[str, str]:
    """The table as HTML and as text."""
    now, gone = time.time(), gone_agents(session)
    return {
        "text/html": session_html(session, now=now, gone=gone),
        "text/plain": session_text(session, now=now, gone=gone),
    }


def _follow(handle: Any, states: Iterator[Session]) -> None:
    """Put each state in the place of the one before; and when there is none any more, why."""
    try:
        for session in states:
            handle.update(bundle_of_session(session), raw=True)
    except AttractorError as error:
        handle.update({"text/plain": str(error)}, raw=True)
