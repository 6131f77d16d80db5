"""The picture of a timeline: lanes, bars, cuts and a scale of seconds, by our own writer (pure)."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import OptionError
from attractor_nb.model.states import stage_word
from attractor_nb.redaction import redacted
from attractor_nb.studio.timeline.timeline import ATTEMPT, HUMAN, RETRY_WAIT, Bar, Timeline, TimelineLane
from attractor_nb.views.drawings.theme import Theme, drawing_css, drawing_rules, sheet
from attractor_nb.views.markup import element, path_data
from attractor_nb.views.metrics import shorten, text_width
from attractor_nb.views.summary_line import duration_text
from attractor_nb.views.table import one_line

if TYPE_CHECKING:
    from markupsafe import Markup


MAX_LANES: Final = 200
"""More would not be read; the table has them all."""
MAX_BARS: Final = 4000
_WIDTH: Final = 960.0
_MARGIN: Final = 12.0
_LANE: Final = 26.0
_BAR: Final = 14.0
_TOP: Final = 34.0
_MIN_BAR: Final = 2.0
_STEPS: Final = (1, 2, 5)
_SWATCH: Final = 20.0
_LEGEND: Final = {
    RETRY_WAIT: "wait before the next attempt",
    HUMAN: "wait for a person",
    "calls": "calls",
    **{status: stage_word(status) for status in ("running", "cut off", "cached")},
}
"""Meaning of the kinds of bars without a mark in them."""
_RULES: Final = """
& .tl-lane{stroke:var(--frame);stroke-width:1}
& .tl-grid{stroke:var(--frame);stroke-width:1}
& text.tl-name{font-size:11.5px;text-anchor:end}
& text.tl-tick{font-size:10px;fill:var(--dim)}
& text.tl-note{font-size:11px;fill:var(--dim);text-anchor:start}
& text.tl-in{font-size:10px;text-anchor:start}
& .tl-bar{--fill:var(--pending-fill);--stroke:var(--pending-line)}
& .tl-bar .tl-box{fill:var(--fill);stroke:var(--stroke);stroke-width:1.25}
& .tl-bar.is-success,& .tl-bar.is-partial_success{--fill:var(--success-fill);--stroke:var(--success-line)}
& .tl-bar.is-cached{--fill:var(--cached-fill);--stroke:var(--cached-line)}
& .tl-bar.is-fail,& .tl-bar.is-retry{--fill:var(--fail-fill);--stroke:var(--fail-line)}
& .tl-bar.is-fail .tl-box,& .tl-bar.is-retry .tl-box{stroke-width:2}
& .tl-bar.is-running{--fill:var(--running-fill);--stroke:var(--running-line)}
& .tl-bar.is-running .tl-box{stroke-dasharray:6 3}
& .tl-bar.is-cut-off .tl-box{stroke-dasharray:2 3}
& .tl-bar.tl-wait .tl-box{stroke:var(--retrying-line);stroke-width:1;stroke-dasharray:3 2}
& .tl-bar.tl-human .tl-box{fill:var(--waiting-fill);stroke:var(--waiting-line)}
& .tl-hatch{stroke:var(--retrying-line);stroke-width:1.25}
& .tl-dots{fill:var(--waiting-line)}
& .tl-cross{fill:none;stroke:var(--fail-line);stroke-width:1.7;stroke-linecap:round}
& .tl-call{fill:var(--stroke);opacity:.75}
& .tl-call.is-tool{opacity:.4}
& .tl-call.is-message{fill:var(--waiting-line);opacity:1}
& .tl-call.is-error{fill:var(--fail-line);opacity:1}
& .tl-cut{fill:none;stroke:var(--dim);stroke-width:1.25;stroke-dasharray:4 3}
& .tl-bar.selected .tl-box{stroke-width:3}
"""


def timeline_css() -> str:
    """The style sheet of every timeline."""
    return drawing_css() + drawing_rules(_RULES)


def timeline_svg(timeline: Timeline, *, theme: Theme = "auto", width: float = _WIDTH) -> str:
    """A timeline as SVG; equal arguments give equal text. Each bar has its number as ``data-bar``.

    Args:
        timeline: What to draw.
        theme: ``light``, ``dark``, or ``auto``, which follows the page.
        width: In pixels.
    """
    if theme not in {"auto", "light", "dark"}:
        raise OptionError(f'unknown theme "{theme}"', hint='use "auto", "light" or "dark"')
    return str(_Writer(timeline, width).whole(theme))


class _Writer:
    """Places of one timeline's parts."""

    def __init__(self, timeline: Timeline, width: float) -> None:
        self.timeline = timeline
        self.ids = "tl-" + sha256(repr(timeline).encode("utf-8", "surrogatepass")).hexdigest()[:10]
        self.lanes = timeline.lanes[:MAX_LANES]
        self.width = width
        names = [text_width(_name(lane), 11.5) for lane in self.lanes]
        self.left = min(210.0, 1.08 * max([60.0, *names])) + _MARGIN + 8
        self.right = width - _MARGIN - 14
        self.scale = (self.right - self.left) / max(timeline.seconds, 1e-3)
        self.bottom = _TOP + _LANE * max(1, len(self.lanes))
        self.legend, self.legend_lines = self._legend()
        self.notes = self._notes()
        self.height = self.bottom + 26 + 15 * (self.legend_lines + len(self.notes))

    def x(self, moment: float) -> float:
        """The x of a moment."""
        return self.left + self.timeline.shown(moment) * self.scale

    def whole(self, theme: Theme) -> Markup:
        count = len(self.timeline.lanes)
        name = one_line(redacted(self.timeline.name)) or "a run"
        summary = f"Timeline of {name}: {count} lanes, {duration_text(self.timeline.seconds)}"
        return sheet(
            f"attractor-timeline {theme}",
            (self.width, self.height),
            summary,
            timeline_css(),
            element("defs", None, _hatch(self.ids), _dots(self.ids)),
            *self._grid(),
            *self._rows(),
            *(self._cut(cut.start, cut.end - cut.start) for cut in self.timeline.cuts),
            *self.legend,
            *(
                element("text", {"class": "tl-note", "x": _MARGIN, "y": self._line(number)}, note)
                for number, note in enumerate(self.notes, self.legend_lines)
            ),
        )

    def _line(self, number: int) -> float:
        """The y of a line of text below the lanes."""
        return self.bottom + 32 + 15 * number

    def _legend(self) -> tuple[list[Markup], int]:
        """A piece of each kind of bar that is there, with what it means; and how many lines they take."""
        bars = [bar for lane in self.lanes for bar in lane.bars][:MAX_BARS]
        found = {bar.kind for bar in bars} | {bar.status for bar in bars if bar.kind == ATTEMPT}
        found |= {"calls"} if any(bar.calls for bar in bars) else set()
        parts: list[Markup] = []
        x, line = _MARGIN, 0
        for kind, words in _LEGEND.items():
            if kind not in found:
                continue
            width = _SWATCH + 6 + 1.12 * text_width(words, 11)  # other fonts are wider
            if x > _MARGIN and x + width > self.right:
                x, line = _MARGIN, line + 1
            y = self._line(line)
            text = element("text", {"class": "tl-note", "x": x + _SWATCH + 6, "y": y}, words)
            parts.append(element("g", {"class": "tl-entry"}, self._swatch(kind, x, y - 9), text))
            x += width + 16
        return parts, line + bool(parts)

    def _swatch(self, kind: str, x: float, y: float) -> Markup:
        """A piece of a bar, drawn as one."""
        box = {"x": x, "y": y, "width": _SWATCH, "height": 10.0, "rx": 2.0}
        status = {HUMAN: "answered", "calls": "running"}.get(kind, kind)
        classes, parts = self._box(kind, box)
        if kind == "calls":
            call = {"x": x + 4, "y": y + 6, "width": _SWATCH - 8, "height": 3.0}
            parts.append(element("rect", {"class": "tl-call", **call}))
        return element("g", {"class": " ".join(["tl-bar", "is-" + _css_name(status), *classes])}, *parts)

    def _box(self, kind: str, box: dict[str, float]) -> tuple[list[str], list[Markup]]:
        """The classes of a bar of a kind, and its box."""
        if kind == RETRY_WAIT:
            look = {"fill": "none", "style": f"fill:url(#{self.ids}-hatch)"}
            return ["tl-wait"], [element("rect", {"class": "tl-box", **box, **look})]
        plain = element("rect", {"class": "tl-box", **box})
        if kind == HUMAN:
            return ["tl-human"], [plain, element("rect", {**box, "fill": f"url(#{self.ids}-dots)"})]
        return [], [plain]

    def _notes(self) -> list[str]:
        notes = [self.timeline.mark] if self.timeline.mark else []
        if not self.lanes:
            notes.append("Nothing was started yet.")
        if (more := len(self.timeline.lanes) - len(self.lanes)) > 0:
            notes.append(f"… and {more} more lanes; str(timeline) has them all")
        return notes

    def _grid(self) -> list[Markup]:
        parts: list[Markup] = []
        step = _step(self.timeline.seconds)
        number = 0
        while number * step <= self.timeline.seconds * 1.0001 and number < 40:
            x = self.left + number * step * self.scale
            line = path_data("M", x, _TOP - 6, "V", self.bottom)
            parts.append(element("path", {"class": "tl-grid", "d": line}))
            parts.append(element("text", {"class": "tl-tick", "x": x, "y": _TOP - 12}, _tick(number * step)))
            number += 1
        return parts

    def _rows(self) -> list[Markup]:
        parts: list[Markup] = []
        number = 0
        for row, lane in enumerate(self.lanes):
            y = _TOP + row * _LANE
            line = path_data("M", _MARGIN, y + _LANE, "H", self.width - _MARGIN)
            name = shorten(_name(lane), self.left - _MARGIN - 8, 11.5)
            at = {"class": "tl-name", "x": self.left - 8, "y": y + _LANE / 2 + 4}
            parts += (element("path", {"class": "tl-lane", "d": line}), element("text", at, name))
            for bar in lane.bars:
                if number < MAX_BARS:
                    parts.append(self._bar(bar, number, y + (_LANE - _BAR) / 2))
                number += 1
        return parts

    def _bar(self, bar: Bar, number: int, y: float) -> Markup:
        x = self.x(bar.start)
        width = max(_MIN_BAR, self.x(bar.end) - x)
        box = {"x": x, "y": y, "width": width, "height": _BAR, "rx": min(3.0, width / 2)}
        looks, boxes = self._box(bar.kind, box)
        classes = ["tl-bar", "is-" + _css_name(bar.status), *looks]
        parts = [element("title", None, redacted(bar.words)), *boxes]
        if bar.kind == ATTEMPT:
            parts += self._inside(bar, x, y, width)
        return element("g", {"class": " ".join(classes), "data-bar": str(number), "data-for": bar.node}, *parts)

    def _inside(self, bar: Bar, x: float, y: float, width: float) -> list[Markup]:
        """Calls as thin bars; a cross for a failure; the try when there is room."""
        parts: list[Markup] = []
        for call in bar.calls[:200]:
            start = max(x, self.x(call.start))
            box = {"x": start, "y": y + _BAR - 4, "width": max(1.0, self.x(call.end) - start), "height": 3}
            classes = f"tl-call is-{call.kind}" + " is-error" * bool(call.error)
            parts.append(element("rect", {"class": classes, **box}))
        if bar.status in {"fail", "retry"}:
            middle, half = y + _BAR / 2, 3.2
            at = x + min(8.0, width / 2)
            cross = ("M", at - half, middle - half, "L", at + half, middle + half)
            cross += ("M", at + half, middle - half, "L", at - half, middle + half)
            parts.append(element("path", {"class": "tl-cross", "d": path_data(*cross)}))
        words = duration_text(bar.seconds)
        if bar.kind == ATTEMPT and width > text_width(words, 10) + 26:
            parts.append(element("text", {"class": "tl-in", "x": x + 16, "y": y + _BAR - 4}, words))
        return parts

    def _cut(self, start: float, seconds: float) -> Markup:
        """A jagged line where the run was inactive, with how long."""
        x = self.x(start)
        jags: list[str | float] = ["M", x, _TOP - 4]
        y, side = _TOP - 4, 3
        while y < self.bottom:
            y, side = y + 6, -side
            jags += ("L", x + side, min(y, self.bottom))
        words = f"inactive for {duration_text(seconds)}"
        anchor = "start" if x < self.width / 2 else "end"
        at = {"class": "tl-tick", "x": x + (5 if anchor == "start" else -5), "y": self.bottom + 14}
        return element(
            "g",
            {"class": "tl-stop"},
            element("title", None, words),
            element("path", {"class": "tl-cut", "d": path_data(*jags)}),
            element("text", {**at, "style": f"text-anchor:{anchor}"}, words),
        )


