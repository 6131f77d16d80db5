"""A small real model on this machine, offline (extra ``local``).

The backend starts a server process on loopback when a run opens it, waits until it is healthy, and
ends it with the last run that uses it. The model is small: it follows short instructions and its
judgement means little.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import json
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attractor_nb.backends.chat_stream import CONNECT_SECONDS, READ_SECONDS, complete_chat
from attractor_nb.backends.model_file import check_model, check_server, find_model
from attractor_nb.decisions.answers.response_schemas import native_schema
from attractor_nb.errors import AttractorError, RetryableError, TerminalError
from attractor_nb.model.bounded_json import read_bounded_json
from attractor_nb.model.calls.messages import message_tokens, messages_of, with_prompt_before
from attractor_nb.model.calls.prompt_sections import split_context
from attractor_nb.model.calls.reasoning import part_reasoning
from attractor_nb.model.calls.response import Response
from attractor_nb.model.events import RunWarning
from attractor_nb.own_python import NEUTRAL_DIRECTORY, own_python
from attractor_nb.stage import stage_or_none, stream_output

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.context import Context
    from attractor_nb.model.graph import Node
    from attractor_nb.protocols import Processes
    from attractor_nb.stage import Conversation

SYSTEM_PROMPT = (
    "You are a careful engineer. Do exactly what the task asks, in plain text. "
    "Answer briefly, in at most eight sentences, and then stop."
)
VERDICT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "outcome": {"enum": ["success", "partial_success", "retry", "fail"]},
        "notes": {"type": "string", "maxLength": 120},
    },
    "required": ["outcome", "notes"],
}
ADDRESS_PREFIX = "http://"


class LocalModelBackend:
    """Runs prompts on a local model.

    Args:
        model_path: A GGUF file; by default the installed one.
        max_tokens: Where a response is cut off, unless the node has ``llm.max_tokens``.
        temperature: Of the sampling, unless the node has ``llm.temperature``; 0 always gives the
            same answer.
        context_tokens: Size of the context window: prompt and response together.
        threads: How many processor cores it uses; by default all, and on a busy machine those that are free.
        start_timeout_seconds: How long the server may take to become healthy.
        connect_timeout_seconds: How long a connection to it may take.
        read_timeout_seconds: How long it may be silent, counted anew from each byte that it sends.
        processes: Starts the server; this machine's processes by default.
    """

    def __init__(
        self,
        model_path: Path | None = None,
        *,
        max_tokens: int = 320,
        temperature: float = 0.0,
        context_tokens: int = 4096,
        threads: int | None = None,
        start_timeout_seconds: float = 60.0,
        connect_timeout_seconds: float = CONNECT_SECONDS,
        read_timeout_seconds: float = READ_SECONDS,
        processes: Processes | None = None,
    ) -> None:
        self._model_path = model_path
        self._max_tokens = max_tokens
        self._temperature = temperature
        self._context_tokens = context_tokens
        self._threads = threads
        self._start_timeout_seconds = start_timeout_seconds
        self._connect_timeout_seconds = connect_timeout_seconds
        self._read_timeout_seconds = read_timeout_seconds
        self._processes = processes
        self._lock = threading.Lock()
        self._user_count = 0
        self._server: _Server | None = None

    @classmethod
    def installed(cls) -> LocalModelBackend:
        """A backend for the installed model.

        Raises:
            OptionError: The model or its engine is not installed; the hint is the command for it.
        """
        check_server()
        return cls(find_model())

    async def open(self) -> None:
        """Start the server, unless another run has, and wait until it answers.

        Whoever calls it closes it, also when it raises: otherwise one user would count twice.

        Raises:
            OptionError: Model or engine are not there.
            RetryableError: The server did not become healthy in time.
        """
        with self._lock:
            self._user_count += 1
        await self.address()

    async def close(self) -> None:
        """End the server with its last user."""
        with self._lock:
            self._user_count = max(0, self._user_count - 1)
            if self._user_count:
                return
            server, self._server = self._server, None
        if server is not None:
            await server.stop()

    def call_inputs(self, node: Node, context: Context) -> Mapping[str, Any]:  # noqa: ARG002 - the interface of all backends
        """The model's file and size, its window, and what is asked of it beside the prompt."""
        path = find_model() if self._model_path is None else self._model_path
        request = self._request(node, "")
        return {
            "backend": "local",
            "model": path.name,
            "model_bytes": path.stat().st_size,
            "context_tokens": self._context_tokens,
            "system_prompt": SYSTEM_PROMPT,
            **{name: value for name, value in request.items() if name != "messages"},
        }

    def answers_only(self, node: Node) -> bool:  # noqa: ARG002 - the interface of all backends
        """Always true: nothing runs beside the model."""
        return True

    async def run(self, node: Node, prompt: str, context: Context) -> Response:  # noqa: ARG002 - the interface of all backends
        """The model's answer, streamed as it arrives; under ``full`` fidelity it goes on in its thread.

        Raises:
            RetryableError, TerminalError: The server cannot answer now, or will not.
            TerminalError: The thread was kept by another backend.
        """
        request = self._request(node, prompt)
        thread = self._go_on(node, request)
        completion = await complete_chat(
            await self.address(),
            request,
            stream_output,
            key=self.key,
            connect_seconds=self._connect_timeout_seconds,
            read_seconds=self._read_timeout_seconds,
        )
        if thread is not None:
            answer = {"role": "assistant", "content": part_reasoning(completion.text).answer}
            thread.save(json.dumps([*request["messages"][1:], answer], ensure_ascii=False))
        return Response(completion.text, usage=completion.usage, is_truncated=completion.is_truncated)

    def _go_on(self, node: Node, request: dict[str, Any]) -> Conversation | None:
        """Put what a thread has said before the prompt, made to fit; the conversation, if there is one."""
        from attractor_nb.backends.llm.compaction import compact, history_tokens  # noqa: PLC0415 - for threads alone

        scope = stage_or_none()
        if scope is None or scope.conversation is None:
            return None
        text = scope.conversation.read()
        before = messages_of(text) if text else []
        if before is None or any("role" not in message for message in before):
            raise TerminalError(
                f"thread {scope.thread!r} belongs to another backend and cannot be continued",
                hint="give the node another thread_id, or another fidelity",
            )
        system, prompt = request["messages"]
        window = min(self._context_tokens, node.get("llm.context_tokens", int, self._context_tokens))
        made = compact(before, history_tokens(window, message_tokens([system, prompt]), request["max_tokens"]))
        if made.is_changed:
            message = f"{node.id}: thread {scope.thread} has outgrown the model's window: {made.description}"
            scope.announce(RunWarning(message=message, node=node.id))
        history = list(made.messages)
        if history and history[-1]["role"] == "user":  # a summary alone: a chat has one side after the other
            prompt = with_prompt_before(prompt, str(history.pop()["content"]))
        request["messages"] = [system, *history, prompt]
        return scope.conversation

    def _request(self, node: Node, prompt: str) -> dict[str, Any]:
        request: dict[str, Any] = {
            "messages": _messages(prompt),
            "temperature": node.get("llm.temperature", float, self._temperature),
            "max_tokens": node.get("llm.max_tokens", int, self._max_tokens),
            "repeat_penalty": 1.1,  # small models else say the same sentence until they are cut off
            "seed": 1,
        }
        if (schema := _response_schema(node)) is not None:
            request["response_format"] = {"type": "json_schema", "json_schema": {"schema": schema}}
        return request

    async def address(self) -> str:
        """Where its server answers, such as ``http://127.0.0.1:8080``; started unless it runs.

        Others of this program may ask it there, too, in OpenAI's language under ``/v1``, with its ``key`` and while the
        backend is open. Web pages and other users of this machine have no key.

        Raises:
            OptionError: Model or engine are not there.
            RetryableError: The server did not become healthy in time.
        """
        with self._lock:
            if self._server is None or self._server.is_ended:
                self._server = _Server(self._command(), self._processes or _local_processes())
            server = self._server
        return await server.address(self._start_timeout_seconds)

    @property
    def key(self) -> str:
        """The key that its server asks for (``Authorization: Bearer …``), new with each start; empty before one."""
        with self._lock:
            return self._server.key if self._server is not None else ""

    def _command(self) -> list[str]:
        check_server()
        path = find_model() if self._model_path is None else check_model(self._model_path)
        threads = free_threads() if self._threads is None else self._threads
        arguments = [str(path.absolute()), str(self._context_tokens), str(threads)]
        program = Path(__file__).with_name("local_server.py")
        return own_python(str(program), *arguments)  # by its path: quick, and found everywhere

    def __repr__(self) -> str:
        return f"LocalModelBackend({str(self._model_path) if self._model_path else 'installed model'})"


