"""The writer of drawings: a graph and, beside it, the graphs of its child runs, with all states, as one SVG.

The root has the class ``ended`` when the run is over. A child's drawing is in ``[data-child="node"]``, that
of a child of a child in ``[data-child="node>inner"]``; inside it nodes and edges have the ids that they have
in their own graph.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from attractor_nb.decisions.branch_policies import Join, joins_of
from attractor_nb.errors import OptionError
from attractor_nb.gc_pause import gc_paused
from attractor_nb.model.child import CHILD_SEPARATOR
from attractor_nb.model.redacted import redacted_graph
from attractor_nb.views.drawings.branch_stacks import WIDEST, Stack, with_stack_lanes, with_stacks
from attractor_nb.views.drawings.drawing import densities_of, draw_scene
from attractor_nb.views.drawings.picture import NO_OVERLAY, GraphPicture, Overlay
from attractor_nb.views.drawings.theme import Theme, drawing_css, drawing_rules, sheet
from attractor_nb.views.layout import lay_out
from attractor_nb.views.layout.flow import extents_of
from attractor_nb.views.markup import clean, element, path_data
from attractor_nb.views.metrics import shorten, text_width
from attractor_nb.views.state import ChildView, EdgeState, NodeState, RunView

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from attractor_nb.model.diagnostic import Diagnostic
    from attractor_nb.model.graph import Graph
    from attractor_nb.views.layout.skeleton import Layout
    from attractor_nb.views.outlines import Point, Scene


MAX_SHOWN_WIDTH: Final = 1080.0
"""A wider picture is shown smaller: JupyterLab does not fit a saved one to its cell."""
_LEAST_SCALE: Final = 0.75
"""The smallest scale at which a picture is shown: labels have 9 px. One that is still wider scrolls."""
_CHARS_OF_A_NODE: Final = 200
"""So many characters of text are read with as many objects as a node is drawn with."""
_GAP: Final = 12.0
_TITLE_HEIGHT: Final = 22.0
_NOTHING_YET: Final = RunView()


def render_svg(
    graph: Graph,
    *,
    states: Mapping[str, NodeState] | None = None,
    edges: Mapping[int, EdgeState] | None = None,
    children: Mapping[str, ChildView] | None = None,
    is_ended: bool = False,
    diagnostics: Iterable[Diagnostic] = (),
    theme: Theme = "auto",
    overlay: Overlay = NO_OVERLAY,
    is_whole: bool = True,
) -> str:
    """The drawing of a graph as SVG; equal arguments give equal text.

    Args:
        graph: What to draw, with the graphs of its child runs. It may have errors: undeclared targets are
            drawn as such.
        states: States of nodes; the others are pending.
        edges: Edges taken, by position in ``graph.edges``.
        children: The child runs, by node.
        is_ended: The run is over: what was not reached fades.
        diagnostics: Findings; errors mark their node or edge.
        theme: ``light``, ``dark``, or ``auto``, which follows the page.
        overlay: What is shown of nodes and edges beside their states.
        is_whole: Every branch is drawn. Otherwise those that would make a picture too wide to be read are one
            box, "and 12 more": a picture can be neither moved nor enlarged.
    """
    if theme not in {"auto", "light", "dark"}:
        raise OptionError(f'unknown theme "{theme}"', hint='use "auto", "light" or "dark"')
    view = RunView(nodes=dict(states or {}), edges=dict(edges or {}), children=dict(children or {}))
    errors = [found for found in diagnostics if found.is_error]
    with gc_paused(_CHARS_OF_A_NODE * len(graph.nodes)):
        frame = _framed(graph, view, errors, "", overlay, is_whole=is_whole)
    return str(
        sheet(
            f"attractor-graph {theme}" + " ended" * is_ended,
            (frame.width, frame.height),
            frame.summary,
            drawing_css() + overlay.css,
            frame.definitions,
            *frame.content,
            shown=min(1.0, max(_LEAST_SCALE, MAX_SHOWN_WIDTH / frame.width)),
        )
    )


_HEAD: Final = re.compile(r' width="(\d+)" height="(\d+)"')
_LEGEND_HEIGHT: Final = 34.0
_NOTE_HEIGHT: Final = 16.0
_NOTE_CHARS: Final = 100
_LEAST_WIDTH: Final = 420.0


def with_legend(
    drawing: str,
    name: str,
    words: str,
    rules: str,
    legend: list[Markup],
    legend_width: float,
    *,
    notes: Sequence[str] = (),
) -> str:
    """A drawing with a line below that says what its marks mean, and lines of notes.

    Args:
        drawing: The drawing, by ``render_svg``.
        name: Classes of the whole picture.
        words: What it shows, for a screen reader.
        rules: The rules of the marks and of the legend (``theme.drawing_rules``).
        legend: The line's content, 12 pixels high.
        legend_width: Its width.
        notes: What must be known of it, below that.
    """
    found = _HEAD.search(drawing)
    assert found is not None, "our own writer gives width and height"
    drawn_width, drawn_height = float(found[1]), float(found[2])
    notes = [f"{note[: _NOTE_CHARS - 1]}…" if len(note) > _NOTE_CHARS else note for note in notes]
    lines = [element("text", {"x": 0, "y": 11 + _NOTE_HEIGHT * number}, note) for number, note in enumerate(notes, 1)]
    notes_width = max((text_width(note, 11) for note in notes), default=0.0) + 24
    width = max(drawn_width, legend_width, notes_width, _LEAST_WIDTH)
    height = drawn_height + _LEGEND_HEIGHT + _NOTE_HEIGHT * len(lines)
    return str(
        sheet(
            name,
            (width, height),
            words,
            drawing_css() + drawing_rules(rules),
            Markup(drawing),  # noqa: S704 - by our own writer, which escapes
            element("g", {"class": "legend", "transform": f"translate(12 {drawn_height + 10:.0f})"}, *legend, *lines),
        )
    )


@dataclass(frozen=True, slots=True)
class _Frame:
    """A drawing with those of its children under it."""

    width: float
    height: float
    summary: str
    definitions: Markup
    content: list[Markup]


def _framed(
    graph: Graph, view: RunView, errors: list[Diagnostic], path: str, overlay: Overlay = NO_OVERLAY, *, is_whole: bool
) -> _Frame:
    shown = redacted_graph(graph)
    joins = joins_of(shown)
    scene, layout, stacks = _laid_out(shown, overlay, joins, is_whole=is_whole)
    picture = GraphPicture(
        graph=shown,
        scene=scene,
        layout=layout,
        states=view.nodes,
        passes=view.edges,
        error_nodes={found.node_id for found in errors if found.node_id and found.edge is None},
        error_edges={found.edge for found in errors if found.edge is not None},
        joins=joins,
        overlay=overlay,
        stacks=stacks,
    )
    below = {
        node_id: _framed(
            child,
            run.view if (run := view.children.get(node_id)) else _NOTHING_YET,
            [],
            f"{path}{node_id}{CHILD_SEPARATOR}",
            is_whole=is_whole,
        )
        for node_id, child in graph.children.items()
    }
    width, height = picture.layout.width, picture.layout.height
    places, size = _placed(list(below.values()), width, height)
    content = picture.content()
    content += [
        _child_panel(path + node_id, graph.children[node_id], inner, place)
        for (node_id, inner), place in zip(below.items(), places, strict=True)
    ]
    return _Frame(*size, picture.summary, picture.definitions, content)


def _laid_out(
    graph: Graph, overlay: Overlay, joins: Mapping[str, Join], *, is_whole: bool
) -> tuple[Scene, Layout, dict[str, Stack]]:
    """The drawing in the first of these ways that can be read in a cell: as it is, narrower, with stacks."""
    words = {name: mark.words for name, mark in overlay.nodes.items()}
    *wider, narrowest = densities_of(graph)
    for density in wider:
        scene = draw_scene(graph, density, words, joins)
        # A layout takes most of the time: none is made of what is too wide by its sizes alone.
        extents = extents_of(scene)
        if (extents.down if scene.direction.is_vertical else extents.right)[0] <= WIDEST:
            layout = lay_out(scene)
            if layout.width <= WIDEST:
                return scene, layout, {}
    scene = draw_scene(graph, narrowest, words, joins)
    layout = lay_out(scene)
    if layout.width <= WIDEST:
        return scene, layout, {}
    scene, stacks = (with_stack_lanes(scene, graph, joins), {}) if is_whole else with_stacks(scene, graph, joins)
    return scene, lay_out(scene), stacks


def _placed(frames: list[_Frame], width: float, height: float) -> tuple[list[Point], tuple[float, float]]:
    """The places of the panels of child runs, beside or, if that is too wide, below; and the total size."""
    if not frames:
        return [], (width, height)
    column = max(frame.width for frame in frames)
    is_beside = width + column + 2 * _GAP <= MAX_SHOWN_WIDTH
    x, y = (width, _GAP) if is_beside else (_GAP, height)
    places: list[Point] = []
    for frame in frames:
        places.append((x, y))
        y += frame.height + _TITLE_HEIGHT + _GAP
    return places, (max(width, x + column + _GAP), max(height, y))


def _child_panel(path: str, child: Graph, inner: _Frame, place: Point) -> Markup:
    """A child's drawing with its title, in a panel."""
    node_id = path.rpartition(CHILD_SEPARATOR)[2]
    label = clean(redacted_graph(child).label)
    title = f"{node_id}: {label}" if label and label != node_id else node_id
    what = f"child run of {node_id}"
    size = {"width": inner.width, "height": inner.height + _TITLE_HEIGHT, "rx": 8}
    return element(
        "g",
        {"class": "child", "transform": "".join(("translate(", path_data(*place), ")"))},
        element("g", {"class": "panel"}, element("title", None, what), element("rect", size)),
        element("text", {"class": "panel-title", "x": 10, "y": 17}, shorten(title, inner.width - 16, 11)),
        element(
            "g",
            {"data-child": path, "transform": "".join(("translate(", path_data(0, _TITLE_HEIGHT), ")"))},
            inner.definitions,
            *inner.content,
        ),
    )


