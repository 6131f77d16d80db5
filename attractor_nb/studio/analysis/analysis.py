"""What can be said of all runs of a graph before one runs, as a picture and as tables: `pipeline.analyse()`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import networkx as nx

from attractor_nb.decisions.planning.plan import Plan, compile_plan, likely_path
from attractor_nb.lint.paths import MAX_CYCLES
from attractor_nb.lint.rules.path_rules import RULES, bounds_of_loop, paths_of, way, ways_out
from attractor_nb.lint.survey import LintOptions, Survey
from attractor_nb.model.outcome import Usage
from attractor_nb.redaction import redacted
from attractor_nb.views.display import DisplayedPicture
from attractor_nb.views.drawings.picture import Mark, Overlay
from attractor_nb.views.drawings.svg import render_svg, with_legend
from attractor_nb.views.drawings.theme import Theme, drawing_rules
from attractor_nb.views.findings_table import findings_html, findings_text
from attractor_nb.views.markup import element
from attractor_nb.views.metrics import text_width
from attractor_nb.views.table import Column, Table, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from markupsafe import Markup

    from attractor_nb.model.diagnostic import Diagnostic
    from attractor_nb.model.graph import Graph
    from attractor_nb.studio.estimate.run_estimate import Estimate

_RULES: Final = """
& .node.passed.passed.passed .outline{stroke:var(--ink);stroke-width:2.5}
& .node.critical{--fill:var(--running-fill)}
& .edge.critical .line{stroke:var(--running-line);stroke-width:3}
& .edge.critical .head{fill:var(--running-line);stroke:var(--running-line)}
& .edge.loop .line{stroke:var(--retrying-line);stroke-width:2;stroke-dasharray:6 4}
& .edge.loop .head{fill:var(--retrying-line);stroke:var(--retrying-line)}
& .legend text{font-size:11px;text-anchor:start;fill:var(--dim)}
& .legend text.what{fill:var(--ink)}
& & .page{fill:none;stroke:none}
& .legend .passed{fill:none;stroke:var(--ink);stroke-width:2.5}
& .legend .critical,& .legend .loop{fill:none;stroke:var(--running-line);stroke-width:3}
& .legend .loop{stroke:var(--retrying-line);stroke-width:2;stroke-dasharray:6 4}
"""
_MEANINGS: Final = {"passed": "every run passes it", "critical": "critical path", "loop": "loop"}
_COLUMNS: Final = (Column(""), Column("nodes", "place"), Column("what is known"))
_MOST_ROWS: Final = 20
_WIDTH: Final = 79


class Loop(NamedTuple):
    """A way that leads back to where it began."""

    nodes: tuple[str, ...]  #: Its nodes, from the first one in the source.
    ends: tuple[str, ...]  #: What ends it: conditions and labels of the ways out, persons, bounds.


@dataclass(frozen=True, slots=True, repr=False)
class Analysis(DisplayedPicture):
    """What holds for all runs of a graph, in a notebook as a picture with tables."""

    name: str  #: The pipeline.
    graph: Graph
    must_pass: tuple[str, ...]  #: The nodes that every run passes on its way to an exit, in this order.
    critical_path: tuple[str, ...]  #: The likely path; of branches that run at the same time the longest.
    usage: Usage  #: The expected usage on the critical path.
    loops: tuple[Loop, ...]  #: The simple cycles of edges, short ones first.
    are_loops_cut: bool  #: There are more loops than are listed.
    findings: tuple[Diagnostic, ...]  #: What the rules on demand found, in source order.

    def to_svg(self, theme: Theme = "auto") -> str:
        """The graph with critical path, loops and what every run passes, and a legend below."""
        overlay = Overlay(self._node_marks(), self._edge_marks(), drawing_rules(_RULES))
        drawing = render_svg(self.graph, theme=theme, overlay=overlay)
        return with_legend(
            drawing, f"attractor-analysis {theme}", f"Analysis of {redacted(self.name)}", _RULES, *_legend()
        )

    def _node_marks(self) -> dict[str, Mark]:
        looping = {node_id for loop in self.loops for node_id in loop.nodes}
        groups = {"passed": {*self.must_pass}, "critical": {*self.critical_path}, "loop": looping}
        marks: dict[str, Mark] = {}
        for node_id in self.graph.nodes:
            classes = tuple(name for name, members in groups.items() if node_id in members)
            marks[node_id] = Mark(classes, "", ", ".join(_MEANINGS[name] for name in classes))
        return marks

    def _edge_marks(self) -> dict[int, Mark]:
        steps = {
            "loop": {step for loop in self.loops for step in pairwise((*loop.nodes, loop.nodes[0]))},
            "critical": set(pairwise(self.critical_path)),
        }
        return {
            index: Mark((name,), "", _MEANINGS[name])
            for name, members in steps.items()
            for index, edge in enumerate(self.graph.edges)
            if (edge.source, edge.target) in members
        }

    @property
    def table(self) -> Table:
        """What every run passes, the critical path and the loops."""
        return Table(f"Analysis of {redacted(self.name)}", _COLUMNS, self._rows(), notes=self._notes())

    def _rows(self) -> list[tuple[str, str, str]]:
        calls = f"{self.usage.calls} model call{'s' * (self.usage.calls != 1)}, {self.usage.total_tokens:,} tokens"
        return [
            ("every run passes", ", ".join(self.must_pass), f"{len(self.must_pass)} of {len(self.graph.nodes)} nodes"),
            ("critical path", " -> ".join(self.critical_path), calls if self.usage.calls else "no model call"),
            *(
                ("loop", way((*loop.nodes, loop.nodes[0])), "ends by " + ", ".join(loop.ends))
                for loop in self.loops[:_MOST_ROWS]
            ),
        ]

    def _notes(self) -> list[str]:
        notes = [f"and {len(self.loops) - _MOST_ROWS} more loops"] if len(self.loops) > _MOST_ROWS else []
        if self.are_loops_cut:
            notes.append(f"There are more than {MAX_CYCLES} loops: the search ended there.")
        return notes

    def to_plain(self) -> dict[str, Any]:
        """JSON values, without the findings."""
        return {
            "pipeline": self.name,
            "must_pass": list(self.must_pass),
            "critical_path": list(self.critical_path),
            "calls": self.usage.calls,
            "tokens": self.usage.total_tokens,
            "loops": [{"nodes": list(loop.nodes), "ends": list(loop.ends)} for loop in self.loops],
            "are_loops_cut": self.are_loops_cut,
        }

    def __str__(self) -> str:
        lines: list[str] = []
        for what, nodes, known in self._rows():
            lines += [f"{what}: {one_line(known)}", fill(nodes, _WIDTH, initial_indent="  ", subsequent_indent="  ")]
        return "\n".join([*lines, *self._notes(), *([findings_text(self.findings)] if self.findings else [])])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        bundle = DisplayedPicture._repr_mimebundle_(self, include, exclude)
        return {**bundle, "text/html": bundle["text/html"] + self.table.to_html() + findings_html(self.findings)}


def analyse(graph: Graph, estimate: Estimate, values: Mapping[str, Any]) -> Analysis:
    """What holds for all runs of a graph that lint accepts.

    Args:
        graph: The graph as it will run.
        estimate: Its estimate: the expected usage of each node.
        values: What the context begins with: conditions on the likely path see it.
    """
    survey = Survey(graph, LintOptions())
    paths = paths_of(survey)
    expected = {node.node_id: node.expected for node in estimate.nodes}
    critical = _critical_path(compile_plan(graph), values, expected)
    loops = tuple(Loop(cycle, _ends(survey, cycle)) for cycle in paths.cycles)
    found = [each for rule in RULES for each in rule.diagnose(survey)]
    return Analysis(
        name=estimate.name,
        graph=graph,
        must_pass=tuple(paths.must_pass),
        critical_path=critical,
        usage=sum((expected[node_id] for node_id in critical if node_id in expected), Usage()),
        loops=loops,
        are_loops_cut=paths.are_cycles_cut,
        findings=tuple(sorted(found, key=lambda each: each.span.outermost().start if each.span else -1)),
    )


def _critical_path(plan: Plan, values: Mapping[str, Any], expected: Mapping[str, Usage]) -> tuple[str, ...]:
    """The longest way through the likely path, by the tokens that models write on it, then by its stages."""
    place = {visit.node_id: number for number, visit in enumerate(likely_path(plan, values.get))}
    steps: nx.DiGraph[str] = nx.DiGraph()
    steps.add_nodes_from(place)
    for edge in plan.graph.edges:
        if edge.source in place and edge.target in place and place[edge.source] < place[edge.target]:
            usage = expected.get(edge.target)
            steps.add_edge(edge.source, edge.target, weight=1 + (usage.output_tokens if usage else 0))
    return tuple(nx.dag_longest_path(steps))


def _ends(survey: Survey, cycle: tuple[str, ...]) -> tuple[str, ...]:
    """What ends a loop: its ways out, its persons and bounds; `max_steps` in any case."""
    chosen = dict.fromkeys(
        f"{redacted(edge.condition.strip() or edge.label) or 'an edge'} at {edge.source}"
        for edge in ways_out(survey, cycle)
    )
    found = [*bounds_of_loop(survey, cycle), *chosen]
    return tuple(found) or ("max_steps alone",)


def _legend() -> tuple[list[Markup], float]:
    """The marks with their meanings, and how wide they are."""
    parts: list[Markup] = []
    x = 0.0
    for name, words in _MEANINGS.items():
        sign = {"x": x + 2, "y": 2, "width": 18, "height": 9, "rx": 3} if name == "passed" else None
        parts.append(
            element("rect" if sign else "path", {"class": name, **(sign or {"d": f"M{x:.0f} 6.5H{x + 22:.0f}"})})
        )
        parts.append(element("text", {"class": "what", "x": x + 28, "y": 11}, words))
        x += 28 + text_width(words, 11) + 22
    return parts, x + 12
