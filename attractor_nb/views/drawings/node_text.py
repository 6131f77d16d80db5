"""What is written in a node: its label, and the small line under it with counts and news (pure).

All of it stands inside the outline, where no edge, arrow head or label of another comes: a count that appears
during a run has its place from the beginning. ``web/drawing_words.js`` does the same for a live view.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from attractor_nb.views.drawings.drawing import DETAIL_SIZE, LABEL_SIZE, LINE_HEIGHT
from attractor_nb.views.drawings.marks import AGAIN_PATH, TIMES
from attractor_nb.views.markup import clean, element, path_data
from attractor_nb.views.metrics import shorten, text_width
from attractor_nb.views.outlines import small_line_place, text_shift
from attractor_nb.views.state import NodeState, NodeStatus

if TYPE_CHECKING:
    from markupsafe import Markup

    from attractor_nb.views.scene import Box, Direction

ICON_WIDTH: Final = 10.0
"""What the sign before a number of visits takes."""
GAP: Final = 8.0
LEAST_WORDS: Final = 20.0
"""A text with less room than this would be an ellipsis."""
_THOUSAND: Final = 1000


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
        element("tspan", {"x": 0, "y": first + number * LINE_HEIGHT}, line)
        for number, line in enumerate(box.lines)
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
