"""Counters of a live run for its summary. Shows nothing, and loads nothing that could."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from attractor_nb.cli.tones import Tone
from attractor_nb.model.events import InterviewStarted, PipelineFailed, StageEnd, StageStarted

if TYPE_CHECKING:
    from attractor_nb.model.events import Event

PATIENCE_SECONDS: Final = 2.0


@dataclass(slots=True)
class Tally:
    """The counters for the summary."""

    #: Time spent in each stage, all visits together, by the path of its branch and its id.
    seconds: dict[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])
    #: Attempts at each stage, likewise.
    attempts: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    is_resumable: bool = False  #: The run failed, and may continue all the same.


class QuietProgress:
    """Counts the events of one run, and says nothing."""

    def __init__(self) -> None:
        self.tally = Tally()
        self._asked: set[str] = set()
        self._asking = threading.Condition()

    def take(self, event: Event) -> None:
        """Count an event, and show it where there is somewhere to."""
        match event:
            case StageStarted():
                place = event.branch, event.name
                self.tally.attempts[place] = self.tally.attempts.get(place, 0) + 1
            case StageEnd() if event.is_commit:
                place = event.branch, event.name
                self.tally.seconds[place] = self.tally.seconds.get(place, 0.0) + event.duration
            case PipelineFailed():
                self.tally.is_resumable = event.is_resumable
            case _:
                pass
        self._show(event)
        if isinstance(event, InterviewStarted):
            with self._asking:
                self._asked.add(event.question_id)
                self._asking.notify_all()

    def wait_until_asked(self, question_id: str) -> None:
        """Block until all that happened before a question is shown, so that its menu is alone."""
        with self._asking:
            self._asking.wait_for(lambda: question_id in self._asked, PATIENCE_SECONDS)

    def say(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        """Write text, where there is somewhere to."""

    def close(self) -> None:
        """Take what moves away."""

    def _show(self, event: Event) -> None:
        """Show an event."""
