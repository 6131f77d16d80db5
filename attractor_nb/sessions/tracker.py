"""One session's ``status.json``: changed under a kernel lock (ruling 33), and followed by readers.

The lock dies with its holder, and a change is in the file before the call that made it returns:
whatever is killed, at whichever moment, nothing that was acknowledged is lost and no process waits for
the dead. Readers need no lock, for the file is only ever replaced as a whole.
"""

from __future__ import annotations

import os
import time
import uuid
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from filelock import FileLock, Timeout

from attractor_nb.errors import RunNotFound, SessionBusy, SessionDamaged, SessionNotFound, StorageError
from attractor_nb.model.session import SESSION_TRANSITIONS, Session, read_session
from attractor_nb.redaction import learn, secrets_among
from attractor_nb.sessions.fold import (
    STATUS_BASE,
    AgentUpdate,
    Change,
    SessionCancelled,
    SessionCompleted,
    apply_change,
    begin_session,
)
from attractor_nb.storage.files.atomic import read_plain_file, replace_link, sweep, write_whole
from attractor_nb.storage.files.disk import FILE_MODE, Disk, Durability, check_durability, storage_error
from attractor_nb.storage.files.strict_json import JsonProblem, read_json
from attractor_nb.storage.run_directory import RunDirectory
from attractor_nb.storage.sealed_file import seal, unseal, wrong_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping


MAX_STATUS_BYTES: Final = 32 * 1024 * 1024
PATIENCE_SECONDS: Final = 30.0
"""A change takes milliseconds; a process that holds the lock longer is stopped, and cannot say so."""
_POLL_SECONDS: Final = 0.01

INTERVAL_SECONDS: Final = 0.25


class SessionTracker:
    """Changes one session. Any number of trackers, threads and processes may do so at once.

    Attributes:
        session_dir: The session's directory.
    """

    def __init__(
        self,
        session_dir: str | Path,
        *,
        durability: str = "full",
        patience_seconds: float = PATIENCE_SECONDS,
        now: Callable[[], float] = time.time,
        disk: Disk | None = None,
    ) -> None:
        """Take up a session; nothing is opened yet.

        Args:
            session_dir: Its directory.
            durability: ``full`` survives a power loss, ``fast`` the death of the process.
            patience_seconds: How long to wait for another writer.
            now: The clock: seconds since 1970.
            disk: In place of the real one.
        """
        self.session_dir = Path(session_dir)
        self._durability: Durability = check_durability(durability)
        self._patience_seconds = patience_seconds
        self._now = now
        self._disk = disk or Disk()
        # An agent's error may hold what the environment does; the writer takes out what is known to it.
        learn(secrets_among(os.environ))

    @classmethod
    def create(
        cls,
        cwd: str | Path,
        source: str,
        source_file: str,
        agents: Iterable[Mapping[str, Any]] = (),
        waves: Iterable[Mapping[str, Any]] | None = None,
        *,
        durability: str = "full",
        now: Callable[[], float] = time.time,
        disk: Disk | None = None,
    ) -> SessionTracker:
        """Begin a session and make it the active one; the arguments are those of ``create_session``."""
        disk = disk or Disk()
        is_synced = check_durability(durability) == "full"
        at, place, entries = now(), Path(cwd), list(agents)
        # Checked before anything is made: a refused session leaves nothing behind.
        begin_session("00000000-000000-check", source, source_file, entries, waves, at=at)
        session_dir = new_session_directory(disk, place, at=at, is_synced=is_synced)
        session = begin_session(session_dir.name, source, source_file, entries, waves, at=at)
        tracker = cls(session_dir, durability=durability, now=now, disk=disk)
        with opened_session(disk, session_dir) as directory:
            _write(disk, directory, session, is_synced=is_synced)
        point_to(disk, place, session_dir.name, is_synced=is_synced)
        return tracker

    def read(self) -> Session:
        """Return the current session."""
        with opened_session(self._disk, self.session_dir) as directory:
            return _read(directory)

    def change(self, *changes: Change) -> Session:
        """Make changes, all or none; the session after them. They are durable when this returns."""

        def apply_all(session: Session) -> Session:
            for change in changes:
                session = apply_change(session, change, at=self._now())
            return session

        return self.update(apply_all)

    def update(self, fold: Callable[[Session], Session]) -> Session:
        """Replace the session by the result of ``fold`` while holding the lock."""
        with opened_session(self._disk, self.session_dir) as directory, self._held(directory):
            before = _read(directory)
            after = fold(before)
            if after != before:
                sweep(self._disk, directory.descriptor)
                _write(self._disk, directory, after, is_synced=self._durability == "full")
            return after

    @contextmanager
    def _held(self, directory: RunDirectory) -> Generator[None]:
        """The session's lock."""
        path = directory.path / LOCK_NAME
        lock = FileLock(path, timeout=self._patience_seconds, mode=FILE_MODE)
        try:
            lock.acquire(poll_interval=_POLL_SECONDS)
        except Timeout:
            raise SessionBusy(
                f"session {directory.path.name} is held by another writer for more than {self._patience_seconds:g} s",
                hint=f"a stopped process holds {path}: continue or end it",
            ) from None
        except IsADirectoryError:
            raise SessionBusy(
                f"{path} is a directory, created by writers that lock by mkdir",
                hint="remove it when no such writer is running",
            ) from None
        except OSError as error:
            raise storage_error(error, "lock", path) from error
        try:
            yield
        finally:
            lock.release()


