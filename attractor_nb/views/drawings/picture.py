"""The marks of one graph: its nodes, edges and panels as SVG elements, at the places that a layout gives.

Every layout gives the same ids and classes, so that a live view changes classes and never redraws:
``[data-node="id"]`` with ``state-*``, ``[data-edge="index"]`` with ``taken``. No text of the graph's author
reaches the output but through ``markup.element``; no attribute of theirs does.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from attractor_nb.model.states import NodeStatus, stage_word
from attractor_nb.views.drawings.branch_stacks import Stack, in_words, summed
from attractor_nb.views.drawings.drawing import (
    DETAIL_SIZE,
    EDGE_LINE_HEIGHT,
    MARK_PATHS,
    STAR_PATH,
    TIMES,
    TOOLTIP_CHARS,
    WARNING_PATHS,
    edge_tooltip,
    lines_of,
    node_text,
    node_tooltip,
    short_count,
)
from attractor_nb.views.drawings.edge_places import MOST_PASSES, EdgePlace, MarkPlaces, around, cut, places_of_marks
from attractor_nb.views.markup import clean, element, joined, path_data
from attractor_nb.views.metrics import text_width
from attractor_nb.views.outlines import (
    SIGN_RADIUS,
    Box,
    Direction,
    Link,
    Panel,
    Point,
    Scene,
    Shape,
    bar,
    outline_path,
    pill,
    sign_places,
    small_line_place,
)
from attractor_nb.views.state import EdgeState, NodeState

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from markupsafe import Markup

    from attractor_nb.decisions.branch_policies import Join
    from attractor_nb.model.graph import Graph
    from attractor_nb.views.layout.skeleton import Layout, Rect, Route


# Overlays of a drawing, beside the states of its nodes and edges: two runs at once, heat, a path taken.
#
# A mark has classes, which the dress's own rules colour, and words for their meaning: nothing is told by colour
# alone. Rules use the variables of the theme, so they hold on light and on dark pages.


@dataclass(frozen=True, slots=True)
class Mark:
    """The mark of one node or edge."""

    css_classes: tuple[str, ...] = ()  #: Its classes.
    words: str = ""  #: A few characters beside it, in place of its counts; empty for those.
    tip: str = ""  #: A line of its tooltip.


@dataclass(frozen=True, slots=True)
class Overlay:
    """The marks of a drawing."""

    nodes: Mapping[str, Mark] = field(default_factory=dict[str, Mark])  #: By node.
    edges: Mapping[int, Mark] = field(default_factory=dict[int, Mark])  #: By position in ``Graph.edges``.
    css: str = ""  #: The rules of their classes (``theme.drawing_rules``).


NO_MARK: Final = Mark()
NO_OVERLAY: Final = Overlay()


_NO_STATE: Final = NodeState()
_NO_PASS: Final = EdgeState()


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPicture:
    """One graph with its layout and the states of its run."""

    graph: Graph  #: The graph, without secrets.
    scene: Scene  #: Content of the drawing.
    layout: Layout  #: Its layout.
    states: Mapping[str, NodeState]  #: States of nodes; the others are pending.
    passes: Mapping[int, EdgeState]  #: Edges taken, by position in ``graph.edges``.
    error_nodes: Collection[str]  #: Nodes that a finding marks.
    error_edges: Collection[tuple[str, str]]  #: Edges that one marks, by their ends.
    joins: Mapping[str, Join]  #: Join of each fan-out.
    overlay: Overlay = NO_OVERLAY  #: Marks of nodes and edges beside their states.
    stacks: Mapping[str, Stack] = field(default_factory=dict[str, "Stack"])  #: Branches that are one box, by its id.

    def content(self) -> list[Markup]:
        """The content of the drawing, back to front: panels, edges, titles, nodes, edge labels."""
        hatch_id = self._hatch_id
        routed = list(zip(self.scene.links, self.layout.routes, strict=True))
        boxes = zip(self.scene.boxes, self.layout.centres, strict=True)
        panels = list(zip(self.scene.panels, self.layout.panels, strict=True))
        titled, marks = self._places()
        titles = [element("text", {"class": "panel-title", "x": x, "y": y}, title) for (x, y), title in titled]
        labels = [self._edge_label(link, route, places) for (link, route), places in zip(routed, marks, strict=True)]
        return [
            joined([_panel(panel, rect) for panel, rect in panels], "\n"),
            joined([self._edge(link, route) for link, route in routed], "\n"),
            joined(titles, "\n"),
            joined([self._node(box, centre, hatch_id) for box, centre in boxes], "\n"),
            joined(labels, "\n"),
            *self._notes(),
        ]

    def _notes(self) -> list[Markup]:
        """The notes on parts left out of a drawing that is too large."""
        count = self.scene.unframed
        if not count:
            return []
        words = f"too large a drawing: {count:,} subgraph{'s' * (count != 1)} without a frame"
        return [element("text", {"class": "panel-title", "x": 10, "y": self.layout.height - 3}, words)]

    def _places(self) -> tuple[tuple[tuple[Point, str], ...], tuple[MarkPlaces, ...]]:
        """The places of titles and of the marks of edges."""
        links = list(enumerate(self.scene.links))
        with_finding = frozenset(place for place, link in links if self._has_error(link))
        words = tuple(self.overlay.edges.get(link.index, NO_MARK).words for _, link in links)
        return places_of_marks(self.scene.without_texts(), self.layout, with_finding, words)

    def _has_error(self, link: Link) -> bool:
        edge = self.graph.edges[link.index]
        return (edge.source, edge.target) in self.error_edges

    @property
    def definitions(self) -> Markup:
        """The definitions that the marks refer to."""
        return element("defs", None, _hatch_pattern(self._hatch_id))

    @property
    def _hatch_id(self) -> str:
        """Of this drawing alone: a hidden one on the same page would hide the hatches of others."""
        places = zip(self.scene.boxes, self.layout.centres, strict=True)
        words = [f"{box.node_id} {x:.0f} {y:.0f}" for box, (x, y) in places]
        return "hatch-" + sha256("\n".join(words).encode("utf-8", "surrogatepass")).hexdigest()[:10]

    @property
    def summary(self) -> str:
        """Its name and size, for a screen reader."""
        nodes, edges = len(self.scene.boxes), len(self.scene.links)
        name = clean(self.graph.label[:TOOLTIP_CHARS]) or "without a name"
        return f"Pipeline {name}: {nodes} node{'s' * (nodes != 1)}, {edges} edge{'s' * (edges != 1)}"

    def _stack(self, box: Box, centre: Point) -> Markup:
        """Branches as one box before another: how many they are, and their states."""
        stack = self.stacks[box.node_id]
        statuses = stack.statuses(self.states)
        front = replace(box, width=box.width - 6, height=box.height - 6)
        room = small_line_place(front)[2]
        is_untouched = set(statuses) == {NodeStatus.PENDING}
        words = "" if is_untouched else in_words(statuses, lambda words: text_width(words, DETAIL_SIZE) <= room)
        state = NodeState(summed(statuses), note=words)
        shape = outline_path(front)
        left, _, top = sign_places(front)
        names = sorted(name for name in stack.members if name in self.error_nodes)
        disc, sign = element("circle", {"r": SIGN_RADIUS}), element("path", {"d": MARK_PATHS[state.status]})
        tip = [f"{len(statuses)} more branches of {stack.fan_out}"]
        tip += [
            f"{', '.join(sorted(members))}: {stage_word(status)}"
            for members, status in zip(stack.branches, statuses, strict=True)
        ]
        return element(
            "g",
            {"class": f"node stack state-{state.status}", **_at(*centre)},
            element("title", None, lines_of(tip)),
            element("g", _at(3, 3), element("path", {"class": "outline", "d": shape})),
            element(
                "g",
                _at(-3, -3),
                element("path", {"class": "outline", "d": shape}),
                *node_text(front, self.scene.direction, state, ""),
                _finding(left, top) if names else element("g", {"class": "mark", **_at(left, top)}, disc, sign),
            ),
        )

    def _node(self, box: Box, centre: Point, hatch_id: str) -> Markup:
        if box.node_id in self.stacks:
            return self._stack(box, centre)
        node = self.graph.nodes.get(box.node_id)
        state = self.states.get(box.node_id, _NO_STATE)
        mark = self.overlay.nodes.get(box.node_id, NO_MARK)
        kind = self.graph.handler_types.get(box.node_id, "missing")
        own_kind = self.graph.item_types.get(box.node_id, kind)
        tooltip = node_tooltip(box.node_id, node, kind, state, self.joins.get(box.node_id), mark.tip)
        has_finding = node is None or box.node_id in self.error_nodes
        has_gate = node is not None and node.goal_gate
        outline, rest = _inside(
            box, self.scene.direction, state, tooltip, mark.words, has_finding=has_finding, has_gate=has_gate
        )
        return element(
            "g",
            {
                "class": " ".join(("node", "type-" + _css_name(own_kind), *state.css_classes, *mark.css_classes)),
                "data-node": box.node_id,
                "transform": "".join(("translate(", path_data(*centre), ")")),
            },
            outline,
            _inner_line(box, hatch_id),
            rest,
        )

    def _edge(self, link: Link, route: Route) -> Markup:
        edge = self.graph.edges[link.index]
        passes = self._passes_of(link)
        classes = ["edge"]
        if passes:
            classes.append("taken")
        if edge.loop_restart:
            classes.append("edge-restart")
        if self._has_error(link):
            classes.append("edge-error")
        mark = self.overlay.edges.get(link.index, NO_MARK)
        classes += mark.css_classes
        (x, y), (bx, by) = route.tip, route.base
        half_x, half_y = (y - by) * 0.45, (bx - x) * 0.45
        line: list[str | float] = []
        is_on_label = link.lines and link.source != link.target
        pieces = cut(route.path, around(*route.label, link.width, link.height)) if is_on_label else [route.path]
        for piece in pieces:
            line += ("M", *piece[0][0])
            for _, a, b, c in piece:
                line += ("C", *a, *b, *c)
        return element(
            "g",
            {"class": " ".join(classes), "data-edge": str(link.index)},
            element("title", None, edge_tooltip(edge, passes, mark.tip)),
            element("path", {"class": "line", "d": path_data(*line)}),
            element(
                "path",
                {
                    "class": "head",
                    "d": path_data("M", x, y, "L", bx + half_x, by + half_y, "L", bx - half_x, by - half_y, "Z"),
                },
            ),
        )

    def _passes_of(self, link: Link) -> int:
        """The number of passes of an edge, or the highest of the edges that it represents."""
        passes = self.passes.get(link.index, _NO_PASS).passes
        if not link.others:
            return passes
        return max(passes, *(self.passes.get(index, _NO_PASS).passes for index in link.others))

    def _edge_label(self, link: Link, route: Route, places: MarkPlaces) -> Markup:
        """The label on the line, and beside the line the number of passes, or the mark of an error."""
        passes = self._passes_of(link)
        x, y = route.label
        mark = self.overlay.edges.get(link.index, NO_MARK)
        classes = ["edge-label", *mark.css_classes]
        if link.is_mono:
            classes.append("is-condition")
        if passes:
            classes.append("taken")
        parts: list[Markup] = []
        if link.lines:
            box = {"x": -link.width / 2, "y": -link.height / 2, "width": link.width, "height": link.height, "rx": 4}
            first = -len(link.lines) * EDGE_LINE_HEIGHT / 2 + 10
            lines = [
                element("tspan", {"x": 0, "y": first + number * EDGE_LINE_HEIGHT}, line)
                for number, line in enumerate(link.lines)
            ]
            parts += (element("rect", box), element("text", None, *lines))
        if places.finding is not None:
            parts.append(_finding(places.finding.x - x, places.finding.y - y))
        if places.passes is not None:
            parts.append(_passes(passes, mark.words, places.passes, (x, y), is_narrow=places.is_narrow))
        return element("g", {"class": " ".join(classes), "data-edge": str(link.index), **_at(x, y)}, *parts)


@lru_cache(maxsize=2048)
def _inside(
    box: Box, direction: Direction, state: NodeState, tooltip: str, words: str, *, has_finding: bool, has_gate: bool
) -> tuple[Markup, Markup]:
    """The content of a node, independent of its position: beneath its inner line and above it."""
    outline = [element("title", None, tooltip), element("path", {"class": "outline", "d": outline_path(box)})]
    rest: list[Markup] = []
    if bar_path := bar(box, direction):
        rest.append(element("path", {"class": "bar", "d": bar_path}))
    rest += node_text(box, direction, state, words)
    rest += _node_signs(box, state, has_finding=has_finding, has_gate=has_gate)
    return joined(outline), joined(rest)


@lru_cache(maxsize=512)
def _inner_line(box: Box, hatch_id: str) -> Markup:
    """The ring of an exit; the hatches of whatever is neither an exit nor a start."""
    if box.shape is Shape.START:
        return joined(())
    if box.shape is Shape.EXIT:
        return element("path", {"class": "ring", "d": pill(box.width - 7, box.height - 7)})
    return element("path", {"class": "hatch", "d": outline_path(box), "fill": f"url(#{hatch_id})"})


def _node_signs(box: Box, state: NodeState, *, has_finding: bool, has_gate: bool) -> list[Markup]:
    """The status at the top left, or a finding, with which nothing runs; a goal gate at the top right."""
    left, right, top = sign_places(box)
    if has_finding:
        parts = [_finding(left, top)]
    else:
        disc, sign = (element("circle", {"r": SIGN_RADIUS}), element("path", {"d": MARK_PATHS[state.status]}))
        parts = [element("g", {"class": "mark", **_at(left, top)}, disc, sign)]
    if has_gate:
        star = element("path", {"d": STAR_PATH})
        parts.append(element("g", {"class": "badge goal-gate", **_at(right, top)}, star))
    return parts


def _passes(passes: int, words: str, place: EdgePlace, label: Point, *, is_narrow: bool) -> Markup:
    """The number of passes of an edge; it may appear at any time, so each edge has a place for it.

    Where edges are so dense that there is none, the tooltip alone says it.
    """
    number = short_count(passes) if is_narrow or passes > MOST_PASSES else str(passes)
    times = words or (TIMES + number if passes > 1 else "")
    names = "passes" + " narrow" * is_narrow + ("", " after", " before")[place.side]
    where = {"x": place.start - label[0], "y": place.y - label[1] + 3.5}
    return element("text", {"class": names, **where}, times)


def _panel(panel: Panel, rect: Rect) -> Markup:
    box = {"x": rect.x, "y": rect.y, "width": rect.width, "height": rect.height, "rx": 8}
    return element(
        "g",
        {"class": "lane more" if panel.is_stack else "lane" if panel.is_lane else "panel"},
        element("title", None, panel.label),
        element("rect", box),
    )


def _finding(x: float, y: float) -> Markup:
    triangle, sign = (element("path", {"d": data}) for data in WARNING_PATHS)
    return element("g", {"class": "finding", **_at(x, y)}, triangle, sign)


def _hatch_pattern(hatch_id: str) -> Markup:
    line = element("path", {"class": "hatch-line", "d": "M-2 2L2-2M0 8L8 0M6 10L10 6"})
    size = {"id": hatch_id, "width": 8, "height": 8, "patternUnits": "userSpaceOnUse"}
    return element("pattern", size, line)


def _at(x: float, y: float) -> dict[str, str]:
    return {"transform": "".join(("translate(", path_data(x, y), ")"))}


def _css_name(text: str) -> str:
    """A handler type as a class name: ``wait.human`` is ``wait-human``."""
    return "".join(char if char.isascii() and char.isalnum() else "-" for char in text)
