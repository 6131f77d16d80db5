"""What goes on in a run at this moment: the stages under way, side by side, and what each one writes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from attractor_nb.model.events import StageOutput, StageStarted

TAIL_CHARS: Final = 2_000
KEPT_CHARS: Final = 20_000


@dataclass(slots=True)
class GoingStage:
    """A stage under way.

    Attributes:
        event: Its latest attempt.
        since: When that began, by the monotonic clock.
        tail: The end of what it writes.
        text: What it answered.
    """

    event: StageStarted
    since: float
    tail: str = ""
    text: str = ""


class GoingStages:
    """The stages under way: one in each branch, and one outside of all."""

    def __init__(self) -> None:
        self._of: dict[str, GoingStage] = {}
        self._text = ""

    def begin(self, event: StageStarted) -> None:
        """An attempt begins."""
        self._of[event.branch] = GoingStage(event, time.monotonic())

    def hear(self, event: StageOutput) -> None:
        """Take in what a stage writes."""
        if stage := self._of.get(event.branch):
            stage.tail = (stage.tail + event.text)[-TAIL_CHARS:]
            if event.channel == "response":
                stage.text = (stage.text + event.text)[-KEPT_CHARS:]

    def end(self, branch: str) -> None:
        """The stage in a branch, or outside of all, has ended; what it answered is the latest response."""
        stage = self._of.pop(branch, None)
        if stage is not None and stage.event.handler_type == "codergen":
            self._text = stage.text

    def end_within(self, path: str) -> None:
        """A branch is over, and whatever is within it."""
        for branch in [name for name in self._of if name == path or name.startswith(f"{path}/")]:
            self.end(branch)

    @property
    def stages(self) -> tuple[GoingStage, ...]:
        """Those under way, in the order in which they began; at any moment they may have become others."""
        return tuple(self._of.values())

    @property
    def latest_text(self) -> str:
        """The response of the model stage that ended last."""
        return self._text
