"""One look at a graph that all rules share, and what lint must be told about its surroundings."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from attractor_nb.decisions.branch_policies import Join, joins_of, walked
from attractor_nb.decisions.planning.model_choices import ModelChoice, model_choice, nodes_that_ask
from attractor_nb.decisions.planning.plan import find_cycles
from attractor_nb.errors import ConditionSyntaxError, StylesheetSyntaxError
from attractor_nb.languages.condition import Condition, parse_condition
from attractor_nb.languages.dot.writer import embed_value, is_quoted, quote, spell
from attractor_nb.languages.stylesheet import Stylesheet, parse_stylesheet
from attractor_nb.lint.entailed_findings import Misspelling
from attractor_nb.model.diagnostic import Diagnostic, Fix, Severity, TextEdit
from attractor_nb.model.graph import Edge, Graph, Node, TextFileProblem, named_file
from attractor_nb.model.texts import in_order, nearest, suggestion
from attractor_nb.model.vocabulary.attribute_table import GRAPHVIZ_NAMES, AttributeSpec, AttrType, AttrValue, Scope
from attractor_nb.model.vocabulary.attributes import AttrSpan, attributes_of, literal_text
from attractor_nb.model.vocabulary.shapes import BUILT_IN_TYPES, HUMAN_TYPE, MANAGER_CONDITIONS, MANAGER_TYPE
from attractor_nb.model.vocabulary.value_forms import Duration
from attractor_nb.source import SourceText, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from attractor_nb.lint.entailed_findings import RepairedGraph
    from attractor_nb.model.child import ChildProblem
    from attractor_nb.model.inputs import Input


MAX_SUGGESTIONS = 50
"""Searches for a name that was meant, for each list of known names; each looks at all of them."""

_SET_NOTHING_FREELY: Final = frozenset({"start", "exit", "conditional", "parallel", HUMAN_TYPE})
"""Types whose stages set keys that are known; any other may come with a status.json that sets more."""


class Survey:
    """A graph and what rules want to know about it. Everything is computed at most once.

    Attributes:
        options: What lint was told.
        slips: The findings so far that know what was meant.
    """

    def __init__(self, graph: Graph, options: LintOptions) -> None:
        self.graph = graph
        self.options = options
        self.slips: list[Misspelling] = []
        self._known_nodes = KnownNames(graph.nodes)

    @property
    def types(self) -> Mapping[str, str]:
        """Handler type by node; of one that is run for each item of a list what executes an item."""
        return self.graph.item_types

    def of_type(self, handler_type: str) -> list[str]:
        """Ids of the nodes of a handler type, in source order."""
        return [node_id for node_id, kind in self.types.items() if kind == handler_type]

    # Tuples of texts are left alone by the garbage collector, lists are not; at 10,000 nodes a
    # collection takes as long as all rules together.

    @cached_property
    def successors(self) -> dict[str, tuple[str, ...]]:
        """Targets by source; edges from or to undeclared nodes are left out."""
        nodes, leaving = self.graph.nodes, self.graph.outgoing_edges
        return {node_id: tuple([edge.target for edge in leaving(node_id) if edge.target in nodes]) for node_id in nodes}

    def onward(self, node_id: str) -> tuple[str, ...]:
        """The targets of a node's edges."""
        return self.successors[node_id]

    @cached_property
    def predecessors(self) -> dict[str, tuple[str, ...]]:
        """Sources by target; edges from or to undeclared nodes are left out."""
        nodes, entering = self.graph.nodes, self.graph.incoming_edges
        return {
            node_id: tuple([edge.source for edge in entering(node_id) if edge.source in nodes]) for node_id in nodes
        }

    @cached_property
    def _nodes_by_attribute(self) -> dict[str, list[Node]]:
        nodes: dict[str, list[Node]] = {}
        for node in self.graph.nodes.values():
            for name in node.attrs:
                nodes.setdefault(name, []).append(node)
        return nodes

    def having(self, name: str) -> Sequence[Node]:
        """The nodes that have an attribute, in source order."""
        return self._nodes_by_attribute.get(name, ())

    def having_any(self, prefix: str) -> Sequence[Node]:
        """The nodes that have an attribute whose name begins like this."""
        found = {
            node.id: node
            for name, nodes in self._nodes_by_attribute.items()
            if name.startswith(prefix)
            for node in nodes
        }
        return tuple(found.values())

    @cached_property
    def forks(self) -> list[str]:
        """Ids of the nodes that several edges leave, in source order."""
        leaving = self.graph.outgoing_edges
        return [node_id for node_id in self.graph.nodes if len(leaving(node_id)) > 1]

    @cached_property
    def jumps(self) -> dict[str, list[str]]:
        """Targets of ``retry_target`` and ``fallback_retry_target`` by node (ruling 8)."""
        jumps: dict[str, list[str]] = {}
        for node in self.graph.nodes.values():
            if "retry_target" in node.attrs or "fallback_retry_target" in node.attrs:
                jumps[node.id] = [node.retry_target, node.fallback_retry_target]
        return jumps

    @cached_property
    def graph_jumps(self) -> list[str]:
        """The graph's own retry targets."""
        names = ("retry_target", "fallback_retry_target")
        return [target for name in names if (target := self.graph.get(name, str, ""))]

    @cached_property
    def reachable(self) -> set[str]:
        """Ids that a run can get to from the start: along edges and retry jumps (ruling 8)."""
        sources = {node.id for node in self.graph.start_nodes}
        sources.update(target for target in self.graph_jumps if target in self.graph.nodes)
        return walked(sources, self._led_to, ())

    @cached_property
    def joins(self) -> dict[str, Join]:
        """The node where the branches of each fan-out meet (ruling 22)."""
        return joins_of(self.graph)

    @cached_property
    def cycles(self) -> list[list[str]]:
        """Groups of nodes that form cycles, each in source order."""
        position = {node_id: number for number, node_id in enumerate(self.graph.nodes)}
        found = [sorted(cycle, key=position.__getitem__) for cycle in find_cycles(self.successors, self.predecessors)]
        return sorted(found, key=lambda cycle: position[cycle[0]])

    def is_bounded(self, cycle: Sequence[str]) -> bool:
        """True if each way around a group of nodes has an edge with ``max_taken``."""
        edges = [edge for node_id in cycle for edge in self.graph.outgoing_edges(node_id) if edge.target in cycle]
        if all(edge.max_taken is None for edge in edges):
            return False
        onward: dict[str, list[str]] = {node_id: [] for node_id in cycle}
        back: dict[str, list[str]] = {node_id: [] for node_id in cycle}
        for edge in edges:
            if edge.max_taken is None:
                onward[edge.source].append(edge.target)
                back[edge.target].append(edge.source)
        return not find_cycles(onward, back)

    @cached_property
    def cyclic(self) -> frozenset[str]:
        """The nodes that lie on a cycle."""
        return frozenset(node_id for cycle in self.cycles for node_id in cycle)

    @cached_property
    def behind_free_stages(self) -> set[str]:
        """The nodes before which a stage may be done that can set any key of the context."""
        if self.graph_jumps:
            return set(self.graph.nodes)
        free = [node_id for node_id, kind in self.types.items() if kind not in _SET_NOTHING_FREELY]
        return walked((target for node_id in free for target in self._led_to(node_id)), self._led_to, ())

    def _led_to(self, node_id: str) -> Sequence[str]:
        """The targets of a node's edges and retry jumps."""
        targets = self.successors[node_id]
        if node_id not in self.jumps:
            return targets
        return *targets, *(target for target in self.jumps[node_id] if target in self.successors)

    @cached_property
    def suspects(self) -> list[Suspect]:
        """Attributes that are not what the attribute table knows."""
        return find_suspects(self.graph)

    @cached_property
    def conditional_edges(self) -> list[tuple[Edge, str]]:
        """Edges that have a condition, with its text."""
        return [
            (edge, text) for edge in self.graph.edges if "condition" in edge.attrs and (text := edge.condition).strip()
        ]

    @cached_property
    def manager_conditions(self) -> list[tuple[Node, str, str]]:
        """The conditions of managers: node, attribute and text."""
        if MANAGER_TYPE in self.options.taken_over:
            return []
        managers = [self.graph.nodes[node_id] for node_id, kind in self.types.items() if kind == MANAGER_TYPE]
        named = ((node, name, node.get(name, str, "")) for node in managers for name in MANAGER_CONDITIONS)
        return [entry for entry in named if entry[2].strip()]

    @cached_property
    def condition_texts(self) -> list[tuple[Edge | Node, str, str]]:
        """All conditions: the edge or manager, its attribute and text."""
        return [*((edge, "condition", text) for edge, text in self.conditional_edges), *self.manager_conditions]

    @cached_property
    def conditions(self) -> dict[str, Condition | None]:
        """Each condition by its text; None where it does not parse."""
        conditions: dict[str, Condition | None] = {}
        for _, _, text in self.condition_texts:
            if text not in conditions:
                try:
                    conditions[text] = parse_condition(text)
                except ConditionSyntaxError:
                    conditions[text] = None
        return conditions

    @cached_property
    def condition_notices(self) -> list[tuple[Edge | Node, str, Diagnostic]]:
        """The notices of the parsed conditions with the attribute of each, pointing into the outer text."""
        notices: list[tuple[Edge | Node, str, Diagnostic]] = []
        for thing, name, text in self.condition_texts:
            condition = self.conditions[text]
            if condition is not None and condition.notices:
                read = parse_condition(embedded_text(thing, name, text))
                notices.extend((thing, name, notice) for notice in read.notices)
        return notices

    @cached_property
    def stylesheet(self) -> Stylesheet | StylesheetSyntaxError:
        """The stylesheet, or what is wrong with it, pointing into the outer text; none where its file cannot be had."""
        if any(not problem.node_id for problem in self.options.text_problems):
            return Stylesheet()
        try:
            return parse_stylesheet(embedded_text(self.graph, "model_stylesheet", self.graph.model_stylesheet))
        except StylesheetSyntaxError as error:
            return error

    @cached_property
    def model_choices(self) -> list[ModelChoice]:
        """Model and provider of the nodes that have one; empty while the stylesheet cannot be read."""
        sheet = self.stylesheet
        if isinstance(sheet, StylesheetSyntaxError):
            return []
        return [
            model_choice(node, self.graph, sheet)
            for node in nodes_that_ask(self.graph)
            if "llm_model" in node.attrs or "llm_provider" in node.attrs
        ]

    def nearest_node(self, name: str) -> str:
        """The id most like a name, or empty; for the first ``MAX_SUGGESTIONS`` names only."""
        return self._known_nodes.nearest(name)