def stored_plain(session_dir: Path) -> dict[str, Any] | None:
    """The content of ``status.json``, checked; None when there is no such file."""
    try:
        with opened_session(Disk(), session_dir) as directory:
            found = _read_checked(directory)
    except SessionNotFound:
        return None
    return None if found is None else found[0]


def _read(directory: RunDirectory) -> Session:
    found = _read_checked(directory)
    if found is None:
        raise SessionNotFound(f"there is no {STATUS_NAME} in {directory.path}")
    return found[1]


def _read_checked(directory: RunDirectory) -> tuple[dict[str, Any], Session] | None:
    """The values of the file and what they mean; None when there is no file."""
    data = read_plain_file(STATUS_NAME, directory.descriptor, directory=directory.path, max_bytes=MAX_STATUS_BYTES)
    if data is None:
        return None
    try:
        return session_of(data)
    except JsonProblem as problem:
        raise _damaged(directory, data, str(problem)) from None
    except ValueError as error:
        raise _damaged(directory, data, wrong_shape(error)) from None


def session_of(data: bytes) -> tuple[dict[str, Any], Session]:
    """The values of a status file and what they mean.

    A file of another program has no checksum, and is taken when it keeps the schema.
    """
    plain: Any = read_json(data)
    if not isinstance(plain, dict):
        raise JsonProblem("has a wrong shape: it is not an object")
    values = cast("dict[str, Any]", plain)
    if "checksum" in values:
        values = unseal(data)
    return values, read_session(values)


def _damaged(directory: RunDirectory, data: bytes, problem: str) -> SessionDamaged:
    """The error for a file that is not as we would have written it."""
    try:
        plain = read_json(data)
    except JsonProblem:
        plain = None
    salvageable = cast("dict[str, Any]", plain) if isinstance(plain, dict) else None
    agents = salvageable.get("agents") if salvageable else None
    if isinstance(agents, list):
        rest = f"{len(cast('list[Any]', agents))} agents of it can be read, but nothing proves them right"
    else:
        rest = "nothing of it can be read"
    logs = len(list(directory.path.glob("*.log")))
    return SessionDamaged(
        f"{STATUS_NAME} of session {directory.path.name} {problem}; {rest}; "
        f"{logs} agent log{'s' * (logs != 1)} beside it",
        salvageable=salvageable,
        hint='look at the file; without its entry "checksum" it is accepted if it matches the schema',
    )


def _write(disk: Disk, directory: RunDirectory, session: Session, *, is_synced: bool) -> None:
    data = seal(session.to_plain())
    write_whole(disk, directory.descriptor, STATUS_NAME, data, directory=directory.path, is_synced=is_synced)


def session_to_watch(session_dir: Path | None, cwd: Path) -> Path:
    """The session that is meant: the named one, else the active one of a working directory."""
    place = session_dir or active_session(cwd)
    if place is None:
        hint = "name the directory of a session, a run or a map; attractor-nb runs lists runs and maps"
        raise SessionNotFound(f"no session is active in {cwd}", hint=hint)
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
        interval_seconds: Time between two looks.
        wait: Waits so long.
        is_each_look: Give the state at each look, for a view whose seconds move.
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


# The directory of sessions: ``.founder-mode/status``, its session directories and the link to the active one.
#
# Every entry below the working directory is reached through open directories, so that no link that
# somebody planted leads a writer elsewhere. The one link that is read, ``active-session``, must lead to
# a session of the same directory.

