"""All files that an attempt has left in its stage's directory, and files that a stage depends on."""

from __future__ import annotations

import glob
import hashlib
import os
import stat
from typing import TYPE_CHECKING, Final, NoReturn

from attractor_nb.errors import StorageError
from attractor_nb.storage.files.atomic import entries_below, read_plain_file
from attractor_nb.storage.files.disk import storage_error
from attractor_nb.storage.memory_store import MemoryStageFiles
from attractor_nb.storage.run_directory import VISITS_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from attractor_nb.stage import StageFiles

MAX_FILES: Final = 10_000
MISSING: Final = "missing"
"""Stands for the digest of a declared file that is not there."""
_PIECE: Final = 1024 * 1024


def stage_contents(files: StageFiles, *, max_bytes: int) -> dict[str, bytes]:
    """The files of an attempt by their paths, with ``/`` between folders; earlier visits are not among them."""
    if isinstance(files, MemoryStageFiles) and not files.is_on_disk:
        return {name: text.encode("utf-8", "surrogatepass") for name, text in files.texts.items()}
    directory = files.directory
    found: dict[str, bytes] = {}
    left = max_bytes
    for name in _names_below(directory, is_stage=True):
        data = read_plain_file(directory / name, max_bytes=max(left, 0))
        if data is not None:
            left -= len(data)
            found[name] = data
    return found


def file_digests(patterns: Iterable[str], base: Path) -> dict[str, str]:
    """SHA-256 of each file that paths and patterns name, by its path as it is named.

    Args:
        patterns: Paths relative to ``base`` or absolute ones, with ``*``, ``?`` and ``**``; a directory
            stands for all files in it.
        base: Where relative ones begin.

    Returns:
        In order. What is not there has the digest ``missing``.
    """
    found: dict[str, str] = {}
    for pattern in patterns:
        names = glob.glob(pattern, root_dir=base, recursive=True, include_hidden=True)  # noqa: PTH207 - names stay as they are written
        if not names:
            found[pattern] = MISSING
        for name in sorted(names):
            path = base / name
            if path.is_dir():
                inner = _names_below(path, is_stage=False)
                found |= {os.path.join(name, one): _digest(path / one) for one in inner}  # noqa: PTH118 - as above
            else:
                found[name] = _digest(path)
            if len(found) > MAX_FILES:
                raise StorageError(f"{pattern} names more than {MAX_FILES} files", path=str(base))
    return dict(sorted(found.items()))


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise StorageError(f"{path} is not a plain file", path=str(path))
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
    except FileNotFoundError:
        return MISSING
    except OSError as error:
        raise storage_error(error, "read", path) from error
    return digest.hexdigest()


def _names_below(directory: Path, *, is_stage: bool) -> Iterator[str]:
    """The relative paths of all files under a directory, in order; links to directories are not followed."""

    def refuse(error: OSError) -> NoReturn:
        raise storage_error(error, "read", error.filename or directory) from error

    entries = entries_below(directory, is_left_out=lambda path: is_stage and path == VISITS_NAME, onerror=refuse)
    for count, (name, facts) in enumerate(entries, 1):
        if is_stage and not stat.S_ISREG(facts.st_mode):
            raise StorageError(f"{directory / name} is not a plain file", path=str(directory / name))
        if count > MAX_FILES:
            raise StorageError(f"{directory} holds more than {MAX_FILES} files", path=str(directory))
        yield name
