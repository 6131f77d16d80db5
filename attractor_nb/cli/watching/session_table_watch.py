"""``watch``: a session of agents as it goes on; a table at a terminal, plain lines in a pipe."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.text import Text

from attractor_nb.cli.exit_codes import ExitCode
from attractor_nb.cli.reporting import print_json
from attractor_nb.cli.terminal import Terminal
from attractor_nb.cli.tones import Tone
from attractor_nb.sessions import SessionTracker, load_session_status
from attractor_nb.sessions.tracker import follow_session, gone_agents, session_to_watch
from attractor_nb.views.session_table import AGENT_MARKS, agent_row, session_headline, session_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attractor_nb.model.session import Session

_ID_COLUMNS: Final = 3
_STATE_COLUMNS: Final = 11


def watch(session_dir: Path | None, *, is_once: bool, is_json: bool) -> ExitCode:
    """Show a session until it has ended, or as it stands; the exit code says how it stands.

    Args:
        session_dir: The session; None for the active one of the working directory.
        is_once: Show it as it stands and return.
        is_json: Print what status.json says, at the end, or as it stands.
    """
    place = session_to_watch(session_dir, Path.cwd())
    terminal = Terminal(sys.stdout)
    if is_json:
        session = SessionTracker(place).read() if is_once else list(follow_session(place))[-1]
        print_json(load_session_status(place))
    elif is_once:
        session = SessionTracker(place).read()
        terminal.show(_drawn(session))
    elif terminal.is_live:
        session = _show_live(terminal, follow_session(place))
    else:
        session = _print_lines(terminal, follow_session(place))
    return ExitCode.of(session.status)


def _show_live(terminal: Terminal, states: Iterator[Session]) -> Session:
    """A table that moves; what stays behind is its last state."""
    latest = next(states)
    terminal.begin(lambda: _drawn(latest))
    try:
        for session in states:
            latest = session
    finally:
        terminal.end()
        terminal.show(_drawn(latest))
    return latest


def _print_lines(terminal: Terminal, states: Iterator[Session]) -> Session:
    """A line for each change of an agent, and at the end one for the session."""
    latest = next(states)
    terminal.say(session_headline(latest, now=time.time()))
    _print_changes(terminal, None, latest)
    for session in states:
        _print_changes(terminal, latest, session)
        latest = session
    if latest.is_ended:
        terminal.say(session_headline(latest, now=time.time()))
    return latest


def _print_changes(terminal: Terminal, before: Session | None, session: Session) -> None:
    """A line for each agent whose status is new, but for those that wait."""
    known = {agent.id: agent.status for agent in before.agents} if before else {}
    for agent in session.agents:
        if known.get(agent.id, "queued") == agent.status:
            continue
        row = agent_row(agent, now=time.time())
        time_text = "" if agent.status == "running" else row.time
        parts = [row.state.ljust(_STATE_COLUMNS), row.id.ljust(_ID_COLUMNS), row.name, time_text, row.words]
        terminal.say("  ".join(part for part in parts if part))


def _drawn(session: Session) -> Text:
    """The table in colours: each state is told by its mark and word, and by its tone."""
    text = session_text(session, now=time.time(), gone=gone_agents(session))
    drawn = Text(no_wrap=True, overflow="ellipsis")
    for number, line in enumerate(text.split("\n")):
        drawn.append("\n" if number else "")
        for state, mark in AGENT_MARKS.items():
            if line.startswith(start := f"{mark} {state}"):
                drawn.append(start, style=Tone.of(state).value)
                line = line.removeprefix(start)  # noqa: PLW2901 - the rest of it
        drawn.append(line, style=(Tone.QUIET if line.startswith("wave ") else Tone.PLAIN).value)
    return drawn
