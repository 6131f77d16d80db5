"""The debugger of a run: breakpoints, stops, and what can be changed while it stands (see docs/debugger.md).

A thin face on ``engine/debug_control.py``: it reads what callers give, and says what is wrong with it.
Nothing that it does touches the text of the pipeline.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Self

from attractor_nb.decisions.breakpoints import AFTER_MOMENT, BEFORE_MOMENT, read_breakpoint
from attractor_nb.decisions.overrides import Overrides, check_key
from attractor_nb.engine.debug_desk import SLICE_SECONDS
from attractor_nb.errors import OptionError, RunError
from attractor_nb.model.nearest_name import did_you_mean
from attractor_nb.runtime.handle_options import kept_of
from attractor_nb.runtime.pins import check_can_stand_in, pin_of, read_breakpoints, read_outcome, stand_in_of
from attractor_nb.studio.debug.rerun import Rerunning

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from attractor_nb.engine.debug_control import Debugging, Stand
    from attractor_nb.model.outcome import Outcome, StageStatus
    from attractor_nb.model.stop import Stop
    from attractor_nb.runtime.execution import Execution
    from attractor_nb.runtime.handles.handle import Work

_PROMPTED = frozenset({"codergen", "parallel.fan_in", "stack.manager_loop"})
_WITHOUT_PROMPT = frozenset({"start", "exit", "conditional", "tool", "wait.human", "parallel", "pipeline"})


class Debugger(Rerunning):
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
        self._run = run
        self._work = work
        self._debugging = debugging

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

        Raises:
            OptionError, ConditionSyntaxError: One is none; then none of them is set.
            RunError: The run does not go on here.
        """
        live = self._live()
        desk = live.desk
        found = read_breakpoints(breakpoints, desk.graph)
        with desk.lock:
            desk.check_is_going_on()
            desk.breakpoints.update({entry.text: entry for entry in found})
            desk.refresh()
            live.tell()
        return self

    def clear(self, *breakpoints: str) -> Self:
        """Take breakpoints away; all of them without an argument.

        Args:
            *breakpoints: The breakpoints, as they were set; all without any.

        Raises:
            OptionError: There is no such breakpoint.
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

    @property
    def stops(self) -> tuple[Stop, ...]:
        """Where the run is stopped: each branch and each child run by itself, the longest first."""
        return () if self._debugging is None else self._debugging.desk.stops

    @property
    def stop(self) -> Stop | None:
        """Where it is stopped, for the longest time; None while it goes on."""
        return next(iter(self.stops), None)

    def wait_for_stop(self, timeout: float | None = None) -> Stop | None:
        """Block until the run stands, and say where; None when it has ended instead.

        Args:
            timeout: Seconds to wait at most; without it for ever.

        Raises:
            TimeoutError: Neither came in time; the run goes on.
            RunError: It runs in the event loop that runs here: use ``await run.debugger.stopped()``.
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
        """Have each walk stop at its next stage.

        Raises:
            RunError: The run does not go on here.
        """
        live = self._live()
        with live.desk.lock:
            live.desk.check_is_going_on()
            live.desk.is_pausing = True
            live.desk.steps.clear()
            live.desk.refresh()
            live.tell()
        return self

    def continue_(self, branch: str | None = None) -> Self:
        """Have the run go on to the next breakpoint; one branch alone if it is named.

        Args:
            branch: Path or name of the branch that goes on; all of them by default.

        Raises:
            RunError: It does not stand.
        """
        live = self._live()
        desk = live.desk
        with desk.lock:
            is_called_off = desk.is_pausing and not desk.stands
            if not is_called_off:
                self._stand(branch)
            going = list(desk.stands.values()) if branch is None else [self._stand(branch)]
            desk.is_pausing = False
            desk.steps.clear()
            self._let_go(live, going)
        return self

    def step(self, branch: str | None = None) -> Self:
        """Execute one stage and stop at the next; from a fan-out into its branches, over a child run.

        Args:
            branch: Path or name of the branch that steps; the one that stands longest by default.

        Raises:
            RunError: The run does not stand.
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

    def _let_go(self, live: Debugging, going: Sequence[Stand]) -> None:
        live.desk.refresh()
        for stand in going:
            live.desk.let_go(stand)
        live.tell()

    # -- changes -------------------------------------------------------------------------------------

    def set_context(self, key: str, value: Any, *, branch: str | None = None) -> None:
        """Set a value of the context where the run stands; the record of it is in the log.

        Args:
            key: The key.
            value: The value, as JSON has it.
            branch: Path or name of the branch; the place that stands longest by default.

        Raises:
            OptionError: The key is the engine's own.
            ContextValueError: The value is not a JSON value.
            RunError: The run does not stand.
        """
        stand = self._stand(branch)
        stand.owner.set_context(stand, {check_key(key): value})

    def context(self, branch: str | None = None) -> dict[str, Any]:
        """All values of the context where the run stands; large ones as references.

        Args:
            branch: Path or name of the branch; the place that stands longest by default.

        Raises:
            RunError: The run does not stand.
        """
        return self._stand(branch).context.snapshot()

    def set_outcome(
        self,
        status: str | StageStatus | Outcome,
        reason: str = "",
        *,
        label: str = "",
        suggested: Sequence[str] = (),
        context_updates: Mapping[str, Any] | None = None,
        notes: str = "",
        branch: str | None = None,
    ) -> None:
        """Have the stage that has just ended come to something else, before an edge is chosen.

        Args:
            status: ``success``, ``partial_success``, ``fail``, ``skipped``; ``retry`` has it tried again if
                its policy allows that. Or an Outcome.
            reason: Why, for a failure.
            label: The preferred label.
            suggested: Targets to prefer.
            context_updates: Values for the context.
            notes: What its notes say.
            branch: Path or name of the branch; the place that stands longest by default.

        Raises:
            OptionError: The outcome is none.
            RunError: The run does not stand after a stage.
        """
        stand = self._stand(branch, moment=AFTER_MOMENT)
        outcome = read_outcome(
            status,
            reason=reason,
            label=label,
            suggested=suggested,
            context_updates=context_updates,
            notes=notes,
            node=stand.stop.node,
        )
        stand.owner.set_outcome(stand, outcome)

    def set_prompt(self, node: str, text: str) -> None:
        """Give a node another prompt, for this run only; variables stand for values as in the graph.

        Args:
            node: The node.
            text: The prompt.

        Raises:
            OptionError: There is no such node, it asks no model, or the prompt is empty.
        """
        live = self._live()
        handler_type = self._type_of(node)
        if handler_type in _WITHOUT_PROMPT:
            raise OptionError(
                f"node {node} is of type {handler_type}, which has no prompt",
                hint="mock(node, function) has something else execute it",
            )
        if not isinstance(text, str) or not text.strip():  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
            raise OptionError(f"a prompt must be text, not {text!r:.80}")
        live.set_prompt(node, text)

    def pin(
        self, node: str, outcome: str | Outcome | None = None, *, response: str | None = None, visit: int | None = None
    ) -> None:
        """Have a node come to an outcome without being executed, from now on, after a resume too.

        Of a run that has ended, or was loaded, it is kept by the handle: what is forked, rewound or resumed
        with it from now on has the pin, in its log, too.

        Args:
            node: The node.
            outcome: An Outcome or a status; None: success with ``response``, or without one what the node
                came to last.
            response: The text of its response.
            visit: What it came to in that visit, by number.

        Raises:
            OptionError: There is no such node, or it cannot be pinned.
            RunError: It has not ended yet, so there is nothing to pin.
        """
        check_can_stand_in(node, self._type_of(node))
        pin = pin_of(self._run, node, outcome, response, visit)
        if self._is_over or self._debugging is None:
            kept_of(self._run).pins[node] = pin
        else:
            self._debugging.pin(node, pin)

    def mock(self, node: str, answer: str | Callable[..., Any]) -> None:
        """Have something else execute a node, as long as this process has the run.

        Args:
            node: The node.
            answer: For a node that asks a model: what it answers, or a function of the prompt or of ``(node,
                prompt, context)``. For another: a function of ``(node, context, graph, logs_root)`` that
                gives an Outcome.

        Raises:
            OptionError: There is no such node, or the answer does not fit it.
        """
        live = self._live()
        handler_type = self._type_of(node)
        check_can_stand_in(node, handler_type)
        live.mock(node, stand_in_of(self._run, node, handler_type, answer))

    def unpin(self, node: str) -> None:
        """Have a pinned or mocked node executed again.

        Args:
            node: The node.

        Raises:
            OptionError: It is neither.
        """
        self._type_of(node)
        if kept_of(self._run).pins.pop(node, None) is not None:
            return
        live = self._live()
        if node not in live.overrides.pins and node not in live.overrides.mocks:
            raise OptionError(f"node {node} is neither pinned nor mocked")
        live.unpin(node)

    @property
    def pins(self) -> dict[str, str]:
        """What is not executed as the graph says: of each node in words what stands for it."""
        overrides = Overrides() if self._debugging is None else self._debugging.overrides
        pins = {**overrides.pins, **kept_of(self._run).pins}
        pinned = {node: f"pinned to {pin.outcome.status.value}" for node, pin in pins.items()}
        return {**pinned, **dict.fromkeys(overrides.mocks, "mocked")}

    @property
    def prompts(self) -> dict[str, str]:
        """Prompts in place of those of the graph, by node."""
        return {} if self._debugging is None else dict(self._debugging.overrides.prompts)

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

    @property
    def _is_over(self) -> bool:
        return self._debugging is None or self._debugging.desk.is_over

    # -- finding -------------------------------------------------------------------------------------

    def _live(self) -> Debugging:
        """The engine's part.

        Raises:
            RunError: The run was loaded.
        """
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
            desk.check_is_going_on()
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

    def _type_of(self, node: str) -> str:
        graph = self._run.graph
        if node not in graph.nodes:
            raise OptionError(f"the pipeline has no node {node!r}{did_you_mean(node, graph.nodes)}")
        return graph.handler_types[node]


def _is_named(stop: Stop, branch: str | None) -> bool:
    """Whether a caller means this stop: all do without a name; else by path, child and branch, or branch."""
    if branch is None:
        return True
    return branch in {stop.branch, stop.path + stop.branch, stop.branch.rpartition("/")[2]}