def _name(lane: TimelineLane) -> str:
    return one_line(redacted(lane.key))


def _css_name(text: str) -> str:
    return text.replace(" ", "-")


def _hatch(ids: str) -> Markup:
    line = element("path", {"class": "tl-hatch", "d": "M-2 2L2-2M0 8L8 0M6 10L10 6"})
    return element("pattern", {"id": f"{ids}-hatch", "width": 8, "height": 8, "patternUnits": "userSpaceOnUse"}, line)


def _dots(ids: str) -> Markup:
    dot = element("circle", {"class": "tl-dots", "cx": 3, "cy": 3, "r": 1})
    return element("pattern", {"id": f"{ids}-dots", "width": 6, "height": 6, "patternUnits": "userSpaceOnUse"}, dot)


def _step(seconds: float) -> float:
    """The distance of two marks of the scale: at most ten of them, at round numbers.

    >>> _step(0.9), _step(47), _step(400)
    (0.1, 5.0, 60)
    """
    if seconds > 120:
        for step in (15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400):
            if seconds / step <= 10:
                return step
        return 86400.0 * max(1, round(seconds / 864000))
    unit = 0.001
    while True:
        for factor in _STEPS:
            if seconds / (unit * factor) <= 10:
                return round(unit * factor, 3)
        unit *= 10


def _tick(seconds: float) -> str:
    """A mark of the scale in words."""
    if seconds < 60:
        return f"{seconds:g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
