"""The request of a node: its models and options, from its attributes and the backend's defaults (spec 2.6, 8.5).

Pure: no library, no key, no network. Stylesheet and graph have given a node their values before
(``transforms/node_attributes.py``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.decisions.response_schemas import native_schema
from attractor_nb.errors import TerminalError
from attractor_nb.model.calls.messages import PDF
from attractor_nb.model.calls.model_options import PREFIX as OPTION_PREFIX
from attractor_nb.model.calls.model_options import is_taken, read_option, written_options
from attractor_nb.model.calls.providers import (
    COMPATIBLE,
    PROVIDER_NAMES,
    PROVIDERS,
    Endpoint,
    ModelName,
    Rates,
    address_owner,
    address_problem,
    endpoint_of,
    known_provider,
    read_endpoint,
    read_fallbacks,
    read_model,
    written_endpoints,
)
from attractor_nb.model.texts import did_you_mean
from attractor_nb.model.vocabulary.value_forms import comma_list

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from attractor_nb.model.graph import Node


_NAMES: Final = ", ".join(entry.name for entry in PROVIDERS)


@dataclass(frozen=True, slots=True)
class Target:
    """One model at one place."""

    provider: str  #: Key of a provider that is known.
    model: str  #: The provider's own name of the model.
    base_url: str = ""  #: Address of the server, which gets no key; empty for the provider's own.
    #: The endpoint that it is at, in place of an address; the provider says the language.
    endpoint: Endpoint | None = None
    rates: Rates = field(default_factory=Rates)  #: Rate limits of the server.

    def __str__(self) -> str:
        return f"{self.endpoint.name if self.endpoint else self.provider}:{self.model}"


@dataclass(frozen=True, slots=True)
class RequestDefaults:
    """The defaults for values that neither a node nor its stylesheet or graph sets."""

    model: str = ""  #: As ``llm_model``.
    provider: str = ""  #: As ``llm_provider``.
    base_url: str = ""  #: As ``llm.base_url``.
    fallback: str = ""  #: As ``llm_fallback``.
    system_prompt: str = ""  #: As ``llm.system_prompt``.
    temperature: float | None = None  #: As ``llm.temperature``.
    max_tokens: int | None = None  #: As ``llm.max_tokens``.
    #: Endpoints and rates of providers by name, beside those of the graph, which go before these.
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict[str, Endpoint])


@dataclass(frozen=True, slots=True)
class Request:
    """The request of a node."""

    targets: tuple[Target, ...]  #: Models to ask in turn: its own, then those of ``llm_fallback``.
    #: Failures after which the next is asked, though it would be asked the same: ``overlong``, ``refusal``.
    fallback_on: frozenset[str]
    effort: str  #: Reasoning effort: low, medium or high.
    is_effort_asked: bool  #: The effort was set; else it is the system's default.
    temperature: float | None  #: Sampling temperature, or None for the provider's.
    max_tokens: int | None  #: Longest response in tokens, or None for the provider's limit.
    system_prompt: str  #: The system prompt, or empty.
    schema: Mapping[str, Any] | None  #: JSON Schema of an object that the response has to be, or None.
    extra: Mapping[str, Any]  #: Options that are passed on, as ``llm.extra.*`` names them.

    def to_plain(self) -> dict[str, Any]:
        """JSON values that say what goes into a call beside its prompt; what is not asked for is left out."""
        first, *others = self.targets
        plain: dict[str, Any] = {
            "model": str(first),
            "base_url": first.endpoint.url if first.endpoint else first.base_url,
            "fallback_on": sorted(self.fallback_on),
            "fallback": [str(target) for target in others],
            "reasoning_effort": self.effort,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "system_prompt": self.system_prompt,
            "extra": dict(self.extra),
            "response_schema": None if self.schema is None else dict(self.schema),
        }
        return {name: value for name, value in plain.items() if value not in ("", None, [], {})}


def read_request(node: Node, defaults: RequestDefaults) -> Request:
    """Read the request of a node."""
    endpoints = _endpoints(node, defaults)
    named = _own_model(node, defaults, endpoints)
    address = _address(node, named, defaults)
    first = _target(node, named, address, endpoints)
    owner = address_owner(named)
    fallback = node.get("llm_fallback", str, "") or defaults.fallback
    others = (
        _target(node, name, address if address_owner(name) == owner else "", endpoints)
        for name in _fallbacks(fallback, endpoints)
    )
    targets = tuple(dict.fromkeys((first, *others)))
    temperature, max_tokens = node.get("llm.temperature", float), node.get("llm.max_tokens", int)
    return Request(
        targets=targets,
        fallback_on=frozenset(comma_list(node.get("llm_fallback_on", str, ""))),
        effort=node.reasoning_effort,
        is_effort_asked="reasoning_effort" in node.attrs,
        temperature=defaults.temperature if temperature is None else temperature,
        max_tokens=defaults.max_tokens if max_tokens is None else max_tokens,
        system_prompt=node.get("llm.system_prompt", str, "") or defaults.system_prompt,
        schema=native_schema(node),
        extra=_extra(node, targets),
    )


def _own_model(node: Node, defaults: RequestDefaults, endpoints: Mapping[str, Endpoint]) -> ModelName:
    """The node's model, else the backend's; a provider without a model says nothing of which."""
    if node.llm_model:
        if at := endpoint_of(node.llm_model, node.llm_provider, endpoints):
            return at
        name = read_model(node.llm_model, node.llm_provider)
        if name.provider:
            return name
        own = defaults.provider.strip()
        return ModelName(name.model, own if own in endpoints else _canonical(own))
    if not defaults.model:
        raise TerminalError(
            f"node {node.id!r} names no model",
            hint='write llm_model="…" on the node or the graph, or model_stylesheet="* { llm_model: …; }", '
            'or give backend=ProviderBackend("…")',
        )
    at = endpoint_of(defaults.model, defaults.provider, endpoints)
    name = at or read_model(defaults.model, defaults.provider)
    if node.llm_provider and name.provider not in ("", _canonical(node.llm_provider)):
        raise TerminalError(
            f"node {node.id!r} names the provider {node.llm_provider!r} but no model",
            hint=f"write llm_model, too: the backend's own model is {name}",
        )
    return name if name.provider else ModelName(name.model, _canonical(node.llm_provider))


def _canonical(provider: str) -> str:
    known = known_provider(provider)
    return known.name if known else provider


def _fallbacks(text: str, endpoints: Mapping[str, Endpoint]) -> list[ModelName]:
    """The models of ``llm_fallback``, those of endpoints among them."""
    names: list[ModelName] = []
    for entry in text.split(","):
        at = endpoint_of(entry, "", endpoints)
        names.extend([at] if at else read_fallbacks(entry))
    return names


def _endpoints(node: Node, defaults: RequestDefaults) -> Mapping[str, Endpoint]:
    """Endpoints by name: the graph's, which its nodes have from it, before those of the backend."""
    found = dict(defaults.endpoints)
    for name, facts in written_endpoints(node.attrs).items():
        try:
            endpoint = read_endpoint(name, facts)
            found[endpoint.name] = endpoint
        except ValueError as error:
            raise TerminalError(f"node {node.id!r}: {error}", hint="see docs/models.md") from None
    return found


