"""The states of runs and nodes, each defined once: its word, its sign and the style of its table row.

How an attempt ended is ``model.outcome.StageStatus``; what is recorded of a run uses ``RecordedStatus``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal, Self

RecordedStatus = Literal["running", "resumed", "completed", "failed", "interrupted", "paused", "restarted"]
"""Status of a run in its manifest."""
_RECORDED: Final = {"success": "completed", "fail": "failed"}
_RESULTS: Final = {recorded: result for result, recorded in _RECORDED.items()}
PAUSED: Final = "paused"
"""The status of a run that was paused, after a number of stages or at a gate, and the reason of its end."""
LIVE: Final = frozenset({"running", "resumed"})
"""Statuses of a run before its end."""
ENDED: Final = frozenset(_RESULTS)
"""Statuses of a run that has ended."""


def recorded_status(status: str) -> str:
    """The word of manifests, records and handles for the status of a result.

    >>> recorded_status("success"), recorded_status("paused")
    ('completed', 'paused')
    """
    return _RECORDED.get(status, status)


def as_result(status: str) -> str:
    """The inverse: the word of results for a status that is recorded.

    >>> as_result("failed"), as_result("interrupted")
    ('fail', 'interrupted')
    """
    return _RESULTS.get(status, status)


WAITING: Final = "waiting"
"""The status of a live run while a gate of it is open."""
ABANDONED: Final = "abandoned"
"""The status of a run whose process died."""
RUN_WORDS: Final = {
    "ready": "ready",
    "not_started": "not started",
    **dict.fromkeys(("running", "resumed", "restarted", "retrying"), "running"),
    WAITING: "waiting",
    PAUSED: "paused",
    **dict.fromkeys(("interrupted", "cut off", ABANDONED), "stopped"),
    **dict.fromkeys(("fail", "failed"), "failed"),
    **dict.fromkeys(("success", "completed"), "completed"),
}
"""The words that people read for the status of a run, of a row of a map and of a child run, by its value in JSON, in
Python and in manifests."""
STAGE_WORDS: Final = {
    "pending": "pending",
    "running": "running",
    "waiting": "waiting",
    "retrying": "retrying",
    "success": "success",
    "partial_success": "partial success",
    "fail": "failed",
    "retry": "retry",
    "skipped": "skipped",
    "cached": "cached",
    "cut off": "cut off",
}
"""The words that people read for the state of a stage and the outcome of an attempt, by the value in JSON and Python.

