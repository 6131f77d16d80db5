"""``Pipeline.check`` and ``step``: runs for a test, and by single stages."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Unpack

from attractor_nb.errors import OptionError
from attractor_nb.interrupts import held_interrupts
from attractor_nb.lazy_imports import later
from attractor_nb.runtime.definition import Definition
from attractor_nb.runtime.prepare.run_options import CheckKeywords, StepKeywords, given_options, takes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from attractor_nb.runtime import launch
    from attractor_nb.runtime.execution import Execution
    from attractor_nb.runtime.handles.run_result import RunResult
    from attractor_nb.studio.estimate import recorded_check
else:
    recorded_check = later("attractor_nb.studio.estimate.recorded_check")
    launch = later("attractor_nb.runtime.launch")


class Trying(Definition):
    """Runs of a pipeline for a test, and by single stages."""

    _stepped: Execution | None = None
    _step_options: Mapping[str, Any] = MappingProxyType({})

    @takes(CheckKeywords, durability="none", is_shown=False)
    def check(
        self,
        cassette: str | PathLike[str],
        *,
        path: Sequence[str] | None = None,
        outcome: str | None = None,
        allow_unused: bool = False,
        **options: Unpack[CheckKeywords],
    ) -> RunResult:
        """Run on a recording and compare: a test without a model, a command, a person or a network.

        By default nothing is stored, and ``cassette_mode`` is ``replay``.

        Args:
            cassette: The recording.
            path: The completed stages that are expected, in order.
            outcome: The expected end: ``success`` or ``fail``.
            allow_unused: Let recorded calls be that are not made now.

        Raises:
            CheckFailed: It did something else, or made a call that was not recorded; says what.
            OptionError: An option or the cassette is unusable.
        """
        steps, status = recorded_check.read_expectation(path, outcome)
        mode = getattr(cassette, "mode", None) or "replay"
        defaults = {"durability": "none", "is_shown": False, "cassette": cassette, "cassette_mode": mode}
        chosen = launch.options_for(self, defaults, **options)
        launch.refuse_own_loop(chosen.host)
        with held_interrupts() as interrupt:
            result = launch.start_run(self, chosen, interrupt, is_waited_for=True).result()
        recorded_check.check_result(result, steps, status, is_unused_allowed=allow_unused)
        return result

    @takes(StepKeywords, **dict.fromkeys(StepKeywords.__annotations__))
    def step(self, **options: Unpack[StepKeywords]) -> RunResult:
        """Run exactly one stage and stop; call it again for the next. Options hold for the steps after.

        The step after the end begins a new run.
        """
        before = self._stepped
        if before is None:
            self._step_options = given_options(options)
        chosen = replace(launch.options_for(self, self._step_options, **options), stop_after=1)
        launch.refuse_own_loop(chosen.host)
        if chosen.durability == "none":
            raise OptionError(
                'steps go on from a run directory, and durability="none" keeps none', hint='use durability="fast"'
            )
        with held_interrupts() as interrupt:
            if before is None:
                run = launch.start_run(self, chosen, interrupt, is_waited_for=True)
            else:
                run = launch.go_on(self, before.logs_root, chosen, interrupt, is_waited_for=True)
            self._stepped = run
            result = run.result()
        self._stepped = run if result.status in {"paused", "interrupted"} else None
        return result
