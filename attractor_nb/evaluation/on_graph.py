"""An evaluation on its graph: the ways of passing and failing rows, where they part, and what a router chose.

A row counts once wherever it was, whatever its loops, branches and repeats. A failing row is shown by those of its
runs that fail: the ways of its other runs say nothing about the failure.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from attractor_nb.errors import AttractorError, OptionError
from attractor_nb.evaluation.evaluated_row import is_bad
from attractor_nb.evaluation.result_words import listed
from attractor_nb.evaluation.scorers import SCORED, next_after
from attractor_nb.evaluation.statistics import LEVEL, fisher, holm
from attractor_nb.languages.condition.parser import value_text
from attractor_nb.model.states import NodeStatus
from attractor_nb.model.texts import no_such_key
from attractor_nb.redaction import redacted
from attractor_nb.views.display import DisplayedPicture
from attractor_nb.views.drawings.picture import Mark, Overlay
from attractor_nb.views.drawings.svg import render_svg, with_legend
from attractor_nb.views.drawings.theme import Theme, drawing_css, drawing_rules
from attractor_nb.views.markup import element
from attractor_nb.views.metrics import text_width
from attractor_nb.views.table import Column, DisplayedTable, Table, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from markupsafe import Markup

    from attractor_nb.evaluation.columns import ScoreColumn
    from attractor_nb.evaluation.evaluation_rows import EvaluationRow
    from attractor_nb.maps.map_launch import MapResult
    from attractor_nb.model.graph import Edge, Graph
    from attractor_nb.runtime.execution import Execution

ENDED_THERE: Final = ""
"""The way of a run whose pipeline failed at a stage: it leads nowhere."""
_SHARES: Final = ((0.8, "success"), (0.5, "waiting"), (0.2, "retrying"), (0.0, "fail"))
"""The colour of an edge by the least share of its rows that pass."""
_LEVELS: Final = 5
_ALPHAS: Final = ("14", "2e", "48", "62", "7c")
_FAILING: Final = "#c02f00"
_RULES: Final = (
    "\n".join(
        f"& .edge.share-{name} .line{{stroke:var(--{name}-line);stroke-width:2.5}}"
        f"& .edge.share-{name} .head{{fill:var(--{name}-line);stroke:var(--{name}-line)}}"
        f"& .edge-label.share-{name} text{{fill:var(--{name}-line);font-weight:600}}"
        f"& .legend .share-{name}{{fill:var(--{name}-line)}}"
        for _, name in _SHARES
    )
    + "\n"
    + "\n".join(f"& .failing-{level}{{--fill:{_FAILING}{alpha}}}" for level, alpha in enumerate(_ALPHAS, 1))
    + """
