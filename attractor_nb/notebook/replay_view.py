"""The replay of a run in a notebook: a slider over its events, and the inspector asks the kernel for texts.

As of ``history_view`` the output of the cell is static, the last moment of the run, and the widget stands in
for it. All moments are in the widget's values: they can be scrubbed through when the kernel is gone, too.
"""

from __future__ import annotations

# anywidget and traitlets have no types: whatever is theirs is unknown here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUntypedBaseClass=false
import zlib
from typing import TYPE_CHECKING, Any

import traitlets

from attractor_nb.notebook.view_actions import ActingView
from attractor_nb.storage.files.strict_json import json_bytes
from attractor_nb.views.frontend import script, widget_styles

if TYPE_CHECKING:
    from attractor_nb.notebook.shown_run import OpenViews
    from attractor_nb.studio.replay.replay_run import Replay


class ReplayView(ActingView):
    """A replay with its drawing.

    Attributes:
        svg: The graph's picture, without states.
        marks: Path of the sign of each status.
        caption: Name of the pipeline, for screen readers.
        packed: The frames (``replay_frames.replay_of``), as zlib's bytes of their JSON: as plain values those
            of 10,000 steps would go through every layer of the kernel, of Jupyter and of the page.
        stages: Inspections by ``node@visit``; empty here, for the kernel is asked.
        place: The key that marks the static output.
    """

    _esm = script("replay")
    _css = widget_styles()
    svg = traitlets.Unicode().tag(sync=True)
    marks = traitlets.Dict().tag(sync=True)
    caption = traitlets.Unicode().tag(sync=True)
    packed = traitlets.Bytes().tag(sync=True)
    stages = traitlets.Dict().tag(sync=True)
    place = traitlets.Unicode().tag(sync=True)

    def __init__(self, shown: Replay, place: str = "", views: OpenViews | None = None) -> None:
        values = shown.values()
        packed = zlib.compress(json_bytes(values.pop("replay")), 1)
        super().__init__(place=place, packed=packed, **values)
        self._run = shown.run
        self.act_on(shown.run, views)
        self.on_msg(self._hear)

    def _hear(self, _widget: object, content: dict[str, Any], _buffers: object) -> None:
        self.hear_acts(self._run, content)
