"""Runs one attempt of a stage: scope, handler, time limit, and whose word counts (ruling 27)."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import msgspec
from msgspec import structs
from msgspec.structs import replace

from attractor_nb.calling import awaitable, call
from attractor_nb.context import AttemptContext, check_values
from attractor_nb.decisions.commit_messages import stage_message
from attractor_nb.decisions.effects import Asked, Execute, RecordStatus, RunEnd, StageResult
from attractor_nb.decisions.outcome_checks import COST_KEY, checked_outcome, with_declared_cost
from attractor_nb.decisions.retries import outcome_of_exception
from attractor_nb.engine.attempt_spending import Spending
from attractor_nb.engine.branch_walks import FanOut
from attractor_nb.engine.conversations import StoredConversation, keep_carried
from attractor_nb.engine.time_limits import CANCEL_GRACE_SECONDS, RunningTime, TimeIsOver, race
from attractor_nb.engine.tracebacks import keep_traceback
from attractor_nb.engine.walking import RunStops
from attractor_nb.errors import (
    CassetteMiss,
    ContextValueError,
    RunLocked,
    StatusFileError,
    StorageError,
    TerminalError,
    WorkerLost,
)
from attractor_nb.model.calls.cached import CachedStage
from attractor_nb.model.outcome import Outcome, StageStatus, usage_problem
from attractor_nb.model.redacted import redacted_outcome
from attractor_nb.redaction import redacted
from attractor_nb.stage import StageFiles, StageScope, enter_stage
from attractor_nb.storage.stages.status_file import StatusText, read_status_file, redacted_status

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from attractor_nb.context import Context
    from attractor_nb.decisions.planning.plan import PlannedNode
    from attractor_nb.engine.run_setup import RunSetup
    from attractor_nb.engine.walking import Keeper
    from attractor_nb.model.events import Event
    from attractor_nb.model.question import Question
    from attractor_nb.protocols import Handler, RunStore
    from attractor_nb.stage import Conversation, Workplace

STATUS_FILE = "status.json"
REJECTED_STATUS_FILE = "status.rejected.json"
"""Where a status.json that does not keep its contract is kept (ruling 27)."""
CHANGES_FILE = "changes.diff"
"""What a stage changed in the run's worktree (ruling 41)."""
AUTO_STATUS_NOTES = "auto-status: handler completed without writing status"


class _Way(NamedTuple):
    """How a handler is called, found out once.

    Attributes:
        execute: Calls it, whatever kind of function it is.
        keeps_own_time: It ends by itself at the node's timeout, and knows better how: a tool, a gate.
        reserves_requests: What it asks enters ``StageScope.paying`` around each of its requests.
    """

    execute: Callable[..., Awaitable[Any]]
    keeps_own_time: bool
    reserves_requests: bool