& .node.parting .outline,& .legend .parting{stroke:var(--cached-line);stroke-width:3}
& .legend .parting{fill:none}
& .edge.unused,& .edge-label.unused,& .node.unused{opacity:.45}
& [class*=failing-] text.detail{fill:var(--ink)}
& .legend text{font-size:11px;text-anchor:start;fill:var(--dim)}
& .legend text.what{fill:var(--ink)}
& & .page{fill:none;stroke:none}
"""
)


def evaluation_css() -> str:
    """The style sheet of every drawing of an evaluation."""
    return drawing_css() + drawing_rules(_RULES)


@dataclass(frozen=True, slots=True)
class EdgeRows:
    """The rows that took an edge, by id."""

    index: int  #: Its position in ``Graph.edges``.
    source: str
    target: str
    passed: tuple[str, ...]  #: Rows that pass.
    failed: tuple[str, ...]  #: Rows that fail.

    @property
    def share(self) -> float | None:
        """The share of the rows that pass; None for an edge that no row took."""
        count = len(self.passed) + len(self.failed)
        return len(self.passed) / count if count else None

    @property
    def words(self) -> str:
        """``12 of 14``: the rows that pass, of those that took it."""
        return f"{len(self.passed):,} of {len(self.passed) + len(self.failed):,}"


@dataclass(frozen=True, slots=True)
class StageRows:
    """The rows that reached a stage, by id."""

    node: str
    passed: tuple[str, ...]  #: Rows that pass.
    failed: tuple[str, ...]  #: Rows that fail.


@dataclass(frozen=True, slots=True)
class Way:
    """A way out of a stage, with the rows that took it."""

    target: str  #: The next node; empty for rows whose pipeline failed at the stage.
    passed: tuple[str, ...]
    failed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Parting:
    """The stage at which passing and failing rows take different ways."""

    node: str
    passed: int  #: Passing rows that reached it.
    failed: int  #: Failing rows that reached it.
    ways: tuple[Way, ...]  #: The ways out; the one that failing rows prefer most is the first.
    p: float  #: p value of the difference (Fisher's exact test), adjusted over ways and stages.

    @property
    def is_decided(self) -> bool:
        """True if the difference is more than chance at the 5 % level."""
        return self.p < 1 - LEVEL

    @property
    def words(self) -> str:
        """The finding as a sentence."""
        way = self.ways[0]
        did = f"took {way.target}" if way.target != ENDED_THERE else "ended there"
        found = (
            f"{len(way.failed):,} of {self.failed:,} failing rows and {len(way.passed):,} of {self.passed:,} passing "
            f"rows {did} (p = {self.p:.2g})"
        )
        if self.is_decided:
            return f"Passing and failing rows first part at {self.node}: {found}."
        return f"No stage clearly parts passing and failing rows. The largest difference is at {self.node}: {found}."


@dataclass(frozen=True, slots=True, repr=False)
class EvaluationGraph(DisplayedPicture):
    """The rows of an evaluation on its graph. ``graph["triage"]`` has the rows of a stage."""

    score: str  #: The score by which rows pass or fail.
    graph: Graph
    passed: tuple[str, ...]  #: Rows that pass.
    failed: tuple[str, ...]  #: Rows that fail.
    edges: tuple[EdgeRows, ...]  #: Every edge of the graph, in its order.
    nodes: Mapping[str, StageRows]  #: Every node, by id.
    parting: Parting | None  #: The stage at which passing and failing rows part; None where they took the same ways.
    notes: tuple[str, ...] = ()  #: Rows that are left out, in words.

    def __getitem__(self, node: str) -> StageRows:
        if node not in self.nodes:
            raise no_such_key("the pipeline", "node", node, self.nodes)
        return self.nodes[node]

    @property
    def words(self) -> str:
        """The stage at which passing and failing rows part, as a sentence."""
        if self.parting is not None:
            return self.parting.words
        if self.passed and self.failed:
            return "Passing and failing rows took the same ways."
        return "No row fails." if self.passed else "No row passes." if self.failed else "No row has this score."

    def to_svg(self, theme: Theme = "auto") -> str:
        """The drawing: edges by the share of their rows that pass, stages by the share that fails."""
        overlay = Overlay(
            {node: self._node_mark(rows) for node, rows in self.nodes.items()},
            {rows.index: _edge_mark(rows, is_labelled=_is_bare(self.graph.edges[rows.index])) for rows in self.edges},
            drawing_rules(_RULES),
        )
        drawing = render_svg(self._labelled(), theme=theme, overlay=overlay)
        words = f"Passing and failing rows by {self.score}. {self.words}"
        return with_legend(drawing, f"attractor-evaluation {theme}", words, _RULES, *self._legend())

    def _labelled(self) -> Graph:
        """The graph with the counts as labels of edges that have none: so they have room in the drawing."""
        edges = zip(self.graph.edges, self.edges, strict=True)
        return self.graph.with_edges(
            replace(edge, attrs={**edge.attrs, "label": rows.words})
            if _is_bare(edge) and rows.share is not None
            else edge
            for edge, rows in edges
        )

    def _node_mark(self, rows: StageRows) -> Mark:
        count = len(rows.passed) + len(rows.failed)
        if not count:
            return Mark(("unused",), "", "no row reached it")
        level = ceil(_LEVELS * len(rows.failed) / count)
        classes = [f"failing-{level}"] * bool(level)
        if self.parting is not None and self.parting.is_decided and self.parting.node == rows.node:
            classes.append("parting")
        tip = f"{len(rows.failed):,} of {count:,} rows that reached it fail{_failing(rows.failed)}"
        return Mark(tuple(classes), f"{len(rows.failed):,} fail" if rows.failed else "", tip)

    def _legend(self) -> tuple[list[Markup], float]:
        what = f"{self.score}: rows that pass, of those that took the edge"
        parts = [element("text", {"class": "what", "x": 0, "y": 11}, what)]
        x = text_width(what, 11) + 24
        for position, (least, name) in enumerate(_SHARES):
            above = 100 if position == 0 else round(100 * _SHARES[position - 1][0])
            words = f"{round(100 * least)} to {above} %"
            parts.append(element("rect", {"class": f"share-{name}", "x": x, "y": 5, "width": 20, "height": 3}))
            parts.append(element("text", {"x": x + 25, "y": 11}, words))
            x += 25 + text_width(words, 11) + 12
        if self.parting is not None and self.parting.is_decided:
            parts.append(element("rect", {"class": "parting", "x": x, "y": 1, "width": 16, "height": 10, "rx": 3}))
            parts.append(element("text", {"x": x + 22, "y": 11}, "they first part"))
            x += 22 + text_width("they first part", 11)
        return parts, x + 24

    @property
    def table(self) -> Table:
        """Each edge that a row took, with the rows that pass, and the failing ones by id."""
        columns = (Column("from", "place"), Column("to", "place"), Column("pass", "number"), Column("failing rows"))
        taken = [rows for rows in self.edges if rows.share is not None]
        cells = [[rows.source, rows.target, rows.words, one_line(listed(rows.failed))] for rows in taken]
        headline = f"{self.score}: {len(self.passed):,} rows pass, {len(self.failed):,} fail"
        return Table("Rows by edge", columns, cells, headline=headline, notes=[self.words, *self.notes])

    def __str__(self) -> str:
        return str(self.table)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        bundle = DisplayedPicture._repr_mimebundle_(self, include, exclude)
        return {**bundle, "text/html": bundle["text/html"] + self.table.to_html()}


def _is_bare(edge: Edge) -> bool:
    return not edge.label and not edge.condition


def _edge_mark(rows: EdgeRows, *, is_labelled: bool) -> Mark:
    share = rows.share
    if share is None:
        return Mark(("unused",), "", "no row took it")
    name = next(name for least, name in _SHARES if share >= least)
    return Mark(
        (f"share-{name}",),
        "" if is_labelled else rows.words,
        f"{rows.words} rows that took it pass{_failing(rows.failed)}",
    )


def _failing(ids: Sequence[str]) -> str:
    return f"; failing: {redacted(listed(ids))}" if ids else ""


@dataclass(frozen=True, slots=True)
class _Walk:
    """The edges and stages of the runs of a row."""

    id: str
    is_passing: bool
    edges: frozenset[int]
    nodes: frozenset[str]
    ends: frozenset[str]  #: Stages at which its pipeline failed.


def graph_of(of_map: MapResult, rows: Sequence[EvaluationRow], column: ScoreColumn) -> EvaluationGraph:
    """The rows of an evaluation on its graph; each run is read once.

    Args:
        of_map: The map that ran the rows.
        rows: The rows.
        column: A pass/fail score.

    Raises:
        OptionError: The score is none of pass and fail, or nothing is kept of the runs.
    """
    if column.kind != "pass/fail":
        raise OptionError(
            f"{column.name} is a {column.kind}, and a graph shows which rows pass",
            hint="name a score that is True or False: evaluation.graph(score)",
        )
    graph = of_map.pipeline.graph
    walks: list[_Walk] = []
    unmeasured: list[str] = []
    lost: list[str] = []
    for row in rows:
        is_passing = column.passed(row.number)
        if is_passing is None:
            unmeasured.append(row.id)
            continue
        scores = enumerate(column.cells[row.number])
        wanted = [each for each, score in scores if (score.state == SCORED if is_passing else is_bad(score))]
        runs = list(_runs(of_map, [row.number + each * len(rows) for each in wanted]))
        if runs:
            walks.append(_walk(row.id, runs, graph, is_passing=is_passing))
        else:
            lost.append(row.id)
    edges = tuple(
        EdgeRows(index, edge.source, edge.target, *_ids([walk for walk in walks if index in walk.edges]))
        for index, edge in enumerate(graph.edges)
    )
    nodes = {node: StageRows(node, *_ids([walk for walk in walks if node in walk.nodes])) for node in graph.nodes}
    notes = [f"left out, without a score: {listed(unmeasured)}"] if unmeasured else []
    notes += [f"left out, without a run that can be read: {listed(lost)}"] if lost else []
    return EvaluationGraph(
        column.name, graph, *_ids(walks), edges, nodes, _parting(graph, walks, nodes, edges), tuple(notes)
    )


def _runs(of_map: MapResult, numbers: Sequence[int]) -> Iterator[Execution]:
    if of_map.directory is None:
        raise OptionError("nothing is kept of the runs, so their ways are not known", hint="evaluate the rows again")
    for number in numbers:
        try:
            yield of_map.run(number)
        except AttractorError:  # one run that cannot be read does not hide the others
            continue


def _walk(row_id: str, runs: Sequence[Execution], graph: Graph, *, is_passing: bool) -> _Walk:
    edges: set[int] = set()
    nodes: set[str] = set()
    ends: set[str] = set()
    for run in runs:
        view = run.view
        taken = {index: state.passes for index, state in view.edges.items() if state.passes > 0}
        edges |= taken.keys()
        left: dict[str, int] = {}
        for index, passes in taken.items():
            left[graph.edges[index].source] = left.get(graph.edges[index].source, 0) + passes
        for node, state in view.nodes.items():
            if state.status not in {NodeStatus.PENDING, NodeStatus.SKIPPED} or state.visits > 0:
                nodes.add(node)
            if state.status is NodeStatus.FAIL and state.visits > left.get(node, 0):
                ends.add(node)
    return _Walk(row_id, is_passing, frozenset(edges), frozenset(nodes), frozenset(ends))


def _ids(walks: Sequence[_Walk]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The ids of passing and of failing rows."""
    return tuple(walk.id for walk in walks if walk.is_passing), tuple(walk.id for walk in walks if not walk.is_passing)


