"""The tape of a run: recorded calls, replayed calls, new calls, and when they are written."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import defaultdict
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.decisions.replays.recordings import find_call, miss_report, shortened, stage_names
from attractor_nb.errors import CassetteMiss, OptionError, StorageError
from attractor_nb.model.calls.call_content import MODEL_CALL
from attractor_nb.model.calls.recorded_call import LEFT_OUT, CallPlace, RecordedCall
from attractor_nb.model.outcome import Usage
from attractor_nb.storage.cassette_file import (
    Cassette,
    add_to_cassette,
    clean_call,
    clean_inputs,
    read_cassette,
    write_cassette,
)
from attractor_nb.storage.files.strict_json import json_bytes

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

    from attractor_nb.model.calls.call_content import CallInputs
    from attractor_nb.stage import StageScope
    from attractor_nb.storage.files.disk import Disk

RECORD: Final = "record"
REPLAY: Final = "replay"
AUTO: Final = "auto"
MODES: Final = (RECORD, REPLAY, AUTO)
KEEP_SECONDS: Final = 1.0
"""In ``auto`` mode new calls are written at most so often; at the end of the run in any case."""
MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024
_HINT: Final = 'record again: cassette_mode="auto" calls what is not there, cassette_mode="record" records all anew'

_IS_INSIDE: ContextVar[bool] = ContextVar("attractor_recorded_call", default=False)


@dataclass(frozen=True, slots=True)
class CassetteReport:
    """What a run had of its cassette."""

    path: Path
    mode: str  #: ``record``, ``replay`` or ``auto``.
    replayed: int = 0  #: How many calls were answered from it.
    recorded: int = 0  #: How many calls were made and recorded.
    unused: tuple[RecordedCall, ...] = ()  #: The recorded calls that were not made.
    #: What the replayed calls had consumed when they were recorded. Nothing of it was spent now.
    usage: Usage = field(default_factory=Usage)
    misses: tuple[str, ...] = ()  #: The calls that a replay had no answer for.

    def __str__(self) -> str:
        parts = [f"{self.replayed} calls from {self.path.name}"]
        if self.recorded:
            parts.append(f"{self.recorded} recorded")
        if self.unused:
            parts.append(f"{len(self.unused)} unused")
        return ", ".join(parts)


class _SharedTape:
    """The state that a run shares with its children."""

    def __init__(self, path: Path, mode: str, cassette: Cassette, disk: Disk) -> None:
        self.path = path
        self.mode = mode
        self.backend = cassette.backend
        self.disk = disk
        self.lock = threading.Lock()
        self.calls: dict[tuple[str, str, str], list[RecordedCall]] = defaultdict(list)
        if mode != RECORD:
            for call in cassette.calls:
                self.calls[call.place.stage].append(call)
        self.used: dict[tuple[str, str, str], set[int]] = defaultdict(set)
        self.new: list[RecordedCall] = []
        self.kept_at = time.monotonic()
        self.replayed = self.recorded = 0
        self.usage = Usage()
        self.misses: list[str] = []


class Tape:
    """What a run records on and replays from. Safe to use from several threads.

    Attributes:
        child_of: Path of the stage whose child run, or of the row of a map, this is the tape of, or empty.
    """

    def __init__(self, shared: _SharedTape, child_of: str = "") -> None:
        self._shared = shared
        self.child_of = child_of

    @classmethod
    def of_file(cls, path: Path, mode: str, disk: Disk) -> Tape:
        """A tape of a cassette's file."""
        cassette = read_cassette(path)
        if cassette is None and mode == REPLAY:
            raise OptionError(
                f"there is no cassette {path} to replay", hint='record it: cassette_mode="record" or "auto"'
            )
        return cls(_SharedTape(path, mode, cassette or Cassette(), disk))

    def inside(self, path: str) -> Tape:
        """The tape of a child run of a stage, or of a row of a map."""
        return Tape(self._shared, f"{self.child_of}/{path}" if self.child_of else path)

    @property
    def path(self) -> Path:
        """The cassette's file."""
        return self._shared.path

    @property
    def mode(self) -> str:
        """``record``, ``replay`` or ``auto``."""
        return self._shared.mode

    @property
    def backend(self) -> str:
        """The backend that was recorded: its name, or a description that ends in "(own)"; or empty."""
        return self._shared.backend

    def name_backend(self, name: str) -> None:
        """Note which backend is recorded."""
        self._shared.backend = name

    @property
    def is_replay(self) -> bool:
        """Whether nothing may be called."""
        return self._shared.mode == REPLAY

    def place_of(self, scope: StageScope) -> CallPlace:
        """Where a stage makes its calls."""
        return CallPlace(scope.node_id, scope.visit, scope.attempt, scope.branch, self.child_of)

    def find(self, place: CallPlace, inputs: CallInputs, *, is_described: bool = True) -> Mapping[str, Any] | None:
        """The recorded answer to a call, which is then given; None when the call has to be made."""
        shared, inputs = self._shared, clean_inputs(shortened(inputs))
        with shared.lock:
            calls, used = shared.calls[place.stage], shared.used[place.stage]
            found = find_call(calls, used, place, inputs, is_described=is_described)
            if found is None or (calls[found].left_out and not self.is_replay):
                if self.is_replay:
                    raise self._miss(place, inputs, is_described=is_described)
                return None
            used.add(found)
            call = calls[found]
            if call.left_out:
                self._note_miss(call)
                raise CassetteMiss(
                    f"the cassette {shared.path} has no answer for {call}: {call.left_out}",
                    node_id=place.node_id,
                    hint="make it smaller, or record without this stage",
                )
            shared.replayed += 1
            shared.usage += usage_of(call.answer)
        return call.answer

    def _note_miss(self, call: object) -> None:
        self._shared.misses.append(str(call))

    def _miss(self, place: CallPlace, inputs: CallInputs, *, is_described: bool) -> CassetteMiss:
        shared = self._shared
        calls, used = shared.calls[place.stage], shared.used[place.stage]
        stages = stage_names({stage: found for stage, found in shared.calls.items() if found})
        why, names = miss_report(
            calls, used, place, inputs, stages, is_described=is_described or inputs.kind != MODEL_CALL
        )
        call = RecordedCall(place, inputs, {})
        self._note_miss(call)
        return CassetteMiss(
            f"the cassette {shared.path} has no answer for {call}: {why}",
            node_id=place.node_id,
            changed=names,
            hint=_HINT,
        )

    def add(self, place: CallPlace, inputs: CallInputs, answer: Mapping[str, Any]) -> str:
        """Record a call that was made; why its answer is not on record, or empty.

        A file that cannot be written now is told of at the end: the answer is there and was paid for.
        """
        shared = self._shared
        left_out = str(answer.get(LEFT_OUT, ""))
        size = len(json_bytes(answer))
        if size > MAX_ANSWER_BYTES:
            left_out = f"its answer has {size} bytes, more than the {MAX_ANSWER_BYTES} that a cassette takes"
            answer = {LEFT_OUT: left_out}
        call = clean_call(RecordedCall(place, shortened(inputs), answer))
        with shared.lock:
            calls = shared.calls[place.stage]
            if left_out and any(known.left_out and known.digest == call.digest for known in calls):
                return left_out
            shared.used[place.stage].add(len(calls))
            calls.append(call)
            shared.new.append(call)
            shared.recorded += 1
            if shared.mode == AUTO and time.monotonic() - shared.kept_at >= KEEP_SECONDS:
                shared.kept_at = time.monotonic()
                with contextlib.suppress(OptionError, StorageError):
                    self._keep()
        return left_out

    def _keep(self) -> None:
        """Add new calls to the file; the caller holds the lock."""
        shared = self._shared
        if shared.new:
            add_to_cassette(shared.disk, shared.path, Cassette(shared.backend, tuple(shared.new)))
            shared.new.clear()

    def end(self, *, is_whole: bool) -> CassetteReport:
        """Write what is to be written, and say what the run had of the cassette.

        Args:
            is_whole: The run came to its end. A recording that was cut off does not replace a file.
        """
        shared = self._shared
        with shared.lock:
            if shared.mode == AUTO:
                self._keep()
            elif shared.mode == RECORD and (is_whole or read_cassette(shared.path) is None):
                write_cassette(shared.disk, shared.path, Cassette(shared.backend, tuple(shared.new)))
            unused = [
                call
                for stage, calls in shared.calls.items()
                for position, call in enumerate(calls)
                if position not in shared.used[stage]
            ]
            return CassetteReport(
                path=shared.path,
                mode=shared.mode,
                replayed=shared.replayed,
                recorded=shared.recorded,
                unused=tuple(unused),
                usage=shared.usage,
                misses=tuple(shared.misses),
            )


def usage_of(answer: Mapping[str, Any]) -> Usage:
    """What a recorded call had consumed."""
    holder: Mapping[str, Any] = answer.get("outcome") or answer.get("error") or answer
    plain: Mapping[str, Any] | None = holder.get("usage")
    return Usage.from_plain(plain) if plain else Usage()


def is_inside() -> bool:
    """Whether this task makes a recorded call."""
    return _IS_INSIDE.get()


@contextlib.contextmanager
def inside() -> Generator[None]:
    """What is called here is part of a recorded call."""
    token = _IS_INSIDE.set(True)
    try:
        yield
    finally:
        _IS_INSIDE.reset(token)
