"""Numbers of an evaluation in words: shares, intervals, differences, lists of ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.views.table import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from attractor_nb.evaluation.columns import ScoreColumn
    from attractor_nb.evaluation.statistics import IntervalEstimate

NOTHING: Final = "\N{EN DASH}"
LISTED: Final = 10
"""Most ids of a sentence."""
_MINUS: Final = "\N{MINUS SIGN}"
_MOST_CLASSES: Final = 6
_UNITS: Final = (" %", " points")


def counted(number: int, word: str) -> str:
    """A number of things.

    >>> counted(1, "row"), counted(1200, "run")
    ('1 row', '1,200 runs')
    """
    return f"{number:,} {word}{'s' * (number != 1)}"


def number_text(value: float | None) -> str:
    """A number with three significant digits.

    >>> number_text(0.8333), number_text(12345.6), number_text(2.0), number_text(999.9), number_text(-0.0)
    ('0.833', '12,346', '2', '1,000', '0')
    """
    if value is None:
        return NOTHING
    form = ",.0f" if 999.5 <= abs(value) < 1e15 else ".3g"
    return f"{value + 0.0:{form}}".replace("-", _MINUS)  # + 0.0: there is no minus zero


def percent_text(value: float) -> str:
    """A share in percent, whole unless that would round to 0 or 100.

    >>> percent_text(0.864), percent_text(0.998), percent_text(0.9999), percent_text(1.0)
    ('86 %', '99.8 %', '99.99 %', '100 %')
    """
    percent = round(100 * value, 9) + 0.0
    for digits in range(3):
        text = f"{percent:.{digits}f}"
        if float(text) not in (0.0, 100.0) or percent in (0.0, 100.0):
            return f"{text} %"
    return "under 0.01 %" if percent < 1 else "over 99.99 %"


def signed(value: float) -> str:
    """A number with its sign.

    >>> signed(0.5), signed(0.0)
    ('+0.5', '0')
    """
    return f"{'+' if value > 0 else _MINUS if value < 0 else ''}{number_text(abs(value))}"


def percent_points(value: float) -> str:
    """A difference of shares in percentage points, with its sign.

    >>> percent_points(0.12)
    '+12 points'
    """
    sign = "+" if value > 0 else _MINUS if value < 0 else ""
    size = abs(100 * value)
    digits = ".0f" if size >= 1 or size == 0 else ".1f" if size >= 0.05 else ".1g"
    return f"{sign}{size:{digits}} points"


def interval_text(low: float | None, high: float | None, text: Callable[[float], str]) -> str:
    """The bounds of an interval after a space, the unit once; empty without an interval.

    >>> interval_text(0.21, 0.94, percent_text)
    ' (21 to 94 %)'
    """
    if low is None or high is None:
        return ""
    least, most = text(low), text(high)
    unit = next((unit for unit in _UNITS if least.endswith(unit) and most.endswith(unit)), "")
    return f" ({least.removesuffix(unit)} to {most})"


def listed(names: Sequence[str], most: int = LISTED) -> str:
    """Names in a sentence, the first ones of many.

    >>> listed(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def estimate_words(column: ScoreColumn) -> str:
    """The mean of a column with its interval, or its classes, in words."""
    if column.kind == "class":
        classes = [f"{name} {count:,}" for name, count in column.classes.items()]
        return one_line(listed(classes, _MOST_CLASSES)) or NOTHING
    estimate = column.estimate
    if estimate.value is None:
        return NOTHING
    if column.kind == "pass/fail":
        return _share_words(estimate)
    return number_text(estimate.value) + interval_text(estimate.low, estimate.high, number_text)


def _share_words(estimate: IntervalEstimate) -> str:
    assert estimate.value is not None
    passed = estimate.value * estimate.count
    is_whole = abs(passed - round(passed)) < 1e-9
    rows = f"{round(passed):,} of {estimate.count:,}" if is_whole else percent_text(estimate.value)
    if estimate.low is None or estimate.high is None:
        return rows
    if estimate.value == 1.0:
        return f"{rows}, at least {percent_text(estimate.low)}"
    if estimate.value == 0.0:
        return f"{rows}, at most {percent_text(estimate.high)}"
    whole = f" = {percent_text(estimate.value)}" if is_whole else ""
    return rows + whole + interval_text(estimate.low, estimate.high, percent_text)


def repeat_words(column: ScoreColumn) -> str:
    """Repeats of a column in words: disagreement of runs of one row, and what would sharpen the mean."""
    parts: list[str] = []
    if column.flip_rate is not None:
        k = column.repeats
        any_of, all_of = column.pass_at(k), column.pass_all(k)
        if any_of is not None and all_of is not None:
            parts.append(f"pass@{k} {percent_text(any_of)}, pass^{k} {percent_text(all_of)}")
        parts.append(f"runs of one row disagree in {percent_text(column.flip_rate)} of pairs")
    if (spread := column.spread) is not None and spread.between + spread.within > 0:
        of_repeats = spread.within / spread.repeats / (spread.between + spread.within / spread.repeats)
        helps = "more repeats help" if of_repeats > 0.5 else "more repeats will not help, more rows will"
        parts.append(helps)
    return "; ".join(parts)