class Attempts(msgspec.Struct):
    """Runs attempts: those of a run directory, or of a branch of it.

    Attributes:
        setup: What the run is made of.
        keeper: Keeps what branches come to.
        store: The run directory.
        context: The context of the run, or of the branch.
        time: How long the run has gone on, and may.
        branch: Path of the branch whose attempts these are, or empty.
        task: The task that runs them; the walk says it, for finding it is a call of the system.
    """

    setup: RunSetup
    keeper: Keeper
    store: RunStore
    context: Context
    time: RunningTime
    branch: str = ""
    task: asyncio.Task[Any] | None = None
    _ways: dict[int, _Way] = {}
    """By handler."""

    async def run(self, effect: Execute) -> StageResult:
        """Run the attempt; whatever happens inside the handler is an outcome.

        Raises:
            StorageError: The run directory cannot be written.
            asyncio.CancelledError: The run itself is being stopped.
        """
        setup = self.setup
        announce = self.announce if self.branch else setup.stream.announce
        spending = Spending(announce, effect.planned.id, setup.funds)
        if setup.funds is None:
            return await self._run(effect, spending)
        try:
            result = await self._run(effect, spending)
            if not (result.is_cut_off or result.lost or result.is_cached):
                spending.settle(result.outcome)
            return result
        finally:
            spending.close()

    async def _run(self, effect: Execute, spending: Spending) -> StageResult:
        """Run it, with the files, the scope and the context that it has while it goes on."""
        setup, planned = self.setup, effect.planned
        began = setup.clock.monotonic()
        scope = self._begin(effect, spending)
        files, conversation = scope.files, scope.conversation
        context, look = AttemptContext(self.context), None
        try:
            if setup.cache is not None:
                handler = setup.handlers[planned.id]
                look = await setup.cache.look(planned, handler, scope, context, setup.plan.graph)
            if look is not None and look.entry is not None and setup.cache is not None:
                returned = setup.cache.restore(look, scope, context)
            else:
                returned = await self._call(planned, context, spending, scope)
        finally:
            context.close()
            self._end(scope, conversation)
        duration = setup.clock.monotonic() - began
        if returned is _CUT_OFF:
            reason = f"{planned.id} was cut off"
            return StageResult(Outcome.fail(reason), duration, self.time.at_end(), is_cut_off=True)
        if isinstance(returned, WorkerLost):
            lost = returned.message
            return StageResult(Outcome.fail(lost), duration, self.time.elapsed_seconds, lost=lost)
        is_saved = isinstance(conversation, StoredConversation) and conversation.is_saved
        if isinstance(returned, CachedStage):
            outcome = _with_note(returned.outcome, effect)
            rewrite_status(files, effect, outcome, duration)
            elapsed, saved = self.time.elapsed_seconds, returned.usage
            return StageResult(outcome, duration, elapsed, is_saved=is_saved, is_cached=True, saved=saved, files=files)
        outcome = self._settled(effect, files, returned, duration, spending)
        if look is not None and setup.cache is not None:
            setup.cache.keep(look, _without_note(outcome, effect), context, setup.clock.time())
        elapsed, place = self.time.elapsed_seconds, setup.workplace
        is_kept = planned.handler_type not in _CHANGES_NOTHING and place is not None and place.is_kept
        return StageResult(
            outcome,
            duration,
            elapsed,
            is_saved=is_saved,
            over_budget=spending.over,
            files=files,
            commit=await self._kept(place, effect, outcome, files) if is_kept and place is not None else "",
        )

    def _begin(self, effect: Execute, spending: Spending) -> StageScope:
        """Write down that the attempt begins, and make its scope the current one.

        Raises:
            StorageError: The run directory cannot be written, or what its thread has said cannot be read.
        """
        setup, planned, started = self.setup, effect.planned, effect.started
        files = self.store.open_stage(planned.id, started.visit, started.attempt, self.branch)
        is_synced = planned.on_interrupted != "rerun"
        self.announce(started, is_synced=is_synced)
        if not is_synced:  # such a record has not looked, and what the handler does cannot be taken back
            self.store.check_owner()
        conversation = None
        if started.thread:  # under ``full`` fidelity
            conversation = StoredConversation(self.store, effect, self.branch, self.announce)
        if conversation is not None or effect.preamble:
            keep_carried(files, effect, conversation)
        scope = StageScope(
            run_id=setup.run_id,
            node_id=planned.id,
            visit=started.visit,
            attempt=started.attempt,
            logs_root=self.store.logs_root,
            files=files,
            announce=spending.announce,
            fidelity=started.fidelity,
            thread=started.thread,
            preamble=effect.preamble,
            index=started.index,
            branch=self.branch,
            branches=FanOut(self.keeper, self, planned, started) if planned.is_fan_out else None,
            children=setup.children,
            instructions=() if setup.instructions is None else setup.instructions.waiting,
            complaint=effect.complaint,
            conversation=conversation,
            workplace=setup.workplace,
            read_file=self._read_file,
            check_spending=spending.check,
            is_bounded=setup.funds is not None,
            paying=spending.paying,
            lend=spending.lend,
            failed=partial(self._keep_failure, planned.id, files),
        )
        enter_stage(scope)
        if setup.instructions is not None:
            setup.instructions.enter(scope)
        return scope

    def _end(self, scope: StageScope, conversation: Conversation | None) -> None:
        """The attempt is over: whoever goes on in it reaches nothing any more."""
        if self.setup.instructions is not None:
            self.setup.instructions.leave(scope)
        if isinstance(conversation, StoredConversation):
            conversation.close()
        if scope.streams:
            scope.end_streams()
        scope.files, scope.announce, scope.failed = _CLOSED_FILES, _ignore, _ignore

    async def _kept(self, place: Workplace, effect: Execute, outcome: Outcome, files: StageFiles) -> str:
        """Keep what the attempt changed in the run's worktree, before the log says that it ended; the commit.

        One that is killed here is cut off: a resume goes back to the commit of the stage before.

        Raises:
            StorageError: It cannot be kept.
        """
        notes = outcome.failure_reason if outcome.status.is_failure else outcome.notes
        message = stage_message(self.setup.run_id, effect.started, self.branch, outcome.status, notes)
        work = asyncio.ensure_future(asyncio.to_thread(place.keep, message))
        try:
            kept = await asyncio.shield(work)
        except asyncio.CancelledError:
            await asyncio.wait([work])  # nobody may find the worktree in the middle of it
            raise
        if kept.changes:
            files.write_text(CHANGES_FILE, redacted(kept.changes))
        return kept.commit

    def _read_file(self, node_id: str, name: str) -> str | None:
        """What a stage has left: in a branch the one of the branch goes before the run's of that name."""
        found = self.store.read_stage_file(node_id, name, self.branch)
        return self.store.read_stage_file(node_id, name) if found is None and self.branch else found

    def announce(self, event: Event, *, is_synced: bool = False) -> None:
        """Announce an event of where these attempts are."""
        event.branch = self.branch
        self.setup.stream.announce(event, is_synced=is_synced)

    def announce_in(self, branch: str, event: Event, *, is_synced: bool = False) -> None:
        """Announce an event of a branch."""
        event.branch = branch
        self.setup.stream.announce(event, is_synced=is_synced)

    async def wait(self, seconds: float) -> float:
        """Wait between attempts, for as long as the run may go on; the running time then."""
        left = self.time.left_seconds
        if left is not None and left <= seconds:
            await self.time.sleep(left)
            return self.time.at_end()
        await self.setup.clock.sleep(seconds)
        return self.time.elapsed_seconds

    async def ask(self, question: Question) -> Asked:
        """Put a question of the engine's own, for as long as the run may go on.

        Raises:
            StorageError: The run directory cannot be written.
            asyncio.CancelledError: The run itself is being stopped.
        """
        if self.branch:
            question = replace(question, id=f"{self.branch}/{question.id}", branch=self.branch)
        if self.setup.gates is None:
            return Asked(None, self.time.elapsed_seconds, "there is no interviewer")
        try:
            answer = await self.time.within(call(self.setup.gates.ask, question))
        except TimeIsOver:
            return Asked(None, self.time.at_end())
        except Exception as error:  # whatever an interviewer raises is no answer, and fails no stage
            if self._is_of_this_run(error):
                raise
            return Asked(None, self.time.elapsed_seconds, outcome_of_exception(error).failure_reason)
        return Asked(answer, self.time.elapsed_seconds)

    def record(self, effect: RecordStatus) -> None:
        """Write the status of an attempt that was decided about; its files go to its visit's own place."""
        files = self.store.open_stage(effect.planned.id, effect.visit, effect.attempt, self.branch)
        _write_status(files, StatusText(effect.outcome, effect.visit, effect.attempt))

    async def _call(self, planned: PlannedNode, context: Context, spending: Spending, scope: StageScope) -> Any:
        """Call the handler, within the node's time if it has one."""
        task = self.task
        before = task.cancelling() if task else 0
        setup = self.setup
        handler = setup.handlers[planned.id]
        way = self._ways.get(id(handler))
        if way is None:
            way = self._ways[id(handler)] = _way_of(handler)
        try:
            given = (planned.node, context, setup.plan.graph, self.store.logs_root)
            if setup.funds is None or not planned.asks_model or way.reserves_requests:
                work = way.execute(*given)
            else:
                work = spending.around(partial(way.execute, *given), planned.node.llm_model)
            own = None if way.keeps_own_time else planned.timeout_seconds
            left = None if self.time.bound is None else self.time.left_seconds
            if own is None and left is None:
                returned = await work
            else:
                is_slow = way.keeps_own_time or planned.is_fan_out  # it may have commands to end
                grace = OWN_GRACE_SECONDS if is_slow else CANCEL_GRACE_SECONDS
                returned = await self._in_time(planned, work, own, left, grace)
        except CassetteMiss as miss:  # no edge leads on from it: a replay that missed is no success
            reason = outcome_of_exception(miss).failure_reason
            raise RunStops(RunEnd(is_success=False, reason=reason, is_resumable=True)) from miss
        except BaseException as error:  # whatever a handler raises fails its stage (spec 4.12)
            if isinstance(error, RunStops) or _is_from_keyboard(error) or self._is_of_this_run(error):
                raise
            returned = error if isinstance(error, WorkerLost) else _Raised(error)
        if isinstance(returned, _Raised):
            scope.failed(returned.error)
            returned = _failed(returned.error, planned.id)
        if task is not None and task.cancelling() > before:
            raise asyncio.CancelledError  # also when the handler kept it to itself
        return returned

    def _keep_failure(self, node_id: str, files: StageFiles, error: BaseException) -> None:
        """Keep where the user's Python failed, for people."""
        if not isinstance(error, asyncio.CancelledError) and keep_traceback(files, error):
            self.setup.failures.keep(node_id, error)

    def _is_of_this_run(self, error: BaseException) -> bool:
        """Whether the run's own directory refused: then the run stops and no stage is recorded as failed.

        That of a run whose child this is counts, too: a gate of a child is recorded in both.

        Raises:
            RunLocked: The run was taken over. A handler can meet that of another run, too, which is its own.
        """
        stores = (self.store, *self.setup.above())
        if isinstance(error, RunLocked):
            for store in stores:
                store.check_owner()
        return isinstance(error, StorageError) and any(
            Path(error.path).is_relative_to(store.logs_root) for store in stores
        )

    async def _in_time(
        self, planned: PlannedNode, work: Awaitable[Any], own: float | None, left: float | None, grace: float
    ) -> Any:
        """Await a handler for its node's own time, and no longer than the run may go on; one is given."""
        is_own = own is not None and (left is None or own < left)
        seconds = own if is_own and own is not None else left or 0.0
        try:
            return await race(self.time, _contained(work), seconds, grace_seconds=grace)
        except TimeIsOver:
            if is_own:
                return Outcome.retry(f"timeout: {planned.id} took more than {planned.node.timeout}")
            return _CUT_OFF

    def _settled(
        self, effect: Execute, files: StageFiles, returned: Any, duration: float, spending: Spending
    ) -> Outcome:
        """Whose word counts: this attempt's file, the returned outcome, auto_status, nobody's (ruling 27).

        Its status.json is then there. The handler's word is written first, into a file that must be new:
        only when there is one already has somebody else written it, and it is looked at.
        """
        planned = effect.planned
        outcome = _finished(_declared(planned, returned), effect)
        if spending.usage is not None:
            outcome = spending.counted(outcome)
        started = effect.started
        if files.create_deferred(STATUS_FILE, StatusText(outcome, started.visit, started.attempt, duration)):
            return outcome
        outcome, is_file = self._arbitrate(planned, files, returned)
        outcome = spending.counted(_finished(outcome, effect, is_file=is_file))
        if not is_file:
            rewrite_status(files, effect, outcome, duration)
        return outcome

    def _arbitrate(self, planned: PlannedNode, files: StageFiles, returned: Any) -> tuple[Outcome, bool]:
        """What counts beside a status.json: the file, unless it or what the handler returned is refused.

        Returns:
            The outcome, and whether a valid file said it.
        """
        spent = returned.usage if isinstance(returned, Outcome) else None
        is_counted = not usage_problem(spent)
        try:
            text = files.read_text(STATUS_FILE)
            if text is not None and is_counted:
                targets = {edge.edge.target for edge in planned.edges}
                text = _without_secrets(files, text)
                if isinstance(returned, Outcome):
                    returned = checked_outcome(returned, planned.id)
                return _with_usage(read_status_file(text, targets=targets), returned), True
            if text is not None:  # the file says success, and what it cost is nonsense: no success
                files.rename(STATUS_FILE, REJECTED_STATUS_FILE)
        except StatusFileError as error:
            files.rename(STATUS_FILE, REJECTED_STATUS_FILE)
            refused = Outcome.fail(f"{planned.id}: {error.message}")
            return (structs.replace(refused, usage=spent) if is_counted else refused), False
        return _declared(planned, returned), False


