"""The conversation of an attempt with ``full`` fidelity, in the run's store (``stage.Conversation``)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from attractor_nb.decisions.carried import CARRIED_FILE, carried_page
from attractor_nb.decisions.fidelity import entry_name
from attractor_nb.errors import TerminalError
from attractor_nb.model.events import RunWarning
from attractor_nb.model.vocabulary.shapes import MANAGER_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable

    from attractor_nb.decisions.effects import Execute
    from attractor_nb.model.events import Event
    from attractor_nb.protocols import RunStore
    from attractor_nb.stage import StageFiles


class StoredConversation:
    """What a thread has said, for one attempt: it reads what is committed, and saves under its own name.

    Attributes:
        is_saved: The attempt saved its words.
    """

    def __init__(self, store: RunStore, effect: Execute, branch: str, announce: Callable[[Event], None]) -> None:
        """Take up the thread of an attempt.

        Args:
            store: Where.
            effect: The attempt.
            branch: Path of the branch that it is in, or empty.
            announce: Says what a person should know.
        """
        started = effect.started
        self._store = store
        self._thread = started.thread
        self._node_id = started.name
        self._before = effect.thread_entry
        self._own = entry_name(branch, started.name, started.visit, started.attempt)
        self._announce = announce
        self._is_closed = False
        self._is_loss_reported = False
        self.is_saved = False

    @property
    def thread(self) -> str:
        """The thread's key."""
        return self._thread

    def read(self) -> str:
        """What the thread's last committed stage saved, or this attempt itself since; empty at its beginning."""
        entry = self._own if self.is_saved else self._before
        if not entry:
            return ""
        text = self._store.read_thread(self._thread, entry)
        if text is None:
            self._report_loss(entry)
        return text or ""

    def save(self, text: str) -> None:
        """Keep the whole conversation, this attempt's part included."""
        if self._is_closed:
            raise TerminalError(
                f"the attempt of {self._node_id} is over: its words in thread {self._thread} are not kept",
                hint="save before the call ends",
            )
        self._store.save_thread(self._thread, self._own, text, after=self._before)
        self.is_saved = True

    def close(self) -> None:
        """The attempt is over: what comes late would change what is committed."""
        self._is_closed = True

    def _report_loss(self, entry: str) -> None:
        """Say that a file of the run directory is gone, or was lost with the power under ``fast``."""
        if self._is_loss_reported:
            return
        self._is_loss_reported = True
        message = f"thread {self._thread} begins anew: what {entry} had said is not in the run directory"
        self._announce(RunWarning(message=message, node=self._node_id))


def keep_carried(files: StageFiles, effect: Execute, conversation: StoredConversation | None) -> None:
    """Keep beside a model stage's prompt what it is given of what came before; no file when that is nothing."""
    thread_text = "" if conversation is None else conversation.read()
    planned = effect.planned
    if thread_text or (effect.preamble and (planned.asks_model or planned.handler_type == MANAGER_TYPE)):
        files.create_deferred(CARRIED_FILE, partial(carried_page, effect, thread_text))
