"""``watch`` of a run: what ``run`` shows of it at a terminal, lines in a pipe, events for programs."""

from __future__ import annotations

import contextlib
import shlex
import sys
import time
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from attractor_nb.cli.progress import ProgressDisplay, name_columns
from attractor_nb.cli.remote_runs.remote import follow_events, status_at_rest
from attractor_nb.cli.remote_runs.server_client import Client, ServerAddress, as_mapping, as_mappings, in_commands
from attractor_nb.cli.reporting import ExitCode, error_plain, exit_code_of, print_json
from attractor_nb.cli.run_summary import answer_command, resume_command
from attractor_nb.cli.run_watched import RunFollower, WatchedRun, drawn_notes, drawn_run, question_lines, run_headline
from attractor_nb.cli.terminal import Terminal
from attractor_nb.cli.tones import Tone
from attractor_nb.errors import AttractorError
from attractor_nb.languages.dot import read_dot
from attractor_nb.model.events import Event, InterviewStarted
from attractor_nb.model.outcome import Usage
from attractor_nb.model.states import NodeStatus, RunStatus
from attractor_nb.sessions import SessionTracker, load_session_status
from attractor_nb.sessions.tracker import follow_session, gone_agents, session_to_watch
from attractor_nb.source import SourceText
from attractor_nb.views.session_table import AGENT_MARKS, agent_row, session_headline, session_text
from attractor_nb.views.state import NodeState
from attractor_nb.views.table import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from attractor_nb.model.graph import Graph
    from attractor_nb.model.session import Session

    Batches = Iterator[tuple[Event, ...]]

    """Events in the order in which they happened, as many at a time as there are."""


TICK_SECONDS: Final = 0.25


def watch_directory(logs_root: Path, *, is_once: bool, is_json: bool) -> ExitCode:
    """Show the run of a directory until it is inactive."""
    from attractor_nb.runtime.stored_execution import LOST_OWNER  # noqa: PLC0415 - of a server nothing is loaded that runs

    run = WatchedRun(_graph_of(logs_root))
    follower = RunFollower(logs_root, is_once=is_once)

    def how(gate: InterviewStarted) -> str:
        return answer_command(logs_root, gate.stage)

    def batches() -> Batches:
        yield from follower
        if not (follower.is_live or run.view.status.is_ended):
            run.lose(LOST_OWNER)

    code = _show(run, batches(), how, is_once=is_once, is_json=is_json)
    if code in {ExitCode.INTERRUPTED, ExitCode.PAUSED}:
        print(f"Resume with `{resume_command(logs_root)}`", file=sys.stderr)
    return code


def watch_server(address: ServerAddress, *, is_once: bool, is_json: bool) -> ExitCode:
    """Show a run of a server until it has ended."""
    client, run_id = Client(address), address.run_id
    status = as_mapping(client.get(run_id))
    run = WatchedRun(_graph_on(client, run_id), said_mark=str(status.get("mark") or ""))
    elsewhere: dict[str, str] = {}

    def how(gate: InterviewStarted) -> str:
        here = ["attractor-nb", "answer", run_id, gate.stage, "CHOICE", "--server", address.url]
        return elsewhere.get(gate.question_id) or shlex.join(here)

    if is_once:
        questions = as_mapping(client.get(run_id, "questions"))
        elsewhere.update(external_answers(questions, address.url))
        run = run_on_server(run.graph, status, questions)
        if is_json:
            print_json(status)
        else:
            _show_once(Terminal(sys.stdout), run, how)
        return run.exit_code
    events = follow_events(client, run_id, tell=run.report_trouble)
    code = _show(run, _gathered(events), how, is_once=False, is_json=is_json)
    with contextlib.suppress(AttractorError):  # what was to be seen was seen, also when the server has gone
        status_at_rest(client, run_id)
    if code is ExitCode.INTERRUPTED:
        print(f"Resume with `attractor-nb resume {client.url_of(run_id)}`", file=sys.stderr)
    return code


