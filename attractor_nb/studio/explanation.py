"""``run.explain`` and ``run.explain_loop``: why a run went the way it went, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.decisions.history.looping import LoopReport, explain_looping
from attractor_nb.errors import OptionError
from attractor_nb.model.events import PipelineRewound
from attractor_nb.model.states import run_word, stage_word
from attractor_nb.model.texts import did_you_mean
from attractor_nb.redaction import redacted
from attractor_nb.runtime.past import RunHistory, read_history
from attractor_nb.studio.inspect.inspect_run import inspect_stage
from attractor_nb.studio.inspect.inspection_view import reason_html, reason_text
from attractor_nb.views.display import Displayed
from attractor_nb.views.table import Column, DisplayedTable, Table

if TYPE_CHECKING:
    from attractor_nb.runtime.execution import Execution
    from attractor_nb.studio.inspect.inspection import StageInspection


MAX_LINES: Final = 400
"""Of a long run the first and the last stages are told."""


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(Displayed):
    """The reasons for the route into a stage and out of it."""

    stage: StageInspection  #: Details of the visit: ``why_here`` and ``why_next`` are the reasons.

    def to_plain(self) -> dict[str, Any]:
        """JSON values."""
        plain = self.stage.to_plain(with_place=False)
        wanted = (
            "node",
            "handler",
            "visit",
            "visits",
            "branch",
            "attempt",
            "attempts",
            "status",
            "is_set_aside",
            "mark",
        )
        return {name: plain[name] for name in (*wanted, "why_here", "why_next", "problems")}

    def __str__(self) -> str:
        return reason_text(self.to_plain())

    def _html(self) -> str:
        return reason_html(self.to_plain())


@dataclass(frozen=True, slots=True)
class StepLine:
    """A stage on the path."""

    node: str
    visit: int
    branch: str  #: Path of the branch that it is in, or empty.
    status: str  #: Final status.
    target: str  #: Node where the run went; empty where it ended.
    route: str  #: Rule that decided.
    words: str  #: Reason, as a sentence.
    mismatch: str = ""  #: Decision by the current graph, if it differs from the record.

    def to_plain(self) -> dict[str, Any]:
        """JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, repr=False)
class PathExplanation(DisplayedTable):
    """The whole path of a run, stage by stage."""

    steps: tuple[StepLine, ...]  #: The stages that count, in the order of their ends.
    ending: str  #: End of the run, or its progress so far.
    mark: str = ""  #: Mark of its result, or empty (ruling 48).

    def to_plain(self) -> dict[str, Any]:
        """JSON values."""
        return {"steps": [step.to_plain() for step in self.steps], "ending": self.ending, "mark": self.mark}

    @property
    def table(self) -> Table:
        """The same as a table."""
        columns = (
            Column("", "number"),
            Column("stage", "place"),
            Column("outcome", "state"),
            Column("went to", "place"),
            Column("because"),
        )
        rows: list[list[str]] = []
        states: list[str] = []
        numbered = list(enumerate(self.steps, 1))
        if len(numbered) > MAX_LINES:
            numbered = numbered[: MAX_LINES // 2] + numbered[-MAX_LINES // 2 :]
        for number, step in numbered:
            name = step.node + (f" (visit {step.visit})" if step.visit > 1 else "")
            name += f" in {step.branch}" if step.branch else ""
            why = step.words.partition(": ")[2] if step.target else step.words
            rows.append([str(number), name, stage_word(step.status), step.target or "-", why])
            states.append({"success": "ok", "fail": "error"}.get(step.status, "warn"))
        notes = [f"{step.node}, visit {step.visit}: {step.mismatch}" for step in self.steps if step.mismatch]
        if len(self.steps) > MAX_LINES:
            notes.insert(0, f"{len(self.steps) - MAX_LINES} stages in between are not shown: .steps has all")
        return Table("The path of the run", columns, rows, states, notes=(*notes, _marked(self.ending, self.mark)))


@dataclass(frozen=True, slots=True, repr=False)
class LoopExplanation(DisplayedTable):
    """The reasons for the number of a node's visits; ``statement`` is the shortest form."""

    found: LoopReport  #: The node, its rounds, its retries, the ending and the statement.
    mark: str = ""  #: Mark of the run's result, or empty (ruling 48).

    @property
    def statement(self) -> str:
        """``draft was visited 3 times because check found n=0, n=1``."""
        return redacted(self.found.statement)

    def to_plain(self) -> dict[str, Any]:
        """JSON values."""
        found = self.found
        return {
            "node": found.node,
            "visits": found.visits,
            "rounds": [one.to_plain() for one in found.rounds],
            "retries": list(found.retries),
            "ending": found.ending,
            "statement": self.statement,
            "mark": self.mark,
        }

    @property
    def table(self) -> Table:
        """The same as a table."""
        found = self.found
        rows = [
            [str(one.visit), " -> ".join(one.path) + (" (restarted)" if one.is_restart else ""), redacted(one.words)]
            for one in found.rounds
        ]
        ending = [redacted(found.ending)] if found.ending else []
        columns = (Column("visit", "number"), Column("the way there", "place"), Column("what decided"))
        notes = (*(redacted(line) for line in found.retries), *ending, _marked(self.statement, self.mark))
        return Table(f"Why {found.node} was visited so often", columns, rows, notes=notes)


def explain(run: Execution, node: str | None = None, visit: int | None = None) -> Explanation | PathExplanation:
    """Explain the route into a stage and out of it; without a node the whole path, a line for each stage."""
    past = read_history(run)
    if node is not None:
        return Explanation(inspect_stage(run, node, visit))
    if visit is not None:
        raise OptionError("a visit is one of a node", hint=f'name the node too: explain("plan", {visit})')
    steps = tuple(
        StepLine(
            commit.name,
            commit.visit,
            commit.branch,
            commit.outcome.status.value,
            reasons.target,
            reasons.route,
            redacted(reasons.words),
            redacted(reasons.mismatch),
        )
        for _, commit, reasons in past.explained()
    )
    return PathExplanation(steps, redacted(_ending(run) + _later_words(past)), run.mark)


def explain_loop(run: Execution, node: str, branch: str = "") -> LoopExplanation:
    """Explain the repeated visits of a node: the edge back to it each time, and the decision.

    Args:
        branch: Path of a branch, to look at its visits there.
    """
    if node not in run.graph.nodes:
        raise OptionError(f"there is no node {node!r}{did_you_mean(str(node), run.graph.nodes)}")
    past = read_history(run)
    if not branch:
        visits = [one.record for one in past.visits_of(node) if not one.is_set_aside]
        branch = visits[-1].branch if visits and all(one.branch for one in visits) else ""
    found = explain_looping(past.plan, node, past.counted, past.reasons_by_commit, is_ended=run.is_done, branch=branch)
    return LoopExplanation(found, run.mark)


def _marked(sentence: str, mark: str) -> str:
    return f"{sentence} ({mark})" if mark else sentence


def _later_words(past: RunHistory) -> str:
    """The continuation of the run by another handle; empty without one."""
    later = past.later
    if later is None:
        return ""
    how = f"rewound to before {later.node}" if isinstance(later, PipelineRewound) else "resumed"
    return f"; it was {how} since, and Run.load(…) shows that"


def _ending(run: Execution) -> str:
    view = run.view
    if not run.is_done:
        return "the run is still active"
    reason = f": {view.reason}" if view.reason and not view.is_paused else ""
    return f"the run {run_word(view.shown_status)}{reason}"
