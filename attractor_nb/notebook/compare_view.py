"""Two runs beside each other in a notebook: a click on a stage opens both sides.

As of ``history_view`` the output of the cell is static; the widget stands in for its drawing. Everything
is in its values, and asks no kernel.
"""

from __future__ import annotations

# anywidget and traitlets have no types: whatever is theirs is unknown here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUntypedBaseClass=false
from typing import TYPE_CHECKING

import anywidget
import traitlets

from attractor_nb.studio.compare.compare_runs import PLAIN_TEXT_CHARS
from attractor_nb.studio.compare.comparison_page import comparison_values
from attractor_nb.views.frontend import script, widget_styles

if TYPE_CHECKING:
    from attractor_nb.studio.compare.compare_runs import Comparison


class CompareView(anywidget.AnyWidget):
    """A comparison with its drawing.

    Attributes:
        svg: Both ways on one drawing.
        marks: Path of the sign of each status.
        states: States of its nodes.
        comparison: The steps of both runs (``views.comparison.comparison_plain``).
        legend: What the strokes mean.
        place: The key that marks the static output.
    """

    _esm = script("compare")
    _css = widget_styles()
    svg = traitlets.Unicode().tag(sync=True)
    marks = traitlets.Dict().tag(sync=True)
    states = traitlets.Dict().tag(sync=True)
    comparison = traitlets.Dict().tag(sync=True)
    legend = traitlets.List().tag(sync=True)
    place = traitlets.Unicode().tag(sync=True)

    def __init__(self, shown: Comparison, place: str = "") -> None:
        super().__init__(place=place, **comparison_values(shown.compared, text_chars=PLAIN_TEXT_CHARS))