# A drawing for the output of a cell: an image that every page shows, and the words beside it.
#
# JupyterLab drops the SVG of an untrusted notebook, and code hosts drop it from HTML; all of them show an image
# with a data URL. An image is self-contained: of its style sheet only the rules in use are kept, so that it is
# small enough to be written twice, for exporters that want SVG.

SVG_TYPE: Final = "image/svg+xml"
MAX_ALT_CHARS: Final = 1000
"""Readers who do not see the picture have the words of the output as well."""
_STYLE: Final = re.compile(r"(<style>)(.*?)(</style>)", re.DOTALL)
_CLASSES: Final = re.compile(r' class="([^"]*)"')
_NAMED: Final = re.compile(r"\.([A-Za-z_][\w-]*)")
_NEGATED: Final = re.compile(r":not\([^)]*\)")
_USED: Final = re.compile(r"var\((--[\w-]+)")
_DECLARED: Final = re.compile(r"(--[\w-]+):[^;{}]*;?")
_SIZE: Final = re.compile(r'<svg[^>]* width="(\d+)" height="(\d+)"')


def picture_bundle(svg: str, words: str) -> dict[str, str]:
    """The MIME bundle of an object that displays as a drawing.

    Args:
        svg: The drawing, by our own writers.
        words: The same in words.
    """
    still = still_svg(svg)
    return {"text/html": _image(still, words), SVG_TYPE: still, "text/plain": words}


