"""Effects of a traversal, and the end of a stage as one record: outcome, context changes, next step (spec 3.2)."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

import msgspec
from msgspec.structs import replace

from attractor_nb.decisions.routing import condition_outcome, end_reason, next_step
from attractor_nb.errors import ContextValueError
from attractor_nb.model.events import Event, StageCompleted, StageEnd, StageFailed, StageStarted
from attractor_nb.model.outcome import Outcome, StageStatus, Usage, usage_problem

if TYPE_CHECKING:
    from attractor_nb.decisions.bounds import BoundReached
    from attractor_nb.decisions.planning.plan import Plan, PlannedNode
    from attractor_nb.decisions.run_state import RunState
    from attractor_nb.model.question import Answer, Question


def applied(context: RunContext, node_id: str, outcome: Outcome) -> Outcome:
    """Merge a final outcome's updates into the context; a refused value fails the stage instead."""
    if not outcome.context_updates:
        return outcome
    try:
        context.apply_updates(outcome.context_updates)
    except ContextValueError as error:
        refused = Outcome.fail(f"stage {node_id}: {error.message}", is_terminal=True)
        return replace(refused, usage=outcome.usage)
    return outcome


def totals(state: RunState, node_id: str, usage: Usage) -> tuple[Usage, Usage]:
    """The usage of the node and of the run with this attempt included, for its record."""
    whole = state.whole
    own = whole.usage_by_node.get(node_id)
    return usage if own is None else own + usage, whole.usage + usage


def commit_record(
    plan: Plan,
    planned: PlannedNode,
    state: RunState,
    context: RunContext,
    outcome: Outcome,
    counted: tuple[int, int, int, float],
) -> tuple[StageEnd, bool]:
    """Route on from a stage and write down all that its commit must say (ruling 29)."""
    node_id, status = planned.id, outcome.status
    is_passed_through = planned.is_conditional and not plan.are_diamonds_own and status.is_success
    seen = state.seen
    if not is_passed_through:
        seen = condition_outcome(outcome)
        if not status.is_skipped:
            context.set("outcome", str(status))
            if outcome.preferred_label:
                context.set("preferred_label", outcome.preferred_label)
    if status.is_success and node_id in state.retries:
        context.set(f"internal.retry_count.{node_id}", 0)
    step = None if planned.is_exit else next_step(plan, planned, outcome, seen, context.get, state.branch)
    route, detail = ("end", "") if step is None else (step.reason, step.detail)
    if step is None and not planned.is_exit:
        detail = end_reason(plan, planned, outcome, seen, context.get)
        route = "end" if not detail else "failed" if status is StageStatus.FAIL else "no_match"
    index, visit, attempt, duration = counted
    changes, logs = context.take_changes()
    usage = outcome.usage
    node_usage, run_usage = (None, None) if usage is None else totals(state, node_id, usage)
    kind = StageFailed if status.is_failure else StageCompleted
    event = kind(
        name=node_id,
        index=index,
        visit=visit,
        attempt=attempt,
        duration=duration,
        outcome=outcome.without_updates(),
        context=changes,
        next_node="" if step is None else step.target,
        edge=None if step is None or step.edge is None else step.edge.index,
        route=route,
        route_detail=detail,
        logs=logs,
        node_usage=node_usage,
        run_usage=run_usage,
    )
    if isinstance(event, StageFailed):
        event.error = outcome.failure_reason
    return event, is_passed_through


# Validation of the outcome that a handler returns (RELIABILITY, fault 8).
#
# Handlers and backends are foreign code and may be untyped: a wrong field must fail the stage that returned it,
# with its name, and never the run.

COST_KEY = "cost_usd"
"""The context key under which a stage may say its price."""
MAX_TEXT_CHARACTERS = 100_000
"""Of each text of an outcome: it is in the log, which is kept forever and read whole."""
_TEXTS = ("preferred_label", "notes", "failure_reason", "complaint")


