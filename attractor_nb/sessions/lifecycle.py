"""The functions that status-schema.md names, and those without which one would miss something.

Each is one line over ``SessionTracker``: for scripts that watch over agents of any kind.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.model.session import SESSION_TRANSITIONS
from attractor_nb.sessions.fold import AgentUpdate, SessionCancelled, SessionCompleted
from attractor_nb.sessions.session_places import active_session
from attractor_nb.sessions.tracker import SessionTracker, stored_plain

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping

    from attractor_nb.model.session import Session

_STATES: Final = ("queued", "running", "complete", "failed", "cancelled")


def create_session(
    cwd: str | os.PathLike[str],
    source: str,
    source_file: str,
    agents: Iterable[Mapping[str, Any]],
    waves: Iterable[Mapping[str, Any]] | None = None,
    *,
    now: Callable[[], float] = time.time,
) -> Path:
    """Begin a session and make it the active one; its directory.

    Args:
        cwd: The working directory: the session lies in its ``.founder-mode/status/sessions``.
        source: ``orchestrate``, ``execute-phase`` or ``run-prompt``.
        source_file: The orchestrator's file, or the prompt's.
        agents: One dict each, with at least an ``id`` such as ``001``; they are not changed.
        waves: ``{"wave": 1, "agents": ["001", …]}`` each; left out, they follow from the agents'
            ``wave``.
        now: The clock.
    """
    return SessionTracker.create(Path(cwd), source, source_file, agents, waves, now=now).session_dir


def update_agent_status(session_dir: str | os.PathLike[str], agent_id: str, updates: Mapping[str, Any]) -> Session:
    """Change fields of one agent, durably; the session after it.

    A change of ``status`` follows the transitions and brings the times with it, unless they are given.
    """
    return SessionTracker(Path(session_dir)).change(AgentUpdate(agent_id, updates))


def start_agent(session_dir: str | os.PathLike[str], agent_id: str, pid: int | None = None) -> Session:
    """Note that an agent has begun; raises as ``update_agent_status``."""
    return _go(session_dir, agent_id, "running", pid=pid)


def complete_agent(session_dir: str | os.PathLike[str], agent_id: str, exit_code: int = 0) -> Session:
    """Note that an agent has done its work; raises as ``update_agent_status``."""
    return _go(session_dir, agent_id, "complete", exit_code=exit_code)


def fail_agent(session_dir: str | os.PathLike[str], agent_id: str, error: str, exit_code: int = 1) -> Session:
    """Note that an agent has failed, and why; raises as ``update_agent_status``."""
    return _go(session_dir, agent_id, "failed", exit_code=exit_code, error=error)


def cancel_agent(session_dir: str | os.PathLike[str], agent_id: str, error: str | None = None) -> Session:
    """Note that an agent was stopped, or will not begin; raises as ``update_agent_status``."""
    return _go(session_dir, agent_id, "cancelled", error=error)


def complete_session(session_dir: str | os.PathLike[str]) -> Session:
    """End a session: ``failed`` with a failed agent, else ``complete``.

    After a failure agents that still wait are cancelled: they will not begin any more.
    """
    return SessionTracker(Path(session_dir)).change(SessionCompleted())


def cancel_session(session_dir: str | os.PathLike[str], error: str = "") -> Session:
    """End a session at the user's wish, and cancel its agents that have not ended.

    Args:
        error: Why, for these agents.
    """
    return SessionTracker(Path(session_dir)).change(SessionCancelled(error))


def calculate_summary(agents: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How many agents there are, and in which state; one without a status waits.

    >>> calculate_summary([{"status": "running"}, {}])
    {'total': 2, 'queued': 1, 'running': 1, 'complete': 0, 'failed': 0, 'cancelled': 0}
    """
    statuses = [agent.get("status", "queued") for agent in agents]
    counts = Counter(statuses)
    return {"total": len(statuses), **{state: counts[state] for state in _STATES}}


def get_active_session(cwd: str | os.PathLike[str]) -> Path | None:
    """Return the directory of the active session; None if there is none or it no longer exists."""
    return active_session(Path(cwd))


def load_session_status(session_dir: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the content of a session's ``status.json``; empty if there is none."""
    return stored_plain(Path(session_dir)) or {}


def is_session_complete(session_dir: str | os.PathLike[str]) -> bool:
    """Whether a session has ended: complete, failed or cancelled; raises as ``load_session_status``."""
    status = load_session_status(session_dir).get("status", "running")
    return not SESSION_TRANSITIONS[cast("str", status)]


def _go(session_dir: str | os.PathLike[str], agent_id: str, status: str, **more: Any) -> Session:
    given = {key: value for key, value in more.items() if value is not None}
    return SessionTracker(Path(session_dir)).change(AgentUpdate(agent_id, {"status": status, **given}, is_step=True))
