"""MCP servers of a run: started when a stage first needs one, ended with the run.

A server is a command of the graph that speaks over stdin and stdout, as the ``mcp`` package (extra ``mcp``)
does. Each has a task of its own, in which it begins and ends: a stage that is cancelled cancels a call, never
the server.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import importlib.util
import json
import math
import os
import re
from collections import deque
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.backends.llm.tools.catalog import FoundTool
from attractor_nb.backends.llm.tools.tool_problems import ToolProblem, cut
from attractor_nb.calling import call
from attractor_nb.errors import RetryableError, StageError, TerminalError
from attractor_nb.model.allowed_tools import ALL_TOOLS
from attractor_nb.model.nearest_name import did_you_mean
from attractor_nb.processes.talk import talk
from attractor_nb.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from attractor_nb.model.allowed_tools import ServerDeclaration
    from attractor_nb.processes.talk import Talk
    from attractor_nb.stage import ToolServers

INSTALL: Final = "pip install 'attractor-nb[mcp]'"
START_SECONDS: Final = 60.0
"""How long a server may take until it says what tools it has."""
CLOSE_SECONDS: Final = 10.0
"""How long the end of a run waits for its end; it is killed long before."""
MAX_STARTS: Final = 3
"""How often a run starts a server that dies."""
MAX_TOOLS: Final = 200
MAX_PAGES: Final = 20
MAX_LINE_BYTES: Final = 16 * 1024 * 1024
"""Of one message of a server; one that writes more without a line's end is dead to us."""
_MAX_LAST_WORDS: Final = 600
_LAST_LINES: Final = 5
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_-]")


