"""Numbers that gates compare with: a NaN or a text would let everything pass, or fail as a foreign error."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any, cast

from attractor_nb.errors import OptionError


def gate_number(name: str, value: object, *, least: float = -math.inf) -> float:
    """A number that a gate compares with.

    Args:
        name: Its name, for the error.
        value: As the caller gives it.
        least: The smallest one that makes sense.
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value) or value < least:
        of = f" of {least:g} or more" if math.isfinite(least) else ""
        raise OptionError(f"{name} must be a number{of}, not {value!r}", hint="a number such as 0.02")
    return cast("float", value)


def gate_numbers(name: str, given: object, *, least: float = -math.inf) -> dict[str, float]:
    """Numbers by score that gates compare with; see ``gate_number``."""
    if not isinstance(given, Mapping):
        raise OptionError(
            f"{name} must be a dict of numbers by score, not {given!r}", hint=f'{name}={{"correct": 0.8}}'
        )
    numbers = cast("Mapping[Any, object]", given)
    return {score: gate_number(f'{name}["{score}"]', value, least=least) for score, value in numbers.items()}
