"""Reads a finished drawing back, the SVG as it is shown, and measures it; and what ``dot`` makes of the same boxes.

What is measured is what a reader sees: boxes, lines and labels at their places in the picture, whatever laid them out.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import combinations, pairwise, product
from math import atan2, ceil, degrees, hypot, pi
from xml.etree import ElementTree as ET

from attractor_nb.decisions.branch_policies import joins_of
from attractor_nb.views.drawings.picture import NO_OVERLAY
from attractor_nb.views.drawings.svg import _laid_out, render_svg
from attractor_nb.views.layout.skeleton import skeleton_of

SVG = "{http://www.w3.org/2000/svg}"
SHARP_DEGREES = 30.0
CHORD = 4.0
"""A line is looked at in chords of so many pixels: a bend is sharp where one turns from the one before it."""
NODE_GAP = 18.0
"""Between two boxes, by ``dot``."""
ROUND_CORNER = 2.0
"""So much of a box's rectangle at its rim is outside of its outline at the corners."""
BESIDE = 12.0
NEAR_END = 9.0
"""Lines that meet this near to an end of both do not cross: they meet at the box."""

Point = tuple[float, float]
Rect = tuple[float, float, float, float]


@dataclass(frozen=True)
class Line:
    """An edge: its index in the graph, the names of its ends, and its course in short chords.

    ``strokes`` are the same in pieces: a line is cut where its label stands.
    """

    index: int
    source: str
    target: str
    strokes: tuple[tuple[Point, ...], ...]

    @property
    def points(self) -> tuple[Point, ...]:
        return tuple(point for stroke in self.strokes for point in stroke)


