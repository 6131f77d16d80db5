"""The form of one record of the log: a line of JSON that carries its own checksum.

``{"type":"StageStarted","sequence":4,…,"crc":"5f3a0c11"}``: the checksum is that of the JSON object
without its ``crc`` entry. Pure functions between events and bytes; no file is touched here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from zlib import crc32

from attractor_nb.errors import CheckpointCorrupt
from attractor_nb.model.events import event_from_plain
from attractor_nb.storage.strict_json import JsonProblem, json_line, read_json

if TYPE_CHECKING:
    from attractor_nb.model.events import Event

_SEAL = re.compile(rb',"crc":"([0-9a-f]{8})"\}')
_SEAL_LENGTH = len(',"crc":"00000000"}')
_SECTOR_BYTES = 512
_HOLE = re.compile(rb"\0+")


def encode_event(event: Event) -> bytes:
    """The line of an event."""
    payload = json_line(event.to_plain())
    return b'%b,"crc":"%08x"}\n' % (payload[:-1], crc32(payload))


def is_sealed(line: bytes) -> bool:
    """Whether a line, without its line end, is a whole record with the right checksum."""
    seal = _SEAL.fullmatch(line, len(line) - _SEAL_LENGTH) if len(line) > _SEAL_LENGTH else None
    return seal is not None and crc32(line[:-_SEAL_LENGTH] + b"}") == int(seal[1], 16)


def decode_line(line: bytes) -> Event | None:
    """The event of a line without its line end; None when the line is damaged."""
    if not is_sealed(line):
        return None
    try:
        return event_from_plain(cast("dict[str, Any]", read_json(line[:-_SEAL_LENGTH] + b"}")))
    except (JsonProblem, KeyError, TypeError, ValueError, AttributeError):
        return None


@dataclass(frozen=True, slots=True)
class LogScan:
    """What a stretch of the log holds.

    Attributes:
        events: Its intact events, in order.
        ends: For each event the byte offset after its line.
        sequence: Number of the last one.
        offset: Byte offset after it.
        cut_bytes: Bytes behind it that belong to a record which was never finished.
        is_line_end_missing: The last record is whole, but for its line end.
    """

    events: tuple[Event, ...]
    ends: tuple[int, ...]
    sequence: int
    offset: int
    cut_bytes: int = 0
    is_line_end_missing: bool = False


def scan_lines(data: bytes, *, path: str, offset: int = 0, sequence: int = 0) -> LogScan:
    """Read a stretch of the log.

    A last record that was cut off while it was written is left out and counted; anything else that
    is wrong is damage.

    Args:
        data: The bytes from ``offset`` to the end of the file; zeros at the end are free space.
        path: What to call the file in messages.
        offset: Where the stretch begins in the file.
        sequence: Number of the record before it.

    Raises:
        CheckpointCorrupt: A record is damaged, missing or repeated; the message says how many before
            it are intact.
    """
    events: list[Event] = []
    ends: list[int] = []
    position = 0
    while (end := data.find(b"\n", position)) >= 0:
        event = decode_line(data[position:end])
        if event is None:
            if _is_lost_write(data, position, end, offset):
                break
            raise _damaged(path, sequence, offset + position, "does not match its checksum")
        if event.sequence != sequence + 1:
            what = f"has number {event.sequence} where {sequence + 1} was expected"
            raise _damaged(path, sequence, offset + position, what)
        events.append(event)
        sequence += 1
        position = end + 1
        ends.append(offset + position)
    rest = data[position:].rstrip(b"\0")
    if not rest:
        return LogScan(tuple(events), tuple(ends), sequence, offset + position)
    whole = _SEAL.search(rest)
    if whole and is_sealed(rest[: whole.end()]) and b"\n" not in rest:
        if whole.end() != len(rest):
            raise _damaged(path, sequence, offset + position, "does not end where it should")
        event = decode_line(rest)
        if event is None or event.sequence != sequence + 1:
            raise _damaged(path, sequence, offset + position, "is out of order")
        events.append(event)
        ends.append(offset + position + len(rest))
        return LogScan(tuple(events), tuple(ends), sequence + 1, ends[-1], is_line_end_missing=True)
    return LogScan(tuple(events), tuple(ends), sequence, offset + position, cut_bytes=len(rest))


def _is_lost_write(data: bytes, start: int, end: int, offset: int) -> bool:
    """Whether a bad line is a write that a power loss took away in part, not damage.

    Only what was never flushed can be lost, and it is lost by whole sectors: the line then has zeros
    from its beginning, or the edge of a sector, up to the edge of a sector. What follows it was not
    flushed either, so nothing acknowledged is given up.
    """
    first = offset + start
    return any(
        (hole.start() == 0 or (first + hole.start()) % _SECTOR_BYTES == 0)
        and (first + hole.end()) % _SECTOR_BYTES == 0
        for hole in _HOLE.finditer(data[start:end])
    )


def _damaged(path: str, sequence: int, offset: int, what: str) -> CheckpointCorrupt:
    before = f"records 1 to {sequence} are intact" if sequence else "no record before it is intact"
    return CheckpointCorrupt(
        f"{path}: the record in line {sequence + 1} {what}; {before}",
        hint=f"restore the file; or cut it to its first {offset} bytes and remove checkpoint*.json: "
        "the stages after that point run again",
    )
