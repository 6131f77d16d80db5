"""Which values a context keeps: JSON values, copied so that nobody else can change them (spec 5.1; ruling 31).

It knows no context and no run. What cannot be kept is refused with its key, the reason and a remedy.
"""

from __future__ import annotations

import math
from typing import Any, cast

from attractor_nb.errors import ContextValueError
from attractor_nb.model.calls.attachment import Attachment
from attractor_nb.redaction import may_hold

MAX_DEPTH = 64
MIN_INTEGER, MAX_INTEGER = -(2**63), 2**64 - 1
REFERENCE_TYPE = "artifact_ref"
SCALARS = frozenset({str, int, float, bool, type(None)})


def is_plain(key: object, value: object) -> bool:
    """Whether key and value can be kept without a closer look, as nearly all can."""
    if type(key) is not str or not key or not key.isascii():
        return False
    if type(value) is str:
        return len(value) < 1024 and value.isascii() and not may_hold(value)
    return (type(value) is int and -(2**31) < value < 2**31) or value is True or value is False


def is_reference(value: Any) -> bool:
    """Whether a recorded value is a reference to an artifact (run-directory 5)."""
    if not isinstance(value, dict):
        return False
    entries = cast("dict[str, Any]", value)
    return entries.get("type") == REFERENCE_TYPE and "artifact_id" in entries


def is_encodable(text: str) -> bool:
    """Whether a text has a form in UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def copied(value: Any, key: str, depth: int) -> tuple[Any, int]:
    """A deep copy of a JSON value and about its size in bytes."""
    kind = type(value)  # pyright: ignore[reportUnknownVariableType] - a cast is a call
    if kind is str:
        return value, _text_size(value, key)
    if value is None or kind is bool:
        return value, 5
    if kind is int:
        if not MIN_INTEGER <= value <= MAX_INTEGER:
            raise _refused(key, "it is an integer of more than 64 bits", "keep it as text")
        return value, 8
    if kind is float:
        if not math.isfinite(value):
            raise _refused(key, f"{value} has no JSON form", "use null, or a text")
        return value, 16
    if depth >= MAX_DEPTH:
        raise _refused(key, f"it is nested deeper than {MAX_DEPTH} levels", "flatten it; a cycle cannot be kept")
    if kind is dict:
        return _copied_dict(value, key, depth)
    if kind is list:
        return _copied_list(value, key, depth)
    return _copied_other(value, key, depth)


def _copied_other(value: Any, key: str, depth: int) -> tuple[Any, int]:
    if isinstance(value, Attachment):
        return _copied_dict(value.to_plain(), key, depth)
    kind = cast("type[Any]", type(value))
    raise _refused(key, f"{kind.__name__} values do not survive a JSON round trip", _REMEDIES.get(kind, _REMEDY))


_REMEDY = "use text, numbers, booleans, null, lists and dicts with text keys"
_REMEDIES = {
    tuple: "use a list",
    set: "use a list",
    frozenset: "use a list",
    bytes: "decode it, write it to the stage directory, or give an image or a PDF as an Attachment",
}


def _copied_dict(value: dict[Any, Any], key: str, depth: int) -> tuple[dict[str, Any], int]:
    if is_reference(value):
        raise _refused(key, f'dicts with "type": "{REFERENCE_TYPE}" stand for stored artifacts', "rename a key")
    copy: dict[str, Any] = {}
    total = 2
    for name, item in value.items():
        if type(name) is not str:
            raise _refused(key, f"dict keys must be text, not {type(name).__name__}", _REMEDY)
        total += 4 + (len(name) if name.isascii() else _text_size(name, key) - 2)
        if type(item) is str and item.isascii():  # as most are, and a call for each would be most of the time
            copy[name] = item
            total += len(item) + 2
        else:
            copy[name], size = copied(item, key, depth + 1)
            total += size
    return copy, total


def _copied_list(value: list[Any], key: str, depth: int) -> tuple[list[Any], int]:
    copy: list[Any] = []
    total = 2
    for item in value:
        if type(item) is str and item.isascii():
            copy.append(item)
            total += len(item) + 3
        else:
            kept, size = copied(item, key, depth + 1)
            copy.append(kept)
            total += size + 1
    return copy, total


def _text_size(text: str, key: str) -> int:
    if text.isascii():
        return len(text) + 2
    try:
        return len(text.encode()) + 2
    except UnicodeEncodeError:
        raise _refused(key, "the text has a lone surrogate", "decode it with errors='replace'") from None


def _refused(key: str, what: str, hint: str) -> ContextValueError:
    return ContextValueError(f"context key {key!r} cannot keep this value: {what}", hint=hint)
