"""Cost against quality: a point for each variant of a comparison, with the interval of its quality (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from attractor_nb.evaluation.result_words import interval_text, number_text, percent_text
from attractor_nb.views.drawings.theme import Theme, drawing_css, drawing_rules, sheet
from attractor_nb.views.markup import element
from attractor_nb.views.metrics import shorten
from attractor_nb.views.summary_line import cost_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

_WIDTH, _HEIGHT = 560.0, 260.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 120.0, 34.0, 44.0
_TICKS: Final = 4
_LINE: Final = 14.0
_NAME_WIDTH: Final = 110.0
_RULES: Final = """
& .axis{stroke:var(--frame);stroke-width:1}
& .interval{stroke:var(--running-line);stroke-width:2;opacity:.6}
& .point{fill:var(--running-line)}
& .baseline .interval{stroke:var(--line)}
& .baseline .point{fill:var(--line)}
& text.tick{font-size:10px;fill:var(--dim)}
& text.tick.of-quality{text-anchor:end}
& text.title{font-size:11px;fill:var(--dim);text-anchor:start}
& text.name{font-size:11px;font-weight:600;text-anchor:start}
"""


@dataclass(frozen=True, slots=True)
class CostPoint:
    """A variant."""

    name: str
    cost_usd: float  #: Mean cost of a row, in USD.
    value: float  #: Mean score.
    low: float  #: Lower end of its 95 % interval.
    high: float  #: Upper end.

    def words(self, *, is_share: bool) -> str:
        """The point as a sentence."""
        text = percent_text if is_share else number_text
        interval = interval_text(self.low, self.high, text) if self.low != self.high else ""
        return f"{self.name}: {cost_text(self.cost_usd)} a row, {text(self.value)}{interval}"


def plot_words(points: Sequence[CostPoint], score: str, *, is_share: bool) -> str:
    """The plot in words."""
    return f"Cost and {score}. " + "; ".join(point.words(is_share=is_share) for point in points)


def plot_svg(points: Sequence[CostPoint], score: str, *, is_share: bool, theme: Theme = "auto") -> str:
    """The plot; the first point is the baseline.

    Args:
        points: The variants.
        score: Name of the quality.
        is_share: It is a share, shown in percent from 0 to 100.
        theme: ``light``, ``dark``, or ``auto``, which follows the page.
    """
    most = max(point.cost_usd for point in points) or 1.0
    lowest, highest = (0.0, 1.0) if is_share else _range(points)
    text = percent_text if is_share else number_text

    def x(cost: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * cost / (1.1 * most)

    def y(value: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * (value - lowest) / (highest - lowest)

    parts: list[Markup] = []
    for step in range(_TICKS + 1):
        value, cost = lowest + (highest - lowest) * step / _TICKS, 1.1 * most * step / _TICKS
        parts.append(element("path", {"class": "axis", "d": f"M{_LEFT} {y(value):.1f}H{_WIDTH - _RIGHT}"}))
        parts.append(element("text", {"class": "tick of-quality", "x": _LEFT - 8, "y": y(value) + 3}, text(value)))
        parts.append(element("text", {"class": "tick", "x": x(cost), "y": _HEIGHT - _BOTTOM + 16}, cost_text(cost)))
    parts.append(element("text", {"class": "title", "x": 12, "y": 18}, f"{shorten(score, 300, 11)}, 95 % interval"))
    parts.append(element("text", {"class": "title", "x": _LEFT, "y": _HEIGHT - 10}, "cost of a row in USD, on average"))
    places = _apart([(x(point.cost_usd), y(point.value)) for point in points])
    for position, (point, place) in enumerate(zip(points, places, strict=True)):
        at = x(point.cost_usd)
        ends = f"M{at:.1f} {y(max(point.low, lowest)):.1f}V{y(min(point.high, highest)):.1f}"
        parts.append(
            element(
                "g",
                {"class": "baseline" if position == 0 else "variant"},
                element("title", None, point.words(is_share=is_share)),
                element("path", {"class": "interval", "d": ends}),
                element("circle", {"class": "point", "cx": at, "cy": y(point.value), "r": 4.5}),
                element("text", {"class": "name", "x": at + 9, "y": place + 4}, shorten(point.name, _NAME_WIDTH, 11)),
            )
        )
    words = plot_words(points, score, is_share=is_share)
    css = drawing_css() + drawing_rules(_RULES)
    return str(sheet(f"attractor-cost {theme}", (_WIDTH, _HEIGHT), words, css, *parts))


def _range(points: Sequence[CostPoint]) -> tuple[float, float]:
    lowest, highest = min(point.low for point in points), max(point.high for point in points)
    room = 0.1 * (highest - lowest) or 0.1 * abs(highest) or 1.0
    return lowest - room, highest + room


def _apart(points: Sequence[tuple[float, float]]) -> list[float]:
    """Heights of names that begin at these places, a line below those that they would overlap."""
    found: dict[int, float] = {}
    for position in sorted(range(len(points)), key=lambda each: points[each][1]):
        at, height = points[position]
        near = [found[each] for each in found if abs(points[each][0] - at) < _NAME_WIDTH]
        found[position] = max([height, *(place + _LINE for place in near)])
    return [found[position] for position in range(len(points))]
