"""The effects that a traversal requests and the results that it receives: the protocol between decisions and engine.

Execute   run one attempt of a stage         -> StageResult
Wait      wait between attempts              -> running time in seconds
Ask       put a question to a person         -> Asked
Record    a status without an execution      -> None
Announce  an event for log and observers     -> None
Commit    the one commit record of a stage   -> None

The engine ends Execute, Wait and Ask when the run's ``max_duration`` is over.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

if TYPE_CHECKING:
    from attractor_nb.decisions.bounds import BoundReached
    from attractor_nb.decisions.planning.plan import PlannedNode
    from attractor_nb.model.events import Event, StageEnd, StageStarted
    from attractor_nb.model.outcome import Outcome, Usage
    from attractor_nb.model.question import Answer, Question


class RunContext(Protocol):
    """The part of the context that decisions need."""

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key."""
        ...

    @property
    def kept(self) -> Mapping[str, Any]:
        """The stored value of each key; a value that is not text, number or boolean is read with ``get`` alone."""
        ...

    def set(self, key: str, value: Any) -> None:
        """Set a key."""
        ...

    def apply_updates(self, updates: Mapping[str, Any]) -> None:
        """Set many keys, or none."""
        ...

    def take_changes(self) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The changes since the last call."""
        ...


class Execute(msgspec.Struct, frozen=True):
    """Run one attempt."""

    planned: PlannedNode  #: The node.
    #: The intent record. Whoever performs the effect announces it and applies it to the state before anything is
    #: executed.
    started: StageStarted
    preamble: str = ""  #: Context carried into a model's prompt.
    note: str = ""  #: What the stage's notes must say beside what its handler says, or empty.
    #: Under ``full`` fidelity the entry of its thread that it goes on from; empty at the beginning.
    thread_entry: str = ""
    complaint: str = ""  #: What was wrong with the last answer of this visit, for the model's prompt; or empty.


class StageResult(msgspec.Struct, frozen=True):
    """The end of an attempt: outcome, duration and usage."""

    outcome: Outcome  #: Its outcome; exceptions and timeouts are outcomes too.
    duration: float  #: Seconds.
    elapsed: float  #: Running time of the whole run in seconds, for ``max_duration``.
    is_cut_off: bool = False  #: ``max_duration`` ended it: its effects are not known, and its outcome means nothing.
    lost: str = ""  #: Why its worker was lost; its effects are not known, and its outcome means nothing. Or empty.
    is_saved: bool = False  #: It saved the conversation of its thread, which counts once the stage is committed.
    is_cached: bool = False  #: It came from the cache, and nothing was executed.
    #: What it had consumed when it was executed; None when that is not known, or it was now.
    saved: Usage | None = None
    over_budget: BoundReached | None = (
        None  #: The bound for which it was ended between two requests; None when it was not.
    )
    files: Any = None  #: Its ``StageFiles``, for a decision that changes its outcome; None when it has none that count.
    commit: str = ""  #: The commit of the run's worktree at which it left it; empty where there is none.


class Wait(msgspec.Struct, frozen=True):
    """Wait before the next attempt. ``seconds`` is what the retry policy says."""

    seconds: float


class Ask(msgspec.Struct, frozen=True):
    """Put a question of the engine's own, durably; an answer that the log holds already counts."""

    question: Question


class Asked(msgspec.Struct, frozen=True):
    """The result of a question."""

    answer: Answer | None  #: The durable answer; None when there is none.
    elapsed: float  #: Running time of the whole run in seconds.
    problem: str = ""  #: Why nobody could be asked, or empty.


class RecordStatus(msgspec.Struct, frozen=True):
    """Write the status of an attempt whose outcome was decided without executing it."""

    planned: PlannedNode
    visit: int
    attempt: int
    outcome: Outcome


class Announce(msgspec.Struct, frozen=True):
    """Tell log and observers."""

    event: Event


class Commit(msgspec.Struct, frozen=True):
    """Make the end of a stage durable, then go on. The state has taken it in already."""

    event: StageEnd  #: The commit record.
    is_landmark: bool  #: A gate, a failure or an exit: checkpoint.json is written at once (ruling 29).


class RunEnd(msgspec.Struct, frozen=True):
    """The end of a traversal."""

    is_success: bool  #: Whether the pipeline's outcome is success.
    reason: str = ""  #: Why not.
    is_resumable: bool = False  #: A bound stopped it before a stage; with a higher one it can go on.
    restart_target: str = ""  #: Set when a ``loop_restart`` edge was taken: go on there, afresh.
    bound: str = ""  #: Name of the bound that stopped it, or empty.
    #: A stage could not be tried for a reason outside the pipeline: the run is interrupted (ruling 51).
    is_unmeasured: bool = False
    veto: str = ""  #: For a branch: why its fan-out fails whatever its policies say, or empty.
    return_target: str = ""  #: For a branch: where its fan-out is to go on, or empty (ruling 36).


Effect = Execute | Wait | Ask | RecordStatus | Announce | Commit
Traversal = Generator[Effect, Any, RunEnd]