def _address(node: Node, name: ModelName, defaults: RequestDefaults) -> str:
    """The address of the node's own model; that of the backend goes with the backend's provider alone."""
    if own := node.get("llm.base_url", str, ""):
        return _checked_address(node, own)
    default = read_model(defaults.model, defaults.provider)
    is_its_own = address_owner(name) == address_owner(default) or (
        not default.model and not default.provider and name.provider in ("", COMPATIBLE)
    )
    return _checked_address(node, defaults.base_url) if is_its_own else ""


def _target(node: Node, name: ModelName, base_url: str, endpoints: Mapping[str, Endpoint]) -> Target:
    at = endpoints.get(name.provider)
    if at is not None and at.url:
        if not name.model:
            raise TerminalError(
                f"node {node.id!r} names the endpoint {name.provider!r} and no model",
                hint=f"write llm_model, too, or {name.provider}:MODEL",
            )
        return Target(COMPATIBLE, name.model, endpoint=at, rates=at.rates)
    provider = name.provider or (COMPATIBLE if base_url else "")
    if not provider:
        before, colon, _ = name.model.partition(":")
        near = did_you_mean(before, endpoints) if colon else ""
        raise TerminalError(
            f"node {node.id!r}: the provider is unknown for the model {name.model!r}{near}",
            hint=f"write llm_provider ({_NAMES}), or an endpoint or llm.base_url for a server of your own",
        )
    if known_provider(provider) is None:
        near = did_you_mean(provider, [*PROVIDER_NAMES, *endpoints])
        raise TerminalError(
            f"node {node.id!r}: there is no provider {provider!r}{near}",
            hint=f"one of {_NAMES}; for a server that speaks OpenAI's language name an endpoint",
        )
    owner = read_model(name.model).provider
    if owner and owner != provider and provider in _SINGLE_MAKERS and not base_url:
        raise TerminalError(
            f"node {node.id!r}: {name.model!r} is a model of {owner}, and the provider is {provider}",
            hint=f"write llm_provider={owner}, or llm_model={owner}:{name.model}",
        )
    if base_url and provider in _AT_ONE_PLACE:
        raise TerminalError(
            f"node {node.id!r}: llm.base_url does not work with {provider}, which signs in by itself",
            hint="remove llm.base_url, or name an endpoint for another server",
        )
    rates = endpoints[provider].rates if provider in endpoints and not base_url else Rates()
    return Target(provider, name.model, base_url, rates=rates)


