"""Work that runs side by side until the caller decides that the rest is not needed: branches, items of a list.

What is done, and when the rest is not needed, the caller says.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Awaitable, Callable, Sequence

ResultT = TypeVar("ResultT")


class SideBySide(Generic[ResultT]):
    """Pieces of work by their number.

    Attributes:
        results: The result of each one that has ended.
        reason: Why the others are not needed, or empty.
    """

    def __init__(
        self, perform: Callable[[int], Awaitable[ResultT]], settled: Callable[[Sequence[ResultT]], str]
    ) -> None:
        """Begin with nothing.

        Args:
            perform: Does a piece of work.
            settled: Given the results so far, in the order in which they came: why the others are not needed, or empty.
        """
        self._perform = perform
        self._settled = settled
        self._ended: list[ResultT] = []
        self.results: dict[int, ResultT] = {}
        self.reason = ""

    def recall(self, number: int, result: ResultT) -> None:
        """Take what was done before."""
        self.results[number] = result
        self._ended.append(result)

    async def work_off(self, waiting: deque[int], count: int) -> None:
        """Do what waits; what was not needed, or was cancelled for it, still waits afterwards.

        Args:
            waiting: The numbers, in the order in which they are begun.
            count: How many are done at the same time.
        """
        self.reason = self._settled(self._ended)
        workers: set[asyncio.Task[None]] = set()

        async def work() -> None:
            while waiting and not self.reason:
                number = waiting.popleft()
                try:
                    result = self.results[number] = await self._perform(number)
                except asyncio.CancelledError:
                    waiting.appendleft(number)
                    raise
                self._ended.append(result)
                if reason := self._settled(self._ended):
                    self.reason = self.reason or reason
                    _cancel_others(workers)

        if not self.reason:
            workers |= {asyncio.ensure_future(work()) for _ in range(min(count, len(waiting)))}
        await _all_done(workers)
        if waiting and not self.reason:
            raise asyncio.CancelledError


def _cancel_others(workers: set[asyncio.Task[None]]) -> None:
    own = asyncio.current_task()
    for worker in workers:
        if worker is not own:
            worker.cancel()


async def _all_done(workers: set[asyncio.Task[None]]) -> None:
    """Wait for all workers; when one fails, or the fan-out itself is cancelled, the others are stopped."""
    if not workers:
        return
    try:
        await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for worker in workers:
            worker.cancel()
        await _settled(workers)
    for worker in workers:
        if not worker.cancelled() and (error := worker.exception()) is not None:
            raise error


async def _settled(workers: set[asyncio.Task[None]]) -> None:
    """Wait until all have ended, even if the waiting caller is cancelled meanwhile: none is left behind."""
    cancelled: asyncio.CancelledError | None = None
    while any(not worker.done() for worker in workers):
        try:
            await asyncio.wait(workers)
        except asyncio.CancelledError as error:
            cancelled = error
            for worker in workers:
                worker.cancel()
    if cancelled is not None:
        raise cancelled
