"""``pipeline.hindsight(runs)``: which past runs would go elsewhere on this graph, without a model call."""

from __future__ import annotations

import difflib
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.decisions.history.journal import Journal
from attractor_nb.decisions.planning.plan import Plan, compile_plan
from attractor_nb.decisions.replays.recordings import unused_lines
from attractor_nb.errors import AttractorError, CheckFailed, OptionError
from attractor_nb.model.states import run_state
from attractor_nb.model.texts import did_you_mean
from attractor_nb.redaction import redacted, redacted_value
from attractor_nb.runtime.handles.recorded_state import StoredValues
from attractor_nb.runtime.prepare.run_options import as_list
from attractor_nb.runtime.stored_execution import is_path, resolve_run
from attractor_nb.storage.stored_run import read_run
from attractor_nb.studio.estimate.estimated_usage import ExpectedRoute, expect_route
from attractor_nb.views.display import Displayed
from attractor_nb.views.drawings.picture import Mark, Overlay
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.drawings.theme import drawing_rules
from attractor_nb.views.table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from attractor_nb.model.graph import Graph
    from attractor_nb.runtime.execution import Execution
    from attractor_nb.runtime.handles.run_result import RunResult


_RULES: Final = """
& .node.turning.turning.turning .outline{stroke:var(--cached-line);stroke-width:3.5}
& .turning text.counts{fill:var(--cached-line);font-size:12px}
"""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The expected result of one run."""

    number: int  #: Its place among the runs that were asked about, from 1.
    run_id: str  #: The run, or empty where it could not be read.
    ended: str  #: Its status, in words.
    expected: ExpectedRoute | None  #: Its path in the graph; None if that is unknown.
    problem: str = ""  #: Reason why it cannot be told, or empty.

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


class Hindsight(Displayed):
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
            yield f"changed since, their recorded outcomes are used anyway: {', '.join(assumed)}"

    def details(self) -> str:
        """The table with the ids of the runs."""
        return str(self.table(has_ids=True))

    def __str__(self) -> str:
        return str(self.table())

    def _html(self) -> str:
        return self.table().to_html()


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
    except AttractorError as error:  # one that is damaged or gone does not hide the others
        return Verdict(number, "", "unreadable", None, redacted(error.message))


def _expected_route(plan: Plan, run: Execution) -> ExpectedRoute:
    stored = read_run(run.logs_root)
    journal = Journal(stored.events, plan.graph.mirrored())
    values = StoredValues(stored.logs_root)
    return expect_route(plan, run.graph, journal, values.whole)


def _ended(run: Execution) -> str:
    return run_state(run.view.shown_status) + (f", {run.mark}" if run.mark else "")


def _row(found: Verdict, *, has_ids: bool) -> tuple[str, str, str, str, str]:
    name = found.run_id if has_ids and found.run_id else str(found.number)
    if found.expected is None:
        return name, found.ended, "cannot be told", found.problem, ""
    turn = found.expected.turn
    if turn is None:
        return name, found.ended, "no, the same path", "", ""
    visit = f", visit {turn.visit}" if turn.visit > 1 else ""
    behind = f"behind {turn.node}{visit}" if turn.node else "at the start"
    where = f"to {turn.now or 'an end'}, not {turn.before or 'an end'}"
    return name, found.ended, redacted(f"{behind}: {where}"), redacted(turn.now_why), redacted(turn.known)


# ``pipeline.check``: a pipeline on its recording as a test (docs/cassettes.md).

OUTCOMES = ("success", "fail", "paused", "interrupted")
_MAX_UNUSED = 10


def read_expectation(path: object, outcome: object) -> tuple[tuple[str, ...] | None, str]:
    """Read the expectation of a check, before anything is run for it."""
    if outcome is not None and outcome not in OUTCOMES:
        word = str(outcome)
        raise OptionError(
            f"there is no outcome {word!r}{did_you_mean(word, OUTCOMES)}",
            hint=f"outcome is one of {', '.join(OUTCOMES)}",
        )
    if path is None:
        return None, str(outcome or "")
    stages = as_list("path", path)
    if not all(isinstance(stage, str) for stage in stages):
        raise OptionError("path must be a list of node ids", hint='path=["start", "plan", "done"]')
    return tuple(stages), str(outcome or "")


def check_result(result: RunResult, path: Sequence[str] | None, outcome: str, *, is_unused_allowed: bool) -> None:
    """Compare what a run did with what was expected of it."""
    problems: list[str] = []
    report = result.cassette
    if report is not None and report.misses:
        problems.append(f"the cassette had no answer for {report.misses[0]}")
    if outcome and result.status != outcome:
        problems.append(f"outcome: expected {outcome}, was {result.status}")
    if path is not None and tuple(path) != result.completed_nodes:
        problems.append(_path_difference(path, result.completed_nodes))
    if report is not None and report.unused and not is_unused_allowed:
        problems.append(_unused(unused_lines(report.unused)))
    if not problems:
        return
    if result.reason:
        problems.append(f"the run says: {result.reason}")
    raise CheckFailed(
        "\n".join(["the pipeline did not do what was expected", *problems]),
        hint='when this is meant, record again: pipeline.check(…, cassette_mode="record")',
    )


def _path_difference(expected: Sequence[str], taken: Sequence[str]) -> str:
    """Both paths, and the first step at which they part."""
    marks = difflib.ndiff(list(expected), list(taken))
    steps = [line for line in marks if not line.startswith("?")]
    place = next(
        (at for at, pair in enumerate(zip(expected, taken, strict=False), 1) if pair[0] != pair[1]),
        min(len(expected), len(taken)) + 1,
    )
    return "\n".join([f"path: parts at step {place} (- expected, + taken)", *(f"    {step}" for step in steps)])


def _unused(lines: Sequence[str]) -> str:
    shown = [f"    {line}" for line in lines[:_MAX_UNUSED]]
    if len(lines) > _MAX_UNUSED:
        shown.append(f"    and {len(lines) - _MAX_UNUSED} more")
    return "\n".join(["recorded, and not called now (allow_unused=True lets them be):", *shown])
