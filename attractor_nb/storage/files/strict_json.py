"""A strict reader of JSON texts, and the one way in which we write them.

What comes from a disk has an unknown author: duplicate keys, NaN, bottomless nesting and
texts without end are refused, with the place. It must not know what the JSON is about.
"""

from __future__ import annotations

import json
from math import isinf
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from attractor_nb.model.bounded_json import MAX_DEPTH, is_too_deep

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_BYTES = 256 * 1024 * 1024


class JsonProblem(ValueError):
    """The error for a text that is not acceptable JSON; its words complete "it …".

    It never reaches a user: each reader turns it into its own error.
    """


def read_json(data: bytes | str, *, max_bytes: int = MAX_BYTES) -> Any:
    """The value of a JSON text."""
    text = _decoded(data, max_bytes) if isinstance(data, bytes) else data
    if len(text) > max_bytes:
        raise JsonProblem(f"is larger than {_size(max_bytes)}")
    if is_too_deep(text):
        raise JsonProblem(f"is nested deeper than {MAX_DEPTH} levels")
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise JsonProblem(f"is not JSON: {error.msg.lower()} at {error.lineno}:{error.colno}") from None
    except JsonProblem:
        raise
    except ValueError:  # an integer of more digits than Python converts
        raise JsonProblem("has a number that is too long") from None


def read_own_json(data: bytes) -> Any:
    """The value of a JSON text that ``json_bytes`` made, as its checksum proves, in a tenth of the time."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):  # a lone surrogate, which msgspec does not read
        return read_json(data)


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_ASCII_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


def json_bytes(value: Any) -> bytes:
    """A value as compact UTF-8 JSON; lone surrogates are escaped, so that every text survives."""
    try:
        return _ENCODER.encode(value).encode()
    except UnicodeEncodeError:
        return _ASCII_ENCODER.encode(value).encode()


def json_line(plain: Mapping[str, Any]) -> bytes:
    """An object as compact JSON in the shortest time; NaN and infinities become null."""
    try:
        return msgspec.json.encode(plain)
    except UnicodeEncodeError:  # a lone surrogate, which only escapes can spell
        return json_bytes(plain)


def json_page(plain: Mapping[str, Any]) -> str:
    """An object as indented JSON for users; values without a JSON form are described.

    Evidence is written even of what is refused a moment later: this raises for no value.
    """
    try:
        return msgspec.json.format(msgspec.json.encode(plain, enc_hook=_described), indent=2).decode()
    except (UnicodeEncodeError, TypeError, RecursionError):  # a lone surrogate, a strange key, what contains itself
        pass
    try:
        return json.dumps(plain, indent=2, default=_described)
    except (ValueError, RecursionError):
        known = {key: value if isinstance(value, str | int) else _described(value) for key, value in plain.items()}
        return json.dumps(known, indent=2)


def _described(value: object) -> str:
    """The representation of a value that has no form in JSON, whatever its class does."""
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - it is foreign code
        return f"<{type(value).__name__}>"


def _decoded(data: bytes, max_bytes: int) -> str:
    if len(data) > max_bytes:
        raise JsonProblem(f"is larger than {_size(max_bytes)}")
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise JsonProblem(f"is not UTF-8 text (byte {error.start})") from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise JsonProblem(f"says the key {key[:80]!r} twice")
            seen.add(key)
    return result


def _finite(digits: str) -> float:
    number = float(digits)
    if isinf(number):
        raise JsonProblem(f"has the number {digits[:80]}, which is too large")
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise JsonProblem(f"has the value {name}, which JSON does not know")


_DECODER = json.JSONDecoder(object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant, parse_float=_finite)


def _size(count: int) -> str:
    return f"{count // (1024 * 1024)} MB" if count >= 1024 * 1024 else f"{count // 1024} KB"
