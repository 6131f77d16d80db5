"""The directory of a map: its own manifest, the inputs, and a run directory for each row.

``map.json`` records the pipeline and its inputs, and is written only at the beginning and at the end. The state of
a row is in its own run directory, so a killed map needs no repair. One process owns a map, as one owns
a run, by the kernel's lock; a process that has lost it writes nothing more here.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import stat
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, cast

import msgspec

from attractor_nb.errors import CheckpointCorrupt, RunNotFound, StorageError
from attractor_nb.model.events import event_from_plain
from attractor_nb.model.outcome import Answers, ResultMarks, StandIn
from attractor_nb.model.record import Record, no_values
from attractor_nb.redaction import holds_secret, redacted, redacted_value
from attractor_nb.storage.checkpoint_file import CHECKPOINT_NAME
from attractor_nb.storage.directory_survey import check_free, has_content, holds_one
from attractor_nb.storage.files.atomic import (
    TEMPORARY_PREFIX,
    entries_below,
    read_plain_file,
    sweep,
    temporary_name,
    write_whole,
)
from attractor_nb.storage.files.disk import Disk, check_durability, entry_names, storage_error, write_all
from attractor_nb.storage.files.strict_json import JsonProblem, json_bytes, read_json
from attractor_nb.storage.log.event_lines import encode_event, read_record
from attractor_nb.storage.log.event_log import EVENT_LOG_NAME, FencedDisk
from attractor_nb.storage.log.lock import OWNER_NAME, OwnerLock
from attractor_nb.storage.run_directory import SOURCE_NAME, RunDirectory, make_directory, utc_text
from attractor_nb.storage.sealed_file import SealedFile, previous_name, read_generations, seal, unseal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from attractor_nb.protocols import Clock


MAP_NAME = "map.json"
INPUTS_NAME = "inputs.jsonl"
EVALUATION_NAME = "evaluation.json"
"""File of a map whose rows are scored."""
_WHOLE = (MAP_NAME, EVENT_LOG_NAME, CHECKPOINT_NAME)
_BEGAN = frozenset({OWNER_NAME, SOURCE_NAME, INPUTS_NAME})
"""Files of the directory of a map before its manifest."""
_MAX_INPUTS_BYTES = 4 * 1024**3
_MAX_SOURCE_BYTES = 64 * 1024 * 1024


def row_name(row: int) -> str:
    """Name of a row's run directory.

    >>> row_name(12)
    'row-00012'
    """
    return f"row-{row:05}"


def row_number(directory: str) -> int | None:
    """The row whose run directory has that name; None for any other directory.

    >>> row_number("row-00012"), row_number("notes")
    (12, None)
    """
    number = directory.removeprefix("row-")
    return int(number) if number != directory and number.isascii() and number.isdecimal() else None


def inputs_hash(inputs: Mapping[str, Any]) -> str:
    """SHA-256 of a row's inputs, whatever the order of their keys."""
    return sha256(json.dumps(inputs, sort_keys=True, allow_nan=False).encode()).hexdigest()


