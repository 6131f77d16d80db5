"""A map as its directory has it: one that has ended, or that another process runs."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from attractor_nb.errors import CheckpointCorrupt, OptionError
from attractor_nb.lint.survey import LintOptions, Survey
from attractor_nb.lint.unfilled_variables import first_unfilled, key_that_nothing_sets, open_variables
from attractor_nb.maps.map_view import ActiveRow, MapView
from attractor_nb.model.outcome import Usage
from attractor_nb.model.row_result import RowResult, RowStatus
from attractor_nb.model.states import ENDED, LIVE, as_result
from attractor_nb.model.texts import suggestion
from attractor_nb.redaction import redacted
from attractor_nb.runtime.prepare.declared_inputs import checked_inputs, registered_inputs
from attractor_nb.storage.log.lock import is_owned
from attractor_nb.storage.map_directory import read_inputs, read_map
from attractor_nb.storage.run_index import list_runs
from attractor_nb.storage.run_listing import HALF_WRITTEN, UNREADABLE, RunSummary

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from attractor_nb.runtime.definition import Definition


LOST_OWNER = "abandoned: its process ended"


@dataclass(frozen=True, slots=True)
class StoredMap:
    """A map as its directory has it."""

    directory: Path  #: The map's directory.
    map_id: str  #: The map.
    rows: tuple[RowResult, ...]  #: Its rows that no process works at, in order.
    view: MapView  #: The same with those under way, and in numbers.
    damages: Mapping[str, str]  #: What is damaged, by the name of a file or a row's directory.
    #: Where each row stands that was begun: its run directory, or a restart in it.
    places: Mapping[int, Path] = field(default_factory=dict[int, "Path"])

    @property
    def is_live(self) -> bool:
        """Whether a process works at it."""
        return not self.view.is_ended

    @property
    def has_unfinished_rows(self) -> bool:
        """Whether a resume has something to do."""
        return bool(self.view.counts["interrupted"] or self.view.counts["not_started"])

    def to_plain(self) -> dict[str, Any]:
        """JSON values; rows that failed come first."""
        view = self.view
        return {
            "pipeline": view.name,
            "status": view.status,
            "reason": view.reason,
            "is_simulated": view.marks.is_simulated,
            "mark": view.marks.words,
            "map_id": self.map_id,
            "directory": str(self.directory),
            "counts": {**view.counts, "running": len(view.under_way)},
            "duration_seconds": round(view.seconds, 3),
            "usage": view.usage.to_plain(),
            "rows": [row.to_plain() for row in sorted(self.rows, key=lambda row: row.status != "fail")],
        }


def read_stored_map(path: Path) -> StoredMap:
    """Read a map from its directory; nobody needs to own it."""
    facts, has_owner = read_map(path), is_owned(path)
    found = {summary.logs_root.name: summary for summary in list_runs(path)}
    begun = _seconds(facts.get("start_time")) or time.time()
    view = MapView(redacted(str(facts.get("pipeline_name", ""))), len(facts["rows"]))
    view.began -= time.time() - begun
    rows: list[RowResult] = []
    damages = _damaged_inputs(path, facts)
    places: dict[int, Path] = {}
    ends = [_seconds(facts.get("end_time"))]
    for row, entry in enumerate(facts["rows"]):
        summary = found.get(entry["directory"])
        if summary is not None and summary.is_live:
            since = time.monotonic() - (time.time() - (_seconds(summary.start_time) or time.time()))
            view.under_way[row] = ActiveRow(row, since, summary.note.removeprefix("at "))
            continue
        if summary is not None and summary.status in UNREADABLE - {HALF_WRITTEN}:
            damages[entry["directory"]] = redacted(summary.note)
        if summary is not None:
            ends.append(_seconds(summary.end_time))
            places[row] = summary.current_directory
        rows.append(_row(row, summary))
        view.take(rows[-1])
    if not has_owner:
        status = str(facts["status"])
        reason = LOST_OWNER if status in LIVE else redacted(str(facts.get("reason", "")))
        view.end("interrupted" if status in LIVE else as_result(status), reason)
        view.duration = max(0.0, (ends[0] or max(ends)) - begun)
    return StoredMap(path, str(facts.get("map_id", "")), tuple(rows), view, damages, places)


def _row(row: int, summary: RunSummary | None) -> RowResult:
    if summary is None or summary.status == HALF_WRITTEN:
        return RowResult(row, "not_started")
    status: RowStatus = "interrupted"
    if summary.status in ENDED:
        status = "success" if summary.status == "completed" else "fail"
    reason = "" if status == "success" else summary.note or ("" if status == "fail" else summary.status)
    return RowResult(
        row,
        status,
        reason=redacted(reason),
        run_id=summary.run_id,
        directory=summary.logs_root.name,
        stages=summary.stages or 0,
        duration=summary.duration or 0.0,
        usage=summary.usage or Usage(),
        marks=summary.marks,
    )


def _damaged_inputs(path: Path, facts: Mapping[str, Any]) -> dict[str, str]:
    try:
        read_inputs(path, facts)
    except CheckpointCorrupt as damaged:
        return {"inputs.jsonl": damaged.message.removeprefix(f"{path / 'inputs.jsonl'}: ")}
    return {}


def _seconds(moment: object) -> float:
    """Seconds since 1970 of an ISO time; 0 for what is none."""
    try:
        return datetime.fromisoformat(str(moment)).timestamp()
    except ValueError:
        return 0.0


# Checks of the rows and outputs of a map, before the first row is run.

_MOST_SHOWN = 20


class RowCheck:
    """Gives the values that the run of a row begins with.

    Where the graph declares no inputs, a row takes any values. A prompt whose ``$ticket`` none of them fills would
    still be sent as it is written, for each row.
    """

    def __init__(self, pipeline: Definition) -> None:
        self._pipeline = pipeline
        self._open = () if pipeline.inputs else open_variables(_survey(pipeline))
        self._filled: set[frozenset[str]] = set()

    def __call__(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """The values."""
        values = checked_inputs(self._pipeline, given)
        names = frozenset(values)
        if self._open and names not in self._filled:  # nearly always, all rows have the same names
            self._check(names)
            self._filled.add(names)
        return values

    def _check(self, names: frozenset[str]) -> None:
        found = first_unfilled(self._open, sorted(names))
        if found is None:
            return
        variable, near = found
        shown = f"${variable.name}" if "." not in variable.name else f"${{{variable.name}}}"
        listed = ", ".join(sorted(names)[:_MOST_SHOWN]) or "none"
        raise OptionError(
            f'no value for {shown} in {variable.attribute} of "{variable.node_id}"{suggestion(near)}',
            hint=f"the values of this row: {listed}. ${shown} stands for a dollar sign and the name, "
            f"${{{variable.name}:default …}} for a text in its place",
        )


def check_outputs(pipeline: Definition, outputs: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Check that something can set each output."""
    given = sorted({key for row in rows for key in row})
    found = key_that_nothing_sets(_survey(pipeline), outputs, given)
    if found is None:
        return
    key, near = found
    listed = ", ".join([*given, "last_response"][:_MOST_SHOWN])
    raise OptionError(
        f'no stage and no row sets the output "{key}"{suggestion(near)}',
        hint=f"an output is a key of the context: {listed}, or what a stage sets, such as NODE.response or tool.output",
    )


def _survey(pipeline: Definition) -> Survey:
    return Survey(pipeline.graph, LintOptions(schema_inputs=partial(registered_inputs, pipeline.schemas)))
