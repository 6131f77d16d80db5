"""The rows of a map as plain context inputs: from dicts or a DataFrame, checked before anything runs.

pandas and numpy are never imported here: whoever gives their values has them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

from attractor_nb.context import MAX_DEPTH, Context
from attractor_nb.errors import ContextValueError, OptionError

MAX_ROWS: Final = 1_000_000
_EXAMPLE: Final = 'pipeline.map([{"ticket": "41"}, {"ticket": "42"}])'

Check = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def read_rows(params: object, common: Mapping[str, Any], check: Check) -> list[dict[str, Any]]:
    """The inputs of each row as JSON values.

    Args:
        params: An iterable of dicts, or a pandas DataFrame: its columns are the keys, and what is missing
            in it is None.
        common: Values that every row has unless it has its own.
        check: Gives the values that a run begins with, or raises.

    Raises:
        OptionError: It is neither, it has no rows, too many, or a row is no dict or has a reserved key; the
            message names the row.
        ContextValueError: A value cannot be kept; the message names the row.
    """
    rows: list[dict[str, Any]] = []
    for row, entry in enumerate(_entries(params)):
        if row >= MAX_ROWS:
            raise OptionError(f"params has more than {MAX_ROWS:,} rows", hint="map over them in parts")
        rows.append(_checked(row, entry, common, check))
    if not rows:
        raise OptionError("params has no rows, so there is nothing to run", hint=_EXAMPLE)
    return rows


def _entries(params: object) -> Iterable[object]:
    if _is_frame(params):
        return _frame_rows(cast("Any", params))
    if isinstance(params, str | bytes | Mapping) or not isinstance(params, Iterable):
        given = type(cast("object", params)).__name__
        raise OptionError(f"params must be a list of dicts or a DataFrame, not {given}", hint=_EXAMPLE)
    return cast("Iterable[object]", params)


def _checked(row: int, entry: object, common: Mapping[str, Any], check: Check) -> dict[str, Any]:
    if not isinstance(entry, Mapping):
        raise OptionError(f"params[{row}] must be a dict, not {type(entry).__name__}", hint=_EXAMPLE)
    plain = {key: _plain(value) for key, value in cast("Mapping[Any, Any]", entry).items()}
    try:
        return Context(check({**common, **plain})).snapshot()
    except ContextValueError as error:
        raise ContextValueError(f"params[{row}]: {error.message}", hint=error.hint) from None
    except OptionError as error:
        raise OptionError(f"params[{row}]: {error.message}", hint=error.hint) from None


def _is_frame(params: object) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(params, pandas.DataFrame)


def _frame_rows(frame: Any) -> Iterable[dict[str, Any]]:
    columns = list(frame.columns)
    for column in columns:
        if not isinstance(column, str):
            raise OptionError(
                f"the column {column!r} of params is not text, and context keys are",
                hint="frame.columns = frame.columns.astype(str)",
            )
        if columns.count(column) > 1:
            raise OptionError(f"params has the column {column!r} twice", hint="name the columns apart")
    is_missing = sys.modules["pandas"].isna
    for values in frame.itertuples(index=False, name=None):
        yield {
            column: None if _is_single(value) and is_missing(value) else value
            for column, value in zip(columns, values, strict=True)
        }


def _is_single(value: object) -> bool:
    """Whether a cell of a DataFrame holds one value, of which can be said that it is missing."""
    return not isinstance(value, list | dict | tuple | set) and not hasattr(value, "__array_interface__")


def _plain(value: Any, depth: int = 0) -> Any:
    """The value, numpy's numbers in it as Python's; what cannot be kept is left for the context to refuse."""
    if depth > MAX_DEPTH:
        return value
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {key: _plain(inner, depth + 1) for key, inner in items}
    if isinstance(value, list):
        return [_plain(inner, depth + 1) for inner in cast("list[Any]", value)]
    numpy = sys.modules.get("numpy")
    return value.item() if numpy is not None and isinstance(value, numpy.generic) else value
