"""The faults that a seed has in store, and the disks that carry them out."""

from __future__ import annotations

import errno
import random
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attractor_nb.storage.files.disk import Disk
from tests.disks.faulty_disk import FOR_EVER, FaultyDisk
from tests.disks.power_loss import PowerLoss, write_image
from tests.disks.recorded_disk import RecordedDisk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CRASH, POWER, DISK, CANCEL, PAUSE, REWIND, BOUND = (
    "crash",
    "power loss",
    "I/O error",
    "cancel",
    "pause",
    "rewind",
    "raised bound",
)
KINDS = (CRASH, POWER, DISK, CANCEL, PAUSE, REWIND)
_ODDS = (30, 14, 16, 16, 10, 14)
_ERRORS = (errno.EIO, errno.ENOSPC, errno.EACCES, errno.EROFS)
OPERATIONS_PER_STAGE = 7
TURNS_PER_STAGE = 5
IMAGES = 12
"""Of so many images of a power loss one is taken: the plain ones and as many by chance."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault, which one life of a run has to bear.

    Attributes:
        kind: One of ``KINDS``.
        when: The operation, turn or stage at which it strikes, from 1.
        lasts: For an I/O error: how many operations fail.
        error: Its number.
        share: A number in [0, 1) that chooses among what is only known then.
    """

    kind: str
    when: int
    lasts: int = 1
    error: int = errno.EIO
    share: float = 0.0

    def __str__(self) -> str:
        return f"{self.kind} at {self.when}"


@dataclass(frozen=True, slots=True)
class Trouble:
    """The troubles of a seed.

    Attributes:
        faults: One after the other, one a life.
        tight: A bound that is too tight at first, and raised when it is reached.
        are_clocks_jumping: Wall clocks jump.
        on_interrupted: The caller's word on ambiguous stages, or None.
    """

    faults: tuple[Fault, ...]
    tight: dict[str, int]
    are_clocks_jumping: bool
    on_interrupted: str | None


def draw_trouble(seed: int, stages: int, *, most: int) -> Trouble:
    """The trouble of a seed.

    Args:
        seed: The seed.
        stages: How many stages an untroubled run has.
        most: At most so many faults.
    """
    chance = random.Random(f"trouble {seed}")
    faults: list[Fault] = []
    for _ in range(chance.choices((0, 1, 2, 3), (5, 50, 30, 15))[0]):
        kind = chance.choices(KINDS, _ODDS)[0]
        reach = {CANCEL: TURNS_PER_STAGE, PAUSE: 1}.get(kind, OPERATIONS_PER_STAGE)
        most_when = reach * (stages + (2 if kind != PAUSE else 0))
        when = chance.randint(1, max(1, most_when))
        lasts = chance.choice((1, 1, 3, FOR_EVER)) if kind == DISK else FOR_EVER
        faults.append(Fault(kind, when, lasts, chance.choice(_ERRORS), chance.random()))
    tight: dict[str, int] = {}
    if chance.random() < 0.25:
        name = chance.choice(("max_steps", "max_node_visits", "max_restarts", "max_goal_gate_redirects"))
        least = 1 if name in {"max_steps", "max_node_visits"} else 0
        tight[name] = chance.randint(least, {"max_steps": max(1, stages)}.get(name, 2))
    jumps = chance.random() < 0.3
    wanted = chance.choice((None, None, "rerun"))
    return Trouble(tuple(faults[:most]), tight, jumps, wanted)


_CHANGES = (
    "make_directory",
    "create",
    "open_update",
    "write",
    "write_at",
    "sync",
    "sync_data",
    "truncate",
    "rename",
    "link",
    "remove",
    "make_link",
    "set_mode",
)


class PowerDisk(RecordedDisk):
    """A disk that keeps a record until the power goes; from then on it refuses."""

    def __init__(self, root: Path, when: int) -> None:
        """Begin to record; the power goes after ``when`` operations."""
        super().__init__(root)
        self._when = when
        for name in _CHANGES:
            setattr(self, name, self._until_lost(getattr(self, name)))

    def _until_lost(self, change: Callable[..., Any]) -> Callable[..., Any]:
        def changed(*given: Any, **options: Any) -> Any:
            if len(self.operations) >= self._when:
                raise OSError(errno.EIO, "the power is gone")
            return change(*given, **options)

        return changed


def disk_of(fault: Fault | None, root: Path) -> Disk:
    """The disk of a life: the real one, on which the fault will strike.

    A process that is dead and one for which every operation fails from some point on leave the same behind.
    """
    if fault is None or fault.kind in {CANCEL, PAUSE, REWIND}:
        return Disk()
    if fault.kind == POWER:
        return PowerDisk(root, fault.when)
    return FaultyDisk(fail_at=fault.when, error=fault.error, lasts=fault.lasts)


def has_struck(disk: Disk, fault: Fault | None) -> bool:
    """True if a fault of the disk has struck."""
    is_counted = isinstance(disk, FaultyDisk | PowerDisk)
    return fault is not None and is_counted and len(disk.operations) >= fault.when


def lose_power(disk: PowerDisk, fault: Fault, seed: int) -> None:
    """Leave on the real disk what a power loss may leave."""
    loss = PowerLoss(disk)
    while loss.advance():
        pass
    images = list(loss.images(IMAGES, seed))
    for path in disk.root.iterdir():
        shutil.rmtree(path)
    write_image(images[int(fault.share * len(images))], disk.root)
