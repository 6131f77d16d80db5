"""Launch and resume of a map: everything is checked, then its directory is made, then rows are run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, overload

from attractor_nb.decisions.bounds import bounds_of
from attractor_nb.decisions.planning.recorded_choices import recorded_choices
from attractor_nb.errors import GraphChanged, InputsChanged, NoSuchRow, OptionError, RunInterrupted
from attractor_nb.interviewers import DeferredInterviewer
from attractor_nb.maps.map_view import MapView, map_html, map_summary, rows_table
from attractor_nb.maps.map_work import MapWork, RowFollower, read_rows, session_of
from attractor_nb.maps.row_run import ROWS, STAGES, Shipment, row_tasks, shipment_of, ships_rows
from attractor_nb.maps.stored_map import RowCheck, check_outputs
from attractor_nb.model.states import recorded_status
from attractor_nb.model.vocabulary.value_forms import WHOLE_RESPONSE
from attractor_nb.redaction import redacted
from attractor_nb.runtime.begin import Injected, backend_facts, describe_backend, first_marks, seams_of
from attractor_nb.runtime.chosen_plugs import (
    Recording,
    answering_backend,
    named_interviewer,
    shipping_of,
    with_cassette,
)
from attractor_nb.runtime.handles.handle import Handle, HandleJob, check_host, new_job
from attractor_nb.runtime.handles.presenters import present
from attractor_nb.runtime.prepare.declared_inputs import checked_inputs
from attractor_nb.runtime.prepare.known_secrets import stored_source
from attractor_nb.runtime.prepare.trust import check_trust, note_run
from attractor_nb.runtime.resume import GRAPH_CHANGES
from attractor_nb.runtime.stored_execution import load_execution
from attractor_nb.runtime.stored_state import choices_for, with_recorded_backend
from attractor_nb.runtime.wire import check_plugs
from attractor_nb.runtime.workspace.workspace import recorded_for_rows, with_workdir_of_rows
from attractor_nb.storage.map_directory import (
    MapDirectory,
    continue_call,
    inputs_hash,
    is_evaluation,
    read_inputs,
    read_map,
)
from attractor_nb.storage.own_places import refuse_linked
from attractor_nb.storage.run_directory import DEFAULT_RUNS_BASE, new_run_directory
from attractor_nb.views.display import Displayed
from attractor_nb.views.table import one_line, required_pandas

if TYPE_CHECKING:
    from os import PathLike

    from attractor_nb.cassettes import CassetteReport, Tape
    from attractor_nb.interrupts import HeldInterrupt
    from attractor_nb.maps.row_run import StoredStage
    from attractor_nb.model.outcome import Usage
    from attractor_nb.model.row_result import RowResult, RowStatus
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.execution import Execution
    from attractor_nb.runtime.prepare.run_options import MapOptions, RunOptions
    from attractor_nb.workers.shipping import Shipping


FAILED: Final = ("keep", "retry")


@dataclass(frozen=True, slots=True)
class MapRequest:
    """The caller's request for a map: the map's own options, those of each row, and a held interrupt.

    The caller may block until the end. With a cassette, its tape is made when all is checked.
    """

    own: MapOptions
    of_rows: RunOptions
    interrupt: HeldInterrupt
    is_waited_for: bool = False
    tape: Tape | None = None
    follower: RowFollower | None = None  #: Has each row that ends before the map goes on, as an evaluation does.
    #: The stages that the rows execute anew, in their order, and again for each repeat; empty for whole runs.
    stored: Sequence[StoredStage] = ()


def start_map(pipeline: Definition, params: object, request: MapRequest) -> MapRun:
    """Begin a map in a fresh directory."""
    request = _checked(pipeline, request)
    own, options = request.own, request.of_rows
    check_trust(pipeline, options)
    rows = read_rows(params, {**pipeline.params, **options.params}, RowCheck(pipeline))
    if asked := [key for key in own.outputs if key != WHOLE_RESPONSE]:
        check_outputs(pipeline, asked, rows)
    seams = seams_of(options)
    if options.durability == "none":
        return _launch(pipeline, rows, request, seams.randomness.new_id(), None)
    path, map_id = new_directory(own, options, seams)
    source_text, is_redacted = stored_source(pipeline.to_dot(), pipeline.whole)
    facts = {
        "map_id": map_id,
        "pipeline_name": pipeline.name,
        "graph_hash": pipeline.graph.content_hash,
        "backend": describe_backend(options.backend),
        **backend_facts(options.backend, pipeline.graph),
        **first_marks(pipeline.graph, options),
        "outputs": list(own.outputs),
        **recorded_for_rows(options, pipeline.graph, pipeline.origin),
        **({"source_path": str(pipeline.origin)} if isinstance(pipeline.origin, Path) else {}),
        **({"is_source_redacted": True} if is_redacted else {}),
    }
    note_run(pipeline.graph, path, options, recorded_choices(facts, facts, is_backend_given=False), map_id)
    directory = MapDirectory.create(
        path,
        durability=options.durability,
        source_text=source_text,
        facts=facts,
        rows=rows,
        clock=seams.clock,
        disk=seams.disk,
        files={} if request.follower is None else request.follower.files(),
    )
    return _launch(pipeline, rows, request, map_id, directory)


def continue_map(
    pipeline: Definition, path: Path, params: object, request: MapRequest, *, on_graph_change: str, failed: str
) -> MapRun:
    """Resume a map: finished rows are read, interrupted ones resumed, missing ones started.

    Args:
        pipeline: What runs.
        path: The map's directory.
        params: The same inputs again, or None.
        request: Its options.
        on_graph_change: What to do with another graph than the one that ran.
        failed: ``keep`` rows that failed, or ``retry`` them.
    """
    if on_graph_change not in GRAPH_CHANGES:
        raise OptionError(f"on_graph_change must be one of {', '.join(GRAPH_CHANGES)}, not {on_graph_change!r}")
    if failed not in FAILED:
        raise OptionError(f"failed must be keep or retry, not {failed!r}")
    if request.of_rows.durability == "none" or request.own.map_dir is not None:
        raise OptionError("a map is resumed in its own directory", hint='leave map_dir and durability="none" out')
    facts = read_map(path)
    if request.follower is None and is_evaluation(path):
        raise OptionError(
            f"{path} is an evaluation: as a map its rows would run without being scored", hint=continue_call(path)
        )
    recorded = choices_for(pipeline.graph, path, request.of_rows)
    of_rows = with_recorded_backend(request.of_rows, facts)
    request = replace(request, of_rows=with_workdir_of_rows(of_rows, facts))
    if not request.own.outputs:
        request = replace(request, own=replace(request.own, outputs=tuple(facts.get("outputs", ()))))
    request = _checked(pipeline, request, is_resume=True)
    _check_graph(pipeline, facts, on_graph_change)
    check_trust(pipeline, request.of_rows, path, recorded)
    rows = read_inputs(path, facts) if params is None else _same_rows(pipeline, params, facts)
    if pipeline.graph.content_hash != facts.get("graph_hash"):  # it may ask for other inputs
        rows = read_rows(rows, {}, RowCheck(pipeline))
    if list(request.own.outputs) != facts.get("outputs", []):
        check_outputs(pipeline, [key for key in request.own.outputs if key != WHOLE_RESPONSE], rows)
    seams = seams_of(request.of_rows)
    directory = MapDirectory.open(
        path,
        durability=request.of_rows.durability,
        clock=seams.clock,
        disk=seams.disk,
        take_over=request.of_rows.take_over,
    )
    try:
        directory.save({"status": "resumed", "end_time": None, "graph_hash": pipeline.graph.content_hash})
    except BaseException:  # an interrupt, too, must give the map up, or a resume finds it locked
        directory.close()
        raise
    map_id = str(facts.get("map_id", ""))
    resumed = {"on_graph_change": on_graph_change, "is_failure_retried": failed == "retry"}
    return _launch(pipeline, rows, request, map_id, directory, resumed)


def _checked(pipeline: Definition, request: MapRequest, *, is_resume: bool = False) -> MapRequest:
    """The same, with an interviewer and a tape for all rows: without one their gates have no answer."""
    options, tape = with_cassette(request.of_rows, is_resume=is_resume)
    check_host(options.host)
    check_plugs(options, pipeline.handlers, pipeline.graph, tape, functions=pipeline.tools)
    plan = pipeline.compile(bounds_of(pipeline.graph, options.bounds))
    is_shipped = not request.stored and ships_rows(pipeline, options, plan, request.own.ship)
    if request.own.map_dir is not None and options.durability == "none":
        raise OptionError('durability="none" keeps nothing, so there is no map_dir', hint='use durability="fast"')
    interviewer = named_interviewer(options.interviewer or "refuse")
    if isinstance(interviewer, DeferredInterviewer) or options.interviewer == "widgets":
        raise OptionError(
            "gates of a map cannot be answered by hand: its rows are not handles",
            hint='interviewer="pause" to answer in the directories of its rows, "auto", a function of a question, '
            "or QueueInterviewer([…])",
        )
    own = replace(request.own, ship=ROWS if is_shipped else STAGES)
    return replace(request, own=own, of_rows=replace(options, interviewer=interviewer), tape=tape)


def new_directory(own: MapOptions, options: RunOptions, seams: Injected) -> tuple[Path, str]:
    """The directory of a new map, which is made unless it was named, and an id."""
    if own.map_dir is not None:
        return Path(own.map_dir), seams.randomness.new_id()
    return new_run_directory(
        refuse_linked(Path(options.runs_dir or DEFAULT_RUNS_BASE)),
        clock=seams.clock,
        randomness=seams.randomness,
        disk=seams.disk,
        is_synced=options.durability == "full",
    )


def _check_graph(pipeline: Definition, facts: Mapping[str, Any], on_graph_change: str) -> None:
    now, ran = pipeline.graph.content_hash, str(facts.get("graph_hash", ""))
    if now == ran or on_graph_change != "error":
        return
    hint = 'resume with pipeline.dot of the map directory, or say on_graph_change="accept" or "warn"'
    if facts.get("is_source_redacted"):
        hint = (
            "pipeline.dot of this map holds [redacted] in place of a secret that its source had: "
            "resume with your own pipeline, Pipeline(…).resume_map(directory)"
        )
    raise GraphChanged(f"the graph is not the one that the map ran ({now[:8]} against {ran[:8]})", hint=hint)


def _same_rows(pipeline: Definition, params: object, facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows given again, which must be those that the map began with."""
    rows = read_rows(params, pipeline.params, partial(checked_inputs, pipeline))
    entries: Sequence[Mapping[str, Any]] = facts["rows"]
    hint = "resume without params: the map has kept its inputs; or start a new map"
    if len(rows) != len(entries):
        raise InputsChanged(f"params has {len(rows):,} rows, and the map has {len(entries):,}", hint=hint)
    for row, (inputs, entry) in enumerate(zip(rows, entries, strict=True)):
        if inputs_hash(inputs) != entry["inputs"]:
            raise InputsChanged(f"params[{row}] is not what the map began with", hint=hint)
    return rows


