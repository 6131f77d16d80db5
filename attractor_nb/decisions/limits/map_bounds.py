"""When no more rows of a map may be started: the bounds of all rows together. Sums come from the caller."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from attractor_nb.decisions.limits.bounds import Reached, checked_bound, counted
from attractor_nb.model.vocabulary.duration import Duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.model.outcome import Usage


class MapBounds(msgspec.Struct, frozen=True):
    """How far the rows of a map may go together. None means without end."""

    max_budget_usd_all: float | None = None  #: Cost at which no more is asked, and no more rows are started.
    max_tokens_all: int | None = None  #: The same in tokens.
    max_duration_all_seconds: float | None = None  #: Time since the call at which no more rows are started.


_BOUND_OF_A_RUN = {
    "max_budget_usd_all": "max_budget_usd",
    "max_tokens_all": "max_tokens_total",
    "max_duration_all": "max_duration_seconds",
}
MAP_BOUNDS = tuple(_BOUND_OF_A_RUN)


def map_bounds_of(given: Mapping[str, object]) -> MapBounds:
    """Bounds from the options of a map; a duration is a number of seconds, a Duration, or its text."""
    values = [
        None if given.get(name) is None else checked_bound(name, of_run, given[name])
        for name, of_run in _BOUND_OF_A_RUN.items()
    ]
    budget, tokens, seconds = values
    return MapBounds(budget, None if tokens is None else int(tokens), seconds)


def spent_by_rows(bounds: MapBounds, usage: Usage) -> Reached | None:
    """Why no row may spend more, or None when it may.

    Args:
        bounds: The bounds.
        usage: What all rows have consumed so far, those that had ended before too.
    """
    budget, cost = bounds.max_budget_usd_all, usage.cost_usd or 0.0
    if budget is not None and cost > 0 and (cost >= budget or math.isclose(cost, budget)):
        reason = f"max_budget_usd_all={budget:g} reached: ${cost:.4f} spent"
        return Reached("max_budget_usd_all", reason)
    tokens = bounds.max_tokens_all
    if tokens is not None and (total := usage.total_tokens) > 0 and total >= tokens:
        return Reached("max_tokens_all", f"max_tokens_all={tokens} reached: {counted(total, 'token')} used")
    return None


def rows_used_up(bounds: MapBounds, usage: Usage, elapsed_seconds: float) -> str:
    """Why no further row may be started, or empty when one may. Asked before each row.

    >>> from attractor_nb.model.outcome import Usage
    >>> rows_used_up(MapBounds(max_tokens_all=10), Usage(8, 4), 0.0)
    'max_tokens_all=10 reached: 12 tokens used'
    """
    if reached := spent_by_rows(bounds, usage):
        return reached.reason
    seconds = bounds.max_duration_all_seconds
    if seconds is not None and elapsed_seconds >= seconds:
        return f"max_duration_all={Duration(round(seconds * 1000))} reached: {elapsed_seconds:.1f} s have passed"
    return ""
