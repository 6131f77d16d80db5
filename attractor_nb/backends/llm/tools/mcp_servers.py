"""MCP servers of a run: started when a stage first needs one, ended with the run.

A server is a command of the graph or has an address; the ``mcp`` package (extra ``mcp``) speaks to both. Each
has its own task, in which it begins and ends: a stage that is cancelled cancels a call, never the server.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import os
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from attractor_nb.backends.llm.tools.file_tools import cut
from attractor_nb.decisions.response_schemas import ResponseSchema, schema_problem
from attractor_nb.errors import RetryableError, StageError, TerminalError
from attractor_nb.lazy_imports import later
from attractor_nb.maybe_async import call
from attractor_nb.model.allowed_tools import ServerDeclaration, header_variables
from attractor_nb.model.calls.call_content import value_hashes
from attractor_nb.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from attractor_nb.backends.llm.tools import mcp_transports
else:
    mcp_transports = later("attractor_nb.backends.llm.tools.mcp_transports")

START_SECONDS: Final = 60.0
"""Time limit for a server to list its tools."""
CLOSE_SECONDS: Final = 10.0
"""Time limit for a server to end with the run; it is killed long before."""
MAX_STARTS: Final = 3
"""Most starts of a server that dies."""
MAX_TOOLS: Final = 200
MAX_PAGES: Final = 20
_MAX_LAST_WORDS: Final = 600
_LOGGERS: Final = ("mcp", "client")
"""Those of the library; the second is what its session calls its own."""
_CLOSED: Final = "Connection closed"
_NO_ANSWER: Final = "the server gave an invalid response"
"""Errors of the library when no more answers are possible."""


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
        self._renewed: list[_Server] = []

    @property
    def names(self) -> Sequence[str]:
        """Those that the graph declares."""
        return tuple(self._declared)

    def cache_inputs(self, server: str) -> Mapping[str, Any]:
        """The inputs that decide the answers of a server's tools; see ``stage.ToolServers``."""
        declared = self._declared[server]
        values = {name: os.environ.get(name, "") for name in (*declared.variables, *header_variables(declared.headers))}
        way = {"url": declared.url, "headers": declared.headers} if declared.url else {"command": declared.command}
        return {**way, "environment": value_hashes(values)}

    async def open(self) -> None:
        """Nothing is started before a stage needs it."""

    async def close(self) -> None:
        """End all of them, at the same time."""
        running, self._running = [*self._renewed, *self._running.values()], {}
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
            raise RetryableError(f"the MCP server {server!r} is no longer running")
        if running.is_dead:
            raise RetryableError(running.exit_report())
        try:
            return await running.call(tool, arguments)
        except _SessionExpired:
            return await (await self._renew(server, running)).call(tool, arguments, is_new=True)

    async def _renew(self, name: str, expired: _Server) -> _Server:
        """A new session in place of one that the server has forgotten; the call was not made."""
        if self._running.get(name) is expired:  # else another call has done it
            expired.retire()
            self._renewed.append(expired)
            self._running[name] = self._made(name)
        renewed = self._running[name]
        await renewed.tools()
        return renewed

    def _made(self, name: str) -> _Server:
        return _Server(self._declared[name], self._directory() if self._directory else None)

    async def _server(self, name: str) -> _Server:
        """The server, started where it does not run."""
        from attractor_nb.extras import install_command, missing_packages  # noqa: PLC0415 - for graphs with servers alone

        if missing_packages("mcp"):
            raise TerminalError("MCP servers need mcp, which is not installed", hint=install_command("mcp"))
        await call(_load)
        running = self._running.get(name)  # no await from here on: two stages start one server
        if running is None or running.is_dead:
            if self._starts.get(name, 0) >= MAX_STARTS:
                why = running.exit_report() if running else f"the MCP server {name!r} ends after each start"
                raise TerminalError(f"{why}; it was started {MAX_STARTS} times")
            self._starts[name] = self._starts.get(name, 0) + 1
            running = self._running[name] = self._made(name)
        return running


