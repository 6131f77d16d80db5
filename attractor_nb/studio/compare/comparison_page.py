"""Two runs beside each other, as one piece of HTML that needs no script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from attractor_nb.studio.compare.comparison_drawing import comparison_svg, node_states_plain
from attractor_nb.studio.compare.comparison_view import (
    comparison_plain,
    context_table,
    pair_changes,
    steps_table,
    text_changes,
    totals_table,
)
from attractor_nb.views.drawings.marks import MARK_PATHS
from attractor_nb.views.drawings.still import picture_html
from attractor_nb.views.drawings.theme import compare_css, root_class
from attractor_nb.views.markup import element, joined, style_sheet
from attractor_nb.views.pages import page
from attractor_nb.views.table import table_html
from attractor_nb.views.texts.prose import prose_of
from attractor_nb.views.texts.prose_code import rows_node
from attractor_nb.views.texts.prose_html import prose_css, shown_html

if TYPE_CHECKING:
    from attractor_nb.studio.compare.comparison_view import Compared
    from attractor_nb.views.drawings.theme import Theme
    from attractor_nb.views.table import Table

MAX_TEXTS: Final = 40
MAX_LINES: Final = 80
TEXT_NAMES: Final = ("prompt", "response")
LEGEND: Final = (
    ("only-a", "A", "only A took it"),
    ("only-b", "B", "only B took it"),
    ("changed", "≠", "other outcome"),
    ("varied", "≈", "other texts, attempts or visits"),
    ("both", "", "both took it alike"),
)
"""What the strokes of the drawing mean: class, sign, words."""


def comparison_html(
    compared: Compared,
    *,
    theme: Theme = "auto",
    has_times: bool = False,
    is_inline: bool = False,
    place: str = "",
) -> str:
    """The drawing, the tables, and behind them the texts that differ, folded.

    Args:
        compared: The two runs.
        theme: ``light``, ``dark``, or ``auto``.
        has_times: Whether times are told.
        is_inline: The drawing is SVG in the page, not an image; an exported page allows no images.
        place: Key of the view that stands in for the drawing, which is above the tables then.
    """
    svg = comparison_svg(compared, theme)
    words = f"A took: {compared.a.headline}\nB took: {compared.b.headline}"
    drawing = Markup(svg if is_inline else picture_html(svg, words))  # noqa: S704 - by our own writer
    context = context_table(compared)
    tables = [
        _table(totals_table(compared, has_times=has_times), theme),
        _table(steps_table(compared, has_times=has_times), theme),
        *([_table(context, theme)] if context.rows else []),
    ]
    heads = [element("div", {"class": "headline"}, side.headline) for side in (compared.a, compared.b)]
    beside = element("div", {"class": "beside"}, element("div", None, drawing), element("div", None, *tables))
    above = [*heads, legend_html(), beside]
    if place:
        above = [*heads, element("div", {"data-attractor-place": place}, legend_html(), drawing), *tables]
    parts = [
        style_sheet(compare_css() + prose_css()),
        *above,
        *(element("div", {"class": "note"}, f"graph: {words}") for words in compared.graph_changes),
        _texts_html(compared),
    ]
    return str(element("div", {"class": f"attractor-compare {root_class()} {theme}"}, *parts))


def comparison_values(compared: Compared, *, text_chars: int) -> dict[str, Any]:
    """What the front-end's ``showCompare`` is given."""
    plain = comparison_plain(compared, text_chars=text_chars)
    for pair, step in zip(compared.pairs, plain["steps"], strict=True):
        changes = pair_changes(pair, max_lines=MAX_LINES)
        step["changes"] = [{"name": change.name, "shown": [rows_node(change.rows)]} for change in changes]
        for side in filter(None, (step["a"], step["b"])):
            side["shown"] = {name: prose_of(side.get(name)) for name in TEXT_NAMES}
    return {
        "svg": comparison_svg(compared),
        "marks": {status.value: path for status, path in MARK_PATHS.items()},
        "states": node_states_plain(compared),
        "comparison": plain,
        "legend": [{"name": name, "sign": sign, "words": words} for name, sign, words in LEGEND],
    }


def comparison_page(compared: Compared, *, text_chars: int) -> str:
    """A page of its own: the drawing with both sides of each stage that is clicked, and the static form."""
    values = comparison_values(compared, text_chars=text_chars)
    static = Markup(comparison_html(compared, has_times=True, is_inline=True))  # noqa: S704 - by our own builders
    line = f"{compared.a.headline}\n{compared.b.headline}"
    return page("Two runs beside each other", line, "compare", "showCompare", values, static)


def legend_html() -> Markup:
    """What the strokes mean."""
    entries = [
        element(
            "div",  # a line of its own where a page takes our style sheet out
            {"class": f"entry {name}"},
            element("span", {"class": "stroke", "aria-hidden": "true"}, sign),
            f" {words}",
        )
        for name, sign, words in LEGEND
    ]
    return element("div", {"class": "legend"}, joined(entries, " "))


def _table(table: Table, theme: Theme) -> Markup:
    return Markup(table_html(table, theme))  # noqa: S704 - by our own builder


def _texts_html(compared: Compared) -> Markup:
    changes = list(text_changes(compared))
    blocks = [
        element(
            "details",
            None,
            element("summary", None, f"{change.name} of {change.node}, visit {change.visit}"),
            shown_html([rows_node(change.rows)]),
        )
        for change in changes[:MAX_TEXTS]
    ]
    if len(changes) > MAX_TEXTS:
        blocks.append(
            element("div", {"class": "note"}, f"{len(changes) - MAX_TEXTS} more texts differ: diff.texts()")
        )
    return joined(blocks)
