"""A map with all that is kept of each row: what a comparison and an exported page are made of.

Everything in it is without secrets, for both leave the machine.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.errors import AttractorError, CheckpointCorrupt, OptionError, RunError, StorageError
from attractor_nb.maps.map_view import MapView
from attractor_nb.maps.stored_map import StoredMap, read_stored_map
from attractor_nb.model.outcome import Usage
from attractor_nb.model.redacted import is_reference, redacted_graph
from attractor_nb.model.vocabulary.value_forms import named_value
from attractor_nb.redaction import redacted, redacted_value
from attractor_nb.runtime.definition import Definition
from attractor_nb.runtime.handles.recorded_state import StoredValues
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.runtime.stored_execution import read_definition
from attractor_nb.storage.checkpoint_file import read_checkpoint
from attractor_nb.storage.map_directory import inputs_hash, is_map, read_inputs, read_map

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from attractor_nb.model.graph import Graph
    from attractor_nb.model.row_result import RowResult

USUAL_OUTPUTS: Final = ("last_response",)
"""What is shown of rows whose map was asked for no outputs."""
_ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class RecordedRow:
    """One row of a map."""

    row: int  #: Its number.
    status: str  #: ``success``, ``fail``, ``interrupted``, ``not_started``, or ``running``.
    inputs: Mapping[str, Any] | None  #: Its inputs; None where they are lost.
    inputs_hash: str  #: Of them as JSON.
    #: What the map was asked to keep of it, as far as it has it.
    outputs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    reason: str = ""  #: Why it failed or stopped; of one that runs its stage.
    stage: str = ""  #: The stage in which it failed, or empty.
    seconds: float = 0.0  #: Its running time.
    usage: Usage = field(default_factory=Usage)
    mark: str = ""  #: What must be said of its result (ruling 48).
    directory: str = ""  #: Name of its run directory in the map's, or empty.


@dataclass(frozen=True, slots=True)
class MapRecord:
    """A map and its rows."""

    map_id: str
    directory: Path | None  #: The map's directory; None when nothing is kept.
    view: MapView  #: How it stands, in numbers.
    rows: tuple[RecordedRow, ...]  #: All rows, in the order of the inputs.
    outputs: tuple[str, ...]  #: The context keys that are kept of each row.
    graph: Graph | None  #: What runs; None when its text is lost.
    facts: Mapping[str, str]  #: How it runs, by name: what answers prompts.


def is_a_map(thing: object) -> bool:
    """Whether a value is a map, its result, or names its directory."""
    if isinstance(getattr(thing, "view", None), MapView):
        return True
    place: object = getattr(thing, "logs_root", thing)  # an entry of runs(), too
    return isinstance(place, str | PathLike) and is_map(as_path(cast("str | PathLike[str]", place), "the map"))


def record_of(thing: object) -> MapRecord:
    """The map that somebody points at: from its result, else from its directory."""
    if isinstance(getattr(thing, "view", None), MapView):
        held: Any = thing  # a handle or a result: both offer what is made here, so they are not imported
        if held.view.is_ended:  # as it ended then, whatever a resume has made of its directory
            return _from_memory(held.result() if hasattr(held, "result") else held)
        if held.directory is None:
            raise OptionError("the map goes on, and nothing of it is kept", hint="wait for its result()")
        return read_map_record(held.directory)
    return read_map_record(as_path(cast("Any", getattr(thing, "logs_root", thing)), "the map"))


def read_map_record(path: Path) -> MapRecord:
    """Read a map with the inputs and outputs of its rows; nobody needs to own it."""
    facts, stored = read_map(path), read_stored_map(path)
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
            rows.append(RecordedRow(number, "running", own, digest, reason=active.stage, directory=entry["directory"]))
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
    kept, stage = _kept(stored.places[row.row], outputs) if row.row in stored.places else ({}, "")
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


def _kept(place: Path, outputs: tuple[str, ...]) -> tuple[dict[str, Any], str]:
    """The outputs of a row, as its latest checkpoint has them, and the stage that it reached last."""
    try:
        checkpoint, _ = read_checkpoint(place)
    except (RunError, OSError):
        return {}, ""
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
            if (value := named_value(get, key, _ABSENT)) is not _ABSENT:
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
        kept, stage = _kept(directory / row.directory, names) if directory is not None and is_read else ({}, "")
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
