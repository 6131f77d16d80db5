"""The tools that there are: their names, what the model is told of them, and what they take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct

from attractor_nb.backends.llm.tools.file_tools import MAX_DEPTH
from attractor_nb.backends.llm.tools.tool_problems import ToolProblem, cut, shown_number

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
    """What a model may call, wherever it comes from."""

    @property
    def name(self) -> str:
        """Its name, as the model knows it."""
        ...

    @property
    def description(self) -> str:
        """What it does, for the model."""
        ...

    @property
    def schema(self) -> dict[str, Any]:
        """What it takes, as JSON Schema."""
        ...

    def check(self, arguments: Mapping[str, Any]) -> None:
        """Refuse arguments that it does not take."""
        ...


class FoundTool(Struct, frozen=True):
    """A tool that is not ours: a function of the caller's own, or a tool of an MCP server."""

    name: str  #: As the model knows it.
    description: str  #: What it does.
    schema: dict[str, Any]  #: What it takes, as JSON Schema.
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
        """What it takes, as JSON Schema."""
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
