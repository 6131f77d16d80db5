"""The base of all events."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from attractor_nb.model.record import Count, OpenRecord, always


class Event(OpenRecord, kw_only=True, tag_field="type", tag=True):
    """The base of all events.

    Attributes:
        branch: Path of the branch in which it happened (``model.branch``); empty outside of fan-outs.
    """

    is_durable: ClassVar[bool] = True
    sequence: Count = always(0)  #: Number in the run's log.
    time: float = always(0.0)  #: When it was announced, in seconds since 1970 (UTC).
    run_id: str = ""  #: The run it belongs to.
    if TYPE_CHECKING:  # a field of all kinds, but where it is in the log is another place for attempts
        branch: str = ""

    @property
    def type(self) -> str:
        """The event's name as in spec 9.6."""
        return type(self).__name__

    @property
    def description(self) -> str:
        """One line for users."""
        return self.type

    @property
    def node_id(self) -> str:
        """The node concerned, or empty."""
        return ""


class RunEvent(Event, kw_only=True):
    """An event that is of no stage."""

    branch: str = ""


EventObserver = Callable[[Event], None]
