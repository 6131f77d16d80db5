"""The spending of an attempt, whatever its outcome, and the claims held for it (ruling 18).

A handler that raises, or runs out of time, returns no usage, and its model was paid all the same. The calls
that it announced carry their usage.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec
from msgspec import structs
from msgspec.structs import replace

from attractor_nb.context import check_values
from attractor_nb.decisions.bounds import Account, BoundReached, Claim, Reservations, RunBounds, RunPosition, used_up
from attractor_nb.decisions.commits import COST_KEY, Execute, checked_outcome, with_declared_cost, with_observed
from attractor_nb.decisions.retries import outcome_of_exception
from attractor_nb.errors import BudgetReached, ContextValueError, StatusFileError, TerminalError
from attractor_nb.model.events import Event, ModelCallEnded
from attractor_nb.model.outcome import Outcome, StageStatus, Usage, usage_problem
from attractor_nb.model.redacted import redacted_outcome
from attractor_nb.storage.stages.status_file import StatusText, read_status_file, redacted_status

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Collection

    from attractor_nb.decisions.planning.plan import PlannedNode
    from attractor_nb.stage import StageFiles


class Spending:
    """Hands on what an attempt announces, and adds up the model calls among it.

    Attributes:
        usage: What they consumed; None while there was none.
        is_bounded: A bound on money or tokens holds for it.
        over: The bound of the run that stopped it; None while none did.
        over_own: The bound of its node that stopped it; likewise.
    """

    __slots__ = (
        "_announce",
        "_claims",
        "_funds",
        "_is_closed",
        "_node_id",
        "_own",
        "_whole",
        "is_bounded",
        "over",
        "over_own",
        "usage",
    )

    def __init__(
        self,
        announce: Callable[[Event], None],
        node_id: str = "",
        funds: Funds | None = None,
        *,
        own: Account | None = None,
    ) -> None:
        """Begin with nothing.

        Args:
            announce: Takes the events.
            node_id: The stage.
            funds: Those of its node, or of the run; None where nothing bounds its spending.
            own: The account of the node, where it has bounds of its own.
        """
        self._announce = announce
        self._node_id = node_id
        self._funds = None if funds is None else funds.beneath(Account())
        self._own = own
        self.is_bounded = funds is not None
        self._whole: Claim | None = None
        self._claims: set[Claim] = set()
        self._is_closed = False
        self.usage: Usage | None = None
        self.over: BoundReached | None = None
        self.over_own: BoundReached | None = None

    def check(self) -> None:
        """Stop an attempt that has reached a bound."""
        if self._funds is not None and (end := self._funds.end_for(self._node_id)):
            self._stop(end)

    @contextlib.asynccontextmanager
    async def paying(self, maximum: Usage) -> AsyncGenerator[None]:
        """Hold what a request can cost at most while it is active, and no more than that for the attempt."""
        if self._funds is None:
            yield
            return
        self._free()
        claim = await self._claimed(self._funds, maximum)
        try:
            yield
        finally:
            self._release(claim)

    async def around(self, work: Callable[[], Awaitable[Any]], kind: str) -> Any:
        """Do work of unknown maximum cost; that is held until the attempt is settled."""
        if self._funds is not None:
            self._whole = await self._claimed(self._funds, None, kind)
        return await work()

    def for_child(self) -> Funds | None:
        """The funds for a child run of this attempt, which makes claims of its own."""
        self._free()
        return self._funds

    def announce(self, event: Event) -> None:
        """Hand an event on."""
        self._announce(event)
        if isinstance(event, ModelCallEnded) and (own := _spent(event)) is not None:
            self.usage = own if self.usage is None else self.usage + own
            if self._funds is not None:
                self._funds.charge(own)

    def counted(self, outcome: Outcome) -> Outcome:
        """The outcome with what the calls consumed, unless it says so itself."""
        if self.usage is None or outcome.usage is not None:
            return outcome
        return replace(outcome, usage=self.usage)

    def settle(self, outcome: Outcome) -> None:
        """Have spent what the outcome says, which goes before what the calls said."""
        if self._funds is not None and outcome.usage is not None:
            self._funds.settle(outcome.usage)
        actual = outcome.usage or self.usage
        if outcome.status.is_failure and not (actual and actual.total_tokens):
            actual = None  # what a failure cost tells nothing of what an answer does
        elif actual is None:
            actual = Usage()
        self._free(actual)

    def close(self) -> None:
        """Free what is still held, also by a handler that was given up and continues all the same."""
        self._is_closed = True
        self._free(self.usage)
        for claim in tuple(self._claims):
            self._release(claim)

    def _free(self, actual: Usage | None = None) -> None:
        claim, self._whole = self._whole, None
        if claim is not None:
            self._release(claim, actual)

    def _release(self, claim: Claim, actual: Usage | None = None) -> None:
        self._claims.discard(claim)
        if self._funds is not None:
            self._funds.release(claim, actual)

    async def _claimed(self, funds: Funds, maximum: Usage | None, kind: str = "") -> Claim:
        claim = await funds.claim(self._node_id, maximum, kind)
        if claim.refused is not None:
            self._stop(claim.refused)
        if self._is_closed:
            funds.release(claim)
            raise TerminalError(
                "the attempt has ended; it cannot make another paid call", hint="end when the call ends"
            )
        self._claims.add(claim)
        return claim

    def _stop(self, end: BoundReached) -> NoReturn:
        self.over_own = None if self._own is None else self._own.reached(self._own.spent, self._node_id)
        if self.over_own is None:
            self.over = end
        raise BudgetReached((self.over_own or end).reason)


def _spent(call: ModelCallEnded) -> Usage | None:
    """The usage of a call; an answer without a count is one call, and no answer is nothing."""
    if call.usage is None or usage_problem(call.usage):
        return None if call.error else Usage(calls=1)
    return call.usage


# Funds of callers that share a bound on money or tokens: they wait here until there is room (ruling 18).
#
# ``decisions/bounds.py`` decides which claims are granted. There are funds only where there is a bound.


class BudgetQueue:
    """Decides all claims beneath one account, made in any loop, and counts what any thread has spent."""

    def __init__(self) -> None:
        self._reservations = Reservations()
        self._waiting: dict[Claim, asyncio.Future[None]] = {}
        self.lock = threading.Lock()

    async def claim(self, claim: Claim) -> None:
        """Wait until a claim is granted or refused, in its turn."""
        waiting = self._waiting[claim] = asyncio.get_running_loop().create_future()
        with self.lock:
            self._reservations.waiting.append(claim)
        self._decide()
        try:
            await waiting
        except BaseException:  # a cancelled wait, too, must free what was claimed
            self.release(claim)
            raise

    def release(self, claim: Claim, actual: Usage | None = None) -> None:
        """Take back a claim that was made, in any state, and let others continue."""
        self._waiting.pop(claim, None)
        with self.lock:
            self._reservations.release(claim, actual)
        self._decide()

    def _decide(self) -> None:
        with self.lock:
            decided = self._reservations.decide()
        for claim in decided:
            waiting = self._waiting.pop(claim, None)
            if waiting is not None:
                with contextlib.suppress(RuntimeError):  # its loop has ended, and who waited with it
                    waiting.get_loop().call_soon_threadsafe(_go_on, waiting)


def _go_on(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


class Funds:
    """An account, and where its claims are decided."""

    def __init__(self, account: Account, queue: BudgetQueue) -> None:
        self.account = account
        self._queue = queue

    @classmethod
    def of_account(cls, account: Account) -> Funds:
        """Those of an account with none above it."""
        return cls(account, BudgetQueue())

    def beneath(self, account: Account, spent: Usage | None = None) -> Funds:
        """Those of another account, which all of this one's bounds hold for, too."""
        account.above = self.account
        funds = Funds(account, self._queue)
        if spent is not None:
            funds.settle(spent)
        return funds

    def charge(self, usage: Usage) -> None:
        """Count what was spent."""
        with self._queue.lock:
            self.account.charge(usage.cost_usd or 0.0, usage.total_tokens)

    def settle(self, usage: Usage) -> None:
        """Have spent just this, whatever was counted so far."""
        with self._queue.lock:
            self.account.settle(usage)

    def end_for(self, spender: str) -> BoundReached | None:
        """The bound that forbids further spending; None when it is allowed."""
        with self._queue.lock:
            return self.account.end_for(spender)

    async def claim(self, spender: str, maximum: Usage | None = None, kind: str = "") -> Claim:
        """Wait until there is room for the most that something can cost; None when it is unknown.

        Returns:
            The claim, which may be refused.
        """
        claim = Claim(self.account, spender, maximum, kind)
        await self._queue.claim(claim)
        return claim

    def release(self, claim: Claim, actual: Usage | None = None) -> None:
        """Take back a claim; its actual cost, if the maximum was unknown."""
        self._queue.release(claim, actual)


