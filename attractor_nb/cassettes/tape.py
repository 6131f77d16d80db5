"""The tape of a run: recorded calls, replayed calls, new calls, and when they are written."""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections import defaultdict
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.decisions.replays.cache_keys import RunPaths
from attractor_nb.decisions.replays.recorded_answers import answer_of, plain_answer, question_inputs
from attractor_nb.decisions.replays.recordings import find_call, miss_report, shortened, stage_names
from attractor_nb.decisions.retries import outcome_of_exception
from attractor_nb.errors import (
    CassetteMiss,
    OptionError,
    RetryableError,
    RunError,
    StageError,
    StorageError,
    TerminalError,
    WorkerLost,
)
from attractor_nb.maybe_async import call
from attractor_nb.model.calls.call_content import LEFT_OUT, MODEL_CALL, CallInputs, CallSite, RecordedCall
from attractor_nb.model.outcome import StageStatus, Usage
from attractor_nb.model.redacted import redacted_answer
from attractor_nb.stage import StageScope, current_stage
from attractor_nb.storage.cassette_file import (
    Cassette,
    add_to_cassette,
    clean_call,
    clean_inputs,
    read_cassette,
    write_cassette,
)
from attractor_nb.storage.files.strict_json import json_bytes
from attractor_nb.storage.run_directory import first_directory

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from pathlib import Path

    from attractor_nb.model.question import Answer, Question
    from attractor_nb.protocols import Interviewer
    from attractor_nb.storage.files.disk import Disk


RECORD: Final = "record"
REPLAY: Final = "replay"
AUTO: Final = "auto"
MODES: Final = (RECORD, REPLAY, AUTO)
KEEP_SECONDS: Final = 1.0
"""In ``auto`` mode new calls are written at most so often; at the end of the run in any case."""
MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024
_HINT: Final = 'record again: cassette_mode="auto" makes the missing calls, cassette_mode="record" makes all again'

_IS_INSIDE: ContextVar[bool] = ContextVar("attractor_recorded_call", default=False)


@dataclass(frozen=True, slots=True)
class CassetteReport:
    """The use that a run made of its cassette: calls replayed, recorded and unused."""

    path: Path
    mode: str  #: ``record``, ``replay`` or ``auto``.
    replayed: int = 0  #: Number of calls that were answered from it.
    recorded: int = 0  #: Number of calls that were made and recorded.
    unused: tuple[RecordedCall, ...] = ()  #: The recorded calls that were not made.
    #: Usage of the replayed calls when they were recorded. Nothing of it was spent now.
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
    """The tape that a run records on and replays from. Safe to use from several threads.

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
        """True if nothing may be called."""
        return self._shared.mode == REPLAY

    def place_of(self, scope: StageScope) -> CallSite:
        """The call site of a stage."""
        return CallSite(scope.node_id, scope.visit, scope.attempt, scope.branch, self.child_of)

    def find(self, place: CallSite, inputs: CallInputs, *, is_described: bool = True) -> Mapping[str, Any] | None:
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

    def _miss(self, place: CallSite, inputs: CallInputs, *, is_described: bool) -> CassetteMiss:
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

    def add(self, place: CallSite, inputs: CallInputs, answer: Mapping[str, Any]) -> str:
        """Record a call that was made; why its answer is not on record, or empty.

        A file that cannot be written now is reported at the end: the answer is there and was paid for.
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
            is_whole: The run has ended. A recording that was cut off does not replace a file.
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
    """The usage of a recorded call."""
    holder: Mapping[str, Any] = answer.get("outcome") or answer.get("error") or answer
    plain: Mapping[str, Any] | None = holder.get("usage")
    return Usage.from_plain(plain) if plain else Usage()


def is_inside() -> bool:
    """True if this task makes a recorded call."""
    return _IS_INSIDE.get()


@contextlib.contextmanager
def inside() -> Generator[None]:
    """Mark all calls within as part of a recorded call."""
    token = _IS_INSIDE.set(True)
    try:
        yield
    finally:
        _IS_INSIDE.reset(token)


# The form of a call on a cassette: placeholders for its run's id and directory, a failure's class.

_OPENING: Final = "{{attractor:"
_TEXT, _RUN, _STAGES, _DIRECTORY = (f"{_OPENING}{word}}}}}" for word in ("text", "run", "run-dir", "root-dir"))
_ANY: Final = re.compile(re.escape(_OPENING) + r"(?:text|run|run-dir|root-dir)\}\}")

ERROR: Final = "error"
_RETRYABLE: Final = "retryable"
_TERMINAL: Final = "terminal"
_FAILED: Final = "failed"


def place_of(scope: StageScope) -> RunPaths:
    """The parts of a stage's texts that differ from run to run: the run's id and directories."""
    return RunPaths(scope.run_id, tuple(_directories(scope)))


def _directories(scope: StageScope) -> dict[str, str]:
    """The directories of a run as texts, and the mark of each."""
    found: dict[str, str] = {}
    for directory, mark in ((scope.logs_root, _STAGES), (first_directory(scope.logs_root.absolute()), _DIRECTORY)):
        spellings = [str(directory.absolute()), os.path.realpath(directory)]
        if os.sep in str(directory):  # a single word may be in any text
            spellings.append(str(directory))
        for spelling in spellings:
            found.setdefault(spelling, mark)
    return found


