"""Projections on disk: sealed JSON files of which two generations are kept (RELIABILITY).

A sealed file ends with a checksum of everything before it, so that a torn, altered or foreign one is
told from ours. The generation before stays beside it: at every moment one of both is whole.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from attractor_nb.errors import StorageError
from attractor_nb.model.record import RecordProblem
from attractor_nb.redaction import may_hold, redacted_value
from attractor_nb.storage.files.atomic import read_plain_file, write_whole
from attractor_nb.storage.files.strict_json import MAX_BYTES, JsonProblem, json_bytes, read_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from attractor_nb.storage.files.disk import Disk
    from attractor_nb.storage.run_directory import RunDirectory

_SEAL = re.compile(rb',\n  "checksum": "([0-9a-f]{64})"\n\}\n\Z')


def seal(plain: Mapping[str, Any]) -> bytes:
    """The content of a sealed file: one line per key, and the checksum as the last one."""
    lines = [b"  " + json_bytes(key) + b": " + json_bytes(value) for key, value in plain.items()]
    body = b"{\n" + b",\n".join(lines)
    if may_hold(body) and (clean := redacted_value(plain)) is not plain:
        return seal(clean)
    return b'%b,\n  "checksum": "%b"\n}\n' % (body, sha256(body).hexdigest().encode())


def unseal(data: bytes) -> dict[str, Any]:
    """The values of a sealed file, without the checksum."""
    found = _SEAL.search(data)
    if found is None:
        raise JsonProblem("has no checksum at its end")
    body = data[: found.start()]
    if sha256(body).hexdigest().encode() != found[1]:
        raise JsonProblem("does not match its checksum")
    plain: dict[str, Any] = read_json(body + b"\n}")
    return plain


class SealedFile:
    """A projection of a run that this process owns."""

    def __init__(self, disk: Disk, root: RunDirectory, name: str, *, is_synced: bool) -> None:
        self._disk = disk
        self._root = root
        self._name = name
        self._is_synced = is_synced

    def write(self, plain: Mapping[str, Any]) -> int:
        """Replace the file; how many bytes it has."""
        data = seal(plain)
        write_whole(
            self._disk,
            self._root.descriptor,
            self._name,
            data,
            directory=self._root.path,
            is_synced=self._is_synced,
            keep_as=previous_name(self._name),
        )
        return len(data)


def previous_name(name: str) -> str:
    """The name of the generation before.

    >>> previous_name("checkpoint.json")
    'checkpoint.previous.json'
    """
    return name.removesuffix(".json") + ".previous.json"


def read_generations(
    directory: Path, name: str, check: Callable[[dict[str, Any]], object]
) -> tuple[dict[str, Any] | None, list[str]]:
    """The newest valid generation of a sealed file, and what is wrong with newer ones.

    Args:
        directory: The run directory.
        name: The file's name.
        check: Raises ``ValueError`` for values of a wrong shape.

    Returns:
        The values, None when there is no valid generation; and problems in words.
    """
    problems: list[str] = []
    for candidate in (name, previous_name(name)):
        try:
            data = read_plain_file(directory / candidate, max_bytes=MAX_BYTES)
            if data is None:
                continue
            plain = unseal(data)
            check(plain)
        except JsonProblem as problem:
            problems.append(f"{candidate} {problem}")
        except StorageError as error:
            problems.append(error.message)
        except ValueError as error:
            problems.append(f"{candidate} {wrong_shape(error)}")
        else:
            return plain, problems
    return None, problems


def wrong_shape(error: ValueError) -> str:
    """The place and the fault of a value with a wrong shape, in words that complete "it …"."""
    if isinstance(error, RecordProblem):
        return str(error)
    findings: list[dict[str, Any]] = getattr(error, "errors", list)()
    if not findings:
        return f"has a wrong shape: {error}"
    first = findings[0]
    place = ".".join(str(step) for step in first["loc"])
    message = first["msg"]
    reason = message.removeprefix("Value error, ") if first["type"] == "value_error" else message.lower()
    return f"has a wrong shape: {place}: {reason}" if place else f"has a wrong shape: {reason}"