class KnownNames:
    """Names of which one may have been meant.

    A graph may have as many slips as names, and each is compared with all names, so only the first
    ``MAX_SUGGESTIONS`` slips are.
    """

    def __init__(self, names: Iterable[str], search: Callable[[str, Iterable[str]], str] = nearest) -> None:
        """Take the names, of equally near ones the preferred first, and what finds the one that a slip means."""
        self._names = dict.fromkeys(in_order(names))
        self._search = search
        self._found: dict[str, str] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def has_beginning_of(self, name: str) -> bool:
        """Whether a name continues into the value of one of these (ruling 50)."""
        return any(name[:place] in self._names for place, letter in enumerate(name) if letter == ".")

    def nearest(self, slip: str) -> str:
        """The name that was meant, or empty."""
        if slip not in self._found and len(self._found) < MAX_SUGGESTIONS:
            self._found[slip] = self._search(slip, self._names)
        return self._found.get(slip, "")


def no_inputs(_name: str) -> None:
    """The inputs of a schema where no schemas are registered: None."""


def no_schema(_name: str) -> None:
    """The schema of a model where no models are registered: None."""


@dataclass(frozen=True, slots=True)
class LintOptions:
    """Options of lint: its strictness, and the handlers, schemas and functions that exist."""

    #: Handler types that mean something: the built-in ones and those registered.
    known_types: frozenset[str] = BUILT_IN_TYPES
    #: Types that have a handler, or None if the graph will not be run.
    runnable_types: frozenset[str] | None = None
    #: Names of the schemas that are registered, or None if the graph will not be run.
    schemas: frozenset[str] | None = None
    #: Names of the functions that models may call, or None if none were given.
    tools: frozenset[str] | None = None
    #: Names of the functions that stages may call, or None if the graph will not be run.
    functions: frozenset[str] | None = None
    #: Of the registered schemas those that cannot be filled in as forms, and why.
    invalid_forms: Mapping[str, str] = field(default_factory=dict[str, str])
    #: Gives the inputs that a registered schema declares, by its name; None where nothing is registered under it.
    schema_inputs: Callable[[str], Sequence[Input] | None] = no_inputs
    #: Gives the JSON Schema of what a registered model leaves of a value, by its name; None where it is unknown.
    stored_schema: Callable[[str], Mapping[str, Any] | None] = no_schema
    allow_many_exits: bool = False  #: Several exit nodes are accepted (ruling 7).
    #: Problems of the child pipelines that the graph names, found by a reader of files.
    child_problems: Sequence[ChildProblem] = ()
    #: By node: the inputs that its child declares and that only the node can give, or may.
    child_inputs: Mapping[str, Sequence[Input]] = field(default_factory=dict[str, "Sequence[Input]"])
    #: Problems of the files that texts name, found by a reader of files.
    text_problems: Sequence[TextFileProblem] = ()
    taken_over: frozenset[str] = frozenset()  #: Built-in types that the caller's own handlers execute, as they see fit.


