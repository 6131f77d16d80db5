"""``pipeline.hindsight(runs)``: which past runs would go elsewhere on this graph, without a model call."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.decisions.history.journal import Journal
from attractor_nb.decisions.planning.plan import Plan, compile_plan
from attractor_nb.errors import AttractorError, OptionError
from attractor_nb.redaction import redacted, redacted_value
from attractor_nb.runtime.handles.recorded_state import StoredValues
from attractor_nb.runtime.stored_execution import is_path, resolve_run
from attractor_nb.storage.stored_run import read_run
from attractor_nb.studio.estimate.expected_route import ExpectedRoute, expect_route
from attractor_nb.views.drawings.picture import Mark, Overlay
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.drawings.theme import drawing_rules
from attractor_nb.views.table import Column, Table, table_html, table_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from attractor_nb.model.graph import Graph
    from attractor_nb.runtime.execution import Execution

_RULES: Final = """
& .node.turning.turning.turning .outline{stroke:var(--cached-line);stroke-width:3.5}
& .turning text.counts{fill:var(--cached-line);font-size:12px}
"""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The expected result of one run."""

    number: int  #: Its place among the runs that were asked about, from 1.
    run_id: str  #: The run, or empty where it could not be read.
    ended: str  #: How it stands, in words.
    expected: ExpectedRoute | None  #: What the graph would have made of it; None where that cannot be told.
    problem: str = ""  #: Why it cannot be told, or empty.

    @property
    def verdict(self) -> str:
        """``same``, ``elsewhere``, or ``unreadable``."""
        return "unreadable" if self.expected is None else self.expected.verdict

    def to_plain(self) -> dict[str, Any]:
        """JSON values."""
        plain: dict[str, Any] = {"run": self.run_id, "ended": self.ended, "verdict": self.verdict}
        if self.expected is None:
            return {**plain, "problem": self.problem}
        turn = self.expected.turn
        plain |= {"steps": self.expected.steps, "assumed": list(self.expected.assumed)}
        return plain if turn is None else {**plain, "turn": asdict(turn)}


class Hindsight:
    """The expected results of past runs on a graph. Its ``repr`` is a table.

    Attributes:
        verdicts: One for each run, in the order in which they were given.
    """

    def __init__(self, graph: Graph, verdicts: tuple[Verdict, ...]) -> None:
        self.verdicts = verdicts
        self._graph = graph

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self.verdicts)

    def __len__(self) -> int:
        return len(self.verdicts)

    @property
    def elsewhere(self) -> tuple[Verdict, ...]:
        """The runs that would go elsewhere."""
        return tuple(found for found in self.verdicts if found.verdict == "elsewhere")

    @property
    def headline(self) -> str:
        """The sum of it in a line."""
        count, total = len(self.elsewhere), len(self.verdicts)
        unread = sum(found.expected is None for found in self.verdicts)
        words = f"{count or 'none'} of {total} run{'s' * (total != 1)} would go elsewhere"
        return f"{words}, {unread} could not be read" if unread else words

    def to_plain(self) -> list[dict[str, Any]]:
        """JSON values, one entry for each run."""
        clean: Any = redacted_value([found.to_plain() for found in self.verdicts])
        return clean

    def to_svg(self) -> str:
        """The graph; a node behind which runs would go elsewhere says how many."""
        counts = Counter(found.expected.turn.node for found in self.elsewhere if found.expected and found.expected.turn)
        total = len(self.verdicts)
        marks = {
            node: Mark(("turning",), f"{count}/{total}", f"{count} of {total} runs would leave it elsewhere")
            for node, count in counts.items()
        }
        return render_svg(self._graph, overlay=Overlay(marks, css=drawing_rules(_RULES)))

    def table(self, *, has_ids: bool = False) -> Table:
        """The verdicts as a table."""
        columns = ("run", "ended", "would go elsewhere", "because", "then")
        rows = [_row(found, has_ids=has_ids) for found in self.verdicts]
        states = ["warn" if found.verdict != "same" else "" for found in self.verdicts]
        return Table(
            "Past runs on this graph",
            tuple(Column(name, "state" if name == "would go elsewhere" else "text") for name in columns),
            rows,
            states=states,
            headline=self.headline,
            notes=[redacted(note) for note in self._notes()],
        )

    def _notes(self) -> Iterator[str]:
        assumed = dict.fromkeys(node for found in self.verdicts if found.expected for node in found.expected.assumed)
        if assumed:
            yield f"changed since, their recorded outcomes are taken all the same: {', '.join(assumed)}"

    def details(self) -> str:
        """The table with the ids of the runs."""
        return table_text(self.table(has_ids=True))

    def __str__(self) -> str:
        return table_text(self.table())

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002 - the signature of Jupyter's hook
        return {"text/html": table_html(self.table()), "text/plain": str(self)}


def hindsight(graph: Graph, runs: object) -> Hindsight:
    """Ask a graph where past runs would have gone.

    Args:
        graph: The graph, linted.
        runs: Runs, results or directories; one of them, or several, such as ``runs()`` gives.
    """
    plan = compile_plan(graph)
    return Hindsight(graph, tuple(_verdict(plan, number, thing) for number, thing in enumerate(_several(runs), 1)))


def _several(runs: Any) -> Iterable[Any]:
    if is_path(runs) or hasattr(runs, "logs_root"):
        return (runs,)
    try:
        return tuple(runs)
    except TypeError:
        raise OptionError(
            f"hindsight is asked of runs, not of {type(runs).__name__}", hint="pipeline.hindsight(runs())"
        ) from None


def _verdict(plan: Plan, number: int, thing: object) -> Verdict:
    try:
        run = resolve_run(thing, f"run {number}")
        return Verdict(number, run.id, _ended(run), _expected_route(plan, run))
    except OptionError:
        raise
    except AttractorError as error:  # one that is damaged or gone keeps nobody from the others
        return Verdict(number, "", "unreadable", None, redacted(error.message))


def _expected_route(plan: Plan, run: Execution) -> ExpectedRoute:
    stored = read_run(run.logs_root)
    journal = Journal(stored.events, plan.graph.mirrored())
    values = StoredValues(stored.logs_root)
    return expect_route(plan, run.graph, journal, values.whole)


def _ended(run: Execution) -> str:
    return f"{run.view.status.letter} {run.view.status}" + (f", {run.mark}" if run.mark else "")


def _row(found: Verdict, *, has_ids: bool) -> tuple[str, str, str, str, str]:
    name = found.run_id if has_ids and found.run_id else str(found.number)
    if found.expected is None:
        return name, found.ended, "cannot be told", found.problem, ""
    turn = found.expected.turn
    if turn is None:
        return name, found.ended, "no, the same way", "", ""
    visit = f", visit {turn.visit}" if turn.visit > 1 else ""
    behind = f"behind {turn.node}{visit}" if turn.node else "at the start"
    where = f"to {turn.now or 'an end'}, not {turn.before or 'an end'}"
    return name, found.ended, redacted(f"{behind}: {where}"), redacted(turn.now_why), redacted(turn.known)
