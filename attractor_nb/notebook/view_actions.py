"""Views with an inspector whose buttons act: what is begun by a click is shown live beneath the view.

A handler of a click cannot display anything. It makes the live view of the run that begins, and names its
place in a trait; the browser puts the place beneath (``views/web/beneath.js``), and the view stands in there.
"""

from __future__ import annotations

# anywidget and traitlets have no types: whatever is theirs is unknown here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUntypedBaseClass=false
# pyright: reportUnknownArgumentType=false
from typing import TYPE_CHECKING, Any, Final

import anywidget
import traitlets

from attractor_nb.pipeline.run_actions import ActionDesk
from attractor_nb.studio.inspect.inspect_run import answer_inspection

if TYPE_CHECKING:
    from collections.abc import Callable

    from attractor_nb.notebook.shown_run import OpenViews
    from attractor_nb.pipeline.run import Run

MOST_BENEATH: Final = 8
"""How many runs stay beneath a view: those that were begun last."""


class ActingView(anywidget.AnyWidget):
    """A view of one run that can begin others.

    Attributes:
        beneath: What was begun: ``place`` of its live view, and a ``title``; the latest last.
    """

    beneath = traitlets.List().tag(sync=True)
    _desk: ActionDesk | None = None
    _runs: OpenViews | None = None

    def act_on(self, run: Any, views: OpenViews | None) -> None:
        """Let its buttons act on a run.

        Args:
            run: The run.
            views: Makes the live views of those that begin; without it there are no buttons.
        """
        self._desk = None if views is None else ActionDesk(run, self._begin)
        self._runs = views

    def with_actions(self, reply: dict[str, Any]) -> dict[str, Any]:
        """An answer of the inspector, with what can be done with its stage."""
        return reply if self._desk is None else self._desk.with_actions(reply)

    def hear_acts(self, run: Any, content: dict[str, Any]) -> None:
        """Answer what an inspector asks and asks for."""
        match content.get("kind"):
            case "inspect":
                self.send(self.with_actions(answer_inspection(run, content)))
            case "act":
                self.act(content)
            case _:
                pass

    def act(self, content: dict[str, Any]) -> None:
        """Do what a button asks for, and say what came of it."""
        if self._desk is not None:
            self.send(self._desk.answer(content))

    def _begin(self, title: str, start: Callable[[], Run]) -> Run:
        assert self._runs is not None, "there is no desk without it"
        with self._runs.caught() as views:
            run = start()
        begun = [{"place": view.key, "title": title} for view in views]
        self.beneath = [*self.beneath, *begun][-MOST_BENEATH:]
        return run
