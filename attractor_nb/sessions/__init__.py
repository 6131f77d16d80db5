"""The status of parallel agents, readable by everybody (status-schema.md; ruling 33).

A session is a directory with one ``status.json``. Scripts keep it by the functions of the schema; a
run's fan-outs and maps keep it through ``SessionRecorder``. It knows no engine.
"""

from __future__ import annotations

from attractor_nb.sessions.recorder import AgentLog, SessionRecorder, open_agent_log
from attractor_nb.sessions.tracker import (
    SessionTracker,
    calculate_summary,
    cancel_agent,
    cancel_session,
    complete_agent,
    complete_session,
    create_session,
    fail_agent,
    get_active_session,
    is_session_complete,
    load_session_status,
    start_agent,
    update_agent_status,
)

__all__ = [
    "AgentLog",
    "SessionRecorder",
    "SessionTracker",
    "calculate_summary",
    "cancel_agent",
    "cancel_session",
    "complete_agent",
    "complete_session",
    "create_session",
    "fail_agent",
    "get_active_session",
    "is_session_complete",
    "load_session_status",
    "open_agent_log",
    "start_agent",
    "update_agent_status",
]
