"""A stage's result as the cache keeps it, and what is recorded of a look into the cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from attractor_nb.model.calls.call_content import CallInputs, InputChange
from attractor_nb.model.outcome import Outcome, Usage
from attractor_nb.model.record import Record, always

INPUTS_FILE: Final = "inputs.json"
"""What a stage's directory says of its look into the cache."""
_NO_PARTS: Final = frozenset({"", ".", "..", "visits"})


class FileBytes(Record, frozen=True):
    """What a file holds that is no text."""

    base64: bytes


class CachedStage(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The result of a stage that succeeded."""

    schema_version: Literal[1] = 1  #: Version of this form.
    run_id: str = ""  #: The run that executed it.
    time: float = 0.0  #: When, in seconds since 1970 (UTC).
    kind: str  #: What kind of stage it is.
    node_id: str = msgspec.field(name="node")  #: Its node; ``node`` in the entry.
    values: Mapping[str, Any] = msgspec.field(name="inputs")  #: What went into it, by name; ``inputs`` in the entry.
    outcome: Outcome  #: How it ended, without usage.
    usage: Usage | None = None  #: What it had consumed; None when it did not say.
    changes: Mapping[str, Any] = {}  #: Context values that its handler set by itself, beside those of the outcome.
    logs: tuple[str, ...] = ()  #: Entries that it appended to the run log.
    files: Mapping[str, str | FileBytes] = {}  #: What it left in its directory, by path.
    conversation: str = ""  #: Under ``full`` fidelity: what its thread had said then; empty when it saved nothing.

    def __post_init__(self) -> None:
        """Refuse files outside the stage's directory, and in that of its earlier visits."""
        for path in self.files:
            if not path or any(part in _NO_PARTS or "\0" in part for part in path.split("/")):
                raise ValueError(f"names the file {path!r}")

    @property
    def inputs(self) -> CallInputs:
        """What went into it."""
        return CallInputs(self.kind, self.node_id, self.values)

    @property
    def file_contents(self) -> dict[str, bytes]:
        """What it left in its directory, by path."""
        return {path: data.encode() if isinstance(data, str) else data.base64 for path, data in self.files.items()}


def file_values(contents: Mapping[str, bytes]) -> dict[str, str | FileBytes]:
    """Files as an entry has them, by path: as text where they are text."""
    return {path: _file_value(data) for path, data in contents.items()}


def _file_value(data: bytes) -> str | FileBytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return FileBytes(data)


class CacheLook(Record, frozen=True):
    """What a look into the cache came to, as the stage's directory keeps it (``inputs.json``)."""

    key: str = ""  #: Digest of the inputs; empty when the stage is not one for the cache.
    inputs: Mapping[str, str] = {}  #: The first digits of each input's digest, by name.
    is_hit: bool = always(value=False)  #: The result came from the cache.
    refused: str = ""  #: Why the stage is not one for the cache, or empty.
    #: For a stage that was executed: what differs from the nearest earlier entry.
    changes: tuple[InputChange, ...] = ()
    compared_with: str = ""  #: The run of that entry, or of the one that was taken; empty when there was none.
    not_kept: str = ""  #: Why its result was not kept, or empty.
