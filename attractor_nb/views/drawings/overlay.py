"""What a drawing shows beside the states of its nodes and edges: two runs at once, heat, a way that was gone.

A mark gives classes, which the dress's own rules colour, and says in words what they mean: nothing is told by
colour alone. Rules use the variables of the theme, so they hold on light and on dark pages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


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