def _launch(
    pipeline: Definition,
    rows: Sequence[Mapping[str, Any]],
    request: MapRequest,
    map_id: str,
    directory: MapDirectory | None,
    resumed: Mapping[str, Any] = MappingProxyType({}),
) -> MapRun:
    """Start the work; the handle of a map that was interrupted before it began is not returned.

    ``resumed`` is what a resume says of each row (``RowTask``).
    """
    own, options = request.own, request.of_rows
    recorder, job = None, None
    try:
        shipping, shipment = _transport(pipeline, request, map_id, directory)
        tasks = row_tasks(rows, None if directory is None else directory.path, own.outputs, request.stored, resumed)
        source_file = str(pipeline.origin or "")
        recorder = session_of((task.row for task in tasks), source_file, place=own.session)
        work = MapWork(
            pipeline,
            tasks,
            own,
            # Its commands were checked above, once for all rows.
            replace(options, trust=True, params={}),
            MapView(redacted(pipeline.name), len(tasks)),
            directory,
            # With an executor, it is the workers that have one.
            answering_backend(options, request.tape) if shipping is None else None,
            recorder,
            shipping,
            shipment,
            None if request.tape is None else Recording(request.tape),
            request.follower,
        )
        if request.follower is not None and directory is not None:
            request.follower.open(directory.path)
        behind = work_of_map(work)
        handle = MapRun(map_id, work, behind)
        where = f" in {directory.path}" if directory is not None else ""
        job = new_job(options.host, f"a map{where}")
        behind.job = job
        if options.is_shown:
            present(handle)
        _refuse_interrupted(request.interrupt, behind)
    except BaseException:  # an interrupt, too, must give the map up, or a resume finds it locked
        if directory is not None:
            directory.close()
        if recorder is not None:
            recorder.close()
        if job is not None:
            job.future.cancel()  # its view learns that nothing comes
        raise
    job.start(partial(drive, handle, behind, work))  # from here on the work closes its directory
    if not request.is_waited_for:
        request.interrupt.at_end(behind.stop_for_nobody)
    return handle


