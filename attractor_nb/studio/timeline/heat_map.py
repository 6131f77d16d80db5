"""Heat maps: which nodes cost time, tokens and money, fail, or are visited again, in one run or over many."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.errors import OptionError, RunError
from attractor_nb.model.nearest_name import did_you_mean, no_such_key
from attractor_nb.model.result_marks import ResultMarks
from attractor_nb.redaction import redacted
from attractor_nb.runtime.execution import Execution
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.storage.run_lists.listing import RunSummary
from attractor_nb.studio.timeline.heat_view import MEASURES, Heat, heat_of
from attractor_nb.views.drawings.still import picture_bundle
from attractor_nb.views.table import table_text

if TYPE_CHECKING:
    from attractor_nb.decisions.hindsight.journal import Journal
    from attractor_nb.model.graph import Graph
    from attractor_nb.views.drawings.theme import Theme
    from attractor_nb.views.table import Table

MAX_NAMED: Final = 5
BY: Final = "time"


@dataclass(frozen=True, slots=True)
class HeatMap:
    """A heat map as a value that reads well in a cell."""

    heat: Heat  #: The measure.

    def to_svg(self, theme: Theme = "auto") -> str:
        """The graph with its nodes tinted, and a legend."""
        return self.heat.to_svg(theme)

    @property
    def table(self) -> Table:
        """Every node that has a value, the hottest first."""
        return self.heat.table

    def __getitem__(self, node_id: str) -> float:
        """The value of a node: of many runs the median. 0 for a node of the graph that has none."""
        if node_id not in self.heat.graph.nodes:
            raise no_such_key("the pipeline", "node", node_id, self.heat.graph.nodes)
        found = self.heat.nodes.get(node_id)
        return 0.0 if found is None else found.median

    def __str__(self) -> str:
        return table_text(self.heat.table)

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002 - the signature of Jupyter's hook
        return picture_bundle(self.to_svg(), str(self))


def heat(runs: Any, by: str = BY) -> HeatMap:
    """The heat of one run or of many, tinted on the graph of the first one.

    Args:
        runs: A run, or several: handles, rows of ``runs()``, or run directories.
        by: ``time``, ``tokens``, ``cost``, ``failures`` or ``visits``.

    Raises:
        OptionError: There is no such measure, or no run that can be read.
    """
    check_measure(by)
    graph: Graph | None = None
    pasts: list[Journal] = []
    marks = ResultMarks()
    left_out: list[str] = []
    other_graphs = 0
    for given in _several(runs):
        try:
            run = _past_of(given)
            journal = run.journal()
        except RunError as error:
            left_out.append(f"left out {getattr(given, 'logs_root', given)}: {error.message}")
            continue
        if graph is None:
            graph = run.graph
        other_graphs += run.graph.content_hash != graph.content_hash
        pasts.append(journal)
        marks += run.view.marks.marks
    if graph is None:
        raise OptionError("there is no run to measure", hint="; ".join(left_out[:MAX_NAMED]) or "give a run")
    if len(left_out) > MAX_NAMED:
        left_out[MAX_NAMED:] = [f"left out {len(left_out) - MAX_NAMED} more"]
    if other_graphs:
        left_out.append(f"{other_graphs} of {len(pasts)} runs are of another version of the graph")
    return HeatMap(heat_of(graph, pasts, by, left_out, redacted(marks.words)))


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
    """The run that somebody means: a handle, or what leads to its directory."""
    if isinstance(given, Execution):
        return given
    place = given.logs_root if isinstance(given, RunSummary) else given
    if not isinstance(place, str | Path):
        raise OptionError(f"{given!r:.60} is no run", hint="a Run, a row of runs(), or a run directory")
    if isinstance(given, RunSummary) and given.kind == "map":
        raise RunError("it is a map", hint="its rows are runs: heat(row.load())")
    from attractor_nb.runtime.stored_execution import load_execution  # noqa: PLC0415 - an engine is loaded only where a run is read

    return load_execution(as_path(place))
