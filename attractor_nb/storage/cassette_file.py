"""The file of a cassette: recorded calls as JSON that users review (docs/cassettes.md).

Entries are in the order of their stages and visits, and texts of several lines as lists of lines, so that
a changed answer is a small change of the file. It is replaced whole or not at all, and what is not a cassette
is never written over. Secrets are taken out before anything is written.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from msgspec.structs import replace

from attractor_nb.errors import OptionError, StorageError
from attractor_nb.model.calls.call_content import COMMAND_CALL, MODEL_CALL, QUESTION, CallInputs, CallSite, RecordedCall
from attractor_nb.redaction import redacted, redacted_value
from attractor_nb.storage.files.atomic import read_plain_file, write_whole
from attractor_nb.storage.files.disk import Disk, storage_error
from attractor_nb.storage.files.strict_json import JsonProblem, read_json
from attractor_nb.storage.run_directory import make_directory

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

FORMAT: Final = "attractor_cassette"
VERSION: Final = 1
MAX_BYTES: Final = 64 * 1024 * 1024
_LINES: Final = "$lines"
_VALUE: Final = "$value"
_KINDS: Final = (MODEL_CALL, COMMAND_CALL, QUESTION)


class Cassette(msgspec.Struct, frozen=True):
    """The content of a cassette file."""

    backend: str = ""  #: The backend's name as it was recorded; of a user's own a description that ends in "(own)".
    calls: tuple[RecordedCall, ...] = ()  #: The recorded calls, in the order of stages and visits.


def read_cassette(path: Path) -> Cassette | None:
    """The cassette of a file; None when there is no file."""
    try:
        data = read_plain_file(path, max_bytes=MAX_BYTES)
    except StorageError as error:
        raise OptionError(error.message, hint=error.hint) from None
    if data is None:
        return None
    try:
        plain = read_json(data, max_bytes=MAX_BYTES)
    except JsonProblem as problem:
        raise _unreadable(path, f"it {problem}") from None
    if not isinstance(plain, dict) or FORMAT not in plain:
        raise _unreadable(path, f'it has no "{FORMAT}"')
    entries = cast("dict[str, Any]", plain)
    version = entries[FORMAT]
    if type(version) is not int or version > VERSION:
        raise OptionError(
            f"{path} is a cassette of version {version!r:.40}, and this program reads version {VERSION}",
            hint="update attractor_nb, or record again under another name",
        )
    backend, calls = entries.get("backend", ""), entries.get("calls")
    if not isinstance(backend, str) or not isinstance(calls, list):
        raise _unreadable(path, 'it has no list of "calls"')
    read = [_call(path, number, entry) for number, entry in enumerate(cast("list[Any]", calls), 1)]
    return Cassette(backend, tuple(read))


def write_cassette(disk: Disk, path: Path, cassette: Cassette) -> None:
    """Replace a cassette by another one; what is not a cassette stays as it is."""
    make_directory(disk, path.absolute().parent, is_synced=False)
    with _locked(disk, path) as parent:
        read_cassette(path)
        _write(disk, path, parent, cassette)


def add_to_cassette(disk: Disk, path: Path, added: Cassette) -> None:
    """Add calls to a cassette, which others may have added to meanwhile; raises as ``write_cassette``."""
    make_directory(disk, path.absolute().parent, is_synced=False)
    with _locked(disk, path) as parent:
        there = read_cassette(path) or Cassette(added.backend)
        _write(disk, path, parent, replace(there, calls=(*there.calls, *added.calls)))


@contextlib.contextmanager
def _locked(disk: Disk, path: Path) -> Generator[int]:
    """The open directory of a file, locked against other writers of cassettes."""
    try:
        parent = disk.open_directory(path.absolute().parent)
    except OSError as error:
        raise storage_error(error, "open", path.parent) from error
    import fcntl  # noqa: PLC0415 - Windows has none, and opens no directory

    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(parent, fcntl.LOCK_EX)
        yield parent
    finally:
        disk.close(parent)


def _write(disk: Disk, path: Path, parent: int, cassette: Cassette) -> None:
    data = cassette_bytes(cassette)
    if len(data) > MAX_BYTES:
        raise StorageError(
            f"the cassette {path} would have {len(data)} bytes, more than the {MAX_BYTES} allowed",
            path=str(path),
            hint="record a part of the pipeline, or use several cassettes",
        )
    write_whole(disk, parent, path.name, data, directory=path.parent, is_synced=True)


def cassette_bytes(cassette: Cassette) -> bytes:
    """The content of a cassette's file, without secrets."""
    calls = sorted(cassette.calls, key=lambda call: (*call.place.stage, *call.place.turn))
    plain: dict[str, Any] = {FORMAT: VERSION}
    if cassette.backend:
        plain["backend"] = redacted(cassette.backend)
    plain["calls"] = [_plain_call(clean_call(call)) for call in calls]
    text = json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        return text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which only an escape can spell
        return (json.dumps(plain, indent=2, allow_nan=False) + "\n").encode()


