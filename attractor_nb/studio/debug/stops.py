"""Where a run stands, and the one stop of it that a caller means.

It knows neither what has a run stop nor what is done while it stands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.decisions.breakpoints import AFTER_MOMENT, BEFORE_MOMENT
from attractor_nb.errors import RunError

if TYPE_CHECKING:
    from attractor_nb.engine.debug_control import Debugging
    from attractor_nb.engine.debug_desk import Stand
    from attractor_nb.model.stop import Stop
    from attractor_nb.runtime.execution import Execution


class Stops:
    """The stops of a run; one is found by the branch that a caller names."""

    def __init__(self, run: Execution, debugging: Debugging | None) -> None:
        """Look at the stops of a run; ``debugging`` is None for one that was loaded."""
        self._run = run
        self._debugging = debugging

    @property
    def stops(self) -> tuple[Stop, ...]:
        """Where the run is stopped: each branch and each child run by itself, the longest first."""
        return () if self._debugging is None else self._debugging.desk.stops

    @property
    def stop(self) -> Stop | None:
        """Where it is stopped, for the longest time; None while it goes on."""
        return next(iter(self.stops), None)

    @property
    def _is_over(self) -> bool:
        return self._debugging is None or self._debugging.desk.is_over

    def _live(self) -> Debugging:
        """The engine's part."""
        if self._debugging is None:
            raise RunError(
                f"run {self._run.id} was loaded, and does not go on here",
                hint="go on with it: run.resume(breakpoints=[…])",
            )
        return self._debugging

    def _stand(self, branch: str | None, moment: str = "") -> Stand:
        desk = self._live().desk
        with desk.lock:
            stands = list(desk.stands.values())
            for stand in stands:
                if _is_named(stand.stop, branch) and moment in {"", stand.stop.moment}:
                    return stand
            desk.check_is_running()
        if not stands:
            raise RunError(
                "the run is not stopped anywhere", hint="pause() stops it at its next stage, break_at(…) at others"
            )
        where = "; ".join(str(stand.stop) for stand in stands)
        if moment == AFTER_MOMENT and branch is None:
            node = stands[0].stop.node
            raise RunError(
                f"the run is stopped {BEFORE_MOMENT} a stage, and an outcome can be set {AFTER_MOMENT} one",
                hint=f'stop there with "after:{node}" or "on:error"',
            )
        raise RunError(f"the run is not stopped in branch {branch}", hint=where)


def _is_named(stop: Stop, branch: str | None) -> bool:
    """Whether a caller means this stop: all do without a name; else by path, child and branch, or branch."""
    if branch is None:
        return True
    return branch in {stop.branch, stop.path + stop.branch, stop.branch.rpartition("/")[2]}
