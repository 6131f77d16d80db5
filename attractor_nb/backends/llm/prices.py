"""What model calls cost, by the price list that comes with genai-prices (extra ``llm``).

An estimate of the list price. A model that the list does not have has no price, which is not zero. The
address of a server does not count: a proxy is taken for the provider whose models it passes on.
"""

from __future__ import annotations

import importlib.util
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.model.calls.providers import PROVIDERS, known_provider
from attractor_nb.model.outcome import Usage

if TYPE_CHECKING:
    from attractor_nb.model.calls.providers import ModelName


UNLIMITED_ANSWER_TOKENS: Final = 16_384
"""Of an answer whose request sets no limit: what providers take by themselves is about that or less."""
_NEVER_USED: Final = frozenset({"web_searches_kcount", "storage_searches_kcount"})
"""Prices of what no request of ours asks a provider for."""


@cache
def has_prices() -> bool:
    """Whether a price list is installed."""
    return importlib.util.find_spec("genai_prices") is not None


def usage_of(name: ModelName, counted: Any, *, is_estimated: bool = False) -> Usage:
    """What a call consumed, with its price.

    Args:
        name: The model.
        counted: As the library counted it; tokens of its caches are part of its input tokens.
        is_estimated: The server did not say, and this is our estimate.
    """
    return Usage(
        counted.input_tokens,
        counted.output_tokens,
        price_of(name, counted),
        1,
        cached_tokens=getattr(counted, "cache_read_tokens", 0) or 0,
        estimated_calls=int(is_estimated),
    )


def price_of(name: ModelName, usage: Any) -> float | None:
    """The price of a call in USD.

    Args:
        name: The model; without a provider it has no price.
        usage: What it consumed: a ``Usage``, or whatever else has ``input_tokens``, ``output_tokens`` and,
            where they are known, tokens of caches, as pydantic-ai's ``RequestUsage`` does.

    Returns:
        The price, or None when it is not known.
    """
    found = _listed(name.model, name.provider) if name.provider and name.model and has_prices() else None
    if found is None:
        return None
    provider, model, rates = found
    read = getattr(usage, "cache_read_tokens", 0) or getattr(usage, "cached_tokens", 0)
    written = getattr(usage, "cache_write_tokens", 0)
    if rates is not None and not (read or written):
        return float((rates[0] * usage.input_tokens + rates[1] * usage.output_tokens) / 1_000_000)
    from genai_prices.types import Usage as Priced  # noqa: PLC0415 - as below

    priced = Priced(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=read or None,
        cache_write_tokens=written or None,
    )
    try:
        calculated = model.calc_price(
            priced, provider, genai_request_timestamp=datetime.now(UTC), auto_update_timestamp=None
        )
    except (LookupError, ValueError):  # counts that the list has no price for
        return None
    return float(calculated.total_price)


def worst_case(name: ModelName, input_tokens: int, max_tokens: int | None) -> Usage:
    """The most that one request can consume: its prompt by estimate, and an answer up to its limit.

    A request without a limit of its own is taken to answer with ``UNLIMITED_ANSWER_TOKENS``.
    """
    received = UNLIMITED_ANSWER_TOKENS if max_tokens is None else max_tokens
    cost = price_of(name, Usage(input_tokens, received))
    return Usage(input_tokens, received, cost, 1, estimated_calls=1)


@lru_cache(maxsize=32)
def listed_models(provider: str) -> tuple[str, ...]:
    """The models that the price list has of a provider; empty where there is no list, or it has none.

    Args:
        provider: Its name; empty for all whose models a name tells.
    """
    if not has_prices():
        return ()
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - as above

    wanted = known_provider(provider)
    found: list[str] = []
    for ours in [each for each in PROVIDERS if each is wanted or (not provider and each.models)]:
        names = {ours.name, *ours.aliases}
        listed = (each.id for entry in get_snapshot().providers if entry.id in names for each in entry.models)
        found += (model for model in listed if ours.models is None or ours.models.match(model))
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=256)
def _listed(model: str, provider: str) -> tuple[Any, Any, tuple[Decimal, Decimal] | None] | None:
    """A model's provider, the model, and its rates where they never change; None for an unlisted one."""
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - a list of a megabyte, for calls of models alone

    try:
        found_provider, found = get_snapshot().find_provider_model(model, None, provider, None)
    except (LookupError, ValueError):
        return None
    return found_provider, found, _flat_rates(found.prices)


def _flat_rates(prices: Any) -> tuple[Decimal, Decimal] | None:
    """USD for a million tokens in and out; None where time, amount or requests count for the price, too."""
    listed = {
        name: price
        for name, price in getattr(prices, "__dict__", {}).items()
        if price is not None and name not in _NEVER_USED
    }
    sent, received = listed.get("input_mtok"), listed.get("output_mtok")
    if any(not name.endswith("_mtok") for name in listed):
        return None
    return (sent, received) if isinstance(sent, Decimal) and isinstance(received, Decimal) else None