_CHANGES_NOTHING: Final = frozenset({"start", "exit", "conditional"})
"""Handler types that cannot change a file."""
OWN_GRACE_SECONDS = 5.0
"""How long a handler that keeps its own time may take to end what it started, when the run's is over."""
_CUT_OFF: Final = object()
"""What an attempt came to that the end of the run's time cut off."""


def _failed(error: BaseException, node_id: str) -> Outcome:
    """What an exception of a handler means, with the stage's name where the context refused a value."""
    outcome = outcome_of_exception(error)
    if isinstance(error, ContextValueError):
        return structs.replace(outcome, failure_reason=f"stage {node_id}: {outcome.failure_reason}")
    return outcome


def _declared(planned: PlannedNode, returned: Any) -> Outcome:
    """What the handler's own word comes to, for a stage without a status.json that counts."""
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
    return _with_note(outcome, effect) if effect.note else outcome


def _with_note(outcome: Outcome, effect: Execute) -> Outcome:
    """The outcome with what must be said of an attempt that was cut off."""
    if not effect.note:
        return outcome
    return structs.replace(outcome, notes=f"{outcome.notes}; {effect.note}".removeprefix("; "))


def _without_note(outcome: Outcome, effect: Execute) -> Outcome:
    """The outcome as it would be in a run in which nothing was cut off."""
    if not effect.note:
        return outcome
    return structs.replace(outcome, notes=outcome.notes.removesuffix(effect.note).removesuffix("; "))


