"""Keeps Python's cycle collector from rescanning what is being read.

Reading a large text, or the log of a long run, makes a hundred thousand small objects and no cycle. The
collector walks through all of them again and again, which doubles the time and makes it grow faster than
the text.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Generator

SMALL_TEXT: Final = 20_000
"""Texts of fewer characters are read before the collector would wake up twice."""


@contextmanager
def gc_paused(text_length: int) -> Generator[None]:
    """Pause the collector while a text of some length, in characters or bytes, is read, if it was running."""
    if text_length < SMALL_TEXT or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