# Attributes that are not what the attribute table knows: one pass over the graph for several rules.

Thing = Graph | Node | Edge


class Suspect(NamedTuple):
    """An attribute that some rule has something to say about."""

    thing: Thing  #: The owner of the attribute.
    scope: Scope
    name: str  #: The attribute's name.
    value: AttrValue
    row: AttributeSpec | None  #: The table's row for it, or None for a name that the table does not have.

    @property
    def node_id(self) -> str:
        """The id of the node, or empty."""
        return self.thing.id if isinstance(self.thing, Node) else ""

    @property
    def ends(self) -> tuple[str, str] | None:
        """Source and target of the edge, or None."""
        return (self.thing.source, self.thing.target) if isinstance(self.thing, Edge) else None


def find_suspects(graph: Graph) -> list[Suspect]:
    """All attributes of unknown name, wrong type, no choice or too small a number, in source order."""
    suspects: list[Suspect] = []
    for scope, things in ((Scope.GRAPH, (graph,)), (Scope.NODE, graph.nodes.values()), (Scope.EDGE, graph.edges)):
        claim_of = _CLAIMS[scope].get
        for thing in things:
            for name, value in thing.attrs.items():
                holds = claim_of(name, _is_unknown)
                if holds is not None and not holds(value):
                    suspects.append(Suspect(thing, scope, name, value, _ROWS[scope].get(name)))
    return suspects