def _parting(
    graph: Graph, walks: Sequence[_Walk], nodes: Mapping[str, StageRows], edges: Sequence[EdgeRows]
) -> Parting | None:
    """The first stage from the start at which the ways differ by more than chance, else the one that differs most."""
    found: list[Parting] = []
    for node in _from_start(graph):
        rows = nodes[node]
        ways = [Way(each.target, each.passed, each.failed) for each in edges if each.source == node]
        ways.append(Way(ENDED_THERE, *_ids([walk for walk in walks if node in walk.ends])))
        ways = [way for way in ways if way.passed or way.failed]
        passed, failed = len(rows.passed), len(rows.failed)
        if len(ways) < 2 or not passed or not failed:
            continue
        ways.sort(key=lambda way: len(way.passed) / passed - len(way.failed) / failed)
        least = min(fisher(len(way.passed), passed, len(way.failed), failed) for way in ways)
        found.append(Parting(node, passed, failed, tuple(ways), min(1.0, least * len(ways))))
    adjusted = holm([each.p for each in found])
    found = [
        Parting(each.node, each.passed, each.failed, each.ways, p) for each, p in zip(found, adjusted, strict=True)
    ]
    if decided := next((each for each in found if each.is_decided), None):
        return decided
    largest = max(found, key=_difference, default=None)
    return largest if largest is not None and _difference(largest) > 0 else None


