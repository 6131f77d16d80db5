"""The places of all marks in a finished drawing: every text, mark, arrow head and line, read back from the SVG.

Sizes of texts come from the drawing's own style sheet, widths from the metrics table that the writer uses.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from math import hypot
from xml.etree import ElementTree as ET

from attractor_nb.views.metrics import text_width

SVG = "{http://www.w3.org/2000/svg}"
CELL = 900.0
ASCENT, DESCENT = 0.74, 0.2
DISC = 7.0
SIGN_GAP = 4.0
WIDER_FACE = 1.08
"""Between a sign and the letters beside it are so many pixels, in a face that is so much wider than the table, too."""
_NUMBER = re.compile(r"-?\d*\.?\d+(?:e-?\d+)?")
_SHIFT = re.compile(r"translate\((-?[\d.]+)[ ,]?(-?[\d.]+)?\)")
_STEP = 3.0


@dataclass(frozen=True)
class Thing:
    """A text or a mark: its rectangle, and the node, edge or panel that it belongs to."""

    what: str
    owner: str
    left: float
    top: float
    right: float
    bottom: float
    size: float = 0.0
    points: tuple[tuple[float, float], ...] = ()

    def meets(self, other: Thing) -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )

    def touches(self, head: Thing) -> bool:
        """True if an arrow head lies on it; signs are round or pointed, and heads come aslant."""
        if self.what not in {"mark", "finding"}:
            return self.meets(head)
        x, y, radius = ((self.left + self.right) / 2, (self.top + self.bottom) / 2, (self.right - self.left) / 2)
        return any(hypot(a - x, b - y) < radius for a, b in head.points)

    def gap_to(self, text: Thing) -> float:
        """From the rim of a round sign to a text in a wider face."""
        x, y = (self.left + self.right) / 2, (self.top + self.bottom) / 2
        more = (text.right - text.left) * (WIDER_FACE - 1) / 2
        aside, above = max(text.left - more - x, x - text.right - more, 0.0), max(text.top - y, y - text.bottom, 0.0)
        return hypot(aside, above) - (self.right - self.left) / 2

    def holds(self, x: float, y: float) -> bool:
        return self.left < x < self.right and self.top < y < self.bottom


@dataclass(frozen=True)
class Drawn:
    """A drawing as things and lines."""

    width: float
    things: list[Thing]
    heads: list[Thing]
    lines: dict[str, list[list[tuple[float, float]]]]

    @property
    def overlaps(self) -> list[tuple[Thing, Thing]]:
        """Any two texts or marks that stand on each other."""
        near: dict[tuple[int, int], list[Thing]] = defaultdict(list)
        for thing in self.things:
            for cell in _cells(thing):
                near[cell].append(thing)
        found = {(a, b): None for group in near.values() for a, b in combinations(group, 2) if a.meets(b) and a != b}
        return list(found)

    @property
    def struck(self) -> list[tuple[Thing, str]]:
        """Texts through which an edge runs: of an edge that is not its own, or its own where it was not cut."""
        near: dict[tuple[int, int], list[Thing]] = defaultdict(list)
        for thing in self.things:
            if thing.size:
                for cell in _cells(thing):
                    near[cell].append(thing)
        found: dict[tuple[Thing, str], None] = {}
        for owner, pieces in self.lines.items():
            for x, y in (point for piece in pieces for point in piece):
                for thing in near.get((int(x // 50), int(y // 50)), ()):
                    if thing.holds(x, y):
                        found[thing, owner] = None
        return list(found)

    @property
    def on_heads(self) -> list[tuple[Thing, Thing]]:
        """Texts and marks that stand on an arrow head."""
        near: dict[tuple[int, int], list[Thing]] = defaultdict(list)
        for thing in self.things:
            for cell in _cells(thing):
                near[cell].append(thing)
        found = {
            (thing, head): None
            for head in self.heads
            for cell in _cells(head)
            for thing in near.get(cell, ())
            if thing.touches(head)
        }
        return list(found)

    @property
    def tight(self) -> list[tuple[Thing, Thing, float]]:
        """Signs of a state or a finding, and the labels of their nodes that stand too near to them."""
        labels: dict[str, list[Thing]] = defaultdict(list)
        for thing in self.things:
            if thing.what.startswith("label "):
                labels[thing.owner].append(thing)
        return [
            (sign, label, gap)
            for sign in self.things
            if sign.what in {"mark", "finding"}
            for label in labels[sign.owner]
            if (gap := sign.gap_to(label)) < SIGN_GAP
        ]

    @property
    def smallest(self) -> float:
        """The size of its smallest text in a cell."""
        sizes = [thing.size for thing in self.things if thing.size]
        return min(sizes, default=99.0) * min(1.0, CELL / self.width)


def _cells(thing: Thing) -> list[tuple[int, int]]:
    return [
        (column, row)
        for column in range(int(thing.left // 50), int(thing.right // 50) + 1)
        for row in range(int(thing.top // 50), int(thing.bottom // 50) + 1)
    ]


def drawn(svg: str) -> Drawn:
    """A drawing of our writer, read back."""
    root = ET.fromstring(svg)
    sheet = root.find(f"{SVG}style").text
    sizes = {kind: float(size) for kind, size in re.findall(r" text\.([\w-]+)\{font-size:([\d.]+)px", sheet)}
    sizes["label"] = float(re.search(r" text\{font:([\d.]+)px", sheet)[1])
    sizes["edge-label"] = float(re.search(r"\.edge-label text\{font-size:([\d.]+)px", sheet)[1])
    found = Drawn(float(root.get("viewBox").split()[2]), [], [], {})
    _Reader(sizes, found).read(root, (0.0, 0.0), "", "", ())
    return found


@dataclass(frozen=True)
class _Reader:
    sizes: dict[str, float]
    found: Drawn

    def read(
        self, element: ET.Element, origin: tuple[float, float], owner: str, around: str, above: tuple[str, ...]
    ) -> None:
        if moved := _SHIFT.fullmatch(element.get("transform", "")):
            origin = origin[0] + float(moved[1]), origin[1] + float(moved[2] or 0)
        names = element.get("class", "").split()
        above = (*above, *names)
        if node := element.get("data-node"):
            owner = f"{around}node {node}"
        elif edge := element.get("data-edge"):
            owner = f"{around}edge {edge}"
        elif "stack" in names:
            owner = f"{around}stack"
        elif child := element.get("data-child"):
            around = f"{child}>"
        tag = element.tag.removeprefix(SVG)
        if tag in {"defs", "title"} or ("mark" in names and "state-pending" in above):
            return
        if tag == "text":
            self.found.things.extend(self._texts(element, origin, owner or "panel", above))
            return
        self._mark(element, names, origin, owner)
        for part in element:
            self.read(part, origin, owner, around, above)

    def _mark(self, element: ET.Element, names: list[str], origin: tuple[float, float], owner: str) -> None:
        x, y = origin
        if "mark" in names or "badge" in names:
            self.found.things.append(Thing("mark", owner, x - DISC, y - DISC, x + DISC, y + DISC))
        elif "finding" in names:
            self.found.things.append(Thing("finding", owner, x - 7.4, y - 7, x + 7.4, y + 5.7))
        elif "again" in names and element.get("d"):
            self.found.things.append(_bounds("again", owner, _points(element.get("d", ""), origin)))
        elif "head" in names:
            self.found.heads.append(_bounds("head", owner, _points(element.get("d", ""), origin)))
        elif "line" in names:
            self.found.lines.setdefault(owner, []).append(_sampled(element.get("d", ""), origin))

    def _texts(
        self, element: ET.Element, origin: tuple[float, float], owner: str, above: tuple[str, ...]
    ) -> list[Thing]:
        names = element.get("class", "").split() or ["edge-label"]
        size = self.sizes[names[0]]
        is_mono = "is-condition" in above and names[0] == "edge-label"
        is_bold = names[0] in {"counts", "passes"}
        anchors = {"after": 0.0, "before": 1.0, "panel-title": 0.0}
        share = next((anchors[name] for name in reversed(names) if name in anchors), 0.5)
        found: list[Thing] = []
        for line in list(element) or [element]:
            text = line.text or ""
            if not text.strip():
                continue
            x = origin[0] + float(line.get("x") or element.get("x") or 0)
            y = origin[1] + float(line.get("y") or element.get("y") or 0)
            width = text_width(text, size, is_mono=is_mono, is_bold=is_bold)
            left = x - width * share
            what = f"{names[0]} {text!r}"
            found.append(Thing(what, owner, left, y - ASCENT * size, left + width, y + DESCENT * size, size))
        return found


def _points(data: str, origin: tuple[float, float]) -> list[tuple[float, float]]:
    """The places of absolute ``M``, ``L`` and ``C`` commands, and of the relative ones after them."""
    points: list[tuple[float, float]] = []
    here = origin
    for command, body in re.findall(r"([A-Za-z])([^A-Za-z]*)", data):
        numbers = [float(number) for number in _NUMBER.findall(body)]
        if command == "a":
            numbers = numbers[5:7]
        pairs = list(zip(numbers[::2], numbers[1::2], strict=False))
        start = here
        for dx, dy in pairs:
            here = (start[0] + dx, start[1] + dy) if command.islower() else (origin[0] + dx, origin[1] + dy)
            points.append(here)
    return points


def _bounds(what: str, owner: str, points: list[tuple[float, float]]) -> Thing:
    xs, ys = [x for x, _ in points], [y for _, y in points]
    between = [((a + c) / 2, (b + d) / 2) for (a, b), (c, d) in combinations(points, 2)] if what == "head" else []
    return Thing(what, owner, min(xs), min(ys), max(xs), max(ys), points=(*points, *between))


def _sampled(data: str, origin: tuple[float, float]) -> list[tuple[float, float]]:
    """Points along a path of absolute commands, a few pixels apart."""
    points: list[tuple[float, float]] = []
    here = origin
    for command, body in re.findall(r"([A-Za-z])([^A-Za-z]*)", data):
        numbers = [float(number) for number in _NUMBER.findall(body)]
        pairs = [(origin[0] + x, origin[1] + y) for x, y in zip(numbers[::2], numbers[1::2], strict=True)]
        if command == "M":
            points.append(pairs[0])
        elif command == "L":
            for end in pairs:
                points += _along((here, here, end, end))
                here = end
        elif command == "C":
            for a, b, c in zip(pairs[::3], pairs[1::3], pairs[2::3], strict=True):
                points += _along((here, a, b, c))
                here = c
        here = points[-1]
    return points


def _along(cubic) -> list[tuple[float, float]]:
    from attractor_nb.views.layout.skeleton import point_at

    (x0, y0), (x1, y1) = cubic[0], cubic[3]
    count = max(2, int((abs(x1 - x0) + abs(y1 - y0)) / _STEP) + 2)
    return [point_at(cubic, step / count) for step in range(1, count + 1)]
