"""How a call is written on a cassette: placeholders for its run's id and directory, a failure's class."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.decisions.replays.cache_keys import PlaceOfCall
from attractor_nb.decisions.retries import outcome_of_exception
from attractor_nb.errors import RetryableError, RunError, StageError, TerminalError, WorkerLost
from attractor_nb.model.outcome import StageStatus
from attractor_nb.storage.run_directory import first_directory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.stage import StageScope

_OPENING: Final = "{{attractor:"
_TEXT, _RUN, _STAGES, _DIRECTORY = (f"{_OPENING}{word}}}}}" for word in ("text", "run", "run-dir", "root-dir"))
_ANY: Final = re.compile(re.escape(_OPENING) + r"(?:text|run|run-dir|root-dir)\}\}")

ERROR: Final = "error"
_RETRYABLE: Final = "retryable"
_TERMINAL: Final = "terminal"
_FAILED: Final = "failed"


def place_of(scope: StageScope) -> PlaceOfCall:
    """What differs from run to run in the texts of a stage."""
    return PlaceOfCall(scope.run_id, tuple(_directories(scope)))


def _directories(scope: StageScope) -> dict[str, str]:
    """The directories of a run as texts, and the mark of each."""
    found: dict[str, str] = {}
    for directory, mark in ((scope.logs_root, _STAGES), (first_directory(scope.logs_root.absolute()), _DIRECTORY)):
        spellings = [str(directory.absolute()), os.path.realpath(directory)]
        if os.sep in str(directory):  # a single word may stand in any text
            spellings.append(str(directory))
        for spelling in spellings:
            found.setdefault(spelling, mark)
    return found


@dataclass(frozen=True, slots=True)
class Marks:
    """Puts marks into texts, and takes them out again."""

    given: Mapping[str, str]
    local: Mapping[str, str]

    @classmethod
    def of(cls, scope: StageScope) -> Marks:
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
    """Whether a failure is recorded as an answer; disk faults and lost workers are not."""
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
