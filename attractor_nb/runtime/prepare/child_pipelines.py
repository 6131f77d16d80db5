"""The child pipelines that a graph names: found, read and linted before anything runs (spec 4.11, 9.4).

A node names its child by a file or by the name of a registered pipeline. A file must be below the
directory of the file that names it, below the working directory, or below a directory that the caller
allows; wherever links lead, the place where they end counts. It is a DOT file and not hidden: the words of
others decide what is read here. What came from a stream or over the network may make its host read no file
but those of directories that the caller allows. What was read is what runs.

Files may be a stranger's (ruling 52): each is read and linted once, however many nodes name it, and how deep
they nest and their number of nodes is bounded.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct, field

from attractor_nb.decisions.planning.executable_surface import executable_surface
from attractor_nb.errors import AttractorError, DotSyntaxError, InputsSyntaxError, OptionError, SourceError
from attractor_nb.languages.dot import BrokenText, DotDocument, examine_dot
from attractor_nb.lazy_imports import later
from attractor_nb.lint import HANDLER_MISSING, validate
from attractor_nb.lint.survey import BUILT_IN_TYPES, LintOptions, no_inputs, no_schema
from attractor_nb.model.child import ChildProblem
from attractor_nb.model.diagnostic import Diagnostic, Fix, Severity
from attractor_nb.model.graph import Graph, Node, TextFileProblem
from attractor_nb.model.texts import did_you_mean
from attractor_nb.model.vocabulary.shapes import CHILD_TYPES, child_attributes
from attractor_nb.model.vocabulary.value_forms import FOR_EACH, FOR_EACH_TYPE
from attractor_nb.runtime.prepare.current_directory import here
from attractor_nb.runtime.prepare.sources import Source, read_source
from attractor_nb.storage.child_directories import child_home, kept_source
from attractor_nb.storage.files.user_files import Outside, check_visible
from attractor_nb.storage.run_directory import SOURCE_NAME
from attractor_nb.transforms import built_in_transforms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from attractor_nb.decisions.planning import item_graphs
    from attractor_nb.model.inputs import Input
    from attractor_nb.protocols import LintRule, Transform
    from attractor_nb.runtime.prepare.text_sources import TextFiles
    from attractor_nb.runtime.prepare.trust import Origin
    from attractor_nb.source import SourceText
else:
    item_graphs = later("attractor_nb.decisions.planning.item_graphs")


DEFAULT_DEPTH: Final = 8
MAX_DEPTH: Final = 32
"""Deepest nesting of pipelines, for any ``max_child_depth``: each level is a level of the stack."""
MAX_NODES: Final = 10_000
"""Nodes that all children of a pipeline may have together, those of a child counted as often as it is named."""
_KINDS: Final = frozenset({".dot", ".gv"})


class Ancestry(Struct, frozen=True):
    """The position of a pipeline among its ancestors and descendants."""

    chain: tuple[str, ...] = ()  #: The files and names of its ancestors and its own, from the top.
    roots: tuple[str, ...] = ()  #: Directories in which child files may be.
    max_depth: int | None = None  #: Deepest nesting below the top; None until the top sets it.
    relatives: Relatives[Any] | None = None  #: Common findings of all of them; None until the top starts the search.


class Member(Protocol):
    """The parts of a child pipeline that its family reads."""

    graph: Graph
    diagnostics: tuple[Diagnostic, ...]
    params: dict[str, Any]
    family: Family[Any]

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The inputs it declares."""
        ...

    @property
    def origin(self) -> Origin | None:
        """The origin of its commands."""
        ...


MemberT = TypeVar("MemberT", bound=Member)


