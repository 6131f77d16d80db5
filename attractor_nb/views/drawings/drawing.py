"""From a graph to a scene: shapes, wrapped labels, sizes (pure).

The more nodes a graph has the less text is worth its space: from 100 nodes on the small lines go, from 1,000, or 2,000
edges, on edges lose their labels. Labels are wrapped narrower where the drawing would be too wide for a cell; only
of 1,000 nodes and more they are then cut to a word. The whole text stays in the tooltips and in the text table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from attractor_nb.decisions.branch_policies import FIRST_SUCCESS, K_OF_N, QUORUM, WAIT_ALL, Join, joins_of
from attractor_nb.model.diagnostic import Severity
from attractor_nb.model.states import NodeStatus, stage_word
from attractor_nb.model.vocabulary.shapes import CHILD_RUN_TYPES, FUNCTION_TYPE
from attractor_nb.model.vocabulary.value_forms import FOR_EACH, FOR_EACH_TYPE
from attractor_nb.views.drawings.branch_stacks import WIDEST, Lane, lanes_of
from attractor_nb.views.layout.flow import flow_of
from attractor_nb.views.layout.skeleton import without_long_panels
from attractor_nb.views.markup import clean, element, path_data
from attractor_nb.views.metrics import ELLIPSIS, shorten, text_width, wrap
from attractor_nb.views.outlines import (
    ROOF,
    SIGN_RADIUS,
    SLANT,
    Box,
    Direction,
    Link,
    Panel,
    Scene,
    Shape,
    small_line_place,
    text_shift,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from markupsafe import Markup

    from attractor_nb.model.graph import Edge, Graph, Node
    from attractor_nb.views.state import NodeState


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
"""Shape of each built-in handler type; any other type is a box."""


@dataclass(frozen=True, slots=True)
class Density:
    """The amount of text in a drawing of some size. Widths in characters of average width; longer words are whole."""

    label_chars: int
    label_lines: int
    edge_chars: int
    edge_lines: int
    padding: float
    has_details: bool = False


FULL: Final = Density(24, 3, edge_chars=28, edge_lines=3, padding=12, has_details=True)
NARROW: Final = Density(15, 7, edge_chars=23, edge_lines=3, padding=10, has_details=True)
SLIM: Final = Density(9, 8, edge_chars=15, edge_lines=4, padding=10, has_details=True)
COMPACT: Final = Density(24, 3, edge_chars=24, edge_lines=2, padding=9)
COMPACT_NARROW: Final = Density(11, 8, edge_chars=12, edge_lines=3, padding=9)
DENSE: Final = Density(24, 3, edge_chars=0, edge_lines=0, padding=7)
DENSE_NARROW: Final = Density(12, 1, edge_chars=0, edge_lines=0, padding=7)
_MOST_WORD_CHARS: Final = 24
_LEAST_DETAIL_CHARS: Final = 15
_DIAMOND_CHARS: Final = (16, 20, 24)
"""A diamond is as narrow as it can be with its whole label."""

_GUTTER: Final = 22.5
"""On either side of a label: the sign of the state is there, and 4 px between both."""
_WIDER_FACES: Final = 1.08
"""Faces of systems are wider than the table by up to this; without room for it a label would touch the sign."""
_PILL_GUTTER: Final = 35.0
_PILL_ROOM: Final = 16.0
"""At a round end, around words that are in place of counts."""
_LEAST_WIDTH: Final = 72.0
_LEAST_WIDTH_WITH_DETAILS: Final = 88.0
"""Counts and the first letters of a reason find room beside each other."""
_COUNTS_ROOM: Final = 36.0
"""For attempts and visits where they are narrowest: in the lower corner of a diamond."""
_COUNTS_HEIGHT: Final = 11.5
_AVERAGE_CHAR: Final = 6.6
_MAX_CHARS: Final = 400
"""More of a text is never visible."""
_NOTED_TYPES: Final = frozenset({"parallel", *CHILD_RUN_TYPES})
_NOTE_ROOM: Final = "12/20   wait_all: 2 of 4, 1 failed"
"""Room for the small line of a running fan-out, or of a node with a child run."""
_DIRECTIONS: Final = {direction.value: direction for direction in Direction}


def densities_of(graph: Graph) -> tuple[Density, ...]:
    """The densities of a drawing of a graph of this size, from the widest to the narrowest."""
    if len(graph.nodes) >= 1_000 or len(graph.edges) >= 2_000:
        return DENSE, DENSE_NARROW
    return (FULL, NARROW, SLIM) if len(graph.nodes) < 100 else (COMPACT, COMPACT_NARROW)


def draw_scene(
    graph: Graph,
    density: Density | None = None,
    words: Mapping[str, str] | None = None,
    joins: Mapping[str, Join] | None = None,
) -> Scene:
    """The graph as boxes, links and panels.

    An undeclared target is drawn as a separate box, so that the slip can be seen.

    Args:
        graph: What to draw.
        density: How much text; by default the most that a drawing of as many nodes has.
        words: What is in nodes in place of their counts.
        joins: Where the branches of each fan-out meet, if that is known already.
    """
    density = density or densities_of(graph)[0]
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
    return replace(scene, direction=direction or flow_of(scene, WIDEST))


_KINDS: Final = {
    "codergen": "model",
    "wait.human": "a person",
    "parallel.fan_in": "join",
    "tool": "command",
    "conditional": "condition",
    "stack.manager_loop": "manager",
}
_POLICIES: Final = {WAIT_ALL: "all branches", FIRST_SUCCESS: "first success", QUORUM: "a quorum"}
_HERE_DOCUMENT: Final = re.compile(r"(?<!<)<<[-~]?\s*(['\"]?)[\w.]+\1")
_MOST_WORDS: Final = 6


def detail_of(node: Node, handler_type: str) -> str:
    """The small grey line in words for people: a model's or function's name, the first words of a command, or the kind.

    A type of a handler of yours is its own name.
    """
    if handler_type == "tool" and (words := command_words(node.tool_command or "")):
        return words
    if handler_type == "codergen" and node.llm_model:
        return node.llm_model
    if handler_type == FUNCTION_TYPE and (name := node.get("function", str, "")):
        return f"{name}()"
    if handler_type == "parallel":
        policy = node.get("join_policy", str, WAIT_ALL)
        return f"{node.get('join_k', int, 1)} of the branches" if policy == K_OF_N else _POLICIES.get(policy, policy)
    if handler_type == FOR_EACH_TYPE:
        return f"each {node.get(FOR_EACH, str, '')}"
    return kind_words(handler_type)


def kind_words(handler_type: str) -> str:
    """A handler type in words for people.

    >>> kind_words("codergen"), kind_words("team.review")
    ('model', 'team.review')
    """
    return _KINDS.get(handler_type, handler_type)


def command_words(command: str) -> str:
    r"""The first words of a command's first line, without a text in it that goes on in further lines.

    >>> command_words("pytest -q"), command_words("python3 - <<'EOF'\nprint(1)\nEOF"), command_words("sh -c 'a\nb'")
    ('pytest -q', 'python3', 'sh -c')
    """
    lines = (line.strip() for line in command.splitlines())
    line = next((line for line in lines if line and not line.startswith("#")), "")
    # A document in the command ends the line; so does a quoted text that continues in the next one.
    line = _HERE_DOCUMENT.sub("", line)
    for quote in "'\"":
        if line.count(quote) % 2 and "\n" in command.strip():
            line = line[: line.index(quote)]
    words = line.split(maxsplit=_MOST_WORDS)[:_MOST_WORDS]
    while words and words[-1] in {"-", "\\"}:
        words.pop()
    return " ".join(words)


def _box(node: Node, handler_type: str, density: Density, words: str) -> Box:
    own_type = node.handler_type if handler_type == FOR_EACH_TYPE else handler_type
    shape = SHAPE_OF_TYPE.get(own_type, Shape.BOX)
    lines = _wrapped(clean(node.label[:_MAX_CHARS]), shape, density)
    has_detail = density.has_details and shape not in {Shape.START, Shape.EXIT, Shape.DIAMOND}
    detail = ""
    if has_detail:
        room = max(density.label_chars, _LEAST_DETAIL_CHARS) * _AVERAGE_CHAR
        detail = shorten(clean(detail_of(node, handler_type)[:_MAX_CHARS]), room, DETAIL_SIZE)
    note = _NOTE_ROOM if detail and handler_type in _NOTED_TYPES else ""
    counts = text_width(words, DETAIL_SIZE, is_bold=True)
    width, height = _size(shape, lines, max(detail, note, key=len), density, counts)
    return Box(node.id, shape, lines, detail, width, height, max(_PILL_GUTTER, counts + _PILL_ROOM))


def _wrapped(label: str, shape: Shape, density: Density) -> tuple[str, ...]:
    """A label in lines, cut only where a box of the density has no room for more."""
    word = max((text_width(word, LABEL_SIZE) for word in label.split()), default=0.0)
    least = min(word, _MOST_WORD_CHARS * _AVERAGE_CHAR)
    narrowest = _DIAMOND_CHARS if shape is Shape.DIAMOND else (density.label_chars,)
    lines: tuple[str, ...] = ()
    for chars in narrowest:
        width = max(min(chars, density.label_chars) * _AVERAGE_CHAR, least)
        lines = wrap(label, width, LABEL_SIZE, max_lines=density.label_lines)
        if not lines[-1].endswith(ELLIPSIS):
            break
    return lines


def _missing_box(node_id: str, density: Density) -> Box:
    lines = _wrapped(clean(node_id[:_MAX_CHARS]), Shape.MISSING, density)
    detail = "not declared" if density.has_details else ""
    width, height = _size(Shape.MISSING, lines, detail, density)
    return Box(node_id, Shape.MISSING, lines, detail, width, height)


def _size(
    shape: Shape, lines: tuple[str, ...], detail: str, density: Density, words: float = 0.0
) -> tuple[float, float]:
    """Outline size around a label, the signs beside it and the line under it, in whole even pixels."""
    label = max(text_width(line, LABEL_SIZE) for line in lines)
    signed = label * _WIDER_FACES + 2 * _GUTTER
    block, padding = len(lines) * LINE_HEIGHT, density.padding
    if shape in {Shape.START, Shape.EXIT}:
        width, height = label + 2 * max(_PILL_GUTTER, words + _PILL_ROOM), block + padding
    elif shape is Shape.DIAMOND:
        height = max(3 * padding + 12, 2.3 * block, block + 46)
        signs = 2 * SIGN_RADIUS / height
        counts = max(_COUNTS_ROOM, words) / (1 - (block + 23) / height)
        width = max(1.5 * height, counts, signed / (1 - signs), (label + 20) / (1 - block / height))
    else:
        width = max(
            _LEAST_WIDTH_WITH_DETAILS if density.has_details else _LEAST_WIDTH,
            words + 2 * padding,
            signed,
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
    bound = bound_text(edge)
    if not (text.strip() or bound) or not density.edge_chars:
        return Link(index, source, target)
    is_mono = bool(text.strip()) and not edge.label
    room = density.edge_chars * (_AVERAGE_CHAR - 0.6)
    lines = wrap(text, room, EDGE_SIZE, max_lines=density.edge_lines, is_mono=is_mono) if text.strip() else ()
    lines = (*lines, bound) if bound and (density.has_details or not lines) else lines
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


# Texts of a node: label, counts and news; a tooltip for pointer and screen reader.
#
# All of them are inside the outline, where no edge, arrow head or label of another comes: a count that appears
# during a run has its place from the beginning. ``web/drawing.js`` does the same for a live view.

ICON_WIDTH: Final = 12.0
"""Width of the sign before a number of visits, with room for digits wider than the table's."""
GAP: Final = 12.0
"""Between counts and news; bold faces differ more in width than others."""
LEAST_WORDS: Final = 20.0
"""A text with less room than this would be an ellipsis."""
_THOUSAND: Final = 1000