def _is_unknown(_: AttrValue) -> bool:
    """The check of an attribute outside the table: no value satisfies it."""
    return False


def _claim(row: AttributeSpec) -> Callable[[AttrValue], bool] | None:
    """The check of a value of the attribute; None when any value is valid."""
    minimum = row.minimum
    match row.type:
        case AttrType.BOOLEAN:
            return lambda value: isinstance(value, bool)
        case AttrType.INTEGER:
            return lambda value: type(value) is int and (minimum is None or value >= minimum)
        case AttrType.FLOAT:
            return lambda value: (
                isinstance(value, int | float) and not isinstance(value, bool) and (minimum is None or value >= minimum)
            )
        case AttrType.DURATION:
            return lambda value: isinstance(value, Duration) and (minimum is None or value.milliseconds >= minimum)
        case AttrType.CHOICE:
            return lambda value: not value or literal_text(value) in row.choices
        case _:
            return None


_ROWS: Final = {
    scope: {row.name: row for row in attributes_of(scope)} for scope in (Scope.GRAPH, Scope.NODE, Scope.EDGE)
}
_CLAIMS: Final[dict[Scope, Mapping[str, Callable[[AttrValue], bool] | None]]] = {
    scope: {**dict.fromkeys(GRAPHVIZ_NAMES), **{name: _claim(row) for name, row in rows.items()}}
    for scope, rows in _ROWS.items()
}


