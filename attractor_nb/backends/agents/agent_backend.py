"""Agents of the command line as backends (spec 4.5; ruling 26)."""

from __future__ import annotations

import asyncio
import json
import os
import re
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from attractor_nb.backends.agents.agent_events import SavedSession, Tokens, plain_text
from attractor_nb.backends.agents.agent_failures import denials, error_of
from attractor_nb.backends.agents.claude import Claude
from attractor_nb.backends.agents.dialects import AgentCall, Codex, Dialect, Gemini
from attractor_nb.backends.agents.installed import find_executable
from attractor_nb.backends.agents.output_reader import Listener, ended_in_grace, listed_price
from attractor_nb.decisions.planning.model_choices import nodes_that_ask
from attractor_nb.decisions.response_schemas import native_schema
from attractor_nb.errors import OptionError, RetryableError, StageError
from attractor_nb.maybe_async import call as call_in_thread
from attractor_nb.model.allowed_tools import agent_tool, read_allowed_tools
from attractor_nb.model.calls.call_content import AGENT_TASK_FILE, Response, value_hashes
from attractor_nb.model.calls.providers import read_model
from attractor_nb.model.events import RunWarning
from attractor_nb.model.outcome import Usage
from attractor_nb.model.vocabulary.attribute_table import AGENT_TOOLS, REASONING_EFFORTS
from attractor_nb.processes import LocalProcesses
from attractor_nb.processes.local import SESSION_MARKS
from attractor_nb.stage import StageScope, current_stage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from attractor_nb.context import Context
    from attractor_nb.model.graph import Graph, Node
    from attractor_nb.protocols import CommandResult, Processes


# The task of an agent: the prompt, the form of its report, and the schema of its answer (spec 4.5).
#
# Strict mode wants every object closed and every property required. That only narrows the answers of a model, and
# our own reader still validates the answer against the original schema.

STATUS_NAME = "status.json"
TURN: Final = (
    "This session ends with your last message, and whatever you started ends with it. Leave nothing in the "
    "background: wait until all of it is done, and answer then."
)

_KEPT: Final = frozenset({"type", "enum", "const", "description", "$ref", "pattern"})
_SAYING: Final = frozenset({"type", "enum", "const", "$ref", "anyOf"})
_RENAMED: Final = {"oneOf": "anyOf"}
_LEFT_OUT: Final = frozenset(
    {
        "required",
        "additionalProperties",
        "title",
        "default",
        "examples",
        "format",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
    }
    | {"exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems"}
    | {"$schema", "$id", "$comment", "deprecated", "readOnly", "writeOnly"}
)
"""Keywords that only describe a value: left out, because not all of them are accepted, and our reader checks them."""


def task_text(prompt: str, directory: Path | None, *, is_turn: bool) -> str:
    """The prompt, with the offer to report in a file.

    Args:
        prompt: What the stage asks.
        directory: Where the file would be; None for no such offer.
        is_turn: Say that nothing outlives the turn: a message may promise what is never done (ruling 47).
    """
    if prompt.lstrip().startswith("/"):  # agents take it for their own command
        prompt = f"Task:\n\n{prompt}"
    parts = [prompt, TURN if is_turn else "", "" if directory is None else status_offer(directory)]
    return "\n\n".join(filter(None, parts))


def attached_files(scope: StageScope) -> list[Path]:
    """The attachments of a stage as files in its directory, the only form in which agents receive them."""
    places: list[Path] = []
    for number, each in enumerate(scope.attachments, 1):
        stem = re.sub(r"[^A-Za-z0-9_-]+", "_", each.shown_name.rpartition(".")[0])[:60]
        name = f"attached/{number}-{stem}.{each.media_type.partition('/')[2]}"
        scope.files.write_bytes(name, each.data)
        places.append(scope.files.directory.absolute() / name)
    return places


