"""Statistics of small samples: estimates with intervals, tests of paired rows, repeats, agreement.

Pure functions over numbers. This module knows no runs, no rows and no words for a reader. It needs the standard library
alone. The only chance is a generator with a fixed seed, in ``sign_flips``.

An interval is never a bootstrap: at 10 rows and a rate of 0.9 a nominal 95 % percentile interval covers 65 %.
``tests/evaluation/statistics_table.py`` measures the coverage of each interval and the false alarms of each test.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from operator import getitem
from statistics import fmean
from typing import TYPE_CHECKING, Final

from attractor_nb.evaluation.distributions import both_tails, normal_quantile, t_quantile

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

LEVEL: Final = 0.95
"""The probability that an interval covers the true value."""
FLIPS: Final = 20_000
"""Random sign flips, where there are too many to enumerate."""
_EXACT_FLIPS: Final = 32
"""Up to this many differences, all sign flips are counted: 2**16 sums of each half."""
_FEWEST_FOR_T: Final = 30
_ROUNDING: Final = 1e-12
"""Relative to the largest value: a smaller deviation is an error of rounding."""


@dataclass(frozen=True, slots=True)
class IntervalEstimate:
    """A point estimate with its interval, in the unit of the values."""

    value: float | None  #: The point estimate; None if nothing was measured.
    low: float | None  #: The lower bound; None if it cannot be known, as from one row.
    high: float | None  #: The upper bound; None if it cannot be known.
    count: int  #: The rows behind it.
    method: str  #: The method of the interval, such as ``Wilson`` or ``t over rows``.
    groups: int = 0  #: The groups of rows behind it; 0 if rows are independent.


def share(passed: int, count: int, level: float = LEVEL) -> IntervalEstimate:
    """The share of rows that passed, with its Wilson score interval.

    The rows are independent; for repeats or other groups of rows see ``share_by_group``. The coverage depends on the
    rate: at a nominal 95 % it is 91 to 98 % for 10 to 100 rows and rates of 0.5 to 0.95.

    Raises:
        ValueError: ``passed`` is not in 0 to ``count``, or ``level`` is not between 0 and 1.

    >>> estimate = share(10, 10)
    >>> estimate.value, round(estimate.low, 2), estimate.high
    (1.0, 0.72, 1.0)
    >>> share(0, 0).value is None
    True
    """
    if not 0 <= passed <= count:
        raise ValueError(f"passed is {passed} and count is {count}: passed has to be from 0 to count")
    critical = _critical(level)
    if not count:
        return IntervalEstimate(None, None, None, 0, "Wilson")
    return IntervalEstimate(passed / count, *_wilson(passed / count, count, critical), count, "Wilson")


def mean(values: Sequence[float], groups: Sequence[Hashable] | None = None, level: float = LEVEL) -> IntervalEstimate:
    """The mean, with an interval by Student's t.

    Rows of one group (repeats, or rows from one document) may be alike. Then the variance is that of the groups' sums,
    cluster-robust by Liang and Zeger in the form CR2, with the degrees of freedom of Bell and McCaffrey. For G groups
    of one size this is the usual form, with the factor G / (G - 1) and G - 1 degrees of freedom. The usual form covers
    too little for groups of unequal size: 80 % at a nominal 95 % if one of ten groups has half of the rows.
    Of skewed values, such as costs and durations, the interval covers less: 90 % at 10 rows, 92 % at 30 (exponential).

    One row or one group says nothing about the spread, so the bounds are None. They are also None if all values are
    equal: a width of 0 would be false certainty, and nothing says how far off another row could be.

    Raises:
        ValueError: A value is NaN or infinite, ``groups`` has another length, or ``level`` is not between 0 and 1.

    >>> estimate = mean([1, 2, 3, 4])
    >>> estimate.value, round(estimate.low, 3), round(estimate.high, 3)
    (2.5, 0.446, 4.554)
    >>> mean([7, 7, 7])
    IntervalEstimate(value=7.0, low=None, high=None, count=3, method='t over rows', groups=0)
    """
    return _t_estimate(_measured("values", values, groups), groups, level)


def paired_means(
    differences: Sequence[float], groups: Sequence[Hashable] | None = None, level: float = LEVEL
) -> IntervalEstimate:
    """The mean of the differences of paired rows, with an interval by Student's t.

    The interval is that of ``mean``: its bounds are None if all differences are equal.

    Args:
        differences: For each row, the value of the variant minus that of the baseline.

    Raises:
        ValueError: A difference is NaN or infinite, ``groups`` has another length, or ``level`` is not between 0 and 1.

    >>> estimate = paired_means([0.5, 0, 0.25, 0.25])
    >>> estimate.value, round(estimate.low, 3), round(estimate.high, 3)
    (0.25, -0.075, 0.575)
    """
    return _t_estimate(_measured("differences", differences, groups), groups, level)


def share_by_group(
    passed: Sequence[bool | float], groups: Sequence[Hashable], level: float = LEVEL
) -> IntervalEstimate:
    """The share that passed, of rows of which those of one group may be alike, with a Wilson interval.

    The interval is that of as many independent rows as the groups are worth: ``count`` divided by the design effect,
    which is the cluster-robust variance (see ``mean``) over that of independent rows, and at least 1. Few failures say
    little about it. It is therefore averaged with its value for groups whose rows are all alike, which weighs as much
    as one failed row (or passed row, if these are fewer). At 0 % and 100 % only that value is left: 5 groups of 10 rows
    that all passed are worth 5 rows. At a nominal 95 % it covers 90 to 99 %, least for rows all alike at rates near 1.

    Args:
        passed: For each row True, False, or the share of its repeats that passed.
        groups: The group of each row. With one group the bounds are None.

    Raises:
        ValueError: A share is not in 0 to 1, ``groups`` has another length, or ``level`` is not between 0 and 1.

    >>> estimate = share_by_group([True] * 50, [row % 5 for row in range(50)])
    >>> estimate.value, round(estimate.low, 2), estimate.high, estimate.groups
    (1.0, 0.57, 1.0, 5)
    """
    measured = _measured("passed", passed, groups)
    critical = _critical(level)
    for position, one in enumerate(passed):
        if not 0 <= one <= 1:
            raise ValueError(f"passed[{position}] is {one}, and has to be from 0 to 1")
    if measured is None or measured.groups < 2:
        value = None if measured is None else measured.value
        return IntervalEstimate(value, None, None, len(passed), "Wilson over groups", len(passed) and 1)
    rate, count = measured.value, len(passed)
    all_alike = count * measured.concentration
    fewer = min(rate, 1 - rate) * count
    observed = max(1.0, (measured.error or 0.0) ** 2 * (count - 1) / (rate * (1 - rate))) if fewer else all_alike
    effect = (fewer * observed + all_alike) / (fewer + 1)
    return IntervalEstimate(
        rate, *_wilson(rate, count / effect, critical), count, "Wilson over groups", measured.groups
    )


def paired_shares(wins: int, losses: int, count: int, level: float = LEVEL) -> IntervalEstimate:
    """The difference of two shares of the same rows, with the interval of Bonett and Price.

    Args:
        wins: Rows that only the variant passed.
        losses: Rows that only the baseline passed.
        count: All rows, with those that both or neither passed.

    Raises:
        ValueError: ``wins`` and ``losses`` are not counts of ``count`` rows, or ``level`` is not between 0 and 1.

    >>> estimate = paired_shares(wins=9, losses=3, count=50)
    >>> estimate.value, round(estimate.low, 3), round(estimate.high, 3)
    (0.12, -0.022, 0.253)
    """
    if min(wins, losses) < 0 or wins + losses > count:
        raise ValueError(
            f"wins is {wins}, losses {losses}, count {count}: each has to be 0 or more, and count all rows"
        )
    critical = _critical(level)
    if not count:
        return IntervalEstimate(None, None, None, 0, "Bonett-Price")
    won, lost = (wins + 1) / (count + 2), (losses + 1) / (count + 2)
    reach = critical * math.sqrt((won + lost - (won - lost) ** 2) / (count + 2))
    low, high = max(-1.0, won - lost - reach), min(1.0, won - lost + reach)
    return IntervalEstimate((wins - losses) / count, low, high, count, "Bonett-Price")


def kappa(a: Sequence[Hashable], b: Sequence[Hashable], level: float = LEVEL) -> IntervalEstimate:
    """The agreement of two raters beyond chance: Cohen's kappa, with an interval by its asymptotic variance.

    ``a`` and ``b`` have the class that each rater gave to each row. 1 is full agreement and 0 that of chance. The value
    is None where it is undefined: without rows, or if both raters gave one class to all.

    The variance is that of Fleiss, Cohen and Everitt. A symmetric interval by it covers 88 % at 50 rows and a kappa of
    0.8, and has no width at full agreement. This one is Wilson's for the share of rows that agree, of as many rows as
    have that variance. At a nominal 95 % and from 30 rows it covers 93 to 97 %, and 90 % if a class is rare (10 %).
    From one row the bounds are None.

    Raises:
        ValueError: A class is NaN, the lengths differ, or ``level`` is not between 0 and 1.

    >>> estimate = kappa("yyyyynnnnn", "yyyynnnnny")
    >>> round(estimate.value, 3), round(estimate.low, 3), round(estimate.high, 3)
    (0.6, -0.02, 0.887)
    """
    _check_lengths("a", a, "b", b)
    for name, classes in (("a", a), ("b", b)):
        for position, one in enumerate(classes):
            if one != one:  # noqa: PLR0124 - only NaN differs from itself
                raise ValueError(f"{name}[{position}] is NaN, and has to be a class")
    critical, count = _critical(level), len(a)
    of_a, of_b, both = Counter(a), Counter(b), Counter(zip(a, b, strict=True))
    chance = sum(of_a[one] * of_b[one] for one in of_a) / count**2 if count else 1.0
    method = "Wilson by kappa's variance"
    if chance == 1:
        return IntervalEstimate(None, None, None, count, method)
    agreed = sum(n for (one, other), n in both.items() if one == other) / count
    value = (agreed - chance) / (1 - chance)
    if count == 1:
        return IntervalEstimate(value, None, None, count, method)
    rest = 1 - value
    terms = (
        n / count * ((1 - (of_a[one] + of_b[one]) / count * rest) ** 2)
        if one == other
        else n / count * ((of_b[one] + of_a[other]) / count * rest) ** 2
        for (one, other), n in both.items()
    )
    variance_of_agreed = (math.fsum(terms) - (value - chance * rest) ** 2) / count
    of_one_row = agreed * (1 - agreed)
    worth = of_one_row / variance_of_agreed if of_one_row and variance_of_agreed > _ROUNDING else count
    low, high = ((bound - chance) / (1 - chance) for bound in _wilson(agreed, worth, critical))
    return IntervalEstimate(value, max(-1.0, low), high, count, method)


def mcnemar(wins: int, losses: int) -> float:
    """The two-sided p-value of McNemar's exact test: whether the rows that two variants decide differently favour one.

    Args:
        wins: Rows that only the variant passed.
        losses: Rows that only the baseline passed.

    Raises:
        ValueError: A count is negative.

    >>> mcnemar(6, 0), mcnemar(5, 5), mcnemar(0, 0)
    (0.03125, 1.0, 1.0)
    """
    if min(wins, losses) < 0:
        raise ValueError(f"wins is {wins} and losses is {losses}: both have to be 0 or more")
    count, fewer = wins + losses, min(wins, losses)
    # The binomial coefficients from the largest down, as exact integers, until what is left cannot change the result.
    term = total = math.comb(count, fewer)
    for number in range(fewer, 0, -1):
        term = term * number // (count - number + 1)
        total += term
        if term < total >> 80:
            break
    return min(1.0, 2 * total / 2**count)


def fisher(a: int, of_a: int, b: int, of_b: int) -> float:
    """The two-sided p-value of Fisher's exact test: ``a`` of ``of_a`` rows beside ``b`` of ``of_b`` other rows.

    Raises:
        ValueError: ``a`` is not in 0 to ``of_a``, or ``b`` is not in 0 to ``of_b``.

    >>> round(fisher(8, 10, 1, 6), 4)
    0.035
    """
    if not (0 <= a <= of_a and 0 <= b <= of_b):
        raise ValueError(f"a is {a} of {of_a} and b is {b} of {of_b}: each has to be from 0 to all of its rows")
    both = a + b
    lowest, highest = max(0, both - of_b), min(of_a, both)
    weight = math.comb(of_a, lowest) * math.comb(of_b, both - lowest)
    weights = [weight]
    for x in range(lowest, highest):
        weight = weight * (of_a - x) * (both - x) // ((x + 1) * (of_b - both + x + 1))
        weights.append(weight)
    own = weights[a - lowest]
    return sum(weight for weight in weights if weight <= own) / sum(weights)


def paired_t(differences: Sequence[float], groups: Sequence[Hashable] | None = None) -> float:
    """The two-sided p-value of the paired t-test: whether the mean of the differences is 0.

    With groups it is the cluster-robust test (see ``mean``). If the differences do not vary, t is undefined: the value
    is then that of sign flips, 2**(1 - rows) or 2**(1 - groups). It is 1 if the mean is 0, and without rows.

    Raises:
        ValueError: A difference is NaN or infinite, or ``groups`` has another length.

    >>> round(paired_t([1, 2, 3, 4]), 4), paired_t([0.5, 0.5, 0.5]), paired_t([0.5])
    (0.0305, 0.25, 1.0)
    """
    measured = _measured("differences", differences, groups)
    if measured is None or not measured.value:
        return 1.0
    if measured.error is None:
        return 2.0 ** (1 - measured.groups)
    return both_tails(measured.value / measured.error, measured.df)


def sign_flips(differences: Sequence[float], seed: int = 0) -> float:
    """The two-sided p-value of the permutation test of paired rows: how many choices of signs reach the observed sum.

    Under its null hypothesis each difference is as likely as its opposite. Up to 32 differences other than 0 all
    choices are counted. Beyond, 20,000 are drawn with a fixed seed, and the observed one is counted with them.

    Raises:
        ValueError: A difference is NaN or infinite.

    >>> sign_flips([1, 2, 3, 4, 5, 6]), sign_flips([1, -1]), sign_flips([])
    (0.03125, 1.0, 1.0)
    """
    check_finite("differences", differences)
    sizes = [abs(float(one)) for one in differences if one]
    reached_at = abs(math.fsum(differences)) - _ROUNDING * math.fsum(sizes)
    if reached_at <= 0:
        return 1.0
    if len(sizes) <= _EXACT_FLIPS:
        half, other_half = _signed_sums(sizes[::2]), sorted(_signed_sums(sizes[1::2]))
        reached = sum(len(other_half) - bisect_left(other_half, reached_at - one) for one in half)
        return 2 * reached / 2 ** len(sizes)
    sizes += [0.0] * (-len(sizes) % 8)
    bounds = range(0, len(sizes) + 1, 8)
    blocks = [_signed_sums(sizes[start:end]) for start, end in pairwise(bounds)]  # each by the signs as bits of a byte
    chance = random.Random(seed)  # noqa: S311 - draws a sample, no secret
    drawn = (sum(map(getitem, blocks, chance.randbytes(len(blocks)))) for _ in range(FLIPS))
    return (sum(abs(one) >= reached_at for one in drawn) + 1) / (FLIPS + 1)


def paired_test(differences: Sequence[float], groups: Sequence[Hashable] | None = None) -> tuple[float, str]:
    """The two-sided p-value of paired rows, and the name of the test that fits their number.

    Below 30 differences other than 0 it is ``sign flips``, from there ``paired t``: with few of them the t-test has too
    many false alarms, however many zeros are added. With groups the signs of whole groups are flipped, below 30 groups
    whose sum is not 0; from there it is the cluster-robust t-test.

    Raises:
        ValueError: A difference is NaN or infinite, or ``groups`` has another length.

    >>> paired_test([1, 2, 3, 4, 5, 6])
    (0.03125, 'sign flips')
    >>> paired_test([1, 2, 3, 4, 5, 6], groups="aabbcc")
    (0.25, 'sign flips of groups')
    """
    check_finite("differences", differences)
    of_groups = "" if groups is None else " of groups"
    sums = differences if groups is None else [math.fsum(one) for one in _grouped(differences, groups)]
    if sum(map(bool, sums)) < _FEWEST_FOR_T:
        return sign_flips(sums), f"sign flips{of_groups}"
    return paired_t(differences, groups), f"paired t{of_groups}"


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values of several tests, adjusted by Holm so that the chance of any false alarm keeps the level.

    Raises:
        ValueError: A p-value is not in 0 to 1.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    for position, p in enumerate(p_values):
        if not 0 <= p <= 1:
            raise ValueError(f"p_values[{position}] is {p}, and has to be from 0 to 1")
    adjusted, so_far = [0.0] * len(p_values), 0.0
    for rank, position in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        so_far = max(so_far, min(1.0, (len(p_values) - rank) * p_values[position]))
        adjusted[position] = so_far
    return adjusted


def smallest_visible_share(count: int, discordant: float, level: float = LEVEL, power: float = 0.8) -> float | None:
    """The smallest difference of two shares that McNemar's exact test finds with probability ``power``.

    It is the normal approximation with a correction for continuity, and does not promise too much: the exact test finds
    the announced difference in 80 to 93 % of cases (96 % with 6 rows) if ``power`` is 0.8.

    Args:
        count: The number of paired rows.
        discordant: The share of rows that only one of the two variants passes. A larger difference needs more of them:
            then all are wins.
        level: 1 minus the share of false alarms.
        power: The share of cases in which the difference is found.

    Returns:
        None if not even a difference of 1 can be seen, as with 5 rows.

    Raises:
        ValueError: ``count`` is negative, or another argument is no share.

    >>> round(smallest_visible_share(50, discordant=0.2), 2), smallest_visible_share(5, discordant=0.2)
    (0.19, None)
    """
    if count < 0 or not 0 <= discordant <= 1:
        raise ValueError(
            f"count is {count} and discordant {discordant}: count has to be 0 or more, discordant from 0 to 1"
        )
    alarm, found = _critical(level), normal_quantile(power)

    def is_visible(difference: float) -> bool:
        decided = max(discordant, difference)
        noise = alarm * math.sqrt(decided) + found * math.sqrt(decided - difference**2)
        return count * difference - 1 >= math.sqrt(count) * noise

    if not is_visible(1.0):
        return None
    low, high = 0.0, 1.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (low, middle) if is_visible(middle) else (middle, high)
    return high


def smallest_visible_mean(differences: Sequence[float], level: float = LEVEL, power: float = 0.8) -> float | None:
    """The smallest mean difference that a second sample of as many rows shows with probability ``power``.

    It is in the unit of the differences, for ``paired_test`` on independent rows, and allows for chance in the spread
    of both samples. Below 30 rows it uses the level that sign flips can reach: the p-value of n rows is a multiple of
    2**(1 - n). From 7 rows 75 to 80 % of such differences are found if ``power`` is 0.8, with 6 rows 70 %.

    Returns:
        None if the differences do not vary, or if there are too few rows for any difference, as with 5.

    Raises:
        ValueError: A difference is NaN or infinite, or ``level`` or ``power`` is not between 0 and 1.

    >>> round(smallest_visible_mean([0.3, -0.1, 0.2, 0.1, -0.2, 0.4, 0, 0.1]), 2)
    0.26
    """
    measured, count = _measured("differences", differences, None), len(differences)
    _critical(level)
    normal_quantile(power)
    if measured is None or measured.error is None:
        return None
    alarms = 1 - level
    if count < _FEWEST_FOR_T:
        alarms = math.floor(alarms * 2 ** (count - 1)) / 2 ** (count - 1)
    if not alarms:
        return None
    alarm = t_quantile(1 - alarms / 2, measured.df)
    return (alarm + t_quantile(power, measured.df) * math.sqrt(1 + alarm**2 / measured.df)) * measured.error


@dataclass(frozen=True, slots=True)
class _Measured:
    """A mean and its cluster-robust standard error; a row without a group is a group of its own."""

    value: float
    error: float | None  #: None if there is one group, or if the groups do not vary.
    df: float
    groups: int
    concentration: float  #: The sum of the squared shares of the groups: 1 / groups if they have one size.
    count: int


def _measured(name: str, values: Sequence[float], groups: Sequence[Hashable] | None) -> _Measured | None:
    """The mean of values, None without values.

    A group has the share h of the rows and the sum S of residuals. The variance is the sum of S² / (1 - h) over
    count²; the degrees of freedom are those of Bell and McCaffrey, which have a closed form for a mean.
    """
    check_finite(name, values)
    grouped = _grouped(values, range(len(values)) if groups is None else groups)
    if not (count := len(values)):
        return None
    _, exponent = math.frexp(max(map(abs, values)))  # a power of two: squares neither overflow nor vanish
    centre = fmean(math.ldexp(one, -exponent) for one in values)
    value = math.ldexp(centre, exponent)
    shares = [len(own) / count for own in grouped]
    concentration = math.fsum(h * h for h in shares)
    if len(grouped) < 2:
        return _Measured(value, None, 0.0, len(grouped), concentration, count)
    residuals = [math.fsum(math.ldexp(one, -exponent) - centre for one in own) for own in grouped]
    error = math.sqrt(math.fsum(s * s / (1 - h) for s, h in zip(residuals, shares, strict=True))) / count
    unequal = [h * h / (1 - h) for h in shares]
    df = 1 / (concentration + math.fsum(unequal) ** 2 - math.fsum(a * a for a in unequal))
    known_error = math.ldexp(error, exponent) if error > _ROUNDING else None
    return _Measured(value, known_error, df, len(grouped), concentration, count)


def _t_estimate(measured: _Measured | None, groups: Sequence[Hashable] | None, level: float) -> IntervalEstimate:
    _critical(level)
    method = "t over rows" if groups is None else "t over groups"
    if measured is None:
        return IntervalEstimate(None, None, None, 0, method)
    number = 0 if groups is None else measured.groups
    if measured.error is None:
        return IntervalEstimate(measured.value, None, None, measured.count, method, number)
    reach = t_quantile((1 + level) / 2, measured.df) * measured.error
    low, high = measured.value - reach, measured.value + reach
    return IntervalEstimate(measured.value, low, high, measured.count, method, number)


def _wilson(rate: float, count: float, critical: float) -> tuple[float, float]:
    """The Wilson score interval of a rate; the count need not be whole."""
    extra = critical**2 / count
    centre = (rate + extra / 2) / (1 + extra)
    reach = math.sqrt(extra * rate * (1 - rate) + extra**2 / 4) / (1 + extra)
    return (max(0.0, centre - reach) if rate else 0.0), (min(1.0, centre + reach) if rate < 1 else 1.0)


def _critical(level: float) -> float:
    """The two-sided critical value of the normal distribution."""
    if not 0 < level < 1:
        raise ValueError(f"level is {level}, and has to be between 0 and 1, for example 0.95")
    return normal_quantile((1 + level) / 2)


def _signed_sums(sizes: Sequence[float]) -> list[float]:
    """The sums of numbers with each choice of signs; bit i of a sum's index is the sign of number i."""
    sums = [0.0]
    for size in sizes:
        sums = [one + size for one in sums] + [one - size for one in sums]
    return sums


def _grouped(values: Sequence[float], groups: Sequence[Hashable]) -> list[list[float]]:
    _check_lengths("values", values, "groups", groups)
    members: defaultdict[Hashable, list[float]] = defaultdict(list)
    for one, group in zip(values, groups, strict=True):
        members[group].append(one)
    return list(members.values())


def check_finite(name: str, values: Sequence[float]) -> None:
    """Raise ValueError for a value that is NaN or infinite."""
    for position, one in enumerate(values):
        if not math.isfinite(one):
            raise ValueError(
                f"{name}[{position}] is {one}, and has to be a finite number: leave out what was not measured"
            )


def _check_lengths(name: str, values: Sequence[object], other: str, other_values: Sequence[object]) -> None:
    if len(values) != len(other_values):
        raise ValueError(
            f"{other} has {len(other_values)} entries, and has to have one for each of {len(values)} {name}"
        )
