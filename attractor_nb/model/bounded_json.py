"""JSON that anybody may have written, for readers to whom it is one of several forms that a text may have.

Python follows JSON as deep as its stack is and then raises RecursionError, here or where the value is used. A text that
is nested deeper than anything of ours is no JSON to us. Files of a run are read by ``storage.files.strict_json``, which
refuses more and says where.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_DEPTH: Final = 100
_BRACKETS: Final = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)


def read_bounded_json(
    text: str | bytes, *, object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None
) -> Any:
    """The value of a JSON text.

    Args:
        text: The text; bytes are in an encoding of Unicode.
        object_pairs_hook: What makes objects, as in ``json.loads``.

    >>> read_bounded_json('{"a": [1]}')
    {'a': [1]}
    >>> read_bounded_json("[" * 101 + "]" * 101)
    Traceback (most recent call last):
    ValueError: it is nested deeper than 100 levels
    """
    read = text if isinstance(text, str) else text.decode(json.detect_encoding(text), "surrogatepass")
    if is_too_deep(read):
        raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
    return json.loads(read, object_pairs_hook=object_pairs_hook)


def is_too_deep(text: str) -> bool:
    """True if a text, if it is JSON, is nested deeper than ``MAX_DEPTH`` levels."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    depth = 0
    for found in _BRACKETS.finditer(text):
        bracket = found[0]
        if bracket in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif bracket in "]}":
            depth -= 1
    return False
