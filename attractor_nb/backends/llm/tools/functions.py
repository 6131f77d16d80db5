"""The caller's own functions as tools of a model (``Pipeline(…, tools=…)``)."""

from __future__ import annotations

import asyncio
import inspect
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.backends.llm.tools.catalog import TOOLS, FoundTool
from attractor_nb.backends.llm.tools.tool_problems import ToolProblem, cut
from attractor_nb.calling import call
from attractor_nb.errors import OptionError, TerminalError
from attractor_nb.interrupts import is_from_keyboard
from attractor_nb.lazy_imports import later
from attractor_nb.model.allowed_tools import TOOL_NAME
from attractor_nb.model.vocabulary.attribute_table import AGENT_TOOLS
from attractor_nb.stage import stage_or_none

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from attractor_nb.backends.llm.tools import returned_values
else:
    returned_values = later("attractor_nb.backends.llm.tools.returned_values")

Functions = dict[str, "Callable[..., Any]"]
_TAKEN: Final = frozenset((*AGENT_TOOLS, *(tool.name for tool in TOOLS)))
_PLAIN_KINDS: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def checked_functions(functions: Mapping[Any, Any]) -> Functions:
    """Functions that can be tools, by name."""
    for name, function in functions.items():
        if not isinstance(name, str) or not TOOL_NAME.match(name):
            raise OptionError(f"a tool's name must be a word, not {name!r}", hint='tools={"lookup": lookup}')
        if name in _TAKEN:
            raise OptionError(f"there is a tool {name!r} already", hint="give the function another name")
        if not callable(function) or isinstance(function, type):
            raise OptionError(
                f"tool {name!r} is {type(function).__name__} {function!r:.80}, not a function",
                hint="def lookup(order: str) -> str: …",
            )
        if wrong := [entry for entry in _parameters(name, function) if entry.kind not in _PLAIN_KINDS]:
            raise OptionError(
                f"tool {name!r} has the parameter {wrong[0]}, and models name each argument",
                hint="def lookup(order: str, *, limit: int = 5) -> str: …",
            )
    return dict(functions)


def _parameters(name: str, function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError) as error:
        raise OptionError(
            f"tool {name!r} has parameters that cannot be read: {error}", hint="wrap it in your own function"
        ) from None


def function_inputs(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    """What a function brings into a call, for recordings and the cache; needs no library."""
    return {"name": name, "description": inspect.getdoc(function) or "", "parameters": str(inspect.signature(function))}


def function_tool(name: str, function: Callable[..., Any]) -> FoundTool:
    """A function as a tool, its schema made of signature and docstring. Loads pydantic-ai."""
    from pydantic_ai.tools import Tool  # noqa: PLC0415 - pydantic-ai is slow to import

    try:
        made: Any = Tool(function, takes_ctx=False, name=name)
    except Exception as error:  # noqa: BLE001 - whatever pydantic and the annotations raise
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise TerminalError(
            f"tool {name!r} has no schema: {cut(reason, 300)}",
            hint="annotate its parameters with str, int, list[str], pydantic models and the like",
        ) from None
    schema = made.function_schema

    async def run(arguments: Mapping[str, Any]) -> str:
        return await _called(name, function, schema.validator, arguments)

    return FoundTool(name, made.description or "", dict(schema.json_schema), run)


async def _called(name: str, function: Callable[..., Any], validator: Any, arguments: Mapping[str, Any]) -> str:
    """Call a function; whatever it raises is told to the model, which may do it another way."""
    from pydantic import ValidationError  # noqa: PLC0415 - as above

    try:
        values = validator.validate_python(dict(arguments))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ToolProblem(f"{name}: {place or 'the arguments'}: {first['msg']}") from None
    except BaseException as error:  # noqa: BLE001 - of a validator of the caller's own, as below
        raise _failed(name, error) from None
    try:
        return returned_values.returned_text(await call(partial(function, **values)))
    except BaseException as error:  # noqa: BLE001 - SystemExit and the like, too, end neither program nor stage
        raise _failed(name, error) from None


def _failed(name: str, error: BaseException) -> ToolProblem:
    """What the model is told of an exception, which is kept with the stage."""
    task = asyncio.current_task()
    if is_from_keyboard(error) or (isinstance(error, asyncio.CancelledError) and task and task.cancelling()):
        raise error
    if (scope := stage_or_none()) is not None:
        scope.failed(error)
    reason = (str(error).strip().splitlines() or [""])[0]
    return ToolProblem(f"{name} failed: {type(error).__name__}{f': {reason}' if reason else ''}")
