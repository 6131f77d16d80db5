"""Backends, processes and handlers that execute on workers, behind the usual protocols."""

from __future__ import annotations

import pickle
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from attractor_nb.errors import OptionError, RetryableError, StageError, TerminalError
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.outcome import Outcome, StageStatus, Usage
from attractor_nb.processes import CommandOutput
from attractor_nb.protocols import CodergenBackend, DescribesCalls, Handler, answers_only, takes_attachments
from attractor_nb.redaction import holds_secret
from attractor_nb.stage import current_stage
from attractor_nb.workers.task import COMMAND, HANDLER, PROMPT, StageReport, plain_graph, plain_node

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from attractor_nb.context import Context
    from attractor_nb.model.graph import Graph, Node
    from attractor_nb.workers.shipping import Shipping


def check_executor(executor: object) -> None:
    """Check what ``executor=`` was given, before anything is made for a run."""
    if isinstance(executor, Executor) or (callable(executor) and not isinstance(executor, type)):
        return
    kind = type(executor)
    if kind.__module__.startswith("distributed.") and hasattr(executor, "get_executor"):
        raise OptionError("executor= received a Dask client", hint="pass client.get_executor()")
    name = executor.__name__ if isinstance(executor, type) else kind.__name__
    raise OptionError(
        f"executor= takes a concurrent.futures.Executor, or a function that makes one, not {name}",
        hint="ThreadPoolExecutor(4), ProcessPoolExecutor(4), client.get_executor() of Dask",
    )


def is_shippable(handler: object) -> bool:
    """True if a custom handler allows its stages to be executed on a worker."""
    return bool(getattr(handler, "is_shippable", False))


def packed(plug: object, what: str) -> bytes:
    """A backend or handler as it travels.

    Args:
        plug: The object.
        what: What it is, for messages: ``the backend``.
    """
    try:
        data = _dumps()(plug)
    except Exception as error:  # noqa: BLE001 - whatever its __reduce__ raises
        reason = str(error).strip().splitlines()
        raise OptionError(
            f"{what} {plug!r} cannot be sent to workers: {reason[0] if reason else type(error).__name__}",
            hint="give a function of a module or a backend by name, and open connections, locks and files "
            "where it is called",
        ) from None
    if holds_secret(data.decode("latin-1")):
        raise OptionError(
            f"{what} {plug!r} holds a secret, and secrets are not sent to workers",
            hint="let it read the key from the environment of the worker, where it is called",
        )
    return data


def _dumps() -> Callable[[object], bytes]:
    """The pickler: cloudpickle, which takes what a notebook defines, where it is installed."""
    try:
        import cloudpickle  # noqa: PLC0415 - comes with Dask and loky
    except ImportError:
        return pickle.dumps
    return cast("Any", cloudpickle).dumps


class ShippedBackend:
    """A backend whose prompts are answered on workers (``protocols.CodergenBackend``)."""

    def __init__(self, shipping: Shipping, backend: CodergenBackend, name: str) -> None:
        """Take the backend.

        Args:
            shipping: The way.
            backend: What answers.
            name: Its name, when it has one: then the worker makes its own.
        """
        self._shipping = shipping
        self._backend = backend
        self._name = name
        self.has_effects = bool(getattr(backend, "has_effects", False))
        self.takes_attachments = takes_attachments(backend)
        self._plug = b"" if name else packed(backend, "the backend")

    def call_inputs(self, node: Node, context: Context) -> Mapping[str, Any] | None:
        """The inputs of a call as the backend describes them; the place of the call is not one of them."""
        return self._backend.call_inputs(node, context) if isinstance(self._backend, DescribesCalls) else None

    def answers_only(self, node: Node) -> bool:
        """As the backend says."""
        return answers_only(self._backend, node)

    def cache_inputs(self, node: Node) -> Mapping[str, Any]:
        """As the backend says."""
        around = getattr(self._backend, "cache_inputs", None)
        return {} if around is None else around(node)

    async def run(self, node: Node, prompt: str, context: Context) -> str | Outcome:
        """The result of the backend on the worker."""
        timeout = node.timeout
        report = await self._shipping.ship(
            PROMPT,
            {
                "node": plain_node(node),
                "prompt": prompt,
                "context": _values(context),
                "backend": self._name,
                "attachments": [each.to_plain() for each in current_stage().attachments],
            },
            plug=self._plug,
            timeout_seconds=None if timeout is None else timeout.seconds,
        )
        _take_over(report, context)
        if report.outcome:
            return _outcome_of(report)
        value = report.value
        usage = None if value["usage"] is None else Usage.from_plain(value["usage"])
        return Response(value["text"], usage=usage, is_truncated=value["is_truncated"], note=value.get("note", ""))


