"""Runs one attempt of a stage: scope, handler, time limit, and whose word counts (ruling 27)."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from attractor_nb.context import AttemptContext, Context
from attractor_nb.decisions.carried import CARRIED_FILE, carried_page
from attractor_nb.decisions.commits import Asked, Execute, RecordStatus, RunEnd, StageResult
from attractor_nb.decisions.fidelity import entry_name
from attractor_nb.decisions.planning.plan import eligible_graph
from attractor_nb.decisions.retries import outcome_of_exception
from attractor_nb.engine.attempt_spending import (
    Funds,
    Returned,
    Spending,
    node_funds,
    outcome_of_handler_error,
    outcome_that_counts,
    rewrite_status,
    with_note,
    without_note,
    write_status,
)
from attractor_nb.engine.handler_calls import (
    CLOSED_FILES,
    OWN_GRACE_SECONDS,
    HandlerCall,
    Late,
    Raised,
    contained,
    handler_call,
    ignore,
    keep_traceback,
)
from attractor_nb.engine.time_limits import CANCEL_GRACE_SECONDS, RunningTime, TimeIsOver, race
from attractor_nb.engine.walking import FanOut, RunSetup, RunStops, StageCommitter
from attractor_nb.errors import BudgetReached, CassetteMiss, RunLocked, StorageError, TerminalError, WorkerLost
from attractor_nb.interrupts import is_from_keyboard
from attractor_nb.maybe_async import call
from attractor_nb.model.calls.call_content import CachedStage
from attractor_nb.model.events import Event, RunWarning, StageStarted
from attractor_nb.model.outcome import Outcome, Usage
from attractor_nb.model.vocabulary.shapes import MANAGER_TYPE
from attractor_nb.model.vocabulary.value_forms import FOR_EACH
from attractor_nb.redaction import redacted
from attractor_nb.stage import Conversation, StageFiles, StageScope, Workplace, enter_stage
from attractor_nb.storage.stages.status_file import StatusText

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from attractor_nb.decisions.bounds import RunBounds
    from attractor_nb.decisions.planning.plan import PlannedNode
    from attractor_nb.model.question import Question
    from attractor_nb.protocols import RunStore


class Attempts(msgspec.Struct):
    """Runs attempts: those of a run directory, or of a branch of it."""

    setup: RunSetup  #: The setup of the run.
    keeper: StageCommitter  #: Commits the results of branches.
    store: RunStore  #: The run directory.
    context: Context  #: The context of the run, or of the branch.
    time: RunningTime  #: Running time of the run, and its limit.
    branch: str = ""  #: Path of the branch whose attempts these are, or empty.
    #: The task that runs them; the walk says it, for finding it is a call of the system.
    task: asyncio.Task[Any] | None = None
    _calls: dict[int, HandlerCall] = {}
    """By handler."""

    async def run(self, effect: Execute) -> StageResult:
        """Run the attempt; whatever happens inside the handler is an outcome."""
        setup = self.setup
        announce = self.announce if self.branch else setup.stream.announce
        planned, funds, own = effect.planned, setup.funds, None
        if planned.bounds is not None:
            funds = self._funds_of(planned.id, planned.bounds)
            own = funds.account
        spending = Spending(announce, planned.id, funds, own=own)
        if funds is None:
            return await self._run(effect, spending)
        try:
            result = await self._run(effect, spending)
            if not (result.is_cut_off or result.lost or result.is_cached):
                spending.settle(result.outcome)
            return result
        finally:
            spending.close()

    def _funds_of(self, node_id: str, bounds: RunBounds) -> Funds:
        """The funds of a node with bounds of its own: those that its attempts in other branches have."""
        setup, spent = self.setup, self.keeper.state.usage_by_node.get(node_id, Usage())
        if node_id not in setup.node_funds:
            setup.node_funds[node_id] = node_funds(node_id, bounds, spent, setup.funds)
        return setup.node_funds[node_id]

    async def _run(self, effect: Execute, spending: Spending) -> StageResult:
        """Run it, with the files, the scope and the context that it has while it is active."""
        setup, planned = self.setup, effect.planned
        began = setup.clock.monotonic()
        scope = self._begin(effect, spending)
        files, conversation = scope.files, scope.conversation
        context, look = AttemptContext(self.context), None
        try:
            if setup.cache is not None:
                handler = setup.handlers[planned.id]
                graph = eligible_graph(setup.plan, planned)
                look = await setup.cache.look(planned, handler, scope, context, graph)
            if look is not None and look.entry is not None and setup.cache is not None:
                returned = Returned(setup.cache.restore(look, scope, context))
            else:
                returned = await self._call(planned, context, spending, scope)
        finally:
            context.close()
            self._end(scope, conversation)
        duration = setup.clock.monotonic() - began
        if returned.value is _CUT_OFF:
            reason = f"{planned.id} was cut off"
            return StageResult(Outcome.fail(reason), duration, self.time.at_end(), is_cut_off=True)
        if isinstance(returned.value, WorkerLost):
            lost = returned.value.message
            return StageResult(Outcome.fail(lost), duration, self.time.elapsed_seconds, lost=lost)
        is_saved = isinstance(conversation, StoredConversation) and conversation.is_saved
        if isinstance(returned.value, CachedStage):
            outcome = with_note(returned.value.outcome, effect)
            rewrite_status(files, effect, outcome, duration)
            elapsed, saved = self.time.elapsed_seconds, returned.value.usage
            return StageResult(outcome, duration, elapsed, is_saved=is_saved, is_cached=True, saved=saved, files=files)
        outcome, warning = outcome_that_counts(effect, files, returned, duration, spending)
        if warning:
            self.announce(RunWarning(message=warning, node=planned.id))
        if look is not None and setup.cache is not None and not scope.told:  # its key knows the prompt alone
            setup.cache.keep(look, without_note(outcome, effect), context, setup.clock.time())
        elapsed, place, commit = self.time.elapsed_seconds, setup.workplace, ""
        if place is not None and place.is_kept:
            commit = await keep_changes(place, effect, scope, files, outcome, self.announce)
        return StageResult(
            outcome, duration, elapsed, is_saved=is_saved, over_budget=spending.over, files=files, commit=commit
        )

    def _begin(self, effect: Execute, spending: Spending) -> StageScope:
        """Write down that the attempt begins, and make its scope the current one."""
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
        inbox = setup.instructions
        instructions, messages = inbox.texts_for(planned.id) if inbox.is_used else ((), ())
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
            has_item=FOR_EACH in setup.plan.graph.attrs,  # which the graph of an item alone has
            spent_edges=tuple(edge.edge for edge in planned.spent) if planned.spent else (),
            children=setup.children,
            instructions=instructions,
            messages=messages,
            inbox=inbox,
            complaint=effect.complaint,
            conversation=conversation,
            workplace=setup.workplace,
            read_file=self._read_file,
            check_spending=spending.check,
            is_bounded=spending.is_bounded,
            paying=spending.paying,
            for_child=spending.for_child,
            failed=partial(self._keep_failure, planned.id, files),
        )
        enter_stage(scope)
        inbox.under_way[id(scope)] = scope
        return scope

    def _end(self, scope: StageScope, conversation: Conversation | None) -> None:
        """The attempt is over: code that still runs in it has no effect."""
        self.setup.instructions.under_way.pop(id(scope), None)
        if isinstance(conversation, StoredConversation):
            conversation.close()
        if scope.streams:
            scope.end_streams()
        scope.files, scope.announce, scope.failed = CLOSED_FILES, ignore, ignore

    def _read_file(self, node_id: str, name: str) -> str | None:
        """A file of a stage; within a branch, the branch's file takes precedence over the run's."""
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
        """Wait between attempts, for as long as the run may continue; the running time then."""
        left = self.time.left_seconds
        if left is not None and left <= seconds:
            await self.time.sleep(left)
            return self.time.at_end()
        await self.setup.clock.sleep(seconds)
        return self.time.elapsed_seconds

    async def ask(self, question: Question) -> Asked:
        """Put a question of the engine's own, for as long as the run may continue."""
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
        write_status(files, StatusText(effect.outcome, effect.visit, effect.attempt))

    async def _call(self, planned: PlannedNode, context: Context, spending: Spending, scope: StageScope) -> Returned:
        """Call the handler, within the node's time if it has one."""
        task = self.task
        before = task.cancelling() if task else 0
        setup = self.setup
        handler = setup.handlers[planned.id]
        known = self._calls.get(id(handler))
        if known is None:
            known = self._calls[id(handler)] = handler_call(handler)
        try:
            graph = eligible_graph(setup.plan, planned) if planned.spent else setup.plan.graph
            given = (planned.node, context, graph, self.store.logs_root)
            execute = partial(known.execute, *given)
            work = _paid(execute, planned, known, spending) if spending.is_bounded else execute()
            own = None if known.keeps_own_time else planned.timeout_seconds
            left = None if self.time.bound is None else self.time.left_seconds
            if own is None and left is None:
                returned = await work
            else:
                # It may have commands to end, and to say what they have consumed.
                is_slow = known.keeps_own_time or planned.is_fan_out or planned.asks_model
                grace = OWN_GRACE_SECONDS if is_slow else CANCEL_GRACE_SECONDS
                returned = await self._in_time(planned, work, own, left, grace)
        except CassetteMiss as miss:  # no edge leads on from it: a replay that missed is no success
            reason = outcome_of_exception(miss).failure_reason
            raise RunStops(RunEnd(is_success=False, reason=reason, is_resumable=True)) from miss
        except BaseException as error:  # whatever a handler raises fails its stage (spec 4.12)
            if isinstance(error, RunStops) or is_from_keyboard(error) or self._is_of_this_run(error):
                raise
            returned = error if isinstance(error, WorkerLost) else Raised(error)
        is_observed = known.observes_failures
        if isinstance(returned, Raised):
            scope.failed(returned.error)
            returned, is_observed = _outcome_of(returned.error, planned, spending), True
        elif isinstance(returned, Late):
            returned, is_observed = returned.outcome, True
        if task is not None and task.cancelling() > before:
            raise asyncio.CancelledError  # also when the handler kept it to itself
        may_write = known.writes_status
        writes_status = may_write(planned.node) if callable(may_write) else may_write
        return Returned(returned, is_observed, writes_status, setup.plan.nodes)

    def _keep_failure(self, node_id: str, files: StageFiles, error: BaseException) -> None:
        """Keep where the user's Python failed, for users."""
        if not isinstance(error, asyncio.CancelledError) and keep_traceback(files, error):
            self.setup.failures.keep(node_id, error)

    def _is_of_this_run(self, error: BaseException) -> bool:
        """True if the run's own directory refused: then the run stops and no stage is recorded as failed.

        That of a run whose child this is counts, too: a gate of a child is recorded in both.
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
        """Await a handler for its node's own time, and no longer than the run may continue; one is given."""
        is_own = own is not None and (left is None or own < left)
        seconds = own if is_own and own is not None else left or 0.0
        try:
            return await race(self.time, contained(work), seconds, grace_seconds=grace)
        except TimeIsOver:
            if is_own:
                return Late(Outcome.retry(f"timeout: {planned.id} took more than {planned.node.timeout}"))
            return _CUT_OFF