class _Server:
    """A server process. It belongs to the loop that started it and may be used from any."""

    def __init__(self, command: list[str], processes: Processes) -> None:
        self._ready: concurrent.futures.Future[str] = concurrent.futures.Future()
        self._output = ""
        self.key = ""
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._serve(command, processes))

    @property
    def is_ended(self) -> bool:
        return self._task.done() or self._loop.is_closed()

    async def address(self, timeout_seconds: float) -> str:
        try:
            async with asyncio.timeout(timeout_seconds):
                return await asyncio.shield(asyncio.wrap_future(self._ready))
        except TimeoutError:
            raise RetryableError(f"the model server was not ready after {timeout_seconds:g} s") from None

    async def stop(self) -> None:
        if self._loop.is_closed():
            return  # ended with its loop
        if self._loop is not asyncio.get_running_loop():
            self._loop.call_soon_threadsafe(self._task.cancel)
            return
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _serve(self, command: list[str], processes: Processes) -> None:
        try:
            result = await processes.run(command, cwd=NEUTRAL_DIRECTORY, on_output=self._take_output)
        except AttractorError as error:
            self._settle(error)
            return
        except asyncio.CancelledError:
            self._settle(RetryableError("the model server was stopped"))
            raise
        lines = result.stderr.strip().splitlines() or [f"exit code {result.exit_code}"]
        self._settle(RetryableError(f"the model server ended: {lines[-1]}"))

    def _take_output(self, channel: str, text: str) -> None:
        if channel == "stdout" and not self._ready.done():
            self._output += text
            line, end, _ = self._output.partition("\n")
            if end and line.startswith(ADDRESS_PREFIX):
                address, _, self.key = line.strip().partition(" ")
                self._ready.set_result(address)

    def _settle(self, error: AttractorError) -> None:
        if not self._ready.done():
            self._ready.set_exception(error)


