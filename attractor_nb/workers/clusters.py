"""What is particular to Dask: how its scheduler is heard, and what a future without a report means.

It is reached through the client that its executor has; the library itself is never imported here. Other
executors have no scheduler: a pool says by itself that it broke.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from concurrent.futures import BrokenExecutor, CancelledError
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.errors import AttractorError, TerminalError, WorkerLost

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor, Future

ASK_SECONDS: Final = 5.0
"""How long the scheduler may take to say who its workers are."""
HELD_SECONDS: Final = 0.1
"""How long a task that has ended is held at most."""
NO_WORKERS: Final = "the cluster has no workers"

LOST_NAMES: Final = frozenset(
    {"KilledWorker", "TerminatedWorkerError", "BrokenProcessPool", "EngineError", "CommClosedError"}
)
"""Exceptions of executors that say so, by name: their libraries need not be installed."""
HOW_TO_RENEW: Final = (
    "a broken pool stays broken: give a function that makes one, such as "
    "executor=lambda: ProcessPoolExecutor(4), and it is called again"
)


class Cluster:
    """An executor that has no scheduler."""

    topic = ""
    """Under which workers report, or empty."""
    known_problem = ""
    """What was wrong when it was last looked."""

    async def problem(self) -> str:
        """Why no task can end now, or empty."""
        return ""

    def submit(
        self,
        executor: Executor,
        function: Callable[..., Any],
        *arguments: Any,
        key: str,  # noqa: ARG002 - the interface of both
    ) -> Future[Any]:
        """Give the executor a task of that name. Blocks; called in any thread."""
        return executor.submit(function, *arguments)

    def ended(self, future: Future[Any]) -> None:
        """A task has ended, and its result is here."""

    def forget(self, key: str) -> None:
        """A task that is begun once has ended."""

    def leave(self) -> None:
        """Listen no more."""


def cluster_of(executor: Executor, take: Callable[[Any], None]) -> Cluster:
    """Return the cluster behind an executor.

    Args:
        take: Given what workers say while they work, in the loop that runs now.
    """
    client = dask_client_of(executor)
    return Cluster() if client is None else DaskCluster(client, take)


def dask_client_of(executor: Executor) -> Any:
    """The client behind an executor of Dask; None for others."""
    is_dask = any(kind.__module__.startswith("distributed.") for kind in type(executor).__mro__)
    return getattr(executor, "_client", None) if is_dask else None


class DaskCluster(Cluster):
    """A cluster of Dask."""

    def __init__(self, client: Any, take: Callable[[Any], None]) -> None:
        self._client = client
        self._loop = asyncio.get_running_loop()
        self._take = take
        self._ended: list[Future[Any]] = []
        self.topic = f"attractor-{secrets.token_hex(8)}"
        client.subscribe_topic(self.topic, self._receive)

    async def problem(self) -> str:
        """Asks the scheduler who its workers are."""
        self.known_problem = await self._look()
        return self.known_problem

    async def _look(self) -> str:
        if self._client.status != "running":
            return f"the connection to its scheduler is {self._client.status}"
        asked = asyncio.run_coroutine_threadsafe(
            self._client.scheduler.identity(n_workers=1), self._client.loop.asyncio_loop
        )
        try:
            facts = await asyncio.wait_for(asyncio.wrap_future(asked), ASK_SECONDS)
        except Exception as error:  # noqa: BLE001 - whatever the network says
            return f"its scheduler does not answer: {str(error) or type(error).__name__}"
        return "" if facts.get("workers") or facts.get("n_workers") else NO_WORKERS

    def submit(self, executor: Executor, function: Callable[..., Any], *arguments: Any, key: str) -> Future[Any]:
        """With a key of its own, and no retries: whether a stage is tried again is decided here."""
        name: dict[str, Any] = {"key": f"attractor-stage-{key}" if key else self.topic, "retries": 0}
        return executor.submit(function, *arguments, **name, pure=False)

    def ended(self, future: Future[Any]) -> None:
        """Hold it for a moment, and have the scheduler let go of all that ended meanwhile at once.

        Dask sends what a client says in messages 10 ms apart: if each task that has ended took one of its
        own, the next task would wait behind it. Not for longer: what is held is done again by Dask, in vain,
        should its worker be lost.
        """
        if not self._ended:
            self._loop.call_later(HELD_SECONDS, self._ended.clear)
        self._ended.append(future)

    def forget(self, key: str) -> None:
        """Let the scheduler forget the claim that a worker made."""
        with contextlib.suppress(Exception):
            self._client._send_to_scheduler(  # noqa: SLF001 - Queue.close() does the same, after a round trip
                {"op": "queue_release", "name": f"{self.topic}-{key}"}
            )

    def leave(self) -> None:
        """Listen no more."""
        self._ended.clear()
        with contextlib.suppress(Exception):
            self._client.unsubscribe_topic(self.topic)

    def _receive(self, event: tuple[float, Any]) -> None:
        """Take an event; called by a thread of the client's."""
        with contextlib.suppress(RuntimeError):  # our loop has ended
            self._loop.call_soon_threadsafe(self._take, event[1])


def error_of(error: BaseException, subject: str) -> AttractorError:
    """Return the package's error for an exception of a future.

    >>> type(error_of(BrokenExecutor("a process ended"), "stage build")).__name__
    'WorkerLost'
    """
    reason = _reason_of(error)
    if is_let_go(error):
        reason = "the executor dropped it: the connection to its cluster was lost, or it was cancelled"
    elif not isinstance(error, BrokenExecutor) and not _names(error) & LOST_NAMES:
        return TerminalError(
            f"{subject} cannot be done on a worker: {reason}",
            hint="a worker needs attractor_nb in the version of the coordinator, and what a backend imports",
        )
    return WorkerLost(f"the worker of {subject} was lost: {reason}")


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
    return TerminalError(f"the executor accepts no task:  {_reason_of(error)}", hint=hint)


def _reason_of(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    first = text.splitlines()[0].rstrip()
    return first if isinstance(error, RuntimeError | AttractorError) else f"{type(error).__name__}: {first}"


def _names(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}