def run_funds(bounds: RunBounds, spent: Usage, above: Funds | None) -> Funds | None:
    """Those of a run, or of a child run; None where nothing bounds its spending.

    Args:
        bounds: Its own bounds.
        spent: What it has spent by what it has recorded.
        above: Those of the stage whose child it is, or of its row of a map.
    """
    if bounds.max_budget_usd is None and bounds.max_tokens_total is None:
        return None if above is None else above.beneath(Account(), spent)
    bounds = replace(bounds, max_duration_seconds=None)

    def reached(usage: Usage, spender: str) -> BoundReached | None:
        return used_up(bounds, usage, 0.0, RunPosition((), spender, f"within {spender}"))

    own = Account(max_usd=bounds.max_budget_usd, max_tokens=bounds.max_tokens_total, reached=reached)
    if above is not None:
        return above.beneath(own, spent)
    funds = Funds.of_account(own)
    funds.settle(spent)
    return funds


def node_funds(node_id: str, bounds: RunBounds, spent: Usage, above: Funds | None) -> Funds:
    """Those of a node with bounds of its own, for all its attempts and visits.

    Args:
        node_id: The node.
        bounds: Its bounds.
        spent: What it has spent by what the run has recorded, which those above have counted.
        above: Those of the run; None where nothing bounds its spending.
    """

    def reached(usage: Usage, _who: str) -> BoundReached | None:
        return used_up(bounds, usage, 0.0, RunPosition((), node_id, f"in all attempts of {node_id}"))

    own = Account(max_usd=bounds.max_budget_usd, max_tokens=bounds.max_tokens_total, reached=reached)
    own.usd, own.tokens = spent.cost_usd or 0.0, spent.total_tokens
    return Funds.of_account(own) if above is None else above.beneath(own)


