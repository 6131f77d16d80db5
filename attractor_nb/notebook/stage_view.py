"""One stage in a notebook, as ``run.inspect("draft")`` gives it: the inspector, and what it can do.

As of ``history_view`` the output of the cell is static, and the widget stands in for it.
"""

from __future__ import annotations

# anywidget and traitlets have no types: whatever is theirs is unknown here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUntypedBaseClass=false
from typing import TYPE_CHECKING, Any

import traitlets

from attractor_nb.notebook.view_actions import ActingView
from attractor_nb.views.frontend import script, widget_styles
from attractor_nb.views.texts.prose import shown_stage

if TYPE_CHECKING:
    from attractor_nb.notebook.live.live_runs import LiveRuns
    from attractor_nb.runtime.execution import Execution
    from attractor_nb.studio.inspect.inspection import StageInspection


class StageDisplay(ActingView):
    """A stage."""

    _esm = script("stage_view")
    _css = widget_styles()
    stage = traitlets.Dict().tag(sync=True)  #: Its plain form.
    place = traitlets.Unicode().tag(sync=True)  #: The key that marks the static output.

    def __init__(self, shown: StageInspection, run: Execution, place: str, views: LiveRuns) -> None:
        super().__init__(place=place)
        self._run = run
        self.act_on(run, views)
        self.stage = self.with_actions({"kind": "stage", **shown_stage(shown.to_plain())})
        self.on_msg(self._on_message)

    def _on_message(self, _widget: object, content: dict[str, Any], _buffers: object) -> None:
        self.hear_acts(self._run, content)
