"""The status of agents that work side by side, as values (status-schema.md; ruling 33).

Transitions from one state to another are tables. What can be counted or derived (the summary, the status of
a wave) is checked against the agents and never believed. Importing this module imports pydantic.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from attractor_nb.errors import SessionError
from attractor_nb.model.texts import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

AgentStatus = Literal["queued", "running", "complete", "failed", "cancelled"]
SessionStatus = Literal["running", "complete", "failed", "cancelled"]
WaveStatus = Literal["pending", "running", "complete"]
SessionSource = Literal["orchestrate", "execute-phase", "run-prompt"]

SCHEMA_VERSION: Final = "1.0"
SOURCES: Final[tuple[SessionSource, ...]] = ("orchestrate", "execute-phase", "run-prompt")
AGENT_TRANSITIONS: Final[Mapping[str, tuple[AgentStatus, ...]]] = {
    "queued": ("running", "cancelled"),
    "running": ("complete", "failed", "cancelled"),
    "complete": (),
    "failed": (),
    "cancelled": (),
}
"""Allowed transitions from each state of an agent."""
SESSION_TRANSITIONS: Final[Mapping[str, tuple[SessionStatus, ...]]] = {
    "running": ("complete", "failed", "cancelled"),
    "complete": (),
    "failed": (),
    "cancelled": (),
}
"""Allowed transitions from each state of a session."""

_SESSION_ID: Final = r"^[0-9]{8}-[0-9]{6}-[A-Za-z0-9]{1,32}$"
_AGENT_ID: Final = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"


def moment_text(seconds: float) -> str:
    """A moment as ISO 8601 in UTC, to the millisecond.

    >>> moment_text(1769956222.5)
    '2026-02-01T14:30:22.500Z'
    """
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment_seconds(text: str | None) -> float | None:
    """A recorded moment in seconds since 1970; None for none, and for one that names no time zone.

    >>> moment_seconds("2026-02-01T14:30:22Z"), moment_seconds("2026-02-01T14:30:22")
    (1769956222.0, None)
    """
    moment = datetime.fromisoformat(text) if text else None
    return moment.timestamp() if moment and moment.tzinfo else None


def seconds_between(start: str | None, end: str | None) -> float | None:
    """The seconds between two recorded moments, never negative. None if unknown.

    >>> seconds_between("2026-02-01T14:30:25.000Z", "2026-02-01T14:32:59.250Z")
    154.25
    """
    begin, until = moment_seconds(start), moment_seconds(end)
    return None if begin is None or until is None else max(0.0, round(until - begin, 3))


def _check_moment(text: str) -> str:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("is not an ISO 8601 time") from None
    return text


Moment = Annotated[str, AfterValidator(_check_moment)]
_STRICT: Final = ConfigDict(frozen=True, extra="allow", strict=True, allow_inf_nan=False)


class Agent(BaseModel):
    """One agent. Keys unknown here are kept."""

    model_config = _STRICT

    id: Annotated[str, Field(pattern=_AGENT_ID)]  #: Its name within the session, and that of its log: ``001``.
    name: str = ""  #: Its name.
    prompt_path: str | None = None  #: The prompt that it works on.
    status: AgentStatus = "queued"  #: Its status.
    wave: Annotated[int, Field(ge=1)] | None = None  #: The wave that it belongs to, from 1.
    started_at: Moment | None = None  #: When it began.
    completed_at: Moment | None = None  #: When it ended.
    duration_seconds: Annotated[float, Field(ge=0)] | None = None  #: Time between both.
    exit_code: int | None = None  #: Of its process.
    pid: Annotated[int, Field(gt=0)] | None = None  #: Of its process while it runs.
    log_file: str | None = None  #: Its output, relative to the working directory of the session.
    model: str | None = None  #: Its model.
    error: str | None = None  #: Reason of the failure.

    @property
    def is_ended(self) -> bool:
        """True if it will not change its status any more."""
        return not AGENT_TRANSITIONS[self.status]


class Summary(BaseModel):
    """The number of agents, in all and by state."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    total: int = 0
    queued: int = 0
    running: int = 0
    complete: int = 0
    failed: int = 0
    cancelled: int = 0


