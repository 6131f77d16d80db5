"""The catalog of tools: their names, descriptions and parameters."""

from __future__ import annotations

import asyncio
import inspect
import json
import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct

from attractor_nb.backends.llm.tools.file_tools import MAX_DEPTH, ToolProblem, cut, shown_number
from attractor_nb.errors import OptionError, TerminalError
from attractor_nb.interrupts import is_from_keyboard
from attractor_nb.maybe_async import call
from attractor_nb.model.allowed_tools import TOOL_NAME
from attractor_nb.model.vocabulary.attribute_table import AGENT_TOOLS
from attractor_nb.stage import stage_or_none

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping


DEFAULT_COMMAND_SECONDS: Final = 120
MAX_COMMAND_SECONDS: Final = 600
MAX_COMMAND_CHARACTERS: Final = 20_000


class Parameter(Struct, frozen=True):
    """An argument of a tool: a text, or a whole number within bounds."""

    name: str
    meaning: str
    is_number: bool = False
    is_required: bool = True
    maximum: int = 0

    @property
    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        if not self.is_number:
            return {"type": "string", "description": self.meaning}
        bounds = {"minimum": 1, **({"maximum": self.maximum} if self.maximum else {})}
        return {"type": "integer", "description": self.meaning, **bounds}

    def check(self, value: object) -> None:
        """Refuse a value of another kind."""
        if not self.is_number:
            if not isinstance(value, str):
                raise ToolProblem(f"{self.name} must be text, not {type(value).__name__}")
        elif type(value) is not int or value < 1 or (self.maximum and value > self.maximum):
            upper = f" and at most {self.maximum}" if self.maximum else ""
            given = shown_number(value) if isinstance(value, int | float) else cut(repr(value), 50)
            raise ToolProblem(f"{self.name} must be a whole number of at least 1{upper}, not {given}")


class CallableTool(Protocol):
    """A tool that a model may call, whatever its source."""

    @property
    def name(self) -> str:
        """Its name, as the model knows it."""
        ...

    @property
    def description(self) -> str:
        """The description of the tool, for the model."""
        ...

    @property
    def schema(self) -> dict[str, Any]:
        """The parameters, as JSON Schema."""
        ...

    def check(self, arguments: Mapping[str, Any]) -> None:
        """Refuse arguments that it does not take."""
        ...


class FoundTool(Struct, frozen=True):
    """A tool that is not ours: a function of the caller's own, or a tool of an MCP server."""

    name: str  #: As the model knows it.
    description: str  #: Its description.
    schema: dict[str, Any]  #: Its parameters, as JSON Schema.
    #: Calls it; what the model is told. It checks its arguments itself.
    call: Callable[[Mapping[str, Any]], Awaitable[str]]

    def check(self, arguments: Mapping[str, Any]) -> None:
        """``call`` does."""


class Tool(Struct, frozen=True):
    """A tool: the word of ``allowed_tools`` that allows it, its name, what it does and what it takes."""

    word: str
    name: str
    description: str
    parameters: tuple[Parameter, ...]

    @property
    def schema(self) -> dict[str, Any]:
        """The parameters, as JSON Schema."""
        return {
            "type": "object",
            "properties": {entry.name: entry.schema for entry in self.parameters},
            "required": [entry.name for entry in self.parameters if entry.is_required],
            "additionalProperties": False,
        }

    def check(self, arguments: Mapping[str, Any]) -> None:
        """Refuse arguments that it does not take: a model may send anything."""
        known = {entry.name: entry for entry in self.parameters}
        if unknown := [name for name in arguments if name not in known]:
            raise ToolProblem(f"{self.name} takes {', '.join(known)}, not {cut(unknown[0], 50)!r}")
        for entry in self.parameters:
            if entry.name in arguments:
                entry.check(arguments[entry.name])
            elif entry.is_required:
                raise ToolProblem(f"{self.name} needs {entry.name}: {entry.meaning}")


_PATH: Final = "Path relative to the working directory."
TOOLS: Final = (
    Tool(
        "read",
        "read_file",
        "Read a text file in the working directory.",
        (
            Parameter("path", _PATH),
            Parameter("first_line", "Line to begin at, from 1.", is_number=True, is_required=False),
        ),
    ),
    Tool(
        "write",
        "write_file",
        "Write a text file in the working directory, in place of what it held; folders are made.",
        (Parameter("path", _PATH), Parameter("content", "The whole new text of the file.")),
    ),
    Tool(
        "list",
        "list_files",
        "List files and directories in the working directory.",
        (
            Parameter("path", "Directory to list; the working directory by default.", is_required=False),
            Parameter(
                "depth", "Levels to go down; 2 by default.", is_number=True, is_required=False, maximum=MAX_DEPTH
            ),
        ),
    ),
    Tool(
        "run",
        "run_command",
        "Run a shell command in the working directory and get its exit code, stdout and stderr.",
        (
            Parameter("command", "The command, for /bin/sh. Its input is empty."),
            Parameter(
                "timeout_seconds",
                f"When it is ended; {DEFAULT_COMMAND_SECONDS} by default.",
                is_number=True,
                is_required=False,
                maximum=MAX_COMMAND_SECONDS,
            ),
        ),
    ),
)
"""All of them, in the order of ``AGENT_TOOLS``."""


def built_in_tools(words: Iterable[str]) -> tuple[Tool, ...]:
    """The tools that these words allow, in the catalog's order."""
    chosen = set(words)
    return tuple(tool for tool in TOOLS if tool.word in chosen)


