"""What a view asks of a run's debugger, as plain messages, and what it is answered.

Each request is one call of ``Debugger``: nothing can be clicked that cannot be called. An error of ours is
part of the answer, in words.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Protocol

from attractor_nb.decisions.overrides import is_of_the_engine
from attractor_nb.errors import AttractorError, OptionError
from attractor_nb.handlers.codergen import task_of
from attractor_nb.model.bounded_json import read_bounded_json
from attractor_nb.model.vocabulary.variables import lookup_in, rendered
from attractor_nb.redaction import redacted_value
from attractor_nb.views.texts.prose import prose_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from attractor_nb.model.graph import Graph
    from attractor_nb.studio.debug.debugger import Debugger

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
    """Do what a view asks for, and say how things stand then.

    Args:
        run: The run.
        request: ``call`` names one of ``CALLS``; its arguments beside it.

    Returns:
        A message of kind ``debug``: ``debugger`` (``Debugger.to_plain``), ``problem`` where something was
        refused, ``look`` with prompt and values where the run stands and that was asked for.
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
    """The prompt and the values where the run stands."""
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
    """What the stage would ask for with the values as they are; None where that is the prompt itself."""
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
    """A value as somebody writes it: JSON, or else the text itself."""
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
"""What can be asked for, by name."""
