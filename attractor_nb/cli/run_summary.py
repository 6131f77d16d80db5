"""The summary of a run: a few lines for users, JSON for programs."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attractor_nb.cli.reporting import reason_in_options
from attractor_nb.model.states import RunStatus, run_state
from attractor_nb.views.summary_line import cached_words, duration_text, failed_stage, usage_words
from attractor_nb.views.table import one_line

if TYPE_CHECKING:
    from attractor_nb.cli.quiet_progress import Tally
    from attractor_nb.pipeline.run import Run
    from attractor_nb.runtime.handles.run_result import RunResult
    from attractor_nb.views.state import AttemptSpending, BranchView


def in_words(result: RunResult) -> str:
    """Outcome, reason, and where everything is."""
    count = result.view.stages
    parts = [run_state(result.status), f"{count} stage{'s' * (count != 1)}", duration_text(result.duration)]
    if result.mark:
        parts.append(result.mark)
    if result.cached_nodes:
        parts.append(cached_words(result.view))
    lines = ["   ".join([*parts, *usage_words(result.usage)])]
    if (result.status == "fail" and result.reason) or result.is_unmeasured:
        lines.append(f"  reason  {one_line(reason_in_options(result.reason))}")
    if result.logs_root.is_dir():
        lines.append(f"  run directory  {shown_path(result.logs_root)}")
    if result.branch:
        lines.append(f"  changes on branch  {result.branch}; nothing is merged: git merge {result.branch}")
    return "\n".join(lines)


def failed_lines(run: Run) -> list[str]:
    """The failed stage of a run: its failure, what a resume would do, and the command of a rewind; empty for none."""
    path = failed_stage(run.view, run.graph)
    if not path:
        return []
    from attractor_nb.studio.inspect.failure import failure_lines  # noqa: PLC0415 - few runs fail
    from attractor_nb.studio.inspect.inspect_run import plain_failure  # noqa: PLC0415 - as above

    failure = plain_failure(run, path)
    if failure is None:
        return []
    sentence, *lines = failure_lines(failure)
    command = resume_command(run.logs_root, "--from", failure["rewind_to"]) if failure["rewind_to"] else ""
    return [reason_in_options(sentence), *lines, *([f"Rerun it with `{command}`"] if command else []), ""]


def can_be_resumed(result: RunResult | None, tally: Tally) -> bool:
    """True if there is anything to continue."""
    if result is None or not RunStatus.of(result.status).is_over:
        return True
    return result.status == "fail" and tally.is_resumable


def summary_plain(run: Run, result: RunResult | None, tally: Tally) -> dict[str, Any]:
    """The run as JSON values; of the stages, only those that were visited (in order of first visit)."""
    marks = run.view.marks.marks
    if result is None:
        return {
            "status": "interrupted",
            "run_id": run.id,
            "logs_root": str(run.logs_root),
            "is_simulated": marks.is_simulated,
            "mark": marks.words,
            "stages": [],
        }
    return {
        "pipeline": run.pipeline.name,
        "status": result.status,
        "reason": result.reason,
        "is_simulated": marks.is_simulated,
        "mark": marks.words,
        "run_id": result.run_id,
        "logs_root": str(result.logs_root),
        **({"workdir": str(result.workdir)} if result.workdir else {}),
        **({"branch": result.branch} if result.branch else {}),
        "duration_seconds": round(result.duration, 3),
        "next_node": result.next_node or None,
        "is_resumable": can_be_resumed(result, tally),
        "bound": result.bound or None,
        "usage": result.usage.to_plain(),
        **({"saved": result.saved.to_plain()} if result.cached_nodes else {}),
        "stages": [
            _stage_plain(node_id, result, tally, "", result.visits.get(node_id, 0))
            for node_id in dict.fromkeys(result.completed_nodes)
        ],
        "branches": [_branch_plain(branch, result, tally) for branch in result.view.branches.values()],
    }


def _branch_plain(branch: BranchView, result: RunResult, tally: Tally) -> dict[str, Any]:
    """One branch of a fan-out on its latest pass, with the stages that it visited."""
    plain: dict[str, Any] = {
        "path": branch.path,
        "status": branch.status,
        "duration_seconds": round(branch.duration, 3),
        "stages": [
            _stage_plain(node_id, result, tally, branch.path, visits) for node_id, visits in branch.nodes.items()
        ],
    }
    if branch.reason:
        plain["failure_reason"] = branch.reason
    return plain


def _stage_plain(node_id: str, result: RunResult, tally: Tally, branch: str, visits: int) -> dict[str, Any]:
    """One stage, in the run or a branch. Seconds and attempts are those of this call, not of earlier ones."""
    outcome = result.outcomes.get(node_id)
    plain: dict[str, Any] = {
        "id": node_id,
        "type": result.graph.handler_types.get(node_id, ""),
        "status": outcome.status.value if outcome else None,
        "visits": visits,
    }
    if node_id in result.cached_nodes:
        plain["cached"] = result.cached_nodes.count(node_id)
    if (branch, node_id) in tally.seconds:
        plain["attempts"] = tally.attempts.get((branch, node_id), 0)
        plain["duration_seconds"] = round(tally.seconds[branch, node_id], 3)
    if node_id in result.usage_by_node:
        plain["usage"] = result.usage_by_node[node_id].to_plain()
        plain["spent"] = [_attempt_plain(entry) for entry in result.view.attempts.get(node_id, ())]
    if calls := result.view.calls_by_node.get(node_id):
        plain["model_calls"], plain["tool_calls"] = calls
    if outcome and outcome.failure_reason:
        plain["failure_reason"] = outcome.failure_reason
    if outcome and outcome.preferred_label:
        plain["preferred_label"] = outcome.preferred_label
    return plain


def _attempt_plain(entry: AttemptSpending) -> dict[str, Any]:
    """The usage of one attempt."""
    plain: dict[str, Any] = {"visit": entry.visit, "attempt": entry.attempt, "status": entry.status}
    if entry.branch:
        plain["branch"] = entry.branch
    return {**plain, "usage": entry.usage.to_plain()}


def resume_command(logs_root: Path, *options: str) -> str:
    """The command that resumes a run."""
    return shlex.join(["attractor-nb", "resume", shown_path(logs_root), *options])


def answer_command(logs_root: Path, gate: str) -> str:
    """The command that answers a gate of a run, whichever process works on it."""
    return shlex.join(["attractor-nb", "answer", shown_path(logs_root), gate, "CHOICE"])


def shown_path(path: Path) -> str:
    """A path as short as it can be typed here."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) and path != here else str(path)
