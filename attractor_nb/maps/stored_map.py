"""A map as its directory stores it, with all that is kept of each row."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.errors import AttractorError, CheckpointCorrupt, OptionError, RunError, StorageError
from attractor_nb.handlers.named_models import stored_schema
from attractor_nb.lint.survey import LintOptions, Survey
from attractor_nb.lint.unfilled_variables import first_unfilled, key_that_nothing_sets, open_variables
from attractor_nb.maps.map_view import ActiveRow, MapView
from attractor_nb.model.outcome import Usage
from attractor_nb.model.redacted import is_reference, redacted_graph
from attractor_nb.model.row_result import RowResult, RowStatus
from attractor_nb.model.states import ENDED, LIVE, WAITING, as_result, shown_run_status
from attractor_nb.model.texts import suggestion
from attractor_nb.model.vocabulary.value_forms import row_output
from attractor_nb.redaction import redacted, redacted_value
from attractor_nb.runtime.definition import Definition
from attractor_nb.runtime.handles.recorded_state import StoredValues
from attractor_nb.runtime.prepare.declared_inputs import checked_inputs, registered_inputs
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.runtime.stored_execution import read_definition
from attractor_nb.storage.checkpoint_file import read_checkpoint
from attractor_nb.storage.log.lock import is_owned
from attractor_nb.storage.map_directory import inputs_hash, is_map, read_inputs, read_map
from attractor_nb.storage.run_index import list_runs
from attractor_nb.storage.run_listing import HALF_WRITTEN, UNREADABLE, RunSummary

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from attractor_nb.model.graph import Graph


LOST_OWNER = "abandoned: its process ended"


@dataclass(frozen=True, slots=True)
class StoredMap:
    """A stored map."""

    directory: Path  #: The map's directory.
    map_id: str  #: The map.
    rows: tuple[RowResult, ...]  #: Its rows that no process works at, in order.
    view: MapView  #: The same with those under way, and in numbers.
    damages: Mapping[str, str]  #: Damage, by the name of a file or a row's directory.
    #: Directory of each row that was started: its run directory, or a restart in it.
    places: Mapping[int, Path] = field(default_factory=dict[int, "Path"])

    @property
    def is_live(self) -> bool:
        """True if a process works at it."""
        return not self.view.is_ended

    @property
    def has_unfinished_rows(self) -> bool:
        """True if a resume has something to do."""
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
    """Read a map from its directory; it needs no owner."""
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
            stage, is_waiting = summary.note.removeprefix("at "), summary.status == WAITING
            view.under_way[row] = ActiveRow(row, since, stage, is_waiting)
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
    schemas = pipeline.schemas
    options = LintOptions(
        schema_inputs=partial(registered_inputs, schemas), stored_schema=partial(stored_schema, schemas)
    )
    return Survey(pipeline.graph, options)


# A map with all that is kept of each row: what a comparison and an exported page are made of.
#
# Everything in it is without secrets, for both leave the machine.

USUAL_OUTPUTS: Final = ("last_response",)
"""Outputs of rows whose map names none."""
_ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class RecordedRow:
    """One row of a map."""

    row: int  #: Its number.
    status: str  #: ``success``, ``fail``, ``interrupted``, ``not_started``, or ``running``.
    inputs: Mapping[str, Any] | None  #: Its inputs; None where they are lost.
    inputs_hash: str  #: Of them as JSON.
    #: Requested outputs of the row, as far as it has them.
    outputs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    reason: str = ""  #: Reason of a failure or stop; for an active row its stage.
    stage: str = ""  #: The stage in which it failed, or empty.
    seconds: float = 0.0  #: Its running time.
    usage: Usage = field(default_factory=Usage)
    mark: str = ""  #: Mark of its result (ruling 48).
    directory: str = ""  #: Name of its run directory in the map's, or empty.
    is_waiting: bool = False  #: A gate of it is open.

    @property
    def shown_status(self) -> str:
        """The status that people read: ``waiting`` while a gate is open, ``paused`` for one that was paused."""
        return WAITING if self.is_waiting else shown_run_status(self.status, self.reason)


@dataclass(frozen=True, slots=True)
class MapRecord:
    """A map and its rows."""

    map_id: str
    directory: Path | None  #: The map's directory; None when nothing is kept.
    view: MapView  #: Its state, in numbers.
    rows: tuple[RecordedRow, ...]  #: All rows, in the order of the inputs.
    outputs: tuple[str, ...]  #: The context keys that are kept of each row.
    graph: Graph | None  #: The graph; None when its text is lost.
    facts: Mapping[str, str]  #: Facts about its execution, by name, such as the backend.


def is_a_map(thing: object) -> bool:
    """True if a value is a map, its result, or names its directory."""
    if isinstance(getattr(thing, "view", None), MapView):
        return True
    place: object = getattr(thing, "logs_root", thing)  # an entry of runs(), too
    return isinstance(place, str | PathLike) and is_map(as_path(cast("str | PathLike[str]", place), "the map"))


def record_of(thing: object) -> MapRecord:
    """The map that a result or a path names: from its result, else from its directory."""
    if isinstance(getattr(thing, "view", None), MapView):
        held: Any = thing  # a handle or a result: both offer what is made here, so they are not imported
        if held.view.is_ended:  # as it ended then, whatever a resume has made of its directory
            return _from_memory(held.result() if hasattr(held, "result") else held)
        if held.directory is None:
            raise OptionError("the map is active, and nothing of it is stored", hint="wait for its result()")
        return read_map_record(held.directory)
    return read_map_record(as_path(cast("Any", getattr(thing, "logs_root", thing)), "the map"))


def read_map_record(path: Path, stored: StoredMap | None = None) -> MapRecord:
    """Read a map with the inputs and outputs of its rows; it needs no owner.

    Args:
        path: Its directory.
        stored: The map without them, if the caller has read it already.
    """
    facts = read_map(path)
    stored = read_stored_map(path) if stored is None else stored
    inputs: list[dict[str, Any]] | None = None
    with contextlib.suppress(CheckpointCorrupt, StorageError):
        inputs = redacted_value(read_inputs(path, facts))
    outputs = tuple(map(str, facts.get("outputs", ()))) or USUAL_OUTPUTS
    ended = {row.row: row for row in stored.rows}
    rows: list[RecordedRow] = []
    for number, entry in enumerate(facts["rows"]):
        own = None if inputs is None else inputs[number]
        digest = str(entry["inputs"])
        if (row := ended.get(number)) is not None:
            rows.append(_recorded(row, own, digest, stored, outputs))
        else:
            active = stored.view.under_way[number]
            place, is_waiting = entry["directory"], active.is_waiting
            rows.append(
                RecordedRow(number, "running", own, digest, reason=active.stage, directory=place, is_waiting=is_waiting)
            )
    graph: Graph | None = None
    with contextlib.suppress(AttractorError):
        graph = redacted_graph(read_definition(path, Definition).graph)
    return MapRecord(stored.map_id, path, stored.view, tuple(rows), outputs, graph, _facts(facts))


def _facts(facts: Mapping[str, Any]) -> dict[str, str]:
    """The choices of a map, as far as its directory records them."""
    known = {"backend": str(facts.get("backend", "")), "outputs": ", ".join(map(str, facts.get("outputs", ())))}
    model = cast("Mapping[str, Any]", facts.get("backend_facts") or {}).get("model")
    return {name: redacted(value) for name, value in {**known, "model": str(model or "")}.items() if value}


def _recorded(
    row: RowResult, inputs: Mapping[str, Any] | None, digest: str, stored: StoredMap, outputs: tuple[str, ...]
) -> RecordedRow:
    kept, stage = kept_values(stored.places[row.row], outputs) if row.row in stored.places else ({}, "")
    return RecordedRow(
        row.row,
        row.status,
        inputs,
        digest,
        kept,
        row.reason,
        stage if row.status == "fail" else "",
        row.duration,
        row.usage,
        row.mark,
        row.directory,
    )


def kept_values(place: Path, outputs: tuple[str, ...]) -> tuple[dict[str, Any], str]:
    """The outputs of a row, as its latest checkpoint has them, and the stage that it reached last."""
    checkpoint, _ = read_checkpoint(place)
    if checkpoint is None:
        return {}, ""
    context: Mapping[str, Any] = checkpoint.get("context", {})
    values = StoredValues(place)

    def get(key: str, default: Any) -> Any:
        value = context.get(key, default)
        return values.resolve(value) if is_reference(value) else value

    found: dict[str, Any] = {}
    for key in outputs:
        with contextlib.suppress(RunError, OSError):  # a large value that is gone
            if (value := row_output(get, key, _ABSENT)) is not _ABSENT:
                found[key] = value
    outcomes: Mapping[str, str] = checkpoint.get("node_outcomes", {})
    failed = [node for node, outcome in outcomes.items() if outcome == "fail"]
    latest = str(checkpoint.get("current_node", ""))
    return redacted_value(found), latest if latest in failed or not failed else failed[-1]


def _from_memory(result: Any) -> MapRecord:
    """A map that this process has run; what its result does not hold is read, where it is kept."""
    inputs: list[dict[str, Any]] = redacted_value([dict(entry) for entry in result.inputs])
    directory: Path | None = result.directory
    names = tuple(result.outputs) or USUAL_OUTPUTS
    rows: list[RecordedRow] = []
    for row, own in zip(result.rows, inputs, strict=True):
        is_read = directory is not None and row.directory and (row.status == "fail" or not result.outputs)
        kept, stage = kept_values(directory / row.directory, names) if directory is not None and is_read else ({}, "")
        rows.append(
            RecordedRow(
                row.row,
                row.status,
                own,
                inputs_hash(own),
                redacted_value(dict(row.outputs)) if result.outputs else kept,
                redacted(row.reason),
                stage if row.status == "fail" else "",
                row.duration,
                row.usage,
                row.mark,
                row.directory,
            )
        )
    facts: Mapping[str, str] = {}
    if directory is not None:
        with contextlib.suppress(RunError, OSError):
            facts = _facts(read_map(directory))
    graph = redacted_graph(result.pipeline.graph)
    return MapRecord(result.map_id, directory, result.view, tuple(rows), names, graph, facts)
