"""The debugger of a run: breakpoints, stops, and what can be changed while it stands (see docs/debugger.md).

A thin face on ``engine/debug_control.py``: it reads what callers give, and says what is wrong with it.
Nothing that it does touches the text of the pipeline.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Self

from attractor_nb.decisions.breakpoints import read_breakpoint
from attractor_nb.engine.debug_desk import SLICE_SECONDS
from attractor_nb.errors import OptionError, RunError
from attractor_nb.runtime.pins import read_breakpoints
from attractor_nb.studio.debug.changing import Changing
from attractor_nb.studio.debug.rerun import Rerunning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attractor_nb.engine.debug_control import Debugging
    from attractor_nb.engine.debug_desk import Stand
    from attractor_nb.model.stop import Stop
    from attractor_nb.runtime.execution import Execution
    from attractor_nb.runtime.handles.handle import Work


class Debugger(Changing, Rerunning):
    """Stops a run between its stages, steps it, and changes what is to come; by calls from any thread.

    >>> from attractor_nb.pipeline.pipeline import Pipeline
    >>> ends = "start [shape=Mdiamond] done [shape=Msquare]"
    >>> text = f"digraph {{ {ends} plan [prompt=p] start -> plan -> done }}"
    >>> pipeline = Pipeline(text, backend="simulated")
    >>> run = pipeline.run(breakpoints=["plan"], durability="none")
    >>> print(run.debugger.wait_for_stop())
    stopped before `plan`, entered by `start->plan`; by plan
    >>> run.debugger.set_context("tests", 3)
    >>> _ = run.debugger.continue_()
    >>> run.result().context.get("tests")
    3
    """

    def __init__(self, run: Execution, debugging: Debugging | None, work: Work[Any]) -> None:
        """Debug a run; ``debugging`` is None for one that was loaded, and ``work`` is what is behind it."""
        super().__init__(run, debugging)
        self._work = work

    # -- breakpoints ---------------------------------------------------------------------------------

    @property
    def breakpoints(self) -> tuple[str, ...]:
        """The breakpoints, in the order in which they were set."""
        return () if self._debugging is None else tuple(self._debugging.desk.breakpoints)

    def break_at(self, *breakpoints: str) -> Self:
        """Set breakpoints, also while the run goes on.

        Args:
            *breakpoints: ``plan``, ``plan@2`` (its second visit), ``plan->review``, ``after:plan``,
                ``on:error``, a condition such as ``context.n=3``; ``review>draft``: any of them in the child
                run of ``review``.
        """
        live = self._live()
        desk = live.desk
        found = read_breakpoints(breakpoints, desk.graph)
        with desk.lock:
            desk.check_is_running()
            desk.breakpoints.update({entry.text: entry for entry in found})
            desk.refresh()
            live.tell()
        return self

    def clear(self, *breakpoints: str) -> Self:
        """Take breakpoints away; all of them without an argument.

        Args:
            *breakpoints: The breakpoints, as they were set; all without any.
        """
        live = self._live()
        desk = live.desk
        names = [read_breakpoint(text, desk.graph).text for text in breakpoints]
        with desk.lock:
            for name in names:
                if name not in desk.breakpoints:
                    known = ", ".join(desk.breakpoints) or "none"
                    raise OptionError(f"there is no breakpoint {name}", hint=f"there are: {known}")
            for name in names or list(desk.breakpoints):
                del desk.breakpoints[name]
            desk.refresh()
            live.tell()
        return self

    # -- standing and going on -----------------------------------------------------------------------

    def wait_for_stop(self, timeout: float | None = None) -> Stop | None:
        """Block until the run stands, and say where; None when it has ended instead.

        Args:
            timeout: Seconds to wait at most; without it for ever.
        """
        live = self._live()
        if self._work.is_in_this_loop and self.stop is None:
            raise RunError(
                "the run goes on in this event loop, and waiting here would stop it",
                hint="use `await run.debugger.stopped()`",
            )
        return live.desk.wait(timeout)

    async def stopped(self) -> Stop | None:
        """``wait_for_stop`` for coroutines, as long as it takes."""
        desk = self._live().desk
        while True:
            with contextlib.suppress(TimeoutError):
                return await asyncio.to_thread(desk.wait, SLICE_SECONDS)

    def pause(self) -> Self:
        """Have each walk stop at its next stage."""
        live = self._live()
        with live.desk.lock:
            live.desk.check_is_running()
            live.desk.is_pausing = True
            live.desk.steps.clear()
            live.desk.refresh()
            live.tell()
        return self

    def continue_(self, branch: str | None = None) -> Self:
        """Have the run go on to the next breakpoint; one branch alone if it is named.

        Args:
            branch: Path or name of the branch that goes on; all of them by default.
        """
        live = self._live()
        desk = live.desk
        with desk.lock:
            is_called_off = desk.is_pausing and not desk.stands
            if not is_called_off:
                self._stand(branch)
            released = list(desk.stands.values()) if branch is None else [self._stand(branch)]
            desk.is_pausing = False
            desk.steps.clear()
            self._let_go(live, released)
        return self

    def step(self, branch: str | None = None) -> Self:
        """Execute one stage and stop at the next; from a fan-out into its branches, over a child run.

        Args:
            branch: Path or name of the branch that steps; the one that stands longest by default.
        """
        return self._step(branch, into=True)

    def step_over(self, branch: str | None = None) -> Self:
        """Execute one stage, a fan-out with all its branches, and stop at the next; otherwise as ``step``.

        Args:
            branch: Path or name of the branch that steps; the one that stands longest by default.
        """
        return self._step(branch, into=False)

    def _step(self, branch: str | None, *, into: bool) -> Self:
        live = self._live()
        desk = live.desk
        with desk.lock:
            stand = self._stand(branch)
            desk.is_pausing = False
            desk.steps[stand.stop.path, stand.stop.branch] = into and stand.is_fan_out
            self._let_go(live, [stand])
        return self

    def _let_go(self, live: Debugging, released: Sequence[Stand]) -> None:
        live.desk.refresh()
        for stand in released:
            live.desk.let_go(stand)
        live.tell()

    # -- looking -------------------------------------------------------------------------------------

    def to_plain(self) -> dict[str, Any]:
        """How it stands, as JSON values, for a view."""
        live = self._debugging
        return {
            "breakpoints": list(self.breakpoints),
            "stops": [stop.to_plain() for stop in self.stops],
            "pins": self.pins,
            "prompts": self.prompts,
            "is_pausing": live is not None and live.desk.is_pausing,
            "is_over": self._is_over,
        }

    def __str__(self) -> str:
        if self._debugging is None or self._debugging.desk.is_over:
            lines = ["the run does not go on here"]
        else:
            stops = [str(stop) for stop in self.stops]
            lines = stops or ["pauses at the next stage" if self._debugging.desk.is_pausing else "goes on"]
        if self.breakpoints:
            lines.append(f"breakpoints: {', '.join(self.breakpoints)}")
        lines += [f"{node}: {words}" for node, words in self.pins.items()]
        lines += [f"{node}: another prompt" for node in self.prompts]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)
