"""Rows of runs saved to a file of JSON lines, which grows into a data set."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.errors import OptionError
from attractor_nb.evaluation.rows_of_runs import rows_from
from attractor_nb.given_files import read_bytes
from attractor_nb.redaction import redacted, redacted_value
from attractor_nb.runtime.prepare.row_files import read_params_file
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.storage.files.user_files import write_bytes

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path

ROWS_FILE: Final = "rows.jsonl"
_KINDS: Final = (".jsonl", ".ndjson")


@dataclass(frozen=True, slots=True)
class SavedRows:
    """The result of ``save_rows``."""

    path: Path  #: The file, absolute.
    added: tuple[dict[str, Any], ...]  #: The rows that were appended.
    known: tuple[str, ...]  #: Ids of rows that the file had already: they were left as they are.
    count: int  #: Rows of the file now.

    def __str__(self) -> str:
        place = redacted(str(self.path))
        if not self.added:
            which = f"the row {self.known[0]}" if len(self.known) == 1 else f"these {len(self.known)} rows"
            return f"{place} has {which} already; nothing was written."
        what = "Saved as row" if len(self.added) == 1 else f"Saved {len(self.added)} rows, up to row"
        left = f" {len(self.known)} of them were there already." if self.known else ""
        without = sum("expected" not in row for row in self.added)
        check = '"expected" is what came out: check it.'
        if without == len(self.added):
            check = 'There was no answer to expect: write "expected" yourself.'
        return f"{what} {self.count} of {place}.{left} {check}"

    __repr__ = __str__


def save_rows(
    runs: object, path: str | PathLike[str] = ROWS_FILE, *, stage: str | None = None, visit: int | None = None
) -> SavedRows:
    """Append the rows of runs to a file of JSON lines; one whose id is there already is left as it is.

    ``expected`` is what came out: a person has to check it.

    Args:
        runs: As of ``rows_from``.
        path: The file; it is made if it does not exist. What is in it stays as it is.
        stage: As of ``rows_from``.
        visit: As of ``rows_from``.

    Raises:
        OptionError: A run has not ended, or the file holds something else.
        StorageError: The file cannot be written.
    """
    place = as_path(path, "path")
    if place.suffix.lower() not in _KINDS:
        raise OptionError(f"{place} is no file of JSON lines", hint=f'name it .jsonl: save_rows(run, "{ROWS_FILE}")')
    rows = [redacted_value(row) for row in rows_from(runs, stage=stage, visit=visit)]
    before = read_bytes(place, is_optional=True)
    there = read_params_file(place) if before.strip() else []
    known = {str(row["id"]) for row in there if "id" in row}
    added = [row for row in rows if str(row["id"]) not in known]
    if added:
        end = b"\n" if before and not before.endswith(b"\n") else b""
        lines = [json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n" for row in added]
        write_bytes(place, before + end + b"".join(lines))
    left = tuple(str(row["id"]) for row in rows if str(row["id"]) in known)
    return SavedRows(place.absolute(), tuple(added), left, len(there) + len(added))
