"""Display of values: words in a terminal, HTML in a notebook. It loads no drawing and no Jupyter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attractor_nb.lazy_imports import later

if TYPE_CHECKING:
    from attractor_nb.views.drawings import svg
else:
    svg = later("attractor_nb.views.drawings.svg")


class Displayed:
    """A value that a terminal shows as its ``str`` and a notebook as HTML: no widget, nothing that changes."""

    __slots__ = ()

    def _html(self) -> str:
        raise NotImplementedError

    def __repr__(self) -> str:
        return str(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002 - the signature of Jupyter's hook
        return {"text/html": self._html(), "text/plain": str(self)}


class DisplayedPicture(Displayed):
    """A value that a notebook shows as its drawing."""

    __slots__ = ()

    def to_svg(self) -> str:
        """The drawing as SVG."""
        raise NotImplementedError

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002 - as above
        return svg.picture_bundle(self.to_svg(), str(self))
