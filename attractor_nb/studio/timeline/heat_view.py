"""Heat maps of a run, or many: time, tokens, money, failures and repeated visits by node (pure).

A measure of each node, tinted on the graph, with its number beside the node and in a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.errors import OptionError, RunError
from attractor_nb.model.events import InterviewCompleted, InterviewTimeout, StageFailed
from attractor_nb.model.outcome import ResultMarks
from attractor_nb.model.redacted import redacted_graph
from attractor_nb.model.texts import did_you_mean, no_such_key
from attractor_nb.redaction import redacted
from attractor_nb.runtime.execution import Execution
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.storage.run_listing import RunSummary
from attractor_nb.views.display import DisplayedPicture
from attractor_nb.views.drawings.picture import Mark, Overlay
from attractor_nb.views.drawings.svg import render_svg, with_legend
from attractor_nb.views.drawings.theme import Theme, drawing_rules
from attractor_nb.views.markup import element
from attractor_nb.views.metrics import text_width
from attractor_nb.views.summary_line import cost_text, duration_text
from attractor_nb.views.table import Column, Table, one_line

if TYPE_CHECKING:
    from markupsafe import Markup

    from attractor_nb.decisions.history.journal import Journal
    from attractor_nb.model.graph import Graph


MEASURES: Final = {
    "time": "running time of its attempts",
    "tokens": "tokens of its model calls",
    "cost": "price of its model calls in USD",
    "failures": "attempts that failed",
    "visits": "visits",
}
SHORT_SECONDS: Final = 0.01
"""Times below this are in milliseconds."""
LEVELS: Final = 5
HUE: Final = "#f97316"
ALPHAS: Final = ("14", "33", "52", "70", "8f")
"""Opacity of the hue, as hexadecimal digits: text on it stays readable in both themes."""
_RULES: Final = (
    "\n".join(
        f"& .heat-{level}{{--fill:{HUE}{alpha};--stroke:var(--retrying-line)}}"
        f"& .node.heat-{level} .outline{{stroke-width:{1 + 0.5 * level}}}"
        for level, alpha in enumerate(ALPHAS, 1)
    )
    + """
