"""On a worker: the output and the files of a stage that travel back with its report."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import StorageError
from attractor_nb.model.events import ModelCallEnded, StageOutput
from attractor_nb.redaction import redacted
from attractor_nb.storage.files.atomic import TEMPORARY_PREFIX, read_plain_file
from attractor_nb.storage.run_directory import VISITS_NAME
from attractor_nb.workers.task import MAX_OUTPUT_CHARACTERS, MAX_RETURNED_BYTES, MAX_RETURNED_FILES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from attractor_nb.model.events import Event
    from attractor_nb.storage.memory_store import MemoryStageFiles

FLUSH_SECONDS: Final = 0.1
"""Output is passed on this often at most: a message for each word would cost more than the word."""


MAX_CALLS: Final = 1000
"""How many calls of models a report tells of."""


class OutputForwarder:
    """Collects output by channel, and calls of models. ``take`` may be called from any thread.

    Attributes:
        output: All output, by channel, once it has finished.
        calls: What was announced of calls of models.
    """

    def __init__(self, pass_on: Callable[[str, str], None]) -> None:
        """Take the way by which pieces leave; called in the loop that runs now."""
        self.output: dict[str, str] = {}
        self.calls: list[Mapping[str, Any]] = []
        self._pass_on = pass_on
        self._pieces: dict[str, list[str]] = {}
        self._sizes: dict[str, int] = {}
        self._forwarded: dict[str, int] = {}
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._timer: asyncio.TimerHandle | None = None

    def take(self, event: Event) -> None:
        """Take an event of the stage; only output and calls of models travel."""
        if isinstance(event, ModelCallEnded) and len(self.calls) < MAX_CALLS:
            self.calls.append(event.to_plain())
        if not isinstance(event, StageOutput):
            return
        if threading.get_ident() == self._thread:
            self._keep(event.channel, event.text)
        else:  # what a thread of a plain function says is here before its result is
            self._loop.call_soon_threadsafe(self._keep, event.channel, event.text)

    def _keep(self, channel: str, text: str) -> None:
        size = self._sizes.get(channel, 0)
        text = text[: MAX_OUTPUT_CHARACTERS - size]
        if not text:
            return
        self._pieces.setdefault(channel, []).append(text)
        self._sizes[channel] = size + len(text)
        if self._timer is None:
            self._timer = self._loop.call_later(FLUSH_SECONDS, self._flush)

    def _flush(self) -> None:
        self._timer = None
        for channel, pieces in self._pieces.items():
            fresh = pieces[self._forwarded.get(channel, 0) :]
            self._forwarded[channel] = len(pieces)
            if fresh:
                self._pass_on(channel, "".join(fresh))

    def close(self) -> None:
        """Pass nothing on any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def finish(self) -> None:
        """Bind ``output``: all that was taken, by channel."""
        self.output = {channel: "".join(pieces) for channel, pieces in self._pieces.items()}


def files_to_return(files: MemoryStageFiles, *, known: Mapping[str, str]) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The files of a stage, by relative path, and those that stay behind, each with the reason.

    Args:
        files: The stage's, on this worker.
        known: Texts that the coordinator has already, by name; they travel back only when they changed.
    """
    if not files.is_on_disk:
        found = {name: text.encode("utf-8", "backslashreplace") for name, text in files.texts.items()}
        return _without_known(found, known), ()
    returned: dict[str, bytes] = {}
    left_out: list[str] = []
    root, room = files.directory, MAX_RETURNED_BYTES
    for path in _paths(root):
        name = path.relative_to(root).as_posix()
        try:
            if not stat.S_ISREG(path.lstat().st_mode):
                left_out.append(f"{name}: not a plain file")
                continue
            if len(returned) >= MAX_RETURNED_FILES:
                left_out.append(f"{name}: more than {MAX_RETURNED_FILES} files")
                continue
            data = read_plain_file(path, max_bytes=room)
        except (OSError, StorageError) as error:
            left_out.append(f"{name}: {error}")
            continue
        if data is not None:
            returned[name] = data
            room -= len(data)
    return _without_known(returned, known), tuple(left_out[:MAX_RETURNED_FILES])


def _paths(root: Path) -> Iterator[Path]:
    """All entries that are no directories, in order; those of our own making left out."""
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        if here == root:
            folders[:] = [name for name in folders if name != VISITS_NAME]
        folders.sort()
        for name in sorted([*names, *(name for name in folders if (here / name).is_symlink())]):
            if not name.startswith(TEMPORARY_PREFIX):
                yield here / name


def _without_known(found: dict[str, bytes], known: Mapping[str, str]) -> dict[str, bytes]:
    for name, text in known.items():
        if found.get(name) == redacted(text).encode("utf-8", "backslashreplace"):
            del found[name]
    return found
