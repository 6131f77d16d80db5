"""What is particular to Dask: how its scheduler is listened to, and whether it is still there.

It is reached through the client that its executor has; the library itself is never imported here. Other
executors have no scheduler: a pool says by itself that it broke.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor, Future

ASK_SECONDS: Final = 5.0
"""How long the scheduler may take to say who its workers are."""
HELD_SECONDS: Final = 0.1
"""How long a task that has ended is held at most."""
NO_WORKERS: Final = "the cluster has no workers"


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
        executor: The executor.
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
        client.subscribe_topic(self.topic, self._hear)

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
            return f"its scheduler does not answer: {error or type(error).__name__}"
        return "" if facts.get("workers") or facts.get("n_workers") else NO_WORKERS

    def submit(
        self, executor: Executor, function: Callable[..., Any], *arguments: Any, key: str
    ) -> Future[Any]:
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

    def _hear(self, event: tuple[float, Any]) -> None:
        """Take an event; called by a thread of the client's."""
        with contextlib.suppress(RuntimeError):  # our loop has ended
            self._loop.call_soon_threadsafe(self._take, event[1])