TOOLTIP_CHARS: Final = 300
_NO_JOIN: Final = "no join: branches run to their ends"


class Counts(NamedTuple):
    """The number of a node's visits and other counts, as texts."""

    visits: str = ""
    others: tuple[str, ...] = ()

    def fitting(self, room: float) -> Counts:
        """As many of them as there is room for, the first ones first."""
        shown, others = self, list(self.others)
        while others and shown.width > room:
            others.pop()
            shown = Counts(self.visits, tuple(others))
        return shown

    @property
    def text(self) -> str:
        """Everything but the sign."""
        return " ".join(part for part in (self.visits, *self.others) if part)

    @property
    def text_width(self) -> float:
        """Width of the text."""
        return text_width(self.text, DETAIL_SIZE, is_bold=True)

    @property
    def width(self) -> float:
        """Width with the sign."""
        return self.text_width + (ICON_WIDTH if self.visits else 0.0)


def counts_of(state: NodeState, words: str = "") -> Counts:
    """Visits, attempts and branches of a node, when there was more than one; ``words`` are in their place.

    >>> from attractor_nb.views.state import NodeState
    >>> counts_of(NodeState(visits=8000, progress="2/4"))
    Counts(visits='8k', others=('2/4',))
    """
    if words:
        return Counts("", (words,))
    visits = short_count(state.visits) if state.visits > 1 else ""
    attempts = TIMES + short_count(state.attempt) if state.attempt > 1 else ""
    return Counts(visits, tuple(part for part in (attempts, state.progress) if part))


