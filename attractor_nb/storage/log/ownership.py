"""Becoming the owner of a run directory: lock, sweep, fence, log, in the one order that is safe.

The order matters against an earlier owner who is frozen at any point of what it does and goes on later.
First the lock changes hands, which stops an owner who has not opened its log yet; then the log is fenced,
which stops one who has; only then are temporary files swept for good and the log is believed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from attractor_nb.storage.files.atomic import sweep
from attractor_nb.storage.log.event_log import EVENT_LOG_NAME, EventLog
from attractor_nb.storage.log.fence import FencedDisk, fence_log, is_closed_mode, sweep_stages
from attractor_nb.storage.log.lock import LOCK_NAME, OwnerLock

if TYPE_CHECKING:
    from attractor_nb.protocols import Clock
    from attractor_nb.storage.files.disk import Disk, Durability
    from attractor_nb.storage.run_directory import RunDirectory


class Ownership:
    """A run directory that this process owns, from construction to ``release``.

    Attributes:
        disk: What everything but the log writes through: it refuses once the run is lost.
        is_fenced: An earlier owner may still live, and was locked out.
    """

    def __init__(
        self, disk: Disk, root: RunDirectory, durability: Durability, clock: Clock, *, take_over: bool
    ) -> None:
        """Take the lock, and remove what a killed owner left half written."""
        self._bare_disk = disk
        self._root = root
        self._durability: Durability = durability
        self._lock = OwnerLock(disk, root, clock, take_over=take_over, is_synced=durability == "full")
        self.disk = FencedDisk(disk, self._lock.check)
        try:
            sweep(self.disk, root.descriptor)
            self.is_fenced = self._must_be_fenced()
        except BaseException:  # an interrupt, too, must free the lock
            self._lock.release()
            raise

    def _must_be_fenced(self) -> bool:
        """Whether an earlier owner may still write to the log."""
        try:
            facts = os.stat(EVENT_LOG_NAME, dir_fd=self._root.descriptor, follow_symlinks=False)
        except OSError:  # no log, or none that can be read: opening it says so
            return False
        return self._lock.is_contested or is_closed_mode(facts.st_mode)

    def announce(self) -> None:
        """Write down who owns the run."""
        self._lock.announce(self.disk, self._lock.token, is_fenced=not self.is_fenced)

    def open_log(self) -> EventLog:
        """Open the log as the only one who can write to it; from here on the fence is on the log."""
        root = self._root
        if self.is_fenced:
            is_synced = self._durability == "full"
            # The log is closed first and temporary files are swept after it: an earlier owner looks at the log before
            # each rename, so what he can still rename was swept before he looked, or he sees the fence.
            fence_log(self._bare_disk, self.disk, root, EVENT_LOG_NAME, is_synced=is_synced)
            sweep_stages(self.disk, root, except_with=LOCK_NAME)
        log = EventLog(
            self._bare_disk,
            root.descriptor,
            root.path,
            self._durability,
            token=self._lock.token,
            check_lock=self._lock.check,
        )
        self.disk.check = log.check
        if self.is_fenced or log.token != self._lock.token:
            try:
                self._lock.announce(self.disk, log.token, is_fenced=True)
            except BaseException:  # an interrupt, too, must leave no file open
                log.close()
                raise
        return log

    def release(self) -> None:
        """Give ownership up."""
        self._lock.release()
