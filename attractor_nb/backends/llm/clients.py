"""Clients of providers: a pool of connections for each event loop, and a model object for each target.

Loads pydantic-ai and the providers' packages. Keys come from the environment, when a model is first
asked, and go where ``addresses.key_variables`` says.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import httpx2
from pydantic_ai.models import get_user_agent
from pydantic_ai.profiles.openai import OpenAIModelProfile

from attractor_nb.backends.llm.addresses import NO_KEY, address_of, key_variables, needs_key, set_key, unset
from attractor_nb.backends.llm.exchange import agent_of
from attractor_nb.backends.llm.provider_failures import CallFailed, no_interface, without_key, without_settings
from attractor_nb.model.calls.providers import read_model
from attractor_nb.redaction import learn

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

    from pydantic_ai import Agent
    from pydantic_ai.models import Model

    from attractor_nb.backends.llm.model_requests import Target

MAX_ANSWER_BYTES: Final = 64 << 20
"""Of an answer, its wrapping included: no server is read for ever."""
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
        self._http = http_client(httpx2.Timeout(read_seconds, connect=connect_seconds))
        self._http.event_hooks["response"].append(_bounded)
        self._models: dict[tuple[Target, str, str], Model[Any]] = {}
        self._agents: dict[int, Agent[None, str]] = {}

    def model(self, target: Target) -> Model[Any]:
        """The model of a target.

        Raises:
            CallFailed: The key, or a setting, that it needs is not set.
        """
        if missing := unset(target):
            raise CallFailed(without_settings(target, missing))
        address = address_of(target)
        key = _key_of(target, address)
        found = self._models.get((target, address, key))
        if found is None:
            found = self._models[target, address, key] = _made(target, address, key, self._http)
        return found

    def agent(self, model: Model[Any]) -> Agent[None, str]:
        """The agent that asks a model where a node has tools."""
        found = self._agents.get(id(model))  # the agent keeps its model alive
        if found is None:
            found = self._agents[id(model)] = agent_of(model)
        return found

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()


def http_client(timeout: httpx2.Timeout) -> httpx2.AsyncClient:
    """A client with pydantic-ai's name; reading the certificates takes longer than all else of it."""
    trusted = _certificates(os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", ""))
    headers = {"User-Agent": get_user_agent()}
    return httpx2.AsyncClient(timeout=timeout, limits=_CONNECTIONS, headers=headers, verify=trusted)


@lru_cache(maxsize=4)
def _certificates(file: str, folder: str) -> ssl.SSLContext:  # noqa: ARG001 - what its result depends on
    return httpx2.create_ssl_context()


def _key_of(target: Target, address: str) -> str:
    if found := set_key(target):
        learn([found[1]])  # whatever its variable is called
        return found[1]
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
        from pydantic_ai.models.google import GoogleModel  # noqa: PLC0415 - as above
        from pydantic_ai.providers.google import GoogleProvider  # noqa: PLC0415 - as above

        provider = GoogleProvider(api_key=key, base_url=address or None, http_client=http)
        return GoogleModel(target.model, provider=provider)
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
        return OpenAIChatModel(target.model, provider=at, profile=_WHOLE)
    return _openai(target, address, key, http)


def _openai(target: Target, address: str, key: str, http: httpx2.AsyncClient) -> Model[Any]:
    """OpenAI's own models over its newer interface; what else speaks its language over the older one."""
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel  # noqa: PLC0415 - as above
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415 - as above
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider  # noqa: PLC0415 - as above

    if target.endpoint is not None:
        at = OpenAICompatibleProvider(target.endpoint.name, base_url=address, api_key=key, http_client=http)
        if target.endpoint.api == "responses":
            return OpenAIResponsesModel(target.model, provider=at)
        return OpenAIChatModel(target.model, provider=at, profile=_OLDER)
    if target.provider == "openai" and not address:
        return OpenAIResponsesModel(target.model, provider=OpenAIProvider(api_key=key, http_client=http))
    if target.provider == "openai" and read_model(target.model).provider == "openai":
        passing_on = OpenAIProvider(base_url=address, api_key=key, http_client=http)
        return OpenAIChatModel(target.model, provider=passing_on, profile=_WHOLE)
    compatible = OpenAICompatibleProvider(
        f"{target.provider}-compatible" if target.provider == "openai" else target.provider,
        base_url=address,
        api_key=key,
        http_client=http,
    )
    return OpenAIChatModel(target.model, provider=compatible, profile=_OLDER)


async def _bounded(response: httpx2.Response) -> None:
    """Have a response end when it is longer than any answer may be, and tell a page from an answer.

    Raises:
        CallFailed: It is a page for people: the address is not that of an interface.
    """
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if response.is_success and kind in _PAGES:
        raise CallFailed(no_interface(str(response.request.url), kind))
    response.stream = _Bounded(response.stream)


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