class Family(Struct, Generic[MemberT]):
    """The child pipelines of a graph, and the problems of those that cannot run."""

    children: dict[str, MemberT] = field(default_factory=dict[str, MemberT])  #: The child pipelines by node.
    problems: list[ChildProblem] = field(default_factory=list[ChildProblem])  #: Problems of the others.
    depth: int = 0  #: Number of levels of pipelines below.
    node_count: int = 0  #: Number of their nodes together, on all levels, each as often as it is named.
    #: The nodes whose child is the pipeline of an item: no attribute that an author writes says so.
    items: set[str] = field(default_factory=set[str])

    def add(self, node_id: str, child: MemberT, *, is_item: bool = False) -> None:
        """Take in the child of a node; that of an item is on the level of the node."""
        self.node_count += len(child.graph.nodes) + child.family.node_count
        if self.is_too_large:
            raise _Refused(
                f"with this one, the child pipelines have {self.node_count:,} nodes together, counted as often as they "
                f"are named; {MAX_NODES:,} are allowed",
                "name fewer children, or smaller ones",
            )
        self.children[node_id] = child
        if is_item:
            self.items.add(node_id)
        self.depth = max(self.depth, child.family.depth + (not is_item))

    @property
    def is_too_large(self) -> bool:
        """True if the children have more nodes than there may be."""
        return self.node_count > MAX_NODES

    def beside(self, graph: Graph) -> Graph:
        """The graph, and the graphs of its children with it."""
        if not self.children:
            return graph
        return replace(graph, children={node_id: child.graph for node_id, child in self.children.items()})

    @property
    def inputs(self) -> dict[str, tuple[Input, ...]]:
        """The inputs that the children declare, by node; those that their own pipelines give them are not required."""
        found = {node_id: _open_inputs(child) for node_id, child in self.children.items()}
        for node_id in self.items:  # its one stage names the child whose inputs these are
            found |= self.children[node_id].family.inputs
        return found


def _open_inputs(child: Member) -> tuple[Input, ...]:
    try:
        declared = child.inputs
    except InputsSyntaxError:  # its own lint tells it
        return ()
    return tuple(
        msgspec.structs.replace(each, is_required=each.is_required and each.name not in child.params)
        for each in declared
    )


