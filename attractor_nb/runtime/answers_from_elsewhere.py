"""Answers and messages from other processes of this user: a run takes them while it is under way.

What is taken goes the way of every other: the run's gates check an answer, and the first durable one wins; the run's
inbox for instructions checks a message.
"""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.errors import (
    AlreadyAnswered,
    AnswerRefused,
    AttractorError,
    NoSuchGate,
    OptionError,
    RunError,
    RunLocked,
    RunNotFound,
    StorageError,
)
from attractor_nb.logs import own_logger
from attractor_nb.model.events import InterviewCompleted
from attractor_nb.storage.answer_box import PATIENCE_SECONDS, AnswerBox, AnswerReply, Boxed, BoxedAnswer, BoxedMessage
from attractor_nb.storage.log.event_log import read_log
from attractor_nb.storage.log.lock import process_of
from attractor_nb.storage.run_store import DirectoryRunStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from attractor_nb.engine.gates import Gates
    from attractor_nb.model.instruction import InstructionReceipt

LOGGER = own_logger(__name__)
LOOK_SECONDS: Final = 0.25
"""Interval at which a run looks for answers and messages."""
_REFUSALS: Final = {kind.__name__: kind for kind in (AlreadyAnswered, NoSuchGate, OptionError, RunError, RunNotFound)}


class AnswerCollector:
    """Takes what other processes hand in for a run, and tells them what became of it.

    Args:
        gates: The gates.
        tell: Tells the run something: given a node, a text, and by what way it came.
    """

    def __init__(self, gates: Gates, tell: Callable[[str, str, str], InstructionReceipt]) -> None:
        self._gates = gates
        self._tell = tell
        self._place: Path | None = None
        self._box: AnswerBox | None = None
        self._is_warned = False

    def look(self, store: object) -> None:
        """Take what is there now.

        Args:
            store: Where the run is stored now; only a run that has a directory can be found by others.
        """
        if not isinstance(store, DirectoryRunStore):
            return
        if self._box is None or self._place != store.logs_root:  # a restart has its own directory
            self._place, self._box = store.logs_root, AnswerBox(store.logs_root)
        try:
            for token, given in self._box.claimed(time.time()):
                self._box.reply(token, self._reply_to(given))
        except (OSError, StorageError) as error:  # of the state directory: the run has its other ways to an answer
            if not self._is_warned:
                LOGGER.warning("answers of other processes cannot be read: %s", error)
            self._is_warned = True

    def _reply_to(self, given: Boxed) -> AnswerReply:
        try:
            if isinstance(given, BoxedMessage):
                return AnswerReply(receipt=self._tell(given.node, given.message, given.given_by))
            form = given.form or None
            self._gates.answer(given.question, given.choice, text=given.text, form=form, answered_by=given.answered_by)
        except AttractorError as error:
            fields = error.fields if isinstance(error, AnswerRefused) else {}
            return AnswerReply(error=type(error).__name__, message=error.message, hint=error.hint, fields=fields)
        return AnswerReply()


def can_be_answered(owner: Mapping[str, Any], place: Path) -> bool:
    """True if answers reach the process that works at a run: it is one of this machine and of this user.

    Args:
        owner: Facts about that process: ``pid``, ``host``.
        place: The directory whose log has the question (``current_directory``).
    """
    return owner.get("host") == socket.gethostname() and AnswerBox(place).is_usable


def deliver_answer(
    place: Path,
    question: str,
    choice: str,
    *,
    owner: Mapping[str, Any],
    text: str = "",
    form: Mapping[str, Any] | None = None,
    answered_by: str,
    patience: float = PATIENCE_SECONDS,
) -> InterviewCompleted:
    """Answer a question of a run that another process works at; what its log has of the answer then.

    Args:
        place: The directory whose log has the question (``current_directory``).
        question: The question's id.
        choice: Key, label or target of a choice, or empty.
        owner: Facts about the process: ``pid``, ``host``, ``since``.
        text: Free text.
        form: What is filled in, by field.
        answered_by: Who answers, for the record.
        patience: Seconds to wait for that process.
    """
    given = BoxedAnswer(question, answered_by, time.time() + patience, choice, text, dict(form or {}))
    if _handed_in(given, place, owner, patience) is None:
        raise RunLocked(
            f"the run is owned by {process_of(owner)}, which takes no answer from here",
            owner=dict(owner),
            hint="answer it there: at its console, in its notebook, or over its server with --server URL",
        )
    recorded = [event for event in read_log(place).events if isinstance(event, InterviewCompleted)]
    return next(event for event in reversed(recorded) if event.question_id == question)


def tell_elsewhere(
    place: Path, node: str, text: str, *, owner: Mapping[str, Any], given_by: str, patience: float = PATIENCE_SECONDS
) -> InstructionReceipt:
    """Tell something to a run that another process works at.

    Args:
        place: The current directory of the run (``current_directory``).
        node: The node that it is for, or empty.
        text: What it says.
        owner: Facts about the process: ``pid``, ``host``, ``since``.
        given_by: By what way it came, for the record.
        patience: Seconds to wait for that process.
    """
    given = BoxedMessage(text, given_by, time.time() + patience, node)
    reply = _handed_in(given, place, owner, patience)
    if reply is None or reply.receipt is None:
        raise RunLocked(
            f"the run is owned by {process_of(owner)}, which takes no message from here",
            owner=dict(owner),
            hint="tell it there: in its notebook, or over its server with --server URL",
        )
    return reply.receipt


def _handed_in(given: Boxed, place: Path, owner: Mapping[str, Any], patience: float) -> AnswerReply | None:
    """The reply of a run's process; None when it takes no answers from here."""
    reply = AnswerBox(place).hand_in(given, patience) if can_be_answered(owner, place) else None
    if reply is None or not reply.error:
        return reply
    if reply.error == AnswerRefused.__name__:
        raise AnswerRefused(reply.message, hint=reply.hint, fields=reply.fields)
    raise _REFUSALS.get(reply.error, StorageError)(reply.message, hint=reply.hint)
