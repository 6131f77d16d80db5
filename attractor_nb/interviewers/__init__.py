"""Interviewers: they ask users questions, or answer without them (spec 6).

An interviewer knows only questions and answers, not handlers, runs or the notebook.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.errors import OptionError
from attractor_nb.interviewers.console import ConsoleInterviewer
from attractor_nb.interviewers.unattended import (
    AutoApproveInterviewer,
    CallbackInterviewer,
    DeferredInterviewer,
    PausingInterviewer,
    QueueInterviewer,
    RefusingInterviewer,
)
from attractor_nb.interviewers.unattended import RecordingInterviewer as RecordingInterviewer
from attractor_nb.interviewers.unattended import ReplayInterviewer as ReplayInterviewer
from attractor_nb.lazy_imports import deferred
from attractor_nb.model.texts import did_you_mean
from attractor_nb.protocols import Interviewer

if TYPE_CHECKING:
    from collections.abc import Callable

else:
    __getattr__ = deferred(
        __name__, {"RecordingInterviewer": "interviewers.unattended", "ReplayInterviewer": "interviewers.unattended"}
    )

__all__ = [
    "AutoApproveInterviewer",
    "CallbackInterviewer",
    "ConsoleInterviewer",
    "DeferredInterviewer",
    "PausingInterviewer",
    "QueueInterviewer",
    "RecordingInterviewer",
    "RefusingInterviewer",
    "ReplayInterviewer",
    "resolve_interviewer",
]

NAMED: dict[str, Callable[[], Interviewer]] = {
    "auto": AutoApproveInterviewer,
    "console": ConsoleInterviewer,
    "deferred": DeferredInterviewer,
    "pause": PausingInterviewer,
    "refuse": RefusingInterviewer,
}
"""The interviewers that an option can name."""
ELSEWHERE: Final = {"widgets": "load it with  %load_ext attractor_nb"}
"""Those that a front-end registers (``runtime/handles/presenters.py``), and what makes it do so."""


def resolve_interviewer(spec: str | Interviewer | Callable[..., object] | None) -> Interviewer:
    """The interviewer that an argument or option means.

    Args:
        spec: A name of ``NAMED``, an interviewer, or a function that receives a question. None: the
            console if there is one, otherwise an interviewer that refuses each question.

    Raises:
        OptionError: It is none of these.
    """
    if spec is None:
        console = ConsoleInterviewer()
        return console if console.is_terminal else RefusingInterviewer()
    if isinstance(spec, str):
        if spec in NAMED:
            return NAMED[spec]()
        if spec in ELSEWHERE:
            raise OptionError(f"the interviewer {spec!r} belongs to notebooks, and is not here", hint=ELSEWHERE[spec])
        raise OptionError(
            f"there is no interviewer {spec!r}{did_you_mean(spec, [*NAMED, *ELSEWHERE])}",
            hint=f"use one of {', '.join(NAMED)}, an interviewer, or a function of a question",
        )
    if isinstance(spec, type):
        raise OptionError(
            f"the interviewer is the class {spec.__name__}, not an object of it", hint=f"give {spec.__name__}(…)"
        )
    if isinstance(spec, Interviewer):
        return spec
    if callable(spec):
        return CallbackInterviewer(spec)
    raise OptionError(
        f"a {type(spec).__name__} is not an interviewer",
        hint=f"give one of {', '.join(NAMED)}, an object with ask, ask_multiple and inform, or a function",
    )
