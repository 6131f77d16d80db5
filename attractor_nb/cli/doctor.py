"""``doctor``: what is wrong with a run directory, a pipeline's needs or this machine, and what helps."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.cli.reporting import ExitCode, print_json
from attractor_nb.cli.run_summary import resume_command, shown_path
from attractor_nb.cli.source_inputs import read_pipeline
from attractor_nb.studio.estimate.preflight import examine_machine
from attractor_nb.studio.history.diagnosis import MARKS, VERDICTS, RunDiagnosis, diagnose_run, diagnosis_text

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.cli.option_choices import Settings

_CODES: Final = {"healthy": ExitCode.SUCCESS, "damaged": ExitCode.FAILED, "lost": ExitCode.INVALID_INPUT}
_AFTER_LOSS: Final = "stages without records run again; you are asked first if the next stage is a command"


def show_diagnosis(logs_root: Path, *, target: Path | None, is_json: bool) -> ExitCode:
    """Print the diagnosis of a run; with ``target`` save what is whole into that new directory."""
    found = diagnose_run(logs_root)
    saved = found.salvage(target) if target is not None else None
    if is_json:
        print_json({**_plain(found), "salvaged_to": str(saved) if saved else None})
        return _CODES[found.verdict]
    print(f"{VERDICTS[found.verdict]}: {shown_path(found.logs_root)}\n\n{diagnosis_text(found)}")
    if saved is not None:
        print(f"\n{MARKS['ok']} saved to {shown_path(saved)}\n  {_next_step(diagnose_run(saved), saved)}")
    elif advice := _advice(found):
        print("\n" + "\n".join(advice))
    return _CODES[found.verdict]


def show_preflight(file: Path | None, settings: Settings, *, is_online: bool, is_json: bool) -> ExitCode:
    """Print what a pipeline would need and whether it is there; without a file what this machine has."""
    if file is None:
        found = examine_machine()
    else:
        found = read_pipeline(str(file)).doctor(settings.made_backend, online=is_online)
    if is_json:
        print_json(found.to_plain())
    else:
        print(found)
    return ExitCode.SUCCESS if found.is_ready else ExitCode.FAILED


def _advice(found: RunDiagnosis) -> list[str]:
    """The possible next steps, as commands."""
    if found.is_resumable:
        return [f"resume: {resume_command(found.logs_root)}"]
    if found.verdict == "healthy" or found.owner:
        return []
    if found.plan is None:
        return ["nothing can be saved: no record of the log and no checkpoint is intact"]
    new = found.logs_root.with_name(f"{found.logs_root.name}-saved")
    command = shlex.join(["attractor-nb", "doctor", shown_path(found.logs_root), "--salvage", shown_path(new)])
    lost = [f"lost: {found.plan.lost}", _AFTER_LOSS] if found.plan.lost else []
    is_ended_there = found.has_ended and not found.plan.lost  # what is lost is its end, or comes before it
    return [*lost, f"save the intact parts: {command}", f"then {_next_step(found, new, is_ended=is_ended_there)}"]


def _next_step(found: RunDiagnosis, place: Path, *, is_ended: bool | None = None) -> str:
    """The command that a run takes; one that has ended is only gone back in."""
    if found.has_ended if is_ended is None else is_ended:
        return f"the run has ended; rewind it: {resume_command(place)} --from NODE"
    return f"resume: {resume_command(place)}"


def _plain(found: RunDiagnosis) -> dict[str, Any]:
    return {
        "logs_root": str(found.logs_root),
        "verdict": found.verdict,
        "run_id": found.run_id or None,
        "pipeline": found.pipeline_name or None,
        "status": found.status,
        "mark": found.mark,
        "owner": dict(found.owner) or None,
        "stages": found.stages,
        "last_stage": found.last_stage or None,
        "next_node": found.next_node or None,
        "cut_off": found.cut_off or None,
        "open_gate": found.open_gate or None,
        "answered_gate": found.answered_gate or None,
        "is_resumable": found.is_resumable,
        "can_be_salvaged": found.plan is not None,
        "lost": found.plan.lost or None if found.plan else None,
        "files": [{"name": file.name, "state": file.state, "detail": file.detail} for file in found.files],
    }
