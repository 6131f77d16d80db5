"""Clients of providers: a pool of connections for each event loop, and a model object for each target.

Loads pydantic-ai and the providers' packages. Keys come from the environment, when a model is first
asked, and go where ``addresses.key_variables`` says.
"""

from __future__ import annotations

import json
import os
import re
import ssl
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, cast

import httpx2
from pydantic_ai.models import get_user_agent
from pydantic_ai.profiles.openai import OpenAIModelProfile

from attractor_nb.backends.llm.addresses import NO_KEY, address_of, key_variables, needs_key, set_key, unset
from attractor_nb.backends.llm.client_libraries import importing_without
from attractor_nb.backends.llm.exchange import RUNNING_TOTAL, agent_of
from attractor_nb.backends.llm.provider_failures import (
    CallFailed,
    no_interface,
    unusable_key,
    without_key,
    without_network,
    without_settings,
)
from attractor_nb.model.bounded_json import read_bounded_json
from attractor_nb.model.calls.providers import read_model
from attractor_nb.model.outcome import MAX_COUNT
from attractor_nb.network import SOCKS_PROXIES, WEB_PROXIES, NetworkFault, certificate_fault, is_local, proxy_fault
from attractor_nb.redaction import learn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from pydantic_ai import Agent
    from pydantic_ai.models import Model

    from attractor_nb.backends.llm.model_requests import Target


MAX_ANSWER_BYTES: Final = 64 << 20
"""Of an answer, its wrapping included: no server is read forever."""
_PROXIED: Final = ("http", "https", "all")
"""Clients whose proxies are read."""
_CERTIFICATES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE")
"""The variables that a context for encrypted connections is made from."""
_PAGES: Final = frozenset({"text/html", "application/xhtml+xml"})
_CONNECTIONS: Final = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)
_WHOLE: Final = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
"""A stream that does not say why it ends was cut off, however well its connection was closed."""
_OLDER: Final = OpenAIModelProfile(
    openai_chat_streaming_requires_finish_reason=True, openai_chat_supports_max_completion_tokens=False
)
"""Other servers know the older name of the limit of tokens."""


class Clients:
    """Models that share a pool of connections. It belongs to the running event loop."""

    def __init__(self, *, connect_seconds: float, read_seconds: float) -> None:
        self._timeout = httpx2.Timeout(read_seconds, connect=connect_seconds)
        self._http: dict[tuple[bool, bool], httpx2.AsyncClient] = {}
        self._models: dict[tuple[Target, str, str], Model[Any]] = {}
        self._agents: dict[int, Agent[None, str]] = {}

    def model(self, target: Target) -> Model[Any]:
        """The model of a target."""
        if missing := unset(target):
            raise CallFailed(without_settings(target, missing))
        address = address_of(target)
        key = _key_of(target, address)
        found = self._models.get((target, address, key))
        if found is None:
            found = self._models[target, address, key] = self._made(target, address, key)
        return found

    def _made(self, target: Target, address: str, key: str) -> Model[Any]:
        http = self._connections(target, address)
        try:
            return _made(target, address, key, http)
        except OSError:  # a provider's package reads the variables about certificates as soon as it is imported
            fault = certificate_fault(os.environ)
            if fault is None:
                raise
            try:
                with importing_without(_CERTIFICATES):  # a connection that needs them has been refused above
                    return _made(target, address, key, http)
            except OSError:
                raise CallFailed(without_network(target, fault)) from None

    def _connections(self, target: Target, address: str) -> httpx2.AsyncClient:
        """The pool of connections by which an address is reached."""
        way = is_local(address), not address.startswith("http://")
        found = self._http.get(way)
        if found is None:
            try:
                found = http_client(self._timeout, is_here=way[0], is_encrypted=way[1])
            except UnusableNetwork as unusable:
                raise CallFailed(without_network(target, unusable.fault)) from None
            found.event_hooks["response"].append(_bounded)
            self._http[way] = found
        return found

    def agent(self, model: Model[Any]) -> Agent[None, str]:
        """The agent that asks a model where a node has tools."""
        found = self._agents.get(id(model))  # the agent keeps its model alive
        if found is None:
            found = self._agents[id(model)] = agent_of(model)
        return found

    async def close(self) -> None:
        """Close all connections."""
        for client in self._http.values():
            await client.aclose()