class _Refused(Exception):
    """A child cannot be had."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.message, self.remedy = message, remedy


class Relatives(Struct, Generic[MemberT]):
    """The results of one search for child pipelines on all levels, by file or registered name."""

    made: dict[str, MemberT] = field(default_factory=dict[str, MemberT])  #: The pipelines that can run.
    #: Those that cannot, each with the highest level at which that is known, the reason and a remedy.
    refused: dict[str, tuple[int, str, str]] = field(default_factory=dict[str, tuple[int, str, str]])
    #: The texts of all files, as they were when they were read.
    sources: dict[str, SourceText | Graph] = field(default_factory=dict[str, "SourceText | Graph"])


class FamilySearch(Struct, Generic[MemberT], frozen=True):
    """Finds the children of one pipeline."""

    origin: Path | None  #: The file that the pipeline came from, or None.
    registered: Mapping[str, Any]  #: Pipelines by name: a ``Pipeline``, or what one is made of.
    ancestry: Ancestry  #: Parents of the pipeline.
    make: Callable[[Any, Ancestry], MemberT]  #: Makes a pipeline of a file (or what was registered) and its ancestry.
    #: Makes one of the graph of an item, its ancestry and its origin.
    make_item: Callable[[Graph, Ancestry, Path | None], MemberT]
    made_by: type[Any]  #: Class of the pipeline.
    relatives: Relatives[MemberT]  #: Common findings of the top and all below it.
    #: Handler types that the user has taken over: their nodes run no child run.
    own_types: frozenset[str] = frozenset()
    stream: str = ""  #: The name of what it came from, when that is no file and not the caller's own text.

    def find(self, graph: Graph) -> Family[MemberT]:
        """All children that a graph names, and what is wrong with them."""
        family = Family[MemberT]()
        wanted = CHILD_TYPES - self.own_types
        for node_id, handler_type in graph.handler_types.items():
            if family.is_too_large:
                break
            if handler_type == FOR_EACH_TYPE:
                if FOR_EACH in graph.nodes[node_id].attrs:  # else the node only says the type, and fails
                    self._find_item(graph, graph.nodes[node_id], family)
            elif handler_type in wanted:
                self._find_one(graph, graph.nodes[node_id], family)
        return family

    def _find_item(self, graph: Graph, node: Node, family: Family[MemberT]) -> None:
        """The pipeline of an item: on the level of this one, with the child that the node itself may have."""
        origin = self.origin
        if origin is not None and origin.name == SOURCE_NAME:  # in a run directory, its own source is below
            origin = child_home(origin.parent, node.id) / SOURCE_NAME
        beside = Ancestry(self._chain(), tuple(self._roots()), self._limit(graph), self.relatives)
        made = self.make_item(item_graphs.item_graph(graph, node), beside, origin)
        family.problems.extend(made.family.problems)
        try:
            family.add(node.id, made, is_item=True)
        except _Refused as refused:
            family.problems.append(ChildProblem(node.id, "", refused.message, refused.remedy))

    def _find_one(self, graph: Graph, node: Node, family: Family[MemberT]) -> None:
        named = _naming(graph, node)
        try:
            if named is None:
                kept = kept_source(self.origin, node.id) if self.origin else None
                if kept is not None:
                    family.add(node.id, self._load(kept, graph))
                return
            family.add(node.id, self._child(graph, node, *named[:2]))
            self._note_missing_handlers(family.children[node.id], node, named, family)
        except _Refused as refused:
            attribute, _, is_of_graph = named or ("", "", False)
            family.problems.append(ChildProblem(node.id, attribute, refused.message, refused.remedy, is_of_graph))

    def _note_missing_handlers(
        self, child: MemberT, node: Node, named: tuple[str, str, bool], family: Family[MemberT]
    ) -> None:
        """Note the handlers that a child lacks: its parent has a warning, and a run of either is refused."""
        attribute, value, is_of_graph = named
        family.problems.extend(
            ChildProblem(
                node.id,
                attribute,
                f"{value}: {found.message}",
                found.fix.title if found.fix else "register a handler for it",
                is_of_graph,
                lacks_handler=True,
            )
            for found in child.diagnostics
            if found.rule == HANDLER_MISSING and found.severity is Severity.WARNING
        )

    def _child(self, graph: Graph, node: Node, attribute: str, value: str) -> MemberT:
        is_name = attribute.endswith(("child_pipeline", ".name"))
        kept = kept_source(self.origin, node.id) if self.origin else None
        if is_name and value in self.registered:
            return self._registered(graph, value)
        if kept is not None:
            return self._load(kept, graph)
        if is_name:
            near = did_you_mean(value, self.registered)
            raise _Refused(f'no pipeline is registered as "{value}"{near}', f'Pipeline(…, pipelines={{"{value}": …}})')
        return self._load(self._file(value), graph)

    def _registered(self, graph: Graph, name: str) -> MemberT:
        given = self.registered[name]
        if isinstance(given, self.made_by):
            self._check_depth(graph, name, given.family.depth)
            return _accepted(given, f'the pipeline registered as "{name}"')
        return self._made(given, f"registered as {name}", graph)

    def _file(self, text: str) -> Path:
        base = self.origin.parent if self.origin else here()
        place = Path(os.path.realpath(base / text)) if "\0" not in text else base
        roots = [root for root in self._roots() if place.is_relative_to(root)]
        if self.stream and not roots:
            raise _Refused(
                f'the child file "{text}" is not read: the pipeline came from {self.stream}, and has no files here',
                "register the child by a name, or allow its directory: Pipeline(…, child_roots=[…])",
            )
        if "\0" in text or not place.exists():
            raise _Refused(f'there is no file "{text}" in {base}', "correct the path; it is relative to that directory")
        if not roots:
            raise _Refused(
                f'the child file "{text}" is at {place}, outside of the directories of this pipeline',
                "move it below them, register the pipeline by a name, or allow its directory: "
                "Pipeline(…, child_roots=[…])",
            )
        if not place.is_file():
            raise _Refused(f'"{text}" in {base} is not a file', "name a .dot file")
        self._check_visible(text, place, roots)
        return place

    def _check_visible(self, text: str, place: Path, roots: list[str]) -> None:
        """Refuse a file that is hidden below all of its roots, or no DOT file."""
        problem: Outside | None = None
        for root in roots:
            try:
                check_visible(place.relative_to(root), _KINDS)
            except Outside as found:
                problem = found
            else:
                return
        assert problem is not None, "it is below one of them"
        raise _Refused(f'the child file "{text}" {problem.message}', problem.remedy)

    def _roots(self) -> list[str]:
        if self.stream:
            return [os.path.realpath(root) for root in self.ancestry.roots]
        own = [str(self.origin.parent)] if self.origin and not self.ancestry.chain else []
        return [os.path.realpath(root) for root in (*own, str(here()), *self.ancestry.roots)]

    def _load(self, place: Path, graph: Graph) -> MemberT:
        return self._made(place, os.path.realpath(place), graph)

    def _made(self, source: Any, identity: str, graph: Graph) -> MemberT:
        chain = self._chain()
        if identity in chain:
            nested = " -> ".join(Path(entry).name for entry in (*chain[chain.index(identity) :], identity))
            raise _Refused(f"the pipeline includes itself: {nested}", "end the circle at one of them")
        relatives = self.relatives
        if (known := relatives.made.get(identity)) is not None:
            self._check_depth(graph, Path(identity).name, known.family.depth)
            return known
        refusal = relatives.refused.get(identity)
        if refusal is not None and refusal[0] <= len(chain):
            raise _Refused(*refusal[1:])
        try:
            made = relatives.made[identity] = self._made_now(source, identity, graph)
        except _Refused as refused:
            relatives.refused[identity] = len(chain), refused.message, refused.remedy
            raise
        return made

    def _made_now(self, source: Any, identity: str, graph: Graph) -> MemberT:
        self._check_depth(graph, Path(identity).name)
        below = Ancestry((*self._chain(), identity), tuple(self._roots()), self._limit(graph), self.relatives)
        try:
            child = self.make(source, below)
        except AttractorError as error:
            line = f" in line {error.span.line}" if isinstance(error, SourceError) and error.span else ""
            message = f"{_shown(identity)} cannot be read: {error.message}{line}"
            raise _Refused(message, error.hint or "fix it") from None
        return _accepted(child, _shown(identity))

    def _check_depth(self, graph: Graph, name: str, below: int = 0) -> None:
        """Refuse a child that, with the levels below it, is nested too deep."""
        limit = self._limit(graph)
        if len(self._chain()) + below > limit:
            bound = f"{MAX_DEPTH} levels, the most there can be" if limit == MAX_DEPTH else f"max_child_depth={limit}"
            remedy = "nest less" if limit == MAX_DEPTH else "nest less, or raise max_child_depth on the top graph"
            raise _Refused(f"{name} would be nested deeper than {bound}", remedy)

    def _chain(self) -> tuple[str, ...]:
        """The ancestors and the pipeline itself; as many as the level on which its children are."""
        own = os.path.realpath(self.origin) if self.origin else "this pipeline"
        return self.ancestry.chain or (own,)

    def _limit(self, graph: Graph) -> int:
        inherited = self.ancestry.max_depth
        return inherited if inherited is not None else min(graph.get("max_child_depth", int, DEFAULT_DEPTH), MAX_DEPTH)


def _naming(graph: Graph, node: Node) -> tuple[str, str, bool] | None:
    """By which attribute a node names its child, its value, and whether it is on the graph; or None.

    Lint says when there is none, or more than one.
    """
    names, holders = child_attributes(node.handler_type)
    for is_of_graph, holder in enumerate((node, graph)[:holders]):
        for name in names:
            if value := holder.get(name, str, "").strip():
                return name, value, bool(is_of_graph)
    return None


def _accepted(child: MemberT, shown: str) -> MemberT:
    errors = [found for found in child.diagnostics if found.is_error]
    if errors:
        count = f"{len(errors)} errors, the first" if len(errors) > 1 else "an error"
        raise _Refused(
            f"{shown} has {count}: {errors[0].message}", "fix it; `attractor-nb lint FILE` shows all of them"
        )
    return child


def _shown(identity: str) -> str:
    return Path(identity).name if os.sep in identity else f"the pipeline {identity}"


def foreign_origin(family: Family[MemberT], *, acts_unasked: bool) -> Origin | None:
    """The first file or stream from which commands of children come; None when all are the caller's own."""
    for child in family.children.values():
        if child.origin is not None and executable_surface(child.graph, acts_unasked=acts_unasked):
            return child.origin
    return None


