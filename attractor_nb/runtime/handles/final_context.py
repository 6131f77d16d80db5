"""The context of a run that has ended: read at leisure, from whatever directory holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attractor_nb.context import Context, is_reference
from attractor_nb.engine.system_clock import SystemClock
from attractor_nb.errors import OptionError
from attractor_nb.interrupts import held_interrupts
from attractor_nb.storage.files.disk import Disk
from attractor_nb.storage.run_directory import RunDirectory
from attractor_nb.storage.stages.artifact_store import ArtifactStore

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from attractor_nb.context import ValueStore


class StoredValues:
    """Large values of a run that has ended, read from its directory when somebody asks for them."""

    def __init__(self, logs_root: Path) -> None:
        self._logs_root = logs_root

    def externalize(self, key: str, value: Any) -> dict[str, Any]:  # noqa: ARG002 - the interface of value stores
        """Refuse: the directory belongs to nobody now.

        Raises:
            OptionError: Always.
        """
        raise OptionError(f"the run has ended; {key!r} is too large to be kept in its context")

    def resolve(self, reference: Mapping[str, Any]) -> Any:
        """The value behind a reference."""
        disk = Disk()
        with held_interrupts():  # or the open directory would be nobody's to close
            root = RunDirectory(disk, self._logs_root)
            try:
                return ArtifactStore(SystemClock(), disk=disk, root=root).resolve(reference)
            finally:
                root.close()

    def whole(self, value: Any) -> Any:
        """A recorded value, read where the record only refers to it."""
        return self.resolve(value) if is_reference(value) else value


def ended_context(values: Mapping[str, Any], logs: tuple[str, ...], store: ValueStore) -> Context:
    """A context of recorded values; large ones stay where they are until they are read."""
    ended = Context(store=store)
    ended.restore(values, logs)
    return ended
