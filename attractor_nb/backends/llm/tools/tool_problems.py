"""What a tool cannot do, told to the model that asked for it, and the bounds of what it is told."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_RESULT_CHARACTERS: Final = 50_000
"""Of what a tool gives back to the model."""
MAX_SHOWN_CHARACTERS: Final = 1_000
"""Of each text of a call in its event."""
MAX_KEPT_CHARACTERS: Final = 20_000
"""Of each text of a call in ``tool_calls.jsonl``."""
_MAX_DEPTH: Final = 8
_MAX_BITS: Final = 64
_MAX_ENTRIES: Final = 50


class ToolProblem(Exception):
    """The call failed, and the model is told why; no stage fails of it."""


def cut(text: str, characters: int) -> str:
    """The beginning of a text, and how much of it is left out.

    >>> cut("abcdef", 4)
    'abcd[… 2 characters left out]'
    """
    if len(text) <= characters:
        return text
    return f"{text[:characters]}[… {len(text) - characters} characters left out]"


def cut_middle(text: str, characters: int) -> str:
    r"""The beginning and the end of a text, and how much is left out between them.

    >>> cut_middle("abcdef", 4)
    'ab\n[… 2 characters left out …]\nef'
    """
    if len(text) <= characters:
        return text
    half = characters // 2
    gap = f"\n[… {len(text) - 2 * half} characters left out …]\n"
    return text[:half] + gap + text[-half:]


def shown_number(value: float) -> float | str:
    """A number as JSON can hold it; one that JSON cannot, or nobody wants to read, as a text.

    >>> shown_number(3), shown_number(float("nan")), shown_number(1 << 70_000)
    (3, 'nan', 'a number of 70001 bits')
    """
    if isinstance(value, int):
        return value if value.bit_length() <= _MAX_BITS else f"a number of {value.bit_length()} bits"
    return value if math.isfinite(value) else str(value)


def shown_arguments(arguments: Mapping[str, Any], characters: int) -> dict[str, Any]:
    """Arguments as they are recorded: however large and deep they are, what is kept is bounded.

    >>> shown_arguments({"path": "a.txt", "text": "x" * 60}, 50)["text"]
    'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx[… 10 characters left out]'
    """
    shown = {cut(str(name), characters): _shown(value, characters, 1) for name, value in _first(arguments)}
    whole = json.dumps(shown, ensure_ascii=False)
    return shown if len(whole) <= 2 * characters + _MAX_ENTRIES else {"…": cut(whole, characters)}


def _first(arguments: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return list(arguments.items())[:_MAX_ENTRIES]


def _shown(value: Any, characters: int, depth: int) -> Any:
    if isinstance(value, str):
        return cut(value, characters)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return shown_number(value)
    if depth >= _MAX_DEPTH:
        return "[…]"
    if isinstance(value, dict):
        entries = _first(cast("dict[str, Any]", value))
        return {cut(str(name), characters): _shown(entry, characters, depth + 1) for name, entry in entries}
    if isinstance(value, list):
        return [_shown(entry, characters, depth + 1) for entry in cast("list[Any]", value)[:_MAX_ENTRIES]]
    return cut(str(value), characters)
