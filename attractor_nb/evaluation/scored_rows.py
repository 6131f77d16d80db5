"""Scored rows, of an evaluation or of a baseline file: what a comparison pairs.

A baseline is a file of JSON lines, diffable in a pull request: a head, then a line for each row with its id, the
hash of its inputs, its scores, its state and its cost. It holds no inputs, no outputs and no expected answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec

from attractor_nb.errors import OptionError
from attractor_nb.evaluation.columns import ScoreColumn, checked_column
from attractor_nb.evaluation.scorers import SCORED, Score, Value
from attractor_nb.given_files import read_file
from attractor_nb.model.record import Record, decoder_of
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.storage.files.strict_json import json_bytes
from attractor_nb.storage.files.user_files import write_bytes

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path


HASH_CHARS: Final = 16
"""Characters of a hash in a baseline."""


class BaselineScore(Record, frozen=True):
    """The score of one run."""

    value: Value | None = None  #: Its value; None unless it was scored.
    state: str = SCORED  #: ``scored``, ``failed`` or ``unmeasured``.


class BaselineColumn(Record, frozen=True):
    """Facts about a column."""

    version: str = ""  #: Version of its scorer.
    is_lower_better: bool = False  #: A smaller number is better.


class BaselineHead(Record, frozen=True):
    """The first line of a baseline."""

    pipeline: str  #: Name of the pipeline.
    graph: str  #: Content hash of its graph.
    data: str  #: Hash of all ids and inputs.
    columns: Mapping[str, BaselineColumn]
    repeat: int = 1
    models: tuple[str, ...] = ()  #: Models of its nodes.
    mark: str = ""  #: ``simulated`` and the like.
    baseline: int = 1  #: Version of this form.


class BaselineRow(Record, frozen=True):
    """One row of a baseline."""

    id: str
    inputs: str  #: Hash of its inputs.
    scores: Mapping[str, Sequence[BaselineScore]]  #: By column, one for each repeat.
    state: str = "success"  #: Status of its runs, the worst one.
    cost_usd: float | None = None  #: Cost of its runs in USD, stages from the cache at full cost.
    group: str | None = None


def data_hash(rows: Sequence[BaselineRow]) -> str:
    """Hash of the ids and inputs of all rows."""
    return sha256("".join(f"{row.id}\0{row.inputs}\n" for row in rows).encode()).hexdigest()[:HASH_CHARS]


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """Scores by row, with what a comparison must know of where they come from."""

    name: str  #: Its name in a comparison.
    head: BaselineHead
    rows: Sequence[BaselineRow]

    def column(self, name: str, rows: Sequence[int]) -> ScoreColumn:
        """A column for some of the rows.

        Args:
            name: The column.
            rows: Positions of rows.
        """
        cells = [[Score(name, score.value, score.state) for score in self.rows[row].scores[name]] for row in rows]
        groups = [self.rows[row].group or f"row {self.rows[row].id}" for row in rows]
        has_groups = any(self.rows[row].group for row in rows)
        return checked_column(
            name, cells, is_lower_better=self.head.columns[name].is_lower_better, groups=groups if has_groups else None
        )


def write_baseline(rows: ScoredRows, path: str | PathLike[str]) -> Path:
    """Write scored rows as a baseline; a file that is there is replaced."""
    place = as_path(path, "the baseline")
    records: list[Record] = [rows.head, *rows.rows]
    write_bytes(place, b"".join(json_bytes(record.to_plain()) + b"\n" for record in records))
    return place


def read_baseline(path: str | PathLike[str]) -> ScoredRows:
    """A baseline from its file.

    Raises:
        OptionError: It is none, or a line of it is damaged; names the line.
    """
    place = as_path(path, "the baseline")
    lines = [line for line in read_file(place).split("\n") if line.strip()]
    if not lines:
        raise OptionError(f"{place} is empty", hint="evaluation.save_baseline(path) writes a baseline")
    try:
        head = decoder_of(BaselineHead).decode(lines[0])
    except msgspec.DecodeError as error:
        raise OptionError(
            f"{place} is no baseline: {error}", hint="evaluation.save_baseline(path) writes one"
        ) from None
    decoder = decoder_of(BaselineRow)
    rows: list[BaselineRow] = []
    seen: set[str] = set()
    for number, line in enumerate(lines[1:], 2):
        try:
            rows.append(decoder.decode(line))
        except msgspec.DecodeError as error:
            raise OptionError(f"{place}: line {number}: {error}", hint="write the baseline again") from None
        if rows[-1].scores.keys() != head.columns.keys():
            raise OptionError(f"{place}: line {number} has other scores than the head", hint="write the baseline again")
        if rows[-1].id in seen:  # as a merge of two versions leaves it
            raise OptionError(
                f'{place}: line {number} is a second row of the id "{rows[-1].id}"', hint="write the baseline again"
            )
        seen.add(rows[-1].id)
    return ScoredRows(place.name, head, rows)
