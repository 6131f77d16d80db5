"""The normal and Student's t distribution, to an accuracy of 1e-9 or better, with the standard library alone."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist


def normal_quantile(p: float) -> float:
    """The value below which a standard normal variable is with probability ``p``.

    Raises:
        ValueError: ``p`` is not between 0 and 1.

    >>> round(normal_quantile(0.975), 6)
    1.959964
    """
    if not 0 < p < 1:
        raise ValueError(f"p is {p}, and has to be between 0 and 1, for example 0.975")
    return NormalDist().inv_cdf(p)


def t_cdf(x: float, df: float) -> float:
    """The probability that a t-distributed variable is at most ``x``.

    Args:
        df: The degrees of freedom, above 0; need not be whole.

    Raises:
        ValueError: ``x`` or ``df`` is no finite number, or ``df`` is not above 0.

    >>> t_cdf(0, 5), round(t_cdf(2.262157, 9), 6)
    (0.5, 0.975)
    """
    if not (math.isfinite(x) and 0 < df < math.inf):
        raise ValueError(f"x is {x} and df is {df}: both have to be finite, and df above 0")
    tail = both_tails(x, df) / 2
    return 1 - tail if x > 0 else tail


@lru_cache(maxsize=1024)
def t_quantile(p: float, df: float) -> float:
    """The value below which a t-distributed variable is with probability ``p``.

    Args:
        df: The degrees of freedom, above 0; need not be whole.

    Raises:
        ValueError: ``p`` is not between 0 and 1, or ``df`` is not above 0 and finite.

    >>> round(t_quantile(0.975, 9), 6), round(t_quantile(0.025, 9), 6)
    (2.262157, -2.262157)
    """
    if not (0 < p < 1 and 0 < df < math.inf):
        raise ValueError(f"p is {p} and df is {df}: p has to be between 0 and 1, and df above 0 and finite")
    if p == 0.5:
        return 0.0
    tails = 2 * min(p, 1 - p)
    low, high = 0.0, 1.0
    while both_tails(high, df) > tails:
        low, high = high, 2 * high
    # Newton on the logarithm of the tails, which is nearly straight. A step that leaves the bracket halves it instead.
    scale = math.exp(-_log_beta_half(df / 2)) / math.sqrt(df)
    x = (low + high) / 2
    while high - low > 1e-15 * high:
        at_x = both_tails(x, df)
        low, high = (x, high) if at_x > tails else (low, x)
        density = scale * math.exp(-(df + 1) / 2 * math.log1p(x * x / df))
        step = at_x / (2 * density) * math.log(at_x / tails) if density and at_x else math.inf
        following = x + step if low < x + step < high else (low + high) / 2
        if abs(following - x) <= 1e-14 * x:
            x = following
            break
        x = following
    return x if p > 0.5 else -x


def both_tails(x: float, df: float) -> float:
    """The probability that a t-distributed variable is further from 0 than ``x``.

    It is the regularised incomplete beta function of df / (df + x²) with parameters df / 2 and 1 / 2.
    """
    a, ratio = df / 2, x * x / df
    if not ratio:
        return 1.0
    log_front = -a * math.log1p(ratio) + 0.5 * math.log(ratio / (1 + ratio)) - _log_beta_half(a)
    front = math.exp(log_front)
    if ratio * (a + 1) > 1.5:  # x is beyond the mean: here the fraction converges fast
        return front / a * _beta_fraction(a, 0.5, 1 / (1 + ratio))
    return 1 - front / 0.5 * _beta_fraction(0.5, a, ratio / (1 + ratio))


def _log_beta_half(a: float) -> float:
    """The logarithm of the beta function of ``a`` and 1 / 2.

    From 50 on, the series of Γ(a + 1/2) / Γ(a): a difference of two large logarithms would lose digits.
    """
    if a < 50:
        return math.lgamma(a) + 0.5 * math.log(math.pi) - math.lgamma(a + 0.5)
    series = 1 / (8 * a) - 1 / (192 * a**3) + 1 / (640 * a**5) - 17 / (14336 * a**7)
    return 0.5 * math.log(math.pi / a) + series


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, 100_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for numerator in (even, odd):
            d = 1 / (1 + numerator * d)
            c = 1 + numerator / c
            fraction *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return fraction
