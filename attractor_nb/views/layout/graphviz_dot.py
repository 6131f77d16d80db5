"""The layout engine that asks Graphviz who stands left of whom.

``dot`` gets sizes, our own short ids and layout attributes, nothing that a pipeline's author wrote: its
output is read for coordinates only. It runs in its own process group with a time limit. What it finds is
the order of each layer; places and lines are those of every drawing.
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
from attractor_nb.views.layout.panels import panel_paths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attractor_nb.views.layout.layers import Layered
    from attractor_nb.views.layout.skeleton import Skeleton
    from attractor_nb.views.scene import Scene

TIMEOUT_SECONDS: Final = 5.0
_POINTS_PER_INCH: Final = 72.0


class DotFailed(Exception):
    """Graphviz is missing, refused, or took too long. The caller falls back or reports it."""


def find_dot() -> str | None:
    """Path of the ``dot`` executable that the graphviz package would use, or None."""
    from graphviz.backend import DOT_BINARY  # noqa: PLC0415 - not needed without Graphviz

    return shutil.which(str(DOT_BINARY))


def places_by_dot(skeleton: Skeleton, layered: Layered) -> dict[int, float]:
    """Where ``dot`` would place each vertex of a scene across the flow.

    Raises:
        DotFailed: It is missing, failed, timed out or answered something else.
    """
    answer = _ask_dot("\n".join(_dot_lines(skeleton, layered)))
    try:
        places = _read(json.loads(answer))
        return {vertex: places[vertex] for vertex in layered.keys}
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


def _dot_lines(skeleton: Skeleton, layered: Layered) -> Iterator[str]:
    """The layers as DOT: ids ``v0`` for vertices, ``cluster_0`` for panels; sizes across the flow in inches.

    Every edge joins neighbouring layers, so that ``dot`` finds the layers that we have, and an order in each.
    """
    scene = skeleton.scene
    yield "digraph {"
    yield "graph [nslimit=1, splines=none]"
    yield 'node [shape=box, fixedsize=true, label="", height=0.1, width=0.05]'
    paths = panel_paths(scene, layered.chains)
    homes: dict[int | None, list[str]] = defaultdict(list)
    widths = {box: before + behind for box, (before, behind, _) in enumerate(skeleton.box_rooms())}
    for position, bead in layered.beads.items():
        link = scene.links[position]
        widths[bead] = skeleton.turned(link.width, link.height)[0]
    for vertex in sorted(layered.keys):
        path = paths.get(vertex, ())
        size = f" [width={widths[vertex] / _POINTS_PER_INCH:.3f}]" if widths.get(vertex) else ""
        homes[path[-1] if path else None].append(f"v{vertex}{size}")
    yield from homes[None]
    yield from _cluster_lines(scene, homes, None)
    for upper, lower in layered.edges:
        yield f"v{upper} -> v{lower}"
    yield "}"


def _cluster_lines(scene: Scene, homes: dict[int | None, list[str]], parent: int | None) -> Iterator[str]:
    for position, panel in enumerate(scene.panels):
        if panel.parent == parent:
            yield f"subgraph cluster_{position} {{"
            yield from homes[position]
            yield from _cluster_lines(scene, homes, position)
            yield "}"


def _read(answer: dict[str, Any]) -> dict[int, float]:
    """Where each vertex is across the flow."""
    items = (item for item in answer["objects"] if "pos" in item)
    return {int(item["name"][1:]): float(item["pos"].partition(",")[0]) for item in items}
