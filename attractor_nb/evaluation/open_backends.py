"""Backends that scorers call: each is opened before its first call and closed at the end of the evaluation."""

from __future__ import annotations

import asyncio

from attractor_nb.engine.runner import closed
from attractor_nb.logs import own_logger
from attractor_nb.protocols import BackendLifetime

LOGGER = own_logger(__name__)


class OpenBackends:
    """The open backends of one evaluation. All calls come from one event loop."""

    def __init__(self) -> None:
        self._keepers: dict[int, _Keeper] = {}

    async def open(self, backend: object) -> None:
        """Open a backend unless it is open. Where it does not open, every caller gets its error.

        Args:
            backend: The backend; one without a lifetime is always open.
        """
        if not isinstance(backend, BackendLifetime):
            return
        keeper = self._keepers.get(id(backend))
        if keeper is None:
            keeper = self._keepers[id(backend)] = _Keeper(backend)
        await asyncio.shield(keeper.opening)

    async def close(self) -> None:
        """Close all of them; an error of one is logged, because the scores are made."""
        keepers, self._keepers = self._keepers, {}
        if not keepers:
            return
        try:
            await asyncio.wait([keeper.end() for keeper in keepers.values()])
        except asyncio.CancelledError:  # stopped twice: leave at once
            LOGGER.warning("backends of scorers were not waited for while they closed")


class _Keeper:
    """Opens a backend and closes it in the same task, as scopes of some libraries require."""

    def __init__(self, backend: BackendLifetime) -> None:
        self._backend = backend  # kept, so that no other object has its id
        self.opening: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._end = asyncio.Event()
        self._task = asyncio.create_task(self._keep())

    async def _keep(self) -> None:
        try:
            await self._backend.open()
            self.opening.set_result(None)
            await self._end.wait()
        except Exception as error:  # noqa: BLE001 - whatever a backend raises: it is the error of those who call it
            self.opening.set_exception(error)
            self.opening.exception()  # no caller may be left to ask for it
        finally:
            self.opening.cancel()  # without effect once it is set
            await closed(self._backend)

    def end(self) -> asyncio.Task[None]:
        """Let the backend be closed; returns the task that does so."""
        self._end.set()
        if not self.opening.done():
            self._task.cancel()
        return self._task