def checked_outcome(outcome: Outcome, node_id: str) -> Outcome:
    """The outcome with each field of its type, or a FAIL that names the first that cannot be read.

    None stands for an empty field, a list for a tuple, and a status's word for the status.

    >>> checked_outcome(Outcome("success", suggested_next_ids=["done"]), "plan").suggested_next_ids
    ('done',)
    >>> checked_outcome(Outcome("success", notes=5), "plan").failure_reason
    'the outcome of plan has a int as notes, not a text'
    """
    if (
        type(outcome.status) is StageStatus
        and type(outcome.preferred_label) is str
        and type(outcome.suggested_next_ids) is tuple
        and type(outcome.context_updates) is dict
        and type(outcome.notes) is str
        and type(outcome.failure_reason) is str
        and not outcome.complaint
        and outcome.usage is None
        and outcome.retry_after_seconds is None
        and not outcome.suggested_next_ids
        and len(outcome.notes) + len(outcome.failure_reason) <= MAX_TEXT_CHARACTERS
        and len(outcome.preferred_label) <= MAX_TEXT_CHARACTERS
    ):
        return outcome
    return _mended(outcome, node_id)


def with_observed(written: Outcome, observed: Outcome) -> Outcome | None:
    """The outcome of a status file beside a failure that the engine observed; None when it does not count.

    A file never makes more of such a failure (ruling 42). It may say another reason for it.

    >>> with_observed(Outcome.success(), Outcome.fail("exit code 1"))
    >>> with_observed(Outcome.retry(""), Outcome.fail("exit code 1")).failure_reason
    'exit code 1'
    >>> with_observed(Outcome.retry("again"), Outcome.fail("no key", is_terminal=True))
    """
    if not observed.status.is_failure:
        return written
    if not written.status.is_failure or (observed.is_terminal and written.status is not StageStatus.FAIL):
        return None
    return replace(
        written,
        failure_reason=written.failure_reason or observed.failure_reason,
        is_terminal=written.is_terminal or observed.is_terminal,
        retry_after_seconds=observed.retry_after_seconds,
    )


def with_declared_cost(outcome: Outcome, node_id: str) -> Outcome:
    """The outcome with the price that its context updates declare as ``cost_usd`` (task-verification, 5).

    A price in the usage goes before it. One that cannot be counted fails the stage.

    >>> with_declared_cost(Outcome.success(context_updates={"cost_usd": 0.5}), "plan").usage.cost_usd
    0.5
    """
    declared = outcome.context_updates.get(COST_KEY)
    usage = outcome.usage or Usage()
    if declared is None or usage.cost_usd is not None:
        return outcome
    priced = usage.with_price(declared)
    if problem := usage_problem(priced):
        refused = _refused(node_id, f"declares a cost that cannot be counted: {problem}")
        return replace(refused, usage=outcome.usage)
    return replace(outcome, usage=priced)


def _mended(outcome: Outcome, node_id: str) -> Outcome:
    if problem := usage_problem(outcome.usage):
        return _refused(node_id, f"has a usage that cannot be counted: {problem}")
    if refusal := _refusal(outcome, node_id):
        return replace(refusal, usage=outcome.usage)  # what was spent counts, whatever it was spent on
    return replace(
        outcome,
        status=StageStatus(outcome.status),
        suggested_next_ids=tuple(outcome.suggested_next_ids or ()),
        context_updates=dict(outcome.context_updates or {}),
        **{name: _bounded(str(getattr(outcome, name) or "")) for name in _TEXTS},
    )


def _refusal(outcome: Outcome, node_id: str) -> Outcome | None:
    """A FAIL that names the first field that cannot be read; None when all can."""
    found: dict[str, Any] = {
        name: getattr(outcome, name) for name in (*_TEXTS, "status", "suggested_next_ids", "context_updates")
    }
    status, ids, updates = found["status"], found["suggested_next_ids"], found["context_updates"]
    if not isinstance(status, str) or status not in StageStatus.__members__.values():
        return _refused(node_id, f"has the status {status!r:.80}, which is not one of {', '.join(StageStatus)}")
    for name in _TEXTS:
        if found[name] is not None and not isinstance(found[name], str):
            return _refused(node_id, f"has {_kind(found[name])} as {name}, not a text")
    if not _are_ids(ids):
        return _refused(node_id, "has suggested_next_ids that are no list of node ids")
    if sum(len(entry) for entry in ids or ()) > MAX_TEXT_CHARACTERS:
        return _refused(node_id, f"has suggested_next_ids of more than {MAX_TEXT_CHARACTERS} characters")
    if len(found["preferred_label"] or "") > MAX_TEXT_CHARACTERS:
        return _refused(node_id, f"has a preferred_label of more than {MAX_TEXT_CHARACTERS} characters")
    if not _is_wait(outcome.retry_after_seconds):
        return _refused(node_id, f"has {outcome.retry_after_seconds!r:.40} as retry_after_seconds")
    if updates is not None and not isinstance(updates, Mapping):
        return _refused(node_id, f"has {_kind(updates)} as context_updates, not a dict")
    return None


