"""A pipeline below the façade: a source, what is plugged in for it, and the pipelines that are made of both.

``PreparedSource`` is the source, read, transformed and linted. How it runs is not known here.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never, Self

import msgspec

from attractor_nb.errors import OptionError, ValidationError
from attractor_nb.lazy_imports import later
from attractor_nb.model.diagnostic import Diagnostic, Severity
from attractor_nb.model.texts import did_you_mean
from attractor_nb.model.vocabulary.option_meanings import OF_A_PIPELINE
from attractor_nb.model.vocabulary.shapes import BUILT_IN_TYPES, CHILD_RUN_TYPES, FUNCTION_TYPE
from attractor_nb.runtime.prepare.run_options import (
    BackendSpec,
    ExecutorSpec,
    InterviewerSpec,
    as_dict,
    as_list,
    as_path,
    check_names,
    check_observer,
    tells_options,
)
from attractor_nb.runtime.prepare.sources import Source, named_file, read_source

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pydantic import BaseModel

    from attractor_nb import lint
    from attractor_nb.backends.llm.tools import catalog as model_tools
    from attractor_nb.decisions import branch_policies
    from attractor_nb.decisions.bounds import RunBounds
    from attractor_nb.decisions.planning import plan
    from attractor_nb.decisions.planning.plan import Plan
    from attractor_nb.handlers import function_stage, handler_registry, manager_loop, named_models
    from attractor_nb.handlers.manager_loop import GuardFunction
    from attractor_nb.handlers.named_models import SchemaModels
    from attractor_nb.languages.dot import writer
    from attractor_nb.model.events import EventObserver
    from attractor_nb.model.graph import Graph
    from attractor_nb.model.inputs import Input
    from attractor_nb.protocols import Handler, LintRule, Transform
    from attractor_nb.runtime import execution
    from attractor_nb.runtime.execution import Execution
    from attractor_nb.runtime.prepare import child_pipelines, declared_inputs, known_secrets, text_sources, trust
    from attractor_nb.runtime.prepare.child_pipelines import Ancestry, Family, Prepared
    from attractor_nb.runtime.prepare.text_sources import TextFiles
    from attractor_nb.runtime.prepare.trust import Origin
    from attractor_nb.source import SourceText
else:
    branch_policies = later("attractor_nb.decisions.branch_policies")
    plan = later("attractor_nb.decisions.planning.plan")
    lint = later("attractor_nb.lint")
    declared_inputs = later("attractor_nb.runtime.prepare.declared_inputs")
    writer = later("attractor_nb.languages.dot.writer")
    execution = later("attractor_nb.runtime.execution")
    child_pipelines = later("attractor_nb.runtime.prepare.child_pipelines")
    model_tools = later("attractor_nb.backends.llm.tools.catalog")
    function_stage = later("attractor_nb.handlers.function_stage")
    named_models = later("attractor_nb.handlers.named_models")
    handler_registry = later("attractor_nb.handlers.handler_registry")
    known_secrets = later("attractor_nb.runtime.prepare.known_secrets")
    manager_loop = later("attractor_nb.handlers.manager_loop")
    text_sources = later("attractor_nb.runtime.prepare.text_sources")
    trust = later("attractor_nb.runtime.prepare.trust")


# The prepared source: its graph as written and as it will run, its texts, inputs, findings and plan.


class PreparedSource:
    """A source that was read, transformed and linted: see ``Pipeline``."""

    def __init__(self, files: TextFiles, severity: Mapping[str, Severity], schemas: SchemaModels, name: str) -> None:
        """Be ready to hold what is prepared.

        Args:
            files: Those that its texts may name.
            severity: Severities by the name of a rule, as the caller chose them.
            schemas: Pydantic models by name.
            name: The name that its runs have in place of the graph's; empty for that.
        """
        self._files = files
        self._name = name
        self._severity = severity
        self.schemas: SchemaModels = schemas
        self._plan: Plan | None = None

    def _hold(self, prepared: Prepared) -> None:
        """Be what was prepared now; its inputs and its plan are found anew."""
        self.parsed: Graph = prepared.parsed
        self.graph: Graph = prepared.graph
        self._document = prepared.document
        self.source: SourceText | None = prepared.document.source if prepared.document else None
        self.diagnostics: tuple[Diagnostic, ...] = prepared.diagnostics
        self._inputs: tuple[Input, ...] | None = None

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The inputs that the graph declares (ruling 34); none where it takes any values.

        Raises:
            InputsSyntaxError: Its ``inputs`` does not parse.
        """
        if self._inputs is None:
            self._inputs = declared_inputs.declared_inputs(self.graph, self.schemas)
        return self._inputs

    def to_dot(self) -> str:
        """The source with the texts of files in it; for a pipeline made of a graph its canonical DOT text."""
        return self._files.contained(self._document) if self._document else writer.write_dot(self.whole)

    @property
    def whole(self) -> Graph:
        """The graph as written, with the texts of files in it."""
        return self._files.contained_graph(self.parsed)

    @property
    def written(self) -> str:
        """The source as written; for a pipeline made of a graph, its canonical DOT text."""
        return self.source.text if self.source is not None else writer.write_dot(self.parsed)

    def compile(self, bounds: RunBounds) -> Plan:
        """The graph made ready to run within bounds; most of the work is done once for all runs.

        Args:
            bounds: The bounds.
        """
        if self._plan is None or self._plan.graph is not self.graph:
            self._plan = plan.compile_plan(self.graph, bounds=bounds)
        return msgspec.structs.replace(self._plan, bounds=bounds, name=self._name or self.graph.name)

    def refuse_errors(self) -> None:
        """Refuse to run what lint found errors in.

        Raises:
            ValidationError: It found some.
        """
        found = self.run_diagnostics()
        if errors := {each.rule for each in found if each.is_error}:
            from attractor_nb.storage.run_directory import SOURCE_NAME  # noqa: PLC0415 - a pipeline needs no storage

            place, hint = Path(self.source.name if self.source is not None else ""), ""
            if place.name == SOURCE_NAME and errors & {"function_known", lint.HANDLER_MISSING}:
                call = f'pipeline.resume("{place.parent.as_posix()}")'
                hint = f"a run directory keeps no Python; resume it from the pipeline that has it: {call}"
            raise ValidationError(found, hint=hint)

    def run_diagnostics(self) -> tuple[Diagnostic, ...]:
        """Lint findings at run time: a missing handler counts as an error.

        For the text alone that is a warning (spec 7.2). A severity that the caller chose for the rule holds.
        """
        if lint.HANDLER_MISSING in self._severity:
            return self.diagnostics
        return tuple(
            replace(found, severity=Severity.ERROR) if found.rule == lint.HANDLER_MISSING else found
            for found in self.diagnostics
        )

    def join_of(self, node_id: str) -> str:
        """The join of a fan-out: the node at which the run continues after its branches (ruling 22).

        Args:
            node_id: The fan-out.

        Returns:
            The node's id; empty when the branches have no node in common and run to their ends.

        Raises:
            OptionError: There is no such fan-out.
        """
        found = branch_policies.joins_of(self.graph)
        if node_id not in found:
            raise OptionError(
                f"{node_id!r} is not a fan-out{did_you_mean(node_id, found)}", hint="name a node of shape component"
            )
        return found[node_id].node_id


