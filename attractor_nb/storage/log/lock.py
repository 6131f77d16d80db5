"""Ownership of a run directory: one process at a time, by a kernel lock (RELIABILITY; ruling 33).

The lock is held on an open file and dies with its owner, however that ends. Beside it lie facts about
the owner for everybody to read. Reading a run needs no lock. A frozen owner keeps its lock; a process that takes
the run over puts another lock file in its place, and the fence of ``event_log.py`` makes the old owner lose.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from typing import TYPE_CHECKING, Any, cast

from attractor_nb.errors import RunLocked, StorageError
from attractor_nb.platforms import O_CLOEXEC, O_NOFOLLOW, O_NONBLOCK
from attractor_nb.storage.files.atomic import read_plain_file, temporary_name, write_whole
from attractor_nb.storage.files.disk import FILE_MODE, Disk, storage_error
from attractor_nb.storage.files.strict_json import JsonProblem, json_bytes, read_json
from attractor_nb.storage.run_directory import RunDirectory, utc_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from filelock import BaseFileLock

    from attractor_nb.protocols import Clock

LOCK_NAME = "owner.lock"
OWNER_NAME = "owner.json"
_PATIENCE_SECONDS = 0.15
"""Long enough to outlast a reader's probe of the lock, short enough to answer at once."""
_WORD_SECONDS = 0.5
"""Time limit for a new owner to record itself: until then the file names the previous one."""
_MAX_OWNER_BYTES = 64 * 1024
_LOCK_FILE_KEY = "lock_file"


class OwnerLock:
    """Ownership of a run directory, from construction to ``release``.

    Attributes:
        token: Number of this ownership, the fencing token: one more than that of the last owner who left
            word. The log may know of a higher one.
        is_contested: The lock file is not the one that the last owner locked: that owner may still live.
    """

    def __init__(
        self, disk: Disk, root: RunDirectory, clock: Clock, *, take_over: bool = False, is_synced: bool = True
    ) -> None:
        """Take the lock.

        Args:
            disk: Where.
            root: The run directory.
            clock: For the time since when.
            take_over: Take it from an owner who has it and is frozen, or was on another machine.
            is_synced: A lock file that is made here outlives a power loss.
        """
        self._root = root
        self._since = utc_text(clock.time())
        self._lock = _new_lock(root.path / LOCK_NAME)
        self._file = 0
        try:
            self._make_file(disk, is_synced=is_synced)
            self._acquire(disk, take_over=take_over)
        except OSError as error:
            self.release()
            raise storage_error(error, "lock", root.path / LOCK_NAME) from error
        before = _read_facts(root.path)
        self.token = _token_of(before) + 1
        self.is_contested = before.get(_LOCK_FILE_KEY) != self._file

    def _make_file(self, disk: Disk, *, is_synced: bool) -> None:
        """Make the lock file where there is none. None of our files outlives it, so it tells what is ours."""
        with contextlib.suppress(FileExistsError):
            disk.close(disk.create(LOCK_NAME, self._root.descriptor))
            if is_synced:
                disk.sync(self._root.descriptor)

    def _acquire(self, disk: Disk, *, take_over: bool) -> None:
        from filelock import Timeout  # noqa: PLC0415 - who only reads takes no lock

        # Made first, and looked at before and after: the lock is then known to be on that very file.
        path = self._root.path / LOCK_NAME
        os.close(os.open(path, os.O_RDONLY | os.O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, FILE_MODE))
        # Two might hold locks on two files that had this name one after the other. The number of the file is read
        # before the lock is taken and once more after it: the lock is on what the name means only if both are the
        # same.
        self._file = self._present_file()
        try:
            self._lock.acquire(poll_interval=0.01)
        except Timeout:
            if not take_over:
                raise _locked(self._root.path) from None
            self._exchange(disk, self._file)
        if self._present_file() != self._file:
            self.release()
            raise _locked(self._root.path)

    def _exchange(self, disk: Disk, held: int) -> None:
        """Put a separate lock file, locked already, in the place of the one that is held."""
        from filelock import Timeout  # noqa: PLC0415 - as in `_acquire`

        # The new file is locked before it gets the name, so it is never found free. Of two who take over at once
        # both may reach the rename; the later one wins it, and the earlier one loses at its next look, if not at
        # the one with which `_acquire` ends.
        name = temporary_name()
        mine = _new_lock(self._root.path / name)
        try:
            mine.acquire(blocking=False)
        except Timeout:  # the process that took the run over meanwhile has swept the file away
            raise _locked(self._root.path) from None
        self._lock = mine
        self._file = os.stat(name, dir_fd=self._root.descriptor, follow_symlinks=False).st_ino
        if self._present_file() != held:  # another process was faster, and is no frozen owner
            disk.remove(name, self._root.descriptor)
            self.release()
            raise _locked(self._root.path)
        try:
            disk.rename(name, LOCK_NAME, self._root.descriptor)
        except FileNotFoundError:  # a process that took the run over meanwhile has swept it away
            self.release()
            raise _locked(self._root.path) from None

    def _present_file(self) -> int:
        try:
            return os.stat(LOCK_NAME, dir_fd=self._root.descriptor, follow_symlinks=False).st_ino
        except FileNotFoundError:
            return 0

    def check(self) -> None:
        """Check that the lock is still the lock."""
        if self._present_file() != self._file:
            raise taken_over(self._root.path, self.token)

    def announce(self, disk: Disk, token: int, *, is_fenced: bool) -> None:
        """Write down who owns the run now.

        Args:
            disk: Where.
            token: Number of this ownership.
            is_fenced: No earlier owner can write any more. Until then the lock file is not named: the next
                process, if this one dies here, must contest it again.
        """
        self.token = token
        facts = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": self._since,
            "token": token,
            _LOCK_FILE_KEY: self._file if is_fenced else 0,
        }
        data = json_bytes(facts) + b"\n"
        root = self._root
        write_whole(disk, root.descriptor, OWNER_NAME, data, directory=root.path, is_synced=False)

    def release(self) -> None:
        """Give ownership up."""
        self._lock.release(force=True)


