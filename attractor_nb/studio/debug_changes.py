"""Changes to a run under a debugger: values, outcomes, prompts, and replacements of a node's execution.

It reads the values of callers; the engine makes the changes. It decides neither where the run is nor when it
continues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attractor_nb.decisions.breakpoints import AFTER_MOMENT, BEFORE_MOMENT
from attractor_nb.decisions.log_folds import Overrides, check_key
from attractor_nb.errors import OptionError, RunError
from attractor_nb.model.states import stage_word
from attractor_nb.model.texts import did_you_mean
from attractor_nb.model.vocabulary.shapes import FUNCTION_TYPE
from attractor_nb.runtime.execution import Execution, kept_options
from attractor_nb.runtime.pins import check_can_stand_in, pin_of, read_outcome, stand_in_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from attractor_nb.engine.debug_control import Debugging, PausedWalk
    from attractor_nb.model.outcome import Outcome, StageStatus
    from attractor_nb.model.stop import Stop


# The stops of a run, and the one that a caller means.


class Stops:
    """The stops of a run; one is found by the branch that a caller names."""

    def __init__(self, run: Execution, debugging: Debugging | None) -> None:
        """Look at the stops of a run; ``debugging`` is None for one that was loaded."""
        self._run = run
        self._debugging = debugging

    @property
    def stops(self) -> tuple[Stop, ...]:
        """The stops of the run: each branch and each child run by itself, the longest first."""
        return () if self._debugging is None else self._debugging.session.stops

    @property
    def stop(self) -> Stop | None:
        """The longest of its stops. None while it is running."""
        return next(iter(self.stops), None)

    @property
    def _is_over(self) -> bool:
        return self._debugging is None or self._debugging.session.is_over

    def _live(self) -> Debugging:
        """The engine's part."""
        if self._debugging is None:
            raise RunError(
                f"run {self._run.id} was loaded, and is not active here", hint="resume it: run.resume(breakpoints=[…])"
            )
        return self._debugging

    def _paused_walk(self, branch: str | None, moment: str = "") -> PausedWalk:
        session = self._live().session
        with session.lock:
            paused_walks = list(session.paused_walks.values())
            for paused in paused_walks:
                if _is_named(paused.stop, branch) and moment in {"", paused.stop.moment}:
                    return paused
            session.check_is_running()
        if not paused_walks:
            raise RunError(
                "the run is not stopped anywhere", hint="pause() stops it at its next stage, break_at(…) at others"
            )
        where = "; ".join(str(paused.stop) for paused in paused_walks)
        if moment == AFTER_MOMENT and branch is None:
            node = paused_walks[0].stop.node
            raise RunError(
                f"the run is stopped {BEFORE_MOMENT} a stage, and an outcome can be set {AFTER_MOMENT} one",
                hint=f'stop there with "after:{node}" or "on:error"',
            )
        raise RunError(f"the run is not stopped in branch {branch}", hint=where)


def _is_named(stop: Stop, branch: str | None) -> bool:
    """True if a caller means this stop: all do without a name; else by path, child and branch, or branch."""
    if branch is None:
        return True
    return branch in {stop.branch, stop.path + stop.branch, stop.branch.rpartition("/")[2]}


_WITHOUT_PROMPT = frozenset(
    {"start", "exit", "conditional", "tool", "wait.human", "parallel", "pipeline", FUNCTION_TYPE}
)


class Changing(Stops):
    """Changes what is to come of a run."""

    def set_context(self, key: str, value: Any, *, branch: str | None = None) -> None:
        """Set a value of the context where the run is paused; the record of it is in the log.

        Args:
            key: The key.
            value: The value, as JSON.
            branch: Path or name of the branch; the longest pause by default.
        """
        paused = self._paused_walk(branch)
        paused.owner.set_context(paused, {check_key(key): value})

    def context(self, branch: str | None = None) -> dict[str, Any]:
        """All values of the context where the run is paused; large ones as references.

        Args:
            branch: Path or name of the branch; the longest pause by default.
        """
        return self._paused_walk(branch).context.snapshot()

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
        """Replace the outcome of the stage that has just ended, before an edge is chosen.

        Args:
            status: ``success``, ``partial_success``, ``fail``, ``skipped``; ``retry`` has it tried again if
                its policy allows that. Or an Outcome.
            reason: Why, for a failure.
            label: The preferred label.
            suggested: Targets to prefer.
            context_updates: Values for the context.
            notes: What its notes say.
            branch: Path or name of the branch; the longest pause by default.
        """
        paused = self._paused_walk(branch, moment=AFTER_MOMENT)
        outcome = read_outcome(
            status,
            reason=reason,
            label=label,
            suggested=suggested,
            context_updates=context_updates,
            notes=notes,
            node=paused.stop.node,
        )
        paused.owner.set_outcome(paused, outcome)

    def set_prompt(self, node: str, text: str) -> None:
        """Give a node another prompt, for this run only; variables stand for values as in the graph.

        Args:
            node: The node.
            text: The prompt.
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
        """Set the outcome of a node without being executed, from now on, after a resume too.

        Of a run that has ended, or was loaded, it is kept by the handle: what is forked, rewound or resumed
        with it from now on has the pin, in its log, too.

        Args:
            node: The node.
            outcome: An Outcome or a status; None: success with ``response``, or without one what the node
                had last.
            response: The text of its response.
            visit: Its outcome in that visit, by number.
        """
        check_can_stand_in(node, self._type_of(node))
        pin = pin_of(self._run, node, outcome, response, visit)
        if self._is_over or self._debugging is None:
            kept_options(self._run).pins[node] = pin
        else:
            self._debugging.pin(node, pin)

    def mock(self, node: str, answer: str | Callable[..., Any]) -> None:
        """Have something else execute a node, as long as this process has the run.

        Args:
            node: The node.
            answer: For a node that asks a model: what it answers, or a function of the prompt or of ``(node,
                prompt, context)``. For another: a function of ``(node, context, graph, logs_root)`` that
                gives an Outcome.
        """
        live = self._live()
        handler_type = self._type_of(node)
        check_can_stand_in(node, handler_type)
        live.mock(node, stand_in_of(self._run, node, handler_type, answer))

    def unpin(self, node: str) -> None:
        """Have a pinned or mocked node executed again.

        Args:
            node: The node.
        """
        self._type_of(node)
        if kept_options(self._run).pins.pop(node, None) is not None:
            return
        live = self._live()
        if node not in live.overrides.pins and node not in live.overrides.mocks:
            raise OptionError(f"node {node} is neither pinned nor mocked")
        live.unpin(node)

    @property
    def pins(self) -> dict[str, str]:
        """The replacements of nodes' executions, in words by node."""
        overrides = Overrides() if self._debugging is None else self._debugging.overrides
        pins = {**overrides.pins, **kept_options(self._run).pins}
        pinned = {node: f"pinned to {stage_word(pin.outcome.status)}" for node, pin in pins.items()}
        return {**pinned, **dict.fromkeys(overrides.mocks, "mocked")}

    @property
    def prompts(self) -> dict[str, str]:
        """Prompts in place of those of the graph, by node."""
        return {} if self._debugging is None else dict(self._debugging.overrides.prompts)

    def _type_of(self, node: str) -> str:
        graph = self._run.graph
        if node not in graph.nodes:
            raise OptionError(f"the pipeline has no node {node!r}{did_you_mean(node, graph.nodes)}")
        return graph.handler_types[node]
