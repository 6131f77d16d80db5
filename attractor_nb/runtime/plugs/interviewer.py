"""Who answers the questions of a run, and whether anybody does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.interviewers import resolve_interviewer
from attractor_nb.runtime.handles.presenters import are_runs_shown

if TYPE_CHECKING:
    from attractor_nb.protocols import Interviewer
    from attractor_nb.runtime.prepare.run_options import RunOptions


def interviewer_of(options: RunOptions, *, is_waited_for: bool) -> Interviewer:
    """The interviewer of a run. Nobody named: whoever shows the run, the caller's hands, or the terminal.

    Args:
        options: Names one, or none.
        is_waited_for: The caller blocks until the end, so nobody can call ``run.answer``.

    Raises:
        OptionError: It means none.
    """
    if options.interviewer is None and (are_runs_shown() or not is_waited_for):
        return resolve_interviewer("deferred")
    return resolve_interviewer(options.interviewer)


def is_somebody_asked(options: RunOptions) -> bool:
    """Whether a question that no stage of the graph puts finds somebody who expects it.

    A script that names nobody does not: it would wait for ever.
    """
    if options.interviewer is None:
        return are_runs_shown()
    return not getattr(resolve_interviewer(options.interviewer), "refuses_all", False)
