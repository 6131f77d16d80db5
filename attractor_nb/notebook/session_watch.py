"""A session of agents in a cell: a table that follows it, and stays as a static one when it has ended.

The table is displayed in the cell that asks for it. From then on only its content is replaced, by a
thread of its own, so that the kernel is free; a saved notebook shows the last state on any page.
"""

from __future__ import annotations

# IPython's display has no types.
# pyright: reportUnknownVariableType=false
import contextvars
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from IPython.core.getipython import get_ipython
from IPython.display import display

from attractor_nb.errors import AttractorError
from attractor_nb.notebook.surroundings import is_live, probe
from attractor_nb.runtime.prepare.current_directory import here
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.sessions.tracker import follow_session, gone_agents, session_to_watch
from attractor_nb.views.session_table import session_html, session_text

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from attractor_nb.model.session import Session

INTERVAL_SECONDS: Final = 1.0
"""The seconds of what runs move on, and nobody's scrolling is disturbed."""


def watch_session(
    session_dir: str | os.PathLike[str] | None = None,
    *,
    wait: bool = False,
    pause: Callable[[float], object] = time.sleep,
) -> None:
    """Show a session in this cell until it has ended.

    Where nobody looks on (nbconvert, papermill), and in a terminal, it is shown as it stands.

    Args:
        session_dir: The session; None for the active one of the working directory.
        wait: Return when it has ended; otherwise at once.
        pause: Waits between two looks.
    """
    place = session_to_watch(as_path(session_dir, "the session") if session_dir else None, here())
    states = follow_session(place, interval_seconds=INTERVAL_SECONDS, wait=pause, is_each_look=True)
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