def _paid(
    execute: Callable[[], Awaitable[Any]], planned: PlannedNode, known: HandlerCall, spending: Spending
) -> Awaitable[Any]:
    """A handler's work where a bound on money or tokens holds."""
    if planned.bounds is not None:
        spending.check()
    if not planned.asks_model or known.reserves_requests:
        return execute()
    return spending.around(execute, planned.node.llm_model)


def _outcome_of(error: BaseException, planned: PlannedNode, spending: Spending) -> Outcome:
    """The outcome that an exception of a handler means; a bound of the node itself is a terminal failure."""
    if spending.over_own is not None and isinstance(error, BudgetReached):
        return Outcome.fail(spending.over_own.reason, is_terminal=True)
    return outcome_of_handler_error(error, planned.id)


_CUT_OFF: Final = object()
"""Outcome of an attempt that the end of the run's time cut off."""


# Keeps what a stage changed in the worktree of its run: as a commit, and as a file of the stage (ruling 41).

CHANGES_FILE = "changes.diff"
MAX_NAME: Final = 200
"""Characters of a stage's path in the message of its commit."""
MAX_NOTES: Final = 4_000
"""Characters of its notes there."""
_CHANGES_NOTHING: Final = frozenset({"start", "exit", "conditional"})
"""Handler types that cannot change a file."""


