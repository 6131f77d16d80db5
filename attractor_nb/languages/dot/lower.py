"""From syntax tree to graph: what the statements mean (spec 2.5-2.12, 11.1; rulings 2, 4, 5).

Chains become single edges, default blocks reach what follows them in their scope, groups are flattened
and remembered, values get the type that the attribute table asks for. A value that does not fit its
type is kept as it was written, and lint says so.

A node takes the defaults in force at its first statement; later statements of the same id add to it.
Nodes are in the order of their first statement; implicit ones (ruling 4) follow in the order of mention.
They take the defaults in force where they are first mentioned and belong to no group.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import DotSyntaxError
from attractor_nb.languages.dot.syntax import (
    Attr,
    AttrSpans,
    Block,
    Defaults,
    DotTree,
    EdgeStatement,
    GraphDeclaration,
    Name,
    NodeStatement,
    Statement,
    SubgraphStatement,
)
from attractor_nb.languages.dot.writer import Reading, read_unknown, readings
from attractor_nb.model.graph import Edge, Graph, Node, Subgraph
from attractor_nb.model.texts import MAX_SLIPS, edit_distance
from attractor_nb.model.vocabulary.attribute_table import AttrValue, Scope
from attractor_nb.model.vocabulary.attributes import NO_ATTRS, NO_SPANS, literal_text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence


_Values = dict[str, AttrValue]
_Written = dict[str, "Attr"]
MAX_DEFAULTS: Final = 100
"""Most defaults in force at once: the table has 50 attributes for each scope, Graphviz about as many."""
_NO_NAMES: Final = frozenset[str]()


def lower(tree: DotTree) -> Graph:
    """The graph that a syntax tree means."""
    lowering = _Lowering(tree)
    lowering.read_body(tree.body, _Scope({}, {}, {}, {}), group=None)
    return lowering.graph()


class _Scope:
    """The defaults in force, with where they were written. Copied on entry to a group."""

    __slots__ = ("edge_values", "edge_written", "node_values", "node_written")

    def __init__(
        self, node_values: _Values, node_written: _Written, edge_values: _Values, edge_written: _Written
    ) -> None:
        self.node_values = node_values
        self.node_written = node_written
        self.edge_values = edge_values
        self.edge_written = edge_written

    def inner(self) -> _Scope:
        """A scope that begins with the same defaults and changes alone."""
        return _Scope(self.node_values, self.node_written, self.edge_values, self.edge_written)

    def add(self, scope: str, block: Block) -> None:
        """Extend the defaults from here on; what was declared before keeps the old ones."""
        if scope == Scope.NODE:
            values, written = _read(Scope.NODE, block.attrs)
            self.node_values = {**self.node_values, **values}
            self.node_written = {**self.node_written, **written}
        else:
            values, written = _read(Scope.EDGE, block.attrs)
            self.edge_values = {**self.edge_values, **values}
            self.edge_written = {**self.edge_written, **written}

    def is_crowded(self) -> bool:
        """True if copying these defaults to every node would cost more than reading the text."""
        return max(len(self.node_values), len(self.edge_values)) > MAX_DEFAULTS


class _Declared:
    """The values that the statements of one node have set so far."""

    __slots__ = ("groups", "name", "own", "own_written", "scope_values", "scope_written")

    def __init__(self, name: Name, scope: _Scope) -> None:
        self.name = name
        self.groups: Sequence[int] = ()
        self.scope_values = scope.node_values
        self.scope_written = scope.node_written
        self.own: _Values = {}
        self.own_written: _Written = {}


class _Group:
    """A group while it is being read."""

    __slots__ = ("derived_class", "member_ids", "members", "parent", "statement", "values")

    def __init__(self, statement: SubgraphStatement, parent: int | None) -> None:
        self.statement = statement
        self.parent = parent
        self.values: _Values = {}
        self.members: dict[str, None] = {}
        self.member_ids: tuple[str, ...] = ()
        self.derived_class = ""


class _Lowering:
    """One walk over one tree."""

    def __init__(self, tree: DotTree) -> None:
        self._tree = tree
        self._source = tree.source
        self._of_graph = readings(Scope.GRAPH)
        self._of_nodes = readings(Scope.NODE)
        self._of_subgraphs = readings(Scope.SUBGRAPH)
        self._values: _Values = {}
        self._written: _Written = {}
        self._declared: dict[str, _Declared] = {}
        self._mentioned: dict[str, tuple[Name, _Scope]] = {}
        self._edges: list[Edge] = []
        self._groups: list[_Group] = []

    def read_body(self, body: Iterable[Statement], scope: _Scope, group: int | None) -> None:
        """Read statements in order; groups nest no deeper than the lexer allows."""
        for statement in body:
            if isinstance(statement, NodeStatement):
                self._read_node(statement, scope, group)
            elif isinstance(statement, EdgeStatement):
                self._read_edges(statement, scope)
            elif isinstance(statement, Defaults):
                if statement.scope == Scope.GRAPH:
                    self._set(group, statement.block.attrs)
                elif statement.block.attrs:
                    scope.add(statement.scope, statement.block)
                    if scope.is_crowded():
                        raise self._too_many_defaults(statement)
            elif isinstance(statement, GraphDeclaration):
                self._set(group, (statement.attr,))
            else:
                self._read_group(statement, scope, group)

    def _read_group(self, statement: SubgraphStatement, scope: _Scope, parent: int | None) -> None:
        """Read a group; its members become its parent's when all of them are known."""
        group = _Group(statement, parent)
        self._groups.append(group)
        self.read_body(statement.body, scope.inner(), len(self._groups) - 1)
        group.member_ids = tuple(group.members)
        if parent is not None and group.members:
            outer = self._groups[parent]
            if outer.members:
                outer.members.update(group.members)
            else:
                outer.members = group.members
            group.members = {}

    def _too_many_defaults(self, statement: Defaults) -> DotSyntaxError:
        return DotSyntaxError(
            f"more than {MAX_DEFAULTS} default attributes are in force",
            self._tree.span(statement),
            hint="set attributes on the nodes and edges that need them",
        )

    def _set(self, group: int | None, attrs: Iterable[Attr]) -> None:
        """Attributes of the graph, or of the group they are in."""
        if group is not None:
            _read_into(self._groups[group].values, {}, self._of_subgraphs, attrs)
        else:
            _read_into(self._values, self._written, self._of_graph, attrs)

    def _read_node(self, statement: NodeStatement, scope: _Scope, group: int | None) -> None:
        node_id = statement.id.text
        declared = self._declared.get(node_id)
        if declared is None:
            declared = self._declared[node_id] = _Declared(statement.id, scope)
        if statement.block is not None and statement.block.attrs:
            _read_into(declared.own, declared.own_written, self._of_nodes, statement.block.attrs)
        if group is not None:
            self._groups[group].members[node_id] = None
            if isinstance(declared.groups, list):
                declared.groups.append(group)
            else:
                declared.groups = [group]

    def _read_edges(self, statement: EdgeStatement, scope: _Scope) -> None:
        values, written = scope.edge_values, scope.edge_written
        if statement.block is not None:
            own, own_written = _read(Scope.EDGE, statement.block.attrs)
            values = {**values, **own} if values else own
            written = {**written, **own_written} if written else own_written
        attrs = MappingProxyType(values) if values else NO_ATTRS
        spans = AttrSpans(self._source, written) if written else NO_SPANS
        source, edges, mentioned = self._source, self._edges, self._mentioned
        tail_id, tail_start = "", -1
        for name in statement.ids:
            node_id, start, end = name
            if node_id not in mentioned:
                mentioned[node_id] = name, scope.inner()
            if tail_start >= 0:
                edges.append(Edge(tail_id, node_id, attrs, source.span(tail_start, end), spans))
            tail_id, tail_start = node_id, start

    def graph(self) -> Graph:
        """Everything read, as a graph."""
        groups = self._subgraphs()
        classes_of = self._class_finder()
        nodes = {
            node_id: self._node(declared, classes_of(declared.groups)) for node_id, declared in self._declared.items()
        }
        for node_id in self._implicit_ids():
            name, scope = self._mentioned[node_id]
            nodes[node_id] = self._node(_Declared(name, scope), (), is_implicit=True)
        tree = self._tree
        return Graph(
            tree.name.text if tree.name else "",
            MappingProxyType(self._values),
            MappingProxyType(nodes),
            tuple(self._edges),
            groups,
            attr_spans=AttrSpans(self._source, self._written),
            source=self._source,
        )

    def _node(self, declared: _Declared, classes: tuple[str, ...], *, is_implicit: bool = False) -> Node:
        own, written = declared.own, declared.own_written
        values = own
        if declared.scope_values:
            values = {**declared.scope_values, **own} if own else declared.scope_values
            written = {**declared.scope_written, **written} if own else declared.scope_written
        name = declared.name
        return Node(
            name.text,
            MappingProxyType(values) if values else NO_ATTRS,
            frozenset(own) if own else _NO_NAMES,
            classes,
            is_implicit,
            self._source.span(name.start, name.end),
            AttrSpans(self._source, written) if written else NO_SPANS,
        )

    def _class_finder(self) -> Callable[[Sequence[int]], tuple[str, ...]]:
        """The function that returns the derived classes of a node in some groups, outermost first."""
        groups = self._groups
        paths: dict[int, tuple[int, ...]] = {}
        for number, group in enumerate(groups):
            outer = () if group.parent is None else paths[group.parent]
            paths[number] = (*outer, number) if group.derived_class else outer
        of_path: dict[tuple[int, ...], tuple[str, ...]] = {(): ()}

        def classes_of(stands_in: Sequence[int]) -> tuple[str, ...]:
            if not stands_in:
                return ()
            path = paths[stands_in[0]]
            if len(stands_in) > 1:
                path = tuple(sorted({number for each in stands_in for number in paths[each]}))
            classes = of_path.get(path)
            if classes is None:
                classes = tuple(dict.fromkeys(groups[number].derived_class for number in path))
                of_path[path] = classes
            return classes

        return classes_of

    def _implicit_ids(self) -> list[str]:
        """Undeclared ids that are a source and a target and no slip of a declared id (ruling 4)."""
        if self._mentioned.keys() <= self._declared.keys():
            return []
        sources = {edge.source for edge in self._edges}
        targets = {edge.target for edge in self._edges}
        candidates = [
            name for name in self._mentioned if name not in self._declared and name in sources and name in targets
        ]
        near = slips(candidates, self._declared)
        return [name for name in candidates if name not in near]

    def _subgraphs(self) -> tuple[Subgraph, ...]:
        """The groups worth remembering; one without id and attributes only scopes defaults."""
        kept: list[Subgraph] = []
        position: dict[int | None, int | None] = {None: None}
        for number, group in enumerate(self._groups):
            name = group.statement.id
            if name is None and not group.values:
                position[number] = position[group.parent]
                continue
            label = literal_text(group.values.get("label", ""))
            group.derived_class = derived_class(label)
            statement = group.statement
            kept.append(
                Subgraph(
                    name.text if name else "",
                    label,
                    group.derived_class,
                    group.member_ids,
                    position[group.parent],
                    MappingProxyType(group.values) if group.values else NO_ATTRS,
                    self._source.span(statement.start, statement.body_start),
                )
            )
            position[number] = len(kept) - 1
        return tuple(kept)


