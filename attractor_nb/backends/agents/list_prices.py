"""What the tokens of an agent that tells no price cost, by the price list of the extra ``llm``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.model.calls.providers import ModelName, read_model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attractor_nb.backends.agents.agent_events import Tokens


def listed_price(provider: str, model: str, tokens: Sequence[Tokens]) -> float | None:
    """The list price in USD; None where the price of any part is not known.

    Args:
        provider: Whose models they are.
        model: The model of tokens that name none; empty when nobody knows it.
        tokens: What was consumed.
    """
    from attractor_nb.backends.llm.prices import price_of  # noqa: PLC0415 - agents need no library of models

    prices = [price_of(priced_model(provider, part.model or model), part) for part in tokens]
    known = [price for price in prices if price is not None]
    return sum(known) if known and len(known) == len(prices) else None


def priced_model(provider: str, model: str) -> ModelName:
    """The model as the price list names it: an agent asks its own maker's, whatever provider was written."""
    return ModelName(read_model(model).model, provider)
