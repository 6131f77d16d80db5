"""One tool call from its hooks to its record (spec 9.7): bounded, recorded, never a failure of its stage.

A hook learns of the call by its environment and by JSON on stdin; nothing that a model wrote becomes part
of the command. A pre-hook that ends with another exit code than 0, does not end in time or cannot be
started skips the call; a post-hook is only recorded.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.toolsets.abstract import ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from attractor_nb.backends.llm.tools.catalog import (
    DEFAULT_COMMAND_SECONDS,
    MAX_COMMAND_CHARACTERS,
    CallableTool,
    FoundTool,
)
from attractor_nb.backends.llm.tools.file_tools import (
    MAX_KEPT_CHARACTERS,
    MAX_RESULT_CHARACTERS,
    MAX_SHOWN_CHARACTERS,
    ToolProblem,
    cut,
    cut_middle,
    list_files,
    read_file,
    shown_arguments,
    write_file,
)
from attractor_nb.errors import AttractorError, StageError, TerminalError
from attractor_nb.maybe_async import call
from attractor_nb.model.events.stages import ToolCallEnded
from attractor_nb.model.texts import whole
from attractor_nb.model.vocabulary import environment_variables
from attractor_nb.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from pydantic_ai import RunContext

    from attractor_nb.model.graph import Node
    from attractor_nb.stage import StageScope, Workplace


PRE, POST = "pre", "post"
TIMED_OUT: Final = 124
"""Recorded as the exit code of a hook whose time ran out."""
NOT_STARTED: Final = 127
"""Recorded as the exit code of a hook that could not be started."""
_MAX_NAME_CHARACTERS: Final = 200

CALLS_FILE: Final = "tool_calls.jsonl"
"""In the stage's directory: a line for each call."""
MAX_CALLS: Final = 200
"""In one attempt; then the model is told that there are no more."""
_FILE_TOOLS: Final = {"read_file": read_file, "write_file": write_file, "list_files": list_files}


@dataclass(frozen=True, slots=True)
class HookResult:
    """The result of a hook."""

    when: str  #: ``pre`` or ``post``.
    exit_code: int  #: Its exit code; ``TIMED_OUT``, ``NOT_STARTED``.
    message: str  #: The end of what it wrote to stderr, or why there is none.

    @property
    def plain(self) -> tuple[str, int, str]:
        """The fields for an event."""
        return self.when, self.exit_code, self.message


class Hooks:
    """The hooks of a stage's tool calls."""

    def __init__(self, node: Node, scope: StageScope, workplace: Workplace) -> None:
        self._commands = {when: workplace.hook(node, when) for when in (PRE, POST)}
        self._scope = scope
        self._workplace = workplace
        self._seconds = workplace.hook_seconds(node)

    async def run(
        self, when: str, tool: str, call_id: str, arguments: Mapping[str, Any], **facts: Any
    ) -> HookResult | None:
        """Run a hook; None when there is none.

        Args:
            when: ``pre`` or ``post``.
            tool: Name of the tool.
            call_id: The model's name of the call.
            arguments: What the tool is called with.
            **facts: Of a post-hook: ``result``, ``error``, ``duration`` in seconds.
        """
        command = self._commands[when]
        if not command:
            return None
        document = {
            "hook": when,
            "tool": tool,
            "call_id": call_id,
            "arguments": dict(arguments),
            **self._place(),
            **facts,
        }
        try:
            ended = await self._workplace.processes.run(
                command,
                env=self._environment(when, tool, call_id),
                stdin=json.dumps(document, ensure_ascii=False).encode("utf-8", "backslashreplace"),
                timeout_seconds=self._seconds,
            )
        except AttractorError as error:
            return HookResult(when, NOT_STARTED, redacted(error.message))
        if ended.is_timed_out:
            return HookResult(when, TIMED_OUT, f"it took more than {self._seconds:g} s and was ended")
        return HookResult(when, ended.exit_code, redacted(ended.stderr.strip())[-MAX_SHOWN_CHARACTERS:])

    def _place(self) -> dict[str, Any]:
        scope = self._scope
        return {
            "run_id": scope.run_id,
            "node_id": scope.node_id,
            "branch": scope.branch,
            "visit": scope.visit,
            "attempt": scope.attempt,
            "workdir": str(self._workplace.directory),
        }

    def _environment(self, when: str, tool: str, call_id: str) -> dict[str, str]:
        return {
            **stage_environment(self._scope, self._workplace.directory),
            environment_variables.HOOK: when,
            environment_variables.TOOL_NAME: _named(tool),
            environment_variables.TOOL_CALL_ID: _named(call_id),
        }


