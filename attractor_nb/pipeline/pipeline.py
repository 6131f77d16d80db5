"""A pipeline: a definition, and the ways to run it."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, overload

from attractor_nb.errors import OptionError, RunInterrupted
from attractor_nb.interrupts import HeldInterrupt, held_interrupts
from attractor_nb.pipeline.beginning import Beginning, Seams, begin, seams_of
from attractor_nb.pipeline.checking import check_result, read_expectation
from attractor_nb.pipeline.composing import PipelineNode
from attractor_nb.pipeline.debugger import check_breakpoints
from attractor_nb.pipeline.definition import Definition
from attractor_nb.pipeline.hosts import check_host, new_job
from attractor_nb.pipeline.maps.launch import MapWish, continue_map, start_map
from attractor_nb.pipeline.maps.options import split_options
from attractor_nb.pipeline.options import (
    RunOptions,
    as_list,
    as_path,
    read_options,
)
from attractor_nb.pipeline.presenters import present
from attractor_nb.pipeline.recording import cassette_options, with_cassette
from attractor_nb.pipeline.resuming import check_own, continue_run, with_recorded_plugs
from attractor_nb.pipeline.rewinding import Rewind, read_rewind
from attractor_nb.pipeline.run import Run
from attractor_nb.pipeline.secrets import learn_for_run
from attractor_nb.pipeline.wiring import check_plugs, wire

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from os import PathLike
    from pathlib import Path

    from attractor_nb.cassettes import Tape
    from attractor_nb.pipeline.maps.map_result import MapResult
    from attractor_nb.pipeline.maps.map_run import MapRun
    from attractor_nb.pipeline.run_form import RunForm
    from attractor_nb.pipeline.run_result import RunResult


class Pipeline(Definition):
    """A pipeline that can be linted, drawn and run.

    Attributes:
        graph: The graph as it will run: parsed, transformed.
        parsed: The graph as written.
        source: The text it came from, or None.
        diagnostics: What lint found, in source order.
        origin: The file or stream that the source came from; None for the caller's own text. For own text
            that names child files with commands the first of these.
        family: The child pipelines that its nodes run, by node.
        params: Values that every run's context starts with.
        handlers: Custom handlers by type.
        observers: Called with every event of every run.

    >>> hello = Pipeline("digraph hello { start [shape=Mdiamond] done [shape=Msquare] start -> done }")
    >>> hello.run(wait=True, durability="none").status
    'success'
    """

    _stepped: Run | None = None
    _step_options: Mapping[str, Any] = MappingProxyType({})

    def node(self, node_id: str) -> PipelineNode:
        """A node, to be looked at or replaced by another pipeline's inside (spec 9.4).

        Raises:
            OptionError: There is no such node.
        """
        return PipelineNode(self, node_id)

    @overload
    def run(self, *, wait: Literal[False] = False, **options: Any) -> Run: ...
    @overload
    def run(self, *, wait: Literal[True], **options: Any) -> RunResult: ...
    def run(self, *, wait: bool = False, **options: Any) -> Run | RunResult:
        """Start a run and return its handle at once; with ``wait=True`` block and return the result.

        Args:
            wait: Block until the end.
            **options: See ``RunOptions``.

        Raises:
            ValidationError: Lint found errors; nothing was run.
            OptionError, ContextValueError, StorageError: An option or the run directory is unusable.
            UntrustedSource: Its commands come from elsewhere and nobody vouched for them; see ``trust``.
        """
        chosen = self._options(options)
        if wait:
            _refuse_own_loop(chosen)
        with held_interrupts() as interrupt:
            run = self._start(chosen, interrupt, is_waited_for=wait)
            return run.result() if wait else run

    def form(self, **options: Any) -> RunForm:
        """A form for the inputs that the graph declares: in a notebook fields and a button that starts a run.

        Args:
            **options: See ``RunOptions``.
        """
        from attractor_nb.pipeline.run_form import RunForm  # noqa: PLC0415 - for who fills in forms

        return RunForm(self, options)

    async def run_async(self, **options: Any) -> RunResult:
        """Run in the current event loop and return the result; raises as ``run`` does."""
        chosen = self._options({"host": "kernel", **options})
        with held_interrupts() as interrupt:
            return await self._start(chosen, interrupt, is_waited_for=True)

    @overload
    def map(
        self, params: Iterable[Mapping[str, Any]], *, wait: Literal[False] = False, **options: Any
    ) -> MapRun: ...
    @overload
    def map(
        self, params: Iterable[Mapping[str, Any]], *, wait: Literal[True], **options: Any
    ) -> MapResult: ...
    def map(
        self, params: Iterable[Mapping[str, Any]], *, wait: bool = False, **options: Any
    ) -> MapRun | MapResult:
        """Run this pipeline over many inputs, several at a time; each row is a run of its own.

        Args:
            params: The inputs of each row: dicts, or a pandas DataFrame.
            wait: Block until the end.
            **options: See ``MapOptions``, and ``RunOptions`` for each row.

        Raises:
            ValidationError: Lint found errors; nothing was run.
            OptionError, ContextValueError, StorageError: An option, a row or the directory is unusable.
            UntrustedSource: Its commands come from elsewhere and nobody vouched for them; see ``trust``.
        """
        with held_interrupts() as interrupt:
            wish = self._map_wish(options, interrupt, is_waited_for=wait)
            if wait:
                _refuse_own_loop(wish.of_rows)
            handle = start_map(self, params, wish)
            return handle.result() if wait else handle

    async def map_async(self, params: Iterable[Mapping[str, Any]], **options: Any) -> MapResult:
        """Map in the current event loop and return the result; raises as ``map`` does."""
        with held_interrupts() as interrupt:
            wish = self._map_wish({"host": "kernel", **options}, interrupt, is_waited_for=True)
            return await start_map(self, params, wish)

    def resume_map(
        self,
        directory: str | Path | MapRun | MapResult,
        *,
        params: Iterable[Mapping[str, Any]] | None = None,
        failed: str = "keep",
        on_graph_change: str = "error",
        **options: Any,
    ) -> MapRun:
        """Go on with a map: finished rows are read, not run; interrupted ones resumed, missing ones started.

        Args:
            directory: The map, or its directory.
            params: The same inputs again; they are in the directory, too.
            failed: ``keep`` the rows that failed, or ``retry`` each from the stage that it failed in.
            on_graph_change: ``error``, ``warn`` or ``accept`` when the graph is not the one that ran.
            **options: As of ``map``; the directory is the map's own.

        Raises:
            RunNotFound, RunLocked, GraphChanged, InputsChanged, CheckpointCorrupt: It cannot go on, and why.
            OptionError: An option is unusable, or nothing of the map was kept.
            UntrustedSource: The pipeline's commands come from elsewhere and nobody vouched for them.
        """
        place = getattr(directory, "directory", directory)
        if place is None:
            raise OptionError(
                'nothing of the map is kept, for its durability was "none"', hint="start it anew"
            )
        with held_interrupts() as interrupt:
            wish = self._map_wish(options, interrupt, is_waited_for=False)
            return continue_map(
                self, as_path(place), params, wish, on_graph_change=on_graph_change, failed=failed
            )

    def _map_wish(
        self, given: Mapping[str, Any], interrupt: HeldInterrupt, *, is_waited_for: bool
    ) -> MapWish:
        own, of_rows = split_options(given)
        return MapWish(own, self._options(of_rows), interrupt, is_waited_for=is_waited_for)

    def check(
        self,
        cassette: str | PathLike[str],
        *,
        path: Sequence[str] | None = None,
        outcome: str | None = None,
        allow_unused: bool = False,
        **options: Any,
    ) -> RunResult:
        """Run on a recording and compare: a test without a model, a command, a person or a network.

        Args:
            cassette: The recording.
            path: The completed stages that are expected, in order.
            outcome: The expected end: ``success`` or ``fail``.
            allow_unused: Let recorded calls be that are not made now.
            **options: See ``RunOptions``. By default nothing is stored, and ``cassette_mode`` is ``replay``.

        Raises:
            CheckFailed: It did something else, or made a call that was not recorded; says what.
            OptionError: An option or the cassette is unusable.
        """
        steps, status = read_expectation(path, outcome)
        given = {"durability": "none", "is_shown": False, **options, "cassette": cassette}
        result = self.run(wait=True, **cassette_options(given, "replay"))
        check_result(result, steps, status, is_unused_allowed=allow_unused)
        return result

    def step(self, **options: Any) -> RunResult:
        """Run exactly one stage and stop; call it again for the next. Options hold for the steps after.

        The step after the end begins a new run.
        """
        before = self._stepped
        if before is None:
            self._step_options = options
        chosen = self._options({**self._step_options, **options, "stop_after": 1})
        _refuse_own_loop(chosen)
        if chosen.durability == "none":
            raise OptionError(
                'steps go on from a run directory, and durability="none" keeps none',
                hint='use durability="fast"',
            )
        with held_interrupts() as interrupt:
            if before is None:
                run = self._start(chosen, interrupt, is_waited_for=True)
            else:
                run = self._go_on(before.logs_root, chosen, interrupt, is_waited_for=True)
            self._stepped = run
            result = run.result()
        self._stepped = run if result.status in {"paused", "interrupted"} else None
        return result

    def resume(
        self,
        run: str | Path | Run,
        *,
        on_graph_change: str = "error",
        rewind_to: str | None = None,
        visit: int | None = None,
        context: Mapping[str, Any] | None = None,
        prompt: str | None = None,
        **options: Any,
    ) -> Run:
        """Go on with a run that was stopped, or that a bound ended; nothing committed is run again.

        With ``rewind_to`` any run goes on from just before a visit of that node: context, routing and
        answers are as they were there, and what came after is set aside, not erased.

        Args:
            run: The run or its directory.
            on_graph_change: ``error``, ``warn`` or ``accept`` when the graph is not the one that ran.
            rewind_to: The node to go back to.
            visit: Before which of its visits, by number; the latest by default.
            context: With ``rewind_to``: values of the context that are others from there on.
            prompt: With ``rewind_to``: the prompt of that node from there on, in this run.
            **options: See ``RunOptions``. Directory and inputs are the run's own and are refused; bounds and
                backend are those that the run had, unless others are given.

        Raises:
            RunNotFound, RunLocked, GraphChanged, CheckpointCorrupt: It cannot go on, and why.
            UntrustedSource: The pipeline's commands come from elsewhere and nobody vouched for them.
            RunError: The run has ended and there is nothing to go on with; or it has no such visit.
        """
        logs_root = run.logs_root if isinstance(run, Run) else as_path(run)
        check_own(logs_root, options)
        rewind = read_rewind(rewind_to, visit, context, prompt)
        chosen = self._options(options)
        with held_interrupts() as interrupt:
            return self._go_on(
                logs_root,
                chosen,
                interrupt,
                on_graph_change=on_graph_change,
                is_waited_for=False,
                rewind=rewind,
            )

    def _go_on(
        self,
        logs_root: Path,
        options: RunOptions,
        interrupt: HeldInterrupt,
        *,
        is_waited_for: bool,
        on_graph_change: str = "error",
        rewind: Rewind | None = None,
    ) -> Run:
        options, tape = with_cassette(with_recorded_plugs(options, logs_root), is_resume=True)
        check_host(options.host)
        check_plugs(options, self.handlers, self.graph, tape, self.tools)
        check_breakpoints(options, self.graph, is_waited_for=is_waited_for)
        seams = seams_of(options)
        beginning = continue_run(
            self, logs_root, options, seams, on_graph_change=on_graph_change, rewind=rewind
        )
        return self._launch(options, seams, beginning, interrupt, is_waited_for=is_waited_for, tape=tape)

    def _options(self, given: Mapping[str, Any]) -> RunOptions:
        self.refuse_errors()
        options = read_options(self.run_defaults, given)
        learn_for_run(as_list("secrets", options.secrets))
        return options

    def _start(self, options: RunOptions, interrupt: HeldInterrupt, *, is_waited_for: bool) -> Run:
        options, tape = with_cassette(options)
        check_host(options.host)
        check_plugs(options, self.handlers, self.graph, tape, self.tools)
        check_breakpoints(options, self.graph, is_waited_for=is_waited_for)
        seams = seams_of(options)
        beginning = begin(self, options, seams)
        return self._launch(options, seams, beginning, interrupt, is_waited_for=is_waited_for, tape=tape)

    def _launch(
        self,
        options: RunOptions,
        seams: Seams,
        start: Beginning,
        interrupt: HeldInterrupt,
        *,
        is_waited_for: bool,
        tape: Tape | None,
    ) -> Run:
        """Start the engine; nobody gets the handle of a run that was interrupted before it began.

        Raises:
            RunInterrupted: It was interrupted; nothing of it was run.
        """
        try:
            _refuse_interrupted(interrupt, start)
            wired = wire(self, options, seams, start, is_waited_for=is_waited_for, tape=tape)
            if options.is_shown:
                present(wired.run)
            job = new_job(options.host, _title(options, start))
            wired.behind.job = job
            _refuse_interrupted(interrupt, start)
        except BaseException:
            start.close()
            raise
        job.start(wired.work)  # from here on the engine closes the store
        if not is_waited_for:
            interrupt.at_end(wired.behind.stop_for_nobody)
        return wired.run


def _refuse_interrupted(interrupt: HeldInterrupt, start: Beginning) -> None:
    if not interrupt.is_noted:
        return
    if start.sequence:
        raise RunInterrupted("the run was stopped before it went on", hint="resume it again")
    raise RunInterrupted("the run was stopped before it began; no stage of it was run", hint="start it anew")


def _title(options: RunOptions, start: Beginning) -> str:
    if options.durability == "none":
        return f"run {start.run_id}"
    return f"run {start.run_id} in {start.store.logs_root}"


def _refuse_own_loop(options: RunOptions) -> None:
    check_host(options.host)
    if options.host == "kernel":
        raise OptionError(
            'host="kernel" runs in this event loop, and a blocking call would stop it',
            hint='use `await pipeline.run_async()`, or host="thread"',
        )
