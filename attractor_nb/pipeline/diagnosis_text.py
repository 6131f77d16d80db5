"""A diagnosis in words: the verdict, how the run stands, each file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.views.columns import aligned, one_line
from attractor_nb.views.marks import STATUS_LETTERS
from attractor_nb.views.state import NodeStatus

if TYPE_CHECKING:
    from attractor_nb.pipeline.diagnosis import RunDiagnosis

MARKS: Final = {
    "ok": STATUS_LETTERS[NodeStatus.SUCCESS],
    "older": STATUS_LETTERS[NodeStatus.PARTIAL_SUCCESS],
    "damaged": STATUS_LETTERS[NodeStatus.FAIL],
    "missing": STATUS_LETTERS[NodeStatus.SKIPPED],
}
_STATES: Final = {"older": "older generation used"}
VERDICTS: Final = {
    "healthy": f"{MARKS['ok']} healthy",
    "damaged": f"{MARKS['damaged']} damaged",
    "lost": f"{MARKS['damaged']} nothing to go on with",
}


def diagnosis_text(found: RunDiagnosis) -> str:
    """How the run stands, and each of its files."""
    run = [
        ["pipeline", one_line(found.pipeline_name) or "-"],
        ["run", found.run_id or "-"],
        ["status", found.status + _owner(found)],
        [
            "stages",
            f"{found.stages} recorded" + (f", the last is {found.last_stage}" if found.last_stage else ""),
        ],
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
        return f", gate {found.open_gate} waits for an answer"
    return f", {found.cut_off} was cut off" if found.cut_off else ""


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