# From a source to a graph that may run: read, transform, lint (spec 9.1; ruling 9).


class Preparation(Struct, frozen=True):
    """The settings for preparing a source: transforms, rules, and the types and names that are known."""

    transforms: Sequence[Transform] = ()  #: Custom transforms, run after the built-in ones in this order (spec 9.3).
    rules: Sequence[LintRule] = ()  #: Custom lint rules.
    #: Severities in place of the rules' own.
    severity: Mapping[str, Severity] = field(default_factory=dict[str, Severity])
    runnable_types: frozenset[str] = frozenset()  #: Handler types that can be executed.
    schemas: frozenset[str] = frozenset()  #: Names of the schemas that are registered.
    tools: frozenset[str] | None = None  #: Names of the functions that models may call; None if none were given.
    functions: frozenset[str] = frozenset()  #: Names of the functions that stages may call.
    #: Those of them that cannot be filled in as forms, and why.
    invalid_forms: Mapping[str, str] = field(default_factory=dict[str, str])
    #: Gives the inputs that a registered schema declares, by its name.
    schema_inputs: Callable[[str], Sequence[Input] | None] = no_inputs
    #: Gives the JSON Schema of what a registered model leaves of a value, by its name.
    stored_schema: Callable[[str], Mapping[str, Any] | None] = no_schema
    is_strict: bool = False  #: Generous readings are errors.
    are_many_exits_allowed: bool = False  #: More than one exit node is allowed.
    find_children: Callable[[Graph], Family[Any]] | None = None  #: Finds the child pipelines that a graph names.
    taken_over: frozenset[str] = frozenset()  #: Types that the caller's own handlers execute.