def _new_lock(path: Path) -> BaseFileLock:
    from filelock import FileLock  # noqa: PLC0415 - as above

    # Not by thread: a run may be closed by another thread than the one that opened it.
    return FileLock(path, timeout=_PATIENCE_SECONDS, mode=FILE_MODE, thread_local=False)


def is_owned(logs_root: Path) -> bool:
    """True if some process owns a run directory right now."""
    import fcntl  # noqa: PLC0415 - Windows has none

    try:
        descriptor = os.open(logs_root / LOCK_NAME, os.O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False
    finally:
        os.close(descriptor)
    return False


def read_owner(logs_root: Path) -> dict[str, Any]:
    """``pid``, ``host``, ``since`` and ``token`` of the last owner; empty when unreadable."""
    facts = _read_facts(logs_root)
    facts.pop(_LOCK_FILE_KEY, None)
    return facts


def _read_facts(logs_root: Path) -> dict[str, Any]:
    try:
        data = read_plain_file(logs_root / OWNER_NAME, max_bytes=_MAX_OWNER_BYTES)
        plain = read_json(data or b"{}")
    except (StorageError, JsonProblem):
        return {}
    return cast("dict[str, Any]", plain) if isinstance(plain, dict) else {}


def _token_of(facts: dict[str, Any]) -> int:
    token = facts.get("token")
    return token if type(token) is int and token > 0 else 0


def _present_owner(path: Path) -> dict[str, Any]:
    """Facts about the owner of the lock; none when the last recorded owner is gone."""
    give_up = time.monotonic() + _WORD_SECONDS
    while _is_gone(owner := read_owner(path)):
        if time.monotonic() >= give_up:
            return {}
        time.sleep(0.01)
    return owner


def _is_gone(owner: dict[str, Any]) -> bool:
    """True if a process of this machine has ended."""
    pid = owner.get("pid")
    if type(pid) is not int or pid <= 0 or owner.get("host") != socket.gethostname():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:  # it has another owner
        return False
    return False


def process_of(owner: Mapping[str, Any]) -> str:
    """An owner in words: its process and machine."""
    return f"process {owner.get('pid', '?')} on {owner.get('host', '?')}"


def _who(owner: dict[str, Any]) -> str:
    if not owner:
        return "another process"
    return f"{process_of(owner)} since {owner.get('since', '?')}"


def _locked(path: Path) -> RunLocked:
    owner = _present_owner(path)
    return RunLocked(
        f"the run in {path} is owned by {_who(owner)}",
        owner=owner,
        hint="wait for its end or stop that process; reading the run needs no ownership; take_over=True, or "
        "`attractor-nb resume DIR --take-over`, takes the run from an owner that is frozen or gone",
    )


def taken_over(path: Path, token: int) -> RunLocked:
    """Error of a process that lost the run to another owner; names that owner if it is known."""
    owner = read_owner(path)
    is_known = _token_of(owner) > token
    by = f"{_who(owner)} (owner {owner['token']})" if is_known else "another process"
    return RunLocked(
        f"the run in {path} was taken over by {by}; this process was owner {token} and has lost it",
        owner=owner if is_known else {},
        hint="this process can no longer change the run; look at it with Run.load(…)",
    )