def picture_html(svg: str, words: str) -> str:
    """A drawing as an image in HTML; ``words`` are its alternative text."""
    return _image(still_svg(svg), words)


def still_svg(svg: str) -> str:
    """A drawing with those rules of its style sheet alone that it uses where it is alone."""
    names = {name for found in _CLASSES.findall(svg) for name in found.split()}
    body = _STYLE.sub("", svg)

    def pruned(found: re.Match[str]) -> str:
        css = _kept(found[2], names)
        used = set(_USED.findall(css)) | set(_USED.findall(body))
        css = _DECLARED.sub(lambda each: each[0] if each[1] in used else "", css)
        return "".join((found[1], _without_idle_motion(css), found[3]))

    return _STYLE.sub(pruned, svg)


def _image(still: str, words: str) -> str:
    size = _SIZE.match(still)
    alt = words if len(words) <= MAX_ALT_CHARS else words[:MAX_ALT_CHARS] + "…"
    scrolls = size is not None and int(size[1]) > MAX_SHOWN_WIDTH
    image = element(
        "img",
        {
            "src": f"data:{SVG_TYPE};base64,{base64.b64encode(still.encode()).decode('ascii')}",
            "alt": alt,
            "width": size[1] if size else None,
            "style": f"max-width:{'none' if scrolls else '100%'};height:auto",
        },
    )
    return str(element("div", {"style": "overflow-x:auto"}, image) if scrolls else image)


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
    """True if a selector could match: all its classes occur, and it asks for nothing of the page around."""
    plain = _NEGATED.sub("", selector)
    return "[data-jp" not in plain and names.issuperset(_NAMED.findall(plain))


def _rules(css: str) -> list[tuple[str, str]]:
    """The rules at the top of a sheet: what is before the braces, and what within."""
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
