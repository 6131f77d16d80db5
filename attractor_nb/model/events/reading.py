"""All events as one union, and the way back from a record of the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Union

import msgspec

from attractor_nb.model.events import pauses, pipelines, stages
from attractor_nb.model.events.event import Event, RunEvent
from attractor_nb.model.events.stages import StageSignal
from attractor_nb.model.record import converted, decoder_of, in_words, no_values

MODULES: Final = (pauses, pipelines, stages)
"""The modules that define events; an event is defined there and registered nowhere else."""


class ChildEvent(StageSignal, kw_only=True):
    """An event of a child run, for observers of the parent; it is recorded in the child's own log."""

    is_durable: ClassVar[bool] = False
    child_id: str = ""  #: Run id of the child.
    event: AnyEvent  #: The event there; for a child's child a ``ChildEvent`` again.

    @property
    def description(self) -> str:
        """One line for users."""
        return f"{self.name} > {self.event.description}"


def _kinds(kind: type[Event]) -> Iterator[type[Event]]:
    """The events that a run announces: those of which there are no more special ones."""
    below = kind.__subclasses__()
    for each in below:
        yield from _kinds(each)
    if not below:
        yield kind


EVENT_TYPES: Final[Mapping[str, type[Event]]] = {kind.__name__: kind for kind in _kinds(Event)}
"""All events by name."""

if TYPE_CHECKING:
    AnyEvent = Event
else:
    AnyEvent = Union[tuple(EVENT_TYPES.values())]  # noqa: UP007 - it is made of a list


class UnknownEvent(RunEvent, kw_only=True):
    """An event that a newer version wrote: kept as it is, and believed in no part."""

    values: Mapping[str, Any] = msgspec.field(default_factory=no_values)  #: All that it says.

    @property
    def type(self) -> str:
        """The name by which that version knows it."""
        return str(self.values["type"])

    @property
    def description(self) -> str:
        """One line for users."""
        return f"{self.type}: of a newer version of attractor_nb, and not known to this one"

    def to_plain(self) -> dict[str, Any]:
        """The values of the event as JSON."""
        own = {"sequence": self.sequence, "time": self.time, "run_id": self.run_id}
        return {**self.values, **own}


@cache
def _decoder() -> msgspec.json.Decoder[Event]:
    return decoder_of(AnyEvent)  # a run that begins reads no event, and to make this takes a while


def read_event(text: bytes) -> Event:
    """The event of a JSON text."""
    return _decoder().decode(text)


def event_from_plain(plain: Mapping[str, Any]) -> Event:
    """The inverse of ``Event.to_plain``; what an event of that type does not have is left out."""
    try:
        if isinstance(plain.get("type"), str) and plain["type"] not in EVENT_TYPES:
            return UnknownEvent.from_plain({**plain, "type": "UnknownEvent", "values": dict(plain)})
        return converted(plain, AnyEvent)
    except msgspec.ValidationError as error:
        raise in_words(error) from None