class ShippedProcesses:
    """Commands of tool stages, run on workers (``protocols.Processes``)."""

    def __init__(self, shipping: Shipping) -> None:
        self._shipping = shipping

    async def run(
        self,
        command: str | Sequence[str],
        *,
        cwd: Path | None = None,  # noqa: ARG002 - a directory here says nothing there
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout_seconds: float | None = None,
        output_directory: Path | None = None,  # noqa: ARG002 - its files come back with the report
        on_output: Any = None,  # noqa: ARG002 - the stage's own stream
    ) -> CommandOutput:
        """The result of the command on the worker."""
        work = {
            "command": command if isinstance(command, str) else list(command),
            "environment": dict(env or {}),
            "stdin": stdin.decode(),
        }
        report = await self._shipping.ship(COMMAND, work, timeout_seconds=timeout_seconds)
        if report.outcome:
            raise _error_of(Outcome.from_plain(report.outcome))
        value = report.value
        return CommandOutput(value["exit_code"], value["stdout"], value["stderr"], value["is_timed_out"])


@dataclass(frozen=True, slots=True)
class ShippedHandler:
    """A custom handler whose stages are executed on workers (``protocols.Handler``)."""

    shipping: Shipping
    handler: Handler
    plug: bytes

    @property
    def keeps_own_time(self) -> bool:
        """As the handler says."""
        return bool(getattr(self.handler, "keeps_own_time", False))

    @property
    def writes_status(self) -> bool | Callable[[Node], bool]:
        """As the handler says."""
        return getattr(self.handler, "writes_status", True)

    @property
    def observes_failures(self) -> bool:
        """As the handler says."""
        return bool(getattr(self.handler, "observes_failures", False))

    @property
    def version(self) -> str | None:
        """As the handler says."""
        return getattr(self.handler, "version", None)

    async def execute(self, node: Node, context: Context, graph: Graph, logs_root: Path) -> Outcome | None:  # noqa: ARG002 - the interface of all handlers
        """The outcome of the handler on the worker."""
        timeout = node.timeout
        report = await self.shipping.ship(
            HANDLER,
            {"node": plain_node(node), "context": _values(context), "graph": plain_graph(graph, node)},
            plug=self.plug,
            timeout_seconds=None if timeout is None or self.keeps_own_time else timeout.seconds,
        )
        _take_over(report, context)
        return _outcome_of(report) if report.outcome else None


def _values(context: Context) -> dict[str, Any]:
    """The context with large values in place of their references, which a worker could not follow."""
    return {key: context.get(key) for key in context}


def _take_over(report: StageReport, context: Context) -> None:
    """Set here what was set there."""
    if report.changes:
        context.apply_updates(report.changes)
    for entry in report.logs:
        context.append_log(entry)


def _outcome_of(report: StageReport) -> Outcome:
    """The outcome that a plug returned there."""
    outcome = Outcome.from_plain(report.outcome)
    if report.is_failure:
        raise _error_of(outcome)
    return outcome


def _error_of(outcome: Outcome) -> StageError:
    """The error that an outcome came from, as far as retrying goes."""
    reason = outcome.failure_reason
    if outcome.status is StageStatus.RETRY:
        return RetryableError(reason, retry_after_seconds=outcome.retry_after_seconds)
    return TerminalError(reason) if outcome.is_terminal else StageError(reason)
