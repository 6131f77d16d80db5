"""What goes into a call, as recordings and the cache know it: the inputs of models, commands and handlers.

Two runs that ask the same must have the same inputs, so whatever differs between them without changing
an answer is taken out here, in the key and never in the prompt: the run's id, its directory, how often an
earlier stage was tried, what it cost. Knows no files: who calls hashes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from attractor_nb.decisions.preambles.preamble import without_incidents
from attractor_nb.model.calls.attachment import without_bytes
from attractor_nb.model.calls.call_content import COMMAND_CALL, HANDLER_CALL, MODEL_CALL, CallInputs
from attractor_nb.model.calls.prompt_sections import split_context

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

RUN_MARK: Final = "<run>"
DIRECTORY_MARK: Final = "<run directory>"
_RUN_KEYS: Final = ("internal.", "stack.child.")
"""Context keys that tell of a run and not of its subject begin so."""
_RUN_ID_KEY: Final = ".run_id"
_RESULTS_KEY: Final = "parallel.results"
_UNSEEN_ATTRS: Final = frozenset({"cache", "cache.files", "cache.context", "class", "timeout", "max_retries"})
"""Node attributes that change no answer: how it is kept, drawn, and tried again."""


class PlaceOfCall(msgspec.Struct, frozen=True):
    """Where a call is made: texts that differ from run to run."""

    run_id: str = ""  #: The run.
    directories: tuple[str, ...] = ()  #: Its directories, as texts.

    def without(self, text: str) -> str:
        """A text with marks in place of the run's id and directories, the longest first."""
        for directory in sorted(self.directories, key=len, reverse=True):
            if len(directory) > 1:
                text = text.replace(directory, DIRECTORY_MARK)
        return text.replace(self.run_id, RUN_MARK) if self.run_id else text

    def without_in(self, value: Any) -> Any:
        """The same for every text of a JSON value."""
        if isinstance(value, str):
            return self.without(value)
        if isinstance(value, dict):
            entries = cast("dict[str, Any]", value)
            return {self.without(key): self.without_in(item) for key, item in entries.items()}
        if isinstance(value, list | tuple):
            return [self.without_in(item) for item in cast("list[Any]", value)]
        return value


def model_call(
    node_id: str,
    prompt: str,
    described: Mapping[str, Any],
    *,
    place: PlaceOfCall,
    preamble: str = "",
    conversation: str = "",
    attachments: Iterable[str] = (),
) -> CallInputs:
    r"""What goes into a call of a model, or of an agent.

    Args:
        node_id: Who calls.
        prompt: The text as it is sent, carried context included.
        described: What the backend says of the call beside it (``DescribesCalls``).
        place: Where.
        preamble: The carried context that the prompt begins with. A text that only looks like one counts whole.
        conversation: Under ``full`` fidelity: what the thread has said so far.
        attachments: SHA-256 of what is attached, in its order.

    >>> carried = "Goal: ship\n\nRun: k7f3"
    >>> sent = f"## Context\n\n{carried}\n\n## Task\n\nPlan."
    >>> model_call("plan", sent, {"model": "m"}, place=PlaceOfCall("k7f3"), preamble=carried).values
    {'prompt': 'Plan.', 'carried': 'Goal: ship', 'model': 'm'}
    """
    carried, task = split_context(prompt, preamble)
    values: dict[str, Any] = {"prompt": place.without(task)}
    if carried:
        values["carried"] = place.without(without_incidents(carried))
    if conversation:
        values["conversation"] = place.without(conversation)
    if attached := list(attachments):
        values["attachments"] = attached
    values |= place.without_in(dict(described))
    return CallInputs(MODEL_CALL, node_id, values)


def command_call(node_id: str, command: str, context: Mapping[str, Any], *, place: PlaceOfCall) -> CallInputs:
    """What goes into a command of a tool stage.

    >>> command_call("test", "make test", {"tickets": 3}, place=PlaceOfCall()).values
    {'command': 'make test', 'context': {'tickets': 3}}
    """
    return CallInputs(COMMAND_CALL, node_id, {"command": command, "context": context_inputs(context, place)})


def handler_call(
    node_id: str,
    handler_type: str,
    version: str,
    attrs: Mapping[str, Any],
    context: Mapping[str, Any],
    *,
    place: PlaceOfCall,
    graph: Mapping[str, Any] | None = None,
    code: str = "",
) -> CallInputs:
    """What goes into a stage of somebody's own handler.

    Args:
        node_id: Whose stage.
        handler_type: The handler's type.
        version: What the handler calls its version.
        attrs: The node's attributes.
        context: The context values that it reads (``read_values``).
        place: Where.
        graph: What it can see of the graph around the node.
        code: Where its code is.
    """
    values: dict[str, Any] = {
        "handler": handler_type,
        "version": version,
        "attributes": place.without_in(attribute_inputs(attrs)),
        "context": context_inputs(context, place),
    }
    if graph:
        values["graph"] = place.without_in(dict(graph))
    if code:
        values["code"] = code
    return CallInputs(HANDLER_CALL, node_id, values)


def of_stage(
    inputs: CallInputs, *, visit: int = 1, files: Mapping[str, str] | None = None, workdir: str = ""
) -> CallInputs:
    """The inputs of a call as those of its stage.

    Args:
        inputs: What goes into the call.
        visit: Which visit of the node it is. A loop comes back to have something done once more: the answer
            of an earlier visit would let it turn for ever.
        files: SHA-256 of the files that the node declares, by their names.
        workdir: The directory that a command or an agent works in.
    """
    values = dict(inputs.values)
    if files:
        values["files"] = dict(files)
    if workdir:
        values["workdir"] = workdir
    if visit > 1:
        values["visit"] = visit
    return CallInputs(inputs.kind, inputs.node_id, values)


def read_values(context: Mapping[str, Any], declared: Iterable[str] | None) -> dict[str, Any]:
    """The context values that a stage reads: those that its node declares, else all but the run's own.

    A name that ends in a star stands for all keys that begin with what is before it.

    >>> read_values({"a": 1, "b.c": 2, "internal.x": 3}, None), read_values({"a": 1, "b.c": 2}, ["b.*"])
    ({'a': 1, 'b.c': 2}, {'b.c': 2})
    """
    if declared is None:
        return {
            key: value
            for key, value in context.items()
            if not key.startswith(_RUN_KEYS) and not key.endswith(_RUN_ID_KEY)
        }
    names = tuple(declared)
    prefixes = tuple(name[:-1] for name in names if name.endswith("*"))
    return {key: value for key, value in context.items() if key in names or (prefixes and key.startswith(prefixes))}


def attribute_inputs(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """A node's attributes as inputs: without those that change no answer."""
    return {name: _plain(value) for name, value in attrs.items() if name not in _UNSEEN_ATTRS}


def context_inputs(context: Mapping[str, Any], place: PlaceOfCall) -> dict[str, Any]:
    """Context values as inputs: without what tells of their run, and of what their branches cost."""
    plain: dict[str, Any] = place.without_in(without_bytes(dict(context)))
    results: Any = plain.get(_RESULTS_KEY)
    if isinstance(results, list):
        plain[_RESULTS_KEY] = [_without_usage(entry) for entry in cast("list[Any]", results)]
    return plain


def _without_usage(entry: Any) -> Any:
    """A branch's result without what it cost: a branch from the cache costs nothing."""
    if not isinstance(entry, dict):
        return entry
    return {key: value for key, value in cast("dict[str, Any]", entry).items() if key != "usage"}


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool) else str(value)
