"""What is written in a node and said of it: label, counts and news; a tooltip for pointer and reader.

All of it stands inside the outline, where no edge, arrow head or label of another comes: a count that appears
during a run has its place from the beginning. ``web/drawing_words.js`` does the same for a live view.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from attractor_nb.model.states import NodeStatus
from attractor_nb.views.drawings.drawing import DETAIL_SIZE, LABEL_SIZE, LINE_HEIGHT, detail_of
from attractor_nb.views.drawings.marks import AGAIN_PATH, TIMES
from attractor_nb.views.markup import clean, element, path_data
from attractor_nb.views.metrics import ELLIPSIS, shorten, text_width
from attractor_nb.views.outlines import small_line_place, text_shift

if TYPE_CHECKING:
    from markupsafe import Markup

    from attractor_nb.decisions.fan_outs.joins import Join
    from attractor_nb.model.graph import Edge, Node
    from attractor_nb.views.scene import Box, Direction
    from attractor_nb.views.state import NodeState

ICON_WIDTH: Final = 10.0
"""What the sign before a number of visits takes."""
GAP: Final = 12.0
"""Between counts and news; bold faces differ more in width than others."""
LEAST_WORDS: Final = 20.0
"""A text with less room than this would be an ellipsis."""
_THOUSAND: Final = 1000

TOOLTIP_CHARS: Final = 300
_NO_JOIN: Final = "no join: branches run to their ends"


class Counts(NamedTuple):
    """How often a node was visited, and what else is counted of it, in characters."""

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
    """Visits, attempts and branches of a node, when there was more than one; ``words`` stand in their place.

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
    """Counts, then why it failed, how branches or a child run stand, or what kind of node it is."""
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
    sign = "".join((path_data("M", left + ICON_WIDTH / 2, y - 3.6), AGAIN_PATH)) if counts.visits else ""
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
    lines.append(f"{node_id} · {detail_of(node, handler_type)}" if handler_type != "tool" else f"{node_id} · tool")
    lines += (text for text in (node.prompt, node.tool_command) if text)
    if join is not None:
        lines.append(f"branches meet at {join.node_id}" if join.node_id else _NO_JOIN)
    if state.note:
        lines.append(state.note)
    if state.status is not NodeStatus.PENDING:
        lines.append(state.status.replace("_", " ") + (f": {state.reason}" if state.reason else ""))
    return lines_of([*lines, tip])


def edge_tooltip(edge: Edge, passes: int, tip: str) -> str:
    """The ends of an edge, which a live view reads, and what is known of it."""
    lines = [f"{edge.source} → {edge.target}", edge.label, edge.condition, tip]
    if passes and not tip:
        lines.append("taken once" if passes == 1 else f"taken {passes} times")
    return lines_of(lines)


def lines_of(lines: list[str]) -> str:
    """The lines that say something, none of them endless."""
    return "\n".join(line if len(line) <= TOOLTIP_CHARS else line[:TOOLTIP_CHARS] + ELLIPSIS for line in lines if line)