SESSIONS_NAME: Final = "sessions"
ACTIVE_NAME: Final = "active-session"
STATUS_NAME: Final = "status.json"
LOCK_NAME: Final = "status.json.lock"
_MAX_TRIES: Final = 100


def new_session_directory(disk: Disk, cwd: Path, *, at: float, is_synced: bool) -> Path:
    """Make the directory of a new session; its name is the session's id."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(at))
    with _opened_base(disk, cwd, is_synced=is_synced) as (base, base_path):
        sessions = _enter(disk, base, SESSIONS_NAME, base_path / SESSIONS_NAME, is_synced=is_synced)
        try:
            for _ in range(_MAX_TRIES):
                session_id = f"{stamp}-{uuid.uuid4().hex[:8]}"
                path = base_path / SESSIONS_NAME / session_id
                try:
                    disk.make_directory(session_id, sessions)
                    if is_synced:
                        disk.sync(sessions)
                except FileExistsError:
                    continue
                except OSError as error:
                    raise storage_error(error, "make directory", path) from error
                return path
        finally:
            disk.close(sessions)
    raise StorageError(f"no free name for a session in {base_path}", path=str(base_path))


def point_to(disk: Disk, cwd: Path, session_id: str, *, is_synced: bool) -> None:
    """Make a session the active one. Of several at once one wins, and the link is always whole."""
    # Relative to the link, so that it survives a move of the project.
    target = f"{SESSIONS_NAME}/{session_id}"
    with _opened_base(disk, cwd, is_synced=is_synced) as (base, path):
        replace_link(disk, base, ACTIVE_NAME, target, directory=path, is_synced=is_synced)


def active_session(cwd: Path) -> Path | None:
    """Return the directory of the active session; None if there is no link or its session no longer exists."""
    base = Path(cwd).resolve() / STATUS_BASE
    link = base / ACTIVE_NAME
    try:
        target = link.readlink()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SessionDamaged(f"{link} is not a link to a session", hint="remove it") from error
    sessions = base / SESSIONS_NAME
    place = Path(os.path.normpath(base / target))
    if place.parent.resolve() != sessions:
        raise SessionDamaged(f"{link} leads out of {sessions}, to {target}", hint="remove it")
    if not os.path.lexists(place):
        return None
    if place.is_symlink() or not place.is_dir() or place.resolve().parent != sessions:
        raise SessionDamaged(f"{link} leads to {place}, which is not a session directory", hint="remove it")
    return place


@contextmanager
def opened_session(disk: Disk, session_dir: Path) -> Generator[RunDirectory]:
    """A session's directory, held open."""
    try:
        directory = RunDirectory(disk, session_dir)
    except RunNotFound:
        raise SessionNotFound(f"there is no session directory {session_dir}") from None
    try:
        yield directory
    finally:
        directory.close()


@contextmanager
def _opened_base(disk: Disk, cwd: Path, *, is_synced: bool) -> Generator[tuple[int, Path]]:
    """``.founder-mode/status``, made if need be and held open; its descriptor and its path."""
    place = cwd.resolve()
    try:
        descriptor = disk.open_directory(place)
    except OSError as error:
        raise storage_error(error, "open", place) from error
    try:
        for name in Path(STATUS_BASE).parts:
            place /= name
            inner = _enter(disk, descriptor, name, place, is_synced=is_synced)
            disk.close(descriptor)
            descriptor = inner
        yield descriptor, place
    finally:
        disk.close(descriptor)


def _enter(disk: Disk, parent: int, name: str, path: Path, *, is_synced: bool) -> int:
    """Open a directory inside an open one, making it if need be; a link in its place is refused."""
    try:
        try:
            disk.make_directory(name, parent)
            if is_synced:
                disk.sync(parent)
        except FileExistsError:
            pass
        return disk.open_directory(name, parent)
    except OSError as error:
        raise storage_error(error, "make directory", path) from error


# The functions that status-schema.md names, and a few more: each is one line over ``SessionTracker``.

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
    """The number of agents, in total and by state; one without a status counts as queued.

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
    """True if a session has ended: complete, failed or cancelled; raises as ``load_session_status``."""
    status = load_session_status(session_dir).get("status", "running")
    return not SESSION_TRANSITIONS[cast("str", status)]


def _go(session_dir: str | os.PathLike[str], agent_id: str, status: str, **more: Any) -> Session:
    given = {key: value for key, value in more.items() if value is not None}
    return SessionTracker(Path(session_dir)).change(AgentUpdate(agent_id, {"status": status, **given}, is_step=True))