class Definition(PreparedSource):
    """A source that was read, transformed and linted, with all that its runs need: see ``Pipeline``."""

    @tells_options
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
        functions: Mapping[str, Callable[..., Any]] | None = None,
        child_roots: Sequence[str | Path] = (),
        ancestry: Ancestry | None = None,
        **unknown: Never,
    ) -> None:
        """Read, transform and lint a source. Findings do not raise here; ``run`` refuses errors.

        Args:
            source: DOT text, a path to a .dot file, or a graph.
        """
        check_names(unknown, OF_A_PIPELINE)
        known_secrets.learn_environment()
        self._own_origin = trust.absolute_origin(named_file(source) if origin is None else origin)
        files = _text_files(trust.absolute_origin(named_file(source)) or self._own_origin)
        self._source = read_source(source)  # once: what was looked at is what runs, whatever the file becomes
        self._transforms: list[Transform] = as_list("transforms", transforms)
        self._rules: tuple[LintRule, ...] = tuple(as_list("rules", rules))
        severities: dict[str, Severity] = as_dict("severity", severity or {})
        self._is_strict = strict
        self._are_many_exits_allowed = allow_many_exits
        self._defaults: dict[str, Any] = {
            "backend": backend,
            "interviewer": interviewer,
            "executor": executor,
            "runs_dir": runs_dir,
        }
        self._hold_functions(handlers, guards, tools, functions)
        self.params: dict[str, Any] = as_dict("params", params or {})
        self.pipelines: dict[str, Definition | Source] = as_dict("pipelines", pipelines or {})
        models: SchemaModels = named_models.checked_schemas(as_dict("schemas", schemas)) if schemas else {}
        roots = tuple(str(as_path(root, "child_roots")) for root in as_list("child_roots", child_roots))
        self._ancestry = ancestry or child_pipelines.Ancestry(roots=roots)
        relatives = self._ancestry.relatives
        self._child_sources: dict[str, SourceText | Graph] = relatives.sources if relatives else {}
        self.observers: list[EventObserver] = []
        super().__init__(files, severities, models, name)
        self._prepare()

    def _hold_functions(
        self,
        handlers: Mapping[str, Handler | Callable[..., Any]] | None,
        guards: Mapping[str, GuardFunction] | None,
        tools: Mapping[str, Callable[..., Any]] | None,
        functions: Mapping[str, Callable[..., Any]] | None,
    ) -> None:
        """Check and hold the Python functions that nodes name."""
        self.handlers: dict[str, Handler | Callable[..., Any]] = as_dict("handlers", handlers or {})
        if self.handlers:
            handler_registry.HandlerRegistry().register_all(self.handlers)
        self.guards: dict[str, GuardFunction] = manager_loop.checked_guards(as_dict("guards", guards)) if guards else {}
        self.tools: dict[str, Callable[..., Any]] = (
            model_tools.checked_functions(as_dict("tools", tools)) if tools else {}
        )
        self.functions: dict[str, Callable[..., Any]] = as_dict("functions", functions or {})
        if self.functions:
            function_stage.stage_functions(self.functions)

    def _prepare(self) -> None:
        wanted = child_pipelines.Preparation(
            transforms=tuple(self._transforms),
            rules=self._rules,
            severity=self._severity,
            runnable_types=BUILT_IN_TYPES | self.handlers.keys() | {FUNCTION_TYPE},
            functions=frozenset(self.functions),
            schemas=frozenset(self.schemas),
            tools=frozenset(self.tools) or None,
            invalid_forms=named_models.form_problems(self.schemas) if self.schemas else {},
            schema_inputs=partial(declared_inputs.registered_inputs, self.schemas),
            stored_schema=partial(named_models.stored_schema, self.schemas),
            is_strict=self._is_strict,
            are_many_exits_allowed=self._are_many_exits_allowed,
            find_children=self._find_children,
            taken_over=frozenset(self.handlers),
        )
        prepared = child_pipelines.prepare(self._source, wanted, self._files)
        self._hold(prepared)
        self.family: Family[Definition] = prepared.family

    def _find_children(self, graph: Graph) -> Family[Definition]:
        if CHILD_RUN_TYPES.isdisjoint(graph.handler_types.values()):
            return child_pipelines.Family[Definition]()
        origin = self._own_origin if isinstance(self._own_origin, Path) else None
        stream = "" if origin or self._own_origin is None else str(self._own_origin) or "elsewhere"
        own_types = frozenset(self.handlers)
        relatives = self._ancestry.relatives or child_pipelines.Relatives[Definition](sources=self._child_sources)
        return child_pipelines.FamilySearch(
            origin,
            self.pipelines,
            self._ancestry,
            self._make_child,
            self._make_item,
            Definition,
            relatives,
            own_types,
            stream,
        ).find(graph)

    def _make_child(self, source: Source, ancestry: Ancestry) -> Definition:
        """A child pipeline of a file or of what was registered, with what this one has registered."""
        place = named_file(source)
        if place is not None and str(place) not in self._child_sources:
            self._child_sources[str(place)] = read_source(place)
        text = source if place is None else self._child_sources[str(place)]
        return type(self)(text, **self._settings, origin=place, ancestry=ancestry)

    def _make_item(self, graph: Graph, ancestry: Ancestry, origin: Path | None) -> Definition:
        """The pipeline of an item, with what this one has registered; the rules have judged its one stage already."""
        settings: dict[str, Any] = {**self._settings, "rules": ()}
        return type(self)(graph, **settings, origin=origin or self._own_origin, ancestry=ancestry)

    @property
    def _settings(self) -> dict[str, Any]:
        """The settings that every pipeline made from this one inherits."""
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
            "functions": self.functions,
        }

    @property
    def origin(self) -> Origin | None:
        """The origin of its commands, its children's included."""
        return self.origin_for(acts_unasked=False)

    def origin_for(self, *, acts_unasked: bool) -> Origin | None:
        """The origin of its commands, with or without a backend that may write or execute for any stage.

        Args:
            acts_unasked: The backend may write or execute for any stage.
        """
        if self._own_origin is not None:
            return self._own_origin
        return child_pipelines.foreign_origin(self.family, acts_unasked=acts_unasked)

    @property
    def run_defaults(self) -> Mapping[str, Any]:
        """The backend, interviewer and place of runs that it was given; without those that it was not."""
        return {key: value for key, value in self._defaults.items() if value is not None}

    @property
    def run_kind(self) -> type[Execution]:
        """The class of its runs."""
        return execution.Execution

    @property
    def name(self) -> str:
        """The name to show."""
        return self._name or self.graph.name or "pipeline"

    @property
    def title(self) -> str:
        """The heading of its runs: the name that it was given, else the label of its graph."""
        return self._name if self._name not in {"", self.graph.name} else self.graph.label

    # -- plugging in ---------------------------------------------------------------------------------

    def register(self, handler_type: str, handler: Handler | Callable[..., Any]) -> None:
        """Register a handler for a type, replacing any earlier one (spec 4.12).

        Args:
            handler_type: The type, as nodes name it.
            handler: A handler, or a function of node, context, graph and directory.
        """
        handler_registry.HandlerRegistry().register(handler_type, handler)
        self.handlers[handler_type] = handler
        self._prepare()

    def register_function(self, name: str, function: Callable[..., Any]) -> None:
        """Register a function that nodes may call as stages (``function=count``), replacing any earlier one.

        Args:
            name: The name, as nodes write it.
            function: A function of any of node, prompt, context, inputs and stage, by name; sync or async.

        Raises:
            OptionError: It is no function, or takes what a stage does not give.
        """
        function_stage.stage_functions({name: function})
        self.functions = {**self.functions, name: function}
        self._prepare()

    def register_schema(self, name: str, model: type[BaseModel]) -> None:
        """Register a pydantic model that ``response_schema`` or ``human.form`` of nodes may name (ruling 26).

        Args:
            name: The name, as nodes write it.
            model: The pydantic model.

        Raises:
            OptionError: The name is none, or it is no pydantic model.
        """
        self.schemas.update(named_models.checked_schemas({name: model}))
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
        """Copy handlers and options from a merged pipeline; existing ones are kept.

        Args:
            other: The pipeline that has become part of this one.
        """
        self.handlers = {**other.handlers, **self.handlers}
        self.pipelines = {**other.pipelines, **self.pipelines}
        self.guards = {**other.guards, **self.guards}
        self.schemas = {**other.schemas, **self.schemas}
        self.tools = {**other.tools, **self.tools}
        self.functions = {**other.functions, **self.functions}
        self.params = {**other.params, **self.params}
        if self._own_origin is None:
            self._own_origin = other.origin
        self._prepare()


def _text_files(origin: Origin | None) -> TextFiles:
    """The text files of a pipeline: beside its file, or in the working directory for the caller's own text."""
    if isinstance(origin, str):
        return text_sources.TextFiles(None, origin)
    if origin is not None:
        return text_sources.TextFiles(origin.parent)
    try:
        return text_sources.TextFiles(Path.cwd())
    except FileNotFoundError:  # it was removed: no file is found there, and a run with a workdir needs none
        return text_sources.TextFiles(Path())