def stage_environment(scope: StageScope, workdir: Path) -> dict[str, str]:
    """The environment variables that describe a stage to the commands around a model."""
    return {
        environment_variables.RUN_ID: scope.run_id,
        environment_variables.NODE_ID: scope.node_id,
        environment_variables.STAGE_DIR: str(scope.files.directory.absolute()),
        environment_variables.LOGS_ROOT: str(scope.logs_root.absolute()),
        environment_variables.IDEMPOTENCY_KEY: scope.idempotency_key,
        environment_variables.WORKDIR: str(workdir),
    }


def _named(text: str) -> str:
    """A name that came from outside, as an environment variable can hold it: one line, no NUL."""
    return "".join(character if character.isprintable() else "_" for character in text[:_MAX_NAME_CHARACTERS])


@dataclass(slots=True)
class _Record:
    """The record of a call."""

    tool: str
    call_id: str
    arguments: Mapping[str, Any]
    result: str = ""
    error: str = ""
    skipped: str = ""
    hooks: list[HookResult] = field(default_factory=list[HookResult])


class ToolCalls:
    """Calls the tools of one attempt."""

    def __init__(self, node: Node, scope: StageScope, workplace: Workplace) -> None:
        self._scope = scope
        self._workplace = workplace
        self._hooks = Hooks(node, scope, workplace)
        self._count = 0

    async def run(self, tool: CallableTool, call_id: str, arguments: Mapping[str, Any]) -> str:
        """Call a tool with its hooks; return the text for the model."""
        began = time.monotonic()
        record = _Record(tool.name, call_id, arguments)
        try:
            await self._made(tool, record, began)
        except StageError as failure:  # the stage ends with it, and the call is kept all the same
            record.error = cut(failure.message, MAX_SHOWN_CHARACTERS)
            self._keep(record, time.monotonic() - began)
            raise
        self._keep(record, time.monotonic() - began)
        if record.skipped:
            raise ToolProblem(f"the call was skipped: {record.skipped}")
        if record.error:
            raise ToolProblem(record.error)
        return record.result

    async def _made(self, tool: CallableTool, record: _Record, began: float) -> None:
        """Make the call, unless it is one too many or its pre-hook says no."""
        self._count += 1
        if self._count > MAX_CALLS:
            record.error = f"this stage has made its {MAX_CALLS} tool calls; answer with what you have"
            return
        before = await self._hooks.run(PRE, tool.name, record.call_id, record.arguments)
        if before is not None:
            record.hooks.append(before)
            if before.exit_code != 0:
                record.skipped = f"the pre-hook ended with exit code {before.exit_code}"
                record.skipped += f": {before.message}" if before.message else ""
                return
        try:
            tool.check(record.arguments)
            answer = redacted(whole(await self._done(tool, record.arguments)))
            record.result = cut(answer, MAX_RESULT_CHARACTERS + MAX_SHOWN_CHARACTERS)
        except ToolProblem as problem:
            record.error = cut(redacted(whole(str(problem))), MAX_SHOWN_CHARACTERS)
        after = await self._hooks.run(
            POST,
            tool.name,
            record.call_id,
            record.arguments,
            result=record.result,
            error=record.error,
            duration=round(time.monotonic() - began, 3),
        )
        if after is not None:
            record.hooks.append(after)

    async def _done(self, tool: CallableTool, arguments: Mapping[str, Any]) -> str:
        name = tool.name
        if isinstance(tool, FoundTool):
            return cut_middle(await tool.call(arguments), MAX_RESULT_CHARACTERS)
        if name in _FILE_TOOLS:
            return await call(partial(_FILE_TOOLS[name], self._workplace.directory, **arguments))
        return await self._command(**arguments)

    async def _command(self, command: str, timeout_seconds: int = DEFAULT_COMMAND_SECONDS) -> str:
        if not command.strip() or "\0" in command or len(command) > MAX_COMMAND_CHARACTERS:
            raise ToolProblem(f"command is a text of 1 to {MAX_COMMAND_CHARACTERS} characters")
        directory = self._workplace.directory
        try:
            ended = await self._workplace.processes.run(
                command,
                cwd=directory,
                env=stage_environment(self._scope, directory),
                timeout_seconds=float(timeout_seconds),
            )
        except TerminalError as error:
            raise ToolProblem(error.message) from error
        lines = [
            f"timed out after {timeout_seconds} s, and was ended"
            if ended.is_timed_out
            else f"exit code {ended.exit_code}"
        ]
        for channel, text in (("stdout", ended.stdout), ("stderr", ended.stderr)):
            if text:
                lines.append(f"{channel}:\n{cut_middle(text, MAX_RESULT_CHARACTERS // 2)}")
        return "\n".join(lines)

    def _keep(self, record: _Record, duration: float) -> None:
        """Write the call's line and announce it."""
        scope = self._scope
        line = {
            "tool": record.tool,
            "call_id": cut(record.call_id, MAX_SHOWN_CHARACTERS),
            "arguments": shown_arguments(record.arguments, MAX_KEPT_CHARACTERS),
            "result": cut(record.result, MAX_KEPT_CHARACTERS),
            "error": record.error,
            "skipped": record.skipped,
            "hooks": [list(entry.plain) for entry in record.hooks],
            "duration": round(duration, 3),
            "attempt": scope.attempt,
        }
        scope.files.append_text(CALLS_FILE, json.dumps(line, ensure_ascii=False) + "\n")
        scope.announce(
            ToolCallEnded(
                **scope.place,
                tool=record.tool,
                call_id=cut(record.call_id, MAX_SHOWN_CHARACTERS),
                arguments=shown_arguments(record.arguments, MAX_SHOWN_CHARACTERS),
                duration=duration,
                result=cut(record.result, MAX_SHOWN_CHARACTERS),
                error=record.error,
                skipped=record.skipped,
                hooks=tuple(entry.plain for entry in record.hooks),
            )
        )


