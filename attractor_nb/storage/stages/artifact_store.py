"""Storage of large values (spec 5.5; run-directory.md section 5; rulings 31 and 32).

A store with a directory writes what is larger than the threshold to ``artifacts/<id>.json``; the rest
stays in memory. What the context hands over is always written, under the SHA-256 of its JSON text:
the log refers to it, so it is on disk before the record that does.
"""

from __future__ import annotations

import contextlib
import os
import threading
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from attractor_nb.context import ARTIFACT_THRESHOLD_BYTES
from attractor_nb.errors import CheckpointCorrupt, StorageError
from attractor_nb.model.redacted import REFERENCE_TYPE
from attractor_nb.model.stop import is_shortage
from attractor_nb.redaction import redacted, redacted_value
from attractor_nb.storage.files.atomic import read_plain_file, sweep, write_whole
from attractor_nb.storage.files.disk import Disk, entry_names, storage_error
from attractor_nb.storage.files.strict_json import MAX_BYTES, JsonProblem, json_bytes, read_json, read_own_json

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from attractor_nb.protocols import Clock
    from attractor_nb.storage.run_directory import RunDirectory

ARTIFACTS_NAME = "artifacts"
_SUFFIX = ".json"
_MAX_ID_LENGTH = 200


class ArtifactInfo(msgspec.Struct, frozen=True):
    """The facts of an artifact."""

    id: str  #: Its id.
    name: str  #: Name for users; the id for one that an earlier process stored.
    size_bytes: int  #: Size of its JSON text.
    stored_at: float  #: When, in seconds since 1970 (UTC).
    is_file_backed: bool  #: True if it is in a file.


