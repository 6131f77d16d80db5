"""Ctrl-C and Stop where they can be taken: a first one waits, a second one leaves at once.

Python raises KeyboardInterrupt between any two instructions of the main thread: after a lock was taken
and before anybody has it to give it back, after an answer was logged and before the run was told. Inside
``held_interrupts`` the first interrupt is noted in place of that. Whoever holds it ends what cannot be
left half done, or is told at once and stops the run, and then says that it was interrupted.

Only Python's own handler is replaced: a program with one of its own, and asyncio's and IPython's for
coroutines, which cancel a task, keep theirs.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


class HeldInterrupt:
    """Whether somebody wants to leave.

    Attributes:
        is_noted: An interrupt came since it was held.
    """

    def __init__(self, act: Callable[[], object] | None) -> None:
        self.is_noted = False
        self._act = act

    def note(self) -> None:
        """Take an interrupt; from a signal's handler too."""
        self.is_noted = True
        if self._act is not None:
            self._act()


_HELD: list[HeldInterrupt] = []
"""Those of the main thread, innermost last; all have noted an interrupt, or none has."""


@contextlib.contextmanager
def held_interrupts(act: Callable[[], object] | None = None) -> Generator[HeldInterrupt]:
    """Hold back the first interrupt until the end of the block; a second one is raised at once.

    An interrupt that an outer block holds already counts for this one too.

    Args:
        act: Called at the interrupt: lets a wait end, say.

    Raises:
        KeyboardInterrupt: At the end of an outermost block that ended well; of an inner one, its outer
            one decides.
    """
    held = HeldInterrupt(act)
    if threading.current_thread() is not threading.main_thread() or not _is_pythons_own():
        yield held
        return
    signal.signal(signal.SIGINT, _take)
    try:
        is_noted = any(outer.is_noted for outer in _HELD)
        _HELD.append(held)
        if is_noted:
            held.note()
        yield held
    finally:
        if held in _HELD:
            _HELD.remove(held)
        if not _HELD and signal.getsignal(signal.SIGINT) is _take:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    if held.is_noted and not _HELD:
        raise KeyboardInterrupt


def _is_pythons_own() -> bool:
    return signal.getsignal(signal.SIGINT) in {signal.default_int_handler, _take}


def _take(number: int, frame: object) -> None:
    """The handler meanwhile."""
    del number, frame
    waiting = [held for held in _HELD if not held.is_noted]
    if not waiting:
        raise KeyboardInterrupt
    for held in waiting:
        held.note()