def with_attached_files(prompt: str, files: Sequence[Path]) -> str:
    """The prompt, and where what it names as attached is."""
    if not files:
        return prompt
    listed = "\n".join(f"- {place}" for place in files)
    return f"{prompt}\n\nThe attached files are here; look at them first:\n\n{listed}"


def status_offer(directory: Path) -> str:
    """The section of the prompt that offers the status file."""
    return (
        "## Reporting\n\n"
        f"When the task is done you may report how it went in the file {directory / STATUS_NAME}, as one "
        "JSON object:\n\n"
        '{"outcome": "success | partial_success | retry | fail", "notes": "what you did, in one sentence", '
        '"failure_reason": "why, unless it is a success", '
        '"preferred_next_label": "the way to go on, if the task names ways", '
        '"context_updates": {"key": "a JSON value for later stages"}}\n\n'
        "Only outcome is required. Without the file your last message is the result and counts as a success. "
        "Write nothing else into that directory."
    )


class _NotStrict(Exception):
    """The schema says something that strict mode cannot."""


def strict_schema(text: str) -> str:
    """The schema in strict form, as JSON; empty for one that has none.

    >>> strict_schema('{"type": "object", "properties": {"a": {"type": "string", "default": ""}}}')[:65]
    '{"type": "object", "properties": {"a": {"type": "string"}}, "requ'
    >>> strict_schema('{"type": "object", "additionalProperties": {"type": "string"}}')
    ''
    """
    try:
        return json.dumps(_strict(json.loads(text)), ensure_ascii=False) if text else ""
    except (_NotStrict, ValueError, RecursionError):
        return ""


def _strict(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, dict):
        raise _NotStrict  # true: anything
    given = cast("dict[str, Any]", schema)
    strict = {
        _RENAMED.get(name, name): _strict_part(name, value) for name, value in given.items() if name not in _LEFT_OUT
    }
    kinds = _items(given.get("type"))
    if "object" in kinds:
        if not strict.get("properties") or given.get("additionalProperties") not in (None, False):
            raise _NotStrict  # a mapping of anything
        strict |= {"required": list(strict["properties"]), "additionalProperties": False}
    if ("array" in kinds and "items" not in strict) or not strict.keys() & _SAYING:
        raise _NotStrict  # anything
    return strict


def _strict_part(name: str, value: Any) -> Any:
    if name in _KEPT:
        return value
    if name in ("anyOf", "oneOf"):
        return [_strict(entry) for entry in _items(value)]
    if name == "items":
        return _strict(value)
    if name in ("$defs", "definitions", "properties") and isinstance(value, dict):
        return {key: _strict(entry) for key, entry in cast("dict[str, Any]", value).items()}
    raise _NotStrict


def _items(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]


STDERR_NAME: Final = "agent.stderr.txt"
SCHEMA_NAME: Final = "agent.schema.json"


def _local_time() -> datetime:
    return datetime.now().astimezone()


