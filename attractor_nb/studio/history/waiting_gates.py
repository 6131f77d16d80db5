"""``gates()``: the questions of all runs that wait for a person, here and on the disk, in one list."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.decisions.log_history import open_questions
from attractor_nb.engine.gates import Gate, question_of
from attractor_nb.errors import NoSuchGate, RunError, StorageError
from attractor_nb.model.vocabulary.value_forms import label_text
from attractor_nb.redaction import redacted
from attractor_nb.runtime.answers_from_elsewhere import can_be_answered, deliver_answer
from attractor_nb.runtime.parked_answers import record_answer
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.runtime.wired_run import runs_under_way
from attractor_nb.storage.log.event_log import read_log
from attractor_nb.storage.log.lock import process_of
from attractor_nb.storage.map_directory import continue_call, row_number
from attractor_nb.storage.own_places import refuse_linked
from attractor_nb.storage.run_directory import DEFAULT_RUNS_BASE, without_times
from attractor_nb.storage.run_index import list_runs, waiting_rows
from attractor_nb.storage.stored_run import current_directory
from attractor_nb.views.table import Column, DisplayedTable, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from attractor_nb.model.events import InterviewCompleted, InterviewStarted
    from attractor_nb.runtime.execution import Execution
    from attractor_nb.storage.run_listing import RunSummary

_COLUMNS: Final = (Column("pipeline"), Column("gate", "place"), Column("question"), Column("answer with"))


@dataclass(frozen=True, slots=True, repr=False)
class WaitingGate:
    """A question that waits."""

    event: InterviewStarted  #: The question, as its run has logged it.
    pipeline: str  #: Name of the pipeline.
    logs_root: Path  #: The run directory.
    run: Execution | None  #: The run, when it is under way in this process; else None.
    how: str  #: Way to answer it, in words.
    #: Facts about another process that works at the run; None where there is none that takes answers.
    owner: Mapping[str, Any] | None = None
    #: No process works at it, and an answer is recorded for the resume of the map whose row it is.
    is_parked: bool = False

    def __repr__(self) -> str:
        """The question with its choices and the way to answer it, in one line."""
        labels = ", ".join(f"{key} = {label_text(label)}" for key, label in self.event.options)
        words = f"gate {self.gate} of {self.about}: {self.event.question}{f' ({labels})' if labels else ''}; {self.how}"
        return f"<{' '.join(redacted(words).split())}>"

    @property
    def gate(self) -> str:
        """The asking node."""
        return self.event.stage

    @property
    def about(self) -> str:
        """The pipeline and the run: questions of the same words are told apart by it."""
        return f"{self.pipeline} · run {without_times(self.logs_root.name) if self.run is None else self.run.id}"

    @property
    def is_answerable(self) -> bool:
        """True if an answer from here counts."""
        return self.run is not None or self.owner is not None or self.is_parked

    def answer(self, choice: str = "", *, text: str = "", form: Mapping[str, Any] | None = None) -> Gate:
        """Answer it; as ``Run.answer``. A run of another process is handed the answer, within ten seconds.

        The answer to a paused row of a map is recorded, and counts when the map is resumed.
        """
        if self.run is not None:
            return self.run.answer(self.event.question_id, choice, text=text, form=form)
        asked = self.event
        self.hand_in(choice, text=text, form=form, answered_by="call")
        return Gate(asked.question_id, asked.stage, question_of(asked), asked.deadline, asked.time)

    def hand_in(
        self, choice: str, *, text: str, form: Mapping[str, Any] | None, answered_by: str
    ) -> InterviewCompleted:
        """Answer a question of a run that no engine of this process works at; what its log then has of it."""
        place, asked = current_directory(self.logs_root), self.event.question_id
        if self.is_parked:
            return record_answer(place, asked, choice, text=text, form=form, answered_by=answered_by)
        if self.owner is None:
            raise NoSuchGate(f"gate `{self.gate}` of {self.pipeline} waits in another place", hint=self.how)
        return deliver_answer(place, asked, choice, owner=self.owner, text=text, form=form, answered_by=answered_by)


class Inbox(DisplayedTable):
    """The questions that waited when it was made, oldest first. In a notebook its cell follows them.

    Attributes:
        notes: What could not be read, and why.
    """

    def __init__(self, questions: tuple[WaitingGate, ...], notes: tuple[str, ...] = ()) -> None:
        self.questions = questions
        self.notes = notes

    def __len__(self) -> int:
        return len(self.questions)

    def __iter__(self) -> Iterator[WaitingGate]:
        return iter(self.questions)

    def __getitem__(self, index: int) -> WaitingGate:
        return self.questions[index]

    def answer(self, gate: str, choice: str = "", *, text: str = "", form: Mapping[str, Any] | None = None) -> Gate:
        """Answer the question of a gate, named by its node, its id, or ``pipeline/node``."""
        found = [
            asked
            for asked in self.questions
            if gate in {asked.gate, asked.event.question_id, f"{asked.pipeline}/{asked.gate}"}
        ]
        if len(found) != 1:
            names = ", ".join(dict.fromkeys(f"{asked.pipeline}/{asked.gate}" for asked in self.questions))
            what = f"{len(found)} gates `{gate}` wait" if found else f"no gate `{gate}` is in this inbox"
            hint = f"here: {names}; by its place: gates()[0].answer(…)" if names else "gates() looks again"
            raise NoSuchGate(what, hint=hint)
        return found[0].answer(choice, text=text, form=form)

    @property
    def table(self) -> Table:
        """The same as a table."""
        count = len(self.questions)
        words = "no question waits" if not count else f"{count} question{'s wait' if count > 1 else ' waits'}"
        return Table(
            "Open questions",
            _COLUMNS,
            [(asked.pipeline, asked.gate, asked.event.question, _answers(asked)) for asked in self.questions],
            headline=words,
            notes=self.notes,
        )


def gates(base: str | Path = DEFAULT_RUNS_BASE) -> Inbox:
    """All questions that wait: of the runs of this process, and of those under a runs base, rows of maps included.

    Of one map at most 500 rows are looked into.

    Args:
        base: The runs base; nothing of it is changed.

    Raises:
        StorageError: The base may not be read, or is in ``.attractor`` of the working directory behind a link.
    """
    here = runs_under_way()
    found = [question_here(run, gate.as_event(), gate.since) for run in here for gate in run.gates]
    found.sort(key=lambda asked: asked.event.time)
    places = {run.logs_root.absolute() for run in here}
    notes: list[str] = []
    for summary in list_runs(refuse_linked(as_path(base, "the runs base"), option='gates("DIR")')):
        if not (summary.is_resumable or summary.is_live) or summary.logs_root.absolute() in places:
            continue
        try:
            found += _questions_of_rows(summary, places, notes) if summary.is_map else questions_of(summary)
        except (RunError, StorageError) as error:
            notes.append(f"{summary.logs_root.name} cannot be read: {error.message}")
    return Inbox(tuple(found), tuple(notes))


def _questions_of_rows(of_map: RunSummary, here: set[Path], notes: list[str]) -> list[WaitingGate]:
    """The questions of a map's rows; a row is not a run that is resumed, so its answer is recorded for its map."""
    rows, more = waiting_rows(of_map)
    resume = continue_call(of_map.logs_root, f'"{shown_place(of_map.logs_root)}"')
    found: list[WaitingGate] = []
    for row in rows:
        number = row_number(row.logs_root.name)
        if row.logs_root.absolute() in here:
            continue
        for asked in questions_of(row):
            is_parked = not row.is_live and not asked.event.form
            how = asked.how
            if not row.is_live:
                how = f"{resume} asks it again" if asked.event.form else f"gates(…).answer(…) records it for {resume}"
            found.append(replace(asked, pipeline=f"{asked.pipeline} row {number}", how=how, is_parked=is_parked))
    if more:
        notes.append(f"{of_map.logs_root.name}: {more:,} more rows wait; answer these first")
    return found


