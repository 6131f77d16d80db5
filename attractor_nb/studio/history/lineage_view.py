"""The family of a run as text and as a picture: forks, restarts and rewinds below the run they come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from attractor_nb.redaction import redacted
from attractor_nb.views.columns import one_line
from attractor_nb.views.drawings.theme import drawing_css, drawing_rules, root_class
from attractor_nb.views.markup import element, path_data, style_sheet
from attractor_nb.views.metrics import shorten, text_width

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markupsafe import Markup

MAX_SHOWN: Final = 200
"""Nobody reads more; the text says how many there are."""
_WIDEST: Final = 520.0
_ROW: Final = 46.0
_BOX: Final = 36.0
_INDENT: Final = 34.0
_MARGIN: Final = 14.0
_SIGNS: Final = {"completed": "✓", "failed": "✕", "running": "●", "resumed": "●", "set aside": "↶"}
_SIGNS_OF_KINDS: Final = {"rewind": "↶", "restart": "↻"}
_CLASSES: Final = {"completed": "success", "failed": "fail", "running": "running", "resumed": "running"}
_RULES: Final = """
& .ln-line{fill:none;stroke:var(--dim);stroke-width:1.25}
& .ln-box{fill:var(--pending-fill);stroke:var(--pending-line);stroke-width:1.25}
& .ln-success .ln-box{fill:var(--success-fill);stroke:var(--success-line)}
& .ln-fail .ln-box{fill:var(--fail-fill);stroke:var(--fail-line)}
& .ln-running .ln-box{fill:var(--running-fill);stroke:var(--running-line);stroke-dasharray:6 3}
& .ln-rewind .ln-box{stroke-dasharray:2 3}
& .ln-here .ln-box{stroke-width:3}
& text.ln-name{font-size:12px;text-anchor:start}
& text.ln-detail{font-size:10.5px;fill:var(--dim);text-anchor:start}
"""


@dataclass(frozen=True, slots=True)
class Kin:
    """A run in a family, or a place to which one went back.

    Attributes:
        kind: ``run``, ``fork``, ``restart`` or ``rewind``.
        words: How it came about: ``fork before plan, visit 2``.
        status: How it stands, as in the list of runs; of a rewind ``set aside``.
        detail: What came of it, in words.
        place: The name of its directory.
        run_id: Its run id.
        is_here: It is the run that was asked about.
        below: What came of it in turn.
    """

    kind: str
    words: str
    status: str = ""
    detail: str = ""
    place: str = ""
    run_id: str = ""
    is_here: bool = False
    below: tuple[Kin, ...] = ()


def lineage_text(kin: Kin, *, has_places: bool = False) -> str:
    """The family as a tree.

    Args:
        kin: Where it begins.
        has_places: Name directories, which differ from machine to machine.
    """
    return "\n".join(
        f"{branch}{_line(one)}{f'   {one.place}' if has_places and one.place else ''}"
        for branch, one, _, _ in _rows(kin)
    )


def lineage_svg(kin: Kin) -> str:
    """The family as SVG; equal arguments give equal text."""
    rows = list(_rows(kin))
    count, rows = len(rows), rows[:MAX_SHOWN]
    right = max(_left(depth) + _width(one) for _, one, depth, _ in rows)
    width, height = right + _MARGIN, 2 * _MARGIN + _ROW * len(rows) - (_ROW - _BOX)
    content: list[Markup] = [
        _joint(rows, place, depth) for place, (_, _, depth, _) in enumerate(rows) if depth
    ]
    content += [_box(one, depth, place) for place, (_, one, depth, _) in enumerate(rows)]
    return str(
        element(
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg",
                "class": f"attractor-lineage {root_class()} auto",
                "width": round(width),
                "height": round(height),
                "viewBox": path_data(0, 0, width, height),
                "style": "max-width:100%;height:auto",
                "role": "img",
                "aria-label": f"Lineage of {count} run{'s' * (count != 1)}",
            },
            style_sheet(drawing_css() + drawing_rules(_RULES)),
            element(
                "rect",
                {"class": "page", "x": 0.5, "y": 0.5, "width": width - 1, "height": height - 1, "rx": 8},
            ),
            *content,
        )
    )


def _line(kin: Kin) -> str:
    parts = [f"{_sign(kin)} {_clean(kin.words)}"]
    if facts := _facts(kin):
        parts.append(facts)
    if kin.is_here:
        parts.append("<- this one")
    return "   ".join(parts)


def _sign(kin: Kin) -> str:
    return _SIGNS.get(kin.status) or _SIGNS_OF_KINDS.get(kin.kind, "·")


def _facts(kin: Kin) -> str:
    return ", ".join(_clean(part) for part in (kin.status, kin.detail) if part)


def _clean(text: str) -> str:
    return one_line(redacted(text))


def _rows(
    kin: Kin, depth: int = 0, before: str = "", *, is_last: bool = True
) -> Iterator[tuple[str, Kin, int, bool]]:
    """Each run with what is drawn before it, in the order of the lines."""
    stack = [(kin, depth, before, "", is_last)]
    while stack:
        one, depth, before, joint, is_last = stack.pop()
        yield before + joint, one, depth, is_last
        inner = before + ("" if not depth else "   " if is_last else "│  ")
        for place, child in reversed(list(enumerate(one.below))):
            is_final = place == len(one.below) - 1
            stack.append((child, depth + 1, inner, "└─ " if is_final else "├─ ", is_final))


def _left(depth: int) -> float:
    return _MARGIN + _INDENT * depth


def _width(kin: Kin) -> float:
    widest = max(text_width(_clean(kin.words), 12), text_width(_facts(kin), 10.5))
    return min(_WIDEST, 1.08 * widest + 42)


def _box(kin: Kin, depth: int, place: int) -> Markup:
    x, y = _left(depth), _MARGIN + _ROW * place
    names = ["ln-run", f"ln-{kin.kind}", f"ln-{_CLASSES.get(kin.status, 'other')}"]
    room = _width(kin) - 36
    return element(
        "g",
        {"class": " ".join([*names, *(["ln-here"] if kin.is_here else [])])},
        element("title", None, _line(kin)),
        element("rect", {"class": "ln-box", "x": x, "y": y, "width": _width(kin), "height": _BOX, "rx": 8}),
        element("text", {"class": "ln-name", "x": x + 10, "y": y + 22}, _sign(kin)),
        element("text", {"class": "ln-name", "x": x + 28, "y": y + 15}, shorten(_clean(kin.words), room, 12)),
        element("text", {"class": "ln-detail", "x": x + 28, "y": y + 29}, shorten(_facts(kin), room, 10.5)),
    )


def _joint(rows: list[tuple[str, Kin, int, bool]], place: int, depth: int) -> Markup:
    """The line from a run to the one that it comes from: the last one above that is less deep."""
    parent = next(above for above in range(place - 1, -1, -1) if rows[above][2] == depth - 1)
    x = _left(depth - 1) + 14
    top, bottom = _MARGIN + _ROW * parent + _BOX, _MARGIN + _ROW * place + _BOX / 2
    return element(
        "path", {"class": "ln-line", "d": path_data("M", x, top, "L", x, bottom, "L", _left(depth), bottom)}
    )
