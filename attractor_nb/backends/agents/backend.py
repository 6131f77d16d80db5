"""Agents of the command line as backends (spec 4.5; ruling 26)."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from attractor_nb.backends.agents.claude import Claude
from attractor_nb.backends.agents.codex import Codex
from attractor_nb.backends.agents.dialect import AgentCall
from attractor_nb.backends.agents.failures import Failure, error_of
from attractor_nb.backends.agents.gemini import Gemini
from attractor_nb.backends.agents.installed import find_executable
from attractor_nb.backends.agents.listening import Listener
from attractor_nb.backends.agents.said import Complained, Ended, plain_text
from attractor_nb.backends.agents.saved_session import SavedSession
from attractor_nb.backends.agents.task_text import task_text
from attractor_nb.decisions.model_choices import nodes_that_ask
from attractor_nb.errors import OptionError, RetryableError, StageError
from attractor_nb.model.attributes import AGENT_TOOLS, REASONING_EFFORTS
from attractor_nb.model.events import RunWarning
from attractor_nb.model.providers import read_model
from attractor_nb.model.response import Response
from attractor_nb.processes import LocalProcesses
from attractor_nb.stage import current_stage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from attractor_nb.backends.agents.dialect import Dialect
    from attractor_nb.backends.agents.transcript import Transcript
    from attractor_nb.context import Context
    from attractor_nb.model.graph import Graph, Node
    from attractor_nb.model.outcome import Usage
    from attractor_nb.protocols import CommandResult, Processes
    from attractor_nb.stage import StageScope

STDERR_NAME: Final = "agent.stderr.txt"
TASK_NAME: Final = "agent.prompt.md"
_TAIL_CHARACTERS: Final = 2000


class AgentBackend:
    """Has an agent of the command line do the stages; its subclasses say which.

    The agent works in the run's working directory (``workdir=``), reads there, and may change files or run
    commands only where the node's ``allowed_tools`` has ``write`` or ``run``. What it prints is read as it
    comes. Under ``full`` fidelity the stages of a thread go on with one session of the agent; all others
    begin a fresh one. It gets its own keys from the environment, and no other provider's.

    Args:
        executable: Its program, where it is not on the PATH under its own name.
        arguments: More flags for each call, such as ``("--max-turns=20",)``.
        variables: More environment variables that it gets, by name, such as those of a cloud that serves it:
            it inherits no others that hold keys, but its own.
        is_unrestricted: It may do everything, unasked and outside of the working directory, too. For
            machines that can be thrown away.
        processes: Starts it; by default what starts the run's commands.

    Raises:
        OptionError: It is not installed, or ``arguments`` or ``variables`` is no list of texts.
    """

    dialect: ClassVar[Dialect]
    has_effects: Final = True
    """It sees and may change more than its stage's directory (``protocols.DescribesCalls``)."""

    def __init__(
        self,
        *,
        executable: str = "",
        arguments: Sequence[str] = (),
        variables: Sequence[str] = (),
        is_unrestricted: bool = False,
        processes: Processes | None = None,
    ) -> None:
        self._executable = find_executable(self.dialect, executable)
        self._arguments = _texts("arguments", arguments, 'arguments=("--max-turns=20",)')
        self._variables = _texts("variables", variables, 'variables=("AWS_ACCESS_KEY_ID",)')
        self._is_unrestricted = is_unrestricted
        self._processes = processes

    async def run(self, node: Node, prompt: str, context: Context) -> Response:  # noqa: ARG002 - the interface of all backends
        """The agent's last message. An empty one is given back as it is: it is no success.

        Raises:
            RetryableError, TerminalError, StageError: It failed (Appendix D), or ended without a word on how.
        """
        scope = _scope()
        _tell_of_hooks(node, scope, self.dialect.name)
        saved = self._saved_session(scope)
        call = self._call(node, prompt, scope, saved.session)
        listener = Listener(self.dialect, scope, asyncio.get_running_loop().time)
        usage, finish, error = None, "", "it was cut off"
        try:
            result = await self._run(call, scope, listener)
            told = listener.transcript.ended.usage if listener.transcript.ended else None
            usage = saved.own_part(told) if told and self.dialect.counts_whole_sessions else told
            response = _response(self.dialect, listener, result, usage)
            if scope is not None and scope.conversation is not None and listener.transcript.session:
                kept = saved.gone_on(listener.transcript.session, told)
                scope.conversation.save(kept.text())
            finish, error = "length" if response.is_truncated else "stop", ""
        except Exception as failure:
            error = failure.message if isinstance(failure, StageError) else str(failure)
            raise
        finally:
            listener.announce_call(usage=usage, finish=finish, error=error, model=call.model)
        return response

    def check_graph(self, graph: Graph) -> None:
        """Refuse a node that names a server: the agent would send its prompt to another.

        Raises:
            OptionError: A node does, and which.
        """
        for child in graph.children.values():
            self.check_graph(child)
        for node in nodes_that_ask(graph):
            if address := node.get("llm.base_url", str, "").strip():
                raise OptionError(
                    f"{node.id} names the server {address}, and {self.dialect.name} asks its own",
                    hint='leave llm.base_url out, or have the models asked directly: backend="llm"',
                )

    def call_inputs(self, node: Node, context: Context) -> Mapping[str, Any]:  # noqa: ARG002 - the interface of ``protocols.DescribesCalls``
        """What goes into a call beside the prompt."""
        call = self._call(node, "", None, "")
        return {
            "agent": self.dialect.name,
            "model": call.model,
            "effort": call.effort,
            "system_prompt": call.system_prompt,
            "tools": sorted(call.tools),
            "is_unrestricted": call.is_unrestricted,
            "arguments": list(call.more),
        }

    def _call(self, node: Node, prompt: str, scope: StageScope | None, session: str) -> AgentCall:
        words = {word.strip() for word in node.get("allowed_tools", str, "").split(",")}
        effort = node.get("reasoning_effort", str, "") if "reasoning_effort" in node.attrs else ""
        call = AgentCall(
            task="",
            model=read_model(node.llm_model).model,
            effort=effort if effort in REASONING_EFFORTS else "",
            system_prompt=node.get("llm.system_prompt", str, ""),
            tools=frozenset(words & set(AGENT_TOOLS)),
            session=session,
            directory=None if scope is None else scope.files.directory.absolute(),
            is_unrestricted=self._is_unrestricted,
            more=self._arguments,
        )
        return replace(call, task=task_text(prompt, call.directory if _may_report(node, call) else None))

    def _saved_session(self, scope: StageScope | None) -> SavedSession:
        if scope is None or scope.conversation is None:
            return SavedSession(self.dialect.name)
        conversation = scope.conversation
        return SavedSession.read(conversation.read(), self.dialect.name, conversation.thread)

    async def _run(self, call: AgentCall, scope: StageScope | None, listener: Listener) -> CommandResult:
        """Run the program to its end.

        Raises:
            TerminalError: It cannot be started.
            StorageError: What it says cannot be written.
        """
        processes, directory = self._place(scope)
        text = self.dialect.stdin(call)
        if scope is not None:
            scope.files.write_text(TASK_NAME, text)
        try:
            result = await processes.run(
                [self._executable, *self.dialect.arguments(call)],
                cwd=directory,
                env=self._environment(),
                stdin=text.encode("utf-8", "backslashreplace"),
                on_output=listener.take,
            )
        finally:
            listener.finish()
        if scope is not None and result.stderr:
            scope.files.write_text(STDERR_NAME, plain_text(result.stderr))
        return result

    def _environment(self) -> dict[str, str]:
        """What it gets beside what every command inherits."""
        return {
            name: value
            for name, value in os.environ.items()
            if name.startswith(self.dialect.own_variables) or name in self._variables
        }

    def _place(self, scope: StageScope | None) -> tuple[Processes, Path | None]:
        """What starts the agent, and where it works: on a worker in the stage's own directory."""
        if scope is None:
            return self._processes or LocalProcesses(), None
        if scope.workplace is None:
            return self._processes or LocalProcesses(), scope.files.directory
        return self._processes or scope.workplace.processes, scope.workplace.directory

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._executable!r})"


