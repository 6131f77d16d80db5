"""Where a map begins, or goes on: everything is checked, then its directory is made, then rows are run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.decisions.limits.bounds import bounds_of
from attractor_nb.decisions.planning.recorded_choices import recorded_choices
from attractor_nb.errors import GraphChanged, InputsChanged, OptionError, RunInterrupted
from attractor_nb.interviewers import DeferredInterviewer, resolve_interviewer
from attractor_nb.maps.map_options import read_rows
from attractor_nb.maps.map_result import MapRun, drive, work_of_map
from attractor_nb.maps.map_session import session_of
from attractor_nb.maps.map_view import MapView
from attractor_nb.maps.map_work import MapWork
from attractor_nb.maps.row_check import RowCheck, check_outputs
from attractor_nb.maps.row_run import RowTask
from attractor_nb.maps.row_shipment import ROWS, STAGES, shipment_of, ships_rows
from attractor_nb.redaction import redacted
from attractor_nb.runtime.begin import backend_facts, describe_backend, first_marks, seams_of
from attractor_nb.runtime.handles.hosts import check_host, new_job
from attractor_nb.runtime.handles.presenters import present
from attractor_nb.runtime.plugs.cassette import Recording, answering_backend, with_cassette
from attractor_nb.runtime.plugs.executor import shipping_of
from attractor_nb.runtime.prepare.declared_inputs import checked_inputs
from attractor_nb.runtime.prepare.known_secrets import stored_source
from attractor_nb.runtime.prepare.trust import check_trust, note_run
from attractor_nb.runtime.recorded_options import choices_for, with_recorded_backend
from attractor_nb.runtime.resume_checks import GRAPH_CHANGES
from attractor_nb.runtime.wire import check_plugs
from attractor_nb.runtime.workspace.recorded_workdir import recorded_for_rows, with_workdir_of_rows
from attractor_nb.storage.map_directory import MapDirectory, inputs_hash, read_inputs, read_map, row_name
from attractor_nb.storage.run_directory import DEFAULT_RUNS_BASE, new_run_directory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attractor_nb.cassettes import Tape
    from attractor_nb.interrupts import HeldInterrupt
    from attractor_nb.maps.map_result import MapResult
    from attractor_nb.maps.row_shipment import Shipment
    from attractor_nb.runtime.begin import Seams
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.handles.handle import Work
    from attractor_nb.runtime.prepare.run_options import MapOptions, RunOptions
    from attractor_nb.workers.shipping import Shipping


FAILED: Final = ("keep", "retry")


@dataclass(frozen=True, slots=True)
class MapRequest:
    """What a caller wants: the map's own options, those of each row, and whether an interrupt came.

    The caller may block until the end. With a cassette, its tape is made when all is checked.
    """

    own: MapOptions
    of_rows: RunOptions
    interrupt: HeldInterrupt
    is_waited_for: bool = False
    tape: Tape | None = None


def start_map(pipeline: Definition, params: object, request: MapRequest) -> MapRun:
    """Begin a map in a fresh directory."""
    request = _checked(pipeline, request)
    own, options = request.own, request.of_rows
    check_trust(pipeline, options)
    rows = read_rows(params, {**pipeline.params, **options.params}, RowCheck(pipeline))
    if own.outputs:
        check_outputs(pipeline, own.outputs, rows)
    seams = seams_of(options)
    if options.durability == "none":
        return _launch(pipeline, rows, request, seams.randomness.new_id(), None)
    path, map_id = _new_directory(own, options, seams)
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
    )
    return _launch(pipeline, rows, request, map_id, directory)


def continue_map(
    pipeline: Definition, path: Path, params: object, request: MapRequest, *, on_graph_change: str, failed: str
) -> MapRun:
    """Go on with a map: finished rows are read, interrupted ones resumed, missing ones started.

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
        raise OptionError("a map goes on in its own directory", hint='leave map_dir and durability="none" out')
    facts = read_map(path)
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
        check_outputs(pipeline, request.own.outputs, rows)
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
    """The same, with an interviewer and a tape for all rows: without one nobody answers their gates."""
    options, tape = with_cassette(request.of_rows, is_resume=is_resume)
    check_host(options.host)
    check_plugs(options, pipeline.handlers, pipeline.graph, tape, functions=pipeline.tools)
    plan = pipeline.compile(bounds_of(pipeline.graph, options.bounds))
    is_shipped = ships_rows(pipeline, options, plan, request.own.ship)
    if request.own.map_dir is not None and options.durability == "none":
        raise OptionError('durability="none" keeps nothing, so there is no map_dir', hint='use durability="fast"')
    interviewer = resolve_interviewer(options.interviewer or "refuse")
    if isinstance(interviewer, DeferredInterviewer):
        raise OptionError(
            "gates of a map cannot be answered by hand: its rows are not handles",
            hint='interviewer="pause" to answer in the directories of its rows, "auto", a function of a question, '
            "or QueueInterviewer([…])",
        )
    own = replace(request.own, ship=ROWS if is_shipped else STAGES)
    return replace(request, own=own, of_rows=replace(options, interviewer=interviewer), tape=tape)


def _new_directory(own: MapOptions, options: RunOptions, seams: Seams) -> tuple[Path, str]:
    if own.map_dir is not None:
        return Path(own.map_dir), seams.randomness.new_id()
    return new_run_directory(
        Path(options.runs_dir) if options.runs_dir else DEFAULT_RUNS_BASE,
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
    """Start the work; nobody gets the handle of a map that was interrupted before it began.

    ``resumed`` is what a resume says of each row (``RowTask``).
    """
    own, options = request.own, request.of_rows
    recorder, job = None, None
    try:
        shipping, shipment = _transport(pipeline, request, map_id, directory)
        tasks = [
            RowTask(row, inputs, None if directory is None else directory.path / row_name(row), own.outputs, **resumed)
            for row, inputs in enumerate(rows)
        ]
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
        )
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
            job.future.cancel()  # whoever shows it learns that nothing comes
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


def _refuse_interrupted(interrupt: HeldInterrupt, behind: Work[MapResult]) -> None:
    if interrupt.is_noted:
        raise RunInterrupted("the map was stopped before it began", hint=behind.how_to_go_on)
