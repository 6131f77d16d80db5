"""A command (spec 4.10; ruling 25).

No text of the context or of a model ever becomes part of the command: values reach it as JSON on
stdin, as a file, and as environment.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from attractor_nb.decisions.replays.cache_keys import READS_ATTRIBUTE, command_call, read_values
from attractor_nb.handlers.codergen import place_of
from attractor_nb.model.calls.call_content import StageCall
from attractor_nb.model.outcome import Outcome, StageStatus
from attractor_nb.model.vocabulary import environment_variables
from attractor_nb.model.vocabulary.value_forms import ITEM, ITEM_INDEX, comma_list
from attractor_nb.stage import StageScope, current_stage
from attractor_nb.storage.files.strict_json import json_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.context import Context
    from attractor_nb.model.graph import Graph, Node
    from attractor_nb.protocols import CommandResult, Processes

CONTEXT_FILE = "context.json"
TAIL_CHARACTERS = 500
"""Longest part of a failed command's stderr in its failure reason."""
MAX_LINE_CHARACTERS = 4_000
"""Length of ``tool.last_line``: the end of a longer line."""
LAST_LINE_KEY = "tool.last_line"
MAX_VARIABLE_BYTES = 100_000
"""Length of an item in the environment: a system allows a variable 128 KiB."""
_PRIVATE_PREFIX = "internal."


class ToolHandler:
    """Runs a node's ``tool_command``; its processes end it when the node's time is over."""

    keeps_own_time = True
    observes_failures = True

    def __init__(self, processes: Processes) -> None:
        self._processes = processes

    async def execute(self, node: Node, context: Context, graph: Graph, logs_root: Path) -> Outcome:  # noqa: ARG002 - the interface of all handlers
        """SUCCESS for exit code 0, else FAIL with the exit code and the end of stderr."""
        command, line = node.tool_command, _line_of(node)
        if not command.strip():
            return Outcome.fail("No tool_command specified", is_terminal=True)
        scope = current_stage()
        values = _shown(context)
        document = json_bytes(values)
        scope.files.write_text(CONTEXT_FILE, document.decode())
        timeout = node.timeout

        def announce(channel: str, text: str) -> None:
            scope.stream(text, channel)

        result = await self._processes.run(
            line,
            env={**_environment(scope), **(_item_environment(context) if scope.has_item else {})},
            stdin=document,
            timeout_seconds=None if timeout is None else timeout.seconds,
            output_directory=scope.files.directory,
            on_output=announce,
        )
        return _outcome(command, result, f"{timeout}")

    def stage_call(self, node: Node, context: Context, graph: Graph) -> StageCall:  # noqa: ARG002 - the interface of all that describe stages
        """The command that ``execute`` would run, and the context values that it reads."""
        if getattr(self._processes, "starts_nothing", False):
            return StageCall(None, "the command is only rehearsed")
        scope = current_stage()
        values = _shown(context)
        declared = node.get(READS_ATTRIBUTE, str)
        read = read_values(values, None if declared is None else comma_list(declared))
        inputs = command_call(node.id, _line_of(node), read, place=place_of(scope))
        return StageCall(inputs, has_effects=True, files={CONTEXT_FILE: json_bytes(values).decode()})


def _line_of(node: Node) -> str:
    """The command as the shell of the system runs it."""
    if node.get("tool_shell", str, "sh") == "bash":
        return shlex.join(["bash", "-o", "pipefail", "-c", node.tool_command])
    return node.tool_command


def _shown(context: Context) -> dict[str, Any]:
    """The values that a command is given: not the last line of the command before, which ``tool.output`` contains.

    A value more would be another call for the cache and for cassettes.
    """
    snapshot = context.snapshot().items()
    return {key: value for key, value in snapshot if not key.startswith(_PRIVATE_PREFIX) and key != LAST_LINE_KEY}


def _environment(scope: StageScope) -> dict[str, str]:
    directory = scope.files.directory.absolute()
    return {
        environment_variables.RUN_ID: scope.run_id,
        environment_variables.NODE_ID: scope.node_id,
        environment_variables.STAGE_DIR: str(directory),
        environment_variables.LOGS_ROOT: str(scope.logs_root.absolute()),
        environment_variables.CONTEXT_FILE: str(directory / CONTEXT_FILE),
        environment_variables.IDEMPOTENCY_KEY: scope.idempotency_key,
    }


def _item_environment(context: Context) -> dict[str, str]:
    """The item that the command is run for, where it is run for each of a list; texts as they are, else JSON.

    One that no variable can hold, because it is too long or has a NUL, is in the JSON on stdin alone.
    """
    found: dict[str, str] = {}
    for name, key in ((environment_variables.ITEM_VALUE, ITEM), (environment_variables.ITEM_NUMBER, ITEM_INDEX)):
        value = context.get(key)
        text = value if isinstance(value, str) else json_bytes(value).decode()
        if "\0" not in text and len(text.encode("utf-8", "surrogateescape")) <= MAX_VARIABLE_BYTES:
            found[name] = text
    return found


def _last_line(text: str) -> str:
    r"""The last line that is not blank, as scripts print their result there.

    >>> _last_line("checking\r\nok \r\n\n"), _last_line("")
    ('ok', '')
    """
    return text.rstrip().rpartition("\n")[2].strip()[-MAX_LINE_CHARACTERS:]


def _outcome(command: str, result: CommandResult, timeout: str) -> Outcome:
    updates: dict[str, Any] = {
        "tool.output": result.stdout,
        "tool.stderr": result.stderr,
        "tool.exit_code": result.exit_code,
        LAST_LINE_KEY: _last_line(result.stdout),
    }
    if result.is_timed_out:
        reason = f"the command timed out after {timeout} and was ended"
    elif result.exit_code != 0:
        reason = f"the command ended with exit code {result.exit_code}"
    else:
        return Outcome(StageStatus.SUCCESS, notes=f"Tool completed: {command}", context_updates=updates)
    if tail := result.stderr.strip()[-TAIL_CHARACTERS:]:
        reason += f": {tail}"
    elif tail := result.stdout.strip()[-TAIL_CHARACTERS:]:
        reason += f"; stdout.txt ends with: {tail}"
    elif not result.is_timed_out:
        reason += "; it wrote nothing"
    return Outcome.fail(reason).with_updates(updates)
