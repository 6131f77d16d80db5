"""Events of a debugger: stops, moves and changes by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from attractor_nb.model.events.event import RunEvent
from attractor_nb.model.outcome import Outcome
from attractor_nb.model.record import Count, always, no_values


class DebuggerStopped(RunEvent, kw_only=True):
    """The run, or a branch of it, stands between two steps until somebody has it go on."""

    node: str = ""  #: The stage that is next, or that has just ended.
    moment: str = always("before")  #: ``before`` the stage, or ``after`` it, with its outcome known and no edge chosen.
    visit: Count = always(1)  #: Number of its visit.
    breakpoint: str = ""  #: What made it stop: the text of a breakpoint, ``step`` or ``pause``.

    @property
    def node_id(self) -> str:
        """The node."""
        return self.node

    @property
    def description(self) -> str:
        """One line for people."""
        return f"stopped {self.moment} {self.node}: {self.breakpoint}"


class DebuggerChanged(RunEvent, kw_only=True):
    """Something was changed by hand, for this run alone. The folds of the log count it."""

    change: str = ""  #: ``context``, ``prompt``, ``outcome``, ``pin``, ``unpin``, ``mock`` or ``unmock``.
    node: str = ""  #: The node concerned; empty for a change of the context.
    #: For ``context``: the new values by key, as the context keeps them.
    context: Mapping[str, Any] = msgspec.field(default_factory=no_values)
    text: str = ""  #: For ``prompt`` the prompt, for ``pin`` the response; empty without one.
    outcome: Outcome | None = None  #: For ``outcome`` and ``pin``: the outcome; else None.
    before: str = ""  #: For ``outcome``: what the stage had come to by itself, in words.
    visit: Count = always(0)  #: For ``outcome``: number of the visit.

    @property
    def node_id(self) -> str:
        """The node."""
        return self.node

    @property
    def description(self) -> str:
        """One line for people."""
        what = ", ".join(self.context) if self.change == "context" else self.node
        return f"changed by hand: {self.change} {what}".rstrip()


class DebuggerMoved(RunEvent, kw_only=True):
    """Breakpoints have changed, or the run continues after a stop: a view refreshes its debugger."""

    is_durable: ClassVar[bool] = False