@dataclass
class Drawing:
    """The places of all parts.

    Attributes:
        boxes: Left, top, right and bottom of each node's outline.
        lines: The edges.
        labels: Left, top, right and bottom of each edge's label, by index.
    """

    width: float
    height: float
    boxes: dict[str, Rect] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)
    labels: dict[int, Rect] = field(default_factory=dict)

    def centre(self, name: str) -> Point:
        left, top, right, bottom = self.boxes[name]
        return (left + right) / 2, (top + bottom) / 2

    @property
    def overlaps(self) -> list[tuple[object, object]]:
        """Pairs of boxes and labels that cover one another."""
        marks = [*self.boxes.items(), *self.labels.items()]
        return [(a, b) for (a, first), (b, second) in combinations(marks, 2) if _overlap(first, second)]

    @property
    def widest_texts(self) -> float:
        """The width of the boxes and labels that lie side by side, with the least room between them."""
        things = [*self.boxes.values(), *self.labels.values()]
        widest = 0.0
        for _, top, _, bottom in things:
            row = [right - left for left, a, right, b in things if a <= (top + bottom) / 2 <= b]
            widest = max(widest, sum(row) + NODE_GAP * (len(row) - 1))
        return widest

    @property
    def through_boxes(self) -> list[tuple[int, str]]:
        """Edges and the boxes that they run through without joining them."""
        return [
            (line.index, name)
            for line in self.lines
            for name, rect in self.boxes.items()
            if name not in {line.source, line.target} and _strikes(line, rect, ROUND_CORNER)
        ]

    @property
    def struck_labels(self) -> list[tuple[int, int]]:
        """Edges and the labels of other edges that they run through."""
        return [
            (line.index, index)
            for line in self.lines
            for index, rect in self.labels.items()
            if index != line.index and _strikes(line, rect)
        ]

    @property
    def hidden_loops(self) -> list[int]:
        """Edges of a loop between two nodes that their own label lies upon."""
        ways = {(line.source, line.target) for line in self.lines}
        return [
            line.index
            for line in self.lines
            if line.index in self.labels
            and line.source != line.target
            and (line.target, line.source) in ways
            and _strikes(line, self.labels[line.index])
        ]

    @property
    def turns(self) -> list[tuple[int, Point]]:
        """Sharp bends: the edge and the place of each."""
        return [(line.index, place) for line in self.lines for part in line.strokes for place in _sharp_bends(part)]

    @property
    def longest_run_beside(self) -> float:
        """The longest way in pixels that two edges without a common box run side by side, closer than ``BESIDE``."""
        cells: dict[tuple[int, int], list[tuple[Line, Point]]] = defaultdict(list)
        for line in self.lines:
            for x, y in line.points:
                cells[int(x // BESIDE), int(y // BESIDE)].append((line, (x, y)))
        longest = 0.0
        for line in self.lines:
            runs: dict[int, float] = {}
            for (x, y), (ax, ay) in pairwise(line.points):
                column, row = int(x // BESIDE), int(y // BESIDE)
                near = {
                    other.index
                    for cell in product((column - 1, column, column + 1), (row - 1, row, row + 1))
                    for other, (bx, by) in cells.get(cell, ())
                    if not {line.source, line.target} & {other.source, other.target} and hypot(bx - x, by - y) < BESIDE
                }
                runs = {index: runs.get(index, 0.0) + hypot(ax - x, ay - y) for index in near}
                longest = max(longest, *runs.values(), 0.0)
        return longest

    @property
    def crossings_of_labels(self) -> int:
        """The number of crossings at which one of the edges has a label."""
        return sum(a in self.labels or b in self.labels for a, b, _ in self.crossings)

    @property
    def crossings(self) -> list[tuple[int, int, Point]]:
        """The points at which two edges cross."""
        areas = {line.index: _area(line.points) for line in self.lines}
        return [
            (a.index, b.index, place)
            for a, b in combinations(self.lines, 2)
            if _overlap(areas[a.index], areas[b.index])
            for place in _meetings(a, b)
        ]


def drawn(graph: object) -> Drawing:
    """The drawing of a graph."""
    return read_svg(render_svg(graph), graph)


def read_svg(svg: str, graph: object) -> Drawing:
    """The places of all parts of a drawing."""
    root = ET.fromstring(svg)
    _, _, width, height = (float(part) for part in root.attrib["viewBox"].split())
    drawing = Drawing(width, height)
    for item in root.iter(SVG + "g"):
        kinds = item.attrib.get("class", "").split()
        if "node" in kinds:
            x, y = _moved(item)
            outline = next(part for part in item.iter(SVG + "path") if part.attrib["class"] == "outline")
            corners = [p for piece in _pieces(outline.attrib["d"]) for p in piece]
            left, top, right, bottom = _area(corners)
            drawing.boxes[item.attrib["data-node"]] = (left + x, top + y, right + x, bottom + y)
        elif "edge" in kinds:
            index = int(item.attrib["data-edge"])
            edge = graph.edges[index]
            line = next(part for part in item.iter(SVG + "path") if part.attrib["class"] == "line")
            strokes = tuple(tuple(_flat(_pieces("M" + part))) for part in line.attrib["d"].split("M")[1:])
            drawing.lines.append(Line(index, edge.source, edge.target, strokes))
        elif "edge-label" in kinds and (rect := item.find(SVG + "rect")) is not None:
            x, y = _moved(item)
            left, top = x + float(rect.attrib["x"]), y + float(rect.attrib["y"])
            right, bottom = left + float(rect.attrib["width"]), top + float(rect.attrib["height"])
            drawing.labels[int(item.attrib["data-edge"])] = (left, top, right, bottom)
    return drawing


def drawn_by_dot(graph: object, direction: str = "") -> Drawing:
    """The same boxes, labels and panels, of the same sizes, as ``dot`` would place and join them.

    Ways back are turned round for it: it finds others by itself, and a flow that runs up is lower.
    """
    scene = _laid_out(graph, NO_OVERLAY, joins_of(graph), is_whole=True)[0]
    lines = [f'digraph {{ graph [rankdir={direction or scene.direction}] node [shape=box, fixedsize=true, label=""]']
    lines += (
        f"n{number} [width={box.width / 72:.4f}, height={box.height / 72:.4f}]"
        for number, box in enumerate(scene.boxes)
    )
    lines += _clusters(scene, None)
    forward = skeleton_of(scene).is_forward
    for number, link in enumerate(scene.links):
        size = f'FIXEDSIZE="TRUE" WIDTH="{link.width:.0f}" HEIGHT="{link.height:.0f}"'
        label = f'label=<<TABLE BORDER="0" {size}><TR><TD></TD></TR></TABLE>>' if link.lines else ""
        ends = f"n{link.source} -> n{link.target}" if forward[number] else f"n{link.target} -> n{link.source}"
        lines.append(f"{ends} [id={number}, arrowsize=0.6, {label}]")
    text = "\n".join([*lines, "}"])
    answer = json.loads(subprocess.run(["dot", "-Tjson0"], input=text.encode(), capture_output=True, check=True).stdout)
    return _read_dot(answer, scene)


def _clusters(scene: object, parent: int | None) -> list[str]:
    """The panels inside another, as ``dot`` has them: its text is wider than ours, so it gets half as much."""
    lines: list[str] = []
    for number, panel in enumerate(scene.panels):
        if panel.parent == parent:
            title = "M" * max(1, len(panel.title) // 2) if panel.title else ""
            members = " ".join(f"n{member}" for member in panel.members)
            lines += (f'subgraph cluster_{number} {{ label="{title}"', *_clusters(scene, number), members, "}")
    return lines


def _read_dot(answer: dict[str, object], scene: object) -> Drawing:
    _, _, width, height = (float(part) for part in answer["bb"].split(","))
    drawing = Drawing(width, height)
    for item in answer["objects"]:
        if "pos" in item:
            box = scene.boxes[int(item["name"][1:])]
            x, y = (float(part) for part in item["pos"].split(","))
            half, up = box.width / 2, box.height / 2
            drawing.boxes[box.node_id] = (x - half, height - y - up, x + half, height - y + up)
    for item in answer.get("edges", ()):
        link = scene.links[int(item["id"])]
        numbers = [part.split(",") for part in item["pos"].split()]
        points = [(float(p[-2]), height - float(p[-1])) for p in numbers if p[0] not in {"e", "s"}]
        pieces = [points[start : start + 4] for start in range(0, len(points) - 3, 3)]
        ends = (scene.boxes[box].node_id for box in skeleton_of(scene).ends[int(item["id"])])
        drawing.lines.append(Line(link.index, *ends, (tuple(_flat(pieces)),)))
    return drawing


def _moved(item: ET.Element) -> Point:
    found = re.fullmatch(r"translate\(([-\d.]+)[ ,]([-\d.]+)\)", item.attrib["transform"])
    if found is None:
        found = re.fullmatch(r"translate\(([-\d.]+)()(-[\d.]+)\)", item.attrib["transform"])
        assert found, item.attrib["transform"]
        return float(found[1]), float(found[3])
    return float(found[1]), float(found[2])


def _pieces(data: str) -> list[list[Point]]:
    """The pieces of path data, each as its control points; lines and quadratic ones have fewer."""
    pieces: list[list[Point]] = []
    start = here = (0.0, 0.0)
    for letter, text in re.findall(r"([MLHVCQZ])([^MLHVCQZ]*)", data):
        numbers = [float(part) for part in re.findall(r"-?\d*\.?\d+", text)]
        if letter == "M":
            start = here = (numbers[0], numbers[1])
            continue
        if letter == "Z":
            points = [start]
        elif letter in "HV":
            points = [(numbers[0], here[1]) if letter == "H" else (here[0], numbers[0])]
        else:
            points = list(zip(numbers[::2], numbers[1::2], strict=True))
        size = {"C": 3, "Q": 2}.get(letter, 1)
        for first in range(0, len(points), size):
            pieces.append([here, *points[first : first + size]])
            here = points[first + size - 1]
    return pieces


def _flat(pieces: list[list[Point]]) -> list[Point]:
    """Cubics as short chords."""
    points = [pieces[0][0]]
    for piece in pieces:
        length = sum(hypot(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(piece))
        count = max(2, ceil(length / CHORD))
        points += (_at(piece, step / count) for step in range(1, count + 1))
    return points


def _at(points: list[Point], t: float) -> Point:
    while len(points) > 1:
        points = [(a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t) for a, b in pairwise(points)]
    return points[0]


def _area(points: list[Point] | tuple[Point, ...]) -> Rect:
    xs, ys = [x for x, _ in points], [y for _, y in points]
    return min(xs), min(ys), max(xs), max(ys)


def _overlap(a: Rect, b: Rect) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _strikes(line: Line, rect: Rect, rim: float = 1.0) -> bool:
    """True if a line runs through a rectangle, and not only along its rim."""
    left, top, right, bottom = rect
    return any(left + rim < x < right - rim and top + rim < y < bottom - rim for x, y in line.points)


def _sharp_bends(points: tuple[Point, ...]) -> list[Point]:
    """One place for each bend: chords of some length, so that rounding of coordinates is not a bend."""
    kept = [points[0]]
    kept += (p for p in points[1:] if hypot(p[0] - kept[-1][0], p[1] - kept[-1][1]) > CHORD * 0.6)
    bends: list[Point] = []
    was_sharp = False
    for a, b, c in zip(kept, kept[1:], kept[2:], strict=False):
        turn = atan2(c[1] - b[1], c[0] - b[0]) - atan2(b[1] - a[1], b[0] - a[0])
        is_sharp = abs(degrees((turn + pi) % (2 * pi) - pi)) > SHARP_DEGREES
        if is_sharp and not was_sharp:
            bends.append(b)
        was_sharp = is_sharp
    return bends


def _meetings(first: Line, second: Line) -> list[Point]:
    """The points at which two lines cross, except at a box that both join."""
    shared = [
        (a, b)
        for a, mine in ((first.points[0], first.source), (first.points[-1], first.target))
        for b, theirs in ((second.points[0], second.source), (second.points[-1], second.target))
        if mine == theirs
    ]
    found: list[Point] = []
    spans = [(*pair, _area(pair)) for pair in pairwise(second.points)]
    whole = _area(second.points)
    for a, b in pairwise(first.points):
        area = _area((a, b))
        if not _touch(area, whole):
            continue
        for c, d, other in spans:
            if _touch(area, other) and (place := _crossing(a, b, c, d)) is not None:
                is_end = any(_near(place, p) and _near(place, q) for p, q in shared)
                if not is_end and not any(_near(place, other_place) for other_place in found):
                    found.append(place)
    return found


def _touch(a: Rect, b: Rect) -> bool:
    return a[0] <= b[2] and b[0] <= a[2] and a[1] <= b[3] and b[1] <= a[3]


def _near(a: Point, b: Point) -> bool:
    return hypot(a[0] - b[0], a[1] - b[1]) <= NEAR_END


def _crossing(a: Point, b: Point, c: Point, d: Point) -> Point | None:
    ux, uy, vx, vy = b[0] - a[0], b[1] - a[1], d[0] - c[0], d[1] - c[1]
    across = ux * vy - uy * vx
    if abs(across) < 1e-9:
        return None
    s = ((c[0] - a[0]) * vy - (c[1] - a[1]) * vx) / across
    t = ((c[0] - a[0]) * uy - (c[1] - a[1]) * ux) / across
    return (a[0] + s * ux, a[1] + s * uy) if 0 <= s < 1 and 0 <= t < 1 else None
