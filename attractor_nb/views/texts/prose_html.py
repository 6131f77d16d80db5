"""The trees of ``prose.py`` as HTML that needs no script: what a cell and a page without script show."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from attractor_nb.views.drawings.theme import LOUD_ID, root_class
from attractor_nb.views.frontend import FOLDER
from attractor_nb.views.markup import element
from attractor_nb.views.texts.prose import ATTRIBUTES, TAGS

if TYPE_CHECKING:
    from markupsafe import Markup

    from attractor_nb.views.texts.prose_code import ProseNode

_EMPTY = frozenset({"br", "hr"})
_LINK = {"rel": "noopener noreferrer", "target": "_blank"}


def prose_html(text: str, nodes: list[ProseNode]) -> Markup:
    """A text rendered; a click on "Raw" shows it as it is instead.

    The text as it is stands before the tree: while it is open a rule of the style sheet hides the tree.
    """
    words = (element("span", {"class": "pr-closed"}, "Raw"), element("span", {"class": "pr-opened"}, "Rendered"))
    raw = element("details", {"class": "pr-raw"}, element("summary", None, *words), element("pre", None, text))
    return element("div", {"class": "attractor-prose"}, raw, shown_html(nodes))


def shown_html(nodes: list[ProseNode]) -> Markup:
    """The tree alone."""
    return element("div", {"class": "pr-shown attractor-prose", "tabindex": "0"}, *map(_markup, nodes))


def _markup(node: ProseNode) -> str:
    if isinstance(node, str):
        return node
    head, *inside = node
    tag, _, name = head.partition(".")
    tag = tag or "span"
    assert tag in TAGS, f"{tag} is not a tag of a text"
    attributes: dict[str, Any] = {"class": f"pr-{name}"} if name else {}
    if inside and isinstance(inside[0], dict):
        given: dict[str, str] = inside.pop(0)
        assert given.keys() <= ATTRIBUTES
        attributes |= given
    if tag == "a":
        attributes |= {**_LINK, "title": attributes["href"]}
    if tag in _EMPTY:
        return element(tag, attributes)
    return element(tag, attributes, "", *map(_markup, inside))  # never closed within its own tag


@cache
def prose_css() -> str:
    """The style sheet, the same that the front-end has, nested so that it counts for more than a host's."""
    sheet = (FOLDER / "prose.css").read_text("utf-8")
    return f"\n:is(.{root_class()},{LOUD_ID}) {{\n{sheet}\n}}\n"
