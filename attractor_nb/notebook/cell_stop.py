"""Stop ends what its cell began: also a run that the cell had started and not yet waited for.

A run of an earlier cell goes on: that cell has ended, and it is another one that was stopped. Its own
``run.cancel()`` ends it.
"""

from __future__ import annotations

import sys

# IPython's events have no types.
# pyright: reportUnknownMemberType=false
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from IPython.core.interactiveshell import InteractiveShell

    from attractor_nb.runtime.handles.hosts import HostedTask

_HOSTS: Final = "attractor_nb.runtime.handles.hosts"
REASON: Final = "the cell that had started it was stopped; run.resume() continues it"


def stop_runs_with_their_cell(shell: InteractiveShell) -> Callable[[], None]:
    """Watch the cells of a shell; returns how to end that."""
    earlier: dict[int, frozenset[HostedTask]] = {}  # by thread: a subshell has cells of its own

    def cell_begins(_: Any = None) -> None:
        earlier[get_ident()] = _live_jobs()

    def cell_ended(result: Any = None) -> None:
        started = _live_jobs() - earlier.pop(get_ident(), frozenset())
        if started and _was_stopped(result):
            from attractor_nb.runtime.handles.hosts import stop_jobs  # noqa: PLC0415 - %load_ext stays light

            stop_jobs(started, REASON)

    shell.events.register("pre_run_cell", cell_begins)
    shell.events.register("post_run_cell", cell_ended)

    def take_out() -> None:
        shell.events.unregister("pre_run_cell", cell_begins)
        shell.events.unregister("post_run_cell", cell_ended)

    return take_out


def _live_jobs() -> frozenset[HostedTask]:
    """What runs now; nothing, as long as nobody has imported what runs it."""
    hosts: Any = sys.modules.get(_HOSTS)
    return hosts.live_jobs() if hosts else frozenset()


def _was_stopped(result: Any) -> bool:
    """Whether a cell ended by Stop; one that was cancelled as a task has no result at all."""
    import asyncio  # noqa: PLC0415 - %load_ext stays light; whoever has started a run has imported it

    return result is None or isinstance(result.error_in_exec, KeyboardInterrupt | asyncio.CancelledError)
