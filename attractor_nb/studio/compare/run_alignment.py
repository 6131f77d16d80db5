"""Two paths through a graph side by side: which steps belong together, and how they differ (pure).

Steps are aligned as the lines of two texts are: the longest common way is kept, and what only one run did
is between. Branches are aligned each for itself, for no decision determines the order in which they continue.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.model.outcome import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from attractor_nb.decisions.history.journal import VisitRecord
    from attractor_nb.model.graph import Edge, Graph

MAX_ALIGNED: Final = 4_000_000
"""Product of two lengths above which aligning would take seconds: visits are then paired by their numbers."""


@dataclass(frozen=True, slots=True)
class ComparedVisit:
    """One visit as it is compared."""

    node: str
    branch: str  #: Path of its branch, or empty.
    number: int  #: Its number among the visits of the node.
    status: str  #: Final status; empty when it did not.
    reason: str = ""  #: Reason of the failure, or empty.
    label: str = ""  #: The edge label that it asked for, or empty.
    attempts: int = 1  #: Number of attempts.
    seconds: float = 0.0  #: Its duration, waits between attempts included.
    usage: Usage = field(default_factory=Usage)  #: Usage of all its attempts.
    next_node: str = ""  #: Node where the run continued, or empty.
    edge: int | None = None  #: Position of the edge taken in its own graph, or None.
    #: Its prompt and response, by these names, as far as they are kept.
    texts: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Pair:
    """A step of both runs, or of one."""

    a: ComparedVisit | None  #: That of the first run, or None.
    b: ComparedVisit | None  #: That of the second, or None.

    @property
    def node(self) -> str:
        """The node that was visited."""
        step = self.a or self.b
        assert step is not None
        return step.node

    @property
    def branch(self) -> str:
        """Path of the branch, or empty."""
        step = self.a or self.b
        assert step is not None
        return step.branch

    @property
    def differences(self) -> tuple[str, ...]:
        """In what it differs: ``only in A``, or what of outcome, way on, prompt, response and so on."""
        if self.b is None:
            return ("only in A",)
        if self.a is None:
            return ("only in B",)
        return tuple(_differences(self.a, self.b))


def _differences(a: ComparedVisit, b: ComparedVisit) -> Iterator[str]:
    if a.status != b.status:
        yield "outcome"
    elif a.reason != b.reason:
        yield "reason"
    if a.label != b.label:
        yield "label"
    if a.next_node != b.next_node:
        yield "way on"
    if a.attempts != b.attempts:
        yield "attempts"
    for name in dict.fromkeys((*a.texts, *b.texts)):
        if a.texts.get(name) != b.texts.get(name):
            yield name


def step_of(visit: VisitRecord, texts: Mapping[str, str]) -> ComparedVisit:
    """A visit as it is compared, with its prompt and response."""
    ends = [attempt.ended for attempt in visit.attempts if attempt.ended is not None]
    usage = sum((end.outcome.usage for end in ends if end.outcome.usage is not None), Usage())
    step = ComparedVisit(
        visit.node_id, visit.branch, visit.number, "", attempts=len(visit.attempts), usage=usage, texts=texts
    )
    commit = visit.commit
    if commit is None:
        return step
    outcome = commit.outcome
    return replace(
        step,
        status=outcome.status.value,
        reason=outcome.failure_reason,
        label=outcome.preferred_label,
        seconds=commit.duration,
        next_node=commit.next_node,
        edge=commit.edge,
    )


def align(a: Sequence[ComparedVisit], b: Sequence[ComparedVisit]) -> tuple[Pair, ...]:
    """The steps of two runs, each with the one of the other run that it belongs to.

    Branches are behind the steps of the way that they left.
    """
    branches: dict[str, tuple[list[ComparedVisit], list[ComparedVisit]]] = {}
    for side, steps in enumerate((a, b)):
        for step in steps:
            branches.setdefault(step.branch, ([], []))[side].append(step)
    return tuple(pair for both in branches.values() for pair in _aligned(*both))


def _aligned(a: list[ComparedVisit], b: list[ComparedVisit]) -> Iterator[Pair]:
    alike = _alike(a, b)
    yield from map(Pair, a[:alike], b[:alike])
    a, b = a[alike:], b[alike:]
    ends = _alike(a[::-1], b[::-1])
    middle_a, middle_b = a[: len(a) - ends], b[: len(b) - ends]
    if len(middle_a) * len(middle_b) > MAX_ALIGNED:
        yield from _by_number(a, b)
        return
    yield from _matched(middle_a, middle_b)
    yield from map(Pair, a[len(a) - ends :], b[len(b) - ends :])


def _alike(a: Sequence[ComparedVisit], b: Sequence[ComparedVisit]) -> int:
    """The number of steps at the beginning that visit the same nodes."""
    pairs = enumerate(zip(a, b, strict=False))
    return next((count for count, (one, other) in pairs if one.node != other.node), min(len(a), len(b)))


def _matched(a: list[ComparedVisit], b: list[ComparedVisit]) -> Iterator[Pair]:
    names = [step.node for step in a], [step.node for step in b]
    for kind, first, last, other, end in SequenceMatcher(None, *names, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from (Pair(*both) for both in zip(a[first:last], b[other:end], strict=True))
        else:
            yield from (Pair(step, None) for step in a[first:last])
            yield from (Pair(None, step) for step in b[other:end])


def _by_number(a: list[ComparedVisit], b: list[ComparedVisit]) -> Iterator[Pair]:
    """Pairs of equal node and visit: for loops that are too long to be read in order."""
    others = {(step.node, step.number): step for step in b}
    yield from (Pair(step, others.pop((step.node, step.number), None)) for step in a)
    yield from (Pair(None, step) for step in others.values())


@dataclass(frozen=True, slots=True)
class United:
    """Two graphs as one."""

    graph: Graph  #: All nodes and edges of both; what both have is as the second has it.
    edges_a: tuple[int, ...]  #: For each edge of the first its position in the united one.
    edges_b: tuple[int, ...]  #: The same of the second.
    only_a: frozenset[str]  #: Nodes that only the first has.
    only_b: frozenset[str]  #: Nodes that only the second has.


def unite(a: Graph, b: Graph) -> United:
    """Two graphs as one drawing needs them; edges are the same by ends, condition and label."""
    nodes = {**a.nodes, **b.nodes}
    edges = list(b.edges)
    places: dict[tuple[Any, ...], int] = {key: index for index, key in enumerate(_edge_keys(b.edges))}
    edges_a: list[int] = []
    for edge, key in zip(a.edges, _edge_keys(a.edges), strict=True):
        if key not in places:
            places[key] = len(edges)
            edges.append(edge)
        edges_a.append(places[key])
    return United(
        replace(b, nodes=nodes, edges=tuple(edges), children={**a.children, **b.children}),
        tuple(edges_a),
        tuple(range(len(b.edges))),
        frozenset(a.nodes.keys() - b.nodes.keys()),
        frozenset(b.nodes.keys() - a.nodes.keys()),
    )


def _edge_keys(edges: Iterable[Edge]) -> Iterator[tuple[Any, ...]]:
    """The keys that identify an edge in two graphs; twins are told apart by their order."""
    seen: dict[tuple[str, str, str, str], int] = {}
    for edge in edges:
        key = edge.source, edge.target, edge.condition, edge.label
        seen[key] = seen.get(key, 0) + 1
        yield (*key, seen[key])


@dataclass(frozen=True, slots=True)
class ValueChange:
    """A context value that is not the same at the two ends."""

    key: str
    a: Any  #: Value of the first run, or None.
    b: Any  #: Value of the second run, or None.


def changed_values(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[ValueChange, ...]:
    """The differences of two contexts, without the engine's own counters and the ids of child runs."""
    return tuple(
        ValueChange(key, a.get(key), b.get(key))
        for key in sorted(a.keys() | b.keys())
        if not key.startswith("internal.")
        and not key.endswith(".run_id")
        and (key not in a or key not in b or a[key] != b[key])
    )