def short_count(count: int) -> str:
    """A number in at most four characters or so; the tooltip has the whole of it.

    >>> short_count(999), short_count(8000), short_count(12345)
    ('999', '8k', '12k')
    """
    return str(count) if count < _THOUSAND else f"{count // _THOUSAND}k"


def node_text(box: Box, direction: Direction, state: NodeState, words: str) -> list[Markup]:
    """The label, the small line and the sign before its counts: the same elements in every state."""
    middle = text_shift(box, direction)
    first = middle - (len(box.lines) * LINE_HEIGHT + (14 if box.detail else 0)) / 2 + 0.92 * LABEL_SIZE
    lines = [
        element("tspan", {"x": 0, "y": first + number * LINE_HEIGHT}, line) for number, line in enumerate(box.lines)
    ]
    parts = [element("text", {"class": "label"}, *lines)]
    if box.detail:
        y = first + (len(box.lines) - 1) * LINE_HEIGHT + 14
        return parts + _small_line(box, state, counts_of(state, words), y)
    middle, y, room = small_line_place(box)
    return parts + _counts(counts_of(state, words).fitting(room), middle, y)


def _small_line(box: Box, state: NodeState, counts: Counts, y: float) -> list[Markup]:
    """Counts, then why it failed, the state of branches or of a child run, or what kind of node it is."""
    _, _, room = small_line_place(box)
    news = state.reason if state.status is NodeStatus.FAIL and state.reason else state.note
    counts = counts.fitting(room)
    used = counts.width + GAP if counts.text else 0.0
    detail = ""
    if room - used >= LEAST_WORDS:
        detail = shorten(clean(news) if news else box.detail, room - used, DETAIL_SIZE)
    detail_width = text_width(detail, DETAIL_SIZE)
    total = counts.width + detail_width + (GAP if counts.text and detail else 0.0)
    words = element("text", {"class": "detail", "x": (total - detail_width) / 2, "y": y}, detail)
    return [words, *_counts(counts, (counts.width - total) / 2, y)]