class MapDirectory:
    """The directory of a map that this process owns; ``create`` and ``open`` are the ways to come here."""

    def __init__(
        self, path: Path, *, durability: str, clock: Clock, disk: Disk | None, take_over: bool = False
    ) -> None:
        """Take ownership; ``create`` and ``open`` are the ways to come here."""
        disk = disk or Disk()
        self._is_synced = check_durability(durability) == "full"
        self._clock = clock
        self._facts: dict[str, Any] = {}
        self._root = RunDirectory(disk, path)
        self.path = self._root.path
        try:
            self._lock = OwnerLock(disk, self._root, clock, take_over=take_over)
        except BaseException:  # an interrupt, too, must leave no directory open
            self._root.close()
            raise
        self._disk = FencedDisk(disk, self._lock.check)
        self._manifest = SealedFile(self._disk, self._root, MAP_NAME, is_synced=self._is_synced)
        try:
            self._lock.announce(self._disk, self._lock.token, is_fenced=True)
            sweep(self._disk, self._root.descriptor)
            sweep_runs(self._root)
        except BaseException:  # an interrupt, too, must free the lock
            self.close()
            raise

    @classmethod
    def create(
        cls,
        path: Path,
        *,
        durability: str,
        source_text: str,
        facts: Mapping[str, Any],
        rows: Sequence[Mapping[str, Any]],
        clock: Clock,
        disk: Disk | None = None,
        files: Mapping[str, bytes] = MappingProxyType({}),
    ) -> MapDirectory:
        """Begin a map in a directory, which is made if need be. The manifest is written last.

        It has status, start time and rows beside these facts. ``files`` are further files beside it, by name.
        """
        make_directory(disk or Disk(), path, is_synced=durability == "full")
        check_free(path, began=_BEGAN | files.keys(), whole=_WHOLE)
        found = cls(path, durability=durability, clock=clock, disk=disk)
        try:
            for name, data in files.items():
                found._write(name, data)
            found._begin(source_text, facts, rows)
        except BaseException:  # an interrupt, too, must free the lock
            found.close()
            raise
        return found

    @classmethod
    def open(
        cls, path: Path, *, durability: str, clock: Clock, disk: Disk | None = None, take_over: bool = False
    ) -> MapDirectory:
        """Take ownership of a map that was stopped."""
        facts = read_map(path)
        found = cls(path, durability=durability, clock=clock, disk=disk, take_over=take_over)
        found._facts = facts
        return found

    def _begin(self, source_text: str, facts: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
        for name in _WHOLE:
            if has_content(self.path, name):
                raise holds_one(self.path, name)
        lines = b"".join(json_bytes(inputs) + b"\n" for inputs in rows)
        for name, data in ((SOURCE_NAME, source_text.encode("utf-8", "surrogatepass")), (INPUTS_NAME, lines)):
            self._write(name, data)
        entries = [{"inputs": inputs_hash(inputs), "directory": row_name(row)} for row, inputs in enumerate(rows)]
        started = utc_text(self._clock.time())
        self.save({**facts, "status": "running", "start_time": started, "end_time": None, "rows": entries})

    @property
    def facts(self) -> dict[str, Any]:
        """The current manifest."""
        return dict(self._facts)

    def save(self, changes: Mapping[str, Any]) -> None:
        """Change entries of the manifest and write it."""
        facts = {"schema_version": 1, **self._facts, **changes}
        self._manifest.write(facts)
        self._facts = facts

    def finish(self, status: str, reason: str, marks: ResultMarks) -> None:
        """Write how the map ended, and what must be said of its results."""
        end = {"status": status, "reason": reason, "end_time": utc_text(self._clock.time())}
        self.save({**end, **marks.to_facts()})

    def note_sent(self, row: int) -> None:
        """Note that a row is about to be begun elsewhere, and that it must not be begun twice unasked."""
        self._write(_sent_name(row), b"")

    def was_sent(self, row: int) -> bool:
        """True if a row was begun elsewhere, and never came back."""
        return (self.path / _sent_name(row)).exists() and not (self.path / row_name(row)).exists()

    def put_row(self, row: int, files: Mapping[str, bytes], check: Callable[[Path], object]) -> None:
        """Write the run directory of a row that came back: whole, or not at all. See ``put_run``."""
        put_run(self._disk, self._root, row_name(row), files, check, is_synced=self._is_synced)
        with contextlib.suppress(OSError):  # the row's own directory says the same
            self._disk.remove(_sent_name(row), self._root.descriptor)

    def _write(self, name: str, data: bytes) -> None:
        disk, root = self._disk, self._root
        write_whole(disk, root.descriptor, name, data, directory=self.path, is_synced=self._is_synced)

    def check_owner(self) -> None:
        """Check that this process still owns the map."""
        self._lock.check()

    def close(self) -> None:
        """Give up ownership."""
        self._lock.release()
        self._root.close()


def _sent_name(row: int) -> str:
    return f"{row_name(row)}.sent"


def is_map(path: Path) -> bool:
    """True if a directory is one of a map."""
    with contextlib.suppress(OSError):  # who may not enter it is told by whatever reads it next
        return (path / MAP_NAME).is_file()
    return False


def is_evaluation(path: Path) -> bool:
    """True if a directory is one of a map whose rows are scored."""
    return is_map(path) and (path / EVALUATION_NAME).is_file()


def map_is_no_run(path: Path) -> RunNotFound:
    """The error of what takes the directory of a run, and is given that of a map."""
    kind = "an evaluation" if is_evaluation(path) else "a map"
    word = "evaluate" if is_evaluation(path) else "map"
    return RunNotFound(
        f"{path} is {kind}, and not the run of one of its rows",
        hint=f"a row is a run of its own, such as {path}/{row_name(0)}; `attractor-nb watch` and `doctor` show "
        f"the map, `attractor-nb {word} --resume` and {continue_call(path, 'directory')} resume it",
    )


def continue_call(path: Path, shown: str = "") -> str:
    """The call that continues the map of a directory.

    Args:
        path: The directory.
        shown: What stands for it; the path as text by default.
    """
    place = shown or f'"{path}"'
    if is_evaluation(path):
        return f"pipeline.resume_evaluation({place}, scorers)"
    return f"pipeline.resume_map({place})"


def read_map(path: Path) -> dict[str, Any]:
    """The manifest of a map; it needs no owner."""
    facts, problems = read_generations(path, MAP_NAME, MapManifest.from_plain)
    if facts is None and problems:
        raise CheckpointCorrupt(
            f"{path / MAP_NAME}: {'; '.join(problems)}",
            hint="each row is a run of its own: resume those that are not finished one by one",
        )
    if facts is None:
        raise RunNotFound(f"{path} holds no map: it has no {MAP_NAME}", hint="name the map's own directory")
    return facts


def read_map_source(path: Path) -> str:
    """The DOT text that a map keeps."""
    data = read_plain_file(path / SOURCE_NAME, max_bytes=_MAX_SOURCE_BYTES)
    if data is None:
        raise RunNotFound(
            f"{path} does not hold the pipeline's source",
            hint="load the pipeline yourself: Pipeline(path).resume_map(directory)",
        )
    return data.decode("utf-8", "surrogatepass")


def read_inputs(path: Path, facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The inputs of a map's rows, each compared with its hash in the manifest."""
    data = read_plain_file(path / INPUTS_NAME, max_bytes=_MAX_INPUTS_BYTES) or b""
    lines = data.split(b"\n")[:-1]
    entries: Sequence[Mapping[str, Any]] = facts["rows"]
    if len(lines) != len(entries):
        raise _damaged(path, f"has {len(lines)} rows, and {MAP_NAME} has {len(entries)}")
    rows: list[dict[str, Any]] = []
    for row, (line, entry) in enumerate(zip(lines, entries, strict=True)):
        try:
            inputs = read_json(line)
        except JsonProblem as problem:
            raise _damaged(path, f"row {row}: {problem}") from None
        if not isinstance(inputs, dict) or inputs_hash(cast("dict[str, Any]", inputs)) != entry["inputs"]:
            raise _damaged(path, f"row {row} is not what {MAP_NAME} knows")
        rows.append(cast("dict[str, Any]", inputs))
    return rows


def _damaged(path: Path, problem: str) -> CheckpointCorrupt:
    return CheckpointCorrupt(
        f"{path / INPUTS_NAME}: {problem}", hint="give the inputs again: pipeline.resume_map(directory, params=…)"
    )


MapStatus = Literal["running", "resumed", "completed", "failed", "interrupted"]


class MapRow(Record, frozen=True):
    """One row of a map."""

    inputs: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]  #: SHA-256 of its inputs as JSON.
    #: Name of its run directory in the map's directory.
    directory: Annotated[str, msgspec.Meta(pattern="^row-[0-9]+$")]


class MapManifest(Record, frozen=True, kw_only=True):
    """The pipeline, rows and status of a map. Unknown keys are allowed.

    The state of each row is in its own run directory alone.
    """

    schema_version: Literal[1] = 1  #: Version of this form.
    map_id: str = ""  #: The map.
    pipeline_name: str = ""  #: Name of the pipeline.
    graph_hash: str = ""  #: Content hash of the graph that runs.
    start_time: str = ""  #: When it began, ISO 8601 UTC.
    end_time: str | None = None  #: When it ended; None while it is active.
    status: MapStatus = "running"  #: Its status.
    backend: str = ""  #: Backend of prompts, as in a run's manifest.
    backend_facts: dict[str, Any] = msgspec.field(default_factory=no_values)  #: As in a run's manifest.
    #: As in a run's manifest, of all rows together.
    answers: Answers = ""
    is_simulated: bool = False
    backends: tuple[str, ...] = ()
    stand_ins: dict[str, StandIn] = msgspec.field(default_factory=no_values)
    outputs: tuple[str, ...] = ()  #: Context values that the results keep.
    is_source_redacted: bool = False  #: ``pipeline.dot`` lacks a secret that the source had.
    rows: list[MapRow]  #: Its rows, in order.


# Transfer of run directories: read where a run was, and put in their place here, whole or not at all.

MAX_RUN_BYTES: Final = 256 * 1024 * 1024
MAX_RUN_FILES: Final = 20_000
_LOG_NAME = "events.jsonl"


def read_tree(root: Path) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The plain files below a directory, by relative path, clean of secrets; and what else there is, by name."""
    files: dict[str, bytes] = {}
    others: list[str] = []
    room = MAX_RUN_BYTES
    for name, facts in entries_below(root):
        if not stat.S_ISREG(facts.st_mode):
            others.append(name)
            continue
        data = read_plain_file(root / name, max_bytes=MAX_RUN_BYTES) or b""
        room -= len(data)
        if room < 0 or len(files) >= MAX_RUN_FILES:
            raise StorageError(
                f"the run has more than {MAX_RUN_BYTES >> 20} MiB or {MAX_RUN_FILES:,} files, "
                "too much to be sent together",
                path=name,
                hint='ship="stages" brings the files of each stage',
            )
        files[name] = data
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
