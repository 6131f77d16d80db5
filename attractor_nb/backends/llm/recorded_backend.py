"""What a run records of a backend, and how another process reads it again: no keys, only their variables.

It makes no backend, and asks nobody.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import msgspec

from attractor_nb.backends.llm.addresses import address_variables
from attractor_nb.backends.llm.model_requests import RequestDefaults, read_request
from attractor_nb.decisions.planning.model_choices import nodes_that_ask
from attractor_nb.errors import OptionError, TerminalError
from attractor_nb.model.calls.model_endpoints import Endpoint, read_endpoint
from attractor_nb.model.record import plain_value
from attractor_nb.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from attractor_nb.model.graph import Graph


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
    """What nodes have that do not say, as it was recorded."""
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
            continue  # it asks nobody
        for target in targets:
            if target.endpoint is None and not target.base_url:
                for name in address_variables(target):
                    yield name, os.environ.get(name, "").strip()
