"""The backend that asks models of providers (spec 1.4, 4.5).

It reads what a node asks for, asks its models in turn, and keeps the conversation of a thread. The
libraries behind it are loaded when a run opens it.
"""

from __future__ import annotations

import asyncio
import math
import os
import threading
import weakref
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.backends.llm.addresses import (
    address_of,
    address_variables,
    check_recorded,
    endpoints_from,
    public_address_of,
    recorded_defaults,
    recorded_facts,
    users_endpoints,
)
from attractor_nb.backends.llm.client_libraries import check_client, check_installed, load_libraries
from attractor_nb.backends.llm.compaction import history_tokens, window_tokens
from attractor_nb.backends.llm.model_requests import (
    Request,
    RequestDefaults,
    Target,
    is_unknown,
    read_request,
    takes_text_alone,
)
from attractor_nb.backends.llm.rate_gates import OF_THIS_PROCESS
from attractor_nb.backends.llm.tools import server_inputs, tool_inputs, tools_for
from attractor_nb.decisions.planning.model_choices import nodes_that_ask
from attractor_nb.errors import BudgetReached, OptionError, RetryableError, StageError, TerminalError
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.calls.messages import ATTACH, estimated_tokens
from attractor_nb.model.calls.providers import Endpoint, ModelName, endpoint_of, read_model
from attractor_nb.model.events import RunWarning
from attractor_nb.model.outcome import Usage
from attractor_nb.model.vocabulary.value_forms import comma_list
from attractor_nb.stage import stage_or_none, stream_output

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence

    from attractor_nb.backends.llm.clients import Clients
    from attractor_nb.backends.llm.provider_failures import ProviderFailure
    from attractor_nb.context import Context
    from attractor_nb.model.graph import Graph, Node