def _transport(
    pipeline: Definition, request: MapRequest, map_id: str, directory: MapDirectory | None
) -> tuple[Shipping | None, Shipment | None]:
    """The way to the workers for all rows, and that of whole rows on it, where they travel."""
    own, options = request.own, request.of_rows
    plan = pipeline.compile(bounds_of(pipeline.graph, options.bounds))
    shipping = shipping_of(options, plan)
    if shipping is None or own.ship != ROWS:
        return shipping, None
    found = shipment_of(
        pipeline, options, plan, shipping, map_id=map_id, outputs=tuple(own.outputs), directory=directory
    )
    return shipping, found


def _refuse_interrupted(interrupt: HeldInterrupt, behind: HandleJob[MapResult]) -> None:
    if interrupt.is_noted:
        raise RunInterrupted("the map was stopped before it began", hint=behind.resume_hint)


# A running map, and its result: a small value for each row, the details on disk.

TABLE_ROWS: Final = 200
_COLUMNS: Final = (
    "status",
    "reason",
    "stages",
    "duration_seconds",
    "tokens",
    "cost_usd",
    "mark",
    "run_id",
    "directory",
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MapResult(Displayed, Sequence["RowResult"]):
    """The result of a map and its rows. ``result[3]`` is a row, ``result.run(3)`` is its run.

    Iterating gives the rows, in the order of the inputs.
    """

    status: str  #: ``success`` when all rows succeeded; ``fail``; or ``interrupted``: a resume continues it.
    reason: str  #: Reason, unless success.
    rows: Sequence[RowResult]  #: All rows, in the order of the inputs.
    inputs: Sequence[Mapping[str, Any]] = field(repr=False)  #: The inputs of each row.
    map_id: str
    directory: Path | None  #: Its directory; None when nothing is kept.
    pipeline: Definition = field(repr=False)  #: The pipeline that ran.
    view: MapView = field(repr=False)  #: The same as it is shown.
    outputs: Sequence[str] = ()  #: The context keys that were asked of each row.
    cassette: CassetteReport | None = None  #: Cassette report of its rows; None without one.

    @overload
    def __getitem__(self, row: int) -> RowResult: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[RowResult]: ...
    def __getitem__(self, row: int | slice) -> RowResult | Sequence[RowResult]:
        try:
            return self.rows[row]
        except (IndexError, TypeError):
            raise NoSuchRow(f"the map has no row {row!r}", hint=f"its rows are 0 to {len(self.rows) - 1}") from None

    def __iter__(self) -> Iterator[RowResult]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def is_success(self) -> bool:
        """True if all rows succeeded."""
        return self.status == "success"

    @property
    def counts(self) -> dict[RowStatus, int]:
        """The number of rows by status."""
        return dict(self.view.counts)

    @property
    def results(self) -> dict[int, RowResult]:
        """The rows that succeeded, by number."""
        return {entry.row: entry for entry in self.rows if entry.status == "success"}

    @property
    def failures(self) -> dict[int, RowResult]:
        """The rows that failed, by number; each has its reason."""
        return {entry.row: entry for entry in self.rows if entry.status == "fail"}

    @property
    def unfinished(self) -> dict[int, RowResult]:
        """The rows that were interrupted or not started, by number: a resume brings them to their end."""
        return {entry.row: entry for entry in self.rows if entry.status in {"interrupted", "not_started"}}

    @property
    def unset_outputs(self) -> list[str]:
        """The outputs that no row has, where at least one row succeeded."""
        if not self.results:
            return []
        return [key for key in self.outputs if not any(key in entry.outputs for entry in self.rows)]

    @property
    def usage(self) -> Usage:
        """The usage of the model calls of all rows."""
        return self.view.usage

    @property
    def mark(self) -> str:
        """The answer marks of all results in words, as of a run's; empty without marks (ruling 48)."""
        return self.view.marks.words

    @property
    def is_simulated(self) -> bool:
        """True if answers in them are made up, at least in part."""
        return self.view.marks.is_simulated

    @property
    def duration(self) -> float:
        """Seconds from the call to the end of the last row."""
        return self.view.seconds

    def run(self, row: int) -> Execution:
        """All that a row did, read from its run directory."""
        entry = self[row]
        if self.directory is None or not entry.directory:
            raise OptionError(
                f"nothing is kept of row {row}",
                hint='durability="full" or "fast" keeps a run directory for each row that was started',
            )
        return load_execution(self.directory / entry.directory, self.pipeline)

    def export_html(self, path: str | PathLike[str] | None = None, *, rows: str | None = None) -> Path:
        """Write the map as one page that opens without kernel and network: totals, and a table of its rows.

        Args:
            path: The file; ``map-<id>.html`` in the current directory by default.
            rows: ``failed`` or ``all``: a page of each of these rows too, in a folder beside it.
        """
        from attractor_nb.maps.map_page import export_map  # noqa: PLC0415 - most maps are not exported

        return export_map(self, path, rows=rows)

    def to_frame(self) -> Any:
        """A pandas DataFrame: a line for each row, with its inputs, how it ended, and its outputs.

        An input or output with the name of one of the fixed columns gets ``inputs.`` or ``outputs.`` before it.
        """
        return required_pandas().DataFrame(self.lines()).rename_axis("row")

    def lines(self) -> list[dict[str, Any]]:
        """The columns of ``to_frame`` for each row, by name."""
        return [self._line(entry) for entry in self.rows]

    def _line(self, entry: RowResult) -> dict[str, Any]:
        inputs, outputs = self.inputs[entry.row], entry.outputs
        taken = {*_COLUMNS, *outputs}
        line = {f"inputs.{key}" if key in taken else key: value for key, value in inputs.items()}
        usage = entry.usage
        values = (
            entry.status,
            entry.reason,
            entry.stages,
            entry.duration,
            usage.total_tokens,
            usage.cost_usd,
            entry.mark,
            entry.run_id,
            entry.directory,
        )
        line.update(zip(_COLUMNS, values, strict=True))
        line.update({f"outputs.{key}" if key in _COLUMNS else key: value for key, value in outputs.items()})
        return line

    def table(self, limit: int = TABLE_ROWS) -> str:
        """The rows as a plain table, in their order.

        Args:
            limit: How many rows at most.
        """
        return rows_table(self.rows[:limit], left=max(0, len(self.rows) - limit))

    def __str__(self) -> str:
        unset = "".join(f"\n! {words}" for words in unset_words(self))
        return map_summary(self.view, next_step=self._next_step()) + unset

    def _html(self) -> str:
        return map_html(self.view, has_times=False)

    def _next_step(self) -> str:
        if self.unfinished and self.directory is not None:
            return f"resume with {continue_call(self.directory)}"
        failed = next(iter(self.view.failures), None)
        return f"see result.run({failed.row})" if failed is not None and failed.directory else ""


def unset_words(result: MapResult) -> list[str]:
    """A sentence for each output that no row has."""
    return [f'no row has the output "{one_line(key)}": no stage set it' for key in result.unset_outputs]


class MapRun(Displayed, Handle[MapResult]):
    """A handle on a map; ``run.result()`` and ``await run`` wait for it.

    Attributes:
        directory: The map's directory; None when nothing is kept.
        view: Its state: counts, rows under way, failures.
    """

    def __init__(self, map_id: str, rows: MapWork, work: HandleJob[MapResult]) -> None:
        super().__init__(work)
        self.id = map_id
        self.pipeline: Definition = rows.pipeline
        self.directory: Path | None = None if rows.directory is None else rows.directory.path
        self.view: MapView = rows.view
        self._rows = rows

    @property
    def status(self) -> str:
        """``running``, ``completed``, ``failed`` or ``interrupted``."""
        if (finished := self._work.result) is not None:
            return recorded_status(finished.status)
        return "interrupted" if self.is_done else "running"

    def export_html(self, path: str | PathLike[str] | None = None, *, rows: str | None = None) -> Path:
        """Write the map as one page that opens without kernel and network: totals, and a table of its rows.

        Args:
            path: The file; ``map-<id>.html`` in the current directory by default.
            rows: ``failed`` or ``all``: a page of each of these rows too, in a folder beside it.
        """
        from attractor_nb.maps.map_page import export_map  # noqa: PLC0415 - most maps are not exported

        return export_map(self, path, rows=rows)

    def on_row(self, observer: Callable[[RowResult], object]) -> None:
        """Call ``observer`` with each row that ends from now on, in the engine's thread: it must be quick.

        Args:
            observer: A function of a row's result.
        """
        self._rows.observers.append(observer)

    def when_done(self, function: Callable[[], object]) -> None:
        """Call a function at the end, from whichever thread that comes in; at once when it has ended.

        Args:
            function: A function without arguments.
        """
        self._future().add_done_callback(lambda _: function())

    def stop(self) -> None:
        """Start no further rows; active rows run to their end. From any thread; see ``cancel``."""
        self._rows.stop()

    def _where_stopped(self) -> str:
        return f"the map was stopped after {self.view.ended_count:,} of {self.view.row_count:,} rows"

    def __str__(self) -> str:
        return map_summary(self.view)

    def _html(self) -> str:
        return map_html(self.view)


def work_of_map(rows: MapWork) -> HandleJob[MapResult]:
    """The work behind the handle of a map."""
    if rows.directory is None:
        return HandleJob("the map", 'nothing of it is kept, for its durability is "none"')
    return HandleJob("the map", f"resume with {continue_call(rows.directory.path)}")


async def drive(handle: MapRun, behind: HandleJob[MapResult], rows: MapWork) -> MapResult:
    """Run the rows of a map, and bind its result."""
    recording = rows.recording
    try:
        await rows.run()
    except BaseException:  # an interrupt, too: what was recorded until then is kept
        if recording is not None:
            recording.keep()
        raise
    cassette = None if recording is None else recording.end(rows.view.status)
    behind.result = MapResult(
        rows.view.status,
        rows.view.reason,
        [rows.results[task.row] for task in rows.tasks],
        [task.inputs for task in rows.tasks],
        handle.id,
        handle.directory,
        handle.pipeline,
        rows.view,
        rows.tasks[0].outputs,
        cassette,
    )
    return behind.result