# A stage's tools as pydantic-ai takes them. Imported only where a model is about to be asked.

_ANY_OBJECT: Final = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))
"""The arguments of a tool are checked here, so that an invalid call is recorded, too."""
_MAX_RETRIES: Final = 3
"""For arguments that are not even JSON."""


class StageToolset(AbstractToolset[Any]):
    """The tools that a node allows, called one after the other."""

    def __init__(self, find: Callable[[], Awaitable[Sequence[CallableTool]]], calls: ToolCalls) -> None:
        """Take what finds the tools, which may have to start a server first, and what calls them."""
        self._find = find
        self._tools: dict[str, CallableTool] = {}
        self._calls = calls

    @property
    def id(self) -> str:
        """The id of the toolset for pydantic-ai."""
        return "attractor"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:  # noqa: ARG002 - the interface of toolsets
        """All tools, as the model receives them."""
        self._tools = self._tools or {tool.name: tool for tool in await self._find()}
        return {
            name: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=name, description=tool.description, parameters_json_schema=tool.schema, sequential=True
                ),
                max_retries=_MAX_RETRIES,
                args_validator=_ANY_OBJECT,
            )
            for name, tool in self._tools.items()
        }

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],  # noqa: ARG002 - the interface of toolsets
    ) -> str:
        """Call a tool. The model receives a problem, which ends nothing."""
        try:
            return await self._calls.run(self._tools[name], ctx.tool_call_id or "", tool_args)
        except ToolProblem as problem:
            raise ToolFailed(str(problem)) from None