_AT_ONE_PLACE: Final = frozenset(entry.name for entry in PROVIDERS if entry.is_signed_in)
"""Providers whose clients send credentials to any given address."""
_SINGLE_MAKERS: Final = frozenset(entry.name for entry in PROVIDERS if entry.is_single_maker)


def _checked_address(node: Node, text: str) -> str:
    if not text:
        return ""
    problem = address_problem(text)
    if "password" in problem:
        raise TerminalError(
            f"node {node.id!r}: llm.base_url {problem}", hint="keep keys in the environment: see docs/models.md"
        )
    if problem:
        raise TerminalError(
            f"node {node.id!r}: llm.base_url {text!r} {problem}", hint="such as https://gateway.example/v1"
        )
    return text.rstrip("/")


def _extra(node: Node, targets: Sequence[Target]) -> dict[str, Any]:
    """The extra options of a node; a target that does not accept an option is asked without it."""
    read: dict[str, Any] = {}
    for name, value in sorted(written_options(node.attrs).items()):
        try:
            read[name] = read_option(name, value)
        except ValueError as error:
            raise TerminalError(f"node {node.id!r}: {error}", hint="see docs/models.md") from None
        if not any(is_taken(name, target.provider) for target in targets):
            raise TerminalError(
                f"node {node.id!r}: {OPTION_PREFIX}{name} is not passed on to {targets[0]}", hint="see docs/models.md"
            )
    return read


# Models that accept images and documents, as far as their profiles say (pure).

_TEXT_ALONE: Final = re.compile(
    r"(gpt-3\.5|gpt-4(-0314|-0613|-32k.*)?\Z|o1-mini|o1-preview|o3-mini|text-|davinci|claude-(1|2|instant)|deepseek)"
)
"""Beginnings of models that take text alone."""


def takes_text_alone(target: Target) -> bool:
    """True if a model is known to take no images and no documents."""
    return _TEXT_ALONE.match(target.model.rpartition("/")[2]) is not None


def is_unknown(target: Target) -> bool:
    """True if it is unknown what a model takes: it is somewhere else, and its name says nothing."""
    is_elsewhere = bool(target.base_url) or target.endpoint is not None
    return is_elsewhere and not read_model(target.model).provider


def refused_kind(profile: Mapping[str, Any], media_types: Iterable[str]) -> str:
    """The first of these kinds that a model's profile does not accept; empty if it accepts all.

    >>> refused_kind({"supports_image_input": False}, ["image/png"]), refused_kind({}, ["image/png"])
    ('images', '')
    """
    for media_type in media_types:
        if media_type != PDF and not profile.get("supports_image_input", True):
            return "images"
        documents = profile.get("supported_document_media_types")
        is_taken = profile.get("supports_document_input", True)
        is_sent = profile.get("openai_chat_supports_document_input", True)
        is_listed = documents is None or PDF in documents
        if media_type == PDF and not (is_taken and is_sent and is_listed):
            return "PDFs"
    return ""
