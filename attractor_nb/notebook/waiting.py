"""Whether a cell may wait for a run whose gate a person has to answer by a button.

A button's click reaches Python through the kernel. A cell that holds the kernel while it waits for
the click waits for ever, silently; which ways of waiting hold it depends on ipykernel's version. So the
question is asked before each slice of waiting, and the answer is an error with its remedies in place of
a hang. Measured for 6.31, 7.0.1 to 7.3 and 7.4:

| how the cell waits | 6.x | 7.0 - 7.3 | 7.4 and later |
|---|---|---|---|
| it has returned | works | works | works |
| ``await run`` | hangs | works in a subshell | works |
| a blocking call | hangs | works in a subshell | hangs |

A subshell is a second thread that JupyterLab opens for widgets. In 7.4 messages of widgets go to the
main thread again, between the slices of an ``await``.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

from attractor_nb.errors import GateWouldBlock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attractor_nb.notebook.surroundings import Surroundings

CONCURRENT_COMMS = (7, 4)
SUBSHELLS = (7, 0)


class PendingGate(Protocol):
    """What is asked of a gate here."""

    @property
    def stage(self) -> str:
        """The asking node."""
        ...

    @property
    def deadline(self) -> float | None:
        """When its wait ends by itself, or None."""
        ...


def is_click_lost(around: Surroundings, *, is_blocking: bool) -> bool:
    """Whether no click can arrive while a cell waits in this way."""
    if not around.is_attended:
        return True
    if around.kernel_version >= CONCURRENT_COMMS:
        return is_blocking
    if around.kernel_version >= SUBSHELLS:
        return around.subshell_count == 0
    return True


def refuse_endless_wait(around: Surroundings, gates: Sequence[PendingGate], *, is_blocking: bool) -> None:
    """Return when the wait can end; raise when it cannot.

    A gate with a deadline ends without a click, so where nobody can click it is waited for. Where
    somebody could, a button that does not work is worse than an error.

    Raises:
        GateWouldBlock: A pending gate would never be answered.
    """
    if not around.has_kernel or threading.current_thread() is not threading.main_thread():
        return
    endless = [gate for gate in gates if around.is_attended or gate.deadline is None]
    if not endless or not is_click_lost(around, is_blocking=is_blocking):
        return
    raise _refusal(endless[0].stage, around)


def _refusal(stage: str, around: Surroundings) -> GateWouldBlock:
    answer = f'run.answer("{stage}", choice)'
    if not around.is_attended:
        return GateWouldBlock(
            f"gate `{stage}` waits for an answer, and nobody can click here",
            hint=f"call {answer} in a cell before the one that waits, or run with an interviewer: "
            'pipeline.run(interviewer="auto")',
        )
    if around.kernel_version >= CONCURRENT_COMMS:
        remedy = "use `await run`, or end this cell and click"
    else:
        remedy = "end this cell, click, and wait in a cell below (with ipykernel 7.4 `await run` works)"
    return GateWouldBlock(
        f"gate `{stage}` waits for your answer, but its buttons do not work while this cell runs",
        hint=f"{remedy}; or call {answer}",
    )
