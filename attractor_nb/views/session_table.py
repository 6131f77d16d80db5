"""A session of agents as a table: text for a terminal, HTML for a notebook (status-schema.md).

One line says its status as a whole; below it is a line for each agent, wave by wave.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from attractor_nb.model.session import Agent, AgentStatus, Session, SessionStatus, Wave, moment_seconds
from attractor_nb.model.states import NodeStatus, RunStatus
from attractor_nb.views.drawings.theme import Theme, root_class
from attractor_nb.views.markup import element, joined, style_sheet
from attractor_nb.views.output_styles import session_css
from attractor_nb.views.state import first_words
from attractor_nb.views.summary_line import duration_text
from attractor_nb.views.table import aligned, cells, one_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from markupsafe import Markup


WORDS_CHARS: Final = 72
_COLUMNS: Final = 5
AGENT_MARKS: Final[dict[AgentStatus, str]] = {
    "queued": NodeStatus.PENDING.letter,
    "running": NodeStatus.RUNNING.letter,
    "complete": NodeStatus.SUCCESS.letter,
    "failed": NodeStatus.FAIL.letter,
    "cancelled": RunStatus.INTERRUPTED.letter,
}
SESSION_MARKS: Final[dict[SessionStatus, str]] = {
    "running": AGENT_MARKS["running"],
    "complete": AGENT_MARKS["complete"],
    "failed": AGENT_MARKS["failed"],
    "cancelled": AGENT_MARKS["cancelled"],
}


@dataclass(frozen=True, slots=True)
class AgentRow:
    """The row of one agent."""

    status: AgentStatus
    id: str
    name: str
    time: str
    words: str
    is_gone: bool = False

    @property
    def state(self) -> str:
        """Mark and word of its status."""
        return f"{AGENT_MARKS[self.status]} {self.status}"


def session_headline(session: Session, *, now: float) -> str:
    """One line: the state of the session, how many agents are in which state, for how long, what it runs.

    Args:
        now: Seconds since 1970, for what has not ended.
    """
    summary = session.summary
    counts = [f"{getattr(summary, state)} {state}" for state in AGENT_MARKS if getattr(summary, state, 0)] or [
        "no agents"
    ]
    parts = [
        f"{SESSION_MARKS[session.status]} {session.status}",
        ", ".join(counts),
        _time(session.started_at, session.completed_at, now),
        one_line(session.source_file) or session.source,
    ]
    return "   ".join(part for part in parts if part)


def session_text(session: Session, *, now: float, gone: Collection[str] = ()) -> str:
    """Headline and table.

    Args:
        now: Seconds since 1970, for what has not ended.
        gone: Ids of running agents whose process is no more.
    """
    headline = session_headline(session, now=now)
    groups = [
        (wave, [agent_row(agent, now=now, gone=gone) for agent in agents]) for wave, agents in agents_by_wave(session)
    ]
    rows = [row for _, members in groups for row in members]
    if not rows:
        return headline
    width = max(cells(row.time) for row in rows)
    lines = aligned([[row.state, row.id, row.name, row.time.rjust(width), row.words] for row in rows]).split("\n")
    text = [headline, ""]
    for wave, members in groups:
        if wave is not None:
            text.append(_wave_text(wave, members))
        text += lines[: len(members)]
        lines = lines[len(members) :]
    return "\n".join(text)


def agents_by_wave(session: Session) -> Iterator[tuple[Wave | None, list[Agent]]]:
    """The agents wave by wave, then those of no wave. A single wave of all is none worth naming."""
    known = {agent.id: agent for agent in session.agents}
    is_single = len(session.waves) == 1 and len(session.waves[0].agents) == len(known)
    for wave in sorted(session.waves, key=lambda wave: wave.wave):
        yield None if is_single else wave, [known.pop(name) for name in wave.agents]
    if known:
        yield None, list(known.values())


def agent_row(agent: Agent, *, now: float, gone: Collection[str] = ()) -> AgentRow:
    """The row of an agent: its time so far or in all, and its error, or its model."""
    if agent.duration_seconds is not None:
        time = duration_text(agent.duration_seconds)
    elif agent.status == "running":
        time = _time(agent.started_at, None, now)
    else:
        time = ""
    is_gone = agent.id in gone
    text = f"process {agent.pid} is gone" if is_gone else agent.error or agent.model or ""
    words = first_words(one_line(text), WORDS_CHARS)
    return AgentRow(agent.status, agent.id, one_line(agent.name), time, words, is_gone)


def session_html(session: Session, *, now: float, gone: Collection[str] = (), theme: Theme = "auto") -> str:
    """The same as an HTML table; arguments as of ``session_text``."""
    body: list[Markup] = []
    for wave, agents in agents_by_wave(session):
        rows = [agent_row(agent, now=now, gone=gone) for agent in agents]
        if wave is not None:
            words = {"colspan": str(_COLUMNS), "scope": "rowgroup"}
            body.append(element("tr", {"class": "wave"}, element("th", words, _wave_text(wave, rows))))
        body += [_html_row(row) for row in rows]
    table = element("table", {"aria-label": "Agents"}, element("tbody", None, joined(body)))
    state = f"{SESSION_MARKS[session.status]} {session.status}"
    rest = session_headline(session, now=now).removeprefix(state)
    classes = {"class": f"headline status-{session.status}"}
    headline = element("div", classes, element("span", {"class": "state"}, state), rest)
    classes = f"attractor-session {root_class()} {theme}"
    return str(element("div", {"class": classes}, style_sheet(session_css()), headline, table))


def _html_row(row: AgentRow) -> Markup:
    return element(
        "tr",
        {"class": f"status-{row.status}" + " is-gone" * row.is_gone},
        element("td", {"class": "state"}, row.state),
        element("td", {"class": "place"}, row.id),
        element("td", None, row.name),
        element("td", {"class": "time"}, row.time),
        element("td", {"class": "words"}, row.words),
    )


def _wave_text(wave: Wave, rows: list[AgentRow]) -> str:
    ended = sum(row.status not in {"queued", "running"} for row in rows)
    return f"wave {wave.wave}   {wave.status}   {ended} of {len(rows)} ended"


def _time(start: str | None, end: str | None, now: float) -> str:
    begin, until = moment_seconds(start), moment_seconds(end) if end else now
    if begin is None or until is None:
        return ""
    seconds = max(0.0, until - begin)
    # What still runs is counted in whole seconds: tenths that race say nothing.
    return f"{int(seconds)} s" if end is None and seconds < 60 else duration_text(seconds)
