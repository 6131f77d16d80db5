"""Marks of a run and changes of a debugger, folded from the events that count (ruling 48).

What a rewind sets aside leaves no mark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from attractor_nb.errors import OptionError
from attractor_nb.model.events import (
    ChildEnded,
    DebuggerChanged,
    DebuggerStopped,
    Event,
    PipelineForked,
    PipelineInterrupted,
    PipelineResumed,
    PipelineRewound,
    PipelineStarted,
    RunWarning,
    StageCompleted,
    StageFailed,
    StageStarted,
)
from attractor_nb.model.events.logged_events import LoggedEvents
from attractor_nb.model.outcome import Answers, Outcome, ResultMarks, StandIn, answers_together
from attractor_nb.model.vocabulary.shapes import CHILD_RUN_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable


TELLING: Final = (
    *(PipelineStarted, PipelineResumed, StageStarted, StageCompleted, StageFailed),
    *(DebuggerChanged, ChildEnded),
)
"""The events that set marks."""

_SILENT_TYPES: Final = {"start", "exit", "conditional", "parallel", "wait.human", *CHILD_RUN_TYPES}
"""Handler types that ask no backend and run no command; a child run says of itself who answered."""


class MarkFold(msgspec.Struct):
    """The marks so far."""

    before: ResultMarks = ResultMarks()  #: Those of child runs, and of what a restart continues.
    #: Source of the answers in the committed stages; ``marks`` has the expected one, as long as there are none.
    answers: Answers = ""
    backends: dict[str, None] = {}  #: Backends that answered.
    stand_ins: dict[tuple[str, str], StandIn] = {}  #: Nodes whose latest outcome was given, by branch and node.
    is_new: bool = False  #: They may have changed; for the code that resets this.
    _given: dict[str, StandIn] = {}
    """Replacements for nodes from now on."""
    _by_hand: set[str] = set()
    _session: tuple[Answers, str] | None = None
    """Source of answers since the run was started or resumed. A simulation counts with the first committed stage, a
    backend with the first that may have asked it."""
    _silent: set[str] = set()
    """Nodes of this session that ask no question."""

    @property
    def marks(self) -> ResultMarks:
        """The marks."""
        answers: Answers = self.answers or (self._session[0] if self._session else "")
        return self.before + ResultMarks(
            answers, list(self.backends), {node: kind for (_, node), kind in self.stand_ins.items()}
        )

    def take(self, event: Event) -> None:
        """Take in an event that counts."""
        if isinstance(event, StageStarted):
            if self._session and self._session[0] == "real" and event.handler_type in _SILENT_TYPES:
                self._silent.add(event.name)
        elif isinstance(event, StageCompleted | StageFailed):
            if self._session or self._given or self._by_hand or self.stand_ins:
                self._commit(event)
        elif isinstance(event, PipelineStarted):
            self._begin(event.answers, event.backend)
            if event.carried is not None:
                self.before += event.carried.marks
        elif isinstance(event, PipelineResumed):
            self._begin(event.answers, event.backend)
        elif isinstance(event, DebuggerChanged):
            self._change(event)
        elif isinstance(event, ChildEnded):
            self.before += event.marks.of_child(event.name)
            self.is_new = True

    def _begin(self, answers: Answers, backend: str) -> None:
        """Another process executes the stages from now on: mocks have ended with the one before."""
        self._session = answers, backend
        self._given = {node: kind for node, kind in self._given.items() if kind != "mocked"}

    def _commit(self, event: StageCompleted | StageFailed) -> None:
        if not event.is_commit:
            return
        if self._session is not None and event.name not in self._silent:
            self.is_new = True
            self._silent.clear()
            (answers, backend), self._session = self._session, None
            self.answers = answers_together(self.answers, answers)
            if answers and backend:
                self.backends[backend] = None
        kind: StandIn | None = "set by hand" if event.name in self._by_hand else self._given.get(event.name)
        self._by_hand.discard(event.name)
        if kind is not None:
            self.stand_ins[event.branch, event.name] = kind
            self.is_new = True
        elif self.stand_ins.pop((event.branch, event.name), None) is not None:
            self.is_new = True

    def _change(self, event: DebuggerChanged) -> None:
        if event.change == "pin":
            self._given[event.node] = "pinned"
        elif event.change == "mock":
            self._given[event.node] = "mocked"
        elif event.change in {"unpin", "unmock"}:
            self._given.pop(event.node, None)
        elif event.change == "outcome":
            self._by_hand.add(event.node)


def marks_of(events: Iterable[Event]) -> MarkFold:
    """The fold of the events of a log that count."""
    found = MarkFold()
    for event in LoggedEvents.of(events).select(*TELLING):
        found.take(event)
    return found


# The changes of a debugger to one run, folded from its log: prompts, pins and mocks.
#
# Edited values of the context are in the folds of state and context. The overrides here hold for all later
# stages, in a resumed run, too.

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
    stop: DebuggerStopped | None = None
    overrides = Overrides()
    for event in events:
        if isinstance(event, DebuggerStopped):
            stop = event
        elif isinstance(event, DebuggerChanged):
            overrides.apply(event)
        elif not isinstance(event, PipelineInterrupted | PipelineResumed | RunWarning):
            stop = None
    warnings: list[RunWarning] = []
    if stop is not None and not has_breakpoints:
        words = (
            f"the run was stopped {stop.moment} {stop.node} ({stop.breakpoint}) and continues without stopping;"
            " to stop again give breakpoints=[…]"
        )
        warnings.append(RunWarning(message=words, node=stop.node))
    for node in overrides.mocks:
        words = f"the mock of {node} ended with its process, and the node is executed again; set it again"
        warnings.append(RunWarning(message=words, node=node))
    return warnings


def is_of_the_engine(key: str) -> bool:
    """True if a key of the context is the engine's own."""
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
