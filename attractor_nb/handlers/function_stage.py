"""A Python function as a stage: ``count [function=count]`` and ``Pipeline(…, functions={"count": count})``.

The function takes by name what it needs of the stage, and returns a plain value. It is the caller's own code, in the
caller's own process: it is never read from a file or a run directory.
"""

from __future__ import annotations

import inspect
import json
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.decisions.replays.cache_keys import READS_ATTRIBUTE, handler_call, read_values
from attractor_nb.errors import OptionError, TerminalError
from attractor_nb.handlers.codergen import PROMPT_FILE, RESPONSE_FILE, place_of, rendered_node, response_updates
from attractor_nb.maybe_async import call
from attractor_nb.model.calls.call_content import StageCall
from attractor_nb.model.inputs import is_engine_key
from attractor_nb.model.outcome import Outcome, StageStatus
from attractor_nb.model.texts import did_you_mean
from attractor_nb.model.vocabulary.shapes import FUNCTION_TYPE
from attractor_nb.model.vocabulary.value_forms import comma_list
from attractor_nb.redaction import redacted
from attractor_nb.stage import current_stage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from attractor_nb.context import Context
    from attractor_nb.model.graph import Graph, Node

FUNCTION_ATTRIBUTE: Final = "function"
SOURCE_FILE: Final = "function.py"
"""In a stage's directory: the source of its function, as it was called."""
ARGUMENTS: Final = ("node", "prompt", "context", "inputs", "stage")
_EXAMPLE: Final = "def count(prompt, context): …"
_RETURNS: Final = "return a text, a dict of context values, True or False, an Outcome, or None"
_OF_HANDLERS: Final = ["node", "context", "graph", "logs_root"]
_NAMED: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True)
class StageFunction:
    """A function that stages call."""

    name: str  #: The name by which nodes know it.
    function: Callable[..., Any]  #: The function, sync or async.
    takes: frozenset[str]  #: The names in ``ARGUMENTS`` that it takes.
    source: str  #: Its source code; empty when it cannot be read, as of a function that was typed into ``python``.

    @property
    def is_declared(self) -> bool:
        """True if it has a ``version``, by which its author says that its result may be taken from the cache."""
        return getattr(self.function, "version", None) is not None

    @property
    def version(self) -> str:
        """The version of the function: its own ``version``, or the SHA-256 of its source; empty without both."""
        if self.is_declared:
            return str(self.function.version)  # pyright: ignore[reportFunctionMemberAccess] - checked above
        return sha256(self.source.encode("utf-8", "surrogatepass")).hexdigest() if self.source else ""

    @property
    def place(self) -> str:
        """Module and qualified name."""
        kind = type(self.function)
        module = getattr(self.function, "__module__", kind.__module__)
        return f"{module}.{getattr(self.function, '__qualname__', kind.__qualname__)}"


def stage_functions(functions: Mapping[Any, Any]) -> dict[str, StageFunction]:
    """Functions that stages can call, by name."""
    return {name: _stage_function(name, function) for name, function in functions.items()}


def _stage_function(name: object, function: Any) -> StageFunction:
    if not isinstance(name, str) or not name.strip():
        raise OptionError(f"the name of a function is a text, not {name!r}", hint='functions={"count": count}')
    if not callable(function) or isinstance(function, type):
        kind = f"the class {function.__name__}" if isinstance(function, type) else type(function).__name__
        raise OptionError(f"function {name!r} is {kind}, not a function", hint=_EXAMPLE)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise OptionError(
            f"function {name!r} has parameters that cannot be read: {error}", hint="wrap it in a function of your own"
        ) from None
    takes: set[str] = set()
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            takes.update(ARGUMENTS)
        elif parameter.kind in _NAMED and parameter.name in ARGUMENTS:
            takes.add(parameter.name)
        elif parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL:
            near = did_you_mean(parameter.name, ARGUMENTS) if parameter.name not in ARGUMENTS else " by position"
            hint = f"take any of {', '.join(ARGUMENTS)}, by name: {_EXAMPLE}"
            if [each.name for each in parameters] == _OF_HANDLERS:
                hint = f'{hint}; or register it as the handler of a type, handlers={{"team.{name}": {name}}}'
            raise OptionError(
                f"function {name!r} takes {str(parameter)!r}, which a stage does not give{near}", hint=hint
            )
    return StageFunction(name, function, frozenset(takes), _source_of(function))


def _source_of(function: Callable[..., Any]) -> str:
    while isinstance(function, partial):
        function = cast("Callable[..., Any]", function.func)
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        pass
    try:
        return inspect.getsource(type(function))
    except (OSError, TypeError):
        return ""


