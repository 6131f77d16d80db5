"""The marks of one graph: its nodes, edges and panels as SVG elements, at the places that a layout gives.

Every layout gives the same ids and classes, so that a live view changes classes and never redraws:
``[data-node="id"]`` with ``state-*``, ``[data-edge="index"]`` with ``taken``. No text of the graph's author
reaches the output but through ``markup.element``; no attribute of theirs does.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from attractor_nb.views.drawing import DETAIL_SIZE, EDGE_LINE_HEIGHT, LABEL_SIZE, LINE_HEIGHT, detail_of
from attractor_nb.views.dress import NO_DRESS, NO_MARK
from attractor_nb.views.marks import AGAIN, MARK_PATHS, STAR_PATH, TIMES, WARNING_PATHS
from attractor_nb.views.markup import clean, element, joined, path_data
from attractor_nb.views.metrics import ELLIPSIS, shorten
from attractor_nb.views.outlines import (
    Point,
    bar,
    count_place,
    outline_path,
    pill,
    sign_places,
    text_room,
    text_shift,
)
from attractor_nb.views.scene import Box, Link, Panel, Scene, Shape
from attractor_nb.views.state import EdgeState, NodeState, NodeStatus

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from markupsafe import Markup

    from attractor_nb.decisions.joins import Join
    from attractor_nb.model.graph import Edge, Graph, Node
    from attractor_nb.views.dress import Dress
    from attractor_nb.views.layout.geometry import Rect
    from attractor_nb.views.layout.result import Layout, Route

_NO_STATE: Final = NodeState()
_NO_PASS: Final = EdgeState()
_TOOLTIP_CHARS: Final = 300
_NO_JOIN: Final = "no join: branches run to their ends"


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
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

    def content(self) -> list[Markup]:
        """What is drawn, back to front: panels, edges, nodes, edge labels."""
        hatch_id = self._hatch_id
        routed = list(zip(self.scene.links, self.layout.routes, strict=True))
        boxes = zip(self.scene.boxes, self.layout.centres, strict=True)
        panels = list(zip(self.scene.panels, self.layout.panels, strict=True))
        return [
            joined([_panel(panel, rect) for panel, rect in panels], "\n"),
            joined([self._edge(link, route) for link, route in routed], "\n"),
            joined([_panel_title(panel, rect) for panel, rect in panels if panel.title], "\n"),
            joined([self._node(box, centre, hatch_id) for box, centre in boxes], "\n"),
            joined([self._edge_label(link, route) for link, route in routed], "\n"),
        ]

    @property
    def definitions(self) -> Markup:
        """What the marks refer to."""
        return element("defs", None, _hatch_pattern(self._hatch_id))

    @property
    def _hatch_id(self) -> str:
        return "hatch-" + sha256(repr(self.scene).encode()).hexdigest()[:10]

    @property
    def summary(self) -> str:
        """Its name and size, for a screen reader."""
        nodes, edges = len(self.scene.boxes), len(self.scene.links)
        name = clean(self.graph.label[:_TOOLTIP_CHARS]) or "without a name"
        return f"Pipeline {name}: {nodes} node{'s' * (nodes != 1)}, {edges} edge{'s' * (edges != 1)}"

    def _node(self, box: Box, centre: Point, hatch_id: str) -> Markup:
        node = self.graph.nodes.get(box.node_id)
        state = self.states.get(box.node_id, _NO_STATE)
        mark = self.dress.nodes.get(box.node_id, NO_MARK)
        shape = outline_path(box)
        kind = self.graph.handler_types.get(box.node_id, "missing")
        tooltip = _node_tooltip(box.node_id, node, kind, state, self.joins.get(box.node_id), mark.tip)
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
        parts += self._node_text(box, state)
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

    def _node_text(self, box: Box, state: NodeState) -> list[Markup]:
        """Label lines and the small line under them: why it failed, or how branches or a child run stand."""
        detail = box.detail
        news = state.reason if state.status is NodeStatus.FAIL and state.reason else state.note
        if detail and news:
            detail = shorten(clean(news), text_room(box), DETAIL_SIZE)
        middle = text_shift(box, self.scene.direction)
        y = middle - (len(box.lines) * LINE_HEIGHT + (14 if box.detail else 0)) / 2 + 0.92 * LABEL_SIZE
        lines = [
            element("tspan", {"x": 0, "y": y + number * LINE_HEIGHT}, line)
            for number, line in enumerate(box.lines)
        ]
        parts = [element("text", {"class": "label"}, *lines)]
        if box.detail:
            below = y + (len(box.lines) - 1) * LINE_HEIGHT + 14
            parts.append(element("text", {"class": "detail", "y": below}, detail))
        return parts

    def _node_signs(self, box: Box, node: Node | None, state: NodeState) -> list[Markup]:
        """The status mark at the top left, badges at the top right, the finding at the bottom right."""
        left, right, top = sign_places(box)
        is_gate = node is not None and node.goal_gate
        counts = self.dress.nodes.get(box.node_id, NO_MARK).words or _counts(state)
        mark_path = element("path", {"d": MARK_PATHS[state.status]})
        parts = [element("g", {"class": "mark", **_at(left, top)}, element("circle", {"r": 8}), mark_path)]
        if is_gate:
            star = element("path", {"d": STAR_PATH})
            parts.append(
                element(
                    "g", {"class": "badge goal-gate", **_at(right, top)}, element("circle", {"r": 8}), star
                )
            )
        x, y = count_place(box)
        parts.append(element("text", {"class": "counts", "x": x, "y": y}, counts))
        if node is None or box.node_id in self.error_nodes:
            parts.append(_finding(box.width / 2 - 2, box.height / 2 - 2))
        return parts

    def _edge(self, link: Link, route: Route) -> Markup:
        edge = self.graph.edges[link.index]
        passes = self.passes.get(link.index, _NO_PASS).passes
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
        start = route.path[0][0]
        line: list[str | float] = ["M", *start]
        for _, a, b, c in route.path:
            line += ("C", *a, *b, *c)
        return element(
            "g",
            {"class": " ".join(classes), "data-edge": str(link.index)},
            element("title", None, _edge_tooltip(edge, passes, mark.tip)),
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

    def _edge_label(self, link: Link, route: Route) -> Markup:
        """The label, the number of passes beside it, and the mark of an error."""
        edge = self.graph.edges[link.index]
        passes = self.passes.get(link.index, _NO_PASS).passes
        x, y = route.label
        classes = ["edge-label"]
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
        below = link.height / 2 + 9 if link.lines else 3.5
        mark = self.dress.edges.get(link.index, NO_MARK)
        classes += mark.css_classes
        times = mark.words or (f"{TIMES}{passes}" if passes > 1 else "")
        parts.append(element("text", {"class": "passes", "y": below}, times))
        if (edge.source, edge.target) in self.error_edges:
            parts.append(_finding(-link.width / 2 + 2, -link.height / 2 - 2))
        return element("g", {"class": " ".join(classes), "data-edge": str(link.index), **_at(x, y)}, *parts)


def _panel(panel: Panel, rect: Rect) -> Markup:
    box = {"x": rect.x, "y": rect.y, "width": rect.width, "height": rect.height, "rx": 8}
    return element(
        "g",
        {"class": "lane" if panel.is_lane else "panel"},
        element("title", None, panel.label),
        element("rect", box),
    )


def _panel_title(panel: Panel, rect: Rect) -> Markup:
    title = shorten(panel.title, rect.width - 16, 11)
    return element("text", {"class": "panel-title", "x": rect.x + 10, "y": rect.y + 17}, title)


def _finding(x: float, y: float) -> Markup:
    triangle, sign = (element("path", {"d": data}) for data in WARNING_PATHS)
    return element("g", {"class": "finding", **_at(x, y)}, triangle, sign)


def _hatch_pattern(hatch_id: str) -> Markup:
    line = element("path", {"class": "hatch-line", "d": "M-2 2L2-2M0 8L8 0M6 10L10 6"})
    size = {"id": hatch_id, "width": 8, "height": 8, "patternUnits": "userSpaceOnUse"}
    return element("pattern", size, line)


def _at(x: float, y: float) -> dict[str, str]:
    return {"transform": "".join(("translate(", path_data(x, y), ")"))}


def _counts(state: NodeState) -> str:
    """Attempts and visits, when there was more than one."""
    parts = [
        state.progress,
        f"{TIMES}{state.attempt}" if state.attempt > 1 else "",
        f"{AGAIN}{state.visits}" if state.visits > 1 else "",
    ]
    return " ".join(part for part in parts if part)


def _node_tooltip(
    node_id: str, node: Node | None, handler_type: str, state: NodeState, join: Join | None, tip: str
) -> str:
    if node is None:
        return f"{node_id}\nnot declared"
    lines = [node.label] if node.label != node_id else []
    lines.append(
        f"{node_id} · {detail_of(node, handler_type)}" if handler_type != "tool" else f"{node_id} · tool"
    )
    lines += (text for text in (node.prompt, node.tool_command) if text)
    if join is not None:
        lines.append(f"branches meet at {join.node_id}" if join.node_id else _NO_JOIN)
    if state.note:
        lines.append(state.note)
    if state.status is not NodeStatus.PENDING:
        lines.append(state.status.replace("_", " ") + (f": {state.reason}" if state.reason else ""))
    return _tooltip([*lines, tip])


def _edge_tooltip(edge: Edge, passes: int, tip: str) -> str:
    lines = [f"{edge.source} → {edge.target}", edge.label, edge.condition, tip]
    if passes and not tip:
        lines.append("taken once" if passes == 1 else f"taken {passes} times")
    return _tooltip(lines)


def _tooltip(lines: list[str]) -> str:
    """The lines that say something, none of them endless."""
    return "\n".join(
        line if len(line) <= _TOOLTIP_CHARS else line[:_TOOLTIP_CHARS] + ELLIPSIS for line in lines if line
    )


def _css_name(text: str) -> str:
    """A handler type as a class name: ``wait.human`` is ``wait-human``."""
    return "".join(char if char.isascii() and char.isalnum() else "-" for char in text)