class ProviderBackend:
    """Call models of OpenAI, Anthropic, Google and compatible servers.

    What a node, its stylesheet or its graph says goes before what is given here. Keys come from the
    environment alone.

    Args:
        model: Model of nodes that name none: ``gpt-5.2``, ``claude-sonnet-4-5``, ``openai:my-model``.
        provider: Its provider, where its name does not tell it.
        base_url: Address of a server in place of the provider's own. No key is sent there: name an endpoint
            for a server that asks for one.
        endpoints: Servers by name: ``{"local": {"url": "http://127.0.0.1:8080/v1", "key_env": "MY_KEY"}}``;
            ``local:qwen3`` is a model there. They go before those of the user's ``endpoints.toml``, and the
            graph's before both. With ``requests_per_minute`` and ``tokens_per_minute`` requests wait for
            their turn; those may be said of a provider, too: ``{"openai": {"requests_per_minute": 500}}``.
        fallback: Models to ask in turn when a node's own cannot answer.
        system_prompt: System prompt of nodes that have none.
        temperature: Sampling temperature of nodes that have none.
        max_tokens: Where a response is cut off, for nodes that do not say.
        connect_timeout_seconds: How long a connection may take.
        read_timeout_seconds: How long a server may be silent.
        request_timeout_seconds: How long one request may take in all.
        max_requests: How many requests a stage may make of one model, tool calls answered between them.

    Raises:
        OptionError: A number is no bound, or an endpoint is none.
    """

    takes_attachments: Final = True
    """Attachments of a stage are in ``current_stage().attachments``."""
    reserves_requests: Final = True
    """It enters ``StageScope.paying`` around each request."""

    def __init__(
        self,
        model: str = "",
        *,
        provider: str = "",
        base_url: str = "",
        endpoints: Mapping[str, Endpoint | Mapping[str, Any]] = MappingProxyType({}),
        fallback: Iterable[str] = (),
        system_prompt: str = "",
        temperature: float | None = None,
        max_tokens: int | None = None,
        connect_timeout_seconds: float = 10.0,
        read_timeout_seconds: float = 300.0,
        request_timeout_seconds: float = 1800.0,
        max_requests: int = 50,
    ) -> None:
        self._defaults = RequestDefaults(
            model=model,
            provider=provider,
            base_url=base_url,
            fallback=fallback if isinstance(fallback, str) else ",".join(fallback),
            system_prompt=system_prompt,
            temperature=temperature,
            max_tokens=max_tokens,
            endpoints={**users_endpoints(), **endpoints_from(endpoints, "endpoints")},
        )
        self._connect_seconds = _bound("connect_timeout_seconds", connect_timeout_seconds)
        self._read_seconds = _bound("read_timeout_seconds", read_timeout_seconds)
        self._request_seconds = _bound("request_timeout_seconds", request_timeout_seconds)
        self._max_requests = int(_bound("max_requests", max_requests))
        self._pools = Pools()
        self._gates = OF_THIS_PROCESS

    @classmethod
    def installed(cls) -> ProviderBackend:
        """A backend without defaults.

        Raises:
            OptionError: The extra ``llm`` is not installed.
        """
        check_installed()
        return cls()

    def recorded(self, graph: Graph) -> dict[str, Any]:
        """The facts from which another process rebuilds this backend (``rebuilt``): no keys, only their variables.

        Args:
            graph: What runs: addresses that its providers have from the environment are part of it.
        """
        limits = {
            "connect_timeout_seconds": self._connect_seconds,
            "read_timeout_seconds": self._read_seconds,
            "request_timeout_seconds": self._request_seconds,
            "max_requests": self._max_requests,
        }
        return recorded_facts(self._defaults, limits, graph)

    @classmethod
    def rebuilt(cls, facts: Mapping[str, Any]) -> ProviderBackend:
        """The backend that ``recorded`` described.

        Raises:
            OptionError: It cannot be made again, or the environment names other addresses now.
        """
        check_recorded(facts)
        check_installed()
        made = cls(**facts["limits"])
        made._defaults = recorded_defaults(facts)
        return made

    async def open(self) -> None:
        """Load the libraries, without blocking the loop, and make ready to share connections.

        Raises:
            OptionError: The extra ``llm`` is not installed.
        """
        self._pools.enter()  # first: the opener closes it, also when this raises
        await load_libraries()

    async def close(self) -> None:
        """Close the connections with the last run that uses them here."""
        await self._pools.leave()

    @property
    def own_model(self) -> ModelName | None:
        """The model of nodes without a model; None without one (``protocols.HasOwnModel``)."""
        defaults = self._defaults
        name = endpoint_of(defaults.model, defaults.provider, defaults.endpoints)
        name = name or read_model(defaults.model, defaults.provider)
        return name if name.model or name.provider else None

    def targets_of(self, node: Node) -> tuple[Target, ...]:
        """The models that a node asks in turn, and where.

        Raises:
            TerminalError: It names no model, or a provider or address that cannot be asked.
        """
        return read_request(node, self._defaults).targets

    def check_graph(self, graph: Graph) -> None:
        """Find what is known to fail before anything is run or paid.

        Raises:
            OptionError: A node names no model, or a provider or address that cannot be asked, or the client
                of one is not installed.
        """
        for child in graph.children.values():
            self.check_graph(child)
        for node in nodes_that_ask(graph):
            try:
                targets = read_request(node, self._defaults).targets
            except TerminalError as error:
                raise OptionError(error.message, hint=error.hint) from None
            for target in targets:
                check_client(target)
            blind = [target for target in targets if takes_text_alone(target)]
            if blind and node.get(ATTACH, str, "").strip():
                raise OptionError(
                    f"{node.id} attaches files, but {blind[0]} accepts only text",
                    hint="remove attach, or use a model that accepts images and documents",
                )

    def call_inputs(self, node: Node, context: Context) -> dict[str, Any] | None:  # noqa: ARG002 - the interface of all backends
        """The inputs of a node's calls, except its prompt. None for a node that cannot be asked."""
        try:
            request = read_request(node, self._defaults)
        except TerminalError:
            return None
        inputs = {"backend": "llm", **request.to_plain()}
        if (window := node.get("llm.context_tokens", int)) is not None:
            inputs["context_tokens"] = window
        if tools := tool_inputs(node):
            inputs["tools"] = tools
        return inputs

    def answers_only(self, node: Node) -> bool:
        """True if the node's model has no tools."""
        return not node.get("allowed_tools", str, "").strip()

    def cache_inputs(self, node: Node) -> dict[str, Any]:
        """The environment's part in a node's calls: addresses, and the variables of MCP servers (ruling 44).

        Values are hashed, for they may be keys.
        """
        try:
            targets = read_request(node, self._defaults).targets
        except TerminalError:
            return {}
        addresses = [public_address_of(target) for target in targets]
        is_set = any(os.environ.get(name) for target in targets for name in address_variables(target))
        return {**({"addresses": addresses} if is_set else {}), **server_inputs(node)}

    async def run(self, node: Node, prompt: str, context: Context) -> Response:  # noqa: ARG002 - as above
        """The answer of the node's model, or of the first of its fallbacks that could give one.

        Raises:
            RetryableError: None could, and one of them may be able to later (Appendix D).
            TerminalError: None can, or the node asks for something that there is not.
            OptionError: The extra ``llm`` is not installed.
        """
        request = read_request(node, self._defaults)
        await load_libraries()
        async with self._pools.use(self._new_clients) as clients:
            return await self._asked_in_turn(node, prompt, request, clients)

    async def _asked_in_turn(self, node: Node, prompt: str, request: Request, clients: Clients) -> Response:
        failures: list[tuple[Target, ProviderFailure]] = []
        spent = Usage()
        for target in request.targets:
            came, usage = await self._asked(node, prompt, request, target, clients)
            spent = spent + usage
            if isinstance(came, str):
                note = _note(target, failures)
                return Response(came, usage=spent, is_truncated=came.is_truncated, note=note)
            failures.append((target, came))
            if not (came.is_next_asked or came.kind in request.fallback_on):
                break
        raise _combined(failures)

    async def _asked(
        self, node: Node, prompt: str, request: Request, target: Target, clients: Clients
    ) -> tuple[Response | ProviderFailure, Usage]:
        """The response or failure of one model, and its usage."""
        from attractor_nb.backends.llm.exchange import Exchange  # noqa: PLC0415 - loaded with the libraries
        from attractor_nb.backends.llm.metered_requests import Limits, MeteredRequests  # noqa: PLC0415 - as above
        from attractor_nb.backends.llm.provider_failures import failure_of  # noqa: PLC0415 - as above
        from attractor_nb.backends.llm.thread_messages import read_messages, save_messages  # noqa: PLC0415 - as above

        scope = stage_or_none()
        if scope is not None and scope.attachments and is_unknown(target):
            _tell(f"it is unknown whether {target} accepts images and documents")
        if scope is not None:
            prompt += scope.told  # to the model before, which could not answer
        conversation = None if scope is None else scope.conversation
        toolset = None if scope is None else tools_for(node, scope)
        history = read_messages(conversation, _room_tokens(node, prompt, request, target), _tell)
        address = address_of(target)
        limits = Limits(self._read_seconds, self._request_seconds, self._max_requests)
        requests = MeteredRequests(target, address, request, limits, scope, stream_output, self._gates, _tools_of(node))
        exchange = Exchange(requests)
        try:
            model = clients.model(target)
            if toolset is None:
                answer = await exchange.ask(model, prompt, history)
            else:  # in its own task: an agent wakes up often, and each time through all who await it
                talk = exchange.ask_with_tools(clients.agent(model), prompt, history, toolset)
                answer = await asyncio.create_task(talk)
        except Exception as error:  # what is no failure of the provider's is raised again
            failure = failure_of(error, target, address)
            if failure is None:
                raise
            return failure, requests.usage
        save_messages(conversation, answer.messages)
        return Response(answer.text, is_truncated=answer.is_truncated), requests.usage

    def _new_clients(self) -> Clients:
        from attractor_nb.backends.llm.clients import Clients  # noqa: PLC0415 - loaded with the libraries

        return Clients(connect_seconds=self._connect_seconds, read_seconds=self._read_seconds)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pools": None, "_gates": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._pools = Pools()
        self._gates = OF_THIS_PROCESS

    def __repr__(self) -> str:
        return f"ProviderBackend({self._defaults.model!r})"


