"""Static pictures of a pipeline, run or result: a saved notebook shows them, and a live view may replace them."""

from __future__ import annotations

from typing import Any


def bundle_of(shown: Any) -> dict[str, str]:
    """The bundle that our objects give Jupyter: HTML and words; no widget, nothing volatile."""
    bundle: dict[str, str] = shown._repr_mimebundle_()
    return bundle


def placed(key: str, html: str) -> str:
    """A static output that the view with that key stands in for."""
    from markupsafe import Markup  # noqa: PLC0415 - %load_ext stays light

    from attractor_nb.views.markup import element  # noqa: PLC0415 - as above

    inner = Markup(html)  # noqa: S704 - by our own writers, which escape
    return str(element("div", {"data-attractor-place": key}, inner))
