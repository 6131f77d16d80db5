"""A stage's result as the cache keeps it, and what is recorded of a look into the cache."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from attractor_nb.model.calls.call_content import CallInputs, InputChange
from attractor_nb.model.outcome import Outcome, Usage
from attractor_nb.model.record import Record, always

SCHEMA_VERSION: Final = 1
INPUTS_FILE: Final = "inputs.json"
"""What a stage's directory says of its look into the cache."""
_NO_PARTS: Final = frozenset({"", ".", "..", "visits"})


class CachedStage(msgspec.Struct, frozen=True):
    """The result of a stage that succeeded.

    Attributes:
        inputs: What went into it.
        outcome: How it ended, without usage.
        usage: What it had consumed; None when it did not say.
        changes: Context values that its handler set by itself, beside those of the outcome.
        logs: Entries that it appended to the run log.
        files: What it left in its directory, by path.
        conversation: Under ``full`` fidelity: what its thread had said then; empty when it saved nothing.
        run_id: The run that executed it.
        time: When, in seconds since 1970 (UTC).
    """

    inputs: CallInputs
    outcome: Outcome
    usage: Usage | None = None
    changes: Mapping[str, Any] = {}
    logs: tuple[str, ...] = ()
    files: Mapping[str, bytes] = {}
    conversation: str = ""
    run_id: str = ""
    time: float = 0.0

    def to_plain(self) -> dict[str, Any]:
        """JSON values; files as text where they are text."""
        return {
            "schema_version": SCHEMA_VERSION,
            "run_id": self.run_id,
            "time": self.time,
            "kind": self.inputs.kind,
            "node": self.inputs.node_id,
            "inputs": dict(self.inputs.values),
            "outcome": self.outcome.to_plain(),
            "usage": None if self.usage is None else self.usage.to_plain(),
            "changes": dict(self.changes),
            "logs": list(self.logs),
            "files": {path: _packed(data) for path, data in self.files.items()},
            "conversation": self.conversation,
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> CachedStage:
        """The inverse of ``to_plain``.

        Raises:
            ValueError: It has another form; the message completes "it …".
        """
        if plain.get("schema_version") != SCHEMA_VERSION:
            raise ValueError(f"is of another version than {SCHEMA_VERSION}")
        try:
            usage = plain["usage"]
            return cls(
                CallInputs(str(plain["kind"]), str(plain["node"]), dict(plain["inputs"])),
                Outcome.from_plain(plain["outcome"]),
                None if usage is None else Usage.from_plain(usage),
                dict(plain["changes"]),
                tuple(str(entry) for entry in plain["logs"]),
                {_checked(path): _unpacked(data) for path, data in plain["files"].items()},
                str(plain["conversation"]),
                str(plain["run_id"]),
                float(plain["time"]),
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"has a wrong shape ({type(error).__name__}: {error})") from None


class CacheLook(Record, frozen=True):
    """What a look into the cache came to, as the stage's directory keeps it (``inputs.json``).

    Attributes:
        key: Digest of the inputs; empty when the stage is not one for the cache.
        inputs: The first digits of each input's digest, by name.
        is_hit: The result came from the cache.
        refused: Why the stage is not one for the cache, or empty.
        changes: For a stage that was executed: what differs from the nearest earlier entry.
        compared_with: The run of that entry, or of the one that was taken; empty when there was none.
        not_kept: Why its result was not kept, or empty.
    """

    key: str = ""
    inputs: Mapping[str, str] = {}
    is_hit: bool = always(value=False)
    refused: str = ""
    changes: tuple[InputChange, ...] = ()
    compared_with: str = ""
    not_kept: str = ""


def _checked(path: str) -> str:
    """A path that stays in the stage's directory, and out of its earlier visits."""
    if not path or any(part in _NO_PARTS or "\0" in part for part in path.split("/")):
        raise ValueError(f"names the file {path!r}")
    return path


def _packed(data: bytes) -> str | dict[str, str]:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _unpacked(data: Any) -> bytes:
    return data.encode() if isinstance(data, str) else base64.b64decode(data["base64"], validate=True)
