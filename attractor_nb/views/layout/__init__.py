"""Coordinates for a scene, cached by the scene's sizes.

No other program has a part in them, so a drawing is the same on every machine. Asking Graphviz, too, for the order of
each layer was better in 3 of 257 graphs, by one or two crossings.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from attractor_nb.views.layout.layered import lay_out_in_layers
from attractor_nb.views.layout.skeleton import (
    Cubic,
    Layout,
    Point,
    RawLayout,
    Rect,
    Route,
    clip_start,
    make_room_for_head,
    point_at,
    reversed_path,
)
from attractor_nb.views.outlines import Link, Scene, outline

MARGIN: Final = 14.0


def lay_out(scene: Scene) -> Layout:
    """Coordinates for everything in a scene."""
    return _cached(scene.without_texts())


@lru_cache(maxsize=64)
def _cached(scene: Scene) -> Layout:
    """Coordinates with loops clipped to the outlines, room for heads, and everything inside the margins."""
    raw = lay_out_in_layers(scene)
    routes = [
        _route(scene, link, path, label, raw.centres)
        for link, path, label in zip(scene.links, raw.paths, raw.labels, strict=True)
    ]
    left, top, right, bottom = _bounds(scene, raw, routes)
    dx, dy = MARGIN - left, MARGIN - top

    def moved(point: Point) -> Point:
        return point[0] + dx, point[1] + dy

    return Layout(
        width=float(round(right - left + 2 * MARGIN)),
        height=float(round(bottom - top + 2 * MARGIN)),
        centres=tuple(moved(centre) for centre in raw.centres),
        routes=tuple(
            Route(
                tuple((moved(a), moved(b), moved(c), moved(d)) for a, b, c, d in route.path),
                moved(route.tip),
                moved(route.base),
                moved(route.label),
            )
            for route in routes
        ),
        panels=tuple(Rect(rect.x + dx, rect.y + dy, rect.width, rect.height) for rect in raw.panels),
    )


def _route(scene: Scene, link: Link, path: list[Cubic], label: Point | None, centres: list[Point]) -> Route:
    source = scene.boxes[link.source]
    if link.source == link.target:
        path = clip_start(path, outline(source), centres[link.source])
        path = reversed_path(clip_start(reversed_path(path), outline(source), centres[link.source]))
    path, tip, base = make_room_for_head(path)
    if label is None:
        label = point_at(path[len(path) // 2], 0.5 if len(path) % 2 else 0.0)
    return Route(tuple(path), tip, base, label)


def _bounds(scene: Scene, raw: RawLayout, routes: list[Route]) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of all that is drawn."""
    xs, ys = [0.0] * (not scene.boxes), [0.0] * (not scene.boxes)
    for box, (x, y) in zip(scene.boxes, raw.centres, strict=True):
        xs += (x - box.width / 2, x + box.width / 2)
        ys += (y - box.height / 2, y + box.height / 2)
    for rect in raw.panels:
        xs += (rect.x, rect.x + rect.width)
        ys += (rect.y, rect.y + rect.height)
    for link, route in zip(scene.links, routes, strict=True):
        x, y = route.label
        xs += (x - link.width / 2, x + link.width / 2, *(p[0] for cubic in route.path for p in cubic))
        ys += (y - link.height / 2, y + link.height / 2, *(p[1] for cubic in route.path for p in cubic))
    return min(xs), min(ys), max(xs), max(ys)
