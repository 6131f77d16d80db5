"""What an agent is asked: the prompt, how it may report, and the schema that binds its answer (spec 4.5).

Strict mode wants every object closed and every property required. That narrows what a model may answer and
allows nothing more, and our own reader still judges the answer by the schema as it was written.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from attractor_nb.stage import StageScope

STATUS_NAME = "status.json"
TURN: Final = (
    "This session ends with your last message, and whatever you started ends with it. Leave nothing in the "
    "background: wait until all of it is done, and answer then."
)

_KEPT: Final = frozenset({"type", "enum", "const", "description", "$ref", "pattern"})
_SAYING: Final = frozenset({"type", "enum", "const", "$ref", "anyOf"})
_RENAMED: Final = {"oneOf": "anyOf"}
_LEFT_OUT: Final = frozenset(
    {
        "required",
        "additionalProperties",
        "title",
        "default",
        "examples",
        "format",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
    }
    | {"exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems"}
    | {"$schema", "$id", "$comment", "deprecated", "readOnly", "writeOnly"}
)
"""What only says more of a value: left out, for not all of it is taken, and our reader checks it."""


def task_text(prompt: str, directory: Path | None, *, is_turn: bool) -> str:
    """The prompt, with the offer to report in a file.

    Args:
        prompt: What the stage asks.
        directory: Where the file would be; None for no such offer.
        is_turn: Say that nothing outlives the turn: a message may promise what is never done (ruling 47).
    """
    if prompt.lstrip().startswith("/"):  # agents take it for a command of their own
        prompt = f"Task:\n\n{prompt}"
    parts = [prompt, TURN if is_turn else "", "" if directory is None else status_offer(directory)]
    return "\n\n".join(filter(None, parts))


def attached_files(scope: StageScope) -> list[Path]:
    """What a stage attaches, as files in its directory: agents have no other way to be shown it."""
    places: list[Path] = []
    for number, each in enumerate(scope.attachments, 1):
        stem = re.sub(r"[^A-Za-z0-9_-]+", "_", each.shown_name.rpartition(".")[0])[:60]
        name = f"attached/{number}-{stem}.{each.media_type.partition('/')[2]}"
        scope.files.write_bytes(name, each.data)
        places.append(scope.files.directory.absolute() / name)
    return places


def with_attached_files(prompt: str, files: Sequence[Path]) -> str:
    """The prompt, and where what it names as attached is."""
    if not files:
        return prompt
    listed = "\n".join(f"- {place}" for place in files)
    return f"{prompt}\n\nThe attached files are here; look at them first:\n\n{listed}"


def status_offer(directory: Path) -> str:
    """The section of the prompt that offers the status file."""
    return (
        "## Reporting\n\n"
        f"When the task is done you may report how it went in the file {directory / STATUS_NAME}, as one "
        "JSON object:\n\n"
        '{"outcome": "success | partial_success | retry | fail", "notes": "what you did, in one sentence", '
        '"failure_reason": "why, unless it is a success", '
        '"preferred_next_label": "the way to go on, if the task names ways", '
        '"context_updates": {"key": "a JSON value for later stages"}}\n\n'
        "Only outcome is required. Without the file your last message is the result and counts as a success. "
        "Write nothing else into that directory."
    )


class _NotStrict(Exception):
    """The schema says something that strict mode cannot."""


def strict_schema(text: str) -> str:
    """The schema in strict form, as JSON; empty for one that has none.

    >>> strict_schema('{"type": "object", "properties": {"a": {"type": "string", "default": ""}}}')[:65]
    '{"type": "object", "properties": {"a": {"type": "string"}}, "requ'
    >>> strict_schema('{"type": "object", "additionalProperties": {"type": "string"}}')
    ''
    """
    try:
        return json.dumps(_strict(json.loads(text)), ensure_ascii=False) if text else ""
    except (_NotStrict, ValueError, RecursionError):
        return ""


def _strict(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, dict):
        raise _NotStrict  # true: anything
    given = cast("dict[str, Any]", schema)
    strict = {
        _RENAMED.get(name, name): _strict_part(name, value) for name, value in given.items() if name not in _LEFT_OUT
    }
    kinds = _items(given.get("type"))
    if "object" in kinds:
        if not strict.get("properties") or given.get("additionalProperties") not in (None, False):
            raise _NotStrict  # a mapping of anything
        strict |= {"required": list(strict["properties"]), "additionalProperties": False}
    if ("array" in kinds and "items" not in strict) or not strict.keys() & _SAYING:
        raise _NotStrict  # anything
    return strict


def _strict_part(name: str, value: Any) -> Any:
    if name in _KEPT:
        return value
    if name in ("anyOf", "oneOf"):
        return [_strict(entry) for entry in _items(value)]
    if name == "items":
        return _strict(value)
    if name in ("$defs", "definitions", "properties") and isinstance(value, dict):
        return {key: _strict(entry) for key, entry in cast("dict[str, Any]", value).items()}
    raise _NotStrict


def _items(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]
