"""Answers and messages that are handed in at a run which another process of this user works at.

They lie in a folder of the user's state directory: an answer until the owner of the run claims it, and the owner's
reply until it was read. Of a message the same is true, and all that is said of answers here.

The rule: the owner claims an answer by renaming the one file that it is, the sender withdraws it by removing that file.
So of both exactly one happens, and a sender who gave up knows that the answer has no effect any more. An
answer counts for seconds only: what a killed sender left behind answers no question that is asked again later, and
the box is swept when it is opened an hour later.

Run directories are no place for this: agents and tools work there, and what they write must pass no gate. It knows
no gates, and what makes an answer right is decided by the owner alone.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import msgspec

from attractor_nb.errors import StorageError
from attractor_nb.model.instruction import InstructionReceipt
from attractor_nb.model.record import Record, no_values
from attractor_nb.storage.files.atomic import TEMPORARY_PREFIX, read_plain_file, write_whole
from attractor_nb.storage.files.disk import Disk, entry_names, storage_error
from attractor_nb.storage.files.strict_json import JsonProblem
from attractor_nb.storage.run_directory import make_directory
from attractor_nb.storage.sealed_file import seal, unseal
from attractor_nb.storage.trust_file import is_private, state_directory

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

PATIENCE_SECONDS: Final = 10.0
"""Time limit for an answer to be claimed, and then for its reply."""
_POLL_SECONDS: Final = 0.05
_TICK_SECONDS: Final = 2.0
"""No disk notes the time of a change more coarsely."""
_STRAY_SECONDS: Final = 3600.0
"""Older answers are not waited for: by far longer than for an answer and its reply."""
_MAX_BYTES: Final = 4 * 1024 * 1024
_FOLDER: Final = "answers"
_GIVEN, _CLAIMED, _REPLY = ".given", ".claimed", ".reply"


class BoxedAnswer(Record, frozen=True):
    """An answer to a question of another process."""

    question: str  #: The question's id.
    answered_by: str  #: Source of the answer, for the record.
    until: float  #: When it is over, in seconds since 1970.
    choice: str = ""  #: Key, label or target of a choice, or empty.
    text: str = ""  #: Free text, or empty.
    form: dict[str, Any] = msgspec.field(default_factory=no_values)  #: Form values, by field.


class BoxedMessage(Record, frozen=True):
    """A person's message to a run of another process."""

    message: str  #: Its text.
    given_by: str  #: By what way it came, for the record.
    until: float  #: When it is over, in seconds since 1970.
    node: str = ""  #: The node that it is for, or empty.


Boxed = BoxedAnswer | BoxedMessage


class AnswerReply(Record, frozen=True):
    """The reply to an answer or to a message: accepted, or the error that refused it."""

    error: str = ""  #: Name of the error that refused it; empty when it counts.
    message: str = ""  #: The problem.
    hint: str = ""  #: The remedy.
    fields: dict[str, str] = msgspec.field(default_factory=no_values)  #: Problems of the form, by field.
    receipt: InstructionReceipt | None = None  #: Receipt of a message to a model.


