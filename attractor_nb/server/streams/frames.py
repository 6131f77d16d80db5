"""Events as server-sent events: each is encoded once, whoever hears it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from attractor_nb.storage.files.strict_json import json_line
from attractor_nb.storage.log.event_lines import event_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.model.events import Event

FIRST_ID: Final = "0.0"
"""The id before the first event."""
END, GAP, FAULT = "end", "gap", "fault"
"""What is said of the stream itself; events of the run have no name, so ``onmessage`` hears them all."""
HEARTBEAT: Final = b": alive\n\n"


def event_frame(event: Event, event_id: str) -> bytes:
    """An event of the run; one that is not in the log has no id, and none is counted for it."""
    data = event_json(event)
    if not event_id:
        return b"data: %b\n\n" % data
    return b"id: %b\ndata: %b\n\n" % (event_id.encode(), data)


def control_frame(name: str, plain: Mapping[str, Any]) -> bytes:
    """Something that is said of the stream: that it ends, or that it was cut off."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), json_line(plain))


def whole_id(given: str) -> str:
    """An event's id with both of its numbers; a plain one is of the first directory.

    >>> whole_id("12"), whole_id("2.7")
    ('0.12', '2.7')
    """
    part, _, number = given.rpartition(".")
    return f"{int(part or 0)}.{int(number)}"
