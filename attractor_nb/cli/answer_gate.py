"""``answer``: the answer to a question that waits, in a run directory.

If the run is not active, it is recorded and nothing is run: the question's stage takes it when the run is resumed.
Where a process of this user works at it, that process is handed the answer and takes it at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attractor_nb.account import signed_here
from attractor_nb.cli.option_choices import ANSWERED_BY, GivenAnswer
from attractor_nb.cli.reporting import ExitCode, print_json
from attractor_nb.cli.run_summary import resume_command, shown_path
from attractor_nb.engine.gates import check_texts
from attractor_nb.errors import RunLocked
from attractor_nb.model.vocabulary.value_forms import label_text
from attractor_nb.runtime.answers_from_elsewhere import deliver_answer
from attractor_nb.runtime.parked_answers import find_question, record_answer
from attractor_nb.storage.log.event_log import read_log
from attractor_nb.storage.map_directory import is_map, map_is_no_run
from attractor_nb.storage.stored_run import check_directory, current_directory
from attractor_nb.views.table import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from attractor_nb.model.events import InterviewCompleted


def answer_directory(logs_root: Path, given: GivenAnswer, *, is_json: bool) -> ExitCode:
    """Record an answer, and print how the run continues with it."""
    check_directory(logs_root)
    if is_map(logs_root):
        raise map_is_no_run(logs_root)
    check_texts(gate=given.gate, choice=given.choice, text=given.text)
    try:
        recorded = record_answer(
            logs_root,
            given.gate,
            given.choice,
            text=given.text,
            form=given.fields,
            answered_by=signed_here(ANSWERED_BY),
        )
        resume = resume_command(logs_root)
    except RunLocked as locked:
        recorded, resume = _hand_over(logs_root, given, locked.owner), None
    choice = label_text(recorded.label) if recorded.label else recorded.text or recorded.answer
    if is_json:
        print_json(
            {
                "gate": recorded.stage,
                "question_id": recorded.question_id,
                "answer": recorded.answer,
                "label": recorded.label or None,
                "text": recorded.text or None,
                "logs_root": str(logs_root),
                "resume": resume,
            }
        )
    else:
        print(f"✓ {one_line(recorded.stage)}: {one_line(choice)}")
        then = f"resume the run with `{resume}`" if resume else "the process of the run receives it"
        print(f"  recorded in {shown_path(logs_root)}; {then}")
    return ExitCode.SUCCESS


def _hand_over(logs_root: Path, given: GivenAnswer, owner: Mapping[str, Any]) -> InterviewCompleted:
    """Hand an answer to the process that works at the run; what its log then has of it."""
    place = current_directory(logs_root)
    asked = find_question(read_log(place).events, given.gate)
    return deliver_answer(
        place,
        asked.question_id,
        given.choice,
        owner=owner,
        text=given.text,
        form=given.fields,
        answered_by=signed_here(ANSWERED_BY),
    )
