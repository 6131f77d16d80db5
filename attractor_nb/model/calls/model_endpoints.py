"""Servers of models that have a name of their own: where they are, what they speak, which key goes there.

Pure. A graph names them (``endpoint.local.url="http://127.0.0.1:8080/v1"``), Python does
(``ProviderBackend(endpoints={"local": {"url": …}})``) and a settings file of the user.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec

from attractor_nb.model.calls.providers import ModelName, known_provider
from attractor_nb.model.calls.rates import RATE_FIELDS, Rates, read_rates
from attractor_nb.model.nearest_name import did_you_mean
from attractor_nb.redaction import is_secret_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PREFIX: Final = "endpoint."
_OWN_FIELDS: Final = ("url", "key_env", "api")
FIELDS: Final = (*_OWN_FIELDS, *RATE_FIELDS)
APIS: Final = ("chat", "responses")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class Endpoint(msgspec.Struct, frozen=True):
    """A server that speaks OpenAI's language; without an address: rates of a provider that is known by name."""

    name: str  #: What ``llm_provider`` calls it, and what stands before a model's name.
    url: str  #: Its address, without a slash at the end; empty for a provider.
    key_env: str = ""  #: The environment variable that holds its key; empty when it asks for none.
    api: str = "chat"  #: ``chat`` (``/chat/completions``) or ``responses``.
    rates: Rates = msgspec.field(default_factory=Rates)  #: How much it may be asked in a minute.


def address_problem(text: str) -> str:
    """Why a text is no address of a server, or empty.

    >>> address_problem("http://127.0.0.1:8080/v1"), address_problem("localhost:8080")
    ('', 'is no address')
    """
    try:
        parts = urlsplit(text)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number
        return "is no address"
    if not is_address:
        return "is no address"
    return "holds a user's name or password" if parts.username or parts.password else ""


def read_endpoint(name: str, facts: Mapping[str, Any]) -> Endpoint:
    """An endpoint from what is written of it; of a provider that is known by name its rates alone."""
    where = f"{PREFIX}{name}"
    if not _NAME.match(name):
        raise ValueError(f"endpoint {name!r} has to have a name of letters, digits, - and _")
    provider = known_provider(name)
    if provider and any(word in _OWN_FIELDS for word in facts):
        raise ValueError(
            f"{where} has the name of a provider: give the endpoint one of its own; of a provider only its "
            f"{' and '.join(RATE_FIELDS)} can be said"
        )
    for word in facts:
        if word not in FIELDS:
            raise ValueError(f"{where}.{word} is none of {', '.join(FIELDS)}{did_you_mean(word, FIELDS)}")
    rates = read_rates(where, facts)
    if provider:
        return Endpoint(provider.name, "", rates=rates)
    url, key_env, api = (str(facts.get(word, "")).strip() for word in _OWN_FIELDS)
    if not url:
        raise ValueError(f"{where}.url is missing: write the address of its server")
    if problem := address_problem(url):
        shown = f" {url!r}" if "password" not in problem else ""
        raise ValueError(f"{where}.url{shown} {problem}: write it whole, such as http://127.0.0.1:8080/v1")
    if key_env and not (_VARIABLE.match(key_env) and is_secret_name(key_env)):
        raise ValueError(
            f"{where}.key_env {key_env!r} is not called a key, and only keys are sent: name a variable "
            "such as LOCAL_API_KEY or LOCAL_TOKEN"
        )
    if api and api not in APIS:
        raise ValueError(f"{where}.api {api!r} is not one of {', '.join(APIS)}{did_you_mean(api, APIS)}")
    return Endpoint(name, url.rstrip("/"), key_env, api or "chat", rates)


def written_endpoints(attrs: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The endpoints among attributes, and what is written of each.

    >>> written_endpoints({"endpoint.local.url": "http://127.0.0.1", "label": "x"})
    {'local': {'url': 'http://127.0.0.1'}}
    """
    found: dict[str, dict[str, Any]] = {}
    for attribute, value in attrs.items():
        if attribute.startswith(PREFIX):
            name, _, field = attribute.removeprefix(PREFIX).rpartition(".")
            found.setdefault(name, {})[field] = value
    return found


def endpoint_of(model: str, provider: str, names: Iterable[str]) -> ModelName | None:
    """The model and the endpoint that ``llm_model`` and ``llm_provider`` name, or None.

    >>> endpoint_of("local:qwen3:8b", "", ["local"]), endpoint_of("gpt-5.2", "", ["local"])
    (ModelName(model='qwen3:8b', provider='local'), None)
    """
    before, colon, after = model.strip().partition(":")
    known = {name for name in names if not known_provider(name)}
    if colon and before in known:
        return ModelName(after.strip(), before)
    if provider.strip() in known and not (colon and known_provider(before)):
        return ModelName(model.strip(), provider.strip())
    return None
