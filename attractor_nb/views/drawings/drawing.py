"""From a graph to a scene: shapes, wrapped labels, sizes (pure).

The more nodes a graph has the less text is worth its space: from 100 nodes on the small lines go,
from 300, or 2,000 edges, on labels are cut to a word and edges lose theirs. The whole text stays in the tooltips and
in the text table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from attractor_nb.decisions.fan_outs.joins import joins_of
from attractor_nb.model.vocabulary.repetition import FOR_EACH, FOR_EACH_TYPE
from attractor_nb.model.vocabulary.shapes import CHILD_RUN_TYPES, FUNCTION_TYPE
from attractor_nb.views.drawings.branch_stacks import WIDEST, lanes_of
from attractor_nb.views.layout import MARGIN
from attractor_nb.views.layout.direction import flow_of
from attractor_nb.views.layout.skeleton import without_long_panels
from attractor_nb.views.markup import clean
from attractor_nb.views.metrics import shorten, text_width, wrap
from attractor_nb.views.outlines import ROOF, SIGN_RADIUS, SLANT
from attractor_nb.views.scene import Box, Direction, Link, Panel, Scene, Shape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.decisions.fan_outs.joins import Join
    from attractor_nb.model.graph import Edge, Graph, Node
    from attractor_nb.views.drawings.branch_stacks import Lane

LABEL_SIZE: Final = 12.0
DETAIL_SIZE: Final = 10.0
EDGE_SIZE: Final = 10.5
LINE_HEIGHT: Final = 15.0
EDGE_LINE_HEIGHT: Final = 13.0
DETAIL_HEIGHT: Final = 14.0

SHAPE_OF_TYPE: Final = {
    "start": Shape.START,
    "exit": Shape.EXIT,
    "wait.human": Shape.HEXAGON,
    "conditional": Shape.DIAMOND,
    "parallel": Shape.FAN_OUT,
    "parallel.fan_in": Shape.FAN_IN,
    "tool": Shape.PARALLELOGRAM,
    "stack.manager_loop": Shape.HOUSE,
}
"""How each built-in handler type looks; any other type is a box."""


@dataclass(frozen=True, slots=True)
class Density:
    """How much text a drawing of some size can carry. Widths in characters of average width."""

    label_chars: int
    label_lines: int
    has_details: bool
    edge_chars: int
    padding: float
    gutter: float
    """On either side of a label: the sign of the state stands there. Some faces are wider than the table."""


FULL: Final = Density(24, 3, has_details=True, edge_chars=28, padding=12, gutter=26)
NARROW: Final = Density(15, 4, has_details=True, edge_chars=15, padding=10, gutter=25)
"""For what would be too wide to be read with longer lines."""
COMPACT: Final = Density(20, 1, has_details=False, edge_chars=16, padding=9, gutter=25)
COMPACT_NARROW: Final = Density(11, 1, has_details=False, edge_chars=10, padding=9, gutter=25)
DENSE: Final = Density(12, 1, has_details=False, edge_chars=0, padding=7, gutter=24)
NARROWER: Final = {FULL: NARROW, COMPACT: COMPACT_NARROW}
"""What is taken where a drawing would be too wide to be read."""

_PILL_GUTTER: Final = 35.0
_PILL_ROOM: Final = 16.0
"""At a round end, around words that stand in place of counts."""
_LEAST_WIDTH: Final = 72.0
_LEAST_WIDTH_WITH_DETAILS: Final = 88.0
"""Counts and the first letters of a reason find room beside each other."""
_COUNTS_ROOM: Final = 36.0
"""For attempts and visits where they are narrowest: in the lower corner of a diamond."""
_COUNTS_HEIGHT: Final = 11.5
_AVERAGE_CHAR: Final = 6.6
_MAX_CHARS: Final = 400
"""Nobody sees more of a text, however long it is."""
_NOTED_TYPES: Final = frozenset({"parallel", *CHILD_RUN_TYPES})
_NOTE_ROOM: Final = "12/20   wait_all: 2 of 4, 1 failed"
"""What a fan-out, or a node with a child run, says while it goes on, in its small line."""
_DIRECTIONS: Final = {direction.value: direction for direction in Direction}


def density_of(graph: Graph) -> Density:
    """What a drawing of a graph of this size shows."""
    if len(graph.nodes) >= 300 or len(graph.edges) >= 2_000:
        return DENSE
    return FULL if len(graph.nodes) < 100 else COMPACT


def draw_scene(
    graph: Graph,
    density: Density | None = None,
    words: Mapping[str, str] | None = None,
    joins: Mapping[str, Join] | None = None,
) -> Scene:
    """The graph as boxes, links and panels.

    An undeclared target is drawn as a box of its own, so that the slip can be seen.

    Args:
        graph: What to draw.
        density: How much text; by default as a drawing of so many nodes carries.
        words: What stands in nodes in place of their counts.
        joins: Where the branches of each fan-out meet, if that is known already.
    """
    density = density or density_of(graph)
    boxes = [
        _box(node, graph.handler_types[node.id], density, (words or {}).get(node.id, ""))
        for node in graph.nodes.values()
    ]
    positions = {box.node_id: position for position, box in enumerate(boxes)}
    for edge in graph.edges:
        for node_id in (edge.source, edge.target):
            if node_id not in positions:
                positions[node_id] = len(boxes)
                boxes.append(_missing_box(node_id, density))
    links = tuple(_link(index, edge, positions, density) for index, edge in enumerate(graph.edges))
    direction = _DIRECTIONS.get(graph.get("rankdir", str, "").upper())
    scene = Scene(tuple(boxes), links, _panels(graph, positions))
    scene = without_long_panels(
        _with_lanes(scene, lanes_of(graph, joins_of(graph) if joins is None else joins), positions)
    )
    return replace(scene, direction=direction or flow_of(scene, WIDEST), longest=WIDEST - 2 * MARGIN)


def detail_of(node: Node, handler_type: str) -> str:
    """The small grey line: the model, the first words of the command, or the handler type."""
    if handler_type == "tool" and node.tool_command:
        return " ".join(node.tool_command.split(maxsplit=6)[:6])
    if handler_type == "codergen" and node.llm_model:
        return node.llm_model
    if handler_type == FUNCTION_TYPE and (name := node.get("function", str, "")):
        return f"{name}()"
    if handler_type == "parallel":
        return node.get("join_policy", str, "wait_all")
    if handler_type == FOR_EACH_TYPE:
        return f"each {node.get(FOR_EACH, str, '')}"
    return handler_type


def _box(node: Node, handler_type: str, density: Density, words: str) -> Box:
    own_type = node.handler_type if handler_type == FOR_EACH_TYPE else handler_type
    shape = SHAPE_OF_TYPE.get(own_type, Shape.BOX)
    chars = min(density.label_chars, 16) if shape is Shape.DIAMOND else density.label_chars
    label = clean(node.label[:_MAX_CHARS])
    lines = wrap(label, chars * _AVERAGE_CHAR, LABEL_SIZE, max_lines=density.label_lines)
    has_detail = density.has_details and shape not in {Shape.START, Shape.EXIT, Shape.DIAMOND}
    detail = ""
    if has_detail:
        detail = shorten(
            clean(detail_of(node, handler_type)[:_MAX_CHARS]), density.label_chars * _AVERAGE_CHAR, DETAIL_SIZE
        )
    room = _NOTE_ROOM if detail and handler_type in _NOTED_TYPES else ""
    counts = text_width(words, DETAIL_SIZE, is_bold=True)
    width, height = _size(shape, lines, max(detail, room, key=len), density, counts)
    return Box(node.id, shape, lines, detail, width, height, max(_PILL_GUTTER, counts + _PILL_ROOM))


def _missing_box(node_id: str, density: Density) -> Box:
    lines = wrap(
        clean(node_id[:_MAX_CHARS]), density.label_chars * _AVERAGE_CHAR, LABEL_SIZE, max_lines=density.label_lines
    )
    detail = "not declared" if density.has_details else ""
    width, height = _size(Shape.MISSING, lines, detail, density)
    return Box(node_id, Shape.MISSING, lines, detail, width, height)


def _size(
    shape: Shape, lines: tuple[str, ...], detail: str, density: Density, words: float = 0.0
) -> tuple[float, float]:
    """Outline size around a label, the signs beside it and the line under it, in whole even pixels."""
    label = max(text_width(line, LABEL_SIZE) for line in lines)
    block, padding = len(lines) * LINE_HEIGHT, density.padding
    if shape in {Shape.START, Shape.EXIT}:
        width, height = label + 2 * max(_PILL_GUTTER, words + _PILL_ROOM), block + padding
    elif shape is Shape.DIAMOND:
        height = max(3 * padding + 12, 2.3 * block, block + 46)
        signs, beside = 2 * SIGN_RADIUS / height, 2 * density.gutter
        counts = max(_COUNTS_ROOM, words) / (1 - (block + 23) / height)
        width = max(1.5 * height, counts, (label + beside) / (1 - signs), (label + 20) / (1 - block / height))
    else:
        width = max(
            _LEAST_WIDTH_WITH_DETAILS if density.has_details else _LEAST_WIDTH,
            words + 2 * padding,
            label + 2 * density.gutter,
            text_width(detail, DETAIL_SIZE) + 2 * padding,
        )
        height = block + (DETAIL_HEIGHT + 1.4 * padding if density.has_details else 2 * _COUNTS_HEIGHT)
        if shape is Shape.HEXAGON:
            width += 1.5 * SLANT
        elif shape is Shape.PARALLELOGRAM:
            width += 2 * SLANT
        elif shape is Shape.HOUSE:
            height += ROOF
        elif shape in {Shape.FAN_OUT, Shape.FAN_IN}:
            width, height = width + 8, height + 8
    return 2.0 * -(-width // 2), 2.0 * -(-height // 2)


def _link(index: int, edge: Edge, positions: dict[str, int], density: Density) -> Link:
    source, target = positions[edge.source], positions[edge.target]
    text = clean((edge.label or edge.condition)[:_MAX_CHARS])
    if not text.strip() or not density.edge_chars:
        return Link(index, source, target)
    is_mono = not edge.label
    room = density.edge_chars * (_AVERAGE_CHAR - 0.6)
    max_lines = 2 if density.has_details else 1
    lines = wrap(text, room, EDGE_SIZE, max_lines=max_lines, is_mono=is_mono)
    width = max(text_width(line, EDGE_SIZE, is_mono=is_mono) for line in lines) + 12
    height = len(lines) * EDGE_LINE_HEIGHT + 5
    return Link(index, source, target, lines, is_mono, 2.0 * -(-width // 2), height)


def _with_lanes(scene: Scene, lanes: list[Lane], positions: Mapping[str, int]) -> Scene:
    """The scene with lanes inside its panels. A lane that a subgraph cuts, or lies within, is left out."""
    panels, paths = list(scene.panels), scene.panel_paths()
    for lane in lanes:
        members = sorted(positions[name] for name in lane.members)
        around = {paths[member] for member in members}
        if len(around) > 1:
            continue
        path = around.pop()
        label = clean(f"branch {lane.id} of {lane.fan_out}"[:_MAX_CHARS])
        for member in members:
            paths[member] = (*path, len(panels))
        panels.append(Panel(label, tuple(members), path[-1] if path else None, is_lane=True))
    return replace(scene, panels=tuple(panels))


def _panels(graph: Graph, positions: dict[str, int]) -> tuple[Panel, ...]:
    """Labelled groups with members; what an unlabelled one holds goes to the group around it."""
    kept: dict[int, int] = {}
    panels: list[Panel] = []
    for position, group in enumerate(graph.subgraphs):
        members = tuple(positions[name] for name in group.members if name in positions)
        parent = kept.get(group.parent) if group.parent is not None else None
        if group.label.strip() and members:
            kept[position] = len(panels)
            panels.append(Panel(clean(group.label[:_MAX_CHARS]), members, parent))
        elif parent is not None:
            kept[position] = parent
    return tuple(panels)