def _counts(counts: Counts, middle: float, y: float) -> list[Markup]:
    left = middle - counts.width / 2
    sign = "".join((path_data("M", left + ICON_WIDTH / 2 - 1, y - 3.6), AGAIN_PATH)) if counts.visits else ""
    x = left + counts.width - counts.text_width / 2
    return [
        element("path", {"class": "again", "d": sign}),
        element("text", {"class": "counts", "x": x, "y": y}, counts.text),
    ]


def node_tooltip(
    node_id: str, node: Node | None, handler_type: str, state: NodeState, join: Join | None, tip: str
) -> str:
    """Everything that is known of a node in a line each; its label and prompt whole, as far as they go."""
    if node is None:
        return f"{node_id}\nnot declared"
    lines = [node.label] if node.label != node_id else []
    lines.append(f"{node_id} · {detail_of(node, handler_type) if handler_type != 'tool' else 'command'}")
    lines += (text for text in (node.prompt, node.tool_command) if text)
    if join is not None:
        lines.append(f"branches meet at {join.node_id}" if join.node_id else _NO_JOIN)
    if state.note:
        lines.append(state.note)
    if state.status is not NodeStatus.PENDING:
        lines.append(stage_word(state.status) + (f": {state.reason}" if state.reason else ""))
    return lines_of([*lines, tip])


