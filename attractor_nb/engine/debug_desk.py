"""What the debuggers of a run and of its child runs share: breakpoints, wishes, and who stands where.

It has a walk that stands go on, or a change made in its loop; it knows neither why one stands nor what is changed.
"""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING, Final

import msgspec

from attractor_nb.calling import call_in_loop
from attractor_nb.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Callable

    from attractor_nb.context import Context
    from attractor_nb.decisions.breakpoints import Breakpoint
    from attractor_nb.decisions.run_state import RunState
    from attractor_nb.engine.debug_control import Debugging
    from attractor_nb.model.graph import Graph
    from attractor_nb.model.outcome import Outcome
    from attractor_nb.model.stop import Stop

SLICE_SECONDS = 0.25
"""A wait wakes this often: an interrupt must find something that it can break."""
COMMAND_SECONDS: Final = 30.0
"""How long a change may wait for the run's loop: a stage of a plain function cannot hold it, a bug can."""


class Stand(msgspec.Struct):
    """A walk that stands still."""

    stop: Stop  #: Where and why.
    owner: Debugging  #: The controller of its run.
    state: RunState  #: The state of the run, or of the branch.
    context: Context  #: Its context.
    is_fan_out: bool = False  #: The stage that is next is a fan-out.
    replaced: Outcome | None = None  #: At a stop after a stage: the outcome in place of its own; None for that.
    is_changed: bool = False  #: Something was changed here.
    released: asyncio.Event = msgspec.field(default_factory=asyncio.Event)  #: Set when it goes on.
    #: The loop in which it stands.
    loop: asyncio.AbstractEventLoop = msgspec.field(default_factory=asyncio.get_running_loop)

    def release(self) -> None:
        """Let it walk on; from any thread."""
        self.loop.call_soon_threadsafe(self.released.set)


class DebugDesk:
    """The desk at which a run is stopped and let go. Its attributes are changed with its lock held.

    Attributes:
        graph: The graph of the outermost run; it knows those of its children.
        lock: Held while anything here is read or changed, and while a change is recorded.
        breakpoints: By their texts, in the order in which they were set.
        stands: The walks that stand, by the numbers of their stops; the one that stands longest first.
        members: The controllers of the runs that go on: the outermost first.
        is_pausing: Each walk stops at its next stage.
        steps: Walks that stop at their next stage, by the path of their run and their branch; and whether
            the branches of the stage in between stop, too.
        is_over: The outermost run has ended.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.lock = threading.RLock()
        self.breakpoints: dict[str, Breakpoint] = {}
        self.stands: dict[int, Stand] = {}
        self.members: list[Debugging] = []
        self.is_pausing = False
        self.steps: dict[tuple[str, str], bool] = {}
        self.is_over = False
        self._moved = threading.Condition(self.lock)
        self._numbers = 0

    @property
    def stops(self) -> tuple[Stop, ...]:
        """Where the run stands; the stop that stands longest first."""
        with self.lock:
            return tuple(stand.stop for stand in self.stands.values())

    def next_number(self) -> int:
        """A number for a stop."""
        with self.lock:
            self._numbers += 1
            return self._numbers

    def put(self, stand: Stand) -> None:
        """A walk stands."""
        with self.lock:
            self.stands[stand.stop.number] = stand
            self._moved.notify_all()

    def refresh(self) -> None:
        """Have all controllers look what there is to stop for."""
        with self.lock:
            for member in self.members:
                member.refresh()

    def leave(self, member: Debugging) -> None:
        """A run has ended; with the outermost everything is over."""
        with self.lock:
            if member in self.members:
                self.members.remove(member)
            if not member.path:
                self.is_over = True
                self._moved.notify_all()

    def check_is_running(self) -> None:
        """Refuse what can only be done while the run goes on."""
        if self.is_over:
            raise RunError(
                "the run has ended, so nothing of it can be changed",
                hint="go on from an earlier place: run.rewind(node), or run.fork(node)",
            )

    def change(self, stand: Stand, change: Callable[[], None]) -> None:
        """Make a change in the loop in which a walk stands, and wait for it."""

        def make() -> None:
            self._check_stands(stand)
            change()

        call_in_loop(stand.loop, make, COMMAND_SECONDS)

    def _check_stands(self, stand: Stand) -> None:
        if stand.stop.number not in self.stands:
            raise RunError(f"the run is no longer paused at {stand.stop.node}; nothing was changed")

    # -- going on ------------------------------------------------------------------------------------

    def take_step(self, path: str, branch: str, *, is_first: bool) -> bool:
        """Whether somebody stepped to here; the wish is fulfilled with it.

        A step that a branch or a child run did not live to fulfil is fulfilled in the walk around it.

        Args:
            path: The run.
            branch: The branch in it.
            is_first: It is the branch's first stage.
        """
        steps = self.steps
        if not steps:
            return False
        done = [key for key in steps if _is_within(key, path, branch)]
        for key in done:
            del steps[key]
        if done:
            self.refresh()
            return True
        return is_first and any(
            into and owner == path and _is_directly_within(branch, around) for (owner, around), into in steps.items()
        )

    def let_go(self, stand: Stand) -> None:
        """Have a walk go on."""
        with self.lock:
            if self.stands.pop(stand.stop.number, None) is not None:
                stand.release()

    def wait(self, timeout: float | None) -> Stop | None:
        """Block until something stands; None when the run has ended."""
        give_up = None if timeout is None else time.monotonic() + timeout
        with self._moved:
            while not self.stands:
                if self.is_over:
                    return None
                left = SLICE_SECONDS if give_up is None else min(SLICE_SECONDS, give_up - time.monotonic())
                if left <= 0:
                    raise TimeoutError(f"the run did not stop within {timeout} s; it goes on")
                self._moved.wait(left)
            return next(iter(self.stands.values())).stop


def _is_within(key: tuple[str, str], path: str, branch: str) -> bool:
    """Whether a walk is the one of ``path`` and ``branch``, or within it."""
    owner, inner = key
    if owner != path:
        return owner.startswith(path)
    return inner == branch or not branch or inner.startswith(f"{branch}/")


def _is_directly_within(branch: str, around: str) -> bool:
    """Whether a branch is one of a fan-out in ``around``."""
    return branch.rpartition("/")[0].rpartition("/")[0] == around