def stage_message(run_id: str, started: StageStarted, branch: str, status: str, notes: str) -> str:
    """The message of a stage's commit: one line, what the stage said, and which attempt of which run it is.

    Args:
        run_id: The run.
        started: The attempt.
        branch: Path of the branch that it is in, or empty.
        status: How it ended.
        notes: What it said of itself, or why it failed.

    >>> from attractor_nb.model.events import StageStarted
    >>> print(stage_message("r1", StageStarted(name="fix", index=3, visit=2), "", "success", "it passes"))
    fix: success
    <BLANKLINE>
    it passes
    <BLANKLINE>
    Attractor-Run: r1
    Attractor-Stage: fix, visit 2, attempt 1
    <BLANKLINE>
    """
    path = f"{branch}/{started.name}" if branch else started.name
    name = "".join(char if char.isprintable() else "_" for char in path)[:MAX_NAME]
    words = "".join(char for char in notes if char.isprintable() or char in "\n\t").strip()[:MAX_NOTES]
    body = f"{words}\n\n" if words else ""
    trailers = f"Attractor-Stage: {name}, visit {started.visit}, attempt {started.attempt}\n"
    return f"{name}: {status}\n\n{body}Attractor-Run: {run_id}\n{trailers}"


async def keep_changes(
    place: Workplace,
    effect: Execute,
    scope: StageScope,
    files: StageFiles,
    outcome: Outcome,
    announce: Callable[[RunWarning], object],
) -> str:
    """Keep what an attempt changed before the log says that it ended; the commit, or empty where it changes nothing.

    An attempt that is killed here is cut off: a resume goes back to the commit of the stage before. What was left
    out is announced.
    """
    if effect.planned.handler_type in _CHANGES_NOTHING:
        return ""
    notes = outcome.failure_reason if outcome.status.is_failure else outcome.notes
    message = stage_message(scope.run_id, effect.started, scope.branch, outcome.status, notes)
    work = asyncio.ensure_future(asyncio.to_thread(place.keep, message))
    try:
        kept = await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])  # the worktree must not be used in the middle of it
        raise
    for warning in kept.warnings:
        announce(RunWarning(message=warning, node=effect.planned.id))
    if kept.changes:
        files.write_text(CHANGES_FILE, redacted(kept.changes))
    return kept.commit