class Wave(BaseModel):
    """Agents that run side by side, one wave after the other."""

    model_config = _STRICT

    wave: Annotated[int, Field(ge=1)]
    status: WaveStatus = "pending"
    agents: Annotated[tuple[str, ...], Field(strict=False, min_length=1)]


class Session(BaseModel):
    """All that ``status.json`` says. Keys unknown here are kept."""

    model_config = _STRICT

    schema_version: Literal["1.0"] = SCHEMA_VERSION  #: Version of this form.
    session_id: Annotated[str, Field(pattern=_SESSION_ID)]  #: ``YYYYMMDD-HHMMSS-short``.
    source: SessionSource  #: Its source.
    source_file: str  #: The orchestrator's file, or the prompt's.
    started_at: Moment  #: When it began.
    completed_at: Moment | None = None  #: When it ended.
    status: SessionStatus = "running"  #: Its status.
    agents: Annotated[tuple[Agent, ...], Field(strict=False)]  #: The agents in order.
    summary: Summary  #: Their count.
    waves: Annotated[tuple[Wave, ...], Field(strict=False)]  #: Grouping of the agents that run together.

    @model_validator(mode="after")
    def _check_whole(self) -> Self:
        """Check that counts and derived values agree with the agents."""
        status_by_agent = {agent.id: agent.status for agent in self.agents}
        # Ids name log files, and some file systems know no case.
        _refuse_twins("agent", [agent.id.casefold() for agent in self.agents])
        _refuse_twins("wave", [wave.wave for wave in self.waves])
        members = [member for wave in self.waves for member in wave.agents]
        _refuse_twins("agent of a wave", members)
        if strangers := [member for member in members if member not in status_by_agent]:
            raise ValueError(f"waves name agents that are not there: {', '.join(strangers)}")
        counted = summary_of(tuple(status_by_agent.values()))
        if self.summary != counted:
            raise ValueError(f"summary says {_counts(self.summary)}, the agents {_counts(counted)}")
        for wave in self.waves:
            derived = wave_status([status_by_agent[member] for member in wave.agents])
            if wave.status != derived:
                raise ValueError(f"wave {wave.wave} says {wave.status}, its agents {derived}")
        return self

    @property
    def is_ended(self) -> bool:
        """True if nothing more will change."""
        return not SESSION_TRANSITIONS[self.status]

    def known_agent(self, agent_id: str) -> Agent:
        """The agent of that id."""
        for agent in self.agents:
            if agent.id == agent_id:
                return agent
        known = [agent.id for agent in self.agents]
        raise SessionError(
            f"session {self.session_id} has no agent {agent_id!r}{did_you_mean(agent_id, known)}",
            hint=f"its agents: {', '.join(known)}" if known else "it has no agents",
        )

    def to_plain(self) -> dict[str, Any]:
        """JSON values in the order of the schema."""
        return self.model_dump()


def summary_of(statuses: Sequence[str]) -> Summary:
    """The count of agents by state."""
    return Summary(total=len(statuses), **Counter(statuses))


def wave_status(statuses: Sequence[str]) -> WaveStatus:
    """The status of a wave, from its agents: pending until one starts, complete when all have ended.

    >>> wave_status(["queued", "queued"]), wave_status(["complete", "queued"]), wave_status(["failed"])
    ('pending', 'running', 'complete')
    """
    if all(status == "queued" for status in statuses):
        return "pending"
    return "complete" if all(not AGENT_TRANSITIONS[status] for status in statuses) else "running"


def read_session(plain: Mapping[str, Any]) -> Session:
    """The session that plain values mean."""
    return Session.model_validate(cast("dict[str, Any]", plain))


def _refuse_twins(what: str, values: Iterable[Any]) -> None:
    if twins := [value for value, count in Counter(values).items() if count > 1]:
        raise ValueError(f"{what} {twins[0]} occurs twice")


def _counts(summary: Summary) -> str:
    counts: dict[str, int] = summary.model_dump()
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "none"
