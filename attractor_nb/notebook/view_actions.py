"""Views whose buttons act: what they need of a run and its output; what a click begins is shown beneath.

A handler of a click cannot display anything. It makes the live view of the run that begins, and names its
place in a trait; the browser puts the place beneath (``views/web/beneath.js``), and the view stands in there.
"""

from __future__ import annotations

# anywidget and traitlets have no types: whatever is theirs is unknown here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUntypedBaseClass=false
# pyright: reportUnknownArgumentType=false
from typing import TYPE_CHECKING, Any, Final, Protocol

import anywidget
import traitlets

from attractor_nb.pipeline.run_actions import ActionDesk
from attractor_nb.studio.inspect.inspect_run import answer_inspection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from attractor_nb.model.events import Event
    from attractor_nb.model.graph import Graph
    from attractor_nb.pipeline.run import Run
    from attractor_nb.studio.debug.debugger import Debugger
    from attractor_nb.views.state import RunView

MOST_BENEATH: Final = 8
"""How many runs stay beneath a view: those that were begun last."""


class ActingView(anywidget.AnyWidget):
    """A view of one run that can begin others."""

    #: What was begun: ``place`` of its live view, and a ``title``; the latest last.
    beneath = traitlets.List().tag(sync=True)
    _desk: ActionDesk | None = None
    _runs: OpenViews | None = None

    def act_on(self, run: Any, views: OpenViews | None) -> None:
        """Let its buttons act on a run.

        Args:
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


class ShownRun(Protocol):
    """What the live view needs of a run; the public ``Run`` has it all."""

    @property
    def graph(self) -> Graph:
        """The graph that runs."""
        ...

    @property
    def logs_root(self) -> Path:
        """Its run directory."""
        ...

    @property
    def view(self) -> RunView:
        """What is known of it so far."""
        ...

    @property
    def children(self) -> Mapping[str, ShownRun]:
        """The child runs of its stages by node, in a branch by ``branch/node``."""
        ...

    @property
    def debugger(self) -> Debugger:
        """Breakpoints, steps, changes by hand."""
        ...

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        ...

    def __getitem__(self, node_id: str, /) -> Any:
        """What a stage has said."""
        ...

    def on_event(self, observer: Callable[[Event], None], /) -> Callable[[], None]:
        """Hear every event."""
        ...

    def answer(
        self,
        gate: str,
        choice: str = "",
        *,
        text: str = "",
        form: Mapping[str, Any] | None = None,
        answered_by: str = "",
    ) -> object:
        """Answer a gate."""
        ...

    def cancel(self) -> None:
        """Stop it."""
        ...


class Output(Protocol):
    """Where something is kept; a display handle is one."""

    def update(self, bundle: dict[str, str], /, *, raw: bool) -> None:
        """Keep this instead."""
        ...


class OpenViews(Protocol):
    """The live views of a shell, as a view needs them that opens others (``live_runs.LiveRuns``)."""

    def view_of(self, run: object) -> Any:
        """The view of a run that is alive, or None."""
        ...

    def open(self, run: ShownRun, *, is_followed: bool = False, key: str = "") -> Any:
        """A view of a run."""
        ...

    def caught(self) -> AbstractContextManager[Sequence[Any]]:
        """While this lasts views of runs that begin are not shown, but handed over."""
        ...

    def waiting_beside(self, run: ShownRun) -> list[dict[str, str]]:
        """The other runs of the same pipeline under way here that wait for a person: ``run``, ``words``."""
        ...

    def run_here(self, run_id: str) -> Any:
        """A run under way here, by its id; None when there is none any more."""
        ...

    def let_go(self) -> None:
        """Close views that are over, where there are many newer ones."""
        ...
