"""Questions to people and their answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from attractor_nb.model.events.event import RunEvent
from attractor_nb.model.record import no_values


class InterviewStarted(RunEvent, kw_only=True):
    """A question was put to a person."""

    question: str = ""  #: The question's text.
    stage: str = ""  #: The asking node.
    question_id: str = ""  #: Id to answer by.
    kind: str = ""  #: The question's type.
    options: tuple[tuple[str, str], ...] = ()  #: ``[key, label]`` of each choice.
    deadline: float | None = None  #: When it times out, in seconds since 1970; None for never.
    metadata: Mapping[str, Any] = msgspec.field(default_factory=no_values)  #: What a front-end may show beside it.
    #: What is to be filled in, as ``Form.to_plain`` has it; empty for nothing.
    form: Mapping[str, Any] = msgspec.field(default_factory=no_values)

    @property
    def node_id(self) -> str:
        """The asking node."""
        return self.stage

    @property
    def description(self) -> str:
        """One line for people."""
        return f"gate {self.stage} waits for an answer"


class InterviewCompleted(RunEvent, kw_only=True):
    """The durable answer to a question; the first one wins (ruling 23)."""

    question: str = ""  #: The question's text.
    answer: str = ""  #: Value of the answer: an option's key, yes/no, or the text.
    duration: float  #: Seconds from question to answer.
    question_id: str = ""  #: Which question.
    stage: str = ""  #: The asking node.
    label: str = ""  #: Label of the chosen option, or empty.
    keys: tuple[str, ...] = ()  #: Keys of all chosen options, for a multi-select.
    text: str = ""  #: Free text, or empty.
    answered_by: str = ""  #: Who or what answered.
    form: Mapping[str, Any] = msgspec.field(default_factory=no_values)  #: What was filled in, by field.

    @property
    def node_id(self) -> str:
        """The asking node."""
        return self.stage

    @property
    def description(self) -> str:
        """One line for people."""
        by = f", by {self.answered_by}" if self.answered_by else ""
        return f"{self.stage}: {self.label or self.text or self.answer}{by}"


class InterviewTimeout(RunEvent, kw_only=True):
    """Nobody answered in time. ``duration`` in seconds."""

    question: str = ""
    stage: str = ""
    duration: float
    question_id: str = ""

    @property
    def node_id(self) -> str:
        """The asking node."""
        return self.stage

    @property
    def description(self) -> str:
        """One line for people."""
        return f"gate {self.stage} got no answer in {self.duration:.0f} s"


class InterviewInformed(RunEvent, kw_only=True):
    """A message to people that asks for nothing (``Interviewer.inform``)."""

    message: str = ""
    stage: str = ""

    @property
    def node_id(self) -> str:
        """The node it is about."""
        return self.stage

    @property
    def description(self) -> str:
        """One line for people."""
        return self.message
