"""What a picture of ours stands on: the root element with its style sheet and the page behind everything.

The frame of the page lies a pixel and a half inside: so none of it is cut off where a picture is shown at
half its size, or ends within a pixel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.views.drawings.theme import root_class
from attractor_nb.views.markup import element, path_data, style_sheet

if TYPE_CHECKING:
    from markupsafe import Markup

_INSET: Final = 1.5


def sheet(name: str, size: tuple[float, float], words: str, css: str, *content: Markup, shown: float = 1.0) -> Markup:
    """A whole picture.

    Args:
        name: Classes of the root beside that of the style sheet.
        size: Width and height.
        words: What it shows, for a screen reader.
        css: Its style sheet.
        content: What is drawn, back to front.
        shown: How large it is shown at most, as a part of its size.
    """
    width, height = size
    frame = {"x": _INSET, "y": _INSET, "width": width - 2 * _INSET, "height": height - 2 * _INSET, "rx": 8}
    return element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "class": f"{name} {root_class()}",
            "width": round(width * shown),
            "height": round(height * shown),
            "viewBox": path_data(0, 0, width, height),
            "style": "max-width:100%;height:auto",
            "role": "img",
            "aria-label": words,
        },
        style_sheet(css),
        element("rect", {"class": "page", **frame}),
        *content,
    )
