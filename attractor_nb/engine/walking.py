"""Performs the effects of a traversal, one after the other: of a run, or of one branch of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

from attractor_nb.decisions.effects import Announce, Ask, Commit, Execute, Wait
from attractor_nb.model.events import StageFailed

if TYPE_CHECKING:
    from attractor_nb.decisions.effects import RunEnd, Traversal
    from attractor_nb.decisions.run_state import RunState
    from attractor_nb.decisions.traversal import Uniform
    from attractor_nb.engine.attempts import Attempts
    from attractor_nb.engine.debug_control import Debugging


class RunStops(Exception):
    """The whole run stops at a stage of a branch: at a bound, or because it is paused there.

    Attributes:
        end: How the run ends; None when it is paused.
    """

    def __init__(self, end: RunEnd | None) -> None:
        super().__init__("the run stops" if end is None else end.reason)
        self.end = end


class Keeper(Protocol):
    """Keeps what walks come to, in the state, the log and the checkpoint: the runner."""

    @property
    def state(self) -> RunState:
        """The state of the run."""
        ...

    @property
    def uniform(self) -> Uniform:
        """Gives the jitter of retry delays."""
        ...

    @property
    def is_stepping(self) -> bool:
        """Whether the run pauses after a number of stages: then its branches go one after the other."""
        ...

    @property
    def debugging(self) -> Debugging:
        """Has walks stand still between their steps."""
        ...

    def before_stage(self, state: RunState, effect: Execute) -> None:
        """Take an intent into the state of the run or of a branch; raises ``RunStops`` to pause there."""
        ...

    def distrust_state(self) -> None:
        """Keep the state nowhere any more: a walk broke off in a step, and it may be ahead of the log."""
        ...

    def commit_stage(self, attempts: Attempts, effect: Commit) -> bool:
        """Make a stage's end durable, and say so (ruling 29); whether the loop needs a turn."""
        ...


async def walk(  # noqa: C901 - a call for each effect would be paid in each step
    traversal: Traversal, state: RunState, attempts: Attempts, keeper: Keeper
) -> RunEnd:
    """Perform effects until the traversal ends."""
    result: Any = None
    debugging, attempts.task = keeper.debugging, asyncio.current_task()
    while True:
        try:
            effect = traversal.send(result)
        except StopIteration as stop:
            end: RunEnd = stop.value
            return end
        result = None
        if isinstance(effect, Execute):
            if debugging.is_active:
                effect = await debugging.before(state, effect, attempts)
            keeper.before_stage(state, effect)
            result = await attempts.run(effect)
            if debugging.is_active:
                result = await debugging.after(state, effect, attempts, result)
        elif isinstance(effect, Commit):
            if keeper.commit_stage(attempts, effect):
                await asyncio.sleep(0)
        elif isinstance(effect, Announce):
            attempts.announce(effect.event, is_synced=isinstance(effect.event, StageFailed))
        elif isinstance(effect, Wait):
            result = await attempts.wait(effect.seconds)
        elif isinstance(effect, Ask):
            result = await attempts.ask(effect.question)
        else:
            attempts.record(effect)
