"""The events of a log, which many ask for a few kinds of: all of them are gone through once."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from attractor_nb.model.events.event import Event

if TYPE_CHECKING:
    from collections.abc import Iterable

EventT = TypeVar("EventT", bound=Event)


class LoggedEvents(tuple[Event, ...]):  # noqa: SLOT001 - their positions are in its dict
    """Events in order, and the positions of those of each kind."""

    @classmethod
    def of(cls, events: Iterable[Event]) -> LoggedEvents:
        """These events; the very same, where they are logged ones already."""
        return events if isinstance(events, LoggedEvents) else cls(events)

    @cached_property
    def _places(self) -> dict[type[Event], list[int]]:
        places: dict[type[Event], list[int]] = {}
        for place, event in enumerate(self):
            found = places.get(type(event))
            if found is None:
                places[type(event)] = [place]
            else:
                found.append(place)
        return places

    def select(self, *kinds: type[EventT]) -> list[EventT]:
        """Those of some kinds, more special ones included, in order."""
        found = [places for kind, places in self._places.items() if issubclass(kind, kinds)]
        if not found:
            return []
        places = found[0] if len(found) == 1 else sorted(place for each in found for place in each)
        return [self[place] for place in places]  # type: ignore[misc]
