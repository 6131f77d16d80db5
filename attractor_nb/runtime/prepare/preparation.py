"""From a source to a graph that may run: read, transform, lint (spec 9.1; ruling 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from attractor_nb.errors import AttractorError, OptionError
from attractor_nb.languages.dot import DotDocument, read_dot
from attractor_nb.lint import validate
from attractor_nb.lint.survey import BUILT_IN_TYPES, LintOptions, no_inputs
from attractor_nb.model.diagnostic import Diagnostic, Severity
from attractor_nb.model.graph import Graph
from attractor_nb.runtime.prepare.child_pipelines import Family
from attractor_nb.runtime.prepare.sources import read_source
from attractor_nb.transforms import built_in_transforms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from attractor_nb.model.inputs import Input
    from attractor_nb.protocols import LintRule, Transform
    from attractor_nb.runtime.prepare.sources import Source
    from attractor_nb.runtime.prepare.text_sources import TextFiles


class Preparation(Struct, frozen=True):
    """What a source becomes, and with what."""

    transforms: Sequence[Transform] = ()  #: Custom transforms, run after the built-in ones in this order (spec 9.3).
    rules: Sequence[LintRule] = ()  #: Custom lint rules.
    #: Severities in place of the rules' own.
    severity: Mapping[str, Severity] = field(default_factory=dict[str, Severity])
    runnable_types: frozenset[str] = frozenset()  #: Handler types that can be executed.
    schemas: frozenset[str] = frozenset()  #: Names of the schemas that are registered.
    tools: frozenset[str] | None = None  #: Names of the functions that models may call; None when nobody has given any.
    functions: frozenset[str] = frozenset()  #: Names of the functions that stages may call.
    #: Those of them that cannot be filled in as forms, and why.
    invalid_forms: Mapping[str, str] = field(default_factory=dict[str, str])
    #: Gives the inputs that a registered schema declares, by its name.
    schema_inputs: Callable[[str], Sequence[Input] | None] = no_inputs
    is_strict: bool = False  #: Generous readings are errors.
    are_many_exits_allowed: bool = False  #: More than one exit node may stand.
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
    document = None if isinstance(text, Graph) else read_dot(text, strict=preparation.is_strict)
    parsed = text if isinstance(text, Graph) else document.graph if document else None
    assert parsed is not None, "a source is a graph or has one"
    put_in, text_problems = files.put_in(parsed)
    graph = _transformed(put_in, (*built_in_transforms(), *preparation.transforms))
    family = preparation.find_children(graph) if preparation.find_children else Family[Any]()
    graph = family.beside(graph)
    options = LintOptions(
        known_types=BUILT_IN_TYPES | preparation.runnable_types,
        runnable_types=preparation.runnable_types,
        schemas=preparation.schemas,
        tools=preparation.tools,
        functions=preparation.functions,
        invalid_forms=preparation.invalid_forms,
        schema_inputs=preparation.schema_inputs,
        allow_many_exits=preparation.are_many_exits_allowed,
        child_problems=family.problems,
        child_inputs=family.inputs,
        text_problems=text_problems,
        taken_over=preparation.taken_over,
    )
    found = validate(graph, preparation.rules, options=options, severity=preparation.severity)
    notices = document.diagnostics if document else ()
    return Prepared(document, parsed, graph, in_source_order([*notices, *found]), family)


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
