"""Instructions to a run: one whose engine works here, one of another process, or one that is paused or stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attractor_nb.decisions.waiting_instructions import check_instruction
from attractor_nb.engine.time_limits import SystemClock
from attractor_nb.errors import RunError, RunLocked
from attractor_nb.model.events import InstructionGiven
from attractor_nb.model.instruction import InstructionReceipt
from attractor_nb.model.states import RunStatus
from attractor_nb.redaction import redacted
from attractor_nb.runtime.answers_from_elsewhere import tell_elsewhere
from attractor_nb.runtime.execution import Execution, in_engine
from attractor_nb.runtime.stored_execution import inner_run, load_execution
from attractor_nb.storage.run_store import DirectoryRunStore
from attractor_nb.storage.stored_run import current_directory, has_event_log

if TYPE_CHECKING:
    from collections.abc import Mapping


def tell(run: Execution, node: str | None, text: object, given_by: str) -> InstructionReceipt:
    """Tell a run something, which the next prompt carries; when this returns it is recorded.

    Args:
        run: The run.
        node: The node whose prompts alone carry it; ``node>inner`` is a stage of the node's child run; None for any.
        text: What it says.
        given_by: By what way it came, for the record.

    Returns:
        How it reaches a model.
    """
    run, node = inner_run(run, node or "")
    receipt = in_engine(run, lambda inbox: inbox.tell(node, text, given_by))
    if receipt is not None:
        return receipt
    if not has_event_log(run.logs_root):
        raise _over(run.id, "and nothing of it is stored")
    run = load_execution(run.logs_root, run.pipeline)
    said = check_instruction(run.graph, node, text)
    if RunStatus.of(run.status).is_over:
        raise _over(run.id, f"it {run.status}")
    try:
        return _record(run, node, said, given_by)
    except RunLocked as locked:
        owner: Mapping[str, Any] = locked.owner
        return tell_elsewhere(current_directory(run.logs_root), node, said, owner=owner, given_by=given_by)


def _over(run_id: str, how: str) -> RunError:
    return RunError(
        f"run {run_id} has ended ({how}), so no prompt of it follows",
        hint="continue from an earlier stage: run.fork(node, prompt=…), or run.rewind(node)",
    )


def _record(run: Execution, node: str, text: str, given_by: str) -> InstructionReceipt:
    """Record an instruction in the log of a run that is not under way; the run receives it when it resumes."""
    clock, text = SystemClock(), redacted(text)
    store = DirectoryRunStore.open(current_directory(run.logs_root), durability="full", clock=clock)
    try:
        event = InstructionGiven(text=text, given_by=redacted(given_by), node=node, is_from_person=True)
        event.run_id, event.time, event.sequence = run.id, clock.time(), store.scan.sequence + 1
        store.append(event, is_synced=True)
    finally:
        store.close()
    return InstructionReceipt(text, node, reach="attempt" if node else "prompt")