class ClaudeBackend(AgentBackend):
    """Claude Code; see ``AgentBackend``."""

    dialect = Claude()


class CodexBackend(AgentBackend):
    """Codex CLI; see ``AgentBackend``."""

    dialect = Codex()


class GeminiBackend(AgentBackend):
    """Gemini CLI; see ``AgentBackend``."""

    dialect = Gemini()


def _scope() -> StageScope | None:
    try:
        return current_stage()
    except LookupError:
        return None


def _tell_of_hooks(node: Node, scope: StageScope | None, name: str) -> None:
    """Warn that an agent asks no hooks of ours: a check that somebody counts on is not made (spec 9.7)."""
    if scope is None or scope.workplace is None:
        return
    for when in ("pre", "post"):
        if scope.workplace.hook(node, when):
            message = f"tool_hooks.{when} of {node.id} is not run: {name} calls its tools itself"
            scope.announce(RunWarning(message=message, node=node.id))


def _texts(name: str, value: Sequence[str], example: str) -> tuple[str, ...]:
    """An argument that is a list of texts.

    Raises:
        OptionError: It is something else.
    """
    if isinstance(value, str) or not all(isinstance(text, str) for text in value):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise OptionError(f"{name} is a list of texts, not {value!r:.80}", hint=example)
    return tuple(value)


def _may_report(node: Node, call: AgentCall) -> bool:
    """Whether the status file is offered: to who can write it, and was not asked for a verdict in words."""
    asks = node.get("verdict", str, "") == "json" or bool(node.get("response_schema", str, ""))
    return call.may_write and not asks


def _response(dialect: Dialect, listener: Listener, result: CommandResult, usage: Usage | None) -> Response:
    """The answer of a call that succeeded.

    Raises:
        StageError: It did not.
    """
    transcript, ended = listener.transcript, listener.transcript.ended
    if ended is not None and not ended.is_failure and result.exit_code == 0:
        return Response(transcript.answer, usage=usage, is_truncated=ended.is_truncated)
    if result.exit_code == 0 and ended is None and transcript.complaint is None:
        raise RetryableError(_without_end(dialect, listener))
    raise error_of(_failure(transcript, result), dialect)


def _failure(transcript: Transcript, result: CommandResult) -> Failure:
    """What an agent said about its failure: at its end, else on the way, else on stderr."""
    ended, complaint = transcript.ended or Ended(), transcript.complaint or Complained("")
    if ended.error and complaint.message not in ended.error:
        return Failure(
            ended.error, ended.status, result.exit_code
        )  # what went wrong before was something else
    words = ended.error or complaint.message
    if not words:
        source = result.stderr.strip() or (result.stdout.strip() if transcript.is_empty else "")
        words = plain_text(source)[-_TAIL_CHARACTERS:]
    return Failure(words, ended.status or complaint.status, result.exit_code)


def _without_end(dialect: Dialect, listener: Listener) -> str:
    if listener.transcript.is_empty:
        what = f"ended with exit code 0 and said nothing that {dialect.title} is known to say"
    else:
        what = "ended with exit code 0 and no word on how it went: its output is cut off"
    dropped = f"; {listener.dropped_lines} lines were too long to be read" if listener.dropped_lines else ""
    return f"{dialect.name} {what}{dropped}"
