"""Ctrl-C and Stop where they can be taken: a first one waits, a second one leaves at once.

Python raises KeyboardInterrupt between any two instructions of the main thread: after a lock was taken
and before any caller has it to give it back, after an answer was logged and before the run received it. Inside
``held_interrupts`` the first interrupt is noted in place of that. Its holder ends what cannot be
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
    """The interrupt that a block holds back until its end.

    Attributes:
        is_noted: An interrupt came since it was held.
    """

    def __init__(self, act: Callable[[], object] | None) -> None:
        self.is_noted = False
        self._act = act
        self._at_end: Callable[[], object] | None = None

    def note(self) -> None:
        """Take an interrupt; from a signal's handler too."""
        self.is_noted = True
        if self._act is not None:
            self._act()

    def at_end(self, act: Callable[[], object]) -> None:
        """Have something done at the end of a block that ended well, if an interrupt came by then.

        A look at ``is_noted`` is too early for what the block hands out: the next instruction may be
        interrupted. What is raised here is raised by the block.
        """
        self._at_end = act

    def finish(self) -> None:
        """Do what was to be done at the end, if an interrupt has come; once."""
        if self.is_noted and self._at_end is not None:
            act, self._at_end = self._at_end, None
            act()


_HELD: list[HeldInterrupt] = []
"""Those of the main thread, innermost last; all have noted an interrupt, or none has."""


def is_from_keyboard(error: BaseException) -> bool:
    """True if the user pressed Ctrl-C. Python says so in the main thread; elsewhere what was called raised it."""
    return isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()


@contextlib.contextmanager
def held_interrupts(act: Callable[[], object] | None = None) -> Generator[HeldInterrupt]:
    """Hold back the first interrupt until the end of the block; a second one is raised at once.

    An interrupt that an outer block holds already counts for this one too.

    Args:
        act: Called at the interrupt: lets a wait end, say.
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
        held.finish()
    finally:
        try:
            _let_go(held)
        except KeyboardInterrupt:  # in the last moment: it counts as the others do
            held.is_noted = True
            _let_go(held)
    if held.is_noted:
        held.finish()
        if not _HELD:
            raise KeyboardInterrupt


def _let_go(held: HeldInterrupt) -> None:
    """Hold no longer; what was done of it already is done again without harm."""
    if held in _HELD:
        _HELD.remove(held)
    if not _HELD and signal.getsignal(signal.SIGINT) is _take:
        signal.signal(signal.SIGINT, signal.default_int_handler)


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
