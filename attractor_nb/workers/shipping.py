"""Ships tasks to an executor and takes their reports: the coordinator's half.

A task is submitted once for each attempt. Its end is a report, a lost worker (``WorkerLost``: the
stage's ``on_interrupted`` decides), or the reason why it cannot be done. Nothing here waits for an
executor that is gone for longer than ``wait_seconds``.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import secrets
import uuid
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.errors import AttractorError, OptionError, RetryableError, TerminalError, WorkerLost
from attractor_nb.maybe_async import call
from attractor_nb.redaction import redacted_value
from attractor_nb.stage import current_stage
from attractor_nb.workers.lifelines import Listening, TaskClaims, TaskListener, take_in
from attractor_nb.workers.perform import perform, probe
from attractor_nb.workers.task import FORM, ROW, SCOPE_NAMES, StageReport, StageTask

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    ExecutorSpec = Executor | Callable[[], Executor]


LOOK_SECONDS: Final = 1.0
"""Interval at which the executor is checked while it has a task."""
CUT_GRACE_SECONDS: Final = 1.0
"""Time limit for a worker to stop."""


class Shipping:
    """The way to the workers of a run, or of all rows of a map. It is opened before, and closed after it."""

    subject = "the executor"

    def __init__(self, executor: ExecutorSpec, *, wait_seconds: float, once: Mapping[str, bool]) -> None:
        """Take the way.

        Args:
            executor: Where to, or a function that makes it, called again when it broke.
            wait_seconds: How long an executor without an answer or without workers is waited for.
            once: By node: whether its work must not happen twice unasked.
        """
        self._spec = executor
        self._executor: Executor | None = None
        self._cluster = Cluster()
        self._wait_seconds = wait_seconds
        self._once = once
        self._listening = Listening()
        self._making = asyncio.Lock()

    async def open(self) -> None:
        """Check that a worker answers."""
        await self._listening.open()
        future, _ = await self._submit(probe)
        waiting = asyncio.wrap_future(future)
        done, _ = await asyncio.wait({waiting}, timeout=self._wait_seconds)
        if not done:
            future.cancel()
            raise self._unanswered()
        try:
            answer = waiting.result()
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - what executors raise is theirs
            if is_task_cancelled(error):
                raise self._unanswered() from None
            raise TerminalError(error_of(error, "the probe").message) from None
        if answer["form"] != FORM:
            raise TerminalError(
                f"worker {answer['worker']} reads tasks of form {answer['form']}, not {FORM}",
                hint="install the same version of attractor_nb on workers and here",
            )

    def _unanswered(self) -> RetryableError:
        return RetryableError(
            f"no worker answered within {self._wait_seconds:g} s",
            hint="start the scheduler and workers, or give them more time: worker_wait",
        )

    async def close(self) -> None:
        """Cut off what is left, and let go of the executor, which stays its owner's."""
        await self._listening.close()
        self._cluster.leave()
        self._executor = None

    async def ship(
        self, kind: str, work: Mapping[str, Any], *, plug: bytes = b"", timeout_seconds: float | None = None
    ) -> StageReport:
        """Have the current stage's work done by a worker, and bring back its files and output.

        Args:
            kind: Of ``task``.
            work: What is to be done, as plain values.
            plug: The pickled backend or handler.
            timeout_seconds: After which the worker ends it.
        """
        scope = current_stage()
        task = self._task(
            kind,
            work,
            scope={name: getattr(scope, name) for name in SCOPE_NAMES},
            idempotency_key=scope.idempotency_key,
            timeout_seconds=timeout_seconds,
            is_once=self._once.get(scope.node_id, True),
            conversation=None if scope.conversation is None else scope.conversation.read(),
        )
        listener = TaskListener(
            on_output=lambda channel, text: scope.stream(text, channel), on_worker=TaskClaims(scope)
        )
        report = await self._carried(_Payload(f"stage {scope.node_id}", perform, task, plug), listener)
        take_in(report, scope, listener)
        return report

    async def ship_row(
        self,
        row: int,
        function: Callable[..., Mapping[str, Any]],
        work: Mapping[str, Any],
        *,
        plug: bytes,
        is_once: bool,
    ) -> StageReport:
        """Have a whole row of a map run by a worker.

        Args:
            row: Its number.
            function: What the worker calls with the task and the plug.
            work: What is to be done, as plain values.
            plug: The pickled backend and handlers.
            is_once: It may have an effect that must not happen twice unasked.
        """
        task = self._task(ROW, work, is_once=is_once)
        listener = TaskListener(on_output=lambda _channel, _text: None, on_worker=lambda _worker: None)
        return await self._carried(_Payload(f"row {row}", function, task, plug), listener)

    def _task(self, kind: str, work: Mapping[str, Any], **facts: Any) -> StageTask:
        return StageTask(
            id=uuid.uuid4().hex,
            form=FORM,
            kind=kind,
            work=work,
            lifeline=self._listening.path,
            topic=self._cluster.topic,
            **facts,
        )

    async def _carried(self, payload: _Payload, listener: TaskListener) -> StageReport:
        task = payload.task
        _refuse_secrets(payload)
        await self._await_workers(payload.subject)
        self._listening.add(task.id, listener)
        try:
            return await self._reported(payload, listener)
        finally:
            self._listening.remove(task.id)
            if task.is_once:
                self._cluster.forget(task.id)

    async def _reported(self, payload: _Payload, listener: TaskListener) -> StageReport:
        subject, task = payload.subject, payload.task
        future, executor = await self._submit(payload.function, task.to_plain(), payload.plug, key=task.id)
        waiting = asyncio.wrap_future(future)
        try:
            await self._watch(waiting, subject)
        except BaseException:  # cancelled, too: a worker must not continue without a caller
            await self._cut(future, waiting, listener)
            raise
        try:
            report = StageReport.from_plain(waiting.result())
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - what executors raise is theirs
            failure = error_of(error, subject)
            if isinstance(failure, WorkerLost):
                self._let_go(executor)
            raise failure from None
        self._cluster.ended(future)
        if report.refused:
            raise TerminalError(report.refused, hint="install the same version of attractor_nb everywhere")
        if report.lost:
            raise WorkerLost(f"the worker of {subject} was lost: {report.lost}")
        return report

    def _let_go(self, broken: Executor | None) -> None:
        """Make a broken executor anew for the next task, unless that was done since."""
        if callable(self._spec) and self._executor is broken:
            self._executor = None

    async def _watch(self, waiting: asyncio.Future[Any], subject: str) -> None:
        """Wait for the end of a task, for as long as the executor is there."""
        gone_since: float | None = None
        now = asyncio.get_running_loop().time
        while not (await asyncio.wait({waiting}, timeout=LOOK_SECONDS))[0]:
            problem = await self._cluster.problem()
            if not problem:
                gone_since = None
            elif gone_since is None:
                gone_since = now()
            elif now() - gone_since > self._wait_seconds:
                raise WorkerLost(f"the worker of {subject} was lost: {problem}")

    async def _await_workers(self, subject: str) -> None:
        """Wait until there is a worker to ship to."""
        now = asyncio.get_running_loop().time
        give_up = now() + self._wait_seconds
        while problem := self._cluster.known_problem:
            if now() > give_up:
                raise TerminalError(f"{subject} has no worker: {problem}")
            await asyncio.sleep(LOOK_SECONDS)
            await self._cluster.problem()

    async def _cut(self, future: Future[Any], waiting: asyncio.Future[Any], listener: TaskListener) -> None:
        """End a task on its worker, and wait a moment for its end."""
        listener.cut()
        was_waiting = future.cancel() and not self._cluster.topic
        waiting.add_done_callback(_forget)
        if was_waiting or (future.done() and not future.cancelled()):
            return
        end = asyncio.ensure_future(listener.ended.wait())
        waited: set[asyncio.Future[Any]] = {end} if self._cluster.topic else {end, waiting}
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait(waited, timeout=CUT_GRACE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        end.cancel()

    async def _submit(
        self, function: Callable[..., Any], *arguments: Any, key: str = ""
    ) -> tuple[Future[Any], Executor]:
        for is_last in (not callable(self._spec), True):
            executor: Executor | None = None
            try:
                executor = await self._present()
                given = functools.partial(self._cluster.submit, executor, function, *arguments, key=key)
                return await call(given), executor
            except OptionError:
                raise
            except Exception as error:  # noqa: BLE001 - what executors raise is theirs
                self._let_go(executor)
                # Another task broke it, and nothing of this one was begun: the next one takes it.
                if is_last or not isinstance(error, BrokenExecutor):
                    raise refusal_of(error) from None
        raise AssertionError("the last try returns or raises")

    async def _present(self) -> Executor:
        async with self._making:
            if self._executor is None:
                self._executor = await call(made, self._spec)
                self._cluster.leave()
                self._cluster = cluster_of(self._executor, self._listening.take)
            return self._executor


@dataclass(frozen=True, slots=True)
class _Payload:
    """The payload to ship, and its name in messages."""

    subject: str
    function: Callable[..., Mapping[str, Any]]
    task: StageTask
    plug: bytes


def made(spec: ExecutorSpec) -> Executor:
    """The executor that an option means."""
    executor: Any = spec if isinstance(spec, Executor) else spec()
    if not isinstance(executor, Executor):
        raise OptionError(
            f"executor= received a function that returns a {type(executor).__name__}, not an executor",
            hint="for example executor=lambda: ProcessPoolExecutor(4)",
        )
    return executor


def _refuse_secrets(payload: _Payload) -> None:
    """Keep secrets here: what a worker needs of them it has in its own environment."""
    if redacted_value(payload.task.work) is not payload.task.work:
        raise TerminalError(
            f"{payload.subject} holds a secret, and secrets are not sent to workers",
            hint="use an environment variable of the worker instead",
        )


def _forget(future: asyncio.Future[Any]) -> None:
    """Take the late end of a task that was given up, so that no warning is logged."""
    if not future.cancelled():
        future.exception()


# The particulars of Dask: contact to its scheduler, and the meaning of a future without a report.
#
# The scheduler is reached through the client of the executor; the library itself is never imported here. Other
# executors have no scheduler: a pool reports by itself that it broke.

ASK_SECONDS: Final = 5.0
"""Time limit for the scheduler to list its workers."""
HELD_SECONDS: Final = 0.1
"""Longest time for which an ended task is held."""
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
    """Last known problem."""

    async def problem(self) -> str:
        """The reason no task can end now, or empty."""
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
        """With its own key, and no retries: whether a stage is tried again is decided here."""
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
    if is_task_cancelled(error):
        reason = "the executor dropped it: the connection to its cluster was lost, or it was cancelled"
    elif not isinstance(error, BrokenExecutor) and not _names(error) & LOST_NAMES:
        return TerminalError(
            f"{subject} cannot be done on a worker: {reason}",
            hint="a worker needs attractor_nb in the version of the coordinator, and what a backend imports",
        )
    return WorkerLost(f"the worker of {subject} was lost: {reason}")


def is_task_cancelled(error: BaseException) -> bool:
    """True if the executor dropped a task without being asked to.

    A Dask client whose workers have just gone raises the reason, a text, as if it were an exception.
    """
    if isinstance(error, AttributeError):
        return error.name == "with_traceback"
    return isinstance(error, asyncio.CancelledError | CancelledError)


def refusal_of(error: BaseException) -> AttractorError:
    """The error of this package for an exception of ``submit``: nothing was begun.

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