& [class*=heat-] text.detail{fill:var(--ink)}
& .legend text{font-size:11px;text-anchor:start;fill:var(--dim)}
& .legend text.what{fill:var(--ink)}
& .legend rect{stroke:var(--retrying-line)}
& & .page{fill:none;stroke:none}
"""
)


@dataclass(frozen=True, slots=True)
class NodeHeat:
    """The measure of one node."""

    values: tuple[float, ...]  #: Of each run that reached it, in the order of the runs.

    @property
    def median(self) -> float:
        """The middle one: a single run that went astray does not decide it."""
        return median(self.values)

    @property
    def most(self) -> float:
        """The highest one."""
        return max(self.values)


@dataclass(frozen=True, slots=True, repr=False)
class HeatMap(DisplayedPicture):
    """A measure over the nodes of a graph."""

    by: str  #: The measure (``MEASURES``).
    graph: Graph
    nodes: Mapping[str, NodeHeat]  #: The nodes that have a value.
    run_count: int = 1
    notes: tuple[str, ...] = field(default=())  #: Parts left out, in words.
    mark: str = ""  #: Mark of the results of the runs, or empty (ruling 48).

    @property
    def most(self) -> float:
        """The highest median: the hottest tint."""
        return max((heat.median for heat in self.nodes.values()), default=0.0)

    def level(self, node_id: str) -> int:
        """The tint of a node, 1 to ``LEVELS``; 0 for none."""
        heat = self.nodes.get(node_id)
        if heat is None or heat.median <= 0:
            return 0
        return max(1, min(LEVELS, ceil(LEVELS * heat.median / self.most)))

    def words(self, node_id: str) -> str:
        """The number of a node, of many runs with the highest; empty for none."""
        heat = self.nodes.get(node_id)
        if heat is None:
            return ""
        middle = in_words(self.by, heat.median)
        return f"{middle} (max {in_words(self.by, heat.most)})" if len(heat.values) > 1 else middle

    def to_svg(self, theme: Theme = "auto") -> str:
        """The graph with the nodes tinted, and a legend below; equal heat gives equal text."""
        return _svg(self, theme)

    @property
    def table(self) -> Table:
        """Every node that has a value, the hottest first."""
        return _table(self)

    def __getitem__(self, node_id: str) -> float:
        """The value of a node: of many runs the median. 0 for a node of the graph that has none."""
        if node_id not in self.graph.nodes:
            raise no_such_key("the pipeline", "node", node_id, self.graph.nodes)
        found = self.nodes.get(node_id)
        return 0.0 if found is None else found.median

    def __str__(self) -> str:
        return str(self.table)


def measure(journal: Journal, by: str, *, waits: bool = True) -> dict[str, float]:
    """The measure of each node that one run visited; a node of unknown price has none.

    Args:
        journal: The run's past.
        by: One of ``MEASURES``.
        waits: Of time, count the waits for people too.
    """
    found: dict[str, float] = {}
    for visit in journal.visits:
        if by == "visits":
            found[visit.node_id] = found.get(visit.node_id, 0) + 1
            continue
        for attempt in visit.attempts:
            if (ended := attempt.ended) is None:
                continue
            usage = ended.outcome.usage
            value: float | None = None
            if by == "time":
                value = max(0.0, ended.time - attempt.started.time)
            elif by == "failures":
                value = float(isinstance(ended, StageFailed))
            elif by == "tokens":
                value = None if usage is None else usage.total_tokens
            else:
                value = None if usage is None else usage.cost_usd
            if value is not None:
                found[visit.node_id] = found.get(visit.node_id, 0) + value
    return _without_waits(journal, found) if by == "time" and not waits else found


def _without_waits(journal: Journal, found: dict[str, float]) -> dict[str, float]:
    """Times of nodes without those in which they waited for people."""
    for event in journal.counted:
        if isinstance(event, InterviewCompleted | InterviewTimeout) and event.stage in found:
            found[event.stage] = max(0.0, found[event.stage] - event.duration)
    return found


def heat_of(
    graph: Graph, journals: Sequence[Journal], by: str, notes: Sequence[str] = (), mark: str = "", *, waits: bool = True
) -> HeatMap:
    """The heat of one run or of many over a graph; nodes that the graph does not have are left out.

    Args:
        graph: What is drawn.
        journals: The pasts of the runs.
        by: One of ``MEASURES``.
        notes: What was left out before.
        mark: What must be said of the results of the runs.
        waits: Of time, count the waits for people too.
    """
    values: dict[str, list[float]] = {}
    strangers: set[str] = set()
    for journal in journals:
        for node_id, value in measure(journal, by, waits=waits).items():
            if node_id in graph.nodes:
                values.setdefault(node_id, []).append(value)
            else:
                strangers.add(node_id)
    left_out = [] if waits else ["without the waits for people"]
    left_out += [f"not in this graph: {', '.join(sorted(strangers)[:8])}"] if strangers else []
    ordered = {name: NodeHeat(tuple(values[name])) for name in graph.nodes if name in values}
    return HeatMap(by, graph, ordered, len(journals), (*notes, *left_out), mark)


def in_words(by: str, value: float) -> str:
    """A value for users.

    >>> in_words("time", 75), in_words("tokens", 1240), in_words("cost", 0.0031), in_words("visits", 2.5)
    ('1 min 15 s', '1,240', '$0.0031', '2.5')
    >>> in_words("time", 0.0042), in_words("time", 0.01)
    ('4.2 ms', '0.01 s')
    """
    if by == "time":
        return f"{1000 * value:.1f} ms" if 0 < value < SHORT_SECONDS else duration_text(value)
    if by == "cost":
        return cost_text(value)
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def _table(heat: HeatMap) -> Table:
    is_many = heat.run_count > 1
    columns = [Column("node", "place"), Column("label"), Column(heat.by, "number"), Column("heat")]
    if is_many:
        columns[2:3] = [Column("median", "number"), Column("max", "number"), Column("runs", "number")]
    labels = {node.id: one_line(node.label) for node in redacted_graph(heat.graph).nodes.values()}
    ranked = sorted(heat.nodes.items(), key=lambda entry: -entry[1].median)
    rows: list[list[str]] = []
    for name, value in ranked:
        numbers = [in_words(heat.by, value.median)]
        if is_many:
            numbers += [in_words(heat.by, value.most), str(len(value.values))]
        label = labels[name] if labels[name] != name else ""
        rows.append([name, label, *numbers, "\N{FULL BLOCK}" * heat.level(name)])
    runs = f"{heat.run_count} runs" if is_many else "one run"
    notes = list(heat.notes)
    if not rows:
        notes.insert(0, f"no node has a value: nothing of {runs} says its {heat.by}")
    headline = f"{heat.by}: {MEASURES[heat.by]}, {', '.join(part for part in (runs, heat.mark) if part)}"
    return Table("Heat", tuple(columns), rows, headline=headline, notes=notes)


def _svg(heat: HeatMap, theme: Theme) -> str:
    marks = {
        name: Mark(
            (f"heat-{level}",) if (level := heat.level(name)) else (),
            in_words(heat.by, value.median) if value.median > 0 else "",
            f"{heat.by}: {heat.words(name)}",
        )
        for name, value in heat.nodes.items()
    }
    drawing = render_svg(heat.graph, theme=theme, overlay=Overlay(nodes=marks, css=drawing_rules(_RULES)))
    words = f"Heat by {heat.by}: {MEASURES[heat.by]}"
    return with_legend(drawing, f"attractor-heat {theme}", words, _RULES, *_legend(heat), notes=heat.notes)


def _legend(heat: HeatMap) -> tuple[list[Markup], float]:
    """The scale with its ends in numbers, and how wide it is."""
    runs = f"median of {heat.run_count} runs" if heat.run_count > 1 else "one run"
    what = ", ".join(part for part in (heat.by, runs, heat.mark) if part)
    x = text_width(what, 11) + 14
    parts = [element("text", {"class": "what", "x": 0, "y": 11}, what)]
    if not heat.most:
        none = f"no node has any {heat.by}" if heat.nodes else f"nothing says its {heat.by}"
        parts.append(element("text", {"x": x, "y": 11}, none))
        return parts, x + text_width(none, 11) + 24
    parts.append(element("text", {"x": x, "y": 11}, "0"))
    x += 12
    for alpha in ALPHAS:
        parts.append(element("rect", {"x": x, "y": 1, "width": 24, "height": 12, "fill": HUE + alpha}))
        x += 24
    top = in_words(heat.by, heat.most)
    parts.append(element("text", {"x": x + 6, "y": 11}, top))
    return parts, x + text_width(top, 11) + 30


# Heat maps: which nodes cost time, tokens and money, fail, or are visited again, in one run or over many.

MAX_NAMED: Final = 5
BY: Final = "time"


def heat(runs: Any, by: str = BY, *, waits: bool = True) -> HeatMap:
    """The heat of one run or of many of one pipeline, tinted on the graph of the first one.

    Args:
        runs: A run, or several: handles, rows of ``runs()``, or run directories. Those of another pipeline than the
            first one are left out, and a line below the drawing says so.
        by: ``time``, ``tokens``, ``cost``, ``failures`` or ``visits``.
        waits: Of time, count the waits for people too.

    Raises:
        OptionError: There is no such measure, or no run that can be read.
    """
    check_measure(by)
    graph: Graph | None = None
    pasts: list[Journal] = []
    marks = ResultMarks()
    left_out: list[str] = []
    others: list[str] = []
    name, other_graphs = None, 0
    for given in _several(runs):
        if (
            name is not None
            and isinstance(given, RunSummary)
            and not given.is_map
            and given.pipeline_name not in ("", name)
        ):
            others.append(given.pipeline_name)
            continue
        try:
            run = _past_of(given)
            if name is not None and run.pipeline.name != name:
                others.append(run.pipeline.name)
                continue
            journal = run.journal()
        except RunError as error:
            left_out.append(f"left out {getattr(given, 'logs_root', given)}: {error.message}")
            continue
        if graph is None:
            graph, name = run.graph, run.pipeline.name
        other_graphs += run.graph.content_hash != graph.content_hash
        pasts.append(journal)
        marks += run.view.marks.marks
    if graph is None:
        raise OptionError("there is no run to measure", hint="; ".join(left_out[:MAX_NAMED]) or "give a run")
    if len(left_out) > MAX_NAMED:
        left_out[MAX_NAMED:] = [f"left out {len(left_out) - MAX_NAMED} more"]
    if others:
        names = ", ".join(sorted(set(others))[:MAX_NAMED])
        runs_words = f"{len(others)} run{'s' * (len(others) != 1)}"
        left_out.insert(0, f"only runs of {name}: {runs_words} of other pipelines left out ({names})")
    if other_graphs:
        left_out.append(f"{other_graphs} of {len(pasts)} runs are of another version of the graph")
    return heat_of(graph, pasts, by, [redacted(one) for one in left_out], redacted(marks.words), waits=waits)


def check_measure(by: object) -> None:
    """Check the name of a measure."""
    if by not in MEASURES:
        near = did_you_mean(str(by), MEASURES)
        raise OptionError(f"there is no heat by {by!r:.40}{near}", hint=f"by {', '.join(MEASURES)}")


def _several(runs: Any) -> list[Any]:
    if isinstance(runs, Execution | RunSummary | str | Path):
        return [runs]
    if not isinstance(runs, Iterable):
        raise OptionError(f"{runs!r:.60} is no run", hint="a run, or several: runs().where(pipeline=…)")
    return list(runs)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _past_of(given: Any) -> Execution:
    """The run that a handle, or a path to its directory, names."""
    if isinstance(given, Execution):
        return given
    place = given.logs_root if isinstance(given, RunSummary) else given
    if not isinstance(place, str | Path):
        raise OptionError(f"{given!r:.60} is no run", hint="a Run, a row of runs(), or a run directory")
    if isinstance(given, RunSummary) and given.is_map:
        raise RunError("it is a map", hint="its rows are runs: heat(row.load())")
    from attractor_nb.runtime.stored_execution import load_execution  # noqa: PLC0415 - an engine is loaded only where a run is read

    return load_execution(as_path(place))
