"""Rows of an evaluation: the inputs of a pipeline, and what only scorers see.

Only inputs reach the pipeline. The expected answer, the group and all other columns stay with the scorers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.errors import AttractorError, OptionError
from attractor_nb.evaluation.other_libraries import dataset_cases
from attractor_nb.maps.map_work import MAX_ROWS, entries_of, plain_value
from attractor_nb.model.record import Record
from attractor_nb.model.texts import did_you_mean, nearest
from attractor_nb.runtime.prepare.declared_inputs import checked_inputs, input_of_text
from attractor_nb.runtime.prepare.row_files import read_params_file, read_value
from attractor_nb.runtime.prepare.run_options import as_list, as_path

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.model.inputs import Input
    from attractor_nb.runtime.definition import Definition

RESERVED: Final = ("id", "expected", "group", "metadata")
"""Columns that are never inputs unless the pipeline declares them; ``expected`` never is."""
_EXAMPLE: Final = '[{"ticket": "41", "expected": "billing"}]'
_TEXT_FILES: Final = frozenset({".csv"})


class EvaluationRow(Record, frozen=True):
    """One row of an evaluation."""

    number: int  #: Its number, from 0.
    id: str  #: Its id: the column ``id``, else its number.
    inputs: Mapping[str, Any]  #: Values that the pipeline gets.
    columns: Mapping[str, Any]  #: All of its columns as given, for scorers.

    @property
    def expected(self) -> Any:
        """The expected answer; None when the row has none."""
        return self.columns.get("expected")

    @property
    def group(self) -> str | None:
        """The group, such as a document or customer that several rows share; None without one."""
        group = self.columns.get("group")
        return None if group is None else id_text(group)


def id_text(value: object) -> str:
    """An id as a text; pandas makes floats of whole numbers in a column with a gap.

    >>> id_text(1.0), id_text(1), id_text("1.0")
    ('1', '1', '1.0')
    """
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def read_rows(source: object, pipeline: Definition, inputs: Sequence[str] | None = None) -> list[EvaluationRow]:
    """Rows of an evaluation, checked before anything runs.

    Args:
        source: Dicts, a pandas or polars DataFrame, a JSONL, CSV, JSON, TOML or Parquet file, or a pydantic-evals
            dataset or its file.
        pipeline: The pipeline that is evaluated.
        inputs: The columns that are inputs, where the pipeline declares none.

    Raises:
        OptionError: A column is missing, an id occurs twice, a value is unusable; names the row.
    """
    names = _input_names(pipeline, inputs)
    entries, is_text = read_entries(source)
    rows = [_row(number, entry, pipeline, names, is_text=is_text) for number, entry in enumerate(entries)]
    if not rows:
        raise OptionError("there are no rows to evaluate", hint=f"rows={_EXAMPLE}")
    check_ids(rows)
    return rows


def _input_names(pipeline: Definition, chosen: Sequence[str] | None) -> tuple[str, ...]:
    declared = {each.name: each for each in pipeline.inputs}
    names = list(as_list("inputs", chosen)) if chosen is not None else list(declared)
    if not names:
        raise OptionError(
            "the pipeline declares no inputs, so it is unknown which columns it may see",
            hint='graph [inputs="ticket"], or evaluate(…, inputs=["ticket"])',
        )
    for name in names:
        if declared and name not in declared:
            listed = ", ".join(declared)
            raise OptionError(
                f'"{name}" is no input of {pipeline.name}{did_you_mean(str(name), declared)}',
                hint=f"its inputs: {listed}",
            )
    if "expected" in names:
        raise OptionError(
            'the column "expected" is the answer that scorers compare with, and the pipeline would see it',
            hint="rename the input",
        )
    return tuple(names)


def read_entries(source: object) -> tuple[list[Mapping[str, Any]], bool]:
    """The entries of a source of rows, unchecked, and True if all of their values are texts (CSV)."""
    if isinstance(source, str | PathLike):
        return _of_file(as_path(cast("str | PathLike[str]", source), "rows"))
    if (cases := getattr(source, "cases", None)) is not None and not isinstance(source, Mapping):
        return [_of_case(number, case) for number, case in enumerate(cases)], False
    if isinstance(source, bytes | Mapping) or not isinstance(source, Iterable):
        raise OptionError(
            f"rows must be dicts, a DataFrame or a file, not {type(cast('object', source)).__name__}",
            hint=f"rows={_EXAMPLE}",
        )
    found: list[Mapping[str, Any]] = []
    for number, entry in enumerate(entries_of(cast("object", source))):
        if number >= MAX_ROWS:
            raise OptionError(f"there are more than {MAX_ROWS:,} rows", hint="evaluate them in parts")
        if not isinstance(entry, Mapping):
            raise OptionError(f"row {number} is {type(entry).__name__}, not a dict", hint=f"rows={_EXAMPLE}")
        found.append(cast("Mapping[str, Any]", entry))
    return found, False


def _of_file(path: Path) -> tuple[list[Mapping[str, Any]], bool]:
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        return list(cast("Iterable[Mapping[str, Any]]", entries_of(_parquet(path)))), False
    if suffix in {".yaml", ".yml"}:
        return [_of_case(number, case) for number, case in enumerate(dataset_cases(path))], False
    if suffix == ".json" and isinstance(value := read_value(path), Mapping):
        cases = cast("Mapping[str, Any]", value).get("cases")
        if isinstance(cases, list):
            return [_of_case(number, case) for number, case in enumerate(cast("list[object]", cases))], False
    return list(read_params_file(path)), suffix in _TEXT_FILES


def _parquet(path: Path) -> Any:
    for name in ("pandas", "polars"):
        try:
            module = __import__(name)
            return module.read_parquet(path)
        except ImportError:
            continue
        except OSError as error:
            raise OptionError(
                f"{path} cannot be read: {error.strerror or error}", hint="name a file that exists"
            ) from None
        except Exception as error:  # noqa: BLE001 - the reader's own error for a file that is not Parquet
            raise OptionError(
                f"{path} is not a Parquet file: {error}", hint="write it with frame.to_parquet(…)"
            ) from None
    raise OptionError(f"{path} needs pandas with pyarrow, or polars", hint="pip install polars")


def _of_case(number: int, case: object) -> Mapping[str, Any]:
    """A case of a pydantic-evals dataset as a row."""

    def get(name: str) -> Any:
        return cast("Mapping[str, Any]", case).get(name) if isinstance(case, Mapping) else getattr(case, name, None)

    inputs = get("inputs")
    columns: dict[str, Any] = (
        dict(cast("Mapping[str, Any]", inputs)) if isinstance(inputs, Mapping) else {_SINGLE: inputs}
    )
    given = {"id": get("name"), "expected": get("expected_output"), "metadata": get("metadata")}
    return {
        **columns,
        **{name: value for name, value in given.items() if value is not None},
        "id": get("name") or str(number),
    }


_SINGLE: Final = "\0input"
"""The column of the input of a case that is no dict, until the pipeline says which input it is."""


def _row(
    number: int, entry: Mapping[str, Any], pipeline: Definition, names: Sequence[str], *, is_text: bool
) -> EvaluationRow:
    columns = {str(key): plain_value(value) for key, value in entry.items()}
    if _SINGLE in columns:
        value = columns.pop(_SINGLE)
        if len(names) != 1:
            raise OptionError(
                f"row {number}: its inputs are {type(value).__name__}, the pipeline has {', '.join(names)}",
                hint="give dicts with these names",
            )
        columns[names[0]] = value
    declared = {each.name: each for each in pipeline.inputs}
    if is_text:
        typed = {
            name: _typed(number, declared[name], columns[name])
            for name in names
            if name in columns and name in declared
        }
        columns |= typed
    _check_columns(number, columns, [name for name in names if name not in pipeline.params], declared)
    given = {name: columns[name] for name in names if name in columns}
    try:
        inputs = checked_inputs(pipeline, {**pipeline.params, **given})
        json.dumps(columns, allow_nan=False)
    except AttractorError as error:
        raise OptionError(f"row {number}: {error.message}", hint=error.hint) from None
    except (TypeError, ValueError) as error:
        name = next(key for key, value in columns.items() if not _is_json(value))
        raise OptionError(
            f'row {number}: the column "{name}" is not a JSON value: {error}',
            hint="use JSON values; None for a missing one",
        ) from None
    return EvaluationRow(number, _id(columns, number), inputs, columns)


def _id(columns: Mapping[str, Any], number: int) -> str:
    """The id of a row; a row without one, or with an empty one, has its number."""
    given = columns.get("id")
    if given is None or given == "":
        return str(number)
    if not isinstance(given, str | int | float):
        raise OptionError(f"row {number}: its id is {given!r}", hint="an id is a text or a number")
    return id_text(given)


def _typed(number: int, declared: Input, text: Any) -> Any:
    try:
        return input_of_text(declared, text)
    except OptionError as error:
        raise OptionError(f"row {number}: {error.message}", hint=error.hint) from None


def _is_json(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def _check_columns(
    number: int, columns: Mapping[str, Any], names: Sequence[str], declared: Mapping[str, Input]
) -> None:
    """Refuse a missing input, and a column that is a misspelt one: as a mere column it would change nothing."""
    missing = [name for name in names if name not in columns]
    if not missing:
        return
    others = [name for name in columns if name not in names and name not in RESERVED]
    for name in missing:
        near = nearest(name, others)
        if near or name not in declared or declared[name].is_required:
            listed = ", ".join(columns) or "none"
            raise OptionError(
                f'row {number} has no column "{name}"{did_you_mean(name, others)}', hint=f"its columns: {listed}"
            )


def check_ids(rows: Sequence[EvaluationRow]) -> None:
    """Refuse two rows of one id."""
    seen: dict[str, int] = {}
    for row in rows:
        if (first := seen.setdefault(row.id, row.number)) != row.number:
            raise OptionError(
                f'rows {first} and {row.number} have the id "{row.id}"',
                hint="an id names one row: results are paired by it",
            )
