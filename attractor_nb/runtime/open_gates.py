"""The gates of all runs that are under way in this process, for whoever shows or answers them together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from attractor_nb.logs import own_logger

if TYPE_CHECKING:
    from attractor_nb.engine.gate import Gate
    from attractor_nb.engine.gates import Gates
    from attractor_nb.model.events import Event
    from attractor_nb.runtime.execution import Execution

LOGGER = own_logger(__name__)
ENDED: Final = "the run has ended; where it did not come to its end, run.resume() goes on with it"
Listener = Callable[["Execution", "Gate | None", "Event | None"], None]
"""Told of a run, one of its gates, and what became of it (``Gates.on_change``); no gate: the run ended."""

_lock = threading.Lock()
_under_way: dict[int, Execution] = {}
_listeners: list[Listener] = []


@contextmanager
def gates_open(run: Execution, gates: Gates) -> Generator[None]:
    """While this lasts the gates of the run are among those of the process; then they are closed."""
    with _lock:
        _under_way[id(run)] = run
    try:
        yield
    finally:
        gates.close(ENDED)
        with _lock:
            _under_way.pop(id(run), None)
        tell(run, None, None)


def runs_under_way() -> tuple[Execution, ...]:
    """The runs whose engine works here, oldest first."""
    with _lock:
        return tuple(_under_way.values())


def tell(run: Execution, gate: Gate | None, event: Event | None) -> None:
    """Tell all listeners of a change, in the engine's thread; a fault of theirs is never the run's."""
    for listener in tuple(_listeners):
        try:
            listener(run, gate, event)
        except Exception:  # a fault of who shows gates is never the run's
            LOGGER.exception("somebody who shows gates could not follow one")


def listen(listener: Listener) -> Callable[[], None]:
    """Hear of every gate that opens or is over, from now on; returns how to stop that.

    The listener is called in the thread of the engine, or of whoever answers, and must not wait.
    """
    _listeners.append(listener)

    def stop() -> None:
        if listener in _listeners:
            _listeners.remove(listener)

    return stop
