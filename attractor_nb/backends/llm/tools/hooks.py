"""Commands of the graph around each tool call (spec 9.7).

A hook learns of the call by its environment and by JSON on stdin; nothing that a model wrote becomes part
of the command. A pre-hook that ends with another exit code than 0, does not end in time or cannot be
started skips the call; a post-hook is only recorded.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.backends.llm.tools.tool_problems import MAX_SHOWN_CHARACTERS
from attractor_nb.errors import AttractorError
from attractor_nb.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from attractor_nb.model.graph import Node
    from attractor_nb.stage import StageScope, Workplace

PRE, POST = "pre", "post"
TIMED_OUT: Final = 124
"""Recorded as the exit code of a hook whose time ran out."""
NOT_STARTED: Final = 127
"""Recorded as the exit code of a hook that could not be started."""
_MAX_NAME_CHARACTERS: Final = 200


@dataclass(frozen=True, slots=True)
class HookResult:
    """What a hook came to.

    Attributes:
        when: ``pre`` or ``post``.
        exit_code: Its exit code; ``TIMED_OUT``, ``NOT_STARTED``.
        message: The end of what it wrote to stderr, or why there is none.
    """

    when: str
    exit_code: int
    message: str

    @property
    def plain(self) -> tuple[str, int, str]:
        """As an event has it."""
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
            "ATTRACTOR_HOOK": when,
            "ATTRACTOR_TOOL_NAME": _named(tool),
            "ATTRACTOR_TOOL_CALL_ID": _named(call_id),
        }


def stage_environment(scope: StageScope, workdir: Path) -> dict[str, str]:
    """What commands around a model learn of their stage by the environment."""
    return {
        "ATTRACTOR_RUN_ID": scope.run_id,
        "ATTRACTOR_NODE_ID": scope.node_id,
        "ATTRACTOR_STAGE_DIR": str(scope.files.directory.absolute()),
        "ATTRACTOR_LOGS_ROOT": str(scope.logs_root.absolute()),
        "ATTRACTOR_IDEMPOTENCY_KEY": scope.idempotency_key,
        "ATTRACTOR_WORKDIR": str(workdir),
    }


def _named(text: str) -> str:
    """A name that came from outside, as an environment variable can hold it: one line, no NUL."""
    return "".join(character if character.isprintable() else "_" for character in text[:_MAX_NAME_CHARACTERS])