def _difference(parting: Parting) -> float:
    way = parting.ways[0]
    return len(way.failed) / parting.failed - len(way.passed) / parting.passed


def _from_start(graph: Graph) -> list[str]:
    """The nodes by their distance from the start."""
    seen = {node.id: None for node in graph.start_nodes}
    waiting = deque(seen)
    while waiting:
        for edge in graph.outgoing_edges(waiting.popleft()):
            if edge.target in graph.nodes and edge.target not in seen:
                seen[edge.target] = None
                waiting.append(edge.target)
    return list(seen)


# What a router chose, beside what was right.


@dataclass(frozen=True, slots=True, repr=False)
class Confusion(DisplayedTable):
    """The ways that runs took after a stage, by the way that was right. ``confusion["refund", "escalate"]`` has ids."""

    at: str  #: The stage at which the ways part.
    cells: Mapping[tuple[str, str], tuple[str, ...]]  #: Ids of rows by chosen and right way, one for each run.
    notes: tuple[str, ...] = ()  #: Rows that are left out, in words.

    def __getitem__(self, ways: tuple[str, str]) -> tuple[str, ...]:
        return self.cells.get(ways, ())

    @property
    def routes(self) -> tuple[str, ...]:
        """All ways, chosen or right, by name; the empty one, of runs that did not pass the stage, is the last."""
        return tuple(sorted({way for ways in self.cells for way in ways}, key=lambda way: (not way, way)))

    @property
    def right(self) -> int:
        """The number of runs that took the right way."""
        return sum(len(ids) for (chosen, right), ids in self.cells.items() if chosen == right)

    @property
    def count(self) -> int:
        """The number of runs."""
        return sum(map(len, self.cells.values()))

    @property
    def table(self) -> Table:
        """Counts: a line for each right way, a column for each chosen one."""
        chosen = [way for way in self.routes if any(pair[0] == way for pair in self.cells)]
        names = [one_line(way) or "did not pass it" for way in chosen]
        columns = (Column("right", "place"), *(Column(name, "number") for name in names))
        rights = [way for way in self.routes if any(pair[1] == way for pair in self.cells)]
        rows = [[one_line(right), *(f"{len(self[way, right]) or ''}" for way in chosen)] for right in rights]
        headline = f"{self.right:,} of {self.count:,} runs took the right way at {self.at}"
        return Table("Chosen and right ways", columns, rows, headline=headline, notes=self.notes)