def edge_tooltip(edge: Edge, passes: int, tip: str) -> str:
    """The ends of an edge, which a live view reads, and what is known of it."""
    lines = [f"{edge.source} → {edge.target}", edge.label, edge.condition, tip]
    if edge.max_taken is not None:
        lines.insert(3, f"at most {times_words(edge.max_taken)}")
    if passes and not tip:
        lines.append(f"taken {times_words(passes)}")
    return lines_of(lines)


def times_words(number: int) -> str:
    """A number of times in words.

    >>> times_words(1), times_words(2)
    ('once', '2 times')
    """
    return "once" if number == 1 else f"{number} times"


def bound_text(edge: Edge) -> str:
    """The bound of an edge as drawings show it, or empty."""
    return "" if edge.max_taken is None else f"≤ {edge.max_taken}{TIMES}"


def lines_of(lines: list[str]) -> str:
    """The lines that say something, none of them endless."""
    return "\n".join(line if len(line) <= TOOLTIP_CHARS else line[:TOOLTIP_CHARS] + ELLIPSIS for line in lines if line)


# Small signs of a drawing as path data around (0, 0), and as letters for texts. The signs of states are in the states.
#
# Paths, not glyphs: emoji fonts differ from machine to machine. A live view takes the path of a status
# from ``MARK_PATHS`` when a status changes.

MARK_PATHS: Final = {
    NodeStatus.PENDING: "",
    NodeStatus.RUNNING: "M-1.8-3L3 0L-1.8 3Z",
    NodeStatus.WAITING: "M-2-1.6A2.1 2.1 0 1 1 .9.3Q0 .8 0 1.6M0 4V4.1",
    NodeStatus.RETRYING: "M2.9 1.5A3.3 3.3 0 1 1 2.6-2.1M3.2-4.3V-1.7H.6",
    NodeStatus.SUCCESS: "M-3.4.3L-1.1 2.7L3.4-2.6",
    NodeStatus.PARTIAL_SUCCESS: "M-4.2-.6L-2.6 1.2L.4-2.8M-.6 3.2Q.6 1.6 1.8 2.7T4.2 2.2",
    NodeStatus.FAIL: "M-2.7-2.7L2.7 2.7M2.7-2.7L-2.7 2.7",
    NodeStatus.SKIPPED: "M-2.8 0H2.8",
    NodeStatus.CACHED: "M.9-4L-2.4.6H0L-.9 4L2.4-.6H0Z",
}
"""Sign of each status, drawn as a stroke inside a disc of radius 8."""

AGAIN_PATH: Final = "m2.6-1.6a3.1 3.1 0 1 0 .5 2.3m-.3-4.6v2.4h-2.4"
"""Before a number of visits: a circle that closes, from its place."""
STAR_PATH: Final = "M0-5.2L1.5-1.9L5.1-1.5L2.4 .9L3.2 4.4L0 2.6L-3.2 4.4L-2.4 .9L-5.1-1.5L-1.5-1.9Z"
"""The badge of a goal gate."""
WARNING_PATHS: Final = ("M0-7L7.4 5.7H-7.4Z", "M0-2.4V1.2M0 3.5V3.6")
"""The triangle of a finding and the sign in it."""

TIMES: Final = "\N{MULTIPLICATION SIGN}"
"""Before a number of attempts or passes."""
AGAIN: Final = "\N{CLOCKWISE OPEN CIRCLE ARROW}"
"""Before a number of visits, in texts; drawings have the path."""

SEVERITY_LETTERS: Final = {Severity.ERROR: "\N{MULTIPLICATION X}", Severity.WARNING: "!", Severity.INFO: "i"}
