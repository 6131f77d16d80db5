"""What the live view of a run needs of others: of the run, and of the output where it is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from attractor_nb.model.events import Event
    from attractor_nb.model.graph import Graph
    from attractor_nb.studio.debug.debugger import Debugger
    from attractor_nb.views.state import RunView


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

    def waiting_beside(self, run: ShownRun) -> list[Any]:
        """The other runs of the same pipeline under way here that wait for a person."""
        ...

    def run_here(self, run_id: str) -> Any:
        """A run under way here, by its id; None when there is none any more."""
        ...

    def let_go(self) -> None:
        """Close views that are over, where there are many newer ones."""
        ...
