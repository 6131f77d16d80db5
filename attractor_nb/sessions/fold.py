"""A session and a change make the next session: the rules of the schema without clock or disk.

Changes are values that carry no time of their own; the moment comes with them, so that what was held
back for a while is recorded as of when it happened.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.errors import IllegalTransition, OptionError
from attractor_nb.model.session import (
    AGENT_TRANSITIONS,
    SOURCES,
    Agent,
    AgentStatus,
    Session,
    Wave,
    moment_text,
    read_session,
    seconds_between,
    summary_of,
    wave_status,
)
from attractor_nb.model.texts import did_you_mean, nearest
from attractor_nb.storage.files.strict_json import json_bytes, read_json
from attractor_nb.storage.sealed_file import wrong_shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

STATUS_BASE: Final = ".founder-mode/status"
_ADVICE: Final = "the fields are those of status-schema.md"


@dataclass(frozen=True, slots=True)
class AgentUpdate:
    """Fields of one agent change."""

    agent_id: str
    updates: Mapping[str, Any]  #: The fields that change.
    is_step: bool = False  #: They bring a new status: who begins what has begun already is refused.


@dataclass(frozen=True, slots=True)
class AgentsAdded:
    """Agents join, in a wave of that number."""

    agents: Sequence[Mapping[str, Any]]
    wave: int


@dataclass(frozen=True, slots=True)
class SessionCompleted:
    """Everything was done: the agents say whether it completed or failed."""


@dataclass(frozen=True, slots=True)
class SessionCancelled:
    """It ends here; agents that have not ended are cancelled."""

    error: str = ""


Change = AgentUpdate | AgentsAdded | SessionCompleted | SessionCancelled


def begin_session(
    session_id: str,
    source: str,
    source_file: str,
    agents: Iterable[Mapping[str, Any]],
    waves: Iterable[Mapping[str, Any]] | None,
    *,
    at: float,
) -> Session:
    """A session that begins; waves that are not given follow from the ``wave`` of the agents."""
    if source not in SOURCES:
        raise OptionError(
            f"session source {source!r} is not known{did_you_mean(source, SOURCES)}",
            hint=f"use one of {', '.join(SOURCES)}",
        )
    entries = [_new_agent(agent, session_id) for agent in agents]
    lists = _waves_of(entries) if waves is None else [_new_wave(wave) for wave in waves]
    for wave in lists:
        for entry in entries:
            if entry["id"] in wave["agents"]:
                _join(entry, wave["wave"])
    plain: dict[str, Any] = {
        "session_id": session_id,
        "source": source,
        "source_file": source_file,
        "started_at": moment_text(at),
        "agents": entries,
        "waves": lists,
    }
    return _derived(plain)


def apply_change(session: Session, change: Change, *, at: float) -> Session:
    """The session after a change."""
    if session.is_ended:
        raise IllegalTransition(
            f"session {session.session_id} is {session.status} and can no longer change",
            source=session.status,
            hint="create_session starts another one",
        )
    match change:
        case AgentUpdate():
            return _update_agent(session, change, at)
        case AgentsAdded():
            return _add_agents(session, change)
        case SessionCompleted():
            return _complete(session, at)
        case SessionCancelled():
            return _cancel(session, change.error, at)


def check_transition(agent_id: str, source: AgentStatus, target: str) -> None:
    """Refuse a way that an agent cannot go."""
    allowed = AGENT_TRANSITIONS[source]
    if target in allowed:
        return
    allowed_words = f"allowed from {source}: {', '.join(allowed)}" if allowed else f"{source} is final"
    hint = "start_agent comes first" if source == "queued" and target in AGENT_TRANSITIONS["running"] else ""
    raise IllegalTransition(
        f"agent {agent_id} cannot go from {source} to {target}; {allowed_words}",
        source=source,
        target=target,
        allowed=allowed,
        hint=hint,
    )


def _update_agent(session: Session, change: AgentUpdate, at: float) -> Session:
    agent = session.known_agent(change.agent_id)
    if change.is_step:
        check_transition(agent.id, agent.status, change.updates["status"])
    changed = _changed_agent(agent, change.updates, at)
    agents = [changed if entry.id == agent.id else entry.model_dump() for entry in session.agents]
    return _derived({**session.to_plain(), "agents": agents})


def _changed_agent(agent: Agent, updates: Mapping[str, Any], at: float) -> dict[str, Any]:
    """An agent's plain values after an update; what follows from a new status is filled in."""
    for key, value in updates.items():
        _check_update(agent, key, value)
    plain: dict[str, Any] = {**agent.model_dump(), **updates}
    status = plain["status"]
    if status == agent.status:
        return plain
    check_transition(agent.id, agent.status, status)
    if status == "running":
        plain["started_at"] = updates.get("started_at") or moment_text(at)
        return plain
    plain["completed_at"] = updates.get("completed_at") or moment_text(at)
    plain["pid"] = None
    if updates.get("duration_seconds") is None:
        plain["duration_seconds"] = _duration(plain)
    return plain


def _duration(plain: Mapping[str, Any]) -> float | None:
    try:
        return seconds_between(plain["started_at"], plain["completed_at"])
    except (TypeError, ValueError):  # no moment: the check of the whole says so, with its place
        return None


