"""The form of one record of the log: a line of JSON that carries its own checksum.

``{"type":"StageStarted","sequence":4,…,"crc":"5f3a0c11"}``: the checksum is that of the JSON object
without its ``crc`` entry. After it is the fencing token of the owner who wrote the record, unless
that is the first owner: ``"crc":"5f3a0c11.2"``; the checksum depends on it. Pure functions between events
and bytes; no file is touched here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from zlib import crc32

import msgspec
from msgspec.structs import replace

from attractor_nb.errors import CheckpointCorrupt
from attractor_nb.model.bounded_json import MAX_DEPTH
from attractor_nb.model.events import LOG_FORM, PipelineStarted, StageEnd, UnknownEvent, event_from_plain, read_event
from attractor_nb.model.events.logged_events import LoggedEvents
from attractor_nb.model.record import encode
from attractor_nb.model.redacted import redact_event
from attractor_nb.redaction import may_hold
from attractor_nb.storage.files.strict_json import json_bytes, read_json

if TYPE_CHECKING:
    from attractor_nb.model.events import Event

_SEAL_BEGIN = b',"crc":"'
_FIRST_SEAL = b',"crc":"%08x"}'
_FIRST_SEAL_BYTES = len(_FIRST_SEAL % 0)
_SEAL = re.compile(rb',"crc":"([0-9a-f]{8})(?:\.([1-9][0-9]{0,8}))?"\}')
FIRST_OWNER = 1
_SECTOR_BYTES = 512
_HOLE = re.compile(rb"\0+")


def encode_event(event: Event, token: int = FIRST_OWNER) -> bytes:
    """The line of an event that the owner with that fencing token writes.

    Secrets are taken out of the event as well: what is logged is what is seen.
    """
    payload = event_json(event)
    if may_hold(payload):
        redact_event(event)
        payload = event_json(event)
    if token == FIRST_OWNER:
        return payload[:-1] + _FIRST_SEAL % crc32(payload) + b"\n"
    return b'%b,"crc":"%08x.%d"}\n' % (payload[:-1], crc32(payload, token - FIRST_OWNER), token)


def event_json(event: Event) -> bytes:
    """An event as one line of JSON."""
    try:
        return encode(event) if type(event) is not UnknownEvent else json_bytes(event.to_plain())
    except UnicodeEncodeError:  # a lone surrogate, which only escapes can spell
        return json_bytes(event.to_plain())


def token_of(line: bytes) -> int:
    """The fencing token of a line without its line end; 0 when it is no whole record, or damaged."""
    return _unsealed(line)[0]


def decode_line(line: bytes) -> Event | None:
    """The event of a line without its line end; None when the line is damaged."""
    return read_record(line)[1]


def read_record(line: bytes, owner: int = 0) -> tuple[int, Event | None]:
    """The fencing token and the event of a line without its line end.

    Args:
        line: The line.
        owner: Token of the owner who wrote the record before it. What an earlier one wrote is not believed,
            and not read; 0 believes all.

    Returns:
        The token, 0 when the line is no whole record, or damaged. The event, None when there is none: of
        such a line, of an owner who had lost the run, or of what is no event though its checksum is right.
    """
    token, payload = _unsealed(line)
    if token < owner or not token:
        return token, None
    try:
        return token, event_of(payload)
    except ValueError:
        return token, None


def event_of(payload: bytes) -> Event:
    """The event of a JSON text; of one that says something twice, or too deep, none.

    A text that the encoder gives back byte for byte is what it says. Every other one is read with care: of
    another version, with escapes that only we need, or foreign.
    """
    if payload.count(b"[") + payload.count(b"{") <= MAX_DEPTH:
        try:
            event = read_event(payload)
            if encode(event) == payload:
                return event
        except ValueError:
            pass
    return event_from_plain(read_json(payload))


def _unsealed(line: bytes) -> tuple[int, bytes]:
    """The fencing token of a line and the JSON object that it seals; 0 when the seal is missing or wrong."""
    payload = line[:-_FIRST_SEAL_BYTES] + b"}"
    if line.endswith(_FIRST_SEAL % crc32(payload)):  # most runs have one owner alone
        return FIRST_OWNER, payload
    start = line.rfind(_SEAL_BEGIN)
    seal = _SEAL.fullmatch(line, start) if start > 0 else None
    if seal is None:
        return 0, b""
    checksum, owner = seal.groups()
    token = int(owner) if owner else FIRST_OWNER
    payload = line[:start] + b"}"
    return (token, payload) if crc32(payload, token - FIRST_OWNER) == int(checksum, 16) else (0, b"")


class LogScan(msgspec.Struct, frozen=True):
    """The events in a stretch of the log, and the position after them."""

    events: LoggedEvents  #: Its intact events, in order.
    ends: tuple[int, ...]  #: For each event the byte offset after its line.
    sequence: int  #: Number of the last one.
    offset: int  #: Byte offset after it.
    cut_bytes: int = 0  #: Bytes behind it that belong to a record which was never finished.
    is_line_end_missing: bool = False  #: The last record is whole, but for its line end.
    token: int = 0  #: Fencing token of the owner who wrote the last one; 0 when there is none.
    rejected: int = 0  #: Number of records that were left out, because an owner wrote them after it had lost the run.


def scan_lines(data: bytes, *, path: str, offset: int = 0, sequence: int = 0) -> LogScan:
    """Read a stretch of the log.

    A last record that was cut off while it was written is left out and counted, and so is a record of an
    owner before the one who wrote the record before it; anything else that is wrong is damage.

    Args:
        data: The bytes from ``offset`` to the end of the file; zeros at the end are free space.
        path: What to call the file in messages.
        offset: Where the stretch begins in the file.
        sequence: Number of the record before it.
    """
    events: list[Event] = []
    ends: list[int] = []
    position = owner = rejected = 0
    # Line by line, each judged in this order: written by an owner who had lost the run (left out: it was never
    # acknowledged to anybody); no record (the end of what was written before a power loss, or damage); a number that
    # does not follow (damage). Only a record that passes all three is believed.
    while (end := data.find(b"\n", position)) >= 0:
        line = data[position:end]
        token, event = read_record(line, owner)
        if 0 < token < owner:
            rejected += 1
            position = end + 1
            continue
        if event is None:
            if _is_lost_write(data, position, end, offset) and not _is_flushed_behind(data, end + 1):
                break
            raise _damaged(path, sequence, offset + position, _problem_of(line), _form_of(events))
        if event.sequence != sequence + 1:
            what = f"has number {event.sequence} where {sequence + 1} was expected"
            raise _damaged(path, sequence, offset + position, what)
        events.append(event)
        owner = token
        sequence += 1
        position = end + 1
        ends.append(offset + position)
    rest = data[position:].rstrip(b"\0")
    found = LogScan(LoggedEvents(events), tuple(ends), sequence, offset + position, token=owner, rejected=rejected)
    return _with_what_has_no_line_end(found, rest, path) if rest else found


def _with_what_has_no_line_end(found: LogScan, rest: bytes, path: str) -> LogScan:
    """The scan of a stretch, completed by the rest after its last line end.

    The rest counts when its seal is right: it was written whole, and only the last byte of the write is missing.
    Otherwise the record was never finished, and was never acknowledged.
    """
    whole = _SEAL.search(rest)
    if whole and b"\n" not in rest and (token := token_of(rest[: whole.end()])) >= max(found.token, FIRST_OWNER):
        if whole.end() != len(rest):
            raise _damaged(path, found.sequence, found.offset, "does not end where it should")
        event = decode_line(rest)
        if event is None or event.sequence != found.sequence + 1:
            raise _damaged(path, found.sequence, found.offset, "is out of order")
        end = found.offset + len(rest)
        return replace(
            found,
            events=LoggedEvents((*found.events, event)),
            ends=(*found.ends, end),
            sequence=event.sequence,
            offset=end,
            is_line_end_missing=True,
            token=token,
        )
    return replace(found, cut_bytes=len(rest))


def _is_lost_write(data: bytes, start: int, end: int, offset: int) -> bool:
    """True if a bad line is a write that a power loss took away in part, not damage.

    Only what was never flushed can be lost, and it is lost by whole sectors: the line then has zeros
    from its beginning, or the edge of a sector, up to the edge of a sector. What follows it was not
    flushed either, so nothing acknowledged is given up.
    """
    first = offset + start
    return any(
        (hole.start() == 0 or (first + hole.start()) % _SECTOR_BYTES == 0) and (first + hole.end()) % _SECTOR_BYTES == 0
        for hole in _HOLE.finditer(data[start:end])
    )


def _is_flushed_behind(data: bytes, start: int) -> bool:
    """True if what follows shows that a bad line was flushed: then it is damage, and no lost write.

    A stage's commit is flushed before anything else is written, so a commit with a record behind it
    proves all before it.
    """
    found = [event for line in data[start:].split(b"\n") if (event := decode_line(line)) is not None]
    return any(isinstance(event, StageEnd) and event.is_commit for event in found[:-1])


def _problem_of(line: bytes) -> str:
    """The reason a line is not a record, in words that complete "the record …"."""
    token, payload = _unsealed(line)
    try:
        if token:
            event_of(payload)
    except ValueError as problem:
        return str(problem)
    return "does not match its checksum"


def _form_of(events: list[Event]) -> int:
    """The form of the log that the first of its events names; ours, where none does."""
    return events[0].schema_version if events and isinstance(events[0], PipelineStarted) else LOG_FORM


def _damaged(path: str, sequence: int, offset: int, what: str, form: int = LOG_FORM) -> CheckpointCorrupt:
    before = f"records 1 to {sequence} are intact" if sequence else "no record before it is intact"
    if form > LOG_FORM:
        return CheckpointCorrupt(
            f"{path}: a newer version of attractor_nb wrote the log (form {form}; this one reads form "
            f"{LOG_FORM}), and the record in line {sequence + 1} (byte {offset}) {what}",
            hint="update attractor_nb, and read the run again",
        )
    return CheckpointCorrupt(
        f"{path}: the record in line {sequence + 1} (byte {offset}) {what}; {before}",
        hint="restore the file; attractor-nb doctor RUN_DIR says what can be saved",
    )