class UnusableNetwork(Exception):
    """No client can be made, because of what the environment says.

    Attributes:
        fault: What that is.
    """

    def __init__(self, fault: NetworkFault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def http_client(timeout: httpx2.Timeout, *, is_here: bool, is_encrypted: bool) -> httpx2.AsyncClient:
    """A client with pydantic-ai's name; reading the certificates takes longer than all else of it.

    Args:
        timeout: How long it waits.
        is_here: It asks this machine alone, and no proxy.
        is_encrypted: It needs certificates.
    """
    known = (*WEB_PROXIES, *(SOCKS_PROXIES if find_spec("socksio") else ()))
    fault = None if is_here else proxy_fault(os.environ, _PROXIED, known)
    fault = fault or (certificate_fault(os.environ) if is_encrypted else None)
    if fault is not None:
        raise UnusableNetwork(fault)
    trusted = _certificates(*map(os.environ.get, _CERTIFICATES)) if is_encrypted else _no_certificates()
    headers = {"User-Agent": get_user_agent()}
    try:
        return httpx2.AsyncClient(
            timeout=timeout, limits=_CONNECTIONS, headers=headers, verify=trusted, trust_env=not is_here
        )
    except (ValueError, httpx2.InvalidURL) as error:  # older versions cannot read all that no_proxy may have
        raise UnusableNetwork(NetworkFault("no_proxy", f"cannot be read: {error}", "correct it, or unset it")) from None


@lru_cache(maxsize=4)
def _certificates(*named: str | None) -> ssl.SSLContext:
    """The certificates that the environment names."""
    try:
        return httpx2.create_ssl_context()
    except OSError as error:
        variable = next((name for name, value in zip(_CERTIFICATES, named, strict=True) if value), _CERTIFICATES[0])
        problem = f"names what cannot be used for certificates: {error.strerror or error}"
        raise UnusableNetwork(NetworkFault(variable, problem, "correct it, or unset it")) from None


@lru_cache(maxsize=1)
def _no_certificates() -> ssl.SSLContext:
    """For connections that are not encrypted: it trusts no certificate, and reads nothing."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _key_of(target: Target, address: str) -> str:
    if found := set_key(target):
        name, key = found
        learn([key])  # whatever its variable is called
        if sign := next((sign for sign in key if not " " <= sign <= "~"), ""):
            raise CallFailed(unusable_key(target, name, sign))
        return key
    if needs_key(target, address):
        raise CallFailed(without_key(target, key_variables(target)))
    return NO_KEY


def _made(target: Target, address: str, key: str, http: httpx2.AsyncClient) -> Model[Any]:
    if target.provider == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415 - slow, and for this one alone
        from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415 - as above

        return AnthropicModel(
            target.model, provider=AnthropicProvider(api_key=key, base_url=address or None, http_client=http)
        )
    if target.provider == "google":
        return _google(target, address, key, http)
    if target.provider == "vertex":
        from pydantic_ai.models.google import GoogleModel  # noqa: PLC0415 - as above
        from pydantic_ai.providers.google_cloud import GoogleCloudProvider  # noqa: PLC0415 - as above

        project = os.environ["GOOGLE_CLOUD_PROJECT"]  # named here, or the key of Google's other interface goes there
        return GoogleModel(target.model, provider=GoogleCloudProvider(project=project, http_client=http))
    if target.provider == "bedrock":
        from pydantic_ai.models.bedrock import BedrockConverseModel  # noqa: PLC0415 - as above
        from pydantic_ai.providers.bedrock import BedrockProvider  # noqa: PLC0415 - as above

        limits = {"aws_connect_timeout": http.timeout.connect, "aws_read_timeout": http.timeout.read}
        return BedrockConverseModel(target.model, provider=BedrockProvider(**limits))
    if target.provider == "azure":
        from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415 - as above
        from pydantic_ai.providers.azure import AzureProvider  # noqa: PLC0415 - as above

        at = AzureProvider(azure_endpoint=address, api_key=key, http_client=http)
        return OpenAIChatModel(target.model, provider=at, profile=_WHOLE, settings=RUNNING_TOTAL)
    return _openai(target, address, key, http)


def _google(target: Target, address: str, key: str, http: httpx2.AsyncClient) -> Model[Any]:
    """A model of Google's.

    Its package makes another client and contexts for certificates beside ours, which stay unused. It is given some that
    read nothing of the environment: else a proxy there would keep it from a server on this machine.
    """
    from google.genai import Client  # noqa: PLC0415 - as above
    from google.genai.types import HttpOptions  # noqa: PLC0415 - as above
    from pydantic_ai.models.google import GoogleModel  # noqa: PLC0415 - as above
    from pydantic_ai.providers.google import GoogleProvider  # noqa: PLC0415 - as above

    options = HttpOptions(
        base_url=address or None,
        headers={"user-agent": get_user_agent()},
        timeout=None if http.timeout.read is None else round(http.timeout.read * 1000),
        httpx_async_client=http,
        client_args={"verify": _no_certificates(), "trust_env": False},
        async_client_args={"ssl": _no_certificates()},
    )
    provider = GoogleProvider(client=Client(vertexai=False, api_key=key, http_options=options))
    return GoogleModel(target.model, provider=provider)


def _openai(target: Target, address: str, key: str, http: httpx2.AsyncClient) -> Model[Any]:
    """OpenAI's own models over its newer interface; what else speaks its language over the older one."""
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel  # noqa: PLC0415 - as above
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415 - as above
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider  # noqa: PLC0415 - as above

    if target.endpoint is not None:
        at = OpenAICompatibleProvider(target.endpoint.name, base_url=address, api_key=key, http_client=http)
        if target.endpoint.api == "responses":
            return OpenAIResponsesModel(target.model, provider=at)
        return OpenAIChatModel(target.model, provider=at, profile=_OLDER, settings=RUNNING_TOTAL)
    if target.provider == "openai" and not address:
        return OpenAIResponsesModel(target.model, provider=OpenAIProvider(api_key=key, http_client=http))
    if target.provider == "openai" and read_model(target.model).provider == "openai":
        passing_on = OpenAIProvider(base_url=address, api_key=key, http_client=http)
        return OpenAIChatModel(target.model, provider=passing_on, profile=_WHOLE, settings=RUNNING_TOTAL)
    compatible = OpenAICompatibleProvider(
        f"{target.provider}-compatible" if target.provider == "openai" else target.provider,
        base_url=address,
        api_key=key,
        http_client=http,
    )
    return OpenAIChatModel(target.model, provider=compatible, profile=_OLDER, settings=RUNNING_TOTAL)


async def _bounded(response: httpx2.Response) -> None:
    """End a response that is too long for an answer, is not read as OpenAI streams it, or is a page for users."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if response.is_success and kind in _PAGES:
        raise CallFailed(no_interface(str(response.request.url), kind))
    response.stream = _Bounded(response.stream)
    is_chat = response.request.url.path.endswith("/chat/completions")
    if response.is_success and is_chat and "content-encoding" not in response.headers:
        response.stream = _Chat(response.stream, is_streamed=kind == "text/event-stream")


class _Bounded(httpx2.AsyncByteStream):
    """A stream of bytes that breaks off when there are too many."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MAX_ANSWER_BYTES
        async for chunk in self._stream:
            left -= len(chunk)
            if left < 0:
                raise httpx2.ReadError(f"the answer is over {MAX_ANSWER_BYTES} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Chat(httpx2.AsyncByteStream):
    """A chat completion as OpenAI streams it, whatever the server sends (``ChatEvents``)."""

    def __init__(self, stream: httpx2.AsyncByteStream, *, is_streamed: bool) -> None:
        self._stream = stream
        self._is_streamed = is_streamed

    async def __aiter__(self) -> AsyncIterator[bytes]:
        events = ChatEvents()
        if not self._is_streamed:
            yield events.whole(b"".join([piece async for piece in self._stream]))
            return
        async for piece in self._stream:
            if lines := events.take(piece):
                yield lines
        if last := events.end():
            yield last

    async def aclose(self) -> None:
        await self._stream.aclose()


# Chat completions as OpenAI streams them, converted from the variants of other servers.
#
# Servers that implement the interface loosely ignore ``stream=true`` and answer with one completion or with a JSON
# object a line, send a whole ``message`` where an event has a ``delta``, number parallel tool calls all with 0, count
# tokens with null, -1 or 10^30, or report a failure in its own line under status 200. Clients see nothing in any
# of these, or lose the server's message.

_DATA, _ERROR, _END = b"data:", b"error:", b"data: [DONE]\n\n"
_LOOSE: Final = re.compile(rb'"message"|"tool_calls"|"usage"\s*:\s*\{')
"""Parts of an event that may need a change; an event without them is passed on unchanged."""
_SHOWN: Final = 300


class ChatEvents:
    """The lines of one streamed completion."""

    def __init__(self) -> None:
        self._rest = b""
        self._calls: dict[int, _Calls] = {}

    def take(self, piece: bytes) -> bytes:
        """Take a piece of the stream and return the lines that it completes, changed where they must be."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        return b"".join(self._line(line) + b"\n" for line in lines)

    def end(self) -> bytes:
        """Return the last line of a stream that ended without a line break."""
        return self._line(self._rest) if self._rest else b""

    def whole(self, body: bytes) -> bytes:
        """The events of an answer that was not streamed: one JSON object, or one a line."""
        found = list(_objects(body))
        if not found:
            words = body.decode("utf-8", "replace").strip()
            found = [{"error": {"message": words[:_SHOWN] or "the answer is empty"}}]
        return b"".join(b"data: " + _written(self._chunk(each)) + b"\n\n" for each in found) + _END

    def _line(self, line: bytes) -> bytes:
        if line.startswith(_ERROR):
            said = line[len(_ERROR) :].strip()
            found = next(_objects(said), None) or {"message": said.decode("utf-8", "replace")[:_SHOWN]}
            return b"data: " + _written(found if "error" in found else {"error": found}) + b"\n"
        if not line.startswith(_DATA) or not _LOOSE.search(line):
            return line
        event = next(_objects(line[len(_DATA) :]), None)
        return line if event is None else b"data: " + _written(self._chunk(event))

    def _chunk(self, event: dict[str, Any]) -> dict[str, Any]:
        """An event with a delta in each choice, an index for each tool call, and a usage that counts or none."""
        usage: object = event.get("usage")
        if isinstance(usage, dict) and not _is_counted(cast("dict[str, Any]", usage)):
            del event["usage"]
        choices: object = event.get("choices")
        if not isinstance(choices, list):
            return event
        for choice in cast("list[object]", choices):
            if not isinstance(choice, dict):
                continue
            parts = cast("dict[str, Any]", choice)
            if "delta" not in parts and isinstance(parts.get("message"), dict):
                parts["delta"] = parts.pop("message")
                event["object"] = "chat.completion.chunk"
            delta = parts.get("delta")
            if isinstance(delta, dict):
                self._number(parts.get("index"), cast("dict[str, Any]", delta).get("tool_calls"))
        return event

    def _number(self, choice: object, calls: object) -> None:
        """Give two tool calls of a choice that share an index an index each; a piece without an id belongs to the last.

        Args:
            choice: The index of the choice.
            calls: The pieces of tool calls in an event.
        """
        if not isinstance(calls, list):
            return
        known = self._calls.setdefault(choice if isinstance(choice, int) else 0, _Calls())
        for call in cast("list[object]", calls):
            if isinstance(call, dict):
                parts = cast("dict[str, Any]", call)
                parts["index"] = known.index_of(parts.get("id"), parts.get("index"))


class _Calls:
    """The tool calls of a choice."""

    def __init__(self) -> None:
        self._by_id: dict[str, int] = {}
        self._latest: dict[object, int] = {}
        """The index of the last call that came with an index."""

    def index_of(self, name: object, sent: object) -> int:
        free = max(self._by_id.values(), default=-1) + 1
        if not isinstance(name, str) or not name:
            return self._latest.get(sent, sent if isinstance(sent, int) else max(0, free - 1))
        if name not in self._by_id:
            is_free = isinstance(sent, int) and sent not in self._by_id.values()
            self._by_id[name] = cast("int", sent) if is_free else free
        self._latest[sent] = self._by_id[name]
        return self._by_id[name]


def _is_counted(usage: dict[str, Any]) -> bool:
    counts = [usage.get(key) for key in ("prompt_tokens", "completion_tokens")]
    return all(type(count) is int and 0 <= count <= MAX_COUNT for count in counts)


def _objects(text: bytes) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text, which is one or has one on each line; none of one that has anything else."""
    try:
        found = [read_bounded_json(text)]
    except ValueError:
        try:
            found = [read_bounded_json(line) for line in text.split(b"\n") if line.strip()]
        except ValueError:
            return
    if all(isinstance(each, dict) for each in found):
        yield from cast("list[dict[str, Any]]", found)


def _written(event: dict[str, Any]) -> bytes:
    return json.dumps(event).encode("ascii")
