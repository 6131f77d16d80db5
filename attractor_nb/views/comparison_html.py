"""Two runs beside each other, as one piece of HTML that needs no script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from attractor_nb.views.comparison import (
    comparison_plain,
    comparison_svg,
    context_table,
    node_states_plain,
    pair_changes,
    steps_table,
    text_changes,
    totals_table,
)
from attractor_nb.views.marks import MARK_PATHS
from attractor_nb.views.markup import element, joined, style_sheet
from attractor_nb.views.pages import page
from attractor_nb.views.table import table_html
from attractor_nb.views.theme import compare_css, root_class

if TYPE_CHECKING:
    from attractor_nb.views.comparison import Compared
    from attractor_nb.views.table import Table
    from attractor_nb.views.theme import Theme

MAX_TEXTS: Final = 40
MAX_LINES: Final = 80
LEGEND: Final = (
    ("only-a", "A", "only A"),
    ("only-b", "B", "only B"),
    ("changed", "≠", "other outcome"),
    ("varied", "≈", "other texts, attempts or visits"),
    ("both", "", "both alike"),
)
"""What the strokes of the drawing mean: class, sign, words."""


def comparison_html(compared: Compared, *, theme: Theme = "auto", has_times: bool = False) -> str:
    """The drawing, the tables, and behind them the texts that differ, folded."""
    drawing = Markup(comparison_svg(compared, theme))  # noqa: S704 - by our own writer
    context = context_table(compared)
    tables = [
        _table(totals_table(compared, has_times=has_times), theme),
        _table(steps_table(compared, has_times=has_times), theme),
        *([_table(context, theme)] if context.rows else []),
    ]
    parts = [
        style_sheet(compare_css()),
        element("div", {"class": "headline"}, compared.a.headline),
        element("div", {"class": "headline"}, compared.b.headline),
        legend_html(),
        element("div", {"class": "beside"}, element("div", None, drawing), element("div", None, *tables)),
        *(element("div", {"class": "note"}, f"graph: {words}") for words in compared.graph_changes),
        _texts_html(compared),
    ]
    return str(element("div", {"class": f"attractor-compare {root_class()} {theme}"}, *parts))


def comparison_values(compared: Compared, *, text_chars: int) -> dict[str, Any]:
    """What the front-end's ``showCompare`` is given."""
    plain = comparison_plain(compared, text_chars=text_chars)
    for pair, step in zip(compared.pairs, plain["steps"], strict=True):
        changes = pair_changes(pair, max_lines=MAX_LINES)
        step["changes"] = [{"name": change.name, "lines": list(change.lines)} for change in changes]
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
    static = Markup(comparison_html(compared, has_times=True))  # noqa: S704 - by our own builders
    line = f"{compared.a.headline}\n{compared.b.headline}"
    return page("Two runs beside each other", line, "compare", "showCompare", values, static)


def legend_html() -> Markup:
    """What the strokes mean."""
    entries = [
        element(
            "span",
            {"class": f"entry {name}"},
            element("span", {"class": "stroke", "aria-hidden": "true"}, sign),
            words,
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
            element("pre", None, joined([_line(line) for line in change.lines], "\n")),
        )
        for change in changes[:MAX_TEXTS]
    ]
    if len(changes) > MAX_TEXTS:
        blocks.append(
            element("div", {"class": "note"}, f"{len(changes) - MAX_TEXTS} more texts differ: diff.texts()")
        )
    return joined(blocks)


def _line(line: str) -> Markup:
    kinds = {"-": "in-a", "+": "in-b"}
    return element("span", {"class": kinds.get(line[:1])}, line)
