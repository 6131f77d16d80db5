"""On a worker: the files of a stage that travel back with its report."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from attractor_nb.errors import StorageError
from attractor_nb.redaction import redacted
from attractor_nb.storage.files.atomic import TEMPORARY_PREFIX, read_plain_file
from attractor_nb.storage.run_directory import VISITS_NAME
from attractor_nb.workers.task import MAX_BROUGHT_BYTES, MAX_BROUGHT_FILES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from attractor_nb.storage.memory_store import MemoryStageFiles


def bring(files: MemoryStageFiles, *, known: Mapping[str, str]) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The files of a stage, by relative path, and those that stay behind, each with the reason.

    Args:
        files: The stage's, on this worker.
        known: Texts that the coordinator has already, by name; they travel back only when they changed.
    """
    if not files.is_on_disk:
        found = {name: text.encode("utf-8", "backslashreplace") for name, text in files.texts.items()}
        return _without_known(found, known), ()
    brought: dict[str, bytes] = {}
    left_out: list[str] = []
    root, room = files.directory, MAX_BROUGHT_BYTES
    for path in _paths(root):
        name = path.relative_to(root).as_posix()
        try:
            if not stat.S_ISREG(path.lstat().st_mode):
                left_out.append(f"{name}: not a plain file")
                continue
            if len(brought) >= MAX_BROUGHT_FILES:
                left_out.append(f"{name}: more than {MAX_BROUGHT_FILES} files")
                continue
            data = read_plain_file(path, max_bytes=room)
        except (OSError, StorageError) as error:
            left_out.append(f"{name}: {error}")
            continue
        if data is not None:
            brought[name] = data
            room -= len(data)
    return _without_known(brought, known), tuple(left_out[:MAX_BROUGHT_FILES])


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