def _room_tokens(node: Node, prompt: str, request: Request, target: Target) -> int:
    """The room that a model's window leaves for the messages of its thread."""
    window = window_tokens(target.model, node.get("llm.context_tokens", int))
    return history_tokens(window, estimated_tokens(request.system_prompt + prompt), request.max_tokens)


def _tools_of(node: Node) -> tuple[str, ...]:
    return comma_list(node.get("allowed_tools", str, ""))


def _tell(message: str) -> None:
    """Say what a person should know of the stage under way."""
    if (scope := stage_or_none()) is not None:
        scope.announce(RunWarning(message=f"{scope.node_id}: {message}", node=scope.node_id))


def _bound(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise OptionError(f"{name} is {value!r}, but must be a number above 0", hint="for example 300")
    return value


def _note(target: Target, failures: Sequence[tuple[Target, ProviderFailure]]) -> str:
    """That another model answered than the one that was to; empty when it was that one."""
    if not failures:
        return ""
    reasons = "; ".join(failure.error.message for _, failure in failures)
    return f"answered by {target} in place of {failures[0][0]} ({reasons})"


def _combined(failures: Sequence[tuple[Target, ProviderFailure]]) -> StageError:
    """The combined failure of a chain: retryable if one of its models may answer later."""
    errors = [failure.error for _, failure in failures]
    if len(errors) == 1 or isinstance(errors[-1], BudgetReached):
        return errors[-1]
    message = "no model of the chain answered: " + "; ".join(error.message for error in errors)
    passing = [error for error in errors if isinstance(error, RetryableError)]
    is_unmeasured = all(error.is_unmeasured for error in errors)
    if not passing:
        hint = "; ".join(dict.fromkeys(filter(None, (error.hint for error in errors))))
        return TerminalError(message, hint=hint, is_unmeasured=is_unmeasured)
    waits = [error.retry_after_seconds or 0.0 for error in passing]
    return RetryableError(message, retry_after_seconds=min(waits) or None, is_unmeasured=is_unmeasured)


# Connections that the runs of one event loop share, from the first that begins to the last that ends.


@dataclass(slots=True)
class _Pool:
    user_count: int = 0
    clients: Clients | None = None


class Pools:
    """Clients by event loop: connections belong to the loop that made them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_loop: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Pool] = weakref.WeakKeyDictionary()

    def enter(self) -> None:
        """Begin to share; each caller also leaves."""
        with self._lock:
            self._by_loop.setdefault(asyncio.get_running_loop(), _Pool()).user_count += 1

    async def leave(self) -> None:
        """Be done; the last one closes the connections."""
        loop = asyncio.get_running_loop()
        with self._lock:
            pool = self._by_loop.get(loop)
            if pool is None:
                return
            pool.user_count -= 1
            if pool.user_count > 0:
                return
            del self._by_loop[loop]
        if pool.clients is not None:
            await pool.clients.close()

    @asynccontextmanager
    async def use(self, make: Callable[[], Clients]) -> AsyncGenerator[Clients]:
        """The clients of this loop; where none are shared, some for this one call."""
        with self._lock:
            pool = self._by_loop.get(asyncio.get_running_loop())
            if pool is not None and pool.clients is None:
                pool.clients = make()
        if pool is not None and pool.clients is not None:
            yield pool.clients
            return
        clients = make()
        try:
            yield clients
        finally:
            await clients.close()
