"""A pipeline: a prepared graph and the ways to run it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, overload

from attractor_nb.decisions.plan import compile_plan
from attractor_nb.errors import OptionError, RunInterrupted, ValidationError
from attractor_nb.handlers.registry import HandlerRegistry
from attractor_nb.interrupts import HeldInterrupt, held_interrupts
from attractor_nb.languages.dot import write_dot
from attractor_nb.pipeline.beginning import Beginning, Seams, begin, seams_of
from attractor_nb.pipeline.hosts import check_host, new_job
from attractor_nb.pipeline.lint_report import LintReport
from attractor_nb.pipeline.options import (
    BackendSpec,
    InterviewerSpec,
    RunOptions,
    as_dict,
    as_list,
    as_path,
    check_observer,
    read_options,
)
from attractor_nb.pipeline.preparation import Preparation, Source, named_file, prepare, read_source
from attractor_nb.pipeline.presenters import present
from attractor_nb.pipeline.resuming import check_own, continue_run, with_recorded_backend
from attractor_nb.pipeline.rewinding import Rewind, read_rewind
from attractor_nb.pipeline.run import Run
from attractor_nb.pipeline.secrets import learn_environment, learn_for_run
from attractor_nb.pipeline.trust import Origin, absolute_origin
from attractor_nb.pipeline.wiring import BUILT_IN_TYPES, check_plugs, wire
from attractor_nb.views.findings import findings_text
from attractor_nb.views.mermaid import to_mermaid
from attractor_nb.views.svg import render_svg
from attractor_nb.views.text_table import graph_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import networkx as nx

    from attractor_nb.decisions.bounds import Bounds
    from attractor_nb.decisions.plan import Plan
    from attractor_nb.model.diagnostic import Diagnostic, Severity
    from attractor_nb.model.events import EventObserver
    from attractor_nb.model.graph import Graph
    from attractor_nb.pipeline.run_result import RunResult
    from attractor_nb.protocols import Handler, LintRule, Transform
    from attractor_nb.source import SourceText


class Pipeline:
    """A pipeline that can be linted, drawn and run.

    Attributes:
        graph: The graph as it will run: parsed, transformed.
        parsed: The graph as written.
        source: The text it came from, or None.
        diagnostics: What lint found, in source order.
        origin: The file or stream that the source came from; None for the caller's own text.
        params: Values that every run's context starts with.
        handlers: Custom handlers by type.
        observers: Called with every event of every run.

    >>> hello = Pipeline("digraph hello { start [shape=Mdiamond] done [shape=Msquare] start -> done }")
    >>> hello.run(wait=True, durability="none").status
    'success'
    """

    def __init__(
        self,
        source: Source,
        *,
        backend: BackendSpec = None,
        interviewer: InterviewerSpec = None,
        handlers: Mapping[str, Handler | Callable[..., Any]] | None = None,
        transforms: Sequence[Transform] = (),
        rules: Sequence[LintRule] = (),
        severity: Mapping[str, Severity] | None = None,
        params: Mapping[str, Any] | None = None,
        name: str = "",
        runs_dir: str | Path | None = None,
        strict: bool = False,
        allow_many_exits: bool = False,
        origin: Origin | None = None,
    ) -> None:
        """Read, transform and lint a source. Findings do not raise here; ``run`` refuses errors.

        Args:
            source: DOT text, a path to a .dot file, or a graph.
            backend: What answers prompts: ``simulated``, ``local``, a callable, or a backend.
            interviewer: Who answers gates; see ``RunOptions``.
            handlers: Custom handlers by type.
            transforms: Custom transforms, after the built-in ones.
            rules: Custom lint rules.
            severity: Severities in place of the rules' own.
            params: Values that every run's context starts with.
            name: Name to show, in place of the graph's.
            runs_dir: Where runs are kept; ``.attractor/runs`` by default.
            strict: Generous readings of DOT are errors.
            allow_many_exits: More than one exit node may stand (ruling 7).
            origin: Where a text came from that is not the caller's own: its commands then need ``trust=``
                of ``run``. A file that ``source`` names is its own origin.

        Raises:
            DotSyntaxError: The text does not parse.
            OptionError: The source cannot be read.
        """
        learn_environment()
        self.origin: Origin | None = absolute_origin(named_file(source) if origin is None else origin)
        self._source = read_source(source)  # once: what was looked at is what runs, whatever the file becomes
        self._name = name
        self._transforms: list[Transform] = as_list("transforms", transforms)
        self._rules: tuple[LintRule, ...] = tuple(as_list("rules", rules))
        self._severity: dict[str, Severity] = as_dict("severity", severity or {})
        self._is_strict = strict
        self._are_many_exits_allowed = allow_many_exits
        self._defaults = {"backend": backend, "interviewer": interviewer, "runs_dir": runs_dir}
        self.handlers: dict[str, Handler | Callable[..., Any]] = as_dict("handlers", handlers or {})
        HandlerRegistry().register_all(self.handlers)
        self.params: dict[str, Any] = as_dict("params", params or {})
        self.observers: list[EventObserver] = []
        self._stepped: Run | None = None
        self._step_options: dict[str, Any] = {}
        self._plan: Plan | None = None
        self._prepare()

    def _prepare(self) -> None:
        preparation = Preparation(
            transforms=tuple(self._transforms),
            rules=self._rules,
            severity=self._severity,
            runnable_types=BUILT_IN_TYPES | self.handlers.keys(),
            is_strict=self._is_strict,
            are_many_exits_allowed=self._are_many_exits_allowed,
        )
        prepared = prepare(self._source, preparation)
        self.parsed: Graph = prepared.parsed
        self.graph: Graph = prepared.graph
        self.source: SourceText | None = prepared.document.source if prepared.document else None
        self.diagnostics: tuple[Diagnostic, ...] = prepared.diagnostics

    @property
    def name(self) -> str:
        """The name to show."""
        return self._name or self.graph.name or "pipeline"

    # -- plugging in ---------------------------------------------------------------------------------

    def register(self, handler_type: str, handler: Handler | Callable[..., Any]) -> None:
        """Register a handler for a type, replacing any earlier one (spec 4.12)."""
        HandlerRegistry().register(handler_type, handler)
        self.handlers[handler_type] = handler
        self._prepare()

    def register_transform(self, transform: Transform) -> None:
        """Add a transform after all others (spec 9.3)."""
        self._transforms.append(transform)
        try:
            self._prepare()
        except BaseException:  # an interrupt, too: half a transform is none
            self._transforms.pop()
            raise

    def on_event(self, observer: EventObserver) -> None:
        """Call ``observer`` with every event of every run from now on (spec 9.6)."""
        check_observer(observer)
        self.observers.append(observer)

    # -- looking -------------------------------------------------------------------------------------

    def lint(self) -> LintReport:
        """All findings; ``lint().fix()`` shows what the fixes would change."""
        return LintReport(self.diagnostics, self.source)

    def to_dot(self) -> str:
        """The source as written; for a pipeline made of a graph, its canonical DOT text."""
        return self.source.text if self.source is not None else write_dot(self.parsed)

    def to_mermaid(self) -> str:
        """The graph as a Mermaid flowchart."""
        return to_mermaid(self.graph)

    def to_svg(self) -> str:
        """The graph as a picture, errors marked."""
        return render_svg(self.graph, diagnostics=self.diagnostics)

    def to_networkx(self) -> nx.MultiDiGraph[str]:
        """The graph with all attributes, for analysis; parallel edges are kept."""
        import networkx as nx  # noqa: PLC0415 - 600 ms that most sessions never need

        result: nx.MultiDiGraph[str] = nx.MultiDiGraph()  # pyright: ignore[reportMissingTypeArgument, reportUnknownVariableType] - it takes none at run time
        result.graph.update(_plain(self.graph.attrs), name=self.graph.name)
        for node in self.graph.nodes.values():
            result.add_node(node.id, handler_type=node.handler_type, **_plain(node.attrs))
        for index, edge in enumerate(self.graph.edges):
            result.add_edge(edge.source, edge.target, key=index, **_plain(edge.attrs))
        return result

    def compile(self, bounds: Bounds) -> Plan:
        """The graph made ready to run within bounds; most of the work is done once for all runs."""
        if self._plan is None or self._plan.graph is not self.graph:
            self._plan = compile_plan(self.graph, bounds=bounds)
        return replace(self._plan, bounds=bounds)

    # -- running -------------------------------------------------------------------------------------

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
            return run.result() if wait else run.handed_over(interrupt)

    async def run_async(self, **options: Any) -> RunResult:
        """Run in the current event loop and return the result; raises as ``run`` does."""
        chosen = self._options({"host": "kernel", **options})
        with held_interrupts() as interrupt:
            return await self._start(chosen, interrupt, is_waited_for=True)

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
            **options: See ``RunOptions``. Directory and inputs are the run's own and are refused; bounds and
                backend are those that the run had, unless others are given.

        Raises:
            RunNotFound, RunLocked, GraphChanged, CheckpointCorrupt: It cannot go on, and why.
            UntrustedSource: The pipeline's commands come from elsewhere and nobody vouched for them.
            RunError: The run has ended and there is nothing to go on with; or it has no such visit.
        """
        logs_root = run.logs_root if isinstance(run, Run) else as_path(run)
        check_own(logs_root, options)
        rewind = read_rewind(rewind_to, visit)
        chosen = self._options(options)
        with held_interrupts() as interrupt:
            run_on = self._go_on(
                logs_root,
                chosen,
                interrupt,
                on_graph_change=on_graph_change,
                is_waited_for=False,
                rewind=rewind,
            )
            return run_on.handed_over(interrupt)

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
        options = with_recorded_backend(options, logs_root)
        check_host(options.host)
        check_plugs(options)
        seams = seams_of(options)
        beginning = continue_run(
            self, logs_root, options, seams, on_graph_change=on_graph_change, rewind=rewind
        )
        return self._launch(options, seams, beginning, interrupt, is_waited_for=is_waited_for)

    def _options(self, given: Mapping[str, Any]) -> RunOptions:
        self._refuse_errors()
        defaults = {key: value for key, value in self._defaults.items() if value is not None}
        options = read_options(defaults, given)
        learn_for_run(as_list("secrets", options.secrets))
        return options

    def _refuse_errors(self) -> None:
        if any(found.is_error for found in self.diagnostics):
            raise ValidationError(self.diagnostics)

    def _start(self, options: RunOptions, interrupt: HeldInterrupt, *, is_waited_for: bool) -> Run:
        check_host(options.host)
        check_plugs(options)
        seams = seams_of(options)
        beginning = begin(self, options, seams)
        return self._launch(options, seams, beginning, interrupt, is_waited_for=is_waited_for)

    def _launch(
        self,
        options: RunOptions,
        seams: Seams,
        start: Beginning,
        interrupt: HeldInterrupt,
        *,
        is_waited_for: bool,
    ) -> Run:
        """Start the engine; nobody gets the handle of a run that was interrupted before it began.

        Raises:
            RunInterrupted: It was interrupted; nothing of it was run.
        """
        try:
            _refuse_interrupted(interrupt, start)
            wired = wire(self, options, seams, start, is_waited_for=is_waited_for)
            if options.is_shown:
                present(wired.run)
            job = new_job(options.host, _title(options, start))
            wired.run.attach(job)
            _refuse_interrupted(interrupt, start)
        except BaseException:  # an interrupt, too, must give the run up, or a resume finds it locked
            start.close()
            raise
        job.start(wired.work)  # from here on the engine closes the store
        return wired.run

    # -- showing -------------------------------------------------------------------------------------

    def __str__(self) -> str:
        parts = [graph_text(self.graph)]
        if self.diagnostics:
            parts.append(findings_text(self.diagnostics))
        return "\n".join(parts)

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002 - the signature of Jupyter's hook
        return {"image/svg+xml": self.to_svg(), "text/plain": str(self)}


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


def _plain(attrs: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value if isinstance(value, str | int | float | bool) else str(value)
        for name, value in attrs.items()
    }
