"""Events of pauses: questions to users and their answers, stops and changes of a debugger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from attractor_nb.model.events.event import RunEvent
from attractor_nb.model.outcome import Outcome
from attractor_nb.model.record import Count, always, no_values


class InterviewStarted(RunEvent, kw_only=True):
    """A question was put to a person."""

    question: str = ""  #: The question's text.
    stage: str = ""  #: The asking node.
    question_id: str = ""  #: Id to answer by.
    kind: str = ""  #: The question's type.
    options: tuple[tuple[str, str], ...] = ()  #: ``[key, label]`` of each choice.
    deadline: float | None = None  #: When it times out, in seconds since 1970; None for never.
    metadata: Mapping[str, Any] = msgspec.field(default_factory=no_values)  #: Further values that a front end may show.
    #: Form to fill in, as in ``Form.to_plain``; empty for none.
    form: Mapping[str, Any] = msgspec.field(default_factory=no_values)

    @property
    def node_id(self) -> str:
        """The asking node."""
        return self.stage

    @property
    def description(self) -> str:
        """One line for users."""
        return f"gate `{self.stage}` waits for an answer"


class InterviewCompleted(RunEvent, kw_only=True):
    """The durable answer to a question; the first one wins (ruling 23)."""

    question: str = ""  #: The question's text.
    answer: str = ""  #: Value of the answer: an option's key, yes/no, or the text.
    duration: float  #: Seconds from question to answer.
    question_id: str = ""  #: Id of the question.
    stage: str = ""  #: The asking node.
    label: str = ""  #: Label of the chosen option, or empty.
    keys: tuple[str, ...] = ()  #: Keys of all chosen options, for a multi-select.
    text: str = ""  #: Free text, or empty.
    answered_by: str = ""  #: Source of the answer.
    form: Mapping[str, Any] = msgspec.field(default_factory=no_values)  #: Form values, by field.

    @property
    def node_id(self) -> str:
        """The asking node."""
        return self.stage

    @property
    def description(self) -> str:
        """One line for users."""
        by = f", by {self.answered_by}" if self.answered_by else ""
        return f"{self.stage}: {self.label or self.text or self.answer}{by}"


class InterviewTimeout(RunEvent, kw_only=True):
    """A question had no answer in time. ``duration`` in seconds."""

    question: str = ""  #: Text of the question.
    stage: str = ""  #: The gate's node.
    duration: float  #: Seconds that it waited.
    question_id: str = ""  #: Id of the question.

    @property
    def node_id(self) -> str:
        """The asking node."""
        return self.stage

    @property
    def description(self) -> str:
        """One line for users."""
        return f"gate `{self.stage}` got no answer in {self.duration:.0f} s"


class InterviewInformed(RunEvent, kw_only=True):
    """A message to users that asks for nothing (``Interviewer.inform``)."""

    message: str = ""  #: The text that was shown.
    stage: str = ""  #: The node that shows it.

    @property
    def node_id(self) -> str:
        """The node it is about."""
        return self.stage

    @property
    def description(self) -> str:
        """One line for users."""
        return self.message


# Events of a debugger: stops, moves and changes by hand.


class DebuggerStopped(RunEvent, kw_only=True):
    """The run, or a branch of it, is stopped between two steps until it is continued."""

    node: str = ""  #: The stage that is next, or that has just ended.
    moment: str = always("before")  #: ``before`` the stage, or ``after`` it, with its outcome known and no edge chosen.
    visit: Count = always(1)  #: Number of its visit.
    breakpoint: str = ""  #: Reason of the stop: the text of a breakpoint, ``step`` or ``pause``.

    @property
    def node_id(self) -> str:
        """The node."""
        return self.node

    @property
    def description(self) -> str:
        """One line for users."""
        return f"stopped {self.moment} {self.node}: {self.breakpoint}"


class DebuggerChanged(RunEvent, kw_only=True):
    """Something was changed by hand, for this run alone. The folds of the log count it."""

    change: str = ""  #: ``context``, ``prompt``, ``outcome``, ``pin``, ``unpin``, ``mock`` or ``unmock``.
    node: str = ""  #: The node concerned; empty for a change of the context.
    #: For ``context``: the new values by key, as the context keeps them.
    context: Mapping[str, Any] = msgspec.field(default_factory=no_values)
    text: str = ""  #: For ``prompt`` the prompt, for ``pin`` the response; empty without one.
    outcome: Outcome | None = None  #: For ``outcome`` and ``pin``: the outcome; else None.
    before: str = ""  #: For ``outcome``: the stage's own outcome, in words.
    visit: Count = always(0)  #: For ``outcome``: number of the visit.

    @property
    def node_id(self) -> str:
        """The node."""
        return self.node

    @property
    def description(self) -> str:
        """One line for users."""
        what = ", ".join(self.context) if self.change == "context" else self.node
        return f"changed by hand: {self.change} {what}".rstrip()


class DebuggerMoved(RunEvent, kw_only=True):
    """Breakpoints have changed, or the run continues after a stop: a view refreshes its debugger."""

    is_durable: ClassVar[bool] = False
