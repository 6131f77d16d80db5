"""One session's ``status.json``: changed under a kernel lock (ruling 33), and followed by who looks on.

The lock dies with its holder, and a change is in the file before the call that made it returns:
whatever is killed, at whichever moment, nothing that was acknowledged is lost and nobody waits for
the dead. Readers need no lock, for the file is only ever replaced as a whole.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from filelock import FileLock, Timeout

from attractor_nb.errors import SessionBusy, SessionDamaged, SessionNotFound
from attractor_nb.model.session import Session, read_session
from attractor_nb.redaction import learn, secrets_among
from attractor_nb.sessions.fold import Change, apply_change, begin_session
from attractor_nb.sessions.session_places import (
    LOCK_NAME,
    STATUS_NAME,
    active_session,
    new_session_directory,
    opened_session,
    point_to,
)
from attractor_nb.storage.files.atomic import read_plain_file, sweep, write_whole
from attractor_nb.storage.files.disk import FILE_MODE, Disk, Durability, check_durability, storage_error
from attractor_nb.storage.files.strict_json import JsonProblem, read_json
from attractor_nb.storage.sealed_file import seal, unseal, wrong_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

    from attractor_nb.storage.run_directory import RunDirectory

MAX_STATUS_BYTES: Final = 32 * 1024 * 1024
PATIENCE_SECONDS: Final = 30.0
"""A change takes milliseconds; who holds the lock so long is stopped, and says so to nobody."""
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
                f"{path} is a directory, as writers make it that lock by mkdir",
                hint="when none of them is left, remove it",
            ) from None
        except OSError as error:
            raise storage_error(error, "lock", path) from error
        try:
            yield
        finally:
            lock.release()


def stored_plain(session_dir: Path) -> dict[str, Any] | None:
    """What ``status.json`` says, checked; None when there is no such file."""
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
        hint='look at the file; without its entry "checksum" it is taken as it stands if it keeps the schema',
    )


def _write(disk: Disk, directory: RunDirectory, session: Session, *, is_synced: bool) -> None:
    data = seal(session.to_plain())
    write_whole(disk, directory.descriptor, STATUS_NAME, data, directory=directory.path, is_synced=is_synced)


def session_to_watch(session_dir: Path | None, cwd: Path) -> Path:
    """The session that is meant: the named one, else the active one of a working directory."""
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