def _graph_of(logs_root: Path) -> Graph:
    """The graph of a directory; empty if its source cannot be read: then the events describe it."""
    from attractor_nb.pipeline.load_pipeline import load_pipeline  # noqa: PLC0415 - as above

    try:
        return load_pipeline(logs_root).graph
    except AttractorError:
        return _no_graph()


def _graph_on(client: Client, run_id: str) -> Graph:
    text = client.get_text(run_id, "graph", query="format=dot")
    try:
        return read_dot(SourceText(text, "graph")).graph
    except AttractorError:
        return _no_graph()


def _no_graph() -> Graph:
    return read_dot(SourceText("digraph { }", "graph")).graph


def _gathered(events: Iterable[Event]) -> Batches:
    """Events in batches as they arrive, and an empty batch at intervals: the seconds of a view move."""
    arrived: SimpleQueue[Event | BaseException | None] = SimpleQueue()

    def read() -> None:
        try:
            for event in events:
                arrived.put(event)
            arrived.put(None)
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            arrived.put(error)

    Thread(target=read, name="attractor-events", daemon=True).start()
    while True:
        batch: list[Event] = []
        try:
            found = arrived.get(timeout=TICK_SECONDS)
            while isinstance(found, Event):
                batch.append(found)
                found = arrived.get_nowait()
        except Empty:
            yield tuple(batch)
            continue
        yield tuple(batch)
        if found is None:
            return
        raise found


def _show(
    run: WatchedRun, batches: Batches, how: Callable[[InterviewStarted], str], *, is_once: bool, is_json: bool
) -> ExitCode:
    """Show what happens until it is over; the last line says the status of the run."""
    terminal = Terminal(sys.stdout, name_columns=name_columns(run.graph))
    if is_json:
        return _print_events(run, batches)
    if is_once:
        for batch in batches:
            _take(run, batch)
        _show_once(terminal, run, how)
    else:
        _show_events(terminal, run, batches, how)
    return run.exit_code


def _show_once(terminal: Terminal, run: WatchedRun, how: Callable[[InterviewStarted], str]) -> None:
    """The current state as a table."""
    terminal.show(drawn_run(run, how, now=time.time(), columns=_width(terminal)))


def _width(terminal: Terminal) -> int:
    """The width to fill; 0 where nothing moves: there nothing is cut."""
    return terminal.columns if terminal.is_live else 0


def _take(run: WatchedRun, batch: Iterable[Event]) -> None:
    for event in batch:
        run.take(event)


def _print_events(run: WatchedRun, batches: Batches) -> ExitCode:
    """A line of JSON for each event, at once; an error in their midst is a line, too."""
    try:
        for batch in batches:
            for event in batch:
                run.take(event)
                print_json(event.to_plain(), indent=None)
            if batch:
                sys.stdout.flush()
    except AttractorError as error:
        print_json({"error": error_plain(error)}, indent=None)
        return exit_code_of(error)
    return run.exit_code


def _show_events(terminal: Terminal, run: WatchedRun, batches: Batches, how: Callable[[InterviewStarted], str]) -> None:
    """The lines and the block of ``run``, and at the end one line for the run.

    A terminal shows the open questions in the block, a pipe as lines.
    """
    folding = Lock()  # the block is drawn by a thread of the terminal's

    def footer() -> list[Text]:
        columns = _width(terminal)
        with folding:
            return [*drawn_notes(run, how, columns), run_headline(run, time.time(), columns)]

    progress = ProgressDisplay(run.graph, terminal=terminal, footer=footer)
    announced: set[str] = set()
    try:
        for batch in batches:
            with folding:
                _take(run, batch)
            if batch:
                progress.take_all(batch)
            announced.intersection_update(run.gates)
            for key, gate in run.gates.items() if not terminal.is_live else ():
                if key not in announced:  # of what was answered long ago the stage's line says enough
                    announced.add(key)
                    terminal.say("\n".join(question_lines(gate, how(gate))), Tone.WAITING)
            if terminal.is_unread:
                raise BrokenPipeError
    finally:
        progress.close()
        for text in footer() if terminal.is_live else footer()[-1:]:
            terminal.show(text)


