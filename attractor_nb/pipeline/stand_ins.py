"""What can stand for the execution of a node: a pinned outcome, or something else that executes it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from attractor_nb.backends.function import FunctionBackend
from attractor_nb.context import check_values
from attractor_nb.decisions.overrides import Pin
from attractor_nb.errors import OptionError, RunError
from attractor_nb.handlers.codergen import EXCERPT_CHARACTERS, CodergenHandler
from attractor_nb.handlers.registry import FunctionHandler
from attractor_nb.model.outcome import Outcome, StageStatus, read_status

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from attractor_nb.pipeline.run import Run
    from attractor_nb.protocols import Handler

MODEL_TYPE = "codergen"
_NOT_TO_BE_REPLACED = {
    "start": "a start does nothing",
    "exit": "an exit does nothing",
    "parallel": "its branches would not be walked; pin the nodes within them",
}
_ENGINES_OWN = ("internal.", "graph.")
_ROUTING = frozenset({"outcome", "preferred_label", "current_node"})
_STATUSES = ", ".join(status.value for status in StageStatus)


def check_can_stand_in(node: str, handler_type: str) -> None:
    """Refuse a node that nothing can stand for.

    Raises:
        OptionError: It is one.
    """
    if why := _NOT_TO_BE_REPLACED.get(handler_type):
        raise OptionError(
            f"node {node} is of type {handler_type} and can be neither pinned nor mocked", hint=why
        )


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
    """An outcome that somebody gives by hand; a failure of theirs is not tried again.

    Raises:
        OptionError: The status is none.
        ContextValueError: A value is no JSON value.
    """
    if isinstance(status, Outcome):
        check_values(status.context_updates)
        return status
    found = read_status(status) if isinstance(status, str) else None
    if found is None:
        raise OptionError(f"{status!r:.80} is no status", hint=f"use one of {_STATUSES}, or an Outcome")
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


def pin_of(run: Run, node: str, outcome: object, response: str | None) -> Pin:
    """What a node is pinned to.

    Raises:
        OptionError: The outcome is none.
        RunError: Nothing is given, and the node has not come to anything yet.
    """
    if response is not None and not isinstance(response, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise OptionError(f"a response is a text, not a {type(response).__name__}")
    if outcome is None and response is None:
        return _last(run, node)
    given = read_outcome("success" if outcome is None else outcome, notes="by hand", node=node)
    if response is None:
        return Pin(given)
    said = {
        "last_stage": node,
        "last_response": response[:EXCERPT_CHARACTERS],
        f"{node}.response": response,
    }
    return Pin(replace(given, context_updates={**said, **given.context_updates}), response)


def _last(run: Run, node: str) -> Pin:
    """What a node came to last, with what it set."""
    commits = [visit.commit for visit in run.journal().visits_of(node) if visit.commit is not None]
    if not commits:
        raise RunError(
            f"{node} has not come to anything yet, so there is nothing to pin",
            hint=f'give an outcome or a response: pin("{node}", response="…")',
        )
    commit = commits[-1]
    kept = {
        key: value
        for key, value in commit.context.items()
        if key not in _ROUTING and not key.startswith(_ENGINES_OWN)
    }
    return Pin(replace(commit.outcome, context_updates=kept), run.read_stage_file(node, "response.md") or "")


def stand_in_of(run: Run, node: str, handler_type: str, answer: object) -> Handler:
    """What executes a node in place of its handler.

    Raises:
        OptionError: It does not fit the node.
    """
    if handler_type == MODEL_TYPE:
        if isinstance(answer, str):
            return CodergenHandler(FunctionBackend(_saying(answer)), run.pipeline.schemas)
        if callable(answer):
            return CodergenHandler(FunctionBackend(answer), run.pipeline.schemas)
        raise OptionError(
            f"node {node} asks a model: a mock is a text or a function, not a {type(answer).__name__}",
            hint="pin(node, outcome) takes an Outcome",
        )
    if callable(answer):
        function: Callable[..., Any] = answer
        return FunctionHandler(function)
    raise OptionError(
        f"node {node} is of type {handler_type}: a mock is a function, not a {type(answer).__name__}",
        hint="def stand_in(node, context, graph, logs_root): return Outcome.success()",
    )


def _saying(text: str) -> Callable[[str], str]:
    return lambda prompt: text  # noqa: ARG005 - the interface of all backends
