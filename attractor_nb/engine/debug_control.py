"""A controller between the steps of a run: it pauses walks and applies changes while they are paused.

``walk`` asks it before each stage and after each outcome, and only while it ``is_active``: a run that nobody
debugs pays a look at a flag. Which breakpoint holds is decided in ``decisions/breakpoints.py``. Commands come
from any thread; what changes a run's state is done in the run's own loop. Each change is a record of the log
(``DebuggerChanged``), so each fold of the log has it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from attractor_nb.decisions.breakpoints import (
    Breakpoint,
    WalkMoment,
    first_to_stop,
    holding,
    lasting_outcome,
    moment_after,
    moment_before,
    outcome_before,
    stop_at,
)
from attractor_nb.decisions.carryover import carry_over
from attractor_nb.decisions.log_folds import Pin, overrides_of, what_a_resume_loses
from attractor_nb.engine.attempt_spending import rewrite_status
from attractor_nb.errors import RunError
from attractor_nb.maybe_async import call_in_loop
from attractor_nb.model.branch import enclosing
from attractor_nb.model.events import DebuggerChanged, DebuggerMoved, DebuggerStopped, Event
from attractor_nb.model.redacted import redacted_outcome
from attractor_nb.redaction import redacted
from attractor_nb.stage import current_stage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping, Sequence
    from pathlib import Path

    from attractor_nb.context import Context
    from attractor_nb.decisions.commits import Execute, StageResult
    from attractor_nb.decisions.planning.plan import Plan, PlannedNode
    from attractor_nb.decisions.run_state import RunState
    from attractor_nb.engine.attempts import Attempts
    from attractor_nb.engine.event_stream import EventStream
    from attractor_nb.engine.time_limits import RunningTime
    from attractor_nb.model.graph import Graph, Node
    from attractor_nb.model.outcome import Outcome
    from attractor_nb.model.stop import Stop
    from attractor_nb.protocols import Handler


class Debugging:
    """Stops one run, and changes it.

    Attributes:
        is_active: Whether walks must ask.
        session: What it shares with the controllers of child runs.
        path: Nodes whose child runs lead to this run: ``review>``; empty for the outermost.
        overrides: Prompts, pins and mocks in force.
        time: The running time of the run, once it has begun.
    """

    def __init__(
        self,
        plan: Plan,
        stream: EventStream,
        handlers: MutableMapping[str, Handler],
        *,
        recorded: Sequence[Event] = (),
        breakpoints: Sequence[Breakpoint] = (),
        pins: Mapping[str, Pin] | None = None,
        above: tuple[Debugging, str] | None = None,
    ) -> None:
        """Make the controller of a run.

        Args:
            plan: What runs.
            stream: Where its changes are recorded.
            handlers: The handler of each node; pins and mocks take their places.
            recorded: For a resume: the events of the log that count.
            breakpoints: Those that are given with the run.
            pins: Those that are given with it.
            above: The controller of the run whose child this is, and the node there.
        """
        self.is_active = False
        self._above = None if above is None else above[0]
        self.path = "" if above is None else f"{above[0].path}{above[1]}>"
        self.session: DebugSession = DebugSession(plan.graph) if above is None else above[0].session
        self.overrides = overrides_of(recorded)
        self.time: RunningTime | None = None
        self._plan = plan
        self._stream = stream
        self._handlers = handlers
        self._executing: dict[str, Handler] = {}
        self._own: tuple[Breakpoint, ...] = ()
        self._held: dict[str, frozenset[str]] = {}
        self._visits: dict[str, tuple[str, int]] = {}
        self._waiting: list[Event] = list(what_a_resume_loses(recorded, has_breakpoints=bool(breakpoints)))
        self._has_begun = False
        self._is_restarting = False
        self.overrides.mocks.clear()
        for node, pin in (pins or {}).items():
            event = _pinning(node, pin)
            self.overrides.apply(event)
            self._waiting.append(event)
        for pinned, pin in self.overrides.pins.items():
            self._put(pinned, PinnedHandler(pin))
        with self.session.lock:
            self.session.members.append(self)
            self.session.breakpoints.update({entry.text: entry for entry in breakpoints})
            self.session.refresh()

    # -- what the runner says ------------------------------------------------------------------------

    def begin(self) -> None:
        """The log of a directory has its first record: changes can be recorded there from now on."""
        with self.session.lock:
            waiting, self._waiting, self._has_begun = self._waiting, [], True
            if self._is_restarting:  # what holds, holds in the new directory, too
                waiting = [*self.overrides.to_events(), *waiting]
                self._is_restarting = False
            for event in waiting:
                self._stream.announce(event)

    def restart(self) -> None:
        """The run moves to another directory: changes wait until its log has begun."""
        with self.session.lock:
            self._has_begun, self._is_restarting = False, True

    def end(self) -> None:
        """The run has ended: nothing can be changed any more."""
        with self.session.lock:
            self.session.leave(self)

    def refresh(self) -> None:
        """Look again what there is to stop for. With the session's lock held."""
        session = self.session
        self._own = tuple(entry for entry in session.breakpoints.values() if entry.path == self.path)
        self.is_active = bool(self._own or self.overrides.prompts or session.is_pausing or session.steps)

    # -- what walks ask ------------------------------------------------------------------------------

    async def before(self, state: RunState, effect: Execute, attempts: Attempts) -> Execute:
        """Pause before a visit begins, if something asks for it; the effect with what was changed."""
        started, branch = effect.started, attempts.branch
        is_first = branch != "" and not state.completed
        if self._visits.get(branch) != (started.name, started.visit):
            self._visits[branch] = started.name, started.visit
            moment = moment_before(self._plan, state, started, attempts.context.get)
            if why := self._reason(branch, moment, is_first=is_first):
                stop = self._stop(moment, why, branch, outcome_before(state))
                paused = PausedWalk(stop, self, state, attempts.context, effect.planned.is_fan_out)
                await self._hold(paused)
                if paused.is_changed:
                    effect = self._carried_again(state, effect, attempts)
        prompt = self.overrides.prompts.get(started.name)
        return effect if prompt is None else replace(effect, planned=_with_prompt(effect.planned, prompt))

    async def after(self, state: RunState, effect: Execute, attempts: Attempts, result: StageResult) -> StageResult:
        """Pause after a stage that is not tried again, before an edge is chosen; the result as it counts."""
        outcome = lasting_outcome(state, effect, result)
        if outcome is None:
            return result
        moment = moment_after(effect.started, outcome)
        why = self._reason(attempts.branch, moment, is_first=False)
        if not why:
            return result
        stop = self._stop(moment, why, attempts.branch, outcome)
        paused = PausedWalk(stop, self, state, attempts.context)
        await self._hold(paused)
        if paused.replaced is None:
            return result
        replaced = replace(paused.replaced, usage=result.outcome.usage)  # what was spent is spent
        if result.files is not None:
            rewrite_status(result.files, effect, replaced, result.duration)
        return replace(result, outcome=replaced)

    def _reason(self, branch: str, moment: WalkMoment, *, is_first: bool) -> str:
        """The reason for a walk to stop at a moment: a breakpoint, ``step`` or ``pause``; empty for none."""
        holds = holding(self._own, moment)
        found = first_to_stop(self._own, holds, self._held_before(branch))
        session = self.session
        if moment.is_after:
            return found.text if found else ""
        self._held[branch] = holds
        with session.lock:
            is_stepping = session.take_step(self.path, branch, is_first=is_first)
            if found is not None:
                return found.text
            return "step" if is_stepping else "pause" if session.is_pausing else ""

    def _held_before(self, branch: str) -> frozenset[str]:
        """The breakpoints that held at the last moment of a branch, or of the walk in which it began."""
        while branch and branch not in self._held:
            branch = enclosing(branch)
        return self._held.get(branch, frozenset())

    def _stop(self, moment: WalkMoment, why: str, branch: str, outcome: Outcome | None) -> Stop:
        number = self.session.next_number()
        return stop_at(moment, why, number=number, path=self.path, branch=branch, outcome=outcome)

    async def _hold(self, paused: PausedWalk) -> None:
        """Pause until it is continued; no running time goes by meanwhile, here and above."""
        stop, session = paused.stop, self.session
        self.hold()
        try:
            with session.lock:  # a reader that sees the stop sees its record, too
                event = DebuggerStopped(
                    node=stop.node, moment=stop.moment, visit=stop.visit, breakpoint=stop.breakpoint
                )
                event.branch = stop.branch
                session.add(paused)
                self._stream.announce(event)
            await paused.released.wait()
        finally:
            with session.lock:
                session.paused_walks.pop(stop.number, None)
            self.release()

    def hold(self) -> None:
        """Let no running time go by, here and above, until ``release``."""
        if self.time is not None:
            self.time.hold()
        if self._above is not None:
            self._above.hold()

    def release(self) -> None:
        """Let it go by again."""
        if self.time is not None:
            self.time.release()
        if self._above is not None:
            self._above.release()

    def _carried_again(self, state: RunState, effect: Execute, attempts: Attempts) -> Execute:
        """The effect with what its prompt carries now that values were changed."""
        carried = carry_over(self._plan, effect.planned, state, attempts.context, attempts.setup.run_id)
        if carried.fidelity != effect.started.fidelity:
            return effect
        return replace(effect, preamble=carried.preamble)

    # -- changes -------------------------------------------------------------------------------------

    def set_context(self, paused: PausedWalk, values: Mapping[str, Any]) -> None:
        """Set values of the context where a walk is paused."""

        def change() -> None:
            event = DebuggerChanged(change="context", context=paused.context.amend(values))
            self._record(event, paused.stop.branch)
            paused.state.whole.apply(event)
            paused.is_changed = True

        self._change_at(paused, change)

    def set_outcome(self, paused: PausedWalk, outcome: Outcome) -> None:
        """Replace the outcome of a stage that has just ended."""
        clean, before = redacted_outcome(outcome), paused.replaced or paused.stop.outcome

        def change() -> None:
            words = "" if before is None else f"{before.status.value} {before.failure_reason}".strip()
            event = DebuggerChanged(
                change="outcome", node=paused.stop.node, outcome=clean, before=words, visit=paused.stop.visit
            )
            self._record(event, paused.stop.branch)
            paused.replaced = clean

        self._change_at(paused, change)

    def _change_at(self, paused: PausedWalk, change: Callable[[], None]) -> None:
        """Make a change where a walk is paused, and notify observers."""
        self.session.change(paused, change)
        with self.session.lock:
            self.tell()

    def set_prompt(self, node: str, text: str) -> None:
        """Give a node another prompt in this run."""
        self._change(DebuggerChanged(change="prompt", node=node, text=redacted(text)))

    def pin(self, node: str, pin: Pin) -> None:
        """Set the outcome of a node without being executed."""
        event = _pinning(node, pin)
        with self.session.lock:
            self._change(event)
            self._put(node, PinnedHandler(self.overrides.pins[node]))

    def mock(self, node: str, handler: Handler) -> None:
        """Have something else execute a node."""
        with self.session.lock:
            self._change(DebuggerChanged(change="mock", node=node))
            self._put(node, handler)

    def unpin(self, node: str) -> None:
        """Have a node executed again."""
        with self.session.lock:
            change = "unpin" if node in self.overrides.pins else "unmock"
            self._change(DebuggerChanged(change=change, node=node))
            self._handlers[node] = self._executing.pop(node)

    def tell(self) -> None:
        """Tell views that breakpoints or stops are others now. With the session's lock held."""
        if self._has_begun and not self.session.is_over:
            self._stream.announce(DebuggerMoved())

    def _put(self, node: str, handler: Handler) -> None:
        self._executing.setdefault(node, self._handlers[node])
        self._handlers[node] = handler

    def _change(self, event: DebuggerChanged) -> None:
        """Record a change that holds for the whole run, and take it in."""
        with self.session.lock:
            self._record(event)
            self.overrides.apply(event)
            self.session.refresh()

    def _record(self, event: DebuggerChanged, branch: str = "") -> None:
        event.branch = branch
        with self.session.lock:
            self.session.check_is_running()
            if self._has_begun:
                self._stream.announce(event, is_synced=True)
            else:
                self._waiting.append(event)


