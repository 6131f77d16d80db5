"""What a pipeline is: its source, the graph that it comes to, what lint says of it, what is plugged in."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never, Self, cast

from attractor_nb.errors import OptionError, ValidationError
from attractor_nb.model.diagnostic import Severity
from attractor_nb.model.option_meanings import OF_A_PIPELINE
from attractor_nb.model.shapes import BUILT_IN_TYPES, CHILD_TYPES
from attractor_nb.model.spelling import did_you_mean
from attractor_nb.pipeline import features
from attractor_nb.pipeline.given import given_options
from attractor_nb.pipeline.mending import Mendable
from attractor_nb.pipeline.options import BOUNDS, as_dict, as_list, as_path, check_names, check_observer
from attractor_nb.pipeline.sharing import Sharing
from attractor_nb.pipeline.sources import named_file, read_source

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import networkx as nx
    from pydantic import BaseModel

    from attractor_nb.decisions.bounds import Bounds
    from attractor_nb.decisions.estimates import Assumptions
    from attractor_nb.decisions.plan import Plan
    from attractor_nb.handlers.schemas import SchemaModels
    from attractor_nb.handlers.supervision import GuardFunction
    from attractor_nb.model.diagnostic import Diagnostic
    from attractor_nb.model.events import EventObserver
    from attractor_nb.model.graph import Graph
    from attractor_nb.model.inputs import Input
    from attractor_nb.pipeline.estimating import Estimate
    from attractor_nb.pipeline.families import Ancestry, Family
    from attractor_nb.pipeline.lint_report import LintReport
    from attractor_nb.pipeline.model_report import ModelReport
    from attractor_nb.pipeline.options import BackendSpec, DurationSpec, ExecutorSpec, InterviewerSpec
    from attractor_nb.pipeline.pipeline import Pipeline
    from attractor_nb.pipeline.preflight import Preflight
    from attractor_nb.pipeline.sources import Source
    from attractor_nb.pipeline.text_files import TextFiles
    from attractor_nb.pipeline.trust import Origin
    from attractor_nb.protocols import Handler, LintRule, Transform
    from attractor_nb.source import SourceText


class Definition(Mendable, Sharing):
    """A source that was read, transformed and linted, with all that its runs need: see ``Pipeline``."""

    def __init__(
        self,
        source: Source,
        *,
        backend: BackendSpec = None,
        interviewer: InterviewerSpec = None,
        executor: ExecutorSpec = None,
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
        pipelines: Mapping[str, Definition | Source] | None = None,
        guards: Mapping[str, GuardFunction] | None = None,
        schemas: Mapping[str, type[BaseModel]] | None = None,
        tools: Mapping[str, Callable[..., Any]] | None = None,
        child_roots: Sequence[str | Path] = (),
        ancestry: Ancestry | None = None,
        **unknown: Never,
    ) -> None:
        """Read, transform and lint a source. Findings do not raise here; ``run`` refuses errors.

        Args:
            source: DOT text, a path to a .dot file, or a graph.
            backend: What answers prompts: simulated, local, llm, claude, codex, gemini, a function or a
                backend.
            interviewer: Who answers gates: auto, console, deferred (run.answer), a function or an
                interviewer; by default whoever shows the run, else the terminal.
            executor: Where tool and model stages are done: a concurrent.futures.Executor, or a function that
                makes one; here by default.
            handlers: Custom handlers by type.
            transforms: Custom transforms, after the built-in ones.
            rules: Custom lint rules.
            severity: Severities in place of the rules' own, by the name of the rule.
            params: Values that every run's context starts with.
            name: Name to show, in place of the graph's.
            runs_dir: Where run directories are made; .attractor/runs by default.
            strict: Generous readings of DOT are errors.
            allow_many_exits: More than one exit node may stand (ruling 7).
            origin: Where a text came from that is not the caller's own: its commands then need trust= of run.
                A file that source names is its own origin.
            pipelines: Pipelines that nodes run by name (pipeline.name, stack.child_pipeline).
            guards: Functions by name that judge a supervised child (manager.guard_function).
            schemas: Pydantic models by name that response_schema or human.form of a node, or inputs_schema of
                the graph, may name.
            tools: Functions by name that allowed_tools of a node may name, for models that are asked directly
                (backend=llm).
            child_roots: Directories in which child files may be, besides those below the file that names them
                and below the working directory.
            ancestry: Of a child pipeline: where it stands. For the package alone.
            **unknown: Any other keyword: an error that names the nearest option.

        Raises:
            DotSyntaxError: The text does not parse.
            OptionError: The source cannot be read.
        """
        check_names(unknown, OF_A_PIPELINE)
        features.learn_environment()
        self._own_origin = features.absolute_origin(named_file(source) if origin is None else origin)
        self._files = _text_files(features.absolute_origin(named_file(source)) or self._own_origin)
        self._source = read_source(source)  # once: what was looked at is what runs, whatever the file becomes
        self._name = name
        self._transforms: list[Transform] = as_list("transforms", transforms)
        self._rules: tuple[LintRule, ...] = tuple(as_list("rules", rules))
        self._severity: dict[str, Severity] = as_dict("severity", severity or {})
        self._is_strict = strict
        self._are_many_exits_allowed = allow_many_exits
        self._defaults: dict[str, Any] = {
            "backend": backend,
            "interviewer": interviewer,
            "executor": executor,
            "runs_dir": runs_dir,
        }
        self.handlers: dict[str, Handler | Callable[..., Any]] = as_dict("handlers", handlers or {})
        if self.handlers:
            features.HandlerRegistry().register_all(self.handlers)
        self.params: dict[str, Any] = as_dict("params", params or {})
        self.pipelines: dict[str, Definition | Source] = as_dict("pipelines", pipelines or {})
        self.guards: dict[str, GuardFunction] = (
            features.checked_guards(as_dict("guards", guards)) if guards else {}
        )
        self.schemas: SchemaModels = features.checked_schemas(as_dict("schemas", schemas)) if schemas else {}
        self.tools: dict[str, Callable[..., Any]] = (
            features.checked_functions(as_dict("tools", tools)) if tools else {}
        )
        self._child_sources: dict[str, SourceText | Graph] = {}
        roots = tuple(str(as_path(root, "child_roots")) for root in as_list("child_roots", child_roots))
        self._ancestry = ancestry or features.Ancestry(roots=roots)
        self.observers: list[EventObserver] = []
        self._plan: Plan | None = None
        self._prepare()

    def _prepare(self) -> None:
        preparation = features.Preparation(
            transforms=tuple(self._transforms),
            rules=self._rules,
            severity=self._severity,
            runnable_types=BUILT_IN_TYPES | self.handlers.keys(),
            schemas=frozenset(self.schemas),
            tools=frozenset(self.tools) or None,
            unfit_forms=features.form_problems(self.schemas) if self.schemas else {},
            schema_inputs=partial(features.registered_inputs, self.schemas),
            is_strict=self._is_strict,
            are_many_exits_allowed=self._are_many_exits_allowed,
            find_children=self._find_children,
            taken_over=frozenset(self.handlers),
        )
        prepared = features.prepare(self._source, preparation, self._files)
        self.parsed: Graph = prepared.parsed
        self.graph: Graph = prepared.graph
        self._document = prepared.document
        self.source: SourceText | None = prepared.document.source if prepared.document else None
        self.diagnostics: tuple[Diagnostic, ...] = prepared.diagnostics
        self.family: Family = prepared.family
        self._inputs: tuple[Input, ...] | None = None

    def _find_children(self, graph: Graph) -> Family:
        if CHILD_TYPES.isdisjoint(graph.handler_types.values()):
            return features.Family()
        origin = self._own_origin if isinstance(self._own_origin, Path) else None
        own_types = frozenset(self.handlers)
        return features.FamilySearch(
            origin, self.pipelines, self._ancestry, self._make_child, Definition, own_types
        ).find(graph)

    def _make_child(self, source: Source, ancestry: Ancestry) -> Pipeline:
        """A child pipeline of a file or of what was registered, with what this one has registered."""
        place = named_file(source)
        if place is not None and str(place) not in self._child_sources:
            self._child_sources[str(place)] = read_source(place)
        text = source if place is None else self._child_sources[str(place)]
        made = type(self)(text, **self._settings, origin=place, ancestry=ancestry)
        return cast("Pipeline", made)  # nobody makes definitions of another kind

    @property
    def _settings(self) -> dict[str, Any]:
        """What every pipeline that is made of this one has, too."""
        return {
            "handlers": self.handlers,
            "rules": self._rules,
            "severity": self._severity,
            "strict": self._is_strict,
            "allow_many_exits": self._are_many_exits_allowed,
            "pipelines": self.pipelines,
            "guards": self.guards,
            "schemas": self.schemas,
            "tools": self.tools,
        }

    @property
    def origin(self) -> Origin | None:
        """Where its commands come from, its children's included."""
        return self._own_origin if self._own_origin is not None else features.foreign_origin(self.family)

    @property
    def run_defaults(self) -> Mapping[str, Any]:
        """The backend, interviewer and place of runs that it was given; without those that it was not."""
        return {key: value for key, value in self._defaults.items() if value is not None}

    @property
    def name(self) -> str:
        """The name to show."""
        return self._name or self.graph.name or "pipeline"

    # -- plugging in ---------------------------------------------------------------------------------

    def register(self, handler_type: str, handler: Handler | Callable[..., Any]) -> None:
        """Register a handler for a type, replacing any earlier one (spec 4.12).

        Args:
            handler_type: The type, as nodes name it.
            handler: A handler, or a function of node, context, graph and directory.
        """
        features.HandlerRegistry().register(handler_type, handler)
        self.handlers[handler_type] = handler
        self._prepare()

    def register_schema(self, name: str, model: type[BaseModel]) -> None:
        """Register a pydantic model that ``response_schema`` or ``human.form`` of nodes may name (ruling 26).

        Args:
            name: The name, as nodes write it.
            model: The pydantic model.

        Raises:
            OptionError: The name is none, or it is no pydantic model.
        """
        self.schemas.update(features.checked_schemas({name: model}))
        self._prepare()

    def register_transform(self, transform: Transform) -> None:
        """Add a transform after all others (spec 9.3).

        Args:
            transform: Has ``apply(graph)``, which returns a graph.
        """
        self._transforms.append(transform)
        try:
            self._prepare()
        except BaseException:  # an interrupt, too: half a transform is none
            self._transforms.pop()
            raise

    def on_event(self, observer: EventObserver) -> None:
        """Call ``observer`` with every event of every run from now on (spec 9.6).

        Args:
            observer: A function of an event.
        """
        check_observer(observer)
        self.observers.append(observer)

    def join_of(self, node_id: str) -> str:
        """Where the branches of a fan-out meet: the node at which the run goes on after them (ruling 22).

        Args:
            node_id: The fan-out.

        Returns:
            The node's id; empty when the branches have no node in common and run to their ends.

        Raises:
            OptionError: There is no such fan-out.
        """
        joins = features.joins_of(self.graph)
        if node_id not in joins:
            raise OptionError(
                f"{node_id!r} is no fan-out{did_you_mean(node_id, joins)}",
                hint="name a node of shape component",
            )
        return joins[node_id].node_id

    def with_source(self, source: Source, other: Definition | None = None) -> Self:
        """A pipeline of another source with everything else that this one has.

        Args:
            source: DOT text, a path, or a graph.
            other: A pipeline that has become part of the source: its handlers, parameters and registered
                pipelines join this one's, and if it came from elsewhere the result does.
        """
        made = type(self)(
            source,
            **{**self._defaults, **self._settings},
            transforms=self._transforms,
            params=self.params,
            name=self._name,
            origin=self._own_origin,
            ancestry=self._ancestry,
        )
        made.observers.extend(self.observers)
        if other is not None:
            made.take_over(other)
        return made

    def take_over(self, other: Definition) -> None:
        """Take what a pipeline needs that has become part of this one; what both have stays this one's.

        Args:
            other: The pipeline that has become part of this one.
        """
        self.handlers = {**other.handlers, **self.handlers}
        self.pipelines = {**other.pipelines, **self.pipelines}
        self.guards = {**other.guards, **self.guards}
        self.schemas = {**other.schemas, **self.schemas}
        self.tools = {**other.tools, **self.tools}
        self.params = {**other.params, **self.params}
        if self._own_origin is None:
            self._own_origin = other.origin
        self._prepare()

    # -- looking -------------------------------------------------------------------------------------

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The inputs that the graph declares (ruling 34); none where it takes any values.

        Raises:
            InputsSyntaxError: Its ``inputs`` does not parse.
        """
        if self._inputs is None:
            self._inputs = features.declared_inputs(self.graph, self.schemas)
        return self._inputs

    def lint(self) -> LintReport:
        """All findings; ``lint().fix()`` shows what the fixes would change."""
        return features.LintReport(self.diagnostics, self.source)

    def models(self, backend: BackendSpec = None) -> ModelReport:
        """Which model answers each node's prompt, and which rule of stylesheet or graph says so (spec 8.5).

        Args:
            backend: The backend whose own model holds for nodes that nobody names one for; this pipeline's
                by default.
        """
        return features.model_report(self.graph, self._defaults["backend"] if backend is None else backend)

    def estimate(
        self,
        params: Mapping[str, Any] | None = None,
        *,
        backend: BackendSpec = None,
        assumptions: Assumptions | None = None,
        max_steps: int | None = None,
        max_node_visits: int | None = None,
        max_restarts: int | None = None,
        max_goal_gate_redirects: int | None = None,
        max_budget_usd: float | None = None,
        max_tokens_total: int | None = None,
        max_duration: DurationSpec | None = None,
        **unknown: Never,
    ) -> Estimate:
        """What a run will consume, as expected and at worst, in tokens and USD; nothing is run or asked.

        Args:
            params: Inputs of the run: conditions on the likely path see them, and prompts have their text.
            backend: The backend whose own model holds for nodes that nobody names one for.
            assumptions: What is taken for granted where nothing says otherwise.
            max_steps: Stop after so many stages.
            max_node_visits: Stop after so many visits to one node.
            max_restarts: Stop after so many loop_restarts.
            max_goal_gate_redirects: Stop after so many ways back from unsatisfied goal gates.
            max_budget_usd: Stop at this price in US dollars.
            max_tokens_total: Stop at so many tokens.
            max_duration: Stop after 90s, 15m, 2h of running time, in the middle of a stage if need be.
            **unknown: Any other keyword: an error that names the nearest option.

        Raises:
            ValidationError: Lint found errors.
            OptionError: A bound or the backend is none, or an input is misspelt.
        """
        given = locals()
        self.refuse_errors()
        return features.estimate(
            self.graph,
            name=self.name,
            values=features.checked_inputs(
                self, {**self.params, **as_dict("params", params or {})}, is_whole=False
            ),
            backend=self._defaults["backend"] if backend is None else backend,
            assumptions=assumptions or features.Assumptions(),
            bounds=given_options(given, of=BOUNDS),
            schemas=self.schemas,
        )

    def doctor(
        self, backend: BackendSpec = None, *, runs_dir: str | Path | None = None, online: bool = False
    ) -> Preflight:
        """What a run would need, and whether it is there: models, keys, programs, disk. Nothing is run.

        Args:
            backend: What would answer prompts; this pipeline's by default.
            runs_dir: Where runs would be kept; this pipeline's by default.
            online: Look whether the servers of its models can be reached, too.
        """
        place = self._defaults["runs_dir"] if runs_dir is None else runs_dir
        return features.examine(
            self.graph,
            name=self.name,
            diagnostics=self.judged_for_a_run(),
            backend=self._defaults["backend"] if backend is None else backend,
            runs_dir=None if place is None else as_path(place, "runs_dir"),
            is_online=online,
        )

    def to_dot(self) -> str:
        """The source with the texts of files in it; for a pipeline made of a graph its canonical DOT text."""
        return self._files.contained(self._document) if self._document else features.write_dot(self.whole)

    @property
    def whole(self) -> Graph:
        """The graph as written, with the texts of files in it."""
        return self._files.contained_graph(self.parsed)

    @property
    def written(self) -> str:
        """The source as written; for a pipeline made of a graph, its canonical DOT text."""
        return self.source.text if self.source is not None else features.write_dot(self.parsed)

    def to_mermaid(self) -> str:
        """The graph as a Mermaid flowchart."""
        return features.to_mermaid(self.graph)

    def to_svg(self) -> str:
        """The graph as a picture, errors marked."""
        return features.render_svg(self.graph, diagnostics=self.diagnostics, is_whole=False)

    def to_networkx(self) -> nx.MultiDiGraph[str]:
        """The graph with all attributes, for analysis; parallel edges are kept."""
        import networkx as nx  # noqa: PLC0415 - 600 ms that most sessions never need

        result: nx.MultiDiGraph[str] = nx.MultiDiGraph()  # pyright: ignore[reportMissingTypeArgument, reportUnknownVariableType] - it takes none at run time
        result.graph.update(_plain(self.graph.attrs), name=self.graph.name)
        for node in self.graph.nodes.values():
            result.add_node(node.id, handler_type=self.graph.handler_types[node.id], **_plain(node.attrs))
        for index, edge in enumerate(self.graph.edges):
            result.add_edge(edge.source, edge.target, key=index, **_plain(edge.attrs))
        return result

    def compile(self, bounds: Bounds) -> Plan:
        """The graph made ready to run within bounds; most of the work is done once for all runs.

        Args:
            bounds: The bounds.
        """
        if self._plan is None or self._plan.graph is not self.graph:
            self._plan = features.compile_plan(self.graph, bounds=bounds)
        return replace(self._plan, bounds=bounds)

    def refuse_errors(self) -> None:
        """Refuse to run what lint found errors in.

        Raises:
            ValidationError: It found some.
        """
        found = self.judged_for_a_run()
        if any(each.is_error for each in found):
            raise ValidationError(found)

    def judged_for_a_run(self) -> tuple[Diagnostic, ...]:
        """All findings as a run takes them: who is missing a handler now cannot execute the node.

        For the text alone that is a warning (spec 7.2). A severity that the caller chose for the rule holds.
        """
        if features.HANDLER_MISSING in self._severity:
            return self.diagnostics
        return tuple(
            replace(found, severity=Severity.ERROR) if found.rule == features.HANDLER_MISSING else found
            for found in self.diagnostics
        )

    # -- showing -------------------------------------------------------------------------------------

    def __str__(self) -> str:
        parts = [features.graph_text(self.graph)]
        if self.diagnostics:
            parts.append(features.findings_text(self.diagnostics))
        return "\n".join(parts)

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002 - the signature of Jupyter's hook
        return features.picture_bundle(self.to_svg(), str(self))


def _text_files(origin: Origin | None) -> TextFiles:
    """Where texts of a pipeline may be: beside its file, or in the working directory for the caller's own."""
    if isinstance(origin, str):
        return features.TextFiles(None, origin)
    return features.TextFiles(origin.parent if origin is not None else Path.cwd())


def _plain(attrs: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value if isinstance(value, str | int | float | bool) else str(value)
        for name, value in attrs.items()
    }
