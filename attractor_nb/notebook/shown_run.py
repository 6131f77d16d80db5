"""What the live view of a run needs of others: of the run, and of the output where it is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from attractor_nb.model.events import Event
    from attractor_nb.model.graph import Graph
    from attractor_nb.pipeline.debugger import Debugger
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