def question_here(run: Execution, event: InterviewStarted, since: float) -> WaitingGate:
    """A question of a run of this process."""
    event.time = since
    return WaitingGate(event, run.pipeline.name, run.logs_root, run, f'run.answer("{event.stage}", …)')


def questions_of(summary: RunSummary) -> list[WaitingGate]:
    """The questions that a run left open that no process works on here."""
    waiting = open_questions(read_log(summary.current_directory).events)
    how, owner = resume_call(summary.logs_root), None
    if summary.is_live:
        who = process_of(summary.owner)
        how = f"answer it where it runs: {who}"
        if can_be_answered(summary.owner, summary.current_directory):
            how, owner = f"gates(…).answer(…) hands the answer to {who}", summary.owner
    name = summary.pipeline_name
    return [WaitingGate(event, name, summary.logs_root, None, how, owner) for event in waiting.values()]


def shown_place(path: Path) -> str:
    """A path as short as it can be written here."""
    try:
        here, whole = Path.cwd(), path.absolute()
    except FileNotFoundError:  # the working directory was removed
        return path.as_posix()
    return (whole.relative_to(here) if whole.is_relative_to(here) else whole).as_posix()


def load_call(logs_root: Path) -> str:
    """The call that shows a stored run."""
    return f'Run.load("{shown_place(logs_root)}")'


def resume_call(logs_root: Path) -> str:
    """The call that resumes a run."""
    return f"{load_call(logs_root)}.resume()"


def _answers(asked: WaitingGate) -> str:
    """The way to answer a question, with its choices."""
    if asked.run is None:
        return asked.how
    labels = [f"{key} = {label_text(label)}" for key, label in asked.event.options]
    fields = [str(entry["name"]) for entry in asked.event.form.get("fields", ())]
    parts = [", ".join(labels) or asked.event.kind.replace("_", " ")]
    return "; ".join([*parts, f"form: {', '.join(fields)}"] if fields else parts)
