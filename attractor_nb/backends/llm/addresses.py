"""Addresses and keys of providers, from the environment and ``endpoints.toml``.

A table for each: ``[local]``, ``url = "http://127.0.0.1:8080/v1"``, ``key_env = "LOCAL_API_KEY"``; and for a
provider that is known by name, for its rates: ``[openai]``, ``requests_per_minute = 500``.
"""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from attractor_nb.backends.llm.model_requests import RequestDefaults, Target, read_request
from attractor_nb.decisions.planning.model_choices import nodes_that_ask
from attractor_nb.errors import OptionError, TerminalError
from attractor_nb.given_files import read_file
from attractor_nb.model.calls.providers import Endpoint, known_provider, read_endpoint
from attractor_nb.model.record import plain_value
from attractor_nb.model.vocabulary import environment_variables
from attractor_nb.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from attractor_nb.model.graph import Graph


NO_KEY: Final = "no-key"
"""Key for the user's own server that needs none: the clients require one."""

FILE_NAME: Final = "endpoints.toml"
MAX_BYTES: Final = 1 << 20


def address_of(target: Target) -> str:
    """The address of a target: its own, the environment's or the provider's; empty for the official one."""
    if target.endpoint is not None:
        return target.endpoint.url
    known = known_provider(target.provider)
    return target.base_url or _set_address(target.provider) or (known.url if known else "")


def address_variables(target: Target) -> tuple[str, ...]:
    """The environment variables that say where a provider is, and in which region or project of it."""
    known = known_provider(target.provider)
    return (*filter(None, (known.address,)), *known.settings) if known else ()


def _set_address(provider: str) -> str:
    """The address that the user gave a provider by its own variable, or empty."""
    known = known_provider(provider)
    return os.environ.get(known.address, "").strip() if known and known.address else ""


def public_address_of(target: Target) -> str:
    """The same, and for the official address what that is; empty when it is unknown."""
    known = known_provider(target.provider)
    return address_of(target) or (known.official_url if known else "")


def key_variables(target: Target) -> tuple[str, ...]:
    """The environment variables that can hold the key that a target gets.

    A provider's key goes to the provider's own address, or to the one that its own variable names
    (``OPENAI_BASE_URL``); that of an endpoint is named by ``key_env``. An address beside a model gets none.
    """
    if target.endpoint is not None:
        return (target.endpoint.key_env,) if target.endpoint.key_env else ()
    known = known_provider(target.provider)
    if known is None:
        return ()
    own = (_set_address(target.provider), known.url, known.official_url)
    is_own = not target.base_url or any(target.base_url == place.rstrip("/") for place in own)
    return known.keys if is_own else ()


def set_key(target: Target) -> tuple[str, str] | None:
    """The variable that holds the key that a target gets, and the key; None when none is set."""
    for name in key_variables(target):
        if key := os.environ.get(name, "").strip():
            return name, key
    return None


def unset(target: Target) -> tuple[str, ...]:
    """The environment variables without which a target cannot be asked, and that are not set."""
    known = known_provider(target.provider)
    if known is None or target.endpoint is not None:
        return ()
    is_placed = not known.address or known.is_placed or bool(target.base_url)
    wanted = known.settings if is_placed else (known.address, *known.settings)
    return tuple(name for name in wanted if not os.environ.get(name, "").strip())


def needs_key(target: Target, address: str) -> bool:
    """True if a target cannot be asked without a key: at an address that the user set it may."""
    known = known_provider(target.provider)
    if not key_variables(target) or (known is not None and known.is_signed_in):
        return False
    if known is not None and known.address and not known.is_placed and not target.base_url:
        return True
    return target.endpoint is not None or not address or (known is not None and address == known.url)


def settings_file() -> Path | None:
    """The file of the user's endpoints. None if the user has no home."""
    if given := os.environ.get(environment_variables.CONFIG_DIR):
        return Path(os.path.expanduser(given)) / FILE_NAME  # noqa: PTH111 - without a home it stays as it is
    base = os.environ.get(environment_variables.CONFIG_HOME, "")
    try:
        folder = Path(base) if Path(base).is_absolute() else Path.home() / ".config"
    except RuntimeError:
        return None
    return folder / "attractor_nb" / FILE_NAME


