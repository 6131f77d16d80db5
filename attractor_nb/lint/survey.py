"""One look at a graph that all rules share, and what lint must be told about its surroundings."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from attractor_nb.decisions.fan_outs.joins import joins_of, walked
from attractor_nb.decisions.planning.cycles import find_cycles
from attractor_nb.decisions.planning.model_choices import model_choice, nodes_that_ask
from attractor_nb.errors import ConditionSyntaxError, StylesheetSyntaxError
from attractor_nb.languages.condition import Condition, parse_condition
from attractor_nb.languages.stylesheet import Stylesheet, parse_stylesheet
from attractor_nb.lint.source_places import embedded_text
from attractor_nb.lint.suspects import Suspect, find_suspects
from attractor_nb.model.nearest_name import nearest
from attractor_nb.model.vocabulary.shapes import BUILT_IN_TYPES, HUMAN_TYPE, MANAGER_CONDITIONS, MANAGER_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from attractor_nb.decisions.fan_outs.joins import Join
    from attractor_nb.decisions.planning.model_choices import ModelChoice
    from attractor_nb.lint.consequences import Slip
    from attractor_nb.model.child import ChildProblem
    from attractor_nb.model.diagnostic import Diagnostic
    from attractor_nb.model.graph import Edge, Graph, Node
    from attractor_nb.model.inputs import Input
    from attractor_nb.model.text_files import TextFileProblem

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
        self.slips: list[Slip] = []
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
        """Where the edges of a node lead."""
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
        """Where the branches of each fan-out meet (ruling 22)."""
        return joins_of(self.graph)

    @cached_property
    def cycles(self) -> list[list[str]]:
        """Groups of nodes that form cycles, each in source order."""
        position = {node_id: number for number, node_id in enumerate(self.graph.nodes)}
        found = [sorted(cycle, key=position.__getitem__) for cycle in find_cycles(self.successors, self.predecessors)]
        return sorted(found, key=lambda cycle: position[cycle[0]])

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
        """Where edges and retry jumps lead from a node."""
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
    def conditions(self) -> dict[str, Condition | None]:
        """Each condition by its text; None where it does not parse."""
        conditions: dict[str, Condition | None] = {}
        texts = [text for _, text in self.conditional_edges] + [text for _, _, text in self.manager_conditions]
        for text in texts:
            if text not in conditions:
                try:
                    conditions[text] = parse_condition(text)
                except ConditionSyntaxError:
                    conditions[text] = None
        return conditions

    @cached_property
    def condition_errors(self) -> list[tuple[Edge, ConditionSyntaxError]]:
        """What is wrong with conditions, pointing into the outer text."""
        errors: list[tuple[Edge, ConditionSyntaxError]] = []
        for edge, text in self.conditional_edges:
            if self.conditions[text] is None:
                try:
                    parse_condition(embedded_text(edge, "condition", text))
                except ConditionSyntaxError as error:
                    errors.append((edge, error))
        return errors

    @cached_property
    def condition_notices(self) -> list[tuple[Edge, Diagnostic]]:
        """What reading the conditions gave notice of, pointing into the outer text."""
        notices: list[tuple[Edge, Diagnostic]] = []
        for edge, text in self.conditional_edges:
            condition = self.conditions[text]
            if condition is not None and condition.notices:
                read = parse_condition(embedded_text(edge, "condition", text))
                notices.extend((edge, notice) for notice in read.notices)
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
        self._names = dict.fromkeys(names)
        self._search = search
        self._found: dict[str, str] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def nearest(self, slip: str) -> str:
        """The name that was meant, or empty."""
        if slip not in self._found and len(self._found) < MAX_SUGGESTIONS:
            self._found[slip] = self._search(slip, self._names)
        return self._found.get(slip, "")


def no_inputs(_name: str) -> None:
    """What is registered where nothing is."""


@dataclass(frozen=True, slots=True)
class LintOptions:
    """How strict lint is, and which handlers there are."""

    #: Handler types that mean something: the built-in ones and those registered.
    known_types: frozenset[str] = BUILT_IN_TYPES
    #: Types that have a handler, or None when nobody is going to run the graph.
    runnable_types: frozenset[str] | None = None
    #: Names of the schemas that are registered, or None when nobody is going to run the graph.
    schemas: frozenset[str] | None = None
    #: Names of the functions that models may call, or None when nobody has given any.
    tools: frozenset[str] | None = None
    #: Names of the functions that stages may call, or None when nobody is going to run the graph.
    functions: frozenset[str] | None = None
    #: Of the registered schemas those that cannot be filled in as forms, and why.
    invalid_forms: Mapping[str, str] = field(default_factory=dict[str, str])
    #: Gives the inputs that a registered schema declares, by its name; None where nothing is registered under it.
    schema_inputs: Callable[[str], Sequence[Input] | None] = no_inputs
    allow_many_exits: bool = False  #: Several exit nodes are accepted (ruling 7).
    #: What is wrong with the child pipelines that the graph names, as who can read files has found.
    child_problems: Sequence[ChildProblem] = ()
    #: By node: the inputs that its child declares and that only the node can give, or may.
    child_inputs: Mapping[str, Sequence[Input]] = field(default_factory=dict[str, "Sequence[Input]"])
    #: What is wrong with the files that texts name, as who can read files has found.
    text_problems: Sequence[TextFileProblem] = ()
    taken_over: frozenset[str] = frozenset()  #: Built-in types that the caller's own handlers execute, as they see fit.
