"""A controller between the steps of a run: it pauses walks and applies changes while they are paused.

``walk`` asks it before each stage and after each outcome, and only while it ``is_active``: a run that nobody
debugs pays a look at a flag. Which breakpoint holds is decided in ``decisions/breakpoints.py``. Commands come
from any thread; what changes a run's state is done in the run's own loop. Each change is a record of the log
(``DebuggerChanged``), so whoever folds the log has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from attractor_nb.decisions.breakpoints import first_to_stop, holding
from attractor_nb.decisions.carryover import carry_over
from attractor_nb.decisions.overrides import overrides_of, what_a_resume_loses
from attractor_nb.decisions.walk_moments import lasting_outcome, moment_after, moment_before, outcome_before, stop_at
from attractor_nb.engine.attempt_outcomes import rewrite_status
from attractor_nb.engine.debug_desk import DebugDesk, Stand
from attractor_nb.engine.pinned import PinnedHandler
from attractor_nb.model.branch import enclosing
from attractor_nb.model.events import DebuggerChanged, DebuggerMoved, DebuggerStopped, Event
from attractor_nb.model.redacted import redacted_outcome
from attractor_nb.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping, Sequence

    from attractor_nb.decisions.breakpoints import Breakpoint, WalkMoment
    from attractor_nb.decisions.effects import Execute, StageResult
    from attractor_nb.decisions.overrides import Pin
    from attractor_nb.decisions.planning.plan import Plan, PlannedNode
    from attractor_nb.decisions.run_state import RunState
    from attractor_nb.engine.attempts import Attempts
    from attractor_nb.engine.event_stream import EventStream
    from attractor_nb.engine.time_limits import RunningTime
    from attractor_nb.model.outcome import Outcome
    from attractor_nb.model.stop import Stop
    from attractor_nb.protocols import Handler


class Debugging:
    """Stops one run, and changes it.

    Attributes:
        is_active: Whether walks must ask.
        desk: What it shares with the controllers of child runs.
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
        self.desk: DebugDesk = DebugDesk(plan.graph) if above is None else above[0].desk
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
        with self.desk.lock:
            self.desk.members.append(self)
            self.desk.breakpoints.update({entry.text: entry for entry in breakpoints})
            self.desk.refresh()

    # -- what the runner says ------------------------------------------------------------------------

    def begin(self) -> None:
        """The log of a directory has its first record: changes can be recorded there from now on."""
        with self.desk.lock:
            waiting, self._waiting, self._has_begun = self._waiting, [], True
            if self._is_restarting:  # what holds, holds in the new directory, too
                waiting = [*self.overrides.to_events(), *waiting]
                self._is_restarting = False
            for event in waiting:
                self._stream.announce(event)

    def restart(self) -> None:
        """The run moves to another directory: changes wait until its log has begun."""
        with self.desk.lock:
            self._has_begun, self._is_restarting = False, True

    def end(self) -> None:
        """The run has ended: nothing can be changed any more."""
        with self.desk.lock:
            self.desk.leave(self)

    def refresh(self) -> None:
        """Look again what there is to stop for. With the desk's lock held."""
        desk = self.desk
        self._own = tuple(entry for entry in desk.breakpoints.values() if entry.path == self.path)
        self.is_active = bool(self._own or self.overrides.prompts or desk.is_pausing or desk.steps)

    # -- what walks ask ------------------------------------------------------------------------------

    async def before(self, state: RunState, effect: Execute, attempts: Attempts) -> Execute:
        """Stand before a visit begins, if something asks for it; the effect with what was changed."""
        started, branch = effect.started, attempts.branch
        is_first = branch != "" and not state.completed
        if self._visits.get(branch) != (started.name, started.visit):
            self._visits[branch] = started.name, started.visit
            moment = moment_before(self._plan, state, started, attempts.context.get)
            if why := self._reason(branch, moment, is_first=is_first):
                stop = self._stop(moment, why, branch, outcome_before(state))
                stand = Stand(stop, self, state, attempts.context, effect.planned.is_fan_out)
                await self._stand(stand)
                if stand.is_changed:
                    effect = self._carried_again(state, effect, attempts)
        prompt = self.overrides.prompts.get(started.name)
        return effect if prompt is None else replace(effect, planned=_with_prompt(effect.planned, prompt))

    async def after(self, state: RunState, effect: Execute, attempts: Attempts, result: StageResult) -> StageResult:
        """Stand after a stage that is not tried again, before an edge is chosen; the result as it counts."""
        outcome = lasting_outcome(state, effect, result)
        if outcome is None:
            return result
        moment = moment_after(effect.started, outcome)
        why = self._reason(attempts.branch, moment, is_first=False)
        if not why:
            return result
        stop = self._stop(moment, why, attempts.branch, outcome)
        stand = Stand(stop, self, state, attempts.context)
        await self._stand(stand)
        if stand.replaced is None:
            return result
        replaced = replace(stand.replaced, usage=result.outcome.usage)  # what was spent is spent
        if result.files is not None:
            rewrite_status(result.files, effect, replaced, result.duration)
        return replace(result, outcome=replaced)

    def _reason(self, branch: str, moment: WalkMoment, *, is_first: bool) -> str:
        """What asks a walk to stop at a moment: a breakpoint, ``step`` or ``pause``; empty for nothing."""
        holds = holding(self._own, moment)
        found = first_to_stop(self._own, holds, self._held_before(branch))
        desk = self.desk
        if moment.is_after:
            return found.text if found else ""
        self._held[branch] = holds
        with desk.lock:
            is_stepping = desk.take_step(self.path, branch, is_first=is_first)
            if found is not None:
                return found.text
            return "step" if is_stepping else "pause" if desk.is_pausing else ""

    def _held_before(self, branch: str) -> frozenset[str]:
        """What held at the last moment of a branch, or of the walk in which it began."""
        while branch and branch not in self._held:
            branch = enclosing(branch)
        return self._held.get(branch, frozenset())

    def _stop(self, moment: WalkMoment, why: str, branch: str, outcome: Outcome | None) -> Stop:
        number = self.desk.next_number()
        return stop_at(moment, why, number=number, path=self.path, branch=branch, outcome=outcome)

    async def _stand(self, stand: Stand) -> None:
        """Stand until somebody has it go on; no running time goes by meanwhile, here and above."""
        stop, desk = stand.stop, self.desk
        self.hold()
        try:
            with desk.lock:  # whoever finds the stop finds its record, too
                event = DebuggerStopped(
                    node=stop.node, moment=stop.moment, visit=stop.visit, breakpoint=stop.breakpoint
                )
                event.branch = stop.branch
                desk.put(stand)
                self._stream.announce(event)
            await stand.released.wait()
        finally:
            with desk.lock:
                desk.stands.pop(stop.number, None)
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

    def set_context(self, stand: Stand, values: Mapping[str, Any]) -> None:
        """Set values of the context where a walk stands."""

        def change() -> None:
            event = DebuggerChanged(change="context", context=stand.context.amend(values))
            self._record(event, stand.stop.branch)
            stand.state.whole.apply(event)
            stand.is_changed = True

        self._change_at(stand, change)

    def set_outcome(self, stand: Stand, outcome: Outcome) -> None:
        """Replace the outcome of a stage that has just ended."""
        clean, before = redacted_outcome(outcome), stand.replaced or stand.stop.outcome

        def change() -> None:
            words = "" if before is None else f"{before.status.value} {before.failure_reason}".strip()
            event = DebuggerChanged(
                change="outcome", node=stand.stop.node, outcome=clean, before=words, visit=stand.stop.visit
            )
            self._record(event, stand.stop.branch)
            stand.replaced = clean

        self._change_at(stand, change)

    def _change_at(self, stand: Stand, change: Callable[[], None]) -> None:
        """Make a change where a walk stands, and tell whoever watches."""
        self.desk.change(stand, change)
        with self.desk.lock:
            self.tell()

    def set_prompt(self, node: str, text: str) -> None:
        """Give a node another prompt in this run."""
        self._change(DebuggerChanged(change="prompt", node=node, text=redacted(text)))

    def pin(self, node: str, pin: Pin) -> None:
        """Have a node come to an outcome without being executed."""
        event = _pinning(node, pin)
        with self.desk.lock:
            self._change(event)
            self._put(node, PinnedHandler(self.overrides.pins[node]))

    def mock(self, node: str, handler: Handler) -> None:
        """Have something else execute a node."""
        with self.desk.lock:
            self._change(DebuggerChanged(change="mock", node=node))
            self._put(node, handler)

    def unpin(self, node: str) -> None:
        """Have a node executed again."""
        with self.desk.lock:
            change = "unpin" if node in self.overrides.pins else "unmock"
            self._change(DebuggerChanged(change=change, node=node))
            self._handlers[node] = self._executing.pop(node)

    def tell(self) -> None:
        """Tell views that breakpoints or stops are others now. With the desk's lock held."""
        if self._has_begun and not self.desk.is_over:
            self._stream.announce(DebuggerMoved())

    def _put(self, node: str, handler: Handler) -> None:
        self._executing.setdefault(node, self._handlers[node])
        self._handlers[node] = handler

    def _change(self, event: DebuggerChanged) -> None:
        """Record a change that holds for the whole run, and take it in."""
        with self.desk.lock:
            self._record(event)
            self.overrides.apply(event)
            self.desk.refresh()

    def _record(self, event: DebuggerChanged, branch: str = "") -> None:
        event.branch = branch
        with self.desk.lock:
            self.desk.check_is_running()
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