def _check_update(agent: Agent, key: str, value: Any) -> None:
    """Refuse a change of identity, a misspelled field, and a value that JSON cannot represent."""
    if key in {"id", "wave"} and value != getattr(agent, key):
        raise OptionError(f"the {key} of agent {agent.id} cannot be changed")
    if key not in Agent.model_fields:
        is_known = key in (agent.model_extra or {})
        _check_own_key(agent.id, key, value, is_known=is_known)


def _check_own_key(agent_id: str, key: str, value: Any, *, is_known: bool = False) -> None:
    """Refuse a key beside the schema's that is a slip of one of these, or whose value JSON cannot keep."""
    if not is_known and (meant := nearest(key, Agent.model_fields, 1)):
        raise OptionError(f"an agent has no field {key!r}", hint=f"use {meant!r}, or a less similar name")
    try:
        is_kept = read_json(json_bytes(value)) == value
    except (TypeError, ValueError, RecursionError):
        is_kept = False
    if not is_kept:
        raise OptionError(f"{key!r} of agent {agent_id} is not a JSON value", hint="use text, numbers, lists and dicts")


def _add_agents(session: Session, change: AgentsAdded) -> Session:
    plain = session.to_plain()
    entries = [_new_agent({**agent, "wave": change.wave}, session.session_id) for agent in change.agents]
    ids = [entry["id"] for entry in entries]
    waves = {wave["wave"]: wave for wave in plain["waves"]}
    before = waves.get(change.wave, {"wave": change.wave, "agents": ()})
    waves[change.wave] = {**before, "agents": [*before["agents"], *ids]}
    return _derived({**plain, "agents": [*plain["agents"], *entries], "waves": list(waves.values())})


def _complete(session: Session, at: float) -> Session:
    """The end by the agents: failed with a failure, else complete."""
    has_failed = any(agent.status == "failed" for agent in session.agents)
    late = [agent.id for agent in session.agents if agent.status == "running"]
    late += [agent.id for agent in session.agents if agent.status == "queued" and not has_failed]
    target = "failed" if has_failed else "complete"
    if late:
        raise IllegalTransition(
            f"session {session.session_id} cannot go from running to {target}: "
            f"{'agents have' if len(late) > 1 else 'an agent has'} not ended: {', '.join(late)}",
            source="running",
            target=target,
            allowed=("cancelled",),
            hint="complete, fail or cancel them; cancel_session ends the session with all of them",
        )
    return _ended(session, target, at)


def _cancel(session: Session, error: str, at: float) -> Session:
    return _ended(session, "cancelled", at, {"error": error} if error else {})


def _ended(session: Session, status: str, at: float, more: Mapping[str, Any] | None = None) -> Session:
    """The session at its end; agents that have not ended are cancelled."""
    cancelled = {**(more or {}), "status": "cancelled"}
    agents = [
        agent.model_dump() if agent.is_ended else _changed_agent(agent, cancelled, at) for agent in session.agents
    ]
    plain = {**session.to_plain(), "status": status, "completed_at": moment_text(at), "agents": agents}
    return _derived(plain)


def _new_agent(given: Mapping[str, Any], session_id: str) -> dict[str, Any]:
    """An agent's plain values, checked and complete."""
    log_file = f"{STATUS_BASE}/sessions/{session_id}/{given.get('id')}.log"
    try:
        agent = Agent.model_validate({**given, "log_file": log_file})
    except ValueError as error:
        raise OptionError(f"agent {given.get('id')!r} {wrong_shape(error)}", hint=_ADVICE) from None
    for key, value in (agent.model_extra or {}).items():
        _check_own_key(agent.id, key, value)
    return agent.model_dump()


def _new_wave(given: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return Wave.model_validate({**given, "status": "pending"}).model_dump()
    except ValueError as error:
        raise OptionError(f"wave {given.get('wave')!r} {wrong_shape(error)}", hint=_ADVICE) from None


def _join(entry: dict[str, Any], wave: int) -> None:
    """Note in an agent which wave names it."""
    if entry["wave"] not in {None, wave}:
        raise OptionError(
            f"agent {entry['id']} has wave {entry['wave']}, but wave {wave} lists it", hint="remove one of the two"
        )
    entry["wave"] = wave


def _waves_of(agents: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    members: dict[int, list[str]] = {}
    for agent in agents:
        if agent["wave"] is not None:
            members.setdefault(agent["wave"], []).append(agent["id"])
    return [{"wave": number, "agents": members[number]} for number in sorted(members)]


def _derived(plain: dict[str, Any]) -> Session:
    """Return the session from plain values, with recomputed summary and wave states."""
    status_by_agent = {agent["id"]: agent["status"] for agent in plain["agents"]}
    waves = [
        {**wave, "status": wave_status([status_by_agent[name] for name in wave["agents"] if name in status_by_agent])}
        for wave in plain["waves"]
    ]
    summary = summary_of(tuple(status_by_agent.values())).model_dump()
    try:
        return read_session({**plain, "summary": summary, "waves": waves})
    except ValueError as error:
        raise OptionError(f"the session {wrong_shape(error)}", hint=_ADVICE) from None