def clean_call(call: RecordedCall) -> RecordedCall:
    """A call without secrets. Its digest is that of the clean inputs: other keys make no other call."""
    inputs, answer = clean_inputs(call.inputs), redacted_value(call.answer)
    is_clean = inputs is call.inputs and answer is call.answer
    return call if is_clean else RecordedCall(call.place, inputs, answer)


def clean_inputs(inputs: CallInputs) -> CallInputs:
    """The inputs of a call, without secrets."""
    values = redacted_value(inputs.values)
    return inputs if values is inputs.values else CallInputs(inputs.kind, inputs.node_id, values)


def _plain_call(call: RecordedCall) -> dict[str, Any]:
    place = call.place
    plain: dict[str, Any] = {"call": call.inputs.kind, "node": place.node_id}
    if place.branch:
        plain["branch"] = place.branch
    if place.child_of:
        plain["child_of"] = place.child_of
    plain["visit"] = place.visit
    if place.attempt != 1:
        plain["attempt"] = place.attempt
    plain["digest"] = call.digest
    plain["inputs"] = {name: _written(value) for name, value in call.inputs.values.items()}
    plain["answer"] = {name: _written(value) for name, value in call.answer.items()}
    return plain


def _call(path: Path, number: int, entry: Any) -> RecordedCall:
    try:
        kind, node_id = entry["call"], entry["node"]
        place = CallSite(
            _typed(node_id, str),
            _typed(entry.get("visit", 1), int),
            _typed(entry.get("attempt", 1), int),
            _typed(entry.get("branch", ""), str),
            _typed(entry.get("child_of", ""), str),
        )
        values = {name: _read(value) for name, value in _typed(entry["inputs"], dict).items()}
        answer = {name: _read(value) for name, value in _typed(entry["answer"], dict).items()}
        digest = _typed(entry["digest"], str)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise _unreadable(path, f"entry {number} is incomplete") from None
    if kind not in _KINDS:
        raise _unreadable(path, f"entry {number} is a call of kind {kind!r:.40}")
    call = RecordedCall(place, CallInputs(kind, place.node_id, values), answer)
    if call.digest != digest:
        raise _unreadable(path, f"the inputs of entry {number} ({call}) are not those of its digest")
    return call


def _typed(value: Any, kind: type[Any]) -> Any:
    if type(value) is not kind:
        raise TypeError
    return value


def _written(value: Any) -> Any:
    """A JSON value with texts of several lines as lists of lines."""
    if isinstance(value, str):
        return {_LINES: value.split("\n")} if "\n" in value else value
    if isinstance(value, dict):
        plain = {key: _written(item) for key, item in cast("dict[str, Any]", value).items()}
        return {_VALUE: plain} if len(plain) == 1 and next(iter(plain)).startswith("$") else plain
    if isinstance(value, list | tuple):
        return [_written(item) for item in cast("list[Any]", value)]
    return value


def _read(value: Any) -> Any:
    """The inverse of ``_written``."""
    if isinstance(value, list):
        return [_read(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    entries = cast("dict[str, Any]", value)
    if len(entries) == 1 and next(iter(entries)).startswith("$"):
        if _LINES in entries:
            return "\n".join(entries[_LINES])
        inner = _typed(entries.get(_VALUE), dict)
        return {key: _read(item) for key, item in inner.items()}
    return {key: _read(item) for key, item in entries.items()}


def _unreadable(path: Path, why: str) -> OptionError:
    return OptionError(
        f"{path} is not a cassette that can be read: {why}",
        hint="restore it, or remove it and record again; it was left as it is",
    )