@dataclass(frozen=True, slots=True)
class Placeholders:
    """Puts marks into texts, and takes them out again."""

    given: Mapping[str, str]
    local: Mapping[str, str]

    @classmethod
    def of(cls, scope: StageScope) -> Placeholders:
        """Those of a stage's run."""
        directories = _directories(scope)
        texts = dict(sorted(directories.items(), key=lambda pair: -len(pair[0])))
        if scope.run_id:
            texts[scope.run_id] = _RUN
        local = {
            _TEXT: _OPENING,
            _RUN: scope.run_id,
            _STAGES: str(scope.logs_root.absolute()),
            _DIRECTORY: str(first_directory(scope.logs_root.absolute())),
        }
        return cls(texts, local)

    def marked(self, value: Any) -> Any:
        """Return a JSON value with placeholders, as it is recorded."""
        if isinstance(value, str):
            text = value.replace(_OPENING, _TEXT)
            for given, mark in self.given.items():
                text = text.replace(given, mark)
            return text
        return _each(value, self.marked)

    def unmarked(self, value: Any) -> Any:
        """Return a recorded JSON value with the id and directory of this run."""
        if isinstance(value, str):
            return _ANY.sub(lambda found: self.local[found[0]], value) if _OPENING in value else value
        return _each(value, self.unmarked)


def _each(value: Any, change: Any) -> Any:
    if isinstance(value, dict):
        return {change(key): change(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [change(item) for item in cast("list[Any]", value)]
    return value


class _Recorded(StageError):
    """A failure whose message is given as it was recorded, whatever its lines end in."""

    def __str__(self) -> str:
        return self.message


class RecordedRetryable(_Recorded, RetryableError):
    """A transient failure of a recorded call."""


class RecordedTerminal(_Recorded, TerminalError):
    """A permanent failure of a recorded call."""


def is_recorded(error: BaseException) -> bool:
    """True if a failure is recorded as an answer; disk faults and lost workers are not."""
    return isinstance(error, Exception) and not isinstance(error, RunError | WorkerLost)


def plain_error(error: BaseException) -> dict[str, Any]:
    """Return a failure as JSON values: its class by Appendix D, its message and its usage."""
    outcome = outcome_of_exception(error)
    kind = _TERMINAL if outcome.is_terminal else _FAILED
    if outcome.status is StageStatus.RETRY:
        kind = _RETRYABLE
    plain: dict[str, Any] = {"class": kind, "message": outcome.failure_reason}
    if outcome.usage is not None:
        plain["usage"] = outcome.usage.to_plain()
    if outcome.is_unmeasured:
        plain["is_unmeasured"] = True
    return {ERROR: plain}


def timed_out(node_id: str, limit: object) -> dict[str, Any]:
    """A call that the time limit of its stage ended, as JSON values."""
    message = f"timeout: {node_id} took more than {limit}"
    return {ERROR: {"class": _RETRYABLE, "message": message}}


def raise_recorded(answer: Mapping[str, Any]) -> None:
    """Raise the failure that an answer is, if it is one; how long to wait was for the one who was asked."""
    plain = answer.get(ERROR)
    if plain is None:
        return
    kinds = {_RETRYABLE: RecordedRetryable, _TERMINAL: RecordedTerminal}
    kind = kinds.get(str(plain["class"]), _Recorded)
    raise kind(str(plain["message"]), is_unmeasured=plain.get("is_unmeasured") is True)


# Records and replays answers of users (spec 6.4). A replay logs and shows questions, but asks no one.

ANSWERED_BY: Final = "cassette"
_PRESET: ContextVar[Answer | None] = ContextVar("attractor_recorded_answer", default=None)


class PresetInterviewer:
    """Answers a gate from the recording, or asks the inner interviewer (``Interviewer``).

    Attributes:
        inner: The inner interviewer.
    """

    def __init__(self, inner: Interviewer) -> None:
        self.inner = inner

    @property
    def refuses_all(self) -> bool:
        """True if the inner interviewer has no one to ask."""
        return getattr(self.inner, "refuses_all", False)

    @property
    def waits_for_others(self) -> bool:
        """True if the inner interviewer never answers on its own."""
        return getattr(self.inner, "waits_for_others", False)

    async def ask(self, question: Question) -> Answer:
        """The recorded answer, or the inner interviewer's."""
        preset = _PRESET.get()
        return preset if preset is not None else await call(self.inner.ask, question)

    async def ask_multiple(self, questions: Sequence[Question]) -> list[Answer]:
        """Several answers."""
        return [await self.ask(question) for question in questions]

    async def inform(self, message: str, stage: str) -> None:
        """Pass news on."""
        await call(self.inner.inform, message, stage)


class RecordedPeople:
    """Looks up recorded answers before a gate asks, and records new answers from any source."""

    def __init__(self, tape: Tape, gates: Interviewer) -> None:
        self._tape = tape
        self._gates = gates

    async def ask(self, question: Question) -> Answer:
        """The answer, by whatever way it came."""
        scope = current_stage()
        place, marks = self._tape.place_of(scope), Placeholders.of(scope)
        asked = question_inputs(question)
        inputs = CallInputs(asked.kind, scope.node_id, place_of(scope).without_in(asked.values))
        recorded = self._tape.find(place, inputs)
        if recorded is None:
            answer = await call(self._gates.ask, question)
            self._tape.add(place, inputs, marks.marked(plain_answer(redacted_answer(answer))))
            return answer
        try:
            preset = answer_of(marks.unmarked(recorded), ANSWERED_BY)
        except (KeyError, TypeError, ValueError):
            raise TerminalError(
                f"the recorded answer of {scope.node_id} is incomplete", hint="record it again"
            ) from None
        token = _PRESET.set(preset)
        try:
            return await call(self._gates.ask, question)
        finally:
            _PRESET.reset(token)

    async def ask_multiple(self, questions: Sequence[Question]) -> list[Answer]:
        """Several answers, one question after the other."""
        return [await self.ask(question) for question in questions]

    async def inform(self, message: str, stage: str) -> None:
        """Pass news on."""
        await call(self._gates.inform, message, stage)
