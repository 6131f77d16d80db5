"""Repeats of rows: what several runs of one row say, as pure functions over numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from attractor_nb.evaluation.statistics import check_finite

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Spread:
    """The variances of repeated measurements, in the square of their unit."""

    between: float  #: The variance of the rows' true means.
    within: float  #: The variance of the repeats of one row.
    rows: int  #: The rows with a value.
    repeats: float  #: The mean number of repeats of a row.


def pass_at_k(passed: int, tries: int, k: int) -> float:
    """The probability that at least one of ``k`` tries passes, estimated without bias from ``tries`` repeats of a row.

    Raises:
        ValueError: ``passed`` is not in 0 to ``tries``, or ``k`` is not in 1 to ``tries``.

    >>> pass_at_k(passed=1, tries=4, k=2)
    0.5
    """
    _check_tries(passed, tries, k)
    return 1 - math.comb(tries - passed, k) / math.comb(tries, k)


def pass_hat_k(passed: int, tries: int, k: int) -> float:
    """The probability that all of ``k`` tries pass, estimated without bias from ``tries`` repeats of a row.

    Raises:
        ValueError: ``passed`` is not in 0 to ``tries``, or ``k`` is not in 1 to ``tries``.

    >>> pass_hat_k(passed=3, tries=4, k=2)
    0.5
    """
    _check_tries(passed, tries, k)
    return math.comb(passed, k) / math.comb(tries, k)


def flip_rate(rows: Sequence[Sequence[bool]]) -> float | None:
    """The share of pairs of repeats of one row that disagree: the mean over the rows with two repeats or more.

    Returns:
        None if no row has two repeats.

    >>> flip_rate([[True, True], [True, False], [True]])
    0.5
    """
    rates: list[float] = []
    for repeats in rows:
        if (tries := len(repeats)) > 1:
            passed = sum(map(bool, repeats))
            rates.append(passed * (tries - passed) / math.comb(tries, 2))
    return fmean(rates) if rates else None


def spread(rows: Sequence[Sequence[float]]) -> Spread | None:
    """The variance between rows and that of the repeats of one row, which say whether more rows or more repeats help.

    The variance of a mean over R rows of k repeats is ``between / R + within / (R * k)``. The repeats' noise adds to
    the variance of the row means; ``between`` is without it, and not below 0.

    Returns:
        None with fewer than two rows, or if no row has two repeats.

    Raises:
        ValueError: A value is NaN or infinite.

    >>> spread([[1, 3], [5, 7], [3, 5]])
    Spread(between=3.0, within=2.0, rows=3, repeats=2.0)
    """
    for number, repeats in enumerate(rows):
        check_finite(f"rows[{number}]", repeats)
    measured = [repeats for repeats in rows if len(repeats)]
    count, values = len(measured), sum(map(len, measured))
    if count < 2 or values == count:
        return None
    means = [fmean(repeats) for repeats in measured]
    centre = fmean(means)
    deviations = ((one - own) ** 2 for repeats, own in zip(measured, means, strict=True) for one in repeats)
    within = math.fsum(deviations) / (values - count)
    of_means = math.fsum((own - centre) ** 2 for own in means) / (count - 1)
    noise = within * fmean(1 / len(repeats) for repeats in measured)
    return Spread(max(0.0, of_means - noise), within, count, values / count)


def _check_tries(passed: int, tries: int, k: int) -> None:
    if not (0 <= passed <= tries and 1 <= k <= tries):
        raise ValueError(
            f"passed is {passed}, tries {tries}, k {k}: passed has to be from 0 to tries, k from 1 to tries"
        )