class Prepared(Struct, frozen=True):
    """A source that was read, transformed and linted."""

    document: DotDocument | None  #: The source and its syntax tree; None when a graph was given.
    parsed: Graph  #: The graph as written.
    graph: Graph  #: The graph as it will run.
    diagnostics: tuple[Diagnostic, ...]  #: All findings in source order.
    family: Family[Any]  #: The child pipelines that it names.


def prepare(source: Source, preparation: Preparation, files: TextFiles) -> Prepared:
    """Read, transform and lint a source.

    Args:
        source: Text, path or graph.
        preparation: With what.
        files: Those that its texts may name.
    """
    text = read_source(source)
    document: DotDocument | None = None
    if isinstance(text, Graph):
        parsed = text
    else:
        examined = examine_dot(text, strict=preparation.is_strict)
        if isinstance(examined, BrokenText):
            raise _with_findings_of_rest(examined, preparation, files)
        document, parsed = examined, examined.graph
    put_in, text_problems = files.put_in(parsed)
    graph = _transformed(put_in, (*built_in_transforms(), *preparation.transforms))
    family = preparation.find_children(graph) if preparation.find_children else Family[Any]()
    graph = family.beside(graph)
    options = _lint_options(preparation, family, text_problems)
    found = validate(graph, preparation.rules, options=options, severity=preparation.severity)
    notices = document.diagnostics if document else ()
    return Prepared(document, parsed, graph, in_source_order([*notices, *found]), family)


def _lint_options(
    preparation: Preparation, family: Family[Any], text_problems: Sequence[TextFileProblem]
) -> LintOptions:
    return LintOptions(
        known_types=BUILT_IN_TYPES | preparation.runnable_types,
        runnable_types=preparation.runnable_types,
        schemas=preparation.schemas,
        tools=preparation.tools,
        functions=preparation.functions,
        invalid_forms=preparation.invalid_forms,
        schema_inputs=preparation.schema_inputs,
        stored_schema=preparation.stored_schema,
        allow_many_exits=preparation.are_many_exits_allowed,
        child_problems=family.problems,
        child_inputs=family.inputs,
        text_problems=text_problems,
        taken_over=preparation.taken_over,
    )


def _with_findings_of_rest(text: BrokenText, preparation: Preparation, files: TextFiles) -> DotSyntaxError:
    """The error for a text with syntax errors, with what lint finds in its other statements.

    Their fixes only say what to do: an edit is made in a text that can be read.
    """
    error, rest = text.error, text.rest
    if rest is None:
        return error
    graph, text_problems = files.put_in(rest.graph)
    options = _lint_options(preparation, Family[Any](), text_problems)
    found = validate(graph, options=options, severity=preparation.severity, only_local=True)
    notices = [replace(each, fix=Fix(each.fix.title) if each.fix else None) for each in (*rest.diagnostics, *found)]
    others = in_source_order([*error.others, *notices])
    return DotSyntaxError(error.message, error.span, hint=error.hint, others=others)


def _transformed(graph: Graph, transforms: Iterable[Transform]) -> Graph:
    for transform in transforms:
        name = type(transform).__name__
        apply: Callable[[Graph], object] | None = getattr(transform, "apply", None)
        if not callable(apply):
            raise OptionError(f"a {name} is not a transform", hint="give an object with apply(graph)")
        try:
            result = apply(graph)
        except AttractorError:
            raise
        except Exception as error:  # a transform of the caller may raise anything
            raise OptionError(
                f"transform {name} raised {type(error).__name__}: {error}", hint="fix it, or leave it out"
            ) from error
        if not isinstance(result, Graph):
            raise OptionError(
                f"transform {name} returned {type(result).__name__}, not a Graph", hint="return the changed copy"
            )
        graph = result
    return graph


def in_source_order(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Findings by place, those without one last."""

    def place(found: Diagnostic) -> tuple[bool, int, int]:
        if found.span is None:
            return True, 0, 0
        outer = found.span.outermost()
        return False, outer.start, outer.end

    return tuple(sorted(diagnostics, key=place))