# The conversation of an attempt with ``full`` fidelity, in the run's store (``stage.Conversation``).


class StoredConversation:
    """The conversation of a thread, for one attempt: it reads the committed entry, and saves under its own name.

    Attributes:
        is_saved: The attempt saved its words.
    """

    def __init__(self, store: RunStore, effect: Execute, branch: str, announce: Callable[[Event], None]) -> None:
        """Take up the thread of an attempt.

        Args:
            store: The store of the run.
            effect: The attempt.
            branch: Path of the branch that it is in, or empty.
            announce: Announces warnings for users.
        """
        started = effect.started
        self._store = store
        self._thread = started.thread
        self._node_id = started.name
        self._before = effect.thread_entry
        self._own = entry_name(branch, started.name, started.visit, started.attempt)
        self._announce = announce
        self._is_closed = False
        self._is_loss_reported = False
        self.is_saved = False

    @property
    def thread(self) -> str:
        """The thread's key."""
        return self._thread

    def read(self) -> str:
        """The text that the thread's last committed stage saved, or this attempt since; empty at its beginning."""
        entry = self._own if self.is_saved else self._before
        if not entry:
            return ""
        text = self._store.read_thread(self._thread, entry)
        if text is None:
            self._report_loss(entry)
        return text or ""

    def save(self, text: str) -> None:
        """Keep the whole conversation, this attempt's part included."""
        if self._is_closed:
            raise TerminalError(
                f"the attempt of {self._node_id} is over: its words in thread {self._thread} are not kept",
                hint="save before the call ends",
            )
        self._store.save_thread(self._thread, self._own, text, after=self._before)
        self.is_saved = True

    def close(self) -> None:
        """The attempt is over: what comes late would change what is committed."""
        self._is_closed = True

    def _report_loss(self, entry: str) -> None:
        """Say that a file of the run directory is gone, or was lost with the power under ``fast``."""
        if self._is_loss_reported:
            return
        self._is_loss_reported = True
        message = f"thread {self._thread} starts again: its entry {entry} is not in the run directory"
        self._announce(RunWarning(message=message, node=self._node_id))


def keep_carried(files: StageFiles, effect: Execute, conversation: StoredConversation | None) -> None:
    """Keep beside a model stage's prompt what it is given of what came before; no file when that is nothing."""
    thread_text = "" if conversation is None else conversation.read()
    planned = effect.planned
    if thread_text or (effect.preamble and (planned.asks_model or planned.handler_type == MANAGER_TYPE)):
        files.create_deferred(CARRIED_FILE, partial(carried_page, effect, thread_text))
