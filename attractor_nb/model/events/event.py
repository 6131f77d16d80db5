"""What all events have, and their form as JSON values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar


@dataclass(slots=True, kw_only=True)
class Event:
    """What all events have.

    Attributes:
        sequence: Number in the run's log.
        time: When it was announced, in seconds since 1970 (UTC).
        run_id: The run it belongs to.
        branch: Path of the branch in which it happened (``model.branch``); empty outside of fan-outs.
    """

    is_durable: ClassVar[bool] = True
    sequence: int = 0
    time: float = 0.0
    run_id: str = ""
    branch: str = ""

    @property
    def type(self) -> str:
        """The event's name as in spec 9.6."""
        return type(self).__name__

    @property
    def description(self) -> str:
        """One line for people."""
        return self.type

    @property
    def node_id(self) -> str:
        """The node concerned, or empty."""
        return ""

    def to_plain(self) -> dict[str, Any]:
        """JSON values: ``type`` first, then the fields; empty ones are left out."""
        plain: dict[str, Any] = {"type": type(self).__name__}
        for name in _FIELDS.get(type(self)) or field_names(type(self)):
            value = getattr(self, name)
            if value or (value is not None and type(value) not in _EMPTY_LEFT_OUT):
                plain[name] = value
        return plain


_FIELDS: dict[type[Event], tuple[str, ...]] = {}
_EMPTY_LEFT_OUT = frozenset({str, tuple, dict, bool})

EventObserver = Callable[[Event], None]


def field_names(kind: type[Event]) -> tuple[str, ...]:
    """The fields of a kind of event, in their order; asked once of each kind."""
    if kind not in _FIELDS:
        _FIELDS[kind] = tuple(entry.name for entry in fields(kind))
    return _FIELDS[kind]
