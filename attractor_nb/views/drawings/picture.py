"""The marks of one graph: its nodes, edges and panels as SVG elements, at the places that a layout gives.

Every layout gives the same ids and classes, so that a live view changes classes and never redraws:
``[data-node="id"]`` with ``state-*``, ``[data-edge="index"]`` with ``taken``. No text of the graph's author
reaches the output but through ``markup.element``; no attribute of theirs does.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from attractor_nb.views.drawings.branch_stacks import in_words, summed
from attractor_nb.views.drawings.drawing import DETAIL_SIZE, EDGE_LINE_HEIGHT
from attractor_nb.views.drawings.edge_places import Ground, around, cut
from attractor_nb.views.drawings.marks import MARK_PATHS, STAR_PATH, TIMES, WARNING_PATHS
from attractor_nb.views.drawings.node_text import node_text, short_count
from attractor_nb.views.drawings.overlay import NO_DRESS, NO_MARK
from attractor_nb.views.drawings.tooltips import TOOLTIP_CHARS, edge_tooltip, lines_of, node_tooltip
from attractor_nb.views.markup import clean, element, joined, path_data
from attractor_nb.views.metrics import text_width
from attractor_nb.views.outlines import SIGN_RADIUS, Point, bar, outline_path, pill, sign_places
from attractor_nb.views.scene import Box, Link, Panel, Scene, Shape
from attractor_nb.views.state import EdgeState, NodeState, NodeStatus

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from markupsafe import Markup

    from attractor_nb.decisions.joins import Join
    from attractor_nb.model.graph import Graph, Node
    from attractor_nb.views.drawings.branch_stacks import Stack
    from attractor_nb.views.drawings.overlay import Dress
    from attractor_nb.views.layout.geometry import Rect
    from attractor_nb.views.layout.result import Layout, Route

_NO_STATE: Final = NodeState()
_NO_PASS: Final = EdgeState()
_MOST_PASSES: Final = 9999
_PASSES_WIDTH: Final = text_width(f"{TIMES}{_MOST_PASSES}", DETAIL_SIZE, is_bold=True)
"""Beside each edge: how often it was passed may appear at any time."""
_SHORT_PASSES_WIDTH: Final = text_width(f"{TIMES}888", DETAIL_SIZE, is_bold=True)
_FINDING_SIZE: Final = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPicture:
    """One graph with its layout and the states of its run.

    Attributes:
        graph: The graph, without secrets.
        scene: What is drawn of it.
        layout: Where.
        states: States of nodes; the others are pending.
        passes: Edges taken, by position in ``graph.edges``.
        error_nodes: Nodes that a finding marks.
        error_edges: Edges that one marks, by their ends.
        joins: Where the branches of each fan-out meet.
        dress: What is shown of nodes and edges beside their states.
        stacks: Branches that are one box, by its id.
    """

    graph: Graph
    scene: Scene
    layout: Layout
    states: Mapping[str, NodeState]
    passes: Mapping[int, EdgeState]
    error_nodes: Collection[str]
    error_edges: Collection[tuple[str, str]]
    joins: Mapping[str, Join]
    dress: Dress = NO_DRESS
    stacks: Mapping[str, Stack] = field(default_factory=dict[str, "Stack"])

    def content(self) -> list[Markup]:
        """What is drawn, back to front: panels, edges, titles, nodes, edge labels."""
        hatch_id = self._hatch_id
        routed = list(zip(self.scene.links, self.layout.routes, strict=True))
        boxes = zip(self.scene.boxes, self.layout.centres, strict=True)
        panels = list(zip(self.scene.panels, self.layout.panels, strict=True))
        ground = Ground(self.scene, self.layout)
        titles = [_panel_title(panel, rect, ground) for panel, rect in panels if panel.title]
        labels = [self._edge_label(place, link, ground) for place, link in enumerate(self.scene.links)]
        return [
            joined([_panel(panel, rect) for panel, rect in panels], "\n"),
            joined([self._edge(link, route) for link, route in routed], "\n"),
            joined(titles, "\n"),
            joined([self._node(box, centre, hatch_id) for box, centre in boxes], "\n"),
            joined(labels, "\n"),
        ]

    @property
    def definitions(self) -> Markup:
        """What the marks refer to."""
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
        """Branches as one box before another: how many they are, and how they stand."""
        stack = self.stacks[box.node_id]
        statuses = stack.statuses(self.states)
        words = "" if set(statuses) == {NodeStatus.PENDING} else in_words(statuses)
        state = NodeState(summed(statuses), note=words)
        front = replace(box, width=box.width - 6, height=box.height - 6)
        shape = outline_path(front)
        left, _, top = sign_places(front)
        names = sorted(name for name in stack.members if name in self.error_nodes)
        disc, sign = element("circle", {"r": SIGN_RADIUS}), element("path", {"d": MARK_PATHS[state.status]})
        tip = [f"{len(statuses)} more branches of {stack.fan_out}"]
        tip += [
            f"{', '.join(sorted(members))}: {status.replace('_', ' ')}"
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
                _finding(left, top)
                if names
                else element("g", {"class": "mark", **_at(left, top)}, disc, sign),
            ),
        )

    def _node(self, box: Box, centre: Point, hatch_id: str) -> Markup:
        if box.node_id in self.stacks:
            return self._stack(box, centre)
        node = self.graph.nodes.get(box.node_id)
        state = self.states.get(box.node_id, _NO_STATE)
        mark = self.dress.nodes.get(box.node_id, NO_MARK)
        shape = outline_path(box)
        kind = self.graph.handler_types.get(box.node_id, "missing")
        tooltip = node_tooltip(box.node_id, node, kind, state, self.joins.get(box.node_id), mark.tip)
        parts = [
            element("title", None, tooltip),
            element("path", {"class": "outline", "d": shape}),
        ]
        if box.shape is Shape.EXIT:
            parts.append(element("path", {"class": "ring", "d": pill(box.width - 7, box.height - 7)}))
        elif box.shape is not Shape.START:
            parts.append(element("path", {"class": "hatch", "d": shape, "fill": f"url(#{hatch_id})"}))
        if bar_path := bar(box, self.scene.direction):
            parts.append(element("path", {"class": "bar", "d": bar_path}))
        parts += node_text(box, self.scene.direction, state, mark.words)
        parts += self._node_signs(box, node, state)
        return element(
            "g",
            {
                "class": " ".join(
                    ("node", "type-" + _css_name(kind), "state-" + state.status, *mark.css_classes)
                ),
                "data-node": box.node_id,
                "transform": "".join(("translate(", path_data(*centre), ")")),
            },
            *parts,
        )

    def _node_signs(self, box: Box, node: Node | None, state: NodeState) -> list[Markup]:
        """The status at the top left, or a finding, with which nothing runs; a goal gate at the top right."""
        left, right, top = sign_places(box)
        if node is None or box.node_id in self.error_nodes:
            parts = [_finding(left, top)]
        else:
            disc, sign = (
                element("circle", {"r": SIGN_RADIUS}),
                element("path", {"d": MARK_PATHS[state.status]}),
            )
            parts = [element("g", {"class": "mark", **_at(left, top)}, disc, sign)]
        if node is not None and node.goal_gate:
            star = element("path", {"d": STAR_PATH})
            parts.append(element("g", {"class": "badge goal-gate", **_at(right, top)}, star))
        return parts

    def _edge(self, link: Link, route: Route) -> Markup:
        edge = self.graph.edges[link.index]
        passes = self._passes_of(link)
        classes = ["edge"]
        if passes:
            classes.append("taken")
        if edge.loop_restart:
            classes.append("edge-restart")
        has_error = (edge.source, edge.target) in self.error_edges
        if has_error:
            classes.append("edge-error")
        mark = self.dress.edges.get(link.index, NO_MARK)
        classes += mark.css_classes
        (x, y), (bx, by) = route.tip, route.base
        half_x, half_y = (y - by) * 0.45, (bx - x) * 0.45
        line: list[str | float] = []
        is_on_label = link.lines and link.source != link.target
        pieces = (
            cut(route.path, around(*route.label, link.width, link.height)) if is_on_label else [route.path]
        )
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
                    "d": path_data(
                        "M", x, y, "L", bx + half_x, by + half_y, "L", bx - half_x, by - half_y, "Z"
                    ),
                },
            ),
        )

    def _passes_of(self, link: Link) -> int:
        """How often an edge was taken, or the one most taken of those that it stands for."""
        passes = self.passes.get(link.index, _NO_PASS).passes
        if not link.others:
            return passes
        return max(passes, *(self.passes.get(index, _NO_PASS).passes for index in link.others))

    def _edge_label(self, position: int, link: Link, ground: Ground) -> Markup:
        """The label on the line, and beside the line the number of passes, or the mark of an error."""
        edge = self.graph.edges[link.index]
        passes = self._passes_of(link)
        x, y = self.layout.routes[position].label
        mark = self.dress.edges.get(link.index, NO_MARK)
        classes = ["edge-label", *mark.css_classes]
        if link.is_mono:
            classes.append("is-condition")
        if passes:
            classes.append("taken")
        parts: list[Markup] = []
        if link.lines:
            box = {
                "x": -link.width / 2,
                "y": -link.height / 2,
                "width": link.width,
                "height": link.height,
                "rx": 4,
            }
            first = -len(link.lines) * EDGE_LINE_HEIGHT / 2 + 10
            lines = [
                element("tspan", {"x": 0, "y": first + number * EDGE_LINE_HEIGHT}, line)
                for number, line in enumerate(link.lines)
            ]
            parts += (element("rect", box), element("text", None, *lines))
        if (edge.source, edge.target) in self.error_edges:
            size = _FINDING_SIZE
            sign = ground.beside(position, size, size) or ground.nearest(position)
            parts.append(_finding(sign.x - x, sign.y - y))
        parts += self._passes(position, passes, mark.words, ground)
        return element("g", {"class": " ".join(classes), "data-edge": str(link.index), **_at(x, y)}, *parts)

    def _passes(self, position: int, passes: int, words: str, ground: Ground) -> list[Markup]:
        """How often an edge was passed; it may appear at any time, so each edge has a place for it.

        Where edges are so dense that there is none, the tooltip alone says it.
        """
        wanted = text_width(words, DETAIL_SIZE, is_bold=True) or _PASSES_WIDTH
        place, names = ground.beside(position, wanted, DETAIL_SIZE), "passes"
        if place is None and not words:
            place, names = ground.beside(position, _SHORT_PASSES_WIDTH, DETAIL_SIZE), "passes narrow"
        if place is None and words:
            place = ground.nearest(position)
        if place is None:
            return []
        number = short_count(passes) if "narrow" in names or passes > _MOST_PASSES else str(passes)
        times = words or (TIMES + number if passes > 1 else "")
        x, y = self.layout.routes[position].label
        names += ("", " after", " before")[place.side]
        return [element("text", {"class": names, "x": place.start - x, "y": place.y - y + 3.5}, times)]


def _panel(panel: Panel, rect: Rect) -> Markup:
    box = {"x": rect.x, "y": rect.y, "width": rect.width, "height": rect.height, "rx": 8}
    return element(
        "g",
        {"class": "lane more" if panel.is_stack else "lane" if panel.is_lane else "panel"},
        element("title", None, panel.label),
        element("rect", box),
    )


def _panel_title(panel: Panel, rect: Rect, ground: Ground) -> Markup:
    (x, y), title = ground.title(panel, rect)
    return element("text", {"class": "panel-title", "x": x, "y": y}, title)


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
