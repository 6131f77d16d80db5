"""Colours and the style sheet of a drawing, for light and for dark pages.

The sheet is the same for every drawing, and its root class is named after its own content: several
drawings on one page, even by different versions, do not disturb each other, and nothing random is in
the output. A state is never told by colour alone: stroke and mark differ too.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Literal

from attractor_nb.views.markup import element, path_data, style_sheet

if TYPE_CHECKING:
    from markupsafe import Markup


Theme = Literal["auto", "light", "dark"]

LIGHT: Final = {
    "page": "#ffffff",
    "frame": "#e3e6ea",
    "ink": "#1f2328",
    "dim": "#4f5863",
    "line": "#848d97",
    "taken": "#2b3138",
    "panel": "#f3f5f8",
    "panel-line": "#d5dae0",
    "lane": "#848d9714",
    "on-mark": "#ffffff",
    "star": "#9a6700",
    "pending-fill": "#f6f7f9",
    "pending-line": "#848d97",
    "running-fill": "#dbeafe",
    "running-line": "#2563eb",
    "waiting-fill": "#fef3c7",
    "waiting-line": "#b45309",
    "retrying-fill": "#ffedd5",
    "retrying-line": "#c2410c",
    "success-fill": "#d9f2e6",
    "success-line": "#007a55",
    "fail-fill": "#fde2dc",
    "fail-line": "#c02f00",
    "cached-fill": "#d9f2e6",
    "cached-line": "#6d45c9",
}
"""Colours on a light page."""

DARK: Final = {
    "page": "#15181c",
    "frame": "#2b3036",
    "ink": "#e8edf2",
    "dim": "#b3bcc6",
    "line": "#79828d",
    "taken": "#d5dce3",
    "panel": "#1b1f24",
    "panel-line": "#343b43",
    "lane": "#79828d1c",
    "on-mark": "#101317",
    "star": "#e3b341",
    "pending-fill": "#23262b",
    "pending-line": "#79828d",
    "running-fill": "#17324d",
    "running-line": "#6ea8ff",
    "waiting-fill": "#4a3a10",
    "waiting-line": "#f2b43c",
    "retrying-fill": "#4a2a12",
    "retrying-line": "#ff9a57",
    "success-fill": "#123a2b",
    "success-line": "#3ecf94",
    "fail-fill": "#4a1c12",
    "fail-line": "#ff8a68",
    "cached-fill": "#123a2b",
    "cached-line": "#b79cff",
}
"""Colours on a dark page."""

LOUD_ID: Final = "#attractor-nb"
"""An id that no element has: a selector that would take it, too, counts for more than classes of a host."""

SANS: Final = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"
MONO: Final = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"

_RULES: Final = """
& text{font:12px SANS;fill:var(--ink);text-anchor:middle;stroke:none}
& .page{fill:var(--page);stroke:var(--frame)}
& .panel rect{fill:var(--panel);stroke:var(--panel-line)}
& .page,& .panel rect{vector-effect:non-scaling-stroke}
& .lane rect{fill:var(--lane);stroke:none}
& text.panel-title{font-size:11px;fill:var(--dim);text-anchor:start}
& .node{--fill:var(--pending-fill);--stroke:var(--pending-line)}
& .outline,& .ring,& .bar{fill:var(--fill);stroke:var(--stroke);stroke-width:1.25;stroke-linejoin:round}
& .ring{fill:none}
& .bar{stroke-width:4;stroke-linecap:round}
& .hatch{display:none}
& .hatch-line{stroke:var(--success-line);stroke-width:1.5;opacity:.22}
& .label{font-weight:500}
& text.detail{font-size:10px;fill:var(--dim)}
& text.counts{font-size:10px;font-weight:600}
& .again{fill:none;stroke:var(--ink);stroke-width:1.4;stroke-linecap:round;stroke-linejoin:round}
& .mark{display:none}
& .mark circle{fill:var(--stroke)}
& .mark path{fill:none;stroke:var(--on-mark);stroke-width:1.7;stroke-linecap:round;stroke-linejoin:round}
& .badge path{fill:var(--star);stroke:none}
& .finding path{fill:var(--fail-line);stroke:var(--page);stroke-width:1.5;stroke-linejoin:round}
& .finding path+path{fill:none;stroke:var(--on-mark);stroke-width:1.7;stroke-linecap:round}
& .line{fill:none;stroke:var(--line);stroke-width:1.25;stroke-linecap:round}
& .head{fill:var(--line);stroke:var(--line);stroke-linejoin:round}
& .edge-label rect{fill:none;pointer-events:all}
& .edge-label text{font-size:10.5px;fill:var(--dim)}
& .edge-label.is-condition text{font-family:MONO}
& text.passes{font-size:10px;font-weight:600}
& text.passes.after{text-anchor:start}
& text.passes.before{text-anchor:end}
& .edge-restart .line{stroke-dasharray:5 3}
& .edge-error .line,& .type-missing .outline{stroke:var(--fail-line);stroke-dasharray:4 3}
& .edge-error .head{fill:var(--fail-line);stroke:var(--fail-line)}
& .taken .line{stroke:var(--taken);stroke-width:2}
& .taken .head{fill:var(--taken);stroke:var(--taken)}
& .taken text{fill:var(--ink)}
&.ended .edge:not(.taken){opacity:.5}
&.ended .edge-label:not(.taken) text{opacity:.6}
&.ended .state-pending:not(.state-begun),& .state-skipped{opacity:.5}
&.ended .state-begun .outline{stroke:var(--waiting-line);stroke-width:2;stroke-dasharray:5 3}
& .state-running{--fill:var(--running-fill);--stroke:var(--running-line)}
& .state-waiting{--fill:var(--waiting-fill);--stroke:var(--waiting-line)}
& .state-retrying{--fill:var(--retrying-fill);--stroke:var(--retrying-line)}
& .state-success,& .state-partial_success{--fill:var(--success-fill);--stroke:var(--success-line)}
& .state-fail{--fill:var(--fail-fill);--stroke:var(--fail-line)}
& .state-cached{--fill:var(--cached-fill);--stroke:var(--cached-line)}
& .node:not(.state-pending) .mark{display:inline}
& .node:not(.state-pending):not(.state-skipped) .outline{stroke-width:1.75}
& .state-fail .outline{stroke-width:2.5}
& .state-skipped .outline{stroke-dasharray:2 3}
& .state-partial_success .hatch{display:inline}
& .state-running .outline{stroke-width:2;stroke-dasharray:7 4;animation:anb-march 1s linear infinite}
& .state-waiting .outline{stroke-width:2.5;animation:anb-pulse 2.4s ease-in-out infinite}
& .state-retrying .outline{stroke-dasharray:2 3}
& .node.selected .outline{stroke-width:3}
@keyframes anb-march{to{stroke-dashoffset:-22}}
@keyframes anb-pulse{50%{stroke-opacity:.35}}
@media (prefers-reduced-motion:reduce){& *{animation:none!important}}
"""


@cache
def root_class() -> str:
    """Class of the root element, and of nothing else on a page."""
    content = "".join((_RULES, *LIGHT.values(), *DARK.values()))
    return "anb-" + sha256(content.encode()).hexdigest()[:8]


@cache
def drawing_css() -> str:
    """The style sheet of a drawing: colours of both themes, then the rules."""
    return themed_sheet(_RULES)


def drawing_rules(rules: str) -> str:
    """More rules for a drawing, beside its own sheet; ``&`` stands for the root, ``MONO`` for the font."""
    return "\n" + rules.strip().replace("&", "." + root_class()).replace("SANS", SANS).replace("MONO", MONO)


def themed_sheet(rules: str) -> str:
    """The style sheet of some rules: colours of both themes, then the rules, as of ``drawing_rules``."""
    root = "." + root_class()
    light, dark = _variables(LIGHT), _variables(DARK)
    themes = (
        root + light,
        root + ".dark" + dark,
        "@media (prefers-color-scheme:dark){" + root + ".auto" + dark + "}",
        '[data-jp-theme-light="true"] ' + root + ".auto" + light,
        '[data-jp-theme-light="false"] ' + root + ".auto,.jp-mod-dark " + root + ".auto" + dark,
    )
    return "\n".join(themes) + drawing_rules(rules)


def _variables(palette: dict[str, str]) -> str:
    return "{" + ";".join("--" + name + ":" + colour for name, colour in palette.items()) + "}"


# The frame of a picture: the root element with its style sheet, and the page behind everything.
#
# The frame of the page is inset by a pixel and a half: so it is not cut off where a picture is shown at half its
# size, or ends within a pixel.

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
