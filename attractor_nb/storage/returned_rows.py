"""Run directories that travel: read where a run was, and put in their place here, whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import StorageError
from attractor_nb.model.events import event_from_plain
from attractor_nb.redaction import holds_secret, redacted, redacted_value
from attractor_nb.storage.checkpoint_file import CHECKPOINT_NAME
from attractor_nb.storage.files.atomic import TEMPORARY_PREFIX, read_plain_file, temporary_name
from attractor_nb.storage.files.disk import entry_names, storage_error, write_all
from attractor_nb.storage.files.strict_json import JsonProblem
from attractor_nb.storage.log.event_lines import encode_event, read_record
from attractor_nb.storage.sealed_file import previous_name, seal, unseal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from attractor_nb.storage.files.disk import Disk
    from attractor_nb.storage.run_directory import RunDirectory

MAX_RUN_BYTES: Final = 256 * 1024 * 1024
MAX_RUN_FILES: Final = 20_000
_LOG_NAME = "events.jsonl"


def read_tree(root: Path) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The plain files below a directory, by relative path, clean of secrets; and what else there is, by name."""
    files: dict[str, bytes] = {}
    others: list[str] = []
    room = MAX_RUN_BYTES
    for folder, folders, names in os.walk(root):
        folders.sort()
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in sorted([*names, *links]):
            path = Path(folder) / name
            if name.startswith(TEMPORARY_PREFIX):
                continue
            relative = path.relative_to(root).as_posix()
            if not stat.S_ISREG(path.lstat().st_mode):
                others.append(relative)
                continue
            data = read_plain_file(path, max_bytes=MAX_RUN_BYTES) or b""
            room -= len(data)
            if room < 0 or len(files) >= MAX_RUN_FILES:
                raise StorageError(
                    f"the run has more than {MAX_RUN_BYTES >> 20} MiB or {MAX_RUN_FILES:,} files, "
                    "which do not travel together",
                    path=relative,
                    hint='ship="stages" brings the files of each stage',
                )
            files[relative] = data
    return clean_run(files), tuple(others)


def clean_run(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files of a run without secrets; a log that had one loses its checkpoints, which count its bytes."""
    clean = {path: clean_file(path, data) for path, data in files.items()}
    for path, data in files.items():
        if path.endswith(_LOG_NAME) and clean[path] != data:
            home = path.removesuffix(_LOG_NAME)
            for name in (CHECKPOINT_NAME, previous_name(CHECKPOINT_NAME)):
                clean.pop(home + name, None)
    return clean


def clean_file(path: str, data: bytes) -> bytes:
    """The content of a file of a run without secrets; records and sealed files are sealed anew."""
    text = data.decode("latin-1")
    if not holds_secret(text):
        return data
    if path.endswith(_LOG_NAME):
        return b"".join(_clean_record(line) for line in data.splitlines(keepends=True))
    with contextlib.suppress(JsonProblem):
        return seal(unseal(data))
    return redacted(text).encode("latin-1")


def _clean_record(line: bytes) -> bytes:
    token, event = read_record(line.rstrip(b"\n"))
    if event is None:
        return redacted(line.decode("latin-1")).encode("latin-1")
    return encode_event(event_from_plain(redacted_value(event.to_plain())), token)


def put_run(
    disk: Disk,
    home: RunDirectory,
    name: str,
    files: Mapping[str, bytes],
    check: Callable[[Path], object],
    *,
    is_synced: bool,
) -> None:
    """Write a run directory that came from elsewhere: it has its name when it is whole and was checked.

    Args:
        disk: Where.
        home: The directory in which it will be.
        name: Its name there, which is free.
        files: Its files, by relative path.
        check: Given the directory before it has its name; raises when it is not the run that it should be.
        is_synced: Flush all of it before it has its name.
    """
    temporary = temporary_name()
    try:
        disk.make_directory(temporary, home.descriptor)
        _write_tree(disk, home, temporary, clean_run(files), is_synced=is_synced)
        check(home.path / temporary)
        disk.rename(temporary, name, home.descriptor)
        if is_synced:
            disk.sync(home.descriptor)
    except OSError as error:
        raise storage_error(error, "write", home.path / name) from error
    finally:
        shutil.rmtree(home.path / temporary, ignore_errors=True)  # nothing, once it has its name


def sweep_runs(home: RunDirectory) -> None:
    """Remove what a killed process had begun to write. For the owner of ``home`` alone."""
    for name in entry_names(home.descriptor):
        if name.startswith(TEMPORARY_PREFIX):
            shutil.rmtree(home.path / name, ignore_errors=True)


def _write_tree(disk: Disk, home: RunDirectory, temporary: str, files: Mapping[str, bytes], *, is_synced: bool) -> None:
    opened = {"": disk.open_directory(temporary, home.descriptor)}
    try:
        for path, data in files.items():
            *folders, name = path.split("/")
            if "\0" in path or any(part in {"", ".", ".."} for part in (*folders, name)):
                raise StorageError(f"{path!r} leads out of the run directory", path=path)
            parent = ""
            for folder in folders:
                inner = f"{parent}/{folder}" if parent else folder
                if inner not in opened:
                    disk.make_directory(folder, opened[parent])
                    opened[inner] = disk.open_directory(folder, opened[parent])
                parent = inner
            descriptor = disk.create(name, opened[parent])
            try:
                write_all(disk, descriptor, data)
                if is_synced:
                    disk.sync(descriptor)
            finally:
                disk.close(descriptor)
        if is_synced:
            for descriptor in opened.values():
                disk.sync(descriptor)
    finally:
        for descriptor in opened.values():
            disk.close(descriptor)
