"""A map as it is seen in a notebook: a bar and a table that follow it, and stay as a picture at its end.

The table is displayed in the cell that starts the map. From then on only its content is replaced, a few
times a second at most, by a thread of its own, so that the kernel is free.
"""

from __future__ import annotations

# IPython's display has no types.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
import contextvars
import sys
import threading
from typing import TYPE_CHECKING, Any, Final, Protocol

from IPython.display import DisplayHandle, display

from attractor_nb.logs import own_logger
from attractor_nb.notebook.pictures import bundle_of

if TYPE_CHECKING:
    from collections.abc import Callable

LOGGER = own_logger(__name__)
INTERVAL_SECONDS: Final = 0.25


class ShownMap(Protocol):
    """What the live table needs of a map; the public ``MapRun`` has it all."""

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        ...

    def when_done(self, function: Callable[[], object], /) -> None:
        """Call a function at its end."""
        ...


class LiveMap:
    """The live table of one map. It does not hold the map: the presenter keeps the table only as long as that lives."""

    def __init__(self, *, interval_seconds: float = INTERVAL_SECONDS) -> None:
        """Make it; ``interval_seconds`` is the shortest time between two pictures."""
        self._interval_seconds = interval_seconds
        self._handles: list[DisplayHandle] = []
        self._is_over = threading.Event()

    @property
    def is_over(self) -> bool:
        """Whether the last picture is in its place."""
        return self._is_over.is_set()

    def show(self, shown: ShownMap) -> None:
        """Display the map in the current cell's output, and follow it from there."""
        handle = display(bundle_of(shown), raw=True, display_id=True)
        assert handle is not None, "a display id was asked for"
        self._handles.append(handle)

    def follow(self, shown: ShownMap) -> None:
        """Begin to follow the map; call it when the map has a job."""
        ended = threading.Event()
        # The context carries the cell's identity; see ``painting``.
        context = contextvars.copy_context()
        if sys.platform == "emscripten":  # no threads: the last picture alone
            shown.when_done(lambda: context.run(self._paint, shown))
            return
        shown.when_done(ended.set)
        target: tuple[Any, ...] = (self._follow, shown, ended)
        threading.Thread(target=context.run, args=target, name="attractor-map", daemon=True).start()

    def wait(self, timeout: float) -> bool:
        """Wait until the last picture is in its place."""
        return self._is_over.wait(timeout)

    def _follow(self, shown: ShownMap, ended: threading.Event) -> None:
        try:
            while not ended.wait(self._interval_seconds):
                self._paint(shown)
            self._paint(shown)
        except Exception:  # a fault of the display is never the map's
            LOGGER.exception("the live table could not follow the map")
        finally:
            self._is_over.set()

    def _paint(self, shown: ShownMap) -> None:
        bundle = bundle_of(shown)
        for handle in tuple(self._handles):
            handle.update(bundle, raw=True)