def users_endpoints() -> dict[str, Endpoint]:
    """The endpoints of the user's file; none when there is no file."""
    file = settings_file()
    if file is None:
        return {}
    try:
        tables = tomllib.loads(read_file(file, max_bytes=MAX_BYTES, is_optional=True))
    except (ValueError, RecursionError) as error:
        raise OptionError(f"{file} cannot be read: {error}", hint="correct the file, or remove it") from None
    return endpoints_from(tables, str(file))


def endpoints_from(tables: Mapping[str, Any], where: str) -> dict[str, Endpoint]:
    """Endpoints by name.

    Args:
        tables: What is written of each: its fields, or an ``Endpoint``.
        where: Who wrote it, for messages.
    """
    found: dict[str, Endpoint] = {}
    for name, facts in tables.items():
        if isinstance(facts, Endpoint):
            found[name] = facts
            continue
        if not isinstance(facts, dict):
            raise OptionError(f"{where}: {name} is not an endpoint", hint=f'such as [{name}] with url = "https://…"')
        try:
            endpoint = read_endpoint(name, cast("dict[str, Any]", facts))
            found[endpoint.name] = endpoint
        except ValueError as error:
            raise OptionError(f"{where}: {error}", hint="see docs/models.md") from None
    return found


# The record of a backend in a run, from which another process rebuilds it: no keys, only their variables.


def recorded_facts(defaults: RequestDefaults, limits: Mapping[str, Any], graph: Graph) -> dict[str, Any]:
    """A backend as JSON values; only that it holds something secret, where it does.

    Args:
        defaults: What its nodes have that do not say.
        limits: Its bounds, by the names of its parameters.
        graph: What runs: addresses that its providers have from the environment are part of it.
    """
    options: dict[str, Any] = msgspec.to_builtins(defaults, enc_hook=plain_value)
    facts = {
        "options": {name: value for name, value in options.items() if value not in ("", None, {})},
        "limits": limits,
        "addresses": dict(sorted(_set_addresses(graph, defaults))),
    }
    text = json.dumps(facts)
    return json.loads(text) if redacted(text) == text else {"is_secret": True}


def check_recorded(facts: Mapping[str, Any]) -> None:
    """Make sure that what was recorded can be asked again, at the addresses that it had."""
    if facts.get("is_secret"):
        raise OptionError(
            "this run's backend was given something secret, which is not recorded",
            hint="resume(…, backend=…) with the same",
        )
    for name, address in facts["addresses"].items():
        now = os.environ.get(name, "").strip()
        if now != address:
            was = f"was {address}" if address else "was not set"
            raise OptionError(
                f"{name} is {now or 'not set'}, and {was} when this run was started",
                hint="restore it, or pass resume(…, backend=…) to use other servers",
            )


def recorded_defaults(facts: Mapping[str, Any]) -> RequestDefaults:
    """The recorded defaults of nodes."""
    options = dict(facts["options"])
    endpoints: dict[str, dict[str, Any]] = options.pop("endpoints", {})
    try:
        read = {name: _recorded_endpoint(name, at) for name, at in endpoints.items()}
    except ValueError as error:
        raise OptionError(
            f"the manifest of this run records no endpoint: {error}", hint="resume(…, backend=…) with your own"
        ) from None
    return RequestDefaults(**options, endpoints=read)


def _recorded_endpoint(name: str, at: Mapping[str, Any]) -> Endpoint:
    """An endpoint under the checks of one that is written anew: only keys are sent, and only to addresses."""
    fields = {field: at[field] for field in ("url", "key_env", "api") if at["url"]}
    return read_endpoint(name, {**fields, **{rate: count for rate, count in at["rates"].items() if count is not None}})


def _set_addresses(graph: Graph, defaults: RequestDefaults) -> Iterator[tuple[str, str]]:
    """The environment's variables of addresses that the providers of a graph go by."""
    for child in graph.children.values():
        yield from _set_addresses(child, defaults)
    for node in nodes_that_ask(graph):
        try:
            targets = read_request(node, defaults).targets
        except TerminalError:
            continue  # it asks no one
        for target in targets:
            if target.endpoint is None and not target.base_url:
                for name in address_variables(target):
                    yield name, os.environ.get(name, "").strip()
