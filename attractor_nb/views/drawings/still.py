"""A drawing as it is kept in an output: an image that every page shows, and the words beside it.

JupyterLab leaves out the SVG of a notebook that nobody trusts yet, and code hosts leave it out of HTML; an
image whose address is its data is shown by all of them. An image stands alone: of its style sheet only the
rules are kept that it uses, so that it is small enough to be written twice, for exporters that want SVG.
"""

from __future__ import annotations

import base64
import re
from typing import Final

from attractor_nb.views.markup import element

SVG_TYPE: Final = "image/svg+xml"
MAX_ALT_CHARS: Final = 1000
"""Whoever does not see the picture has the words of the output as well."""
_STYLE: Final = re.compile(r"(<style>)(.*?)(</style>)", re.DOTALL)
_CLASSES: Final = re.compile(r' class="([^"]*)"')
_NAMED: Final = re.compile(r"\.([A-Za-z_][\w-]*)")
_NEGATED: Final = re.compile(r":not\([^)]*\)")
_USED: Final = re.compile(r"var\((--[\w-]+)")
_DECLARED: Final = re.compile(r"(--[\w-]+):[^;{}]*;?")
_SIZE: Final = re.compile(r'<svg[^>]* width="(\d+)" height="(\d+)"')


def picture_bundle(svg: str, words: str) -> dict[str, str]:
    """What an object of ours that is a drawing gives Jupyter.

    Args:
        svg: The drawing, by our own writers.
        words: The same in words.
    """
    still = still_svg(svg)
    return {"text/html": _image(still, words), SVG_TYPE: still, "text/plain": words}


def picture_html(svg: str, words: str) -> str:
    """A drawing as an image in HTML; ``words`` are for whoever does not see it."""
    return _image(still_svg(svg), words)


def still_svg(svg: str) -> str:
    """A drawing with those rules of its style sheet alone that it uses where it stands alone."""
    names = {name for found in _CLASSES.findall(svg) for name in found.split()}
    body = _STYLE.sub("", svg)

    def pruned(found: re.Match[str]) -> str:
        css = _kept(found[2], names)
        used = set(_USED.findall(css)) | set(_USED.findall(body))
        css = _DECLARED.sub(lambda each: each[0] if each[1] in used else "", css)
        return "".join((found[1], _without_idle_motion(css), found[3]))

    return _STYLE.sub(pruned, svg)


def _image(still: str, words: str) -> str:
    size = _SIZE.search(still)
    alt = words if len(words) <= MAX_ALT_CHARS else words[:MAX_ALT_CHARS] + "…"
    return str(
        element(
            "img",
            {
                "src": f"data:{SVG_TYPE};base64,{base64.b64encode(still.encode()).decode('ascii')}",
                "alt": alt,
                "width": size[1] if size else None,
                "style": "max-width:100%;height:auto",
            },
        )
    )


def _kept(css: str, names: set[str]) -> str:
    """The rules of a sheet that match something in a drawing with elements of these classes."""
    kept: list[str] = []
    for prelude, inner in _rules(css):
        if prelude.startswith("@media"):
            if nested := _kept(inner, names):
                kept.append(f"{prelude}{{{nested}}}")
        elif prelude.startswith("@"):
            kept.append(f"{prelude}{{{inner}}}")
        else:
            matching = [one for one in prelude.split(",") if _matches(one, names)]
            if matching:
                kept.append(f"{','.join(matching)}{{{inner}}}")
    return "\n".join(kept)


def _without_idle_motion(css: str) -> str:
    """A sheet without the motions that nothing in it asks for."""
    rules = _rules(css)
    asked = " ".join(inner for prelude, inner in rules if not prelude.startswith("@keyframes"))
    return "\n".join(
        f"{prelude}{{{inner}}}"
        for prelude, inner in rules
        if not prelude.startswith("@keyframes") or prelude.split()[1] in asked
    )


def _matches(selector: str, names: set[str]) -> bool:
    """Whether a selector could match: all its classes occur, and it asks for nothing of the page around."""
    plain = _NEGATED.sub("", selector)
    return "[data-jp" not in plain and names.issuperset(_NAMED.findall(plain))


def _rules(css: str) -> list[tuple[str, str]]:
    """The rules at the top of a sheet: what stands before the braces, and what within."""
    found: list[tuple[str, str]] = []
    depth, start, opened = 0, 0, 0
    for place, sign in enumerate(css):
        if sign == "{":
            depth += 1
            if depth == 1:
                opened = place
        elif sign == "}":
            depth -= 1
            if depth == 0:
                found.append((css[start:opened].strip(), css[opened + 1 : place].strip()))
                start = place + 1
    return found