# The outcome of an attempt, and the status file that holds it (rulings 27, 42).
#
# It knows what a handler returned and what is in the stage's files, not how the handler was called.

STATUS_FILE = "status.json"
REJECTED_STATUS_FILE = "status.rejected.json"
"""Name of a rejected status.json: it is invalid, or contradicts an observed failure (rulings 27, 42)."""
IGNORED_STATUS_FILE = "status.json.ignored"
"""Name of an ignored status.json, in a stage that runs nothing that may write one (ruling 42)."""
AUTO_STATUS_NOTES = "auto-status: handler completed without writing status"


class Returned(msgspec.Struct, frozen=True):
    """The result of a handler call."""

    value: Any  #: Its return value, or the outcome of its exception or time limit.
    #: A failure in it was observed by the engine: no status.json makes a success of it (ruling 42).
    is_observed: bool = False
    writes_status: bool = True  #: The handler runs something that may write a status.json.
    #: Ids of the graph's nodes, whose responses and verdicts no status.json sets (ruling 50).
    node_ids: Collection[str] = ()


def outcome_that_counts(
    effect: Execute, files: StageFiles, returned: Returned, duration: float, spending: Spending
) -> tuple[Outcome, str]:
    """The outcome of an attempt: its status file, the returned outcome, auto_status, or none (rulings 27, 42).

    Its status.json is then there. The returned outcome is written first, into a file that must be new:
    only when there is one already has something else written it, and it is read.

    Returns:
        The outcome, and a warning about a status file that was ignored, or empty.
    """
    planned = effect.planned
    outcome = _finished(_declared(planned, returned.value), effect)
    if spending.usage is not None:
        outcome = spending.counted(outcome)
    started = effect.started
    if files.create_deferred(STATUS_FILE, StatusText(outcome, started.visit, started.attempt, duration)):
        return outcome, ""
    if not returned.writes_status:
        files.rename(STATUS_FILE, IGNORED_STATUS_FILE)
        rewrite_status(files, effect, outcome, duration)
        return outcome, _ignored(planned)
    outcome, is_file = _arbitrated(planned, files, returned)
    outcome = spending.counted(_finished(outcome, effect, is_file=is_file))
    if not is_file:
        rewrite_status(files, effect, outcome, duration)
    return outcome, ""


def _ignored(planned: PlannedNode) -> str:
    return (
        f"{planned.id}: a {STATUS_FILE} was found in its stage directory and ignored: a stage of type "
        f"{planned.handler_type} writes none; it is kept as {IGNORED_STATUS_FILE}"
    )