# Spans of things in the source, and the edits that repair them there.


class AttributedElement(Protocol):
    """A graph, node or edge."""

    @property
    def attrs(self) -> Mapping[str, AttrValue]:
        """Its attributes."""
        ...

    @property
    def attr_spans(self) -> Mapping[str, AttrSpan]:
        """Their spans."""
        ...


def name_span(thing: AttributedElement, name: str) -> Span | None:
    """The span of an attribute's name; else that of the thing itself."""
    found = thing.attr_spans.get(name)
    return found.name if found else getattr(thing, "span", None)


def value_span(thing: AttributedElement, name: str) -> Span | None:
    """The span of an attribute's value; else that of the thing itself."""
    found = thing.attr_spans.get(name)
    return found.value if found else getattr(thing, "span", None)


def embedded_text(thing: AttributedElement, name: str, value: str) -> SourceText:
    """The value of an attribute as a text whose spans point into the source.

    When a transform changed the value, or it was never in a source, its spans point into itself, and it has the name
    of the file that it was read from.
    """
    found = thing.attr_spans.get(name)
    if found is None:
        return SourceText(value, f"<{name}>")
    text = embed_value(found.value)
    return text if text.text == value else SourceText(value, named_file(text.text) or f"<{name}>")


def target_span(edge: Edge) -> Span | None:
    """The span of an edge's target."""
    span = edge.span
    if span is None or not span.text.endswith(edge.target):
        return span
    return span.source.span(span.end - len(edge.target), span.end)


def source_span(edge: Edge) -> Span | None:
    """The span of an edge's source."""
    span = edge.span
    if span is None or not span.text.startswith(edge.source):
        return span
    return span.source.span(span.start, span.start + len(edge.source))


def replacing(span: Span | None, text: str, title: str) -> Fix:
    """The fix that puts another text under a span, or only says so where there is no span."""
    return Fix(title, (TextEdit(span, text),) if span is not None else ())


def replacing_value(thing: AttributedElement, name: str, value: AttrValue, title: str) -> Fix:
    """The fix that gives an attribute another value where it is written."""
    found = thing.attr_spans.get(name)
    return replacing(found.value if found else None, spell(value), title)


def renaming(thing: AttributedElement, name: str, new_name: str, title: str) -> Fix:
    """The fix that renames an attribute where it is written."""
    found = thing.attr_spans.get(name)
    return replacing(found.name if found else None, new_name, title)


def outward(fix: Fix | None) -> Fix | None:
    """A fix inside a condition or stylesheet as a fix of the text that it is embedded in."""
    if fix is None or not fix.edits:
        return fix
    return Fix(fix.title, tuple(edit for edit in map(_outward_edit, fix.edits) if edit))


def _outward_edit(edit: TextEdit) -> TextEdit | None:
    text, host = edit.span.source, edit.span.source.host
    if host is None:
        return None
    if is_quoted(host.text):
        return TextEdit(edit.span.outermost(), quote(edit.text)[1:-1])
    changed = text.text[: edit.span.start] + edit.text + text.text[edit.span.end :]
    return TextEdit(host, quote(changed))


def appending(graph: Graph, statement: str, title: str) -> Fix:
    """The fix that adds a statement at the end of the graph.

    Only says so when the last brace of the source may be in a comment.
    """
    source = graph.source
    end = _end_of_graph(source.text) if source else None
    if source is None or end is None:
        return Fix(title)
    start, is_alone = end
    insertion = f"    {statement}\n" if is_alone else f" {statement} "
    return Fix(title, (TextEdit(source.span(start, start), insertion),))


