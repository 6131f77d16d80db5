"""The changes of a debugger to one run, folded from its log: prompts, pins and mocks.

Edited values of the context are in the folds of state and context. The overrides here hold for all later
stages, in a resumed run, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from attractor_nb.errors import OptionError
from attractor_nb.model.events import (
    DebuggerChanged,
    DebuggerStopped,
    PipelineForked,
    PipelineInterrupted,
    PipelineResumed,
    PipelineRewound,
    RunWarning,
)
from attractor_nb.model.events.logged_events import LoggedEvents

if TYPE_CHECKING:
    from collections.abc import Iterable

    from attractor_nb.model.events import Event
    from attractor_nb.model.outcome import Outcome

_ENGINES_OWN = frozenset({"outcome", "preferred_label", "current_node", "last_stage"})
_ENGINES_PREFIXES = ("internal.", "graph.")


class Pin(NamedTuple):
    """A fixed outcome of a stage, which is then not executed."""

    outcome: Outcome  #: Its outcome.
    response: str = ""  #: The text of its response.md; empty for none.


class Overrides(msgspec.Struct):
    """The overrides of later stages."""

    prompts: dict[str, str] = {}  #: Prompts in place of those of the graph, by node.
    pins: dict[str, Pin] = {}  #: Outcomes of nodes that are not executed, by node.
    #: Nodes that a mock executes; the mock itself is known only to the process that set it.
    mocks: dict[str, None] = {}

    def apply(self, event: DebuggerChanged) -> None:
        """Take in a change."""
        node = event.node
        if event.change == "prompt":
            self.prompts[node] = event.text
        elif event.change == "pin" and event.outcome is not None:
            self.mocks.pop(node, None)
            self.pins[node] = Pin(event.outcome, event.text)
        elif event.change == "mock":
            self.pins.pop(node, None)
            self.mocks[node] = None
        elif event.change in {"unpin", "unmock"}:
            self.pins.pop(node, None)
            self.mocks.pop(node, None)

    def to_events(self) -> list[DebuggerChanged]:
        """Records of the same overrides, for the log of a new run directory."""
        prompts = [DebuggerChanged(change="prompt", node=node, text=text) for node, text in self.prompts.items()]
        pins = [
            DebuggerChanged(change="pin", node=node, outcome=pin.outcome, text=pin.response)
            for node, pin in self.pins.items()
        ]
        return [*prompts, *pins, *(DebuggerChanged(change="mock", node=node) for node in self.mocks)]


def overrides_of(events: Iterable[Event]) -> Overrides:
    """The overrides in the events of a log that count."""
    found = Overrides()
    for event in LoggedEvents.of(events).select(DebuggerChanged, PipelineForked, PipelineRewound):
        if isinstance(event, DebuggerChanged):
            found.apply(event)
        elif event.prompt:
            found.prompts[event.node] = event.prompt
    return found


def what_a_resume_loses(events: Iterable[Event], *, has_breakpoints: bool) -> list[RunWarning]:
    """Warnings for the resume of a debugged run: breakpoints and mocks ended with their process.

    Args:
        events: The events of the log that count.
        has_breakpoints: Breakpoints are given again.
    """
    events = LoggedEvents.of(events)
    if not events.select(DebuggerStopped, DebuggerChanged):
        return []
    stood: DebuggerStopped | None = None
    overrides = Overrides()
    for event in events:
        if isinstance(event, DebuggerStopped):
            stood = event
        elif isinstance(event, DebuggerChanged):
            overrides.apply(event)
        elif not isinstance(event, PipelineInterrupted | PipelineResumed | RunWarning):
            stood = None
    warnings: list[RunWarning] = []
    if stood is not None and not has_breakpoints:
        words = (
            f"the run stood {stood.moment} {stood.node} ({stood.breakpoint}) and goes on without stopping;"
            " to stop again give breakpoints=[…]"
        )
        warnings.append(RunWarning(message=words, node=stood.node))
    for node in overrides.mocks:
        words = f"the mock of {node} ended with its process, and the node is executed again; set it anew"
        warnings.append(RunWarning(message=words, node=node))
    return warnings


def is_of_the_engine(key: str) -> bool:
    """Whether a key of the context is the engine's own."""
    return key in _ENGINES_OWN or key.startswith(_ENGINES_PREFIXES)


def check_key(key: object) -> str:
    """A key of the context that may be set by hand."""
    if not isinstance(key, str) or not key:
        raise OptionError(f"a key of the context must be text, not {key!r:.80}")
    if key in _ENGINES_OWN:
        hint = "routing looks at the outcome itself: set_outcome(status) at a stop after the stage"
        raise OptionError(f"the key {key!r} is the engine's own", hint=hint)
    if key.startswith(_ENGINES_PREFIXES):
        raise OptionError(f"keys {' and '.join(f'{prefix}*' for prefix in _ENGINES_PREFIXES)} are the engine's own")
    return key
