"""Interprets futures that end without a report: the worker was lost, or the task cannot be executed."""

from __future__ import annotations

import asyncio
from concurrent.futures import BrokenExecutor, CancelledError
from typing import Final

from attractor_nb.errors import AttractorError, TerminalError, WorkerLost

LOST_NAMES: Final = frozenset(
    {"KilledWorker", "TerminatedWorkerError", "BrokenProcessPool", "EngineError", "CommClosedError"}
)
"""Exceptions of executors that say so, by name: their libraries need not be installed."""
HOW_TO_RENEW: Final = (
    "a broken pool stays broken: give a function that makes one, such as "
    "executor=lambda: ProcessPoolExecutor(4), and it is called again"
)


def error_of(error: BaseException, subject: str) -> AttractorError:
    """Return the package's error for an exception of a future.

    >>> type(error_of(BrokenExecutor("a process ended"), "stage build")).__name__
    'WorkerLost'
    """
    told = _told(error)
    if is_let_go(error):
        told = "the executor dropped it: the connection to its cluster was lost, or it was cancelled"
    elif not isinstance(error, BrokenExecutor) and not _names(error) & LOST_NAMES:
        return TerminalError(
            f"{subject} cannot be done on a worker: {told}",
            hint="a worker needs attractor_nb in the version of the coordinator, and what a backend imports",
        )
    return WorkerLost(f"the worker of {subject} was lost: {told}")


def is_let_go(error: BaseException) -> bool:
    """Whether the executor dropped a task without being asked to.

    A Dask client whose workers have just gone raises the reason, a text, as if it were an exception.
    """
    if isinstance(error, AttributeError):
        return error.name == "with_traceback"
    return isinstance(error, asyncio.CancelledError | CancelledError)


def refusal_of(error: BaseException) -> AttractorError:
    """The error of ours for what ``submit`` raised: nothing was begun.

    >>> refusal_of(RuntimeError("cannot schedule new futures after shutdown")).message
    'the executor accepts no task:  cannot schedule new futures after shutdown'
    """
    hint = HOW_TO_RENEW if isinstance(error, BrokenExecutor) else "pass an open executor, or none"
    return TerminalError(f"the executor accepts no task:  {_told(error)}", hint=hint)


def _told(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    first = text.splitlines()[0].rstrip()
    return first if isinstance(error, RuntimeError | AttractorError) else f"{type(error).__name__}: {first}"


def _names(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}