class _SessionExpired(Exception):
    """The server has forgotten the session of a call, and has not made it."""


class _Connection(Protocol):
    """The way to a server."""

    @property
    def hint(self) -> str:
        """The remedy if the server does not start."""
        ...

    @property
    def way(self) -> str:
        """The remedy if the server does not answer."""
        ...

    @property
    def ending(self) -> str:
        """The end of the connection, in words."""
        ...

    def last_words(self) -> str:
        """The last output outside of its messages."""
        ...

    def has_expired(self, error: Any) -> bool:
        """True if a call was not made because the server has forgotten the session: a new one may ask again."""
        ...

    def connect(self, ended: Callable[[], None]) -> AbstractAsyncContextManager[tuple[Any, Any]]:
        """Connect, and end with the block; ``ended`` is called where it ends before."""
        ...


class _Server:
    """One server, from its start to its end."""

    def __init__(self, declared: ServerDeclaration, directory: Path | None) -> None:
        self._declared = declared
        self._connection = _connection(declared, directory)
        loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[Any] = loop.create_future()
        self._over = asyncio.Event()
        self._problem = self._hint = ""
        self._calls = 0
        self._is_retired = False
        self._tools: list[dict[str, Any]] = []
        self.task = loop.create_task(self._live())

    @property
    def is_dead(self) -> bool:
        """True if it can be asked nothing any more."""
        return self.task.done() or self._over.is_set()

    def end(self) -> None:
        """Have it end, also while it is still starting."""
        self._over.set()
        if not self._ready.done():
            self.task.cancel()

    def retire(self) -> None:
        """Have it end as soon as no call waits for it."""
        self._is_retired = True
        if not self._calls:
            self.end()

    def exit_report(self) -> str:
        """That it is dead, and what it said last."""
        words = self._connection.last_words()
        what = self._problem or self._connection.ending
        last_words = f"; it said last:\n{words[-_MAX_LAST_WORDS:]}" if words else ""
        return redacted(f"the MCP server {self._declared.name!r} {what}{last_words}")

    async def tools(self) -> list[dict[str, Any]]:
        """The tools of the server, once it is ready."""
        await asyncio.wait({self._ready, self.task}, return_when=asyncio.FIRST_COMPLETED)
        if not self._ready.done():
            raise TerminalError(self.exit_report(), hint=redacted(self._hint or self._connection.hint))
        return self._tools

    async def call(self, tool: str, arguments: Mapping[str, Any], *, is_new: bool = False) -> tuple[str, bool]:
        """The result of a tool call, and whether it is an error."""
        from mcp import MCPError  # noqa: PLC0415 - slow to import

        session = self._ready.result()
        self._calls += 1
        answer = asyncio.ensure_future(session.call_tool(tool, dict(arguments)))
        try:
            await asyncio.wait(
                {answer, self.task}, timeout=self._declared.timeout_seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if answer.done():
                result = answer.result()
                complaint = "" if result.is_error else self._output_complaint(tool, result)
                return (f"{_NO_ANSWER}: {complaint}", True) if complaint else _result_text(result)
        except MCPError as error:
            if not self.is_dead and error.message != _CLOSED:
                if not is_new and self._connection.has_expired(error):
                    raise _SessionExpired from None
                return f"{type(error).__name__}: {error}", True
            self._over.set()
        except (ValueError, RuntimeError) as error:
            return f"{_NO_ANSWER}: {error}", True
        finally:
            answer.cancel()
            self._calls -= 1
            if self._is_retired:
                self.retire()
        if self.is_dead:
            await asyncio.wait({self.task}, timeout=CLOSE_SECONDS)
            return self.exit_report(), True
        return f"no answer within {self._declared.timeout_seconds:g} s", True

    def _output_complaint(self, tool: str, result: Any) -> str:
        """The reason why a result breaks its tool's declared schema; empty if it is valid."""
        schema = next((each["output"] for each in self._tools if each["name"] == tool), None)
        if not schema:
            return ""
        if result.structured_content is None:
            return f"{tool} declares a schema for its results, and this result has no structured content"
        text = json.dumps(schema)
        if problem := schema_problem(text):
            return f"the schema for the results of {tool} cannot be used: {problem}"
        return ResponseSchema(text).complaint_about(result.structured_content)

    async def _live(self) -> None:
        """Start, say what there is, and wait for the end: the whole life in one task."""
        try:
            async with asyncio.timeout(None) as limit:
                limit.reschedule(asyncio.get_running_loop().time() + START_SECONDS)
                await self._exchange(limit)
        except TimeoutError:
            self._problem = f"did not say within {START_SECONDS:g} s what tools it has"
        except StageError as error:
            self._problem, self._hint = f"cannot be started: {error.message}", error.hint
        except asyncio.CancelledError:
            self._problem = "was ended"
            raise
        except Exception as error:  # noqa: BLE001 - whatever the library raises, it is this server's end
            first = _innermost(error)
            self._problem = _problem(first)
            if _is_unreachable(first):
                self._hint = self._connection.way

    async def _exchange(self, limit: asyncio.Timeout) -> None:
        from mcp import ClientSession  # noqa: PLC0415 - slow to import, for graphs with servers alone

        async with self._connection.connect(self._over.set) as (read, write), ClientSession(read, write) as session:
            session.validate_tool_result = _unchecked  # by patterns that may take forever; ours are linear
            await session.initialize()
            self._tools = await _listed(session)
            limit.reschedule(None)
            self._ready.set_result(session)
            await self._over.wait()


async def _unchecked(name: str, result: Any) -> None:
    """In place of the library's check of a result, which ours follows."""


async def _listed(session: Any) -> list[dict[str, Any]]:
    """All tools of a server, page by page."""
    from mcp_types import PaginatedRequestParams  # noqa: PLC0415 - as above

    found: list[dict[str, Any]] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        found += [
            {
                "name": tool.name,
                "description": tool.description or "",
                "schema": dict(tool.input_schema),
                "output": tool.output_schema,
            }
            for tool in page.tools
        ]
        cursor = page.next_cursor
        if not cursor or len(found) >= MAX_TOOLS:
            break
    return found[:MAX_TOOLS]


def _result_text(result: Any) -> tuple[str, bool]:
    """A result as the model receives it: its texts, and other parts by their kind and size."""
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
    """The reason why a server ended, in its own words if it refused; empty if it only closed its output."""
    from anyio import BrokenResourceError, ClosedResourceError  # noqa: PLC0415 - slow to import
    from mcp import MCPError  # noqa: PLC0415 - as above
    from pydantic import ValidationError  # noqa: PLC0415 - as above

    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        return cut(f"broke the protocol: {error.title} {place}: {first['msg']}", _MAX_LAST_WORDS)
    if isinstance(error, (BrokenResourceError, ClosedResourceError)):
        return ""
    if _is_unreachable(error):
        return f"cannot be reached: {cut(str(error), _MAX_LAST_WORDS)}"
    if not isinstance(error, MCPError):
        return f"failed: {type(error).__name__}: {cut(str(error), _MAX_LAST_WORDS)}"
    if error.message == _CLOSED:
        return ""
    return f"refused to start: {cut(error.message, _MAX_LAST_WORDS)}"


def _is_unreachable(error: BaseException) -> bool:
    import httpx2  # noqa: PLC0415 - slow to import

    return isinstance(error, httpx2.ConnectError)


def _innermost(error: BaseException) -> BaseException:
    """The first of what a task group raised together."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def _connection(declared: ServerDeclaration, directory: Path | None) -> _Connection:
    if not declared.url:
        return mcp_transports.StdioConnection(declared, directory)
    return mcp_transports.HttpConnection(declared)


def _load() -> None:
    """Import what takes seconds, and keep its tracebacks from the terminal where logging is not set up."""
    for module in ("mcp", "attractor_nb.backends.llm.tools.mcp_transports"):
        importlib.import_module(module)
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