def free_threads() -> int:
    """How many threads a model shall have now: 0 leaves it to the engine, which takes all cores.

    The engine's threads wait for each other in busy loops, and where others use the cores each wait lasts
    until those give way: beside three busy processes on two cores, two threads took four times the processor
    time of one, and longer.
    """
    cores = os.cpu_count() or 1
    others = round(os.getloadavg()[0]) if hasattr(os, "getloadavg") else 0
    return max(1, min(cores - others, cores // 2)) if others else 0


def _messages(prompt: str) -> list[dict[str, str]]:
    """The chat for a small model, which takes for its task whatever stands beside the task."""
    scope = stage_or_none()
    context, task = split_context(prompt, scope.preamble if scope is not None else "")
    system = f"{SYSTEM_PROMPT}\n\nWhat happened so far:\n{context}" if context else SYSTEM_PROMPT
    return [{"role": "system", "content": system}, {"role": "user", "content": task}]


def _response_schema(node: Node) -> Any:
    """The schema that the engine makes the response keep to, or None.

    Beside a verdict a schema binds as elsewhere (``native_schema``).
    """
    text, is_verdict = node.get("response_schema", str, ""), node.get("verdict", str, "") == "json"
    if not text:
        return VERDICT_SCHEMA if is_verdict else None
    try:
        return native_schema(node) if is_verdict else read_bounded_json(text)
    except ValueError:
        return None  # reported when the response is read


def _local_processes() -> Processes:
    from attractor_nb.processes import LocalProcesses  # noqa: PLC0415 - only a started server needs it

    return LocalProcesses()
