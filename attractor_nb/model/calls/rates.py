"""How much a provider may be asked in a minute. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

RATE_FIELDS: Final = ("requests_per_minute", "tokens_per_minute")


class Rates(msgspec.Struct, frozen=True):
    """Bounds of what is asked in any minute; None for no bound."""

    requests_per_minute: int | None = None  #: How many requests.
    tokens_per_minute: int | None = None  #: How many tokens, sent and received.

    def __bool__(self) -> bool:
        return self.requests_per_minute is not None or self.tokens_per_minute is not None

    def __str__(self) -> str:
        """In words.

        >>> str(Rates(60)), str(Rates(60, 30_000))
        ('60 requests a minute', '60 requests, 30,000 tokens a minute')
        """
        bounds = ((self.requests_per_minute, "requests"), (self.tokens_per_minute, "tokens"))
        bounds_text = ", ".join(f"{bound:,} {what}" for bound, what in bounds if bound is not None)
        return f"{bounds_text} a minute" if bounds_text else "no bound"


def read_rates(where: str, facts: Mapping[str, Any]) -> Rates:
    """The bounds among what is written of an endpoint or a provider.

    >>> read_rates("endpoint.local", {"requests_per_minute": "60"})
    Rates(requests_per_minute=60, tokens_per_minute=None)
    """
    return Rates(*(_count(f"{where}.{field}", facts.get(field)) for field in RATE_FIELDS))


def _count(name: str, value: object) -> int | None:
    if value is None:
        return None
    text = "" if isinstance(value, bool) else str(value).strip().replace("_", "")
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise ValueError(f"{name} {value!r} is not a count: write a whole number above 0, such as 60")
    return int(text)