@lru_cache(maxsize=8)  # one for each text: a graph of one line may have a finding at each of 20,000 nodes
def _end_of_graph(text: str) -> tuple[int, bool] | None:
    """Place for a statement before the last brace, and whether the brace is alone on its line."""
    body = text.rstrip()
    line = body[body.rfind("\n") + 1 :]
    if not body.endswith("}") or any(sign in line for sign in ("//", "#", "*")):
        return None
    brace = len(body) - 1
    is_alone = not line[:-1].strip()
    return (brace - len(line) + 1 if is_alone else brace), is_alone


# A built-in rule: a function that yields findings, its name, its severity and its page.


class Finding(NamedTuple):
    """A finding as a rule's function yields it; the rule adds its name and severity."""

    message: str  #: The problem, naming the thing.
    span: Span | None = None  #: Its place in the source, or None for graphs that came from no text.
    node_id: str = ""  #: The node concerned, or empty.
    edge: tuple[str, str] | None = None  #: Source and target of the edge concerned, or None.
    fix: Fix | None = None  #: The remedy, or None.
    severity: Severity | None = None  #: Another severity than the rule's own, or None.
    #: For a misspelling: gives the graph without it, so that what it entails is not told, too.
    meant: RepairedGraph | None = None


@dataclass(frozen=True)
class Rule:
    """A built-in rule; as a ``LintRule`` it can also be applied alone."""

    name: str  #: Its identifier.
    severity: Severity  #: Severity of its findings, unless a finding has its own.
    #: True if it finds mistakes in what a statement says, whatever other statements say or leave out.
    is_local: bool
    check: Callable[[Survey], Iterable[Finding]] = field(repr=False)  #: Finds things in a surveyed graph.

    @property
    def page(self) -> str:
        """The rule's documentation: what, why, a bad and a good snippet."""
        return inspect.getdoc(self.check) or ""

    def apply(self, graph: Graph) -> list[Diagnostic]:
        """All findings in a graph."""
        return self.diagnose(Survey(graph, LintOptions()))

    def diagnose(self, survey: Survey) -> list[Diagnostic]:
        """All findings in a surveyed graph, one for each place.

        A value that many nodes inherit from one default block, or many edges from one chain, is
        reported once.
        """
        seen: set[Span] = set()
        diagnostics: list[Diagnostic] = []
        for found in self.check(survey):
            if found.span is not None:
                # Embedded texts with the same words compare equal; their places in the source do not.
                place = found.span.outermost()
                if place in seen:
                    continue
                seen.add(place)
            diagnostics.append(
                Diagnostic(
                    self.name,
                    found.severity or self.severity,
                    found.message,
                    found.node_id,
                    found.edge,
                    found.fix,
                    found.span,
                )
            )
            if found.meant is not None:
                survey.slips.append(Misspelling(diagnostics[-1], found.meant))
        return diagnostics


def rule(severity: Severity, *, is_local: bool = False) -> Callable[[Callable[[Survey], Iterable[Finding]]], Rule]:
    """Make a rule of a function: its name is the rule's, its docstring the rule's page."""

    def make(check: Callable[[Survey], Iterable[Finding]]) -> Rule:
        return Rule(check.__name__, severity, is_local, check)

    return make


def unregistered(
    thing: Graph | Node, attribute: str, claim: str, name: str, option: str, known: Collection[str]
) -> Finding:
    """The finding about a name that is not registered; its fix is the nearest that is, or how to register it.

    Args:
        thing: Has the attribute.
        attribute: Its name; its value is the name that is not registered.
        claim: How the message begins: ``"judge" names the schema``.
        name: The name.
        option: The option of ``Pipeline`` that registers it.
        known: The names that are registered.
    """
    message = f'{claim} "{name}", which is not registered'
    fix = Fix(f'register it: Pipeline(…, {option}={{"{name}": {name}}})')
    if near := nearest(name, sorted(known)):
        message += suggestion(near)
        fix = replacing_value(thing, attribute, near, f'write "{near}"')
    return Finding(message, value_span(thing, attribute), thing.id if isinstance(thing, Node) else "", fix=fix)
