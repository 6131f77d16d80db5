"""``to_png``: a drawing as a bitmap, for places that take no SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attractor_nb.errors import OptionError
from attractor_nb.extras import install_command, missing_packages
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.storage.files.user_files import write_bytes
from attractor_nb.views.drawings.flat_svg import flat_svg

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path

MAX_SCALE = 8


def write_png(svg: str, path: str | PathLike[str], *, theme: str = "light", scale: float = 2.0) -> Path:
    """Write a drawing of ours as PNG.

    Args:
        svg: The drawing.
        path: Where; a file that is there is replaced.
        theme: ``light`` or ``dark``.
        scale: Pixels for one unit of the drawing, up to 8.

    Returns:
        The file.
    """
    place = as_path(path, "the picture")
    write_bytes(place, png_of(svg, theme=theme, scale=scale))
    return place


def png_of(svg: str, *, theme: str = "light", scale: float = 2.0) -> bytes:
    """A drawing of ours as the bytes of a PNG; arguments and refusals as of ``write_png``."""
    if isinstance(scale, bool) or not isinstance(scale, int | float) or not 0 < scale <= MAX_SCALE:  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise OptionError(f"scale {scale!r:.40} is none", hint=f"a number above 0, up to {MAX_SCALE}")
    if missing_packages("png"):
        raise OptionError("PNG pictures need resvg-py, which is not installed", hint=install_command("png"))
    import resvg_py  # noqa: PLC0415 - an extra

    draw: Any = resvg_py.svg_to_bytes
    return bytes(draw(svg_string=flat_svg(svg, theme), zoom=scale))