class AgentBackend:
    """Runs each stage with an agent of the command line; its subclasses name the agent.

    The agent works in the run's working directory (``workdir=``), reads there, and may change files or run
    commands only where the node's ``allowed_tools`` has ``write`` or ``run``. What it prints is read as it
    comes. Under ``full`` fidelity the stages of a thread continue one session of the agent; all others
    begin a fresh one. It gets its own keys from the environment, and no other provider's.

    Args:
        executable: Its program, where it is not on the PATH under its own name.
        arguments: More flags for each call, such as ``("--max-turns=20",)``.
        variables: More environment variables that it gets, by name, such as those of a cloud that serves it:
            it inherits no others that hold keys, but its own.
        is_unrestricted: It may do everything, unasked and outside of the working directory, too. For
            machines that can be thrown away. Prompts of another's file are then asked about before a run.
        processes: Starts it; by default what starts the run's commands.
        now: The time with its zone: an agent whose limit "resets 3pm" is asked again then.

    Raises:
        OptionError: It is not installed, or ``arguments`` or ``variables`` is no list of texts.
    """

    dialect: Dialect
    has_effects: Final = True
    """It sees and may change more than its stage's directory (``protocols.DescribesCalls``)."""
    takes_attachments: Final = True
    """It is told where in the stage's directory they are."""
    keeps_sessions: ClassVar[bool] = True
    """The stages of a thread can continue one session of it."""
    works_in_turns: ClassVar[bool] = True
    """It may start work that is active behind its last message, and is told that this ends with its turn."""

    def __init__(
        self,
        *,
        executable: str = "",
        arguments: Sequence[str] = (),
        variables: Sequence[str] = (),
        is_unrestricted: bool = False,
        processes: Processes | None = None,
        now: Callable[[], datetime] = _local_time,
    ) -> None:
        self._executable = find_executable(self.dialect, executable)
        self._arguments = texts("arguments", arguments, 'arguments=("--max-turns=20",)')
        self._variables = texts("variables", variables, 'variables=("AWS_ACCESS_KEY_ID",)')
        self._is_unrestricted = is_unrestricted
        self._processes = processes
        self._now = now

    @property
    def acts_unasked(self) -> bool:
        """True if it may write or execute for any stage (``protocols.acts_unasked``)."""
        return self._is_unrestricted

    async def run(self, node: Node, prompt: str, context: Context) -> Response:  # noqa: ARG002 - the interface of all backends
        """The agent's last message. An empty one is given back as it is: it is no success.

        What the run is told meanwhile is the agent's next turn, in the same session.

        Raises:
            RetryableError, TerminalError, StageError: It failed (Appendix D), or ended without a word on how.
        """
        scope = _scope()
        _tell_of_hooks(node, scope, self.dialect.name)
        saved = self._saved_session(scope)
        prompt = with_attached_files(prompt, [] if scope is None else attached_files(scope))
        if scope is not None and scope.conversation is not None and not self.keeps_sessions:
            _tell(scope, f"{self.dialect.name} keeps no sessions: it cannot continue this thread")
        if scope is None or not self.keeps_sessions:
            return (await self._turn(node, prompt, scope, saved))[0]
        scope.reach = "turn"
        try:
            response, saved = await self._turn(node, prompt, scope, saved)
            while saved.session and (told := scope.more_instructions()):
                scope.check_spending()
                after, saved = await self._turn(node, told, scope, saved)
                response = after.behind(response)
        finally:  # with nothing awaited since the last look: what is told from here on, the next prompt carries
            scope.reach = ""
        return response

    async def _turn(
        self, node: Node, prompt: str, scope: StageScope | None, saved: SavedSession
    ) -> tuple[Response, SavedSession]:
        """Have the agent answer once: its last message, and the session afterwards; without an id if it told none."""
        call = self._call(node, prompt, scope, saved.session)
        listener = self._listener(scope)
        usage, finish, error = None, "", "it was cut off"
        try:
            try:
                result = await self._run(call, scope, listener)
            finally:  # also when it is cut off: what it has reported was consumed
                usage, tokens = self._reported(listener, saved)
                usage = await self._priced(usage, tokens, listener.transcript.model or call.model)
            response = self._response(listener, result, usage)
            kept = saved.gone_on(listener.transcript.session, listener.transcript.ended)
            if scope is not None and scope.conversation is not None and kept.session:
                scope.conversation.save(kept.text())
            finish, error = "length" if response.is_truncated else "stop", ""
        except Exception as failure:  # announced, whatever it is, and raised again
            error = failure.message if isinstance(failure, StageError) else str(failure)
            raise
        finally:
            listener.announce_call(usage=usage, finish=finish, error=error, model=call.model)
            if denied := listener.transcript.denied:
                _tell(scope, f"{denials(self.dialect, denied)}; allowed_tools says what it may do")
        return response, kept

    def check_graph(self, graph: Graph) -> None:
        """Refuse a node that names a server, or tools that the agent cannot be given.

        Its prompt would go to another server, and it would report work that it cannot have done.

        Raises:
            OptionError: A node does, and which.
        """
        for child in graph.children.values():
            self.check_graph(child)
        for node in nodes_that_ask(graph):
            if address := node.get("llm.base_url", str, "").strip():
                raise OptionError(
                    f"{node.id} names the server {address}, but {self.dialect.name} uses its own server",
                    hint='remove llm.base_url, or call the model directly: backend="llm"',
                )
            allowed = read_allowed_tools(node.get("allowed_tools", str, ""))
            if unknown := [word for word in allowed.agents if agent_tool(word) not in self.dialect.tool_names]:
                raise OptionError(
                    f"{node.id} allows {unknown[0]}, which {self.dialect.name} does not know",
                    hint=f"use {', '.join(AGENT_TOOLS)}, or the agent that has the tool",
                )
            if allowed.own or allowed.served:
                raise OptionError(
                    f"{node.id} allows your functions or MCP servers; {self.dialect.name} has its own",
                    hint='call the models directly: backend="llm"',
                )

    def call_inputs(self, node: Node, context: Context) -> Mapping[str, Any]:  # noqa: ARG002 - the interface of ``protocols.DescribesCalls``
        """The inputs of a call, except the prompt."""
        call = self._call(node, "", None, "")
        return {
            **self._call_facts(),
            "agent": self.dialect.name,
            "model": call.model,
            "effort": call.effort,
            "system_prompt": call.system_prompt,
            "tools": sorted((*call.tools, *call.named)),
            "is_unrestricted": call.is_unrestricted,
            "arguments": list(call.more),
        }

    def cache_inputs(self, node: Node) -> dict[str, Any]:  # noqa: ARG002 - as above
        """Hashes of its variables except its key: they can name a model, an address or an account (ruling 44)."""
        given = {name: value for name, value in self._environment().items() if name not in self.dialect.keys}
        return {"environment": value_hashes(given)} if given else {}

    def _call_facts(self) -> dict[str, Any]:
        """The inputs that only this kind of agent adds to a call."""
        return {}

    def _call(self, node: Node, prompt: str, scope: StageScope | None, session: str) -> AgentCall:
        allowed = read_allowed_tools(node.get("allowed_tools", str, ""))
        effort = node.get("reasoning_effort", str, "") if "reasoning_effort" in node.attrs else ""
        call = AgentCall(
            task="",
            model=read_model(node.llm_model).model,
            effort=effort if effort in REASONING_EFFORTS else "",
            system_prompt=node.get("llm.system_prompt", str, ""),
            tools=frozenset(allowed.built_in),
            named=allowed.agents,
            session=session,
            directory=None if scope is None else scope.files.directory.absolute(),
            schema="" if native_schema(node) is None else node.get("response_schema", str, ""),
            is_unrestricted=self._is_unrestricted,
            more=self._arguments,
        )
        if self.dialect.takes_schema_file and scope is not None and (strict := strict_schema(call.schema)):
            scope.files.write_text(SCHEMA_NAME, strict)
            call = replace(call, schema_file=scope.files.directory.absolute() / SCHEMA_NAME)
        directory = call.directory if _may_report(node, call) else None
        return replace(call, task=task_text(prompt, directory, is_turn=self.works_in_turns))

    def _listener(self, scope: StageScope | None) -> Listener:
        return Listener(self.dialect, scope, asyncio.get_running_loop().time)

    def _reported(self, listener: Listener, saved: SavedSession) -> tuple[Usage | None, tuple[Tokens, ...]]:
        """The usage of the call and its tokens with a list price: from its end, else from its messages so far."""
        ended, tokens = listener.transcript.ended, listener.transcript.consumed
        if ended is not None and ended.usage is not None:
            return saved.own_part(ended) if self.dialect.counts_whole_sessions else (ended.usage, ended.tokens)
        if not tokens:
            return None, ()
        sent, received = sum(part.input_tokens for part in tokens), sum(part.output_tokens for part in tokens)
        return Usage(sent, received, None, 1), tokens

    async def _priced(self, usage: Usage | None, tokens: tuple[Tokens, ...], model: str) -> Usage | None:
        """A usage, priced by the list where the agent tells no price."""
        if usage is None or usage.cost_usd is not None or not tokens:
            return usage
        price = await call_in_thread(listed_price, self.dialect.price_provider, model, tokens)
        return usage if price is None else usage.with_price(price)

    def _response(self, listener: Listener, result: CommandResult, usage: Usage | None) -> Response:
        """The answer of a call that succeeded."""
        transcript, ended = listener.transcript, listener.transcript.ended
        if ended is not None and not transcript.is_against_itself and result.exit_code == 0:
            note = denials(self.dialect, transcript.denied) if transcript.denied else ""
            return Response(transcript.answer, usage=usage, is_truncated=ended.is_truncated, note=note)
        if result.exit_code == 0 and ended is None and not transcript.says_what_is_wrong:
            raise RetryableError(listener.no_end())
        raise error_of(transcript.failure(result), self.dialect, self._now())

    def _saved_session(self, scope: StageScope | None) -> SavedSession:
        if scope is None or scope.conversation is None:
            return SavedSession(self.dialect.name)
        conversation = scope.conversation
        return SavedSession.read(conversation.read(), self.dialect.name, conversation.thread)

    async def _run(self, call: AgentCall, scope: StageScope | None, listener: Listener) -> CommandResult:
        """Run the program to its end, or a little longer than to its last word."""
        processes, directory = self._place(scope)
        text = self.dialect.stdin(call)
        if scope is not None:
            scope.files.write_text(AGENT_TASK_FILE, text)
        try:
            work = processes.run(
                [self._executable, *self.dialect.arguments(call)],
                cwd=directory,
                env=self._environment(),
                stdin=text.encode("utf-8", "backslashreplace"),
                on_output=listener.take,
            )
            result, was_ended = await ended_in_grace(work, listener)
        finally:
            listener.finish()
        if was_ended:
            _tell(scope, f"{self.dialect.name} did not exit after its result, and was ended")
        if scope is not None and result.stderr:
            scope.files.write_text(STDERR_NAME, plain_text(result.stderr))
        return result

    def _environment(self) -> dict[str, str]:
        """The variables added to those that every command inherits, without the session marks of an outer agent."""
        return {
            name: value
            for name, value in os.environ.items()
            if (name.startswith(self.dialect.own_variables) and not SESSION_MARKS.fullmatch(name))
            or name in self._variables
        }

    def _place(self, scope: StageScope | None) -> tuple[Processes, Path | None]:
        """The processes that start the agent, and its working directory: on a worker the stage's own directory."""
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
    """Warn that an agent does not run our hooks: an expected check is not made (spec 9.7)."""
    if scope is None or scope.workplace is None:
        return
    for when in ("pre", "post"):
        if scope.workplace.hook(node, when):
            message = f"tool_hooks.{when} of {node.id} does not run: {name} calls its tools itself"
            scope.announce(RunWarning(message=message, node=node.id))


def _tell(scope: StageScope | None, message: str) -> None:
    """Warn the followers of the run."""
    if scope is not None:
        scope.announce(RunWarning(message=f"{scope.node_id}: {message}", node=scope.node_id))


def texts(name: str, value: Sequence[str], example: str) -> tuple[str, ...]:
    """An argument that is a list of texts."""
    if isinstance(value, str) or not all(isinstance(text, str) for text in value):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise OptionError(f"{name} must be a list of texts, not {value!r:.80}", hint=example)
    return tuple(value)


def _may_report(node: Node, call: AgentCall) -> bool:
    """True if the status file is offered: to who can write it, and was not asked for a verdict in words."""
    asks = node.get("verdict", str, "") == "json" or bool(node.get("response_schema", str, ""))
    return call.may_write and not asks
