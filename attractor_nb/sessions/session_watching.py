"""Follows a session: its successive states, and the agents whose processes are gone."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import SessionNotFound
from attractor_nb.sessions.session_places import active_session
from attractor_nb.sessions.tracker import SessionTracker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from attractor_nb.model.session import Session

INTERVAL_SECONDS: Final = 0.25


def session_to_watch(session_dir: Path | None, cwd: Path) -> Path:
    """The session that is meant: the named one, else the active one of a working directory.

    Raises:
        SessionNotFound: None is named and none is active.
        SessionDamaged: The link to the active one leads elsewhere.
    """
    place = session_dir or active_session(cwd)
    if place is None:
        raise SessionNotFound(f"no session is active in {cwd}", hint="name the directory of a session")
    return place


def follow_session(
    session_dir: Path,
    *,
    interval_seconds: float = INTERVAL_SECONDS,
    wait: Callable[[float], object] = time.sleep,
    is_each_look: bool = False,
) -> Iterator[Session]:
    """Yield the current session, then each new state; the last state has ended.

    Args:
        session_dir: The session.
        interval_seconds: Time between two looks.
        wait: Waits so long.
        is_each_look: Give the state at each look, for a view whose seconds move.

    Raises:
        SessionNotFound: There is no session, or no more.
        SessionDamaged: Its file is torn, altered or foreign.
    """
    tracker = SessionTracker(session_dir)
    session = tracker.read()
    yield session
    while not session.is_ended:
        wait(interval_seconds)
        before, session = session, tracker.read()
        if is_each_look or session != before:
            yield session


def gone_agents(session: Session) -> frozenset[str]:
    """Return the ids of running agents whose process no longer exists on this machine."""
    return frozenset(
        agent.id
        for agent in session.agents
        if agent.status == "running" and agent.pid is not None and not _is_alive(agent.pid)
    )


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
