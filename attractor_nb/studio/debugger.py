"""The debugger of a run: breakpoints, stops, and changes while it is paused (see docs/debugger.md).

A thin face on ``engine/debug_control.py``: it reads what callers give, and says what is wrong with it.
Nothing that it does touches the text of the pipeline.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, Unpack

from attractor_nb.decisions.breakpoints import read_breakpoint
from attractor_nb.decisions.log_folds import is_of_the_engine, overrides_of
from attractor_nb.engine.debug_control import DESK_SLICE_SECONDS, Debugging, PausedWalk
from attractor_nb.errors import AttractorError, OptionError, RunError
from attractor_nb.handlers.codergen import task_of
from attractor_nb.model.bounded_json import read_bounded_json
from attractor_nb.model.states import stage_word
from attractor_nb.model.vocabulary.variables import lookup_in, rendered
from attractor_nb.redaction import redacted_value
from attractor_nb.runtime.fork import fork_run
from attractor_nb.runtime.pins import read_breakpoints
from attractor_nb.runtime.prepare.run_options import RerunKeywords, takes
from attractor_nb.studio.debug_changes import Changing
from attractor_nb.studio.inspect.inspect_run import inspect_stage
from attractor_nb.views.texts.prose import prose_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from attractor_nb.model.graph import Graph
    from attractor_nb.model.outcome import Outcome
    from attractor_nb.model.stop import Stop
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.execution import Execution
    from attractor_nb.runtime.handles.handle import HandleJob


# Requests of a view to a run's debugger, as plain messages, and their answers.
#
# Each request is one call of ``Debugger``: every click has a call in Python. A known error is part of the answer, in
# words.

MAX_VALUES: Final = 200
MAX_VALUE_CHARACTERS: Final = 2000
_PROMPTED: Final = "codergen"


class Debugged(Protocol):
    """A run that has a debugger."""

    graph: Graph

    @property
    def debugger(self) -> Debugger:
        """Its debugger."""
        ...

    def read_stage_file(self, node_id: str, name: str) -> str | None:
        """The text of a file of a stage."""
        ...


def answer_debugging(run: Debugged, request: Mapping[str, Any]) -> dict[str, Any]:
    """Do what a view asks for, and return the new state.

    Args:
        run: The run.
        request: ``call`` names one of ``CALLS``; its arguments beside it.

    Returns:
        A message of kind ``debug``: ``debugger`` (``Debugger.to_plain``), ``problem`` where something was
        refused, ``look`` with prompt and values where the run is paused and that was asked for.
    """
    debugger = run.debugger
    message: dict[str, Any] = {"kind": "debug"}
    try:
        call = CALLS.get(str(request.get("call", "")))
        if call is None:
            raise OptionError(f"a debugger knows no {request.get('call')!r:.80}")
        call(debugger, request)
        if stop := debugger.stop:
            branch = request.get("branch")
            message["look"] = _look(run, debugger, branch if isinstance(branch, str) else None, stop.number)
    except AttractorError as error:
        message["problem"] = str(error)
    message["debugger"] = debugger.to_plain()
    return message


def _look(run: Debugged, debugger: Debugger, branch: str | None, number: int) -> dict[str, Any]:
    """The prompt and the values where the run is paused."""
    stop = next((stop for stop in debugger.stops if branch in (None, stop.path + stop.branch)), None)
    if stop is None:
        return {"number": number, "prompt": None, "sent": None, "context": [], "more": 0}
    values = debugger.context(branch)
    keys = sorted(values, key=lambda key: (is_of_the_engine(key), key))
    prompt = None if stop.path else _prompt(run.graph, stop.node, debugger.prompts)
    sent = None if prompt is None else _sent(run.graph, prompt, values)
    look = {
        "number": stop.number,
        "prompt": prompt,
        "sent": sent,
        "context": [_row(key, values[key]) for key in keys[:MAX_VALUES]],
        "more": max(0, len(keys) - MAX_VALUES),
    }
    clean = redacted_value(look)
    return {**clean, "sent_shown": prose_of(clean["sent"])}


def _prompt(graph: Graph, node: str, prompts: Mapping[str, str]) -> str | None:
    if graph.handler_types.get(node) != _PROMPTED:
        return None
    return prompts.get(node) or task_of(graph.nodes[node])


def _sent(graph: Graph, prompt: str, values: Mapping[str, Any]) -> str | None:
    """The prompt with the current values filled in. None if that is the prompt itself."""
    known = {**graph.mirrored(), **values}
    text = rendered(prompt, lookup_in(graph.goal, known.get))
    return None if text == prompt else text


def _row(key: str, value: Any) -> dict[str, Any]:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    is_long = len(text) > MAX_VALUE_CHARACTERS
    shown = f"{text[:MAX_VALUE_CHARACTERS]}…" if is_long else text
    if isinstance(value, str) and (_read(text) != text or "\r" in text):
        shown = json.dumps(shown, ensure_ascii=False)  # the text "3" is not the number; a field keeps no CR
    return {"key": key, "text": shown, "is_fixed": is_long or is_of_the_engine(key)}


def _read(text: str) -> Any:
    """A value as it is written: JSON, or else the text itself."""
    try:
        return read_bounded_json(text)
    except ValueError:
        return text


def _text(request: Mapping[str, Any], name: str) -> str:
    value = request.get(name)
    if not isinstance(value, str):
        raise OptionError(f"the request has no {name}")
    return value


def _branch(request: Mapping[str, Any]) -> str | None:
    value = request.get("branch")
    return value if isinstance(value, str) and value else None


def _set_outcome(debugger: Debugger, request: Mapping[str, Any]) -> None:
    debugger.set_outcome(
        _text(request, "status"),
        str(request.get("reason") or ""),
        label=str(request.get("label") or ""),
        branch=_branch(request),
    )


CALLS: Final[Mapping[str, Callable[[Debugger, Mapping[str, Any]], object]]] = {
    "look": lambda debugger, request: None,  # noqa: ARG005 - nothing but the answer
    "continue": lambda debugger, request: debugger.continue_(_branch(request)),
    "step": lambda debugger, request: debugger.step(_branch(request)),
    "step_over": lambda debugger, request: debugger.step_over(_branch(request)),
    "pause": lambda debugger, request: debugger.pause(),  # noqa: ARG005 - the interface of all calls
    "break": lambda debugger, request: debugger.break_at(_text(request, "text")),
    "clear": lambda debugger, request: debugger.clear(_text(request, "text")),
    "set_context": lambda debugger, request: debugger.set_context(
        _text(request, "key"), _read(_text(request, "text")), branch=_branch(request)
    ),
    "set_prompt": lambda debugger, request: debugger.set_prompt(_text(request, "node"), _text(request, "text")),
    "set_outcome": _set_outcome,
    "pin": lambda debugger, request: debugger.pin(_text(request, "node")),
    "unpin": lambda debugger, request: debugger.unpin(_text(request, "node")),
}
"""Accepted words, by name."""


# ``Debugger.rerun``: one stage once more, on its input: a fork that ends after its first stage.

_OWN = frozenset({"stop_after", "breakpoints", "host"})


@dataclass(frozen=True, slots=True)
class Rerun:
    """A stage that was executed once more, beside its earlier outcome."""

    node: str  #: The node.
    visit: int  #: The visit whose input it had.
    outcome: Outcome  #: Its new outcome.
    before: Outcome | None  #: Its earlier outcome; None when it never ended.
    response: str  #: The text of its response now; empty without one.
    response_before: str  #: The text that it had then.
    run: Execution  #: The run in which it was executed, in its own directory.

    @property
    def is_same(self) -> bool:
        """True if status and response are what they were."""
        return (
            self.before is not None
            and self.outcome.status is self.before.status
            and self.response == self.response_before
        )

    @property
    def diff(self) -> str:
        """The response against the one before, as a unified diff; empty when they are the same."""
        lines = difflib.unified_diff(
            self.response_before.splitlines(), self.response.splitlines(), "before", "now", lineterm=""
        )
        return "\n".join(lines)

    def __str__(self) -> str:
        before = "never ended" if self.before is None else stage_word(self.before.status)
        words = f"{self.node}, visit {self.visit}, once more: {stage_word(self.outcome.status)}, before {before}"
        if reason := self.outcome.failure_reason:
            words += f"\nreason: {reason}"
        if self.response == self.response_before:
            return f"{words}; the response is the same" if self.response else words
        return f"{words}\n{self.diff}"

    def __repr__(self) -> str:
        return str(self)


def rerun_stage(run: Execution, node: str, visit: int | None, **options: Any) -> Rerun:
    """Execute a stage once more on its stored input; see ``Debugger.rerun``."""
    for name in options:
        if name in _OWN:
            raise OptionError(f"{name} is given, and a rerun executes one stage and ends")
    visits = [entry for entry in run.journal().visits_of(node, "") if visit in (None, entry.number)]
    if visits:
        started = visits[-1].sequence
        before = (event for event in run.journal().counted if event.sequence < started)
        if node in overrides_of(before).pins:
            raise RunError(
                f"{node} was pinned in visit {visits[-1].number}: nothing was executed that could be again",
                hint=f'another visit: rerun("{node}", visit=…)',
            )
    given: Mapping[str, Any] = options.get("pins") or {}
    pins = {**given, node: None}  # one that the handle keeps does not stand for this stage
    options.setdefault("is_shown", False)
    options.update(pins=pins, stop_after=1)
    fork = fork_run(run, node, visit, **options)
    fork.result()
    outcome = fork.outcomes.get(node)
    if outcome is None or not visits:
        raise RunError(f"{node} was not brought to an end: {fork.result().reason}")
    commit = visits[-1].commit
    return Rerun(
        node,
        visits[-1].number,
        outcome,
        None if commit is None else commit.outcome,
        fork.read_stage_file(node, "response.md") or "",
        _response_of(run, node, visits[-1].number),
        fork,
    )


def _response_of(run: Execution, node: str, visit: int) -> str:
    """The response of a visit, also of one whose files were moved aside."""
    inspected = inspect_stage(run, node, visit)
    response = inspected.to_plain().get("response")
    return response if isinstance(response, str) else ""


class Rerunning:
    """Executing a stage of a run once more."""

    _run: Execution

    @takes(RerunKeywords, is_shown=False)
    def rerun(
        self,
        node: str,
        visit: int | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        prompt: str | None = None,
        pipeline: Definition | None = None,
        on_graph_change: str | None = None,
        **options: Unpack[RerunKeywords],
    ) -> Rerun:
        """Execute one stage once more on its stored input, in its own directory; the run stays as it is.

        Works for loaded runs and for those that have ended, too.

        Args:
            node: The node.
            visit: Which of its visits, by number; the latest by default.
            context: Values of the context that are others now.
            prompt: The prompt of the node now.
            pipeline: What is run in place of what the run ran.
            on_graph_change: As of ``Pipeline.resume``; with a pipeline given the change is accepted.
        """
        return rerun_stage(
            self._run,
            node,
            visit,
            context=context,
            prompt=prompt,
            pipeline=pipeline,
            on_graph_change=on_graph_change,
            **options,
        )


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

    def __init__(self, run: Execution, debugging: Debugging | None, work: HandleJob[Any]) -> None:
        """Debug a run; ``debugging`` is None for one that was loaded, and ``work`` is what is behind it."""
        super().__init__(run, debugging)
        self._work = work

    # -- breakpoints ---------------------------------------------------------------------------------

    @property
    def breakpoints(self) -> tuple[str, ...]:
        """The breakpoints, in the order in which they were set."""
        return () if self._debugging is None else tuple(self._debugging.session.breakpoints)

    def break_at(self, *breakpoints: str) -> Self:
        """Set breakpoints, also while the run is active.

        Args:
            *breakpoints: ``plan``, ``plan@2`` (its second visit), ``plan->review``, ``after:plan``,
                ``on:error``, a condition such as ``context.n=3``; ``review>draft``: any of them in the child
                run of ``review``.
        """
        live = self._live()
        session = live.session
        found = read_breakpoints(breakpoints, session.graph)
        with session.lock:
            session.check_is_running()
            session.breakpoints.update({entry.text: entry for entry in found})
            session.refresh()
            live.tell()
        return self

    def clear(self, *breakpoints: str) -> Self:
        """Take breakpoints away; all of them without an argument.

        Args:
            *breakpoints: The breakpoints, as they were set; all without any.
        """
        live = self._live()
        session = live.session
        names = [read_breakpoint(text, session.graph).text for text in breakpoints]
        with session.lock:
            for name in names:
                if name not in session.breakpoints:
                    known = ", ".join(session.breakpoints) or "none"
                    raise OptionError(f"there is no breakpoint {name}", hint=f"there are: {known}")
            for name in names or list(session.breakpoints):
                del session.breakpoints[name]
            session.refresh()
            live.tell()
        return self

    # -- pausing and continuing -----------------------------------------------------------------------

    def wait_for_stop(self, timeout: float | None = None) -> Stop | None:
        """Block until the run is paused, and return the stop; None when it has ended instead.

        Args:
            timeout: Seconds to wait at most; without it forever.
        """
        live = self._live()
        if self._work.is_in_this_loop and self.stop is None:
            raise RunError(
                "the run is active in this event loop, and waiting here would stop it",
                hint="use `await run.debugger.stopped()`",
            )
        return live.session.wait(timeout)

    async def stopped(self) -> Stop | None:
        """``wait_for_stop`` for coroutines, as long as it takes."""
        session = self._live().session
        while True:
            with contextlib.suppress(TimeoutError):
                return await asyncio.to_thread(session.wait, DESK_SLICE_SECONDS)

    def pause(self) -> Self:
        """Have each walk stop at its next stage."""
        live = self._live()
        with live.session.lock:
            live.session.check_is_running()
            live.session.is_pausing = True
            live.session.steps.clear()
            live.session.refresh()
            live.tell()
        return self

    def continue_(self, branch: str | None = None) -> Self:
        """Have the run continue to the next breakpoint; one branch alone if it is named.

        Args:
            branch: Path or name of the branch that is active; all of them by default.
        """
        live = self._live()
        session = live.session
        with session.lock:
            is_called_off = session.is_pausing and not session.paused_walks
            if not is_called_off:
                self._paused_walk(branch)
            released = list(session.paused_walks.values()) if branch is None else [self._paused_walk(branch)]
            session.is_pausing = False
            session.steps.clear()
            self._resume(live, released)
        return self

    def step(self, branch: str | None = None) -> Self:
        """Execute one stage and stop at the next; from a fan-out into its branches, over a child run.

        Args:
            branch: Path or name of the branch that steps; the one that is paused longest by default.
        """
        return self._step(branch, into=True)

    def step_over(self, branch: str | None = None) -> Self:
        """Execute one stage, a fan-out with all its branches, and stop at the next; otherwise as ``step``.

        Args:
            branch: Path or name of the branch that steps; the one that is paused longest by default.
        """
        return self._step(branch, into=False)

    def _step(self, branch: str | None, *, into: bool) -> Self:
        live = self._live()
        session = live.session
        with session.lock:
            paused = self._paused_walk(branch)
            session.is_pausing = False
            session.steps[paused.stop.path, paused.stop.branch] = into and paused.is_fan_out
            self._resume(live, [paused])
        return self

    def _resume(self, live: Debugging, released: Sequence[PausedWalk]) -> None:
        live.session.refresh()
        for paused in released:
            live.session.resume(paused)
        live.tell()

    # -- looking -------------------------------------------------------------------------------------

    def to_plain(self) -> dict[str, Any]:
        """The state of the debugger as JSON values, for a view."""
        live = self._debugging
        return {
            "breakpoints": list(self.breakpoints),
            "stops": [stop.to_plain() for stop in self.stops],
            "pins": self.pins,
            "prompts": self.prompts,
            "is_pausing": live is not None and live.session.is_pausing,
            "is_over": self._is_over,
        }

    def __str__(self) -> str:
        if self._debugging is None or self._debugging.session.is_over:
            lines = ["the run is not active here"]
        else:
            stops = [str(stop) for stop in self.stops]
            lines = stops or ["pauses at the next stage" if self._debugging.session.is_pausing else "active"]
        if self.breakpoints:
            lines.append(f"breakpoints: {', '.join(self.breakpoints)}")
        lines += [f"{node}: {words}" for node, words in self.pins.items()]
        lines += [f"{node}: another prompt" for node in self.prompts]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)
