"""The layout engine that asks Graphviz.

``dot`` gets sizes, our own short ids and layout attributes, nothing that a pipeline's author wrote:
its output is read for coordinates only. It runs in its own process group with a time limit.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.processes import command_environment
from attractor_nb.views.layout.geometry import Cubic, Point, Rect, reversed_path
from attractor_nb.views.layout.result import RawLayout
from attractor_nb.views.layout.skeleton import Skeleton, skeleton_of
from attractor_nb.views.metrics import text_width
from attractor_nb.views.scene import shared_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attractor_nb.views.scene import Scene

TIMEOUT_SECONDS: Final = 5.0
_POINTS_PER_INCH: Final = 72.0


class DotFailed(Exception):
    """Graphviz is missing, refused, or took too long. The caller falls back or reports it."""


def find_dot() -> str | None:
    """Path of the ``dot`` executable that the graphviz package would use, or None."""
    from graphviz.backend import DOT_BINARY  # noqa: PLC0415 - not needed without Graphviz

    return shutil.which(str(DOT_BINARY))


def lay_out_with_dot(scene: Scene) -> RawLayout:
    """Coordinates from ``dot``.

    Raises:
        DotFailed: It is missing, failed, timed out or answered something else.
    """
    if not scene.boxes:
        return RawLayout([], [], [], [])
    skeleton = skeleton_of(scene)
    answer = _ask_dot("\n".join(_dot_lines(skeleton)))
    try:
        return _read(skeleton, json.loads(answer))
    except (ValueError, KeyError, IndexError) as unreadable:
        raise DotFailed("its output has no coordinates") from unreadable


def _ask_dot(text: str) -> bytes:
    executable = find_dot()
    if executable is None:
        raise DotFailed("`dot` was not found")
    try:
        child = subprocess.Popen(  # noqa: S603 - a fixed command; the input is our own
            [executable, "-Tjson0"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=command_environment(),
        )
    except OSError as refused:
        raise DotFailed("`dot` could not be started") from refused
    with child:
        try:
            answer, _ = child.communicate(text.encode(), timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired as expired:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
            raise DotFailed(f"`dot` took more than {TIMEOUT_SECONDS:.0f} s") from expired
    if child.returncode:
        raise DotFailed(f"`dot` ended with exit code {child.returncode}")
    return answer


def _dot_lines(skeleton: Skeleton) -> Iterator[str]:
    """The scene as DOT: ids ``n0`` for boxes, ``b0`` for beads, ``cluster_0``; sizes in inches.

    Loop-backs are written turned round; labels are nodes on their edges, and edges without one are
    as long as an edge with its bead.
    """
    scene = skeleton.scene
    has_beads = any(link.lines for link in scene.links)
    rank_gap = 0.24 if has_beads else 0.44
    yield "digraph {"
    yield f"graph [rankdir={scene.direction}, nodesep=0.34, ranksep={rank_gap}, nslimit=1, fontname=Courier]"
    yield 'node [shape=box, fixedsize=true, label="", margin=0]'
    yield "edge [dir=none, headclip=false, tailclip=false]"
    homes: dict[int | None, list[str]] = defaultdict(list)
    edges: list[str] = []
    paths = scene.panel_paths()
    for position, room in enumerate(skeleton.box_rooms()):
        homes[_innermost(paths[position])].append(f"n{position} [{_size(*skeleton.turned(*room))}]")
    for position, link in enumerate(scene.links):
        upper, lower = skeleton.ends[position]
        if upper == lower:
            continue
        if link.lines:
            home = _innermost(shared_path(paths[upper], paths[lower]))
            homes[home].append(f"b{position} [{_size(link.width, link.height)}]")
            edges.append(f"n{upper} -> b{position} [id=u{position}]")
            edges.append(f"b{position} -> n{lower} [id=l{position}]")
        else:
            edges.append(f"n{upper} -> n{lower} [id=w{position}, minlen={2 if has_beads else 1}]")
    yield from homes[None]
    yield from _cluster_lines(scene, homes, None)
    yield from edges
    yield "}"


def _cluster_lines(scene: Scene, homes: dict[int | None, list[str]], parent: int | None) -> Iterator[str]:
    for position, panel in enumerate(scene.panels):
        if panel.parent != parent:
            continue
        title = "M" * (1 + int(text_width(panel.title, 11) / 8.4)) if panel.title else '""'
        yield f"subgraph cluster_{position} {{ graph [margin=10, fontsize=14, label={title}]"
        yield from homes[position]
        yield from _cluster_lines(scene, homes, position)
        yield "}"


def _innermost(path: tuple[int, ...]) -> int | None:
    return path[-1] if path else None


def _size(width: float, height: float) -> str:
    return f"width={width / _POINTS_PER_INCH:.4f}, height={height / _POINTS_PER_INCH:.4f}"


def _read(skeleton: Skeleton, answer: dict[str, Any]) -> RawLayout:
    scene = skeleton.scene
    top = _numbers(answer["bb"])[3]
    places: dict[str, Point] = {}
    panels = [Rect(0.0, 0.0, 0.0, 0.0)] * len(scene.panels)
    for item in answer["objects"]:
        name: str = item["name"]
        if "pos" in item:
            x, y = _numbers(item["pos"])
            places[name] = x, top - y
        elif "bb" in item:
            x0, y0, x1, y1 = _numbers(item["bb"])
            panels[int(name.removeprefix("cluster_"))] = Rect(x0, top - y1, x1 - x0, y1 - y0)
    pieces: dict[str, list[Cubic]] = {}
    for item in answer.get("edges", ()):
        flat = _numbers(item["pos"].replace(" ", ","))
        points = [(x, top - y) for x, y in zip(flat[::2], flat[1::2], strict=True)]
        pieces[item["id"]] = _cubics(points)
    centres = [places[f"n{position}"] for position in range(len(scene.boxes))]
    paths: list[list[Cubic]] = []
    labels: list[Point | None] = []
    for position, link in enumerate(scene.links):
        label = places.get(f"b{position}")
        if skeleton.is_loop(position):
            path, label = _loop(skeleton, position, centres[link.source])
        elif label is None:
            path = pieces[f"w{position}"]
        else:
            path = pieces[f"u{position}"] + pieces[f"l{position}"]
        paths.append(path if skeleton.is_forward[position] else reversed_path(path))
        labels.append(label)
    return RawLayout(centres, paths, labels, panels)


def _loop(skeleton: Skeleton, position: int, centre: Point) -> tuple[list[Cubic], Point | None]:
    path, label = skeleton.loop_path(position, skeleton.turned(*centre))
    turn = skeleton.turned
    return [(turn(*a), turn(*b), turn(*c), turn(*d)) for a, b, c, d in path], label and turn(*label)


def _cubics(points: list[Point]) -> list[Cubic]:
    return [
        (points[start], points[start + 1], points[start + 2], points[start + 3])
        for start in range(0, len(points) - 3, 3)
    ]


def _numbers(text: str) -> list[float]:
    return [float(piece) for piece in text.split(",")]