``retry`` is the outcome of an attempt that asked to be tried again; ``cached`` a success from the cache; ``cut off`` an
attempt that did not end.
"""


def run_word(status: str) -> str:
    """The word that people read for the status of a run; another text is returned as it is.

    >>> run_word("success"), run_word("interrupted"), run_word("resumed"), run_word("damaged")
    ('completed', 'stopped', 'running', 'damaged')
    """
    return RUN_WORDS.get(status, status)


def stage_word(status: str) -> str:
    """The word that people read for the state of a stage or an outcome; another text is returned as it is.

    >>> stage_word("partial_success"), stage_word("fail")
    ('partial success', 'failed')
    """
    return STAGE_WORDS.get(status, status)


def shown_run_status(status: str, reason: str) -> str:
    """The status of a run that people read: a run that stopped because it was paused has its own word.

    >>> shown_run_status("interrupted", "paused"), shown_run_status("interrupted", "cancelled")
    ('paused', 'interrupted')
    """
    return PAUSED if status == "interrupted" and reason == PAUSED else status


def run_sign(status: str) -> str:
    """The sign of the status of a run, so that it is not told by colour alone.

    >>> run_sign("waiting"), run_sign("resumed")
    ('?', '\N{BLACK CIRCLE}')
    """
    return NodeStatus.WAITING.letter if status == WAITING else RunStatus.of(status).letter


def run_state(status: str) -> str:
    """The sign and the word of the status of a run.

    >>> run_state("waiting"), run_state("not_started")
    ('? waiting', '\N{EN DASH} not started')
    """
    return f"{run_sign(status)} {run_word(status)}"


def stage_state(status: str) -> str:
    """The sign and the word of the state of a stage.

    >>> stage_state("waiting"), stage_state("partial_success")
    ('? waiting', '\N{CHECK MARK}~ partial success')
    """
    return f"{NodeStatus.of(status).letter} {stage_word(status)}"


class RunStatus(StrEnum):
    """The displayed status of a whole run."""

    letter: str  #: Its sign in texts.
    is_over: bool  #: It ended on its own: a resume has nothing to continue, unless it failed.
    is_ended: bool  #: Nothing more will happen by itself.

    READY = "ready", "\N{EN DASH}"
    RUNNING = "running", "\N{BLACK CIRCLE}"
    SUCCESS = "success", "\N{CHECK MARK}"
    FAIL = "fail", "\N{MULTIPLICATION X}"
    INTERRUPTED = "interrupted", "\N{DOUBLE VERTICAL LINE}"

    __hash__ = str.__hash__  # that of the word it equals

    def __new__(cls, word: str, letter: str) -> Self:
        """Make a member."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.letter = letter
        member.is_over = word in _RECORDED
        member.is_ended = member.is_over or word == "interrupted"
        return member

    @classmethod
    def of(cls, status: str) -> RunStatus:
        """The displayed status for a recorded status or that of a result.

        >>> [str(RunStatus.of(status)) for status in ("completed", "resumed", "paused", "abandoned")]
        ['success', 'running', 'interrupted', 'interrupted']
        """
        return _RUNS.get(as_result(status), cls.INTERRUPTED)


class NodeStatus(StrEnum):
    """The displayed status of a node."""

    letter: str  #: Its sign in texts.
    row: str  #: Style of its row in a table: ``ok``, ``error``, ``warn``, or empty.
    is_active: bool  #: It is being worked on now.

    PENDING = "pending", "\N{EN DASH}"
    RUNNING = "running", "\N{BLACK CIRCLE}"
    WAITING = "waiting", "?", "warn"
    RETRYING = "retrying", "\N{CLOCKWISE OPEN CIRCLE ARROW}"
    SUCCESS = "success", "\N{CHECK MARK}", "ok"
    PARTIAL_SUCCESS = "partial_success", "\N{CHECK MARK}~", "ok"
    FAIL = "fail", "\N{MULTIPLICATION X}", "error"
    SKIPPED = "skipped", "\N{EN DASH}"
    CACHED = "cached", "\N{HIGH VOLTAGE SIGN}", "ok"

    __hash__ = str.__hash__  # as above

    def __new__(cls, word: str, letter: str, row: str = "") -> Self:
        """Make a member."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.letter, member.row = letter, row
        member.is_active = word in {"running", "waiting", "retrying"}
        return member

    @classmethod
    def of(cls, status: str) -> NodeStatus:
        """The displayed status for a node's state or the outcome of its latest attempt; PENDING for any other word.

        >>> str(NodeStatus.of("retry")), str(NodeStatus.of("cached")), str(NodeStatus.of(""))
        ('fail', 'cached', 'pending')
        """
        return _NODES.get(status, cls.PENDING)


def row_look(status: str) -> str:
    """The style of the table row about a stage in that state: ``ok``, ``error``, ``warn``, or empty."""
    return "warn" if status == "cut off" else NodeStatus.of(status).row


_RUNS: Final[dict[str, RunStatus]] = {
    **{status.value: status for status in RunStatus},
    **dict.fromkeys(("waiting", "resumed"), RunStatus.RUNNING),
    "not_started": RunStatus.READY,
}
_NODES: Final[dict[str, NodeStatus]] = {
    **{status.value: status for status in NodeStatus},
    "retry": NodeStatus.FAIL,
    "waits": NodeStatus.RETRYING,
}