class FunctionStageHandler:
    """Calls the function that a node names.

    Args:
        functions: The registered functions.
        inputs: The inputs of the run, by name.
    """

    writes_status = False
    """The function says by its return value how the stage ended (ruling 42)."""
    observes_failures = True

    def __init__(self, functions: Mapping[str, Callable[..., Any]], inputs: Mapping[str, Any]) -> None:
        self._functions = stage_functions(functions)
        self._inputs = inputs

    async def execute(self, node: Node, context: Context, graph: Graph, logs_root: Path) -> Outcome:  # noqa: ARG002 - the interface of all handlers
        """Call the function; its return value is the outcome.

        A text is SUCCESS with that response. A dict is SUCCESS; its values are the context values ``<node>.<key>``.
        True and None are SUCCESS, False is FAIL, and an ``Outcome`` is itself. What the function raises is classed as
        of any handler (appendix D).
        """
        found, scope = self._named(node), current_stage()
        node = rendered_node(node, graph, context.get)
        given = {"node": node, "prompt": node.prompt, "context": context, "inputs": dict(self._inputs), "stage": scope}
        for name, text in _files(found, node).items():
            scope.files.write_text(name, text)
        wanted = {name: value for name, value in given.items() if name in found.takes}
        result: Any = await call(partial(found.function, **wanted))
        return self._outcome(found, node, result)

    def stage_call(self, node: Node, context: Context, graph: Graph) -> StageCall:
        """The inputs of the call: the source of the function, the node, and the context values that it reads."""
        found, scope = self._named(node), current_stage()
        if not found.version:
            return StageCall(
                None, f'the source of "{found.name}" cannot be read; give it a version: count.version = "1"'
            )
        values = {key: context.get(key) for key in context}
        declared = node.get(READS_ATTRIBUTE, str)
        read = read_values(values, None if declared is None else comma_list(declared))
        inputs = handler_call(
            node.id, FUNCTION_TYPE, found.version, node.attrs, read, place=place_of(scope), code=found.place
        )
        files = _files(found, rendered_node(node, graph, context.get))
        return StageCall(inputs, has_effects=not found.is_declared, files=files)

    def _named(self, node: Node) -> StageFunction:
        name = node.get(FUNCTION_ATTRIBUTE, str, "").strip()
        if found := self._functions.get(name):
            return found
        if not name:
            raise TerminalError(f"{node.id} names no function", hint="count [function=count]")
        raise TerminalError(
            f'{node.id} calls the function "{name}", which is not registered{did_you_mean(name, self._functions)}',
            hint=f'Pipeline(…, functions={{"{name}": {name}}})',
        )

    @staticmethod
    def _outcome(found: StageFunction, node: Node, result: Any) -> Outcome:
        scope = current_stage()
        if isinstance(result, Outcome):
            return result
        if result is None or result is True:
            return Outcome.success(f"{found.name}() returned {result}")
        if result is False:
            return Outcome.fail(f"{found.name}() returned False")
        if isinstance(result, str):
            text = redacted(result)
            scope.files.write_text(RESPONSE_FILE, text)
            return Outcome.success(f"{found.name}() returned a text", context_updates=response_updates(node.id, text))
        if isinstance(result, dict):
            return _with_values(found, node, cast("dict[Any, Any]", result))
        return Outcome.fail(f"{found.name}() returned {type(result).__name__}; {_RETURNS}", is_terminal=True)


def _with_values(found: StageFunction, node: Node, values: dict[Any, Any]) -> Outcome:
    """SUCCESS with a dict as context values below the node's id."""
    if wrong := [key for key in values if not isinstance(key, str) or not key]:
        return Outcome.fail(f"{found.name}() returned the key {wrong[0]!r}; the keys are texts", is_terminal=True)
    updates = {f"{node.id}.{key}": value for key, value in values.items()}
    if taken := [key for key in updates if is_engine_key(key, {node.id})]:
        return Outcome.fail(f"{found.name}() returned {taken[0]}, which the engine sets", is_terminal=True)
    text = json.dumps(values, ensure_ascii=False, indent=2, default=str)
    current_stage().files.write_text(RESPONSE_FILE, redacted(text))
    return Outcome(
        StageStatus.SUCCESS, notes=f"{found.name}() returned {', '.join(values) or 'no value'}", context_updates=updates
    )


def _files(found: StageFunction, node: Node) -> dict[str, str]:
    """The files written into the stage's directory before the call."""
    texts = {SOURCE_FILE: found.source, PROMPT_FILE: node.prompt}
    return {name: redacted(text) for name, text in texts.items() if text}
