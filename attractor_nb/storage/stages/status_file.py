"""``status.json`` in both directions (appendix C; status-file-contract.md; ruling 27).

The file may have been written by an untrusted agent: whatever breaks the contract is
named precisely and believed in no part. It knows the contract, not when a file counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec

from attractor_nb.context import Context
from attractor_nb.errors import ContextValueError, StatusFileError, StorageError
from attractor_nb.model.inputs import RESERVED_PREFIXES, sets_engine_key
from attractor_nb.model.outcome import Outcome, StageStatus, Usage, read_status, usage_problem
from attractor_nb.model.texts import did_you_mean
from attractor_nb.redaction import may_hold, redacted, redacted_value
from attractor_nb.storage.attempt_files import MAX_STATUS_BYTES
from attractor_nb.storage.files.atomic import read_plain_file
from attractor_nb.storage.files.strict_json import JsonProblem, json_page, read_json

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

MAX_NAMED = 3
"""Most ignored keys that are named."""


class StatusText(msgspec.Struct, frozen=True, gc=False):
    """The text of a status.json, composed when it is called: of a run in memory it may never be read."""

    outcome: Outcome  #: Outcome of the attempt.
    visit: int  #: Visit of the stage, by number.
    attempt: int  #: Attempt of the visit, by number.
    duration: float = 0.0  #: Seconds that it took.

    def __call__(self) -> str:
        """The five keys of the contract, and what we add (ruling 27)."""
        outcome = self.outcome
        plain = {
            "outcome": str(outcome.status),
            "preferred_next_label": outcome.preferred_label,
            "suggested_next_ids": list(outcome.suggested_next_ids),
            "context_updates": dict(outcome.context_updates),
            "notes": outcome.notes,
            **outcome.without_updates().to_plain(),
            "attempt": self.attempt,
            "visit": self.visit,
            "duration_ms": round(self.duration * 1000),
        }
        return json_page(plain) + "\n"


def redacted_status(text: str) -> str:
    """The text of a status.json without secrets, those spelled with escapes included."""
    if not may_hold(text) and "\\u" not in text:
        return text
    try:
        plain: Any = read_json(text, max_bytes=MAX_STATUS_BYTES)
    except JsonProblem:
        return redacted(text)
    clean = redacted_value(plain)
    return text if clean is plain else json_page(clean) + "\n"


def read_status_file(source: Path | str, *, targets: Collection[str], node_ids: Collection[str] = ()) -> Outcome:
    """The outcome that a status.json declares.

    Args:
        source: The file, or its text.
        targets: Ids that the node's outgoing edges lead to.
        node_ids: Ids of the graph's nodes: an object under one of them sets no response and no verdict of it.
    """
    try:
        plain = read_json(_content(source), max_bytes=MAX_STATUS_BYTES)
    except JsonProblem as problem:
        raise StatusFileError(f"status.json {problem}") from None
    if not isinstance(plain, dict):
        raise StatusFileError(f"status.json is {_kind(plain)} where an object was expected")
    return outcome_from_status(cast("dict[str, Any]", plain), targets=targets, node_ids=node_ids)


def outcome_from_status(plain: dict[str, Any], *, targets: Collection[str], node_ids: Collection[str] = ()) -> Outcome:
    """The outcome that the values of a status.json, or a verdict of the same shape, declare."""
    updates, ignored = _context_updates(plain, node_ids)
    notes = _text(plain, "notes")
    if ignored:
        names = ", ".join(" ".join(key.split())[:80] for key in ignored[:MAX_NAMED])
        more = f" and {len(ignored) - MAX_NAMED} more" if len(ignored) > MAX_NAMED else ""
        notes = f"{notes}; context_updates ignored, which the engine alone sets: {names}{more}".removeprefix("; ")
    return Outcome(
        _status(plain),
        preferred_label=_either(plain, "preferred_next_label", "preferred_label"),
        suggested_next_ids=_suggested_ids(plain, targets),
        context_updates=updates,
        notes=notes,
        failure_reason=_text(plain, "failure_reason"),
        is_terminal=_flag(plain, "is_terminal"),
        usage=_usage(plain),
    )


def _content(source: Path | str) -> bytes | str:
    if isinstance(source, str):
        return source
    try:
        data = read_plain_file(source, max_bytes=MAX_STATUS_BYTES)
    except StorageError as error:
        raise StatusFileError(error.message, hint=error.hint) from None
    if data is None:
        raise StatusFileError(f"there is no {source}")
    return data


def _status(plain: dict[str, Any]) -> StageStatus:
    found = {key: _text(plain, key) for key in ("outcome", "status") if plain.get(key) is not None}
    if not found:
        raise StatusFileError('status.json has no "outcome"', hint=f'add "outcome": one of {", ".join(StageStatus)}')
    read = {key: read_status(word) for key, word in found.items()}
    for key, status in read.items():
        if status is None:
            word, known = found[key][:80], ", ".join(StageStatus)
            near = did_you_mean(word, StageStatus) or f"; it is one of {known}"
            raise StatusFileError(f"status.json: {key} {word!r} is not known{near}", hint=f"use one of {known}")
    first, *others = [status for status in read.values() if status is not None]
    if others and others[0] is not first:
        raise StatusFileError(f'status.json says both "outcome": {first} and "status": {others[0]}')
    return first


def _either(plain: dict[str, Any], name: str, alias: str) -> str:
    value, other = _text(plain, name), _text(plain, alias)
    if value and other and value != other:
        raise StatusFileError(f"status.json: {name} and {alias} differ")
    return value or other


def _text(plain: dict[str, Any], name: str) -> str:
    value = plain.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _wrong(name, value, "a text")
    return value


def _flag(plain: dict[str, Any], name: str) -> bool:
    value = plain.get(name, False)
    if not isinstance(value, bool):
        raise _wrong(name, value, "true or false")
    return value


def _suggested_ids(plain: dict[str, Any], targets: Collection[str]) -> tuple[str, ...]:
    value = plain.get("suggested_next_ids")
    if value is None:
        return ()
    if not isinstance(value, list):
        raise _wrong("suggested_next_ids", value, "a list of node ids")
    for item in cast("list[Any]", value):
        if not isinstance(item, str):
            raise _wrong("suggested_next_ids", item, "a node id", "holds")
        if item not in targets:
            known = ", ".join(sorted(targets)) or "none"
            raise StatusFileError(
                f"status.json: suggested_next_ids names {item[:80]!r}, which no outgoing edge leads to",
                hint=f"outgoing edges lead to: {known}",
            )
    return tuple(cast("list[str]", value))


def _context_updates(plain: dict[str, Any], node_ids: Collection[str]) -> tuple[dict[str, Any], list[str]]:
    """The updates, and the keys among them that are the engine's: these do not count."""
    value = plain.get("context_updates")
    if value is None:
        return {}, []
    if not isinstance(value, dict):
        raise _wrong("context_updates", value, "an object")
    updates = cast("dict[str, Any]", value)
    for key in updates:
        if key.startswith(RESERVED_PREFIXES):
            raise StatusFileError(
                f"status.json: context_updates sets {key[:80]!r}, which belongs to the engine",
                hint=f"use keys that do not begin with {' or '.join(RESERVED_PREFIXES)}",
            )
    try:
        Context(updates)
    except ContextValueError as error:
        raise StatusFileError(f"status.json: {error.message}", hint=error.hint) from None
    ignored = [
        key for key, value in updates.items() if sets_engine_key(key, value) or sets_engine_key(key, value, node_ids)
    ]
    return {key: value for key, value in updates.items() if key not in ignored} if ignored else updates, ignored


def _usage(plain: dict[str, Any]) -> Usage | None:
    value = plain.get("usage")
    if value is None:
        return None
    if not isinstance(value, dict):
        raise _wrong("usage", value, "an object")
    entries = cast("dict[str, Any]", value)
    usage = Usage(
        entries.get("input_tokens", 0),
        entries.get("output_tokens", 0),
        entries.get("cost_usd"),
        entries.get("calls", 0),
        entries.get("cached_tokens", 0),
        entries.get("unpriced_calls", 0),
        entries.get("estimated_calls", 0),
    )
    if problem := usage_problem(usage):
        raise StatusFileError(f"status.json: usage cannot be counted: {problem}")
    return usage


def _wrong(name: str, value: Any, expected: str, verb: str = "is") -> StatusFileError:
    return StatusFileError(f"status.json: {name} {verb} {_kind(value)} where {expected} was expected")


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return kinds.get(cast("type[Any]", type(value)), "a number")