class McpServers:
    """The servers that a graph declares (``stage.ToolServers``; ``protocols.BackendLifetime``)."""

    subject: Final = "an MCP server"

    def __init__(
        self, declared: Mapping[str, ServerDeclaration] | None = None, directory: Callable[[], Path] | None = None
    ) -> None:
        """Take what is declared.

        Args:
            declared: The servers by name.
            directory: Where they work.
        """
        self._declared = dict(declared or {})
        self._directory = directory
        self._running: dict[str, _Server] = {}
        self._starts: dict[str, int] = {}

    @property
    def names(self) -> Sequence[str]:
        """Those that the graph declares."""
        return tuple(self._declared)

    def cache_inputs(self, server: str) -> Mapping[str, Any]:
        """What decides the answers of a server's tools; see ``stage.ToolServers``."""
        declared = self._declared[server]
        values = {name: os.environ.get(name, "") for name in declared.variables}
        hashes = {
            name: hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest() for name, value in values.items()
        }
        return {"command": declared.command, "environment": hashes}

    async def open(self) -> None:
        """Nothing is started before a stage needs it."""

    async def close(self) -> None:
        """End all of them, at the same time."""
        running, self._running = list(self._running.values()), {}
        for server in running:
            server.end()
        if tasks := [server.task for server in running]:
            _, late = await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
            for task in late:
                task.cancel()

    async def tools(self, server: str) -> Sequence[Mapping[str, Any]]:
        """Its tools; see ``stage.ToolServers``."""
        return await (await self._server(server)).tools()

    async def call(self, server: str, tool: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """Call a tool; see ``stage.ToolServers``."""
        running = self._running.get(server)
        if running is None:
            raise RetryableError(f"the MCP server {server!r} does not run any more")
        if running.is_dead:
            raise RetryableError(running.exit_report())
        return await running.call(tool, arguments)

    async def _server(self, name: str) -> _Server:
        """The server, started where it does not run.

        Raises:
            TerminalError: It has died too often, or the library is not installed.
        """
        if importlib.util.find_spec("mcp") is None:
            raise TerminalError("MCP servers need mcp, which is not installed", hint=INSTALL)
        await call(_load)
        running = self._running.get(name)  # from here on nobody else looks: two stages start one server
        if running is None or running.is_dead:
            if self._starts.get(name, 0) >= MAX_STARTS:
                why = running.exit_report() if running else f"the MCP server {name!r} does not stay alive"
                raise TerminalError(f"{why}; it was started {MAX_STARTS} times")
            self._starts[name] = self._starts.get(name, 0) + 1
            running = _Server(self._declared[name], self._directory() if self._directory else None)
            self._running[name] = running
        return running


class _Server:
    """One server, from its start to its end."""

    def __init__(self, declared: ServerDeclaration, directory: Path | None) -> None:
        self._declared = declared
        self._directory = directory
        loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[Any] = loop.create_future()
        self._over = asyncio.Event()
        self._talk: Talk | None = None
        self._lines: _Lines | None = None
        self._problem = ""
        self._tools: list[dict[str, Any]] = []
        self.task = loop.create_task(self._live())

    @property
    def is_dead(self) -> bool:
        """Whether it can be asked nothing any more."""
        return self.task.done() or self._over.is_set()

    def end(self) -> None:
        """Have it end, also while it is still starting."""
        self._over.set()
        if not self._ready.done():
            self.task.cancel()

    def exit_report(self) -> str:
        """That it is dead, and what it said last."""
        words = (self._talk.last_words() or self._lines.last_words()) if self._talk and self._lines else ""
        code = None if self._talk is None else self._talk.exit_code
        how = "ended" if code is None else f"ended with exit code {code}"
        what = self._problem or how
        last_words = f"; it said last:\n{words[-_MAX_LAST_WORDS:]}" if words else ""
        return redacted(f"the MCP server {self._declared.name!r} {what}{last_words}")

    async def tools(self) -> list[dict[str, Any]]:
        """What it offers, once it is there.

        Raises:
            StageError: It does not start.
        """
        await asyncio.wait({self._ready, self.task}, return_when=asyncio.FIRST_COMPLETED)
        if not self._ready.done():
            raise TerminalError(self.exit_report(), hint=f"try its command in a terminal: {self._declared.command}")
        return self._tools

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """What came of a tool, and whether that is an error."""
        from mcp import MCPError  # noqa: PLC0415 - slow to import

        session = self._ready.result()
        answer = asyncio.ensure_future(session.call_tool(tool, dict(arguments)))
        try:
            await asyncio.wait(
                {answer, self.task}, timeout=self._declared.timeout_seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if answer.done():
                return _result_text(answer.result())
        except MCPError as error:
            if not self.is_dead:
                return f"{type(error).__name__}: {error}", True
        except (ValueError, RuntimeError) as error:  # a result that breaks its own schema
            return f"the server answered with something that is no answer: {error}", True
        finally:
            answer.cancel()
        if self.is_dead:
            await asyncio.wait({self.task}, timeout=CLOSE_SECONDS)
            return self.exit_report(), True
        return f"no answer within {self._declared.timeout_seconds:g} s", True

    async def _live(self) -> None:
        """Start, say what there is, and wait for the end: the whole life in one task."""
        try:
            async with asyncio.timeout(None) as limit:
                limit.reschedule(asyncio.get_running_loop().time() + START_SECONDS)
                await self._exchange(limit)
        except TimeoutError:
            self._problem = f"did not say within {START_SECONDS:g} s what tools it has"
        except StageError as error:
            self._problem = f"cannot be started: {error.message}"
        except asyncio.CancelledError:
            self._problem = "was ended"
            raise
        except Exception as error:  # noqa: BLE001 - whatever the library raises, it is this server's end
            self._problem = _problem(_innermost(error))

    async def _exchange(self, limit: asyncio.Timeout) -> None:
        import anyio  # noqa: PLC0415 - slow to import, for graphs with servers alone
        from mcp import ClientSession  # noqa: PLC0415 - as above
        from mcp.shared.message import SessionMessage  # noqa: PLC0415 - as above

        incoming, read = anyio.create_memory_object_stream[Any](math.inf)
        write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        lines = self._lines = _Lines(incoming)
        variables = {name: os.environ[name] for name in self._declared.variables if name in os.environ}
        async with talk(self._declared.command, lines.take, cwd=self._directory, env=variables) as talking:
            self._talk = talking
            talking.ended.add_done_callback(lambda _: self._stopped(incoming))
            speaking = asyncio.ensure_future(_speak(outgoing, talking))
            try:
                async with ClientSession(read, write) as session:
                    await session.initialize()
                    self._tools = await _listed(session)
                    limit.reschedule(None)
                    self._ready.set_result(session)
                    await self._over.wait()
            finally:
                speaking.cancel()
                for stream in (incoming, read, write, outgoing):
                    stream.close()

    def _stopped(self, incoming: Any) -> None:
        """It says no more: whoever waits for an answer is told."""
        self._over.set()
        incoming.close()


class _Lines:
    """Messages out of what a server writes, a line each; what is none is passed on as what it is."""

    def __init__(self, incoming: Any) -> None:
        self._incoming = incoming
        self._rest = bytearray()
        self._others: deque[bytes] = deque(maxlen=_LAST_LINES)

    def last_words(self) -> str:
        """The last lines that were no message: some programs print there why they end."""
        rest = (*self._others, bytes(self._rest[:_MAX_LAST_WORDS]))
        return "\n".join(text for line in rest if (text := line.decode("utf-8", "replace").strip()))

    def take(self, data: bytes) -> None:
        """Take the next piece; a message that nobody waits for any more is dropped."""
        from anyio import BrokenResourceError, ClosedResourceError  # noqa: PLC0415 - loaded by now
        from mcp.shared.message import SessionMessage  # noqa: PLC0415 - as above
        from mcp_types import jsonrpc_message_adapter  # noqa: PLC0415 - as above

        self._rest += data
        if b"\n" not in data:
            del self._rest[MAX_LINE_BYTES:]
            return
        *lines, rest = bytes(self._rest).split(b"\n")
        self._rest = bytearray(rest[:MAX_LINE_BYTES])
        for line in lines:
            try:
                message = SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
            except ValueError:
                self._others.append(line[:_MAX_LAST_WORDS])
                continue  # a server that prints what is no message
            try:
                self._incoming.send_nowait(message)
            except (BrokenResourceError, ClosedResourceError):
                return


async def _speak(outgoing: Any, talking: Talk) -> None:
    """Write what the session says."""
    try:
        async for message in outgoing:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            await talking.write(text.encode() + b"\n")
    except OSError:
        return  # it reads no more; that it has ended is told by its stdout


async def _listed(session: Any) -> list[dict[str, Any]]:
    """All tools of a server, page by page."""
    from mcp_types import PaginatedRequestParams  # noqa: PLC0415 - as above

    found: list[dict[str, Any]] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        found += [
            {"name": tool.name, "description": tool.description or "", "schema": dict(tool.input_schema)}
            for tool in page.tools
        ]
        cursor = page.next_cursor
        if not cursor or len(found) >= MAX_TOOLS:
            break
    return found[:MAX_TOOLS]


def _result_text(result: Any) -> tuple[str, bool]:
    """A result as the model is told it: its texts, and what else there is by its kind and size."""
    parts = [_part_text(part) for part in result.content]
    if not parts and result.structured_content is not None:
        parts = [json.dumps(result.structured_content, ensure_ascii=False)]
    return "\n".join(parts), bool(result.is_error)


def _part_text(part: Any) -> str:
    """A part of a result; of one that is no text the model is told the kind and size, and where it can be had."""
    if part.type == "resource":
        text = getattr(part.resource, "text", None)
        if text is not None:
            return text
    elif part.type == "text":
        return part.text
    place = getattr(getattr(part, "resource", part), "uri", "")
    return f"[{part.type}{f' {place}' if place else ''} of {len(part.model_dump_json())} characters]"


def _problem(error: BaseException) -> str:
    """What ended a server, in its own words where it refused; empty where it just closed its output."""
    from anyio import BrokenResourceError, ClosedResourceError  # noqa: PLC0415 - slow to import
    from mcp import MCPError  # noqa: PLC0415 - as above
    from pydantic import ValidationError  # noqa: PLC0415 - as above

    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        return cut(f"broke the protocol: {error.title} {place}: {first['msg']}", _MAX_LAST_WORDS)
    if isinstance(error, (BrokenResourceError, ClosedResourceError)):
        return ""
    if not isinstance(error, MCPError):
        return f"failed: {type(error).__name__}: {cut(str(error), _MAX_LAST_WORDS)}"
    if error.message == "Connection closed":  # the library's words for no answer at all
        return ""
    return f"refused to start: {cut(error.message, _MAX_LAST_WORDS)}"


def _innermost(error: BaseException) -> BaseException:
    """The first of what a task group raised together."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def _load() -> None:
    """Import what takes a second."""
    importlib.import_module("mcp")


async def served_tools(servers: ToolServers, served: Sequence[tuple[str, str]]) -> list[FoundTool]:
    """The tools of servers that a node allows.

    Args:
        servers: The servers of the run.
        served: Server and tool, ``*`` for all of it.

    Raises:
        StageError: A server does not start, or has no such tool.
    """
    found: dict[str, FoundTool] = {}
    for server, wanted in served:
        offered = {str(tool["name"]): tool for tool in await servers.tools(server)}
        if wanted != ALL_TOOLS and wanted not in offered:
            raise TerminalError(
                f"the MCP server {server!r} has no tool {wanted!r}{did_you_mean(wanted, offered)}",
                hint=f"it has {', '.join(offered) or 'none at all'}",
            )
        for name in offered if wanted == ALL_TOOLS else (wanted,):
            made = _found(servers, server, name, offered[name])
            found[made.name] = made
    return list(found.values())


def _found(servers: ToolServers, server: str, name: str, offered: Mapping[str, Any]) -> FoundTool:
    async def run(arguments: Mapping[str, Any]) -> str:
        text, is_error = await servers.call(server, name, arguments)
        if is_error:
            raise ToolProblem(f"{server}/{name}: {text}")
        return text

    shown = _UNFIT.sub("_", f"{server}_{name}")[:64]
    return FoundTool(shown, offered["description"], offered["schema"], run)
