"""What a node asks of which models: read from its attributes and the backend's defaults (spec 2.6, 8.5).

Pure: no library, no key, no network. Stylesheet and graph have given a node their values before
(``transforms/stylesheet_application.py``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

from attractor_nb.errors import TerminalError
from attractor_nb.model.providers import (
    PROVIDER_NAMES,
    PROVIDERS,
    ModelName,
    known_provider,
    read_fallbacks,
    read_model,
)
from attractor_nb.model.spelling import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.model.graph import Node

COMPATIBLE: Final = "openai"
"""Who speaks at an address of whose provider nothing is said: most servers speak OpenAI's language."""
_NAMES: Final = ", ".join(entry.name for entry in PROVIDERS)


@dataclass(frozen=True, slots=True)
class Target:
    """One model at one place.

    Attributes:
        provider: Key of a provider that is known.
        model: The provider's own name of the model.
        base_url: Address of the server; empty for the provider's own.
    """

    provider: str
    model: str
    base_url: str = ""

    def __str__(self) -> str:
        return f"{self.provider}:{self.model}"


@dataclass(frozen=True, slots=True)
class Defaults:
    """What holds for nodes that say nothing, neither themselves nor by stylesheet and graph.

    Attributes:
        model: As ``llm_model``.
        provider: As ``llm_provider``.
        base_url: As ``llm.base_url``.
        fallback: As ``llm_fallback``.
        system_prompt: As ``llm.system_prompt``.
        temperature: As ``llm.temperature``.
        max_tokens: As ``llm.max_tokens``.
    """

    model: str = ""
    provider: str = ""
    base_url: str = ""
    fallback: str = ""
    system_prompt: str = ""
    temperature: float | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """What a node asks for.

    Attributes:
        targets: Models to ask in turn: its own, then those of ``llm_fallback``.
        effort: Reasoning effort: low, medium or high.
        is_effort_asked: Somebody wrote the effort; else it is the system's default.
        temperature: Sampling temperature, or None for the provider's.
        max_tokens: Where a response is cut off, or None for the provider's.
        system_prompt: The system prompt, or empty.
        schema: JSON Schema of an object that the response has to be, or None.
    """

    targets: tuple[Target, ...]
    effort: str
    is_effort_asked: bool
    temperature: float | None
    max_tokens: int | None
    system_prompt: str
    schema: Mapping[str, Any] | None

    def to_plain(self) -> dict[str, Any]:
        """JSON values that say what goes into a call beside its prompt; what is not asked for is left out."""
        first, *others = self.targets
        plain: dict[str, Any] = {
            "model": str(first),
            "base_url": first.base_url,
            "fallback": [str(target) for target in others],
            "reasoning_effort": self.effort,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "system_prompt": self.system_prompt,
            "response_schema": None if self.schema is None else dict(self.schema),
        }
        return {name: value for name, value in plain.items() if value not in ("", None, [])}


def read_request(node: Node, defaults: Defaults) -> Request:
    """What a node asks for.

    Raises:
        TerminalError: It names no model, or a provider or address that cannot be asked; the hint says what
            to write.
    """
    base_url = _checked_address(node, node.get("llm.base_url", str, "") or defaults.base_url)
    first = _target(node, _own_model(node, defaults), base_url)
    fallback = node.get("llm_fallback", str, "") or defaults.fallback
    temperature, max_tokens = node.get("llm.temperature", float), node.get("llm.max_tokens", int)
    others = (
        _target(node, name, base_url if _speaker(name, base_url) == first.provider else "")
        for name in read_fallbacks(fallback)
    )
    return Request(
        targets=tuple(dict.fromkeys((first, *others))),
        effort=node.reasoning_effort,
        is_effort_asked="reasoning_effort" in node.attrs,
        temperature=defaults.temperature if temperature is None else temperature,
        max_tokens=defaults.max_tokens if max_tokens is None else max_tokens,
        system_prompt=node.get("llm.system_prompt", str, "") or defaults.system_prompt,
        schema=_schema(node),
    )


def _own_model(node: Node, defaults: Defaults) -> ModelName:
    """The node's model, else the backend's; a provider without a model says nothing of which."""
    if node.llm_model:
        name = read_model(node.llm_model, node.llm_provider)
        return name if name.provider else ModelName(name.model, _canonical(defaults.provider))
    if not defaults.model:
        raise TerminalError(
            f"node {node.id!r} names no model",
            hint='write llm_model="…" on the node or the graph, or model_stylesheet="* { llm_model: …; }", '
            'or give backend=ProviderBackend("…")',
        )
    name = read_model(defaults.model, defaults.provider)
    if node.llm_provider and name.provider not in ("", _canonical(node.llm_provider)):
        raise TerminalError(
            f"node {node.id!r} names the provider {node.llm_provider!r} and no model of it",
            hint=f"write llm_model, too: the backend's own model is {name}",
        )
    return name if name.provider else ModelName(name.model, _canonical(node.llm_provider))


def _canonical(provider: str) -> str:
    known = known_provider(provider)
    return known.name if known else provider


def _speaker(name: ModelName, base_url: str) -> str:
    """Whose language is spoken with a model."""
    return name.provider or (COMPATIBLE if base_url else "")


def _target(node: Node, name: ModelName, base_url: str) -> Target:
    provider = _speaker(name, base_url)
    if not provider:
        raise TerminalError(
            f"node {node.id!r}: nobody says who provides the model {name.model!r}",
            hint=f"write llm_provider ({_NAMES}), or llm.base_url for a server of your own",
        )
    if known_provider(provider) is None:
        near = did_you_mean(provider, PROVIDER_NAMES)
        raise TerminalError(
            f"node {node.id!r}: there is no provider {provider!r}{near}",
            hint=f"one of {_NAMES}; for a server that speaks OpenAI's language write openai and llm.base_url",
        )
    owner = read_model(name.model).provider
    if owner and owner != provider and provider in _SINGLE_MAKERS and not base_url:
        raise TerminalError(
            f"node {node.id!r}: {name.model!r} is a model of {owner}, and the provider is {provider}",
            hint=f"write llm_provider={owner}, or llm_model={owner}:{name.model}",
        )
    return Target(provider, name.model, base_url)


_SINGLE_MAKERS: Final = frozenset({"openai", "anthropic", "google", "deepseek"})
"""Who provides models of their own alone."""


def _checked_address(node: Node, text: str) -> str:
    if not text:
        return ""
    try:
        parts = urlsplit(text)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number
        is_address = False
        parts = urlsplit("")
    if not is_address:
        raise TerminalError(
            f"node {node.id!r}: llm.base_url {text!r} is no address",
            hint="such as https://gateway.example/v1",
        )
    if parts.username or parts.password:
        raise TerminalError(
            f"node {node.id!r}: llm.base_url holds a user's name or password",
            hint="keys belong into the environment: see docs/models.md",
        )
    return text.rstrip("/")


def _schema(node: Node) -> Mapping[str, Any] | None:
    """The node's ``response_schema`` where a provider can be bound to it: a JSON Schema of an object."""
    try:
        found: Any = json.loads(node.get("response_schema", str, "") or "null")
    except (ValueError, RecursionError):
        return None  # reported when the response is read
    if not isinstance(found, dict):
        return None
    schema = cast("dict[str, Any]", found)
    return schema if schema.get("type") == "object" else None
