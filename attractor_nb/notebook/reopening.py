"""Runs that a notebook shows from before this kernel: a button at each opens it here.

There is one of it for a shell. It has no place of its own: in the browser it looks for outputs that name a
run and have no live view (``views/web/reopen.js``).
"""

from __future__ import annotations

# anywidget and traitlets have no types: whatever is theirs is unknown here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUntypedBaseClass=false
from typing import TYPE_CHECKING, Any

import anywidget

from attractor_nb.errors import AttractorError
from attractor_nb.pipeline.run import Run
from attractor_nb.redaction import redacted
from attractor_nb.views.frontend import script, widget_styles

if TYPE_CHECKING:
    from collections.abc import Callable


class Reopener(anywidget.AnyWidget):
    """The buttons of all runs that are kept in the notebook and not alive."""

    _esm = script("reopen")
    _css = widget_styles()

    def __init__(self, open_run: Callable[[Any, str], object]) -> None:
        """Make it; ``open_run`` takes a run and the key of its place, and shows its view there."""
        super().__init__()
        self._open_run = open_run
        self.on_msg(self._on_message)

    def _on_message(self, _widget: object, content: dict[str, Any], _buffers: object) -> None:
        if content.get("kind") != "open":
            return
        place = str(content.get("place", ""))
        problem = ""
        try:
            self._open_run(Run.load(str(content.get("run", ""))), place)
        except AttractorError as error:
            problem = redacted(str(error))
        self.send({"kind": "open", "place": place, "problem": problem})