def rewrite_status(files: StageFiles, effect: Execute, outcome: Outcome, duration: float) -> None:
    """Write the status of an attempt anew that has ended: somebody decided otherwise about it."""
    _write_status(files, StatusText(outcome, effect.started.visit, effect.started.attempt, duration))


def _write_status(files: StageFiles, text: StatusText) -> None:
    if not files.create_deferred(STATUS_FILE, text):
        files.write_text(STATUS_FILE, text())


def _without_secrets(files: StageFiles, text: str) -> str:
    """What an agent wrote stays as evidence, and the secrets in it do not."""
    clean = redacted_status(text)
    if clean != text:
        files.write_text(STATUS_FILE, clean)
    return clean


async def _contained(call: Awaitable[Any]) -> Any:
    """A call in a task of its own, from which an exception that ends programs would end the loop."""
    try:
        return await call
    except (Exception, asyncio.CancelledError):
        raise
    except BaseException as error:  # SystemExit and the like: the loop must go on
        if _is_from_keyboard(error):
            raise
        return _Raised(error)


class _Raised(msgspec.Struct, frozen=True):
    """What a handler raised instead of returning."""

    error: BaseException


def _is_from_keyboard(error: BaseException) -> bool:
    """Whether somebody pressed Ctrl-C. Python says so in the main thread; elsewhere a handler did."""
    return isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()


class _ClosedFiles:
    """What is left of a stage's files for a handler that goes on after its attempt was given up.

    The directory is the next attempt's by then: a late status.json would be taken for its own.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python's own questions, as those of a doctest
            raise AttributeError(name)
        raise TerminalError("the attempt is over, and its files are closed", hint="end when the call ends")


_CLOSED_FILES: Final = cast("StageFiles", _ClosedFiles())


def _ignore(_said: object) -> None:
    """What a handler says after its attempt is heard by nobody."""


def _way_of(handler: Handler) -> _Way:
    keeps_own_time = bool(getattr(handler, "keeps_own_time", False))
    return _Way(awaitable(handler.execute), keeps_own_time, bool(getattr(handler, "reserves_requests", False)))


def _with_usage(outcome: Outcome, returned: Any) -> Outcome:
    """A status file says how it went; what it cost the backend knows better than the agent does."""
    if not isinstance(returned, Outcome):
        return outcome
    usage = outcome.usage if returned.usage is None else returned.usage
    updates = {**returned.context_updates, **outcome.context_updates}
    return structs.replace(outcome, context_updates=updates, usage=usage)