def _pinning(node: str, pin: Pin) -> DebuggerChanged:
    """The record of a pin, without secrets."""
    outcome, text = redacted_outcome(pin.outcome), redacted(pin.response)
    return DebuggerChanged(change="pin", node=node, outcome=outcome, text=text)


def _with_prompt(planned: PlannedNode, prompt: str) -> PlannedNode:
    return replace(planned, node=planned.node.with_attrs({"prompt": prompt}))


# A handler for a stage whose outcome is given: nothing is executed.

PINNED: Final = "pinned, not executed"


class PinnedHandler:
    """Gives the pinned outcome, and leaves its response as a stage would."""

    writes_status = False

    def __init__(self, pin: Pin) -> None:
        self._pin = pin

    async def execute(self, node: Node, context: Context, graph: Graph, logs_root: Path) -> Outcome:  # noqa: ARG002 - the interface of all handlers
        """The outcome; its notes say that nothing was executed, and nothing was consumed."""
        outcome, response = self._pin
        if response:
            current_stage().files.write_text("response.md", response)
        notes = f"{PINNED}: {outcome.notes}" if outcome.notes else PINNED
        return replace(outcome, notes=notes, usage=None)


# The state that the debuggers of a run and of its child runs share: breakpoints, requests, and paused walks.

DESK_SLICE_SECONDS = 0.25
"""A wait wakes this often: an interrupt must find something that it can break."""
COMMAND_SECONDS: Final = 30.0
"""Time limit for a change to reach the run's loop: a plain function cannot block the loop, a bug can."""


