"""Simulations of the statistics of evaluations: what intervals cover, what tests find, and the table of both.

The tests of the statistics assert what the table shows: both call ``measured``.

Usage: python -m tests.evaluation.statistics_table
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import product

from attractor_nb.evaluation.statistics import (
    LEVEL,
    IntervalEstimate,
    holm,
    kappa,
    mcnemar,
    mean,
    paired_means,
    paired_shares,
    paired_test,
    share,
    share_by_group,
    smallest_visible_mean,
    smallest_visible_share,
)

TIMES = 2_000
RESAMPLES = 2_000
ALARM = 0.05
INTERVAL, BOOTSTRAP, FALSE_ALARM, FOUND = "covered", "covered by a bootstrap", "false alarms", "found"
NOMINAL = {INTERVAL: "95 %", BOOTSTRAP: "95 %", FALSE_ALARM: "at most 5 %", FOUND: "80 %"}


@dataclass(frozen=True)
class Setting:
    """A situation that is simulated: ``once`` makes data by chance, and says whether the interval or the test did it."""

    kind: str
    of: str  #: The function that is measured.
    data: str
    once: Callable[[random.Random], bool]


def percent(part: float, digits: int = 0) -> str:
    return f"{100 * part:.{digits}f} %"


@cache
def measured(setting: Setting) -> float:
    """The share of simulations in which it did; the same on each call."""
    chance = random.Random(f"{setting.of}: {setting.data}")
    return sum(setting.once(chance) for _ in range(TIMES)) / TIMES


def statistics_table() -> str:
    """The Markdown table of all settings."""
    lines = ["| of 2,000 simulations | function | data | nominal | measured |", "| --- | --- | --- | --- | --- |"]
    for one in SETTINGS:
        cells = (one.kind, f"`{one.of}`", one.data, NOMINAL[one.kind], percent(measured(one), 1))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def covers(estimate: IntervalEstimate, truth: float) -> bool:
    # Without bounds an interval claims nothing; it counts as one that misses.
    return estimate.low is not None and estimate.low <= truth <= estimate.high


def count_below(chance: random.Random, rate: float, rows: int) -> int:
    return sum(chance.random() < rate for _ in range(rows))


# Intervals


def share_covers(rows: int, rate: float, chance: random.Random) -> bool:
    return covers(share(count_below(chance, rate, rows), rows), rate)


def mean_covers(rows: int, draw: Callable[[random.Random], float], truth: float, chance: random.Random) -> bool:
    return covers(mean([draw(chance) for _ in range(rows)]), truth)


def normal(chance: random.Random) -> float:
    return chance.gauss(0, 1)


def skewed(chance: random.Random) -> float:
    return chance.expovariate(1)


def score(chance: random.Random) -> float:
    return chance.choice((0.0, 0.25, 0.5, 0.75, 1.0, 1.0, 1.0, 1.0))


def paired_means_cover(rows: int, chance: random.Random) -> bool:
    hardness = [chance.gauss(0, 1) for _ in range(rows)]
    pairs = [(one + chance.gauss(0.2, 0.5), one + chance.gauss(0, 0.5)) for one in hardness]
    return covers(paired_means([variant - baseline for variant, baseline in pairs]), 0.2)


def wins_and_losses(rows: int, discordant: float, difference: float, chance: random.Random) -> tuple[int, int]:
    wins = losses = 0
    for _ in range(rows):
        drawn = chance.random()
        wins += drawn < (discordant + difference) / 2
        losses += (discordant + difference) / 2 <= drawn < discordant
    return wins, losses


def paired_shares_cover(rows: int, discordant: float, difference: float, chance: random.Random) -> bool:
    return covers(paired_shares(*wins_and_losses(rows, discordant, difference, chance), rows), difference)


def sizes_of(shape: str, groups: int) -> list[int]:
    if shape == "5 rows each":
        return [5] * groups
    if shape == "1 to 13 rows":
        return [1 + 7 * number % 13 for number in range(groups)]
    return [3 * (groups - 1), *[3] * (groups - 1)]  # half of the rows in one group


def grouped_normal(sizes: list[int], alike: float, chance: random.Random) -> tuple[list[float], list[int]]:
    values, groups = [], []
    for group, size in enumerate(sizes):
        shared = chance.gauss(0, alike**0.5)
        values += [shared + chance.gauss(0, (1 - alike) ** 0.5) for _ in range(size)]
        groups += [group] * size
    return values, groups


def grouped_mean_covers(sizes: list[int], alike: float, chance: random.Random) -> bool:
    return covers(mean(*grouped_normal(sizes, alike, chance)), 0)


def grouped_share_covers(sizes: list[int], rate: float, alike: float, chance: random.Random) -> bool:
    passed, groups = [], []
    for group, size in enumerate(sizes):
        if 0 < alike < 1:
            known = 1 / alike - 1
            own = chance.betavariate(rate * known, (1 - rate) * known)
        else:
            own = float(chance.random() < rate) if alike else rate
        passed += [chance.random() < own for _ in range(size)]
        groups += [group] * size
    return covers(share_by_group(passed, groups), rate)


def kappa_covers(rows: int, rare: float, agreement: float, chance: random.Random) -> bool:
    # The second rater copies the first in that share of rows, and else draws by the same rates: kappa is the share.
    first = [chance.random() < rare for _ in range(rows)]
    second = [one if chance.random() < agreement else chance.random() < rare for one in first]
    return covers(kappa(first, second), agreement)


@cache
def bootstrap_bounds(passed: int, rows: int) -> tuple[float, float]:
    chance = random.Random(0)
    rates = sorted(count_below(chance, passed / rows, rows) / rows for _ in range(RESAMPLES))
    return rates[round(RESAMPLES * (1 - LEVEL) / 2)], rates[round(RESAMPLES * (1 + LEVEL) / 2) - 1]


def bootstrap_covers(rows: int, rate: float, chance: random.Random) -> bool:
    low, high = bootstrap_bounds(count_below(chance, rate, rows), rows)
    return low <= rate <= high


# Tests


def mcnemar_finds(rows: int, discordant: float, difference: float, chance: random.Random) -> bool:
    return mcnemar(*wins_and_losses(rows, discordant, difference, chance)) <= ALARM


def paired_test_finds(rows: int, draw: Callable[[random.Random], float], chance: random.Random) -> bool:
    return paired_test([draw(chance) for _ in range(rows)])[0] <= ALARM


def rarely_another(chance: random.Random) -> float:
    return chance.choice((-1.0, 1.0)) if chance.random() < 0.05 else 0.0


def grouped_test_finds(sizes: list[int], alike: float, chance: random.Random) -> bool:
    return paired_test(*grouped_normal(sizes, alike, chance))[0] <= ALARM


def holm_finds(rows: int, chance: random.Random) -> bool:
    baseline = [chance.gauss(0, 1) for _ in range(rows)]
    variants = [[chance.gauss(0, 1) - one for one in baseline] for _ in range(3)]
    return min(holm([paired_test(differences)[0] for differences in variants])) <= ALARM


def visible_share_found(rows: int, discordant: float, chance: random.Random) -> bool:
    announced = smallest_visible_share(rows, discordant)
    assert announced is not None
    return mcnemar_finds(rows, max(discordant, announced), announced, chance)


def visible_mean_found(rows: int, chance: random.Random) -> bool:
    # One sample announces, another of the same size is tested: its mean is what the first announced.
    announced = smallest_visible_mean([chance.gauss(0, 1) for _ in range(rows)])
    assert announced is not None
    return paired_test([chance.gauss(announced, 1) for _ in range(rows)])[0] <= ALARM


def _shares() -> Iterator[Setting]:
    for rate in (0.5, 0.9, 0.95):
        for rows in (10, 30, 100):
            yield Setting(INTERVAL, "share", f"{rows} rows, rate {rate}", partial(share_covers, rows, rate))
    for rate in (0.9, 0.95):
        data = f"10 rows, rate {rate}"
        yield Setting(BOOTSTRAP, "share", f"{data}, percentiles", partial(bootstrap_covers, 10, rate))
    for rate, alike in product((0.5, 0.9, 0.95), (0, 0.3, 1)):
        for groups, shape in ((10, "5 rows each"), (20, "1 to 13 rows")):
            once = partial(grouped_share_covers, sizes_of(shape, groups), rate, alike)
            data = f"{groups} groups, {shape}, rate {rate}, correlation {alike}"
            yield Setting(INTERVAL, "share_by_group", data, once)


def _means() -> Iterator[Setting]:
    for rows in (5, 10, 30):
        yield Setting(INTERVAL, "mean", f"{rows} rows, normal", partial(mean_covers, rows, normal, 0))
    for rows in (10, 30, 100):
        yield Setting(INTERVAL, "mean", f"{rows} rows, skewed (exponential)", partial(mean_covers, rows, skewed, 1))
    for rows in (10, 30):
        once = partial(mean_covers, rows, score, 0.6875)
        yield Setting(INTERVAL, "mean", f"{rows} rows, scores from 0 to 1, half of them 1", once)
    for shape, groups in product(("5 rows each", "1 to 13 rows", "half of the rows in one"), (5, 10, 20)):
        once = partial(grouped_mean_covers, sizes_of(shape, groups), 0.3)
        yield Setting(INTERVAL, "mean", f"{groups} groups, {shape}, correlation 0.3", once)


def _pairs() -> Iterator[Setting]:
    for rows in (10, 30):
        yield Setting(INTERVAL, "paired_means", f"{rows} rows, normal", partial(paired_means_cover, rows))
    for rows, discordant, difference in ((20, 0.3, 0), (20, 0.3, 0.2), (50, 0.1, 0), (50, 0.2, 0.1), (200, 0.2, 0.1)):
        data = f"{rows} rows, {percent(discordant)} discordant, difference {difference}"
        yield Setting(INTERVAL, "paired_shares", data, partial(paired_shares_cover, rows, discordant, difference))
    for rows, rare, agreement in ((30, 0.5, 0.6), (50, 0.5, 0.8), (50, 0.2, 0.8), (100, 0.1, 0.6)):
        data = f"{rows} rows, two classes, {percent(rare)} in one, kappa {agreement}"
        yield Setting(INTERVAL, "kappa", data, partial(kappa_covers, rows, rare, agreement))


def _tests() -> Iterator[Setting]:
    for rows in (30, 100):
        yield Setting(FALSE_ALARM, "mcnemar", f"{rows} rows, 20 % discordant", partial(mcnemar_finds, rows, 0.2, 0))
    for rows in (8, 15, 40):
        yield Setting(FALSE_ALARM, "paired_test", f"{rows} rows, normal", partial(paired_test_finds, rows, normal))
    once = partial(paired_test_finds, 100, rarely_another)
    yield Setting(FALSE_ALARM, "paired_test", "100 rows, of which 5 % differ", once)
    for groups, shape in ((10, "5 rows each"), (10, "1 to 13 rows"), (40, "1 to 13 rows")):
        once = partial(grouped_test_finds, sizes_of(shape, groups), 0.3)
        yield Setting(FALSE_ALARM, "paired_test", f"{groups} groups, {shape}, correlation 0.3", once)
    for rows in (10, 40):
        yield Setting(FALSE_ALARM, "holm", f"3 variants, {rows} rows, normal", partial(holm_finds, rows))
    for rows, discordant in ((10, 0.2), (50, 0.1), (50, 0.3), (200, 0.2)):
        data = (
            f"{rows} rows, {percent(discordant)} discordant, difference {smallest_visible_share(rows, discordant):.2f}"
        )
        yield Setting(FOUND, "smallest_visible_share", data, partial(visible_share_found, rows, discordant))
    for rows in (8, 15, 40):
        yield Setting(FOUND, "smallest_visible_mean", f"{rows} rows, normal", partial(visible_mean_found, rows))


SETTINGS = (*_shares(), *_means(), *_pairs(), *_tests())


if __name__ == "__main__":
    print(statistics_table(), end="")
