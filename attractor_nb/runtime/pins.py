"""Pins and breakpoints: outcomes or handlers in place of a node's execution, and nodes at which a run stops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from attractor_nb.backends.function_backends import FunctionBackend
from attractor_nb.context import check_values
from attractor_nb.decisions.breakpoints import Breakpoint, read_breakpoint
from attractor_nb.decisions.log_folds import Pin
from attractor_nb.errors import OptionError, RunError
from attractor_nb.handlers.codergen import CodergenHandler, response_updates
from attractor_nb.handlers.handler_registry import FunctionHandler
from attractor_nb.lazy_imports import later
from attractor_nb.model.outcome import Outcome, StageStatus, read_status
from attractor_nb.model.texts import did_you_mean
from attractor_nb.model.vocabulary.value_forms import FOR_EACH_TYPE
from attractor_nb.runtime.execution import Execution
from attractor_nb.runtime.handles.run_result import RunResult
from attractor_nb.runtime.stored_execution import resolve_run
from attractor_nb.storage.attempt_files import read_stage_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from attractor_nb.model.graph import Graph
    from attractor_nb.protocols import Handler
    from attractor_nb.runtime import past
    from attractor_nb.runtime.prepare.run_options import RunOptions
else:
    past = later("attractor_nb.runtime.past")

MODEL_TYPE = "codergen"
_NOT_TO_BE_REPLACED = {
    "start": "a start does nothing",
    "exit": "an exit does nothing",
    "parallel": "its branches would not be walked; pin the nodes within them",
    FOR_EACH_TYPE: "its items would not be run, and its outputs are a list; pin the stage that gives the list",
}
_ENGINES_OWN = ("internal.", "graph.")
_ROUTING = frozenset({"outcome", "preferred_label", "current_node"})
_STATUSES = ", ".join(status.value for status in StageStatus)


def check_can_stand_in(node: str, handler_type: str) -> None:
    """Refuse a node that cannot be pinned or replaced."""
    if why := _NOT_TO_BE_REPLACED.get(handler_type):
        raise OptionError(f"node {node} is of type {handler_type} and can be neither pinned nor mocked", hint=why)


def read_outcome(
    status: object,
    *,
    reason: str = "",
    label: str = "",
    suggested: Sequence[str] = (),
    context_updates: Mapping[str, Any] | None = None,
    notes: str = "",
    node: str = "",
) -> Outcome:
    """An outcome that is set by hand; such a failure is not retried."""
    if isinstance(status, Outcome):
        check_values(status.context_updates)
        return status
    found = read_status(status) if isinstance(status, str) else None
    if found is None:
        raise OptionError(f"{status!r:.80} is not a status", hint=f"use one of {_STATUSES}, or an Outcome")
    if found.is_failure and not reason:
        reason = f"{node}: set to {found.value} by hand"
    updates = dict(context_updates or {})
    check_values(updates)
    return Outcome(
        found,
        preferred_label=label,
        suggested_next_ids=tuple(suggested),
        context_updates=updates,
        notes=notes or "set by hand",
        failure_reason=reason if found.is_failure else "",
        is_terminal=found is StageStatus.FAIL,
    )


def pin_of(run: Execution, node: str, outcome: object, response: str | None, visit: int | None = None) -> Pin:
    """The pin of a node."""
    if visit is not None and (outcome is not None or response is not None):
        raise OptionError(
            f"visit {visit} and an outcome or response of {node} exclude each other", hint="leave one of them out"
        )
    if response is not None and not isinstance(response, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise OptionError(f"a response must be text, not a {type(response).__name__}")
    if outcome is None and response is None:
        return _answer_of(run, node, visit)
    given = read_outcome("success" if outcome is None else outcome, notes="by hand", node=node)
    if response is None:
        return Pin(given)
    return _saying_pin(node, response, given)


def read_pins(pins: Mapping[str, Any], graph: Graph) -> dict[str, Pin]:
    """The pins by node, read from the option ``pins``."""
    found: dict[str, Pin] = {}
    for node, wanted in pins.items():
        if node not in graph.nodes:
            raise OptionError(f"the pipeline has no node {node!r}{did_you_mean(node, graph.nodes)}")
        check_can_stand_in(node, graph.handler_types[node])
        found[node] = _read_pin(node, wanted)
    return found


def _read_pin(node: str, wanted: object) -> Pin:
    if isinstance(wanted, Pin):
        return wanted
    if isinstance(wanted, str):
        return _saying_pin(node, wanted, read_outcome("success", notes="by hand"))
    if isinstance(wanted, Outcome):
        return Pin(read_outcome(wanted))
    if isinstance(wanted, Execution | RunResult):
        return _answer_of(resolve_run(wanted), node, None)
    raise OptionError(
        f"{node} is pinned to the text of a response, an Outcome or a run, not {type(wanted).__name__}",
        hint=f'pins={{"{node}": run}} keeps its outcome there',
    )


def _saying_pin(node: str, response: str, outcome: Outcome) -> Pin:
    """A pin that leaves a response where a stage of a model would."""
    updates = response_updates(node, response)
    return Pin(replace(outcome, context_updates={**updates, **outcome.context_updates}), response)


def _answer_of(run: Execution, node: str, visit: int | None) -> Pin:
    """A pin with the outcome of a node in a visit, the latest by default, and the context values it set."""
    ended = [one for one in past.read_history(run).visits_of(node) if one.record.commit is not None]
    fitting = [one for one in ended if (not one.is_set_aside if visit is None else one.record.number == visit)]
    if not fitting:
        listed = ", ".join(str(one.record.number) for one in ended)
        hint = f"visits that ended: {listed}" if listed else f'pin("{node}", response="…") gives it an answer'
        when = "yet" if visit is None else f"in visit {visit}"
        raise RunError(f"{node} has no outcome {when}, so there is nothing to pin", hint=hint)
    chosen = fitting[-1]
    commit = chosen.record.commit
    assert commit is not None, "those without were left out"
    kept = {
        key: chosen.place.resolve(value)
        for key, value in commit.context.items()
        if key not in _ROUTING and not key.startswith(_ENGINES_OWN)
    }
    directory = chosen.place.files_of(chosen.record, chosen.record.attempts[-1].number)
    response = read_stage_text(directory, "response.md", chosen.place.root) or ""
    return Pin(replace(commit.outcome, context_updates=kept), response)


def stand_in_of(run: Execution, node: str, handler_type: str, answer: object) -> Handler:
    """The handler that executes a node in place of its own."""
    if handler_type == MODEL_TYPE:
        if isinstance(answer, str):
            return CodergenHandler(FunctionBackend(_saying(answer)), run.pipeline.schemas)
        if callable(answer):
            return CodergenHandler(FunctionBackend(answer), run.pipeline.schemas)
        raise OptionError(
            f"node {node} asks a model: a mock must be text or a function, not a {type(answer).__name__}",
            hint="pin(node, outcome) takes an Outcome",
        )
    if callable(answer):
        function: Callable[..., Any] = answer
        return FunctionHandler(function)
    raise OptionError(
        f"node {node} is of type {handler_type}: a mock must be a function, not a {type(answer).__name__}",
        hint="def stand_in(node, context, graph, logs_root): return Outcome.success()",
    )


def _saying(text: str) -> Callable[[str], str]:
    return lambda prompt: text  # noqa: ARG005 - the interface of all backends


def read_breakpoints(texts: Sequence[object], graph: Graph) -> list[Breakpoint]:
    """Breakpoints from their texts."""
    return [read_breakpoint(text, graph) for text in texts]


def check_debugging(options: RunOptions, graph: Graph, *, is_waited_for: bool) -> None:
    """Refuse invalid pins and breakpoints, and breakpoints after which the run could not be continued."""
    read_pins(options.pins, graph)
    if not options.breakpoints:
        return
    read_breakpoints(options.breakpoints, graph)
    if is_waited_for:
        raise OptionError(
            "breakpoints cannot be used with a call that waits for the end: the run could not be continued",
            hint="run = pipeline.run(breakpoints=[…]), then run.debugger.wait_for_stop() and continue_()",
        )
