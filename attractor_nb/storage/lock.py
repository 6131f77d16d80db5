"""Who owns a run directory: one process at a time, by a kernel lock (RELIABILITY; ruling 33).

The lock is held on an open file and dies with its owner, however that ends. Beside it lie facts about
the owner for everybody to read. Reading a run needs no lock.
"""

from __future__ import annotations

import fcntl
import os
import socket
from typing import TYPE_CHECKING, Any, cast

from filelock import FileLock, Timeout

from attractor_nb.errors import RunLocked, StorageError
from attractor_nb.storage.atomic import read_plain_file, write_whole
from attractor_nb.storage.disk import FILE_MODE, Disk, storage_error
from attractor_nb.storage.run_directory import RunDirectory, utc_text
from attractor_nb.storage.strict_json import JsonProblem, json_bytes, read_json

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.protocols import Clock

LOCK_NAME = "owner.lock"
OWNER_NAME = "owner.json"
_PATIENCE_SECONDS = 0.15
"""Long enough to outlast a reader's probe of the lock, short enough to answer at once."""
_MAX_OWNER_BYTES = 64 * 1024


class OwnerLock:
    """Ownership of a run directory, from construction to ``release``."""

    def __init__(self, disk: Disk, root: RunDirectory, clock: Clock) -> None:
        """Take ownership.

        Raises:
            RunLocked: Another process, or another run in this one, owns the directory.
            StorageError: The disk refused.
        """
        path = root.path / LOCK_NAME
        # Not by thread: whoever closes a run may be another thread than the one that opened it.
        self._lock = FileLock(path, timeout=_PATIENCE_SECONDS, mode=FILE_MODE, thread_local=False)
        try:
            self._lock.acquire(poll_interval=0.01)
        except Timeout:
            raise _locked(root.path) from None
        except OSError as error:
            raise storage_error(error, "lock", path) from error
        facts = {"pid": os.getpid(), "host": socket.gethostname(), "since": utc_text(clock.time())}
        try:
            data = json_bytes(facts) + b"\n"
            write_whole(disk, root.descriptor, OWNER_NAME, data, directory=root.path, is_synced=False)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Give ownership up."""
        self._lock.release(force=True)


def is_owned(logs_root: Path) -> bool:
    """Whether some process owns a run directory right now."""
    try:
        descriptor = os.open(
            logs_root / LOCK_NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        )
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
    """``pid``, ``host`` and ``since`` of the last owner; empty when unreadable."""
    try:
        data = read_plain_file(logs_root / OWNER_NAME, max_bytes=_MAX_OWNER_BYTES)
        plain = read_json(data or b"{}")
    except (StorageError, JsonProblem):
        return {}
    return cast("dict[str, Any]", plain) if isinstance(plain, dict) else {}


def _locked(path: Path) -> RunLocked:
    owner = read_owner(path)
    who = f"process {owner.get('pid', '?')} on {owner.get('host', '?')} since {owner.get('since', '?')}"
    return RunLocked(
        f"the run in {path} is owned by {who}",
        owner=owner,
        hint="wait for its end or stop that process; reading the run needs no ownership",
    )