def _arbitrated(planned: PlannedNode, files: StageFiles, returned: Returned) -> tuple[Outcome, bool]:
    """The outcome beside a status.json: the file's, unless it or what the handler returned is refused.

    Returns:
        The outcome, and whether it is that of a valid file.
    """
    value = returned.value
    spent = value.usage if isinstance(value, Outcome) else None
    is_counted = not usage_problem(spent)
    try:
        text = files.read_text(STATUS_FILE)
        if text is not None and is_counted:
            targets = {edge.edge.target for edge in planned.edges}
            text = _without_secrets(files, text)
            if isinstance(value, Outcome):
                value = checked_outcome(value, planned.id)
            written = read_status_file(text, targets=targets, node_ids=returned.node_ids)
            written = _with_usage(written, value)
            if not returned.is_observed or not isinstance(value, Outcome):
                return written, True
            if (counting := with_observed(written, value)) is not None:
                return counting, counting is written
            files.rename(STATUS_FILE, REJECTED_STATUS_FILE)
            evidence = f"its {STATUS_FILE} says {written.status}, and does not count ({REJECTED_STATUS_FILE})"
            notes = "; ".join(filter(None, (value.notes, evidence, written.notes)))
            return structs.replace(value, notes=notes, usage=written.usage), False
        if text is not None:  # the file says success, and what it cost is nonsense: no success
            files.rename(STATUS_FILE, REJECTED_STATUS_FILE)
    except StatusFileError as error:
        files.rename(STATUS_FILE, REJECTED_STATUS_FILE)
        refused = Outcome.fail(f"{planned.id}: {error.message}")
        return (structs.replace(refused, usage=spent) if is_counted else refused), False
    return _declared(planned, value), False


def _declared(planned: PlannedNode, returned: Any) -> Outcome:
    """The outcome of the handler's return value, for a stage without a status.json that counts."""
    if isinstance(returned, Outcome):
        return checked_outcome(returned, planned.id)
    if returned is None and planned.auto_status:
        return Outcome(StageStatus.SUCCESS, notes=AUTO_STATUS_NOTES)
    if returned is None:
        return Outcome.fail(f"no status: {planned.id} returned nothing and wrote no status.json")
    kind = type(returned).__name__
    return Outcome.fail(f"the handler of {planned.id} returned {kind}, not an Outcome")


def _finished(outcome: Outcome, effect: Execute, *, is_file: bool = False) -> Outcome:
    """An outcome as it is recorded: with updates that the context takes, without secrets, with its price."""
    node_id = effect.planned.id
    if outcome.context_updates and not is_file:
        try:
            check_values(outcome.context_updates)
        except ContextValueError as error:  # the context would refuse it: its status.json must say so
            refused = Outcome.fail(f"stage {node_id}: {error.message}", is_terminal=True)
            outcome = structs.replace(refused, usage=outcome.usage)
    outcome = redacted_outcome(outcome)
    if COST_KEY in outcome.context_updates:
        outcome = with_declared_cost(outcome, node_id)
    return with_note(outcome, effect) if effect.note else outcome


def outcome_of_handler_error(error: BaseException, node_id: str) -> Outcome:
    """The outcome that an exception of a handler means, with the stage's name where the context refused a value."""
    outcome = outcome_of_exception(error)
    if isinstance(error, ContextValueError):
        return structs.replace(outcome, failure_reason=f"stage {node_id}: {outcome.failure_reason}")
    return outcome


def with_note(outcome: Outcome, effect: Execute) -> Outcome:
    """The outcome with what must be said of an attempt that was cut off."""
    if not effect.note:
        return outcome
    return structs.replace(outcome, notes=f"{outcome.notes}; {effect.note}".removeprefix("; "))


def without_note(outcome: Outcome, effect: Execute) -> Outcome:
    """The outcome as it would be in a run in which nothing was cut off."""
    if not effect.note:
        return outcome
    return structs.replace(outcome, notes=outcome.notes.removesuffix(effect.note).removesuffix("; "))


def rewrite_status(files: StageFiles, effect: Execute, outcome: Outcome, duration: float) -> None:
    """Write the status of an attempt anew that has ended: another decision was made about it."""
    write_status(files, StatusText(outcome, effect.started.visit, effect.started.attempt, duration))


def write_status(files: StageFiles, text: StatusText) -> None:
    """Write the status of an attempt, in place of one that may be there."""
    if not files.create_deferred(STATUS_FILE, text):
        files.write_text(STATUS_FILE, text())


def _without_secrets(files: StageFiles, text: str) -> str:
    """The status text of an agent without its secrets; the file is rewritten where it had some."""
    clean = redacted_status(text)
    if clean != text:
        files.write_text(STATUS_FILE, clean)
    return clean


def _with_usage(outcome: Outcome, returned: Any) -> Outcome:
    """A status file says how it went; what it cost the backend knows better than the agent does."""
    if not isinstance(returned, Outcome):
        return outcome
    usage = outcome.usage if returned.usage is None else returned.usage
    updates = {**returned.context_updates, **outcome.context_updates}
    return structs.replace(outcome, context_updates=updates, usage=usage)