class PausedWalk(msgspec.Struct):
    """A paused walk."""

    stop: Stop  #: Its place and its reason.
    owner: Debugging  #: The controller of its run.
    state: RunState  #: The state of the run, or of the branch.
    context: Context  #: Its context.
    is_fan_out: bool = False  #: The stage that is next is a fan-out.
    replaced: Outcome | None = None  #: At a stop after a stage: the outcome in place of its own; None for that.
    is_changed: bool = False  #: Something was changed here.
    released: asyncio.Event = msgspec.field(default_factory=asyncio.Event)  #: Set when it continues.
    #: The event loop of the walk.
    loop: asyncio.AbstractEventLoop = msgspec.field(default_factory=asyncio.get_running_loop)

    def release(self) -> None:
        """Let it walk on; from any thread."""
        self.loop.call_soon_threadsafe(self.released.set)


class DebugSession:
    """The debugging of a run and its children: where they pause. Its attributes are changed with its lock held.

    Attributes:
        graph: The graph of the outermost run; it knows those of its children.
        lock: Held while anything here is read or changed, and while a change is recorded.
        breakpoints: By their texts, in the order in which they were set.
        paused_walks: The paused walks, by the numbers of their stops; the oldest stop first.
        members: The controllers of the runs under way: the outermost first.
        is_pausing: Each walk stops at its next stage.
        steps: Walks that stop at their next stage, by the path of their run and their branch; and whether
            the branches of the stage in between stop, too.
        is_over: The outermost run has ended.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.lock = threading.RLock()
        self.breakpoints: dict[str, Breakpoint] = {}
        self.paused_walks: dict[int, PausedWalk] = {}
        self.members: list[Debugging] = []
        self.is_pausing = False
        self.steps: dict[tuple[str, str], bool] = {}
        self.is_over = False
        self._moved = threading.Condition(self.lock)
        self._numbers = 0

    @property
    def stops(self) -> tuple[Stop, ...]:
        """The stops at which the run is paused, the oldest first."""
        with self.lock:
            return tuple(paused.stop for paused in self.paused_walks.values())

    def next_number(self) -> int:
        """A number for a stop."""
        with self.lock:
            self._numbers += 1
            return self._numbers

    def add(self, paused: PausedWalk) -> None:
        """Add a paused walk."""
        with self.lock:
            self.paused_walks[paused.stop.number] = paused
            self._moved.notify_all()

    def refresh(self) -> None:
        """Have all controllers look what there is to stop for."""
        with self.lock:
            for member in self.members:
                member.refresh()

    def leave(self, member: Debugging) -> None:
        """A run has ended; with the outermost everything is over."""
        with self.lock:
            if member in self.members:
                self.members.remove(member)
            if not member.path:
                self.is_over = True
                self._moved.notify_all()

    def check_is_running(self) -> None:
        """Refuse what can only be done while the run is active."""
        if self.is_over:
            raise RunError(
                "the run has ended, so nothing of it can be changed",
                hint="continue from an earlier stage: run.rewind(node), or run.fork(node)",
            )

    def change(self, paused: PausedWalk, change: Callable[[], None]) -> None:
        """Make a change in the loop in which a walk is paused, and wait for it."""

        def make() -> None:
            self._check_paused(paused)
            change()

        call_in_loop(paused.loop, make, COMMAND_SECONDS)

    def _check_paused(self, paused: PausedWalk) -> None:
        if paused.stop.number not in self.paused_walks:
            raise RunError(f"the run is no longer paused at {paused.stop.node}; nothing was changed")

    # -- continuing ------------------------------------------------------------------------------------

    def take_step(self, path: str, branch: str, *, is_first: bool) -> bool:
        """True if a step was to end here; this ends it.

        A step that a branch or a child run did not live to fulfil is fulfilled in the walk around it.

        Args:
            path: The run.
            branch: The branch in it.
            is_first: It is the branch's first stage.
        """
        steps = self.steps
        if not steps:
            return False
        done = [key for key in steps if _is_within(key, path, branch)]
        for key in done:
            del steps[key]
        if done:
            self.refresh()
            return True
        return is_first and any(
            into and owner == path and _is_directly_within(branch, around) for (owner, around), into in steps.items()
        )

    def resume(self, paused: PausedWalk) -> None:
        """Have a walk continue."""
        with self.lock:
            if self.paused_walks.pop(paused.stop.number, None) is not None:
                paused.release()

    def wait(self, timeout: float | None) -> Stop | None:
        """Block until a walk is paused; None when the run has ended."""
        give_up = None if timeout is None else time.monotonic() + timeout
        with self._moved:
            while not self.paused_walks:
                if self.is_over:
                    return None
                left = DESK_SLICE_SECONDS if give_up is None else min(DESK_SLICE_SECONDS, give_up - time.monotonic())
                if left <= 0:
                    raise TimeoutError(f"the run did not stop within {timeout} s; it is still running")
                self._moved.wait(left)
            return next(iter(self.paused_walks.values())).stop


def _is_within(key: tuple[str, str], path: str, branch: str) -> bool:
    """True if a walk is the one of ``path`` and ``branch``, or within it."""
    owner, inner = key
    if owner != path:
        return owner.startswith(path)
    return inner == branch or not branch or inner.startswith(f"{branch}/")


def _is_directly_within(branch: str, around: str) -> bool:
    """True if a branch is one of a fan-out in ``around``."""
    return branch.rpartition("/")[0].rpartition("/")[0] == around
