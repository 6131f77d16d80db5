"""Starting the engine for a pipeline: every way to run one ends here."""

from __future__ import annotations

import contextlib
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from attractor_nb.errors import OptionError, RunInterrupted
from attractor_nb.gc_pause import gc_paused
from attractor_nb.interrupts import HeldInterrupt, held_interrupts
from attractor_nb.lazy_imports import later
from attractor_nb.platforms import HAS_THREADS
from attractor_nb.runtime.begin import Injected, RunStart, begin, seams_of
from attractor_nb.runtime.chosen_plugs import SharedByParent, with_cassette
from attractor_nb.runtime.handles.handle import check_host, new_job
from attractor_nb.runtime.handles.presenters import present
from attractor_nb.runtime.pins import check_debugging
from attractor_nb.runtime.prepare.known_secrets import learn_for_run
from attractor_nb.runtime.prepare.run_options import RunOptions, as_list, read_options
from attractor_nb.runtime.wire import check_plugs, wire
from attractor_nb.storage.log.event_log import log_size

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from attractor_nb.cassettes import Tape
    from attractor_nb.runtime import resume, stored_state
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.execution import Execution
    from attractor_nb.runtime.handles.run_result import KeptOptions
    from attractor_nb.runtime.rewind import Rewind
else:
    stored_state = later("attractor_nb.runtime.stored_state")
    resume = later("attractor_nb.runtime.resume")


def options_for(
    pipeline: Definition, defaults: Mapping[str, Any] = MappingProxyType({}), /, **given: Any
) -> RunOptions:
    """The options of a run of this pipeline; its secrets are learnt.

    Args:
        pipeline: The pipeline.
        defaults: Options of the call where none are given.
        **given: Options by name.
    """
    pipeline.refuse_errors()
    options = read_options({**pipeline.run_defaults, **defaults}, **given)
    learn_for_run(as_list("secrets", options.secrets))
    return options


def start_run(pipeline: Definition, options: RunOptions, interrupt: HeldInterrupt, *, is_waited_for: bool) -> Execution:
    """Begin a run in its own directory, and start its engine."""
    options, tape = with_cassette(options)
    check_host(options.host)
    check_plugs(options, pipeline.handlers, pipeline.graph, tape, pipeline.tools)
    check_debugging(options, pipeline.graph, is_waited_for=is_waited_for)
    seams = seams_of(options)
    beginning = begin(pipeline, options, seams)
    return _launch(pipeline, options, seams, beginning, interrupt, is_waited_for=is_waited_for, tape=tape)


def go_on(
    pipeline: Definition,
    logs_root: Path,
    options: RunOptions,
    interrupt: HeldInterrupt,
    *,
    is_waited_for: bool,
    on_graph_change: str = "error",
    rewind: Rewind | None = None,
) -> Execution:
    """Resume a run in its current state, or where a rewind goes, and start its engine."""
    recorded = stored_state.choices_for(pipeline.graph, logs_root, options)
    options, tape = with_cassette(stored_state.with_recorded_plugs(options, logs_root), is_resume=True)
    check_host(options.host)
    check_plugs(options, pipeline.handlers, pipeline.graph, tape, pipeline.tools)
    check_debugging(options, pipeline.graph, is_waited_for=is_waited_for)
    seams = seams_of(options)
    with gc_paused(log_size(logs_root)):
        beginning = resume.continue_run(
            pipeline, logs_root, options, seams, on_graph_change=on_graph_change, rewind=rewind, recorded=recorded
        )
        return _launch(pipeline, options, seams, beginning, interrupt, is_waited_for=is_waited_for, tape=tape)


def resume_run(
    pipeline: Definition,
    logs_root: Path,
    /,
    *,
    kept: KeptOptions | None = None,
    on_graph_change: str = "error",
    rewind: Rewind | None = None,
    is_waited_for: bool = False,
    interrupt: HeldInterrupt | None = None,
    **given: Any,
) -> Execution:
    """Resume the run of a directory with the options of a call; see ``Pipeline.resume``.

    Args:
        interrupt: The interrupts that the caller holds back until it has returned the handle; own ones by default.
    """
    if kept is not None:
        given.update(kept.added_to(given))
    stored_state.check_own(logs_root, given)
    chosen = options_for(pipeline, **given)
    if is_waited_for:
        refuse_own_loop(chosen.host)
    with held_interrupts() if interrupt is None else contextlib.nullcontext(interrupt) as held:
        return go_on(
            pipeline,
            logs_root,
            chosen,
            held,
            on_graph_change=on_graph_change,
            is_waited_for=is_waited_for,
            rewind=rewind,
        )


def refuse_own_loop(host: str) -> None:
    """Refuse to block the event loop in which the run would work."""
    check_host(host)
    if not HAS_THREADS:
        raise OptionError(
            "a browser has no threads: the run works in this event loop, and a blocking call would stop it",
            hint="use `await pipeline.run_async()`, or `pipeline.run()` and `await run`",
        )
    if host == "kernel":
        raise OptionError(
            'host="kernel" runs in this event loop, and a blocking call would stop it',
            hint='use `await pipeline.run_async()`, or host="thread"',
        )


def _launch(
    pipeline: Definition,
    options: RunOptions,
    seams: Injected,
    start: RunStart,
    interrupt: HeldInterrupt,
    *,
    is_waited_for: bool,
    tape: Tape | None,
) -> Execution:
    """Start the engine; the handle of a run that was interrupted before it began is not returned."""
    try:
        _refuse_interrupted(interrupt, start)
        wired = wire(pipeline, options, seams, start, is_waited_for=is_waited_for, inherited=SharedByParent(tape=tape))
        if options.is_shown:
            present(wired.run)
        job = new_job(options.host, _title(start, is_stored=options.durability != "none"))
        wired.behind.job = job
        _refuse_interrupted(interrupt, start)
    except BaseException:  # an interrupt, too, must give the run up, or a resume finds it locked
        start.close()
        raise
    job.start(wired.work)  # from here on the engine closes the store
    if not is_waited_for:
        interrupt.at_end(wired.behind.stop_for_nobody)
    return wired.run


def _refuse_interrupted(interrupt: HeldInterrupt, start: RunStart) -> None:
    if not interrupt.is_noted:
        return
    if start.sequence:
        raise RunInterrupted("the run was stopped before it was resumed", hint="resume it again")
    raise RunInterrupted("the run was stopped before it began; no stage of it was run", hint="start it anew")


def _title(start: RunStart, *, is_stored: bool) -> str:
    return f"run {start.run_id} in {start.store.logs_root}" if is_stored else f"run {start.run_id}"
