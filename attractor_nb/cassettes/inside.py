"""Whether a call is made within a recorded call, whose recording then includes its effects."""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

_IS_INSIDE: ContextVar[bool] = ContextVar("attractor_recorded_call", default=False)


def is_inside() -> bool:
    """Whether this task makes a recorded call."""
    return _IS_INSIDE.get()


@contextlib.contextmanager
def inside() -> Generator[None]:
    """What is called here is part of a recorded call."""
    token = _IS_INSIDE.set(True)
    try:
        yield
    finally:
        _IS_INSIDE.reset(token)
