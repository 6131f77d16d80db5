"""Diagnosis of a stored run: its damage, its state, and the possible next steps; read without owning it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.engine.time_limits import SystemClock
from attractor_nb.errors import RunNotFound
from attractor_nb.model.events import (
    Event,
    GoalGateUnsatisfied,
    InterviewCompleted,
    InterviewStarted,
    PipelineCompleted,
    PipelineFailed,
    PipelineInterrupted,
    PipelineRestarted,
    PipelineResumed,
    PipelineRewound,
    PipelineStarted,
    StageEnd,
    StageStarted,
)
from attractor_nb.model.outcome import ResultMarks
from attractor_nb.model.states import ENDED, NodeStatus, run_word
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.storage.directory_survey import (
    DirectorySurvey,
    FileFinding,
    SalvagePlan,
    plan_salvage,
    salvage,
    survey_run,
)
from attractor_nb.storage.files.disk import Disk
from attractor_nb.storage.manifest_file import current_status, manifest_from_events
from attractor_nb.storage.map_directory import is_map, map_is_no_run
from attractor_nb.storage.stored_run import check_directory
from attractor_nb.views.table import aligned, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_OF_THE_RUN = (
    PipelineStarted,
    PipelineResumed,
    PipelineRewound,
    PipelineRestarted,
    PipelineCompleted,
    PipelineFailed,
    PipelineInterrupted,
)

MARKS: Final = {
    "ok": NodeStatus.SUCCESS.letter,
    "older": NodeStatus.PARTIAL_SUCCESS.letter,
    "damaged": NodeStatus.FAIL.letter,
    "missing": NodeStatus.SKIPPED.letter,
}
_STATES: Final = {"older": "older generation used"}
VERDICTS: Final = {
    "healthy": f"{MARKS['ok']} healthy",
    "damaged": f"{MARKS['damaged']} damaged",
    "lost": f"{MARKS['damaged']} nothing to resume",
}


@dataclass(slots=True)
class _RecordScan:
    """The facts in the intact records, in a space that does not grow with the number of stages."""

    last_stage: str = ""
    next_node: str = ""
    cut_off: str = ""
    gate: str = ""
    answered: str = ""
    stages: int = 0
    visits: dict[str, int] = field(default_factory=dict[str, int])
    of_the_run: list[Event] = field(default_factory=list[Event])

    def take(self, event: Event) -> None:
        if isinstance(event, _OF_THE_RUN):
            self.of_the_run.append(event)
        if isinstance(event, StageStarted):
            self.cut_off, self.answered = event.name, ""
        elif isinstance(event, StageEnd):
            self.cut_off = self.gate = self.answered = ""
            if event.is_commit:
                self.last_stage, self.next_node = event.name, event.next_node
                self.stages += 1
                self.visits[event.name] = event.visit
        elif isinstance(event, InterviewStarted):
            self.gate = event.stage
        elif isinstance(event, InterviewCompleted):
            self.gate, self.answered = "", event.stage
        elif isinstance(event, PipelineStarted):
            self.next_node = event.start_node
        elif isinstance(event, GoalGateUnsatisfied):
            self.next_node = event.target
        elif isinstance(event, PipelineRewound):
            self.next_node, self.cut_off, self.gate, self.answered = event.node, "", "", ""


@dataclass(frozen=True, slots=True)
class RunDiagnosis:
    """The diagnosis of a stored run: its damage, its state, and the possible next steps."""

    logs_root: Path  #: The run directory.
    verdict: str  #: ``healthy``; ``damaged``: it can continue, or be saved; ``lost``: nothing to continue.
    #: Each file: ``name``, ``state`` (``ok``, ``damaged``, ``missing``, ``older``) and ``detail``.
    files: tuple[FileFinding, ...]
    run_id: str  #: The run, or empty.
    pipeline_name: str  #: Its pipeline, or empty.
    status: str  #: Its status, as in the list of runs.
    mark: str  #: Mark of its result, or empty (ruling 48).
    owner: Mapping[str, Any]  #: ``pid``, ``host`` and ``since`` of the process that owns it now, if one does.
    stages: int  #: Stages that are recorded without a fault.
    last_stage: str  #: The last of them, or empty.
    next_node: str  #: Node where the run continues, or empty.
    cut_off: str  #: A stage that was begun and has no end, or empty.
    open_gate: str  #: A gate whose question has no answer, or empty.
    answered_gate: str  #: A gate that was cut off with its answer recorded, or empty.
    is_resumable: bool  #: A resume would continue from this very directory.
    has_ended: bool  #: It has ended for good: it cannot be resumed, only rewound.
    plan: SalvagePlan | None  #: Plan of a salvage; None when nothing can be saved.
    _survey: DirectorySurvey = field(repr=False)
    _facts: Mapping[str, Any] = field(repr=False)
    _suspect: StageStarted | None = field(repr=False)

    def __str__(self) -> str:
        return f"{VERDICTS[self.verdict]}\n\n{diagnosis_text(self)}"

    __repr__ = __str__

    def salvage(self, target: str | Path, *, disk: Disk | None = None) -> Path:
        """Write what is whole into a new run directory, from which a resume continues.

        Returns:
            The new directory.
        """
        place = as_path(target, "the new run directory")
        salvage(self._survey, self._facts, place, suspect=self._suspect, disk=disk or Disk(), now=SystemClock().time())
        return place


def diagnose_run(logs_root: str | Path) -> RunDiagnosis:
    """Look at every file of a stored run; nothing is changed, and its owner may continue.

    Args:
        logs_root: The run directory.

    Raises:
        RunNotFound: There is no such directory, or it holds nothing of a run.
        StorageError: The directory cannot be read.
    """
    place = as_path(logs_root).absolute()
    check_directory(place)
    if is_map(place):
        raise map_is_no_run(place)
    story = _RecordScan()
    survey = survey_run(place, story.take)
    if all(file.state == "missing" for file in survey.files):
        raise RunNotFound(f"{place} holds nothing of a run", hint="name the run's own directory")
    plan = plan_salvage(survey)
    facts = dict(survey.manifest or manifest_from_events(story.of_the_run))
    current = current_status(place, facts)
    checkpoint = survey.checkpoint or {}
    if plan is not None and plan.is_from_checkpoint:
        story.last_stage = str(checkpoint.get("current_node", ""))
        story.next_node = str(checkpoint.get("next_node", ""))
        story.stages = len(checkpoint.get("completed_nodes", ()))
        story.visits = dict(checkpoint.get("visits", {}))
        story.cut_off = story.gate = story.answered = ""
    is_ended = current.status in ENDED
    has_ended = current.status == "completed" or (is_ended and _failed_for_good(story.of_the_run))
    return RunDiagnosis(
        logs_root=place,
        verdict="healthy" if survey.is_healthy else "damaged" if plan else "lost",
        files=survey.files,
        run_id=str(facts.get("run_id") or checkpoint.get("run_id", "")),
        pipeline_name=str(facts.get("pipeline_name") or checkpoint.get("pipeline_name", "")),
        status=current.status,
        mark=ResultMarks.of_facts(facts).words,
        owner=current.owner,
        stages=story.stages,
        last_stage=story.last_stage,
        next_node="" if is_ended else story.next_node,
        cut_off="" if is_ended else story.cut_off,
        open_gate="" if is_ended else story.gate,
        answered_gate="" if is_ended else story.answered,
        is_resumable=_can_be_read(survey) and not has_ended and not current.owner,
        has_ended=has_ended,
        plan=plan,
        _survey=survey,
        _facts=_salvaged_facts(facts, place, plan, checkpoint),
        _suspect=StageStarted(name=story.next_node, visit=story.visits.get(story.next_node, 0) + 1)
        if story.next_node and not story.cut_off
        else None,
    )


def _failed_for_good(of_the_run: Sequence[Event]) -> bool:
    """True if the last word of a log is a failure that no resume continues after."""
    last = of_the_run[-1] if of_the_run else None
    return isinstance(last, PipelineFailed) and not last.is_resumable


def _can_be_read(survey: DirectorySurvey) -> bool:
    """True if a resume takes this directory: it mends projections by itself, but believes no foreign one."""
    is_foreign = any(" is of run " in f" {file.detail}" for file in survey.files)
    return survey.files[0].state == "ok" and survey.log.records > 0 and not is_foreign


def _salvaged_facts(
    facts: Mapping[str, Any], place: Path, plan: SalvagePlan | None, checkpoint: Mapping[str, Any]
) -> dict[str, Any]:
    """The manifest of a salvaged run: it is where it was cut, unless its checkpoint knows the end."""
    saved = {name: value for name, value in facts.items() if name not in {"restart_of", "log_sequence"}}
    saved["salvaged_from"] = str(place)
    if plan is not None and plan.lost:
        ended = checkpoint.get("state", {}).get("ended", [""])[0] if plan.is_from_checkpoint else ""
        saved.update(status=ended or "interrupted", end_time=facts.get("end_time") if ended else None)
    return saved


def diagnosis_text(found: RunDiagnosis) -> str:
    """The state of the run, and of each of its files."""
    run = [
        ["pipeline", one_line(found.pipeline_name) or "-"],
        ["run", found.run_id or "-"],
        ["status", run_word(found.status) + _owner(found)],
        *([["mark", one_line(found.mark)]] if found.mark else []),
        ["stages", f"{found.stages} recorded" + (f", the last is {found.last_stage}" if found.last_stage else "")],
    ]
    if found.next_node:
        run.append(["next", found.next_node + _where(found)])
    files = [
        [MARKS[file.state], file.name, _STATES.get(file.state, file.state), one_line(file.detail)]
        for file in found.files
    ]
    return "\n\n".join([_indented(aligned(run)), _indented(aligned(files))])


def _owner(found: RunDiagnosis) -> str:
    if not found.owner:
        return ""
    owner = found.owner
    return f", owned by process {owner.get('pid', '?')} on {owner.get('host', '?')}"


def _where(found: RunDiagnosis) -> str:
    if found.open_gate:
        return f", gate `{found.open_gate}` waits for an answer"
    if found.answered_gate:
        return f", gate `{found.answered_gate}` is answered"
    return f", {found.cut_off} was cut off" if found.cut_off else ""


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