class ArtifactStore:
    """Named storage for large values; safe to use from several threads.

    Without a run directory everything stays in memory.
    """

    def __init__(
        self, clock: Clock, *, disk: Disk | None = None, root: RunDirectory | None = None, is_synced: bool = False
    ) -> None:
        """Open the store, and list what an earlier process left in ``artifacts/``."""
        self._clock = clock
        self._disk = disk or Disk()
        self._root = root
        self._is_synced = is_synced
        self._lock = threading.RLock()
        self._infos: dict[str, ArtifactInfo] = {}
        self._kept: dict[str, bytes] = {}
        if root is not None:
            self._infos.update((info.id, info) for info in self._found_files())

    def store(self, artifact_id: str, name: str, data: Any) -> ArtifactInfo:
        """Store a JSON value under an id, replacing what was there."""
        _check_id(artifact_id)
        try:
            text = json_bytes(redacted_value(data))
        except (TypeError, ValueError) as error:
            raise StorageError(f"artifact {artifact_id!r} has no JSON form: {error}") from None
        is_file_backed = self._root is not None and len(text) > ARTIFACT_THRESHOLD_BYTES
        return self._store_text(artifact_id, name, text, is_file_backed=is_file_backed)

    def retrieve(self, artifact_id: str) -> Any:
        """The value of an artifact."""
        with self._lock:
            if artifact_id not in self._infos:
                raise StorageError(f"there is no artifact {artifact_id!r}", hint="list() names those there are")
            text = self._kept.get(artifact_id)
        if text is None:
            text = self._read_file(artifact_id)
        try:
            return read_json(text)
        except JsonProblem as problem:
            raise StorageError(f"artifact {artifact_id} {problem}") from None

    def has(self, artifact_id: str) -> bool:
        """True if there is an artifact of that id."""
        return artifact_id in self._infos

    def list(self) -> list[ArtifactInfo]:
        """All artifacts, oldest first."""
        with self._lock:
            return list(self._infos.values())

    def remove(self, artifact_id: str) -> None:
        """Forget an artifact and remove its file."""
        with self._lock:
            info = self._infos.get(artifact_id)
            if info is None:
                raise StorageError(f"there is no artifact {artifact_id!r}", hint="list() names those there are")
            if info.is_file_backed:
                self._remove_file(artifact_id)
            del self._infos[artifact_id]
            self._kept.pop(artifact_id, None)

    def clear(self) -> None:
        """Forget all artifacts and remove their files."""
        with self._lock:
            for artifact_id in list(self._infos):
                self.remove(artifact_id)

    def __len__(self) -> int:
        return len(self._infos)

    def externalize(self, key: str, value: Any) -> dict[str, Any]:
        """Store a context value; returns the reference to it (run-directory.md, 5)."""
        text = json_bytes(value)
        artifact_id = sha256(text).hexdigest()
        with self._lock:
            if artifact_id not in self._infos:
                self._store_text(artifact_id, key, text, is_file_backed=self._root is not None)
        return {
            "type": REFERENCE_TYPE,
            "artifact_id": artifact_id,
            "size_bytes": len(text),
            "summary": f"Externalized value for '{key}'",
        }

    def resolve(self, reference: Mapping[str, Any]) -> Any:
        """The value behind a reference."""
        artifact_id = str(reference["artifact_id"])
        text = self._kept.get(artifact_id)
        if text is None:
            try:
                _check_id(artifact_id)
                text = self._read_file(artifact_id)
            except StorageError as error:
                if is_shortage(error):
                    raise
                raise CheckpointCorrupt(error.message, hint=error.hint) from error
            if sha256(text).hexdigest() != artifact_id:
                raise CheckpointCorrupt(
                    f"artifact {artifact_id[:8]} is not what the run stored",
                    hint=f"restore {ARTIFACTS_NAME}/{artifact_id}{_SUFFIX} in the run directory",
                )
        return read_own_json(text)

    def _store_text(self, artifact_id: str, name: str, text: bytes, *, is_file_backed: bool) -> ArtifactInfo:
        info = ArtifactInfo(artifact_id, redacted(name), len(text), self._clock.time(), is_file_backed)
        with self._lock:
            if is_file_backed:
                self._write_file(artifact_id, text)
                self._kept.pop(artifact_id, None)
            else:
                if (old := self._infos.get(artifact_id)) and old.is_file_backed:
                    self._remove_file(artifact_id)
                self._kept[artifact_id] = text
            self._infos[artifact_id] = info
        return info

    @contextlib.contextmanager
    def _directory(self, *, is_made: bool = False) -> Generator[int]:
        """The open ``artifacts`` directory."""
        assert self._root is not None, "only a store with a directory has files"
        try:
            if is_made:
                with contextlib.suppress(FileExistsError):
                    self._disk.make_directory(ARTIFACTS_NAME, self._root.descriptor)
                    if self._is_synced:
                        self._disk.sync(self._root.descriptor)
            descriptor = self._disk.open_directory(ARTIFACTS_NAME, self._root.descriptor)
        except OSError as error:
            raise storage_error(error, "open", self._root.path / ARTIFACTS_NAME) from error
        try:
            yield descriptor
        finally:
            self._disk.close(descriptor)

    def _write_file(self, artifact_id: str, text: bytes) -> None:
        assert self._root is not None, "only a store with a directory has files"
        with self._directory(is_made=True) as parent:
            write_whole(
                self._disk,
                parent,
                artifact_id + _SUFFIX,
                text,
                directory=self._root.path / ARTIFACTS_NAME,
                is_synced=self._is_synced,
            )

    def _read_file(self, artifact_id: str) -> bytes:
        with self._directory() as parent:
            text = read_plain_file(artifact_id + _SUFFIX, parent, directory=ARTIFACTS_NAME, max_bytes=MAX_BYTES)
        if text is None:
            raise StorageError(f"the file of artifact {artifact_id[:8]} is gone")
        return text

    def _remove_file(self, artifact_id: str) -> None:
        with self._directory() as parent:
            try:
                self._disk.remove(artifact_id + _SUFFIX, parent)
            except FileNotFoundError:
                pass
            except OSError as error:
                raise storage_error(error, "remove", f"{ARTIFACTS_NAME}/{artifact_id}{_SUFFIX}") from error

    def sweep(self) -> None:
        """Remove what a killed process left half written; only the owner of the run may."""
        with contextlib.suppress(StorageError), self._directory() as parent:
            sweep(self._disk, parent)

    def _found_files(self) -> list[ArtifactInfo]:
        assert self._root is not None, "only a store with a directory has files"
        found: list[ArtifactInfo] = []
        try:
            parent = self._disk.open_directory(ARTIFACTS_NAME, self._root.descriptor)
        except FileNotFoundError:
            return found
        except OSError as error:
            raise storage_error(error, "open", self._root.path / ARTIFACTS_NAME) from error
        try:
            for name in entry_names(parent):
                if name.endswith(_SUFFIX):
                    facts = os.stat(name, dir_fd=parent, follow_symlinks=False)
                    artifact_id = name.removesuffix(_SUFFIX)
                    found.append(
                        ArtifactInfo(artifact_id, artifact_id, facts.st_size, facts.st_mtime, is_file_backed=True)
                    )
        finally:
            self._disk.close(parent)
        return sorted(found, key=lambda info: (info.stored_at, info.id))


def _check_id(artifact_id: str) -> None:
    is_safe = artifact_id.isascii() and all(char.isalnum() or char in "._-" for char in artifact_id)
    if not artifact_id or not is_safe or artifact_id.startswith(".") or len(artifact_id) > _MAX_ID_LENGTH:
        raise StorageError(
            f"{artifact_id[:80]!r} is not an artifact id", hint="use letters, digits, dots, dashes and underscores"
        )