def derived_class(label: str) -> str:
    """The stylesheet class that a group's label gives its nodes (spec 2.10).

    >>> derived_class("Loop A"), derived_class("Q&A (v2)")
    ('loop-a', 'qa-v2')
    """
    if label.isascii() and label.isalnum():
        return label.lower()
    hyphened = ("-" if char.isspace() else char for char in label.lower())
    return "".join(char for char in hyphened if char == "-" or (char.isascii() and char.isalnum()))


def _read(scope: Scope, attrs: Iterable[Attr]) -> tuple[_Values, _Written]:
    """Typed values and their places, by canonical name; the later of two wins."""
    values: _Values = {}
    written: _Written = {}
    _read_into(values, written, readings(scope), attrs)
    return values, written


def _read_into(values: _Values, written: _Written, known: Mapping[str, Reading], attrs: Iterable[Attr]) -> None:
    """Add typed values and their places to the existing ones."""
    for attr in attrs:
        reading = known.get(attr.name)
        if reading is None:
            name = attr.name
            values[name] = read_unknown(attr.literal)
        else:
            name, read = reading
            values[name] = read(attr.literal)
        written[name] = attr


# The similarity of ids, of which one may be a misspelling of the other (ruling 4).

MAX_COMPARISONS: Final = 200_000
"""Beyond this many pairs nothing is compared and everything counts as a slip, which is the safe side."""


def slips(unknown: Collection[str], known: Collection[str]) -> set[str]:
    """Those unknown ids that lie within edit distance 2 of a known one; case counts as it does in ids.

    >>> slips(["implment", "ship_it"], ["implement", "review"])
    {'implment'}
    """
    if not known:
        return set()
    if len(unknown) * len(known) > MAX_COMPARISONS:
        return set(unknown)
    by_length: dict[int, list[str]] = {}
    for name in known:
        by_length.setdefault(len(name), []).append(name)
    found: set[str] = set()
    for name in unknown:
        lengths = range(len(name) - MAX_SLIPS, len(name) + MAX_SLIPS + 1)
        if any(edit_distance(name, other) <= MAX_SLIPS for length in lengths for other in by_length.get(length, ())):
            found.add(name)
    return found