class AnswerBox:
    """The answers that are handed in at one run directory.

    Args:
        logs_root: The run directory whose log has the question.
    """

    def __init__(self, logs_root: Path) -> None:
        self._disk = Disk()
        state = state_directory()
        self._directory = None if state is None else state / _FOLDER
        self._prefix = sha256(os.fsencode(logs_root.resolve())).hexdigest()[:32] + "-"
        self._is_swept = False
        self._seen: float | None = None

    @property
    def is_usable(self) -> bool:
        """True if there is a place in which only this user can put an answer."""
        if self._directory is None:
            return False
        return all(is_private(place) or not place.exists() for place in (self._directory, self._directory.parent))

    def hand_in(self, given: Boxed, patience: float = PATIENCE_SECONDS) -> AnswerReply | None:
        """Hand an answer in and wait for what becomes of it; None if it was not claimed: then it never counts."""
        if self._directory is None or not self.is_usable:
            return None
        token = self._prefix + os.urandom(8).hex()
        make_directory(self._disk, self._directory, is_synced=False)
        with self._opened() as parent:
            write_whole(
                self._disk, parent, token + _GIVEN, seal(given.to_plain()), directory=self._directory, is_synced=False
            )
            try:
                return self._awaited(parent, token, patience)
            finally:
                for ending in (_GIVEN, _CLAIMED, _REPLY):
                    with suppress(OSError):
                        self._disk.remove(token + ending, parent)

    def _awaited(self, parent: int, token: str, patience: float) -> AnswerReply | None:
        give_up = time.monotonic() + patience
        is_given = True
        while (plain := self._read(parent, token + _REPLY)) is None:
            if time.monotonic() > give_up:
                if not is_given:
                    raise StorageError(
                        "the process of the run accepted the answer and did not respond again",
                        hint="look at the run: it shows whether the answer counts",
                    )
                is_given = False
                with suppress(FileNotFoundError):
                    self._disk.remove(token + _GIVEN, parent)
                    return None
                give_up = time.monotonic() + patience  # it was claimed in this moment
            time.sleep(_POLL_SECONDS)
        return AnswerReply.from_plain(plain)

    def claimed(self, now: float) -> list[tuple[str, Boxed]]:
        """Claim what was handed in; each with the token under which its sender waits for a reply."""
        if self._directory is None or not self._has_changed(self._directory, now) or not self.is_usable:
            return []
        found: list[tuple[str, Boxed]] = []
        with self._opened() as parent:
            for name in sorted(entry_names(parent)):
                token = name.removesuffix(_GIVEN)
                if token == name or not token.startswith(self._prefix):
                    continue
                with suppress(FileNotFoundError, JsonProblem, ValueError):  # withdrawn, or not ours
                    self._disk.rename(name, token + _CLAIMED, parent)
                    plain = self._read(parent, token + _CLAIMED) or {}
                    self._disk.remove(token + _CLAIMED, parent)  # its sender waits for the reply alone
                    given = (BoxedMessage if "message" in plain else BoxedAnswer).from_plain(plain)
                    if now <= given.until:
                        found.append((token, given))
        return found

    def _has_changed(self, directory: Path, now: float) -> bool:
        """True if anything was put there since the last look: asked four times a second, mostly for nothing."""
        try:
            found = directory.stat()
        except OSError:
            return False
        changed = found.st_mtime
        if changed == self._seen or not stat.S_ISDIR(found.st_mode):
            return False
        # What is put there within the same tick of the disk's clock leaves no mark of its own.
        self._seen = changed if abs(now - changed) > _TICK_SECONDS else None
        return True

    def reply(self, token: str, reply: AnswerReply) -> None:
        """Tell a sender what became of its answer."""
        assert self._directory is not None, "an answer was claimed there"
        with self._opened() as parent:
            write_whole(
                self._disk, parent, token + _REPLY, seal(reply.to_plain()), directory=self._directory, is_synced=False
            )

    @contextmanager
    def _opened(self) -> Generator[int]:
        assert self._directory is not None, "checked by the callers"
        try:
            descriptor = self._disk.open_directory(self._directory)
        except OSError as error:
            raise storage_error(error, "open", self._directory) from error
        try:
            self._sweep(descriptor)
            yield descriptor
        finally:
            self._disk.close(descriptor)

    def _sweep(self, parent: int) -> None:
        """Remove, once for each box, what killed processes left there, whatever the run."""
        if self._is_swept:
            return
        self._is_swept = True
        for name in entry_names(parent):
            if name.startswith(TEMPORARY_PREFIX) or name.endswith((_GIVEN, _CLAIMED, _REPLY)):
                with suppress(OSError):
                    if time.time() - os.stat(name, dir_fd=parent, follow_symlinks=False).st_mtime > _STRAY_SECONDS:
                        self._disk.remove(name, parent)

    def _read(self, parent: int, name: str) -> Mapping[str, Any] | None:
        data = read_plain_file(name, parent, directory=self._directory or "", max_bytes=_MAX_BYTES)
        return None if data is None else unseal(data)
