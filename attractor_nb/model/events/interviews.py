"""Questions to people and their answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from attractor_nb.model.events.event import RunEvent
from attractor_nb.model.record import no_values


class InterviewStarted(RunEvent, kw_only=True):
    """A question was put to a person.

    Attributes:
        question: The question's text.
        stage: The asking node.
        question_id: Id to answer by.
        kind: The question's type.
        options: ``[key, label]`` of each choice.
        deadline: When it times out, in seconds since 1970; None for never.
        metadata: What a front-end may show beside it.
        form: What is to be filled in, as ``Form.to_plain`` has it; empty for nothing.
    """

    question: str = ""
    stage: str = ""
    question_id: str = ""
    kind: str = ""
    options: tuple[tuple[str, str], ...] = ()
    deadline: float | None = None
    metadata: Mapping[str, Any] = msgspec.field(default_factory=no_values)
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
    """The durable answer to a question; the first one wins (ruling 23).

    Attributes:
        question: The question's text.
        answer: Value of the answer: an option's key, yes/no, or the text.
        duration: Seconds from question to answer.
        question_id: Which question.
        stage: The asking node.
        label: Label of the chosen option, or empty.
        keys: Keys of all chosen options, for a multi-select.
        text: Free text, or empty.
        answered_by: Who or what answered.
        form: What was filled in, by field.
    """

    question: str = ""
    answer: str = ""
    duration: float
    question_id: str = ""
    stage: str = ""
    label: str = ""
    keys: tuple[str, ...] = ()
    text: str = ""
    answered_by: str = ""
    form: Mapping[str, Any] = msgspec.field(default_factory=no_values)

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
