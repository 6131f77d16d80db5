"""What a function returned, as its model is told it: a text as it is, anything else as JSON.

Arrays and tables are JSON, too, and bounded: what is over the bound is counted, never elided in silence. They are
known by what they can do, so that numpy, pandas and polars need not be installed, and none is imported.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

from attractor_nb.backends.llm.tools.tool_problems import cut

MAX_VALUES: Final = 2_000
"""Of an array, and of the rows of a table."""
MAX_COLUMNS: Final = 100
MAX_TABLE_CHARACTERS: Final = 30_000
_MAX_CELL_CHARACTERS: Final = 1_000
_MISSING: Final = frozenset({"NAType", "NaTType"})
"""The kinds of pandas' values for nothing."""
_TIMES: Final = "mM"
"""The kinds of numpy's times, of which plain values lose their unit."""


def returned_text(value: object) -> str:
    """A result as the model is told it.

    >>> returned_text("as it is"), returned_text({"a": [1, None]})
    ('as it is', '{"a":[1,null]}')
    """
    from pydantic_core import to_jsonable_python  # noqa: PLC0415 - pydantic is slow to import

    if isinstance(value, str):
        return str(value)
    if type(value).__name__ in _MISSING:
        return "null"
    plain = to_jsonable_python(value, fallback=_plain, bytes_mode="base64", inf_nan_mode="constants")
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def _plain(value: Any) -> Any:
    """A value that JSON has no form for, as one of plain Python."""
    if type(value).__name__ in _MISSING:
        return None
    if hasattr(value, "columns") and hasattr(value, "shape") and hasattr(value, "head"):
        return _table(value)
    if hasattr(value, "to_frame") and hasattr(value, "index"):  # a series of pandas, whose index counts
        return _table(value.to_frame())
    if hasattr(value, "dtype") and hasattr(value, "shape") and hasattr(value, "tolist"):
        return _array(value)
    return str(value)


def _array(array: Any) -> Any:
    """An array, or a single value of one; of a large one its shape and its first values, row by row."""
    shape = tuple(array.shape)
    if getattr(array.dtype, "kind", "") in _TIMES:
        array = array.astype(str)
    count = math.prod(shape)
    if count <= MAX_VALUES:
        plain = array.tolist()
        return str(plain) if type(plain) is type(array) else plain  # some have no plain form at all
    part = array
    while len(part.shape) > 1 and math.prod(part.shape[1:]) > MAX_VALUES:
        part = part[0]
    rows = max(1, MAX_VALUES // math.prod(part.shape[1:]))
    kind = str(array.dtype)
    return {
        "shape": list(shape),
        "dtype": kind,
        "first_values": part[:rows].tolist(),
        "left_out": count - rows * math.prod(part.shape[1:]),
    }


def _table(frame: Any) -> dict[str, Any]:
    """A table as its columns and rows; of a large one the first rows, and how many are left out."""
    count, width = (int(size) for size in frame.shape)
    shown = frame.iloc[:, :MAX_COLUMNS] if hasattr(frame, "iloc") else frame[:, :MAX_COLUMNS]
    shown = shown.head(max(1, MAX_VALUES // max(1, min(width, MAX_COLUMNS))))
    names = [_cell(name) for name in shown.columns]
    if hasattr(shown, "itertuples"):
        is_indexed = type(shown.index).__name__ != "RangeIndex"
        names = [
            *(["index" if name is None else _cell(name) for name in shown.index.names] if is_indexed else []),
            *names,
        ]
        found = shown.itertuples(index=is_indexed, name=None)
        rows = ([*row[0], *row[1:]] if is_indexed and shown.index.nlevels > 1 else row for row in found)
    else:
        rows = shown.iter_rows()
    kept = _within([[_cell(cell) for cell in row] for row in rows])
    left_out = {"rows_left_out": count - len(kept), "columns_left_out": max(0, width - MAX_COLUMNS)}
    return {"columns": names, "rows": kept, **{name: number for name, number in left_out.items() if number}}


def _within(rows: list[list[Any]]) -> list[list[Any]]:
    """As many rows as fit."""
    left = MAX_TABLE_CHARACTERS
    for number, row in enumerate(rows):
        left -= sum(len(str(cell)) + 3 for cell in row)
        if left < 0:
            return rows[:number]
    return rows


def _cell(cell: Any) -> Any:
    """A cell: null where there is no value, and no longer than a page."""
    if type(cell).__name__ in _MISSING or (isinstance(cell, float) and cell != cell):  # noqa: PLR0124 - true of NaN alone
        return None
    return cut(cell, _MAX_CELL_CHARACTERS) if isinstance(cell, str) else cell