def _bounded(text: str) -> str:
    left_out = len(text) - MAX_TEXT_CHARACTERS
    return f"{text[:MAX_TEXT_CHARACTERS]}… ({left_out} characters left out)" if left_out > 0 else text


def _refused(node_id: str, what: str) -> Outcome:
    return Outcome.fail(f"the outcome of {node_id} {what}")


def _kind(value: object) -> str:
    return f"a {type(value).__name__}"


def _is_wait(value: object) -> bool:
    """True if a value is a number of seconds, or None."""
    if value is None:
        return True
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")


def _are_ids(value: object) -> bool:
    if value is None:
        return True
    if not isinstance(value, list | tuple):
        return False
    return all(isinstance(entry, str) for entry in cast("Sequence[object]", value))


# The effects that a traversal requests and the results that it receives: the protocol between decisions and engine.
#
# Execute   run one attempt of a stage         -> StageResult
# Wait      wait between attempts              -> running time in seconds
# Ask       put a question to a person         -> Asked
# Record    a status without an execution      -> None
# Announce  an event for log and observers     -> None
# Commit    the one commit record of a stage   -> None
#
# The engine ends Execute, Wait and Ask when the run's ``max_duration`` is over.


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
    #: The intent record. The performer of the effect announces it and applies it to the state before anything is
    #: executed.
    started: StageStarted
    preamble: str = ""  #: Context carried into a model's prompt.
    note: str = ""  #: Text that is added to the handler's notes of the stage, or empty.
    #: Under ``full`` fidelity the entry of its thread that it continues from; empty at the beginning.
    thread_entry: str = ""
    complaint: str = ""  #: Problem of the last answer of this visit, for the model's prompt; or empty.


class StageResult(msgspec.Struct, frozen=True):
    """The end of an attempt: outcome, duration and usage."""

    outcome: Outcome  #: Its outcome; exceptions and timeouts are outcomes too.
    duration: float  #: Seconds.
    elapsed: float  #: Running time of the whole run in seconds, for ``max_duration``.
    is_cut_off: bool = False  #: ``max_duration`` ended it: its effects are not known, and its outcome means nothing.
    lost: str = ""  #: Loss of its worker: the effects are unknown, and the outcome means nothing. Or empty.
    is_saved: bool = False  #: It saved the conversation of its thread, which counts once the stage is committed.
    is_cached: bool = False  #: It came from the cache, and nothing was executed.
    #: Usage of its original execution; None when that is unknown, or it was executed now.
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
    problem: str = ""  #: Reason why no one could be asked, or empty.


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
    """Make the end of a stage durable, then continue. The state has taken it in already."""

    event: StageEnd  #: The commit record.
    is_landmark: bool  #: A gate, a failure or an exit: checkpoint.json is written at once (ruling 29).


class RunEnd(msgspec.Struct, frozen=True):
    """The end of a traversal."""

    is_success: bool  #: True if the pipeline's outcome is success.
    reason: str = ""  #: The reason.
    is_resumable: bool = False  #: A bound stopped it before a stage; with a higher one it can continue.
    restart_target: str = ""  #: Set when a ``loop_restart`` edge was taken: continue there, afresh.
    bound: str = ""  #: Name of the bound that stopped it, or empty.
    #: A stage could not be tried for a reason outside the pipeline: the run is interrupted (ruling 51).
    is_unmeasured: bool = False
    veto: str = ""  #: For a branch: why its fan-out fails whatever its policies say, or empty.
    return_target: str = ""  #: For a branch: where its fan-out is to continue, or empty (ruling 36).


Effect = Execute | Wait | Ask | RecordStatus | Announce | Commit
Traversal = Generator[Effect, Any, RunEnd]