def run_on_server(graph: Graph, status: Mapping[str, Any], questions: Mapping[str, Any]) -> WatchedRun:
    """A run to be shown once.

    Args:
        status: The answer to ``GET /pipelines/{id}``.
        questions: The answer to ``GET /pipelines/{id}/questions``.
    """
    run = WatchedRun(graph, said_mark=str(status.get("mark") or ""))
    run.name = str(status.get("name") or "")
    view = run.view
    view.status = RunStatus.of(str(status.get("status")))
    view.reason = str(status.get("reason") or "")
    view.next_node = str(status.get("next_node") or "")
    view.duration = float(status.get("duration") or 0.0)
    view.stages = int(as_mapping(status.get("progress")).get("stages") or status.get("stages") or 0)
    view.usage = Usage.from_plain(as_mapping(status.get("usage")))
    for name, plain in as_mapping(as_mapping(status.get("states")).get("nodes")).items():
        view.nodes[name] = _state(as_mapping(plain))
    for plain in as_mappings(questions.get("questions")):
        gate = _question(plain)
        run.gates[gate.question_id] = gate
    return run


def external_answers(questions: Mapping[str, Any], url: str) -> dict[str, str]:
    """The instructions for questions that the server itself cannot take an answer to, by id.

    Args:
        questions: The answer to ``GET /pipelines/{id}/questions``.
        url: The server.
    """
    return {
        str(plain.get("id", "")): in_commands(one_line(str(plain.get("how", ""))), url)
        for plain in as_mappings(questions.get("questions"))
        if plain.get("how")
    }


def _state(plain: Mapping[str, Any]) -> NodeState:
    """The inverse of ``NodeState.to_plain``; a status that we do not know looks like none."""
    return NodeState(
        NodeStatus.of(str(plain.get("status"))),
        int(plain.get("attempt", 1)),
        int(plain.get("visits", 0)),
        str(plain.get("reason", "")),
        float(plain.get("since", 0.0)),
        plain.get("until"),
        str(plain.get("progress", "")),
        str(plain.get("note", "")),
    )


def _question(plain: Mapping[str, Any]) -> InterviewStarted:
    return InterviewStarted(
        question=str(plain.get("text", "")),
        stage=str(plain.get("stage", "")),
        question_id=str(plain.get("id", "")),
        kind=str(plain.get("type", "")),
        options=tuple(
            (str(option.get("key", "")), str(option.get("label", ""))) for option in as_mappings(plain.get("options"))
        ),
        branch=str(plain.get("branch", "")),
    )


# ``watch``: a session of agents until it ends; a table at a terminal, plain lines in a pipe.

_ID_COLUMNS: Final = 3
_STATE_COLUMNS: Final = 11


def watch(session_dir: Path | None, *, is_once: bool, is_json: bool) -> ExitCode:
    """Show a session until it has ended, or in its current state; the exit code says its status.

    Args:
        session_dir: The session; None for the active one of the working directory.
        is_once: Show it in its current state and return.
        is_json: Print what status.json says, at the end, or in its current state.
    """
    place = session_to_watch(session_dir, Path.cwd())
    terminal = Terminal(sys.stdout)
    if is_json:
        session = SessionTracker(place).read() if is_once else list(follow_session(place))[-1]
        print_json(load_session_status(place))
    elif is_once:
        session = SessionTracker(place).read()
        terminal.show(_drawn_sessions(session))
    elif terminal.is_live:
        session = _show_sessions_live(terminal, follow_session(place))
    else:
        session = _print_session_lines(terminal, follow_session(place))
    return ExitCode.of(session.status)


def _show_sessions_live(terminal: Terminal, states: Iterator[Session]) -> Session:
    """A table that moves; what stays behind is its last state."""
    latest = next(states)
    terminal.begin(lambda: _drawn_sessions(latest))
    try:
        for session in states:
            latest = session
    finally:
        terminal.end()
        terminal.show(_drawn_sessions(latest))
    return latest


def _print_session_lines(terminal: Terminal, states: Iterator[Session]) -> Session:
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


def _drawn_sessions(session: Session) -> Text:
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
