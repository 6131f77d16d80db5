"""The inputs of calls, as recordings and the cache compare them: calls of models, commands and handlers.

Two runs that make the same call must have the same inputs. So all that differs between them without changing
an answer is removed here, from the key and never from the prompt: the run's id, its directory, the attempts and
the cost of an earlier stage. The module reads no files: the caller hashes them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from attractor_nb.decisions.preamble import without_incidents
from attractor_nb.model.calls.call_content import (
    COMMAND_CALL,
    HANDLER_CALL,
    MODEL_CALL,
    CallInputs,
    InputChange,
    StageCall,
    changed_inputs,
    split_context,
)
from attractor_nb.model.calls.messages import without_bytes
from attractor_nb.model.vocabulary.value_forms import FOR_EACH_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from attractor_nb.model.graph import Node


RUN_MARK: Final = "<run>"
DIRECTORY_MARK: Final = "<run directory>"
_RUN_KEYS: Final = ("internal.", "stack.child.")
"""Context keys that describe a run and not of its subject begin so."""
_RUN_ID_KEY: Final = ".run_id"
_RESULTS_KEY: Final = "parallel.results"
_UNSEEN_ATTRS: Final = frozenset({"cache", "cache.files", "cache.context", "class", "timeout", "max_retries"})
"""Node attributes that change no answer: how it is kept, drawn, and tried again."""


class RunPaths(msgspec.Struct, frozen=True):
    """The id and the directories of a run: texts that differ from run to run."""

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
    place: RunPaths,
    preamble: str = "",
    conversation: str = "",
    attachments: Iterable[str] = (),
) -> CallInputs:
    r"""The inputs of a call of a model, or of an agent.

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
    >>> model_call("plan", sent, {"model": "m"}, place=RunPaths("k7f3"), preamble=carried).values
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


def command_call(node_id: str, command: str, context: Mapping[str, Any], *, place: RunPaths) -> CallInputs:
    """The inputs of a command of a tool stage.

    >>> command_call("test", "make test", {"tickets": 3}, place=RunPaths()).values
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
    place: RunPaths,
    graph: Mapping[str, Any] | None = None,
    code: str = "",
) -> CallInputs:
    """The inputs of a stage of a custom handler.

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
            of an earlier visit would let it turn forever.
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


def context_inputs(context: Mapping[str, Any], place: RunPaths) -> dict[str, Any]:
    """Context values as inputs: without values that describe their run, or the costs of their branches."""
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


# The stages that the cache may answer, and the reason why one was executed after all.
#
# A stage is kept only where its inputs hold all that its result depends on, and where executing it leaves
# nothing behind but its result. A command or an agent, which can do more, has to be declared.

UNCACHED_TYPES: Final[Mapping[str, str]] = {
    "start": "a start does nothing",
    "exit": "an exit does nothing",
    "conditional": "a diamond only routes",
    "wait.human": "the person is asked each time",
    "parallel": "a fan-out only walks its branches; their stages are looked up one by one",
    "stack.manager_loop": "a manager supervises; its child's stages are looked up one by one",
    "pipeline": "a sub-pipeline only runs its child; the child's stages are looked up one by one",
    FOR_EACH_TYPE: "a stage with for_each only runs its items; they are looked up one by one",
}
"""Handler types that are never cached, and why."""
READS_ATTRIBUTE: Final = "cache.context"
"""Node attribute that names the context keys a command or a handler reads."""
FILES_ATTRIBUTE: Final = "cache.files"
SHOWN_CHARACTERS: Final = 160
"""Longest part of a value in a change, around the place where it differs."""
_LEAD_CHARACTERS: Final = 40
_WITH_EFFECTS: Final = {COMMAND_CALL: "a command", HANDLER_CALL: "a function"}


def refusal(node: Node, handler_type: str, call: StageCall, fidelity: str = "") -> str:
    """The reason why a stage is neither looked up in the cache nor kept there; empty when it is.

    Args:
        node: The node.
        handler_type: What executes it.
        call: What its handler says of the call that it will make.
        fidelity: Its resolved fidelity mode.
    """
    if handler_type in UNCACHED_TYPES:
        return UNCACHED_TYPES[handler_type]
    if node.get("cache", bool, default=True) is False:
        return "the node says cache=false"
    if call.inputs is None:
        return call.problem or "the inputs of its result are unknown"
    if call.has_effects and not is_declared(node):
        what = _WITH_EFFECTS.get(call.inputs.kind, "an agent with tools")
        return f"{what} may change more than its result says; write cache=true on the node if it does not"
    if fidelity == "full" and call.has_effects:
        return "an agent stores its session elsewhere, and full fidelity continues it"
    return ""


def is_declared(node: Node) -> bool:
    """True if a node says itself that executing it leaves nothing behind but its result."""
    return node.attrs.get("cache") is True or node.get("idempotent", bool, default=False) is True


class StageComparison(msgspec.Struct, frozen=True):
    """In what a stage differs from an earlier one."""

    changes: tuple[InputChange, ...] = ()  #: Differences, with values cut short.
    run_id: str = ""  #: The run of the earlier one; empty when there is none.


def nearest(earlier: Iterable[tuple[Mapping[str, Any], str]], now: Mapping[str, Any]) -> StageComparison:
    """The difference from the earlier entry that differs in the fewest inputs.

    Args:
        earlier: Inputs and run id of each, the newest first; among equals the first counts.
        now: The inputs now.
    """
    compared = [StageComparison(_opened(changed_inputs(before, now)), run_id) for before, run_id in earlier]
    best = min(compared, key=lambda one: len(one.changes), default=StageComparison())
    return StageComparison(tuple(_short(change) for change in best.changes), best.run_id)


def _opened(changes: Iterable[InputChange]) -> tuple[InputChange, ...]:
    """Changes of values that have names of their own, such as context and files, one by one."""
    found: list[InputChange] = []
    for change in changes:
        if isinstance(change.before, dict) and isinstance(change.now, dict):
            before, now = cast("dict[str, Any]", change.before), cast("dict[str, Any]", change.now)
            inner = changed_inputs(before, now)
            found += [InputChange(f"{change.name}.{one.name}", one.before, one.now) for one in inner]
        else:
            found.append(change)
    return tuple(found)


def _short(change: InputChange) -> InputChange:
    before, now = _text(change.before), _text(change.now)
    begin = 0
    if before is not None and now is not None:
        pairs = zip(before, now, strict=False)
        begin = next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(before), len(now)))
    begin = max(0, begin - _LEAD_CHARACTERS)
    return InputChange(change.name, _excerpt(before, begin), _excerpt(now, begin))


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _excerpt(text: str | None, begin: int) -> str | None:
    if text is None or len(text) <= SHOWN_CHARACTERS:
        return text
    end = begin + SHOWN_CHARACTERS
    return ("…" if begin else "") + text[begin:end] + ("…" if end < len(text) else "")
