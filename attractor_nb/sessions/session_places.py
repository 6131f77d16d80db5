"""Where sessions lie: ``.founder-mode/status``, its session directories and the link to the active one.

Every entry below the working directory is reached through open directories, so that no link that
somebody planted leads a writer elsewhere. The one link that is read, ``active-session``, must lead to
a session of the same directory.
"""

from __future__ import annotations

import os
import time
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import RunNotFound, SessionDamaged, SessionNotFound, StorageError
from attractor_nb.sessions.fold import STATUS_BASE
from attractor_nb.storage.files.atomic import replace_link
from attractor_nb.storage.files.disk import Disk, storage_error
from attractor_nb.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    from collections.abc import Generator

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
