"""What model calls cost, by the price list that comes with genai-prices (extra ``llm``).

An estimate of the list price. A model that the list does not have has no price, which is not zero. The
address of a server does not count: a proxy is taken for the provider whose models it passes on.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

from attractor_nb.model.outcome import Usage

if TYPE_CHECKING:
    from attractor_nb.model.providers import ModelName


def has_prices() -> bool:
    """Whether a price list is installed."""
    return importlib.util.find_spec("genai_prices") is not None


def usage_of(name: ModelName, counted: Any) -> Usage:
    """What a call consumed, with its price; a server that reports no tokens has told nothing.

    Args:
        name: The model.
        counted: As the library counted it; tokens of its caches are part of its input tokens.
    """
    if not (counted.input_tokens or counted.output_tokens):
        return Usage(calls=1)
    cached = getattr(counted, "cache_read_tokens", 0) or 0
    cost = price_of(name, counted)
    return Usage(counted.input_tokens, counted.output_tokens, cost, 1, cached_tokens=cached)


def price_of(name: ModelName, usage: Any) -> float | None:
    """The price of a call in USD.

    Args:
        name: The model; without a provider it has no price.
        usage: What it consumed: a ``Usage``, or whatever else has ``input_tokens``, ``output_tokens`` and,
            where they are known, tokens of caches, as pydantic-ai's ``RequestUsage`` does.

    Returns:
        The price, or None when it is not known.
    """
    if not name.provider or not name.model or not has_prices():
        return None
    from genai_prices import calc_price  # noqa: PLC0415 - a list of a megabyte, for calls of models alone
    from genai_prices.types import Usage as Priced  # noqa: PLC0415 - as above

    priced = Priced(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=getattr(usage, "cache_read_tokens", 0)
        or getattr(usage, "cached_tokens", 0)
        or None,
        cache_write_tokens=getattr(usage, "cache_write_tokens", 0) or None,
    )
    try:
        return float(calc_price(priced, name.model, provider_id=name.provider).total_price)
    except (LookupError, ValueError):  # a model, or counts, that the list has no price for
        return None
