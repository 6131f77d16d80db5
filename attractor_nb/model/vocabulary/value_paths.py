"""Keys that continue into a structured value: ``rate.verdict.level``, ``plan.verdict.files.0`` (ruling 50).

The longest stored key wins: what remains of a key names fields of objects, and items of lists by their index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Get = Callable[[str, Any], Any]
    """Gives the value that is stored under a key, or the default that it is given."""

CONTEXT_PREFIX: Final = "context."
_ABSENT: Final = object()


def named_value(get: Get, key: str, default: Any = None) -> Any:
    """The value of a key as conditions and variables write it: as it stands, else as a path without ``context.``.

    >>> stored = {"context.x": 1, "rate.verdict": {"level": "high"}}
    >>> [named_value(stored.get, key) for key in ("context.x", "x", "context.rate.verdict.level")]
    [1, None, 'high']

    Args:
        get: Gives the value that is stored under a key, or the default that it is given.
        key: Names joined by dots, with or without ``context.``.
        default: What is returned where the key names nothing.
    """
    value = get(key, _ABSENT)
    return value_at(get, key.removeprefix(CONTEXT_PREFIX), default) if value is _ABSENT else value


def value_at(get: Get, key: str, default: Any = None) -> Any:
    """The value that a key names: one that is stored, or a part of one.

    >>> stored = {"rate.verdict": {"level": "high", "files": ["a.py", "b.py"]}}
    >>> [value_at(stored.get, key) for key in ("rate.verdict.level", "rate.verdict.files.1", "rate.verdict.score")]
    ['high', 'b.py', None]

    Args:
        get: Gives the value that is stored under a key, or the default that it is given.
        key: Names joined by dots.
        default: What is returned where the key names nothing.
    """
    names = key.split(".")
    for count in range(len(names), 0, -1):
        value = get(".".join(names[:count]), _ABSENT)
        if value is not _ABSENT:
            return part_of(value, names[count:], default)
    return default


def part_of(value: Any, names: Sequence[str], default: Any = None) -> Any:
    """A part of a structured value; the value itself where there are no names.

    >>> part_of([{"name": "a"}], ["0", "name"]), part_of({"a": 1}, ["b"], "none")
    ('a', 'none')
    """
    for name in names:
        if isinstance(value, dict):
            value = cast("Mapping[str, Any]", value).get(name, _ABSENT)
        elif isinstance(value, list) and name.isascii() and name.isdigit() and len(name) < 10:
            items = cast("Sequence[Any]", value)
            value = items[int(name)] if int(name) < len(items) else _ABSENT
        else:
            return default
        if value is _ABSENT:
            return default
    return value
