"""The logs of agents: what their processes write, without its secrets.

A process writes into a pipe, and a thread of ours takes the secrets out and appends the rest to the file:
a process that had the file itself would write past the redactor. The thread ends with the last process that
holds the pipe, however that process ends; what it had written by then is in the log.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import threading
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from attractor_nb.errors import SessionError
from attractor_nb.redaction import StreamRedactor
from attractor_nb.sessions.session_places import opened_session
from attractor_nb.sessions.tracker import SessionTracker
from attractor_nb.storage.files.disk import Disk, storage_error, write_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from attractor_nb.errors import StorageError

LOGGER = logging.getLogger(__name__)
EXIT_SECONDS: Final = 2.0
"""How long the end of our own process is put off for logs whose agents have not ended."""
_CHUNK_BYTES: Final = 64 * 1024


class AgentLog:
    """An agent's log, open for what its processes write; ``open_agent_log`` makes it.

        with open_agent_log(session_dir, "001") as log:
            subprocess.run(command, stdout=log, stderr=log)

    The process that opened it must outlive the agent: it is the one that writes the file.
    """

    def __init__(self, disk: Disk, file: int, path: Path) -> None:
        """Begin to write what comes.

        Args:
            file: The log, open for appending; it is closed in the end, also if this fails.
            path: Its path, for messages.
        """
        try:
            source, target = os.pipe()
        except OSError as error:
            disk.close(file)
            raise storage_error(error, "open", path) from error
        self._path = path
        self._target = target
        # Not a method: a log that is dropped without a word is closed, and its thread then ends.
        self._end = weakref.finalize(self, os.close, target)
        self._copy = _Copy(disk, source, file, path)
        _COPIES[self._copy] = self._end
        try:
            self._copy.start()
        except RuntimeError as error:
            self.close()
            self._copy.give_back()
            raise SessionError(f"no thread can be started that writes {path}") from error

    def fileno(self) -> int:
        """The descriptor that a process writes to; ``subprocess`` asks for it."""
        if not self._end.alive:
            raise SessionError(f"{self._path} is closed here", hint="open it anew for the next process")
        return self._target

    def close(self) -> None:
        """Accept no further processes; those that already write continue. Closing twice is allowed."""
        self._end()

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Close it and wait until the last process that writes has ended and all is in the file.

        Args:
            timeout_seconds: How long; without end if not given.

        Returns:
            Whether they have ended.
        """
        self.close()
        self._copy.join(timeout_seconds)
        if self._copy.failure is not None:
            raise self._copy.failure
        return not self._copy.is_alive()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Wait for the end of all who write; when the block was left by an error, only close."""
        if kind is None:
            self.wait()
        else:
            self.close()


def open_agent_log(session_dir: str | os.PathLike[str], agent_id: str) -> AgentLog:
    """Open an agent's log for appending, as ``subprocess.Popen(stdout=…)`` takes it.

    Secrets are taken out of what is written. Call ``wait`` for a file that is complete.
    """
    place, disk = Path(session_dir), Disk()
    SessionTracker(place).read().known_agent(agent_id)
    name = f"{agent_id}.log"
    with opened_session(disk, place) as directory:
        try:
            file = disk.open_update(name, directory.descriptor, is_append=True)
        except OSError as error:
            raise storage_error(error, "open", place / name) from error
    return AgentLog(disk, file, place / name)


class _Copy(threading.Thread):
    """Copies a pipe into a log, without secrets, until its last writer has ended.

    Attributes:
        path: The log.
        failure: What the disk refused. The pipe is then read on, so that no agent is held up.
    """

    def __init__(self, disk: Disk, source: int, file: int, path: Path) -> None:
        # A daemon, for an agent that outlives us must not keep our process; ``_finish_all`` sees to the rest.
        super().__init__(name="attractor-agent-log", daemon=True)
        self._disk, self._source, self._file, self.path = disk, source, file, path
        self._redactor = StreamRedactor()
        self.failure: StorageError | None = None

    def run(self) -> None:
        try:
            while data := os.read(self._source, _CHUNK_BYTES):
                # Bytes as Latin-1 come back as they were, whatever the agent's encoding is.
                self._write(self._redactor.feed(data.decode("latin-1")))
            self._write(self._redactor.finish())
        finally:
            self.give_back()

    def give_back(self) -> None:
        """Close the resources that were opened for the log."""
        os.close(self._source)
        self._disk.close(self._file)
        _COPIES.pop(self, None)

    def _write(self, text: str) -> None:
        if self.failure is not None or not text:
            return
        try:
            write_all(self._disk, self._file, text.encode("latin-1"))
        except OSError as error:
            self.failure = storage_error(error, "write", self.path)
            LOGGER.warning("%s", self.failure.message)


_COPIES: Final[dict[_Copy, Callable[[], object]]] = {}
"""The threads that go on, and what closes our own end of their pipes."""


@atexit.register
def _finish_all() -> None:
    """Before our process ends: what was written is in the logs, unless an agent goes on for too long."""
    copies = dict(_COPIES)
    for end in copies.values():
        with contextlib.suppress(OSError):  # somebody closed the descriptor itself
            end()
    deadline = time.monotonic() + EXIT_SECONDS
    for copy in copies:
        copy.join(max(0.0, deadline - time.monotonic()))
        if copy.is_alive():
            LOGGER.warning("an agent goes on, and what it writes from now on is lost to %s", copy.path)