def confusion_of(of_map: MapResult, rows: Sequence[EvaluationRow], repeat: int, at: str, column: str) -> Confusion:
    """The choices of a router beside the values of a column.

    Args:
        of_map: The map that ran the rows.
        rows: The rows.
        repeat: Runs of each.
        at: The stage at which the ways part.
        column: The column that names the node that should follow.

    Raises:
        OptionError: The pipeline has no such node, or no row has the column.
    """
    graph = of_map.pipeline.graph
    if at not in graph.nodes:
        raise no_such_key("the pipeline", "node", at, graph.nodes)
    known = [row for row in rows if row.columns.get(column) is not None]
    if not known:
        names = {name: None for row in rows for name in row.columns}
        raise no_such_key("the data", "column", column, names)
    cells: dict[tuple[str, str], list[str]] = {}
    lost: list[str] = []
    for row in known:
        numbers = [row.number + each * len(rows) for each in range(repeat)]
        ended = [number for number in numbers if of_map.rows[number].status in {"success", "fail"}]
        runs = list(_runs(of_map, ended))
        lost += [row.id] * (repeat - len(runs))
        for run in runs:
            chosen = next_after(run, at)
            cells.setdefault((chosen, value_text(row.columns[column])), []).append(row.id)
    without = [row.id for row in rows if row.columns.get(column) is None]
    notes = [f'left out, without "{column}": {listed(without)}'] if without else []
    notes += [f"left out, without a run that ended and can be read: {listed(lost)}"] if lost else []
    return Confusion(at, {ways: tuple(ids) for ways, ids in cells.items()}, tuple(notes))