# The caller's own functions as tools of a model (``Pipeline(…, tools=…)``).

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
    """The inputs of a function, for recordings and the cache; needs no library."""
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
    """Call a function. The model receives any exception, and may try another way."""
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
        return returned_text(await call(partial(function, **values)))
    except BaseException as error:  # noqa: BLE001 - SystemExit and the like, too, end neither program nor stage
        raise _failed(name, error) from None


def _failed(name: str, error: BaseException) -> ToolProblem:
    """The model's message about an exception, which is stored with the stage."""
    task = asyncio.current_task()
    if is_from_keyboard(error) or (isinstance(error, asyncio.CancelledError) and task and task.cancelling()):
        raise error
    if (scope := stage_or_none()) is not None:
        scope.failed(error)
    reason = (str(error).strip().splitlines() or [""])[0]
    return ToolProblem(f"{name} failed: {type(error).__name__}{f': {reason}' if reason else ''}")


# The result of a function, for the model: a text as it is, anything else as JSON.
#
# Arrays and tables are JSON, too, and bounded: items beyond the bound are counted, never dropped in silence. They are
# recognised by their methods, so numpy, pandas and polars need not be installed, and none is imported.

MAX_VALUES: Final = 2_000
"""Of an array, and of the rows of a table."""
MAX_COLUMNS: Final = 100
MAX_TABLE_CHARACTERS: Final = 30_000
_MAX_CELL_CHARACTERS: Final = 1_000
_MISSING: Final = frozenset({"NAType", "NaTType"})
"""The kinds of pandas' values for nothing."""
_TIMES: Final = "mM"
"""The kinds of numpy's times, of which plain values lose their unit."""


def returned_text(value: object) -> str:
    """A result as the model receives it.

    >>> returned_text("as it is"), returned_text({"a": [1, None]})
    ('as it is', '{"a":[1,null]}')
    """
    from pydantic_core import to_jsonable_python  # noqa: PLC0415 - pydantic is slow to import

    if isinstance(value, str):
        return str(value)
    if type(value).__name__ in _MISSING:
        return "null"
    plain = to_jsonable_python(value, fallback=_plain, bytes_mode="base64", inf_nan_mode="constants")
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def _plain(value: Any) -> Any:
    """A value that JSON has no form for, as one of plain Python."""
    if type(value).__name__ in _MISSING:
        return None
    if hasattr(value, "columns") and hasattr(value, "shape") and hasattr(value, "head"):
        return _table(value)
    if hasattr(value, "to_frame") and hasattr(value, "index"):  # a series of pandas, whose index counts
        return _table(value.to_frame())
    if hasattr(value, "dtype") and hasattr(value, "shape") and hasattr(value, "tolist"):
        return _array(value)
    return str(value)


def _array(array: Any) -> Any:
    """An array, or a single value of one; of a large one its shape and its first values, row by row."""
    shape = tuple(array.shape)
    if getattr(array.dtype, "kind", "") in _TIMES:
        array = array.astype(str)
    count = math.prod(shape)
    if count <= MAX_VALUES:
        plain = array.tolist()
        return str(plain) if type(plain) is type(array) else plain  # some have no plain form at all
    part = array
    while len(part.shape) > 1 and math.prod(part.shape[1:]) > MAX_VALUES:
        part = part[0]
    rows = max(1, MAX_VALUES // math.prod(part.shape[1:]))
    kind = str(array.dtype)
    return {
        "shape": list(shape),
        "dtype": kind,
        "first_values": part[:rows].tolist(),
        "left_out": count - rows * math.prod(part.shape[1:]),
    }


def _table(frame: Any) -> dict[str, Any]:
    """A table as its columns and rows; of a large one the first rows, and how many are left out."""
    count, width = (int(size) for size in frame.shape)
    shown = frame.iloc[:, :MAX_COLUMNS] if hasattr(frame, "iloc") else frame[:, :MAX_COLUMNS]
    shown = shown.head(max(1, MAX_VALUES // max(1, min(width, MAX_COLUMNS))))
    names = [_cell(name) for name in shown.columns]
    if hasattr(shown, "itertuples"):
        is_indexed = type(shown.index).__name__ != "RangeIndex"
        names = [
            *(["index" if name is None else _cell(name) for name in shown.index.names] if is_indexed else []),
            *names,
        ]
        found = shown.itertuples(index=is_indexed, name=None)
        rows = ([*row[0], *row[1:]] if is_indexed and shown.index.nlevels > 1 else row for row in found)
    else:
        rows = shown.iter_rows()
    kept = _within([[_cell(cell) for cell in row] for row in rows])
    left_out = {"rows_left_out": count - len(kept), "columns_left_out": max(0, width - MAX_COLUMNS)}
    return {"columns": names, "rows": kept, **{name: number for name, number in left_out.items() if number}}


def _within(rows: list[list[Any]]) -> list[list[Any]]:
    """As many rows as fit."""
    left = MAX_TABLE_CHARACTERS
    for number, row in enumerate(rows):
        left -= sum(len(str(cell)) + 3 for cell in row)
        if left < 0:
            return rows[:number]
    return rows


def _cell(cell: Any) -> Any:
    """A cell: null where there is no value, and no longer than a page."""
    if type(cell).__name__ in _MISSING or (isinstance(cell, float) and cell != cell):  # noqa: PLR0124 - true of NaN alone
        return None
    return cut(cell, _MAX_CELL_CHARACTERS) if isinstance(cell, str) else cell
