"""Tools that a model may call while it works on a stage (spec 9.7).

``read``, ``write``, ``list`` and ``run`` work in the run's working directory and nowhere else. Others are
functions of the caller's own, and tools of MCP servers that the graph declares. What a tool cannot do is told
to the model; what it did is in the stage's ``tool_calls.jsonl`` and in a ``ToolCallEnded`` event.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.backends.llm.tools.catalog import CallableTool, checked_functions, function_inputs, function_tool
from attractor_nb.backends.llm.tools.file_tools import ToolProblem
from attractor_nb.backends.llm.tools.mcp_servers import McpServers
from attractor_nb.errors import TerminalError
from attractor_nb.lazy_imports import later
from attractor_nb.model.allowed_tools import ALL_TOOLS, read_allowed_tools
from attractor_nb.model.texts import did_you_mean
from attractor_nb.model.vocabulary.attribute_table import AGENT_TOOLS
from attractor_nb.stage import StageScope, ToolServers, stage_or_none

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from pydantic_ai.toolsets import AbstractToolset

    from attractor_nb.backends.llm.tools import catalog
    from attractor_nb.model.graph import Node
else:
    catalog = later("attractor_nb.backends.llm.tools.catalog")

__all__ = ["McpServers", "check_tools", "checked_functions", "tool_inputs", "tools_for"]

_UNFIT: Final = re.compile(r"[^A-Za-z0-9_-]")
"""Characters that no provider accepts in the name of a tool."""


def tools_for(node: Node, scope: StageScope) -> AbstractToolset[Any] | None:
    """The tools of a node, for one attempt; None when it allows none.

    Args:
        node: Its ``allowed_tools`` says which.
        scope: The attempt under way: where it works, and where its calls are recorded.

    Raises:
        TerminalError: It allows a tool that there is not, or there is no place here to work in.
    """
    text = node.get("allowed_tools", str, "")
    if not text.strip(" ,"):
        return None
    allowed, workplace = read_allowed_tools(text), scope.workplace
    if workplace is None:
        raise TerminalError(
            f"node {node.id!r} allows its model tools, but there is no working directory here",
            hint="run it without executor=: tools work on the machine of the run",
        )
    check_tools(node, workplace.functions, workplace.servers.names)
    from attractor_nb.backends.llm.tools.tool_calls import StageToolset, ToolCalls  # noqa: PLC0415 - for nodes with tools alone

    async def find() -> Sequence[CallableTool]:
        own = [function_tool(name, workplace.functions[name]) for name in allowed.own]
        return [
            *catalog.built_in_tools(allowed.built_in),
            *own,
            *await _served_tools(workplace.servers, allowed.served),
        ]

    return StageToolset(find, ToolCalls(node, scope, workplace))


def check_tools(node: Node, functions: Collection[str], servers: Collection[str]) -> None:
    """Refuse words of a node that name no tool: lint may not have known the functions.

    Args:
        node: Its ``allowed_tools`` says which.
        functions: The names of the caller's own.
        servers: The MCP servers that its graph declares.

    Raises:
        TerminalError: There is one.
    """
    allowed = read_allowed_tools(node.get("allowed_tools", str, ""))
    names = (*AGENT_TOOLS, *functions)
    undeclared = [server for server, _ in allowed.served if server not in servers]
    listed = ", ".join(names)
    if allowed.agents:
        raise TerminalError(
            f"allowed_tools of node {node.id!r} names {allowed.agents[0]}, a tool of the agent claude",
            hint=f'backend="claude", or use {", ".join(names)}, with commas',
        )
    unknown = [*allowed.wrong, *(word for word in allowed.own if word not in functions)]
    if unknown:
        raise TerminalError(
            f"allowed_tools of node {node.id!r} names {unknown[0]!r}{did_you_mean(unknown[0], names)}",
            hint=f"use {listed}, with commas, or give the function: Pipeline(…, tools=…)",
        )
    if undeclared:
        near = did_you_mean(undeclared[0], servers)
        raise TerminalError(
            f"allowed_tools of node {node.id!r} names the MCP server {undeclared[0]!r}{near}",
            hint=f'declare it on the graph: mcp.{undeclared[0]}.command="…", or .url',
        )


def server_inputs(node: Node) -> dict[str, Any]:
    """The inputs of a node's MCP servers for the cache: ``servers``; empty without any."""
    allowed = read_allowed_tools(node.get("allowed_tools", str, ""))
    scope = stage_or_none()
    if scope is None or scope.workplace is None:
        return {}
    servers = scope.workplace.servers
    named = sorted({server for server, _ in allowed.served if server in servers.names})
    return {"servers": {server: dict(servers.cache_inputs(server)) for server in named}} if named else {}


def tool_inputs(node: Node) -> list[dict[str, Any]]:
    """The inputs of a node's tools, for recordings and the cache.

    Of a function that is what it says of itself, of an MCP server which of its tools: it is not asked.
    """
    allowed = read_allowed_tools(node.get("allowed_tools", str, ""))
    scope = stage_or_none()
    workplace = None if scope is None else scope.workplace
    functions: Mapping[str, Callable[..., Any]] = {} if workplace is None else workplace.functions
    return [
        *(
            {"name": tool.name, "description": tool.description, "parameters": tool.schema}
            for tool in catalog.built_in_tools(allowed.built_in)
        ),
        *(function_inputs(name, functions[name]) if name in functions else {"name": name} for name in allowed.own),
        *({"name": f"mcp:{server}/{tool}"} for server, tool in allowed.served),
    ]


async def _served_tools(servers: ToolServers, served: Sequence[tuple[str, str]]) -> list[catalog.FoundTool]:
    """The tools of servers that a node allows.

    Args:
        servers: The servers of the run.
        served: Server and tool, ``*`` for all of it.

    Raises:
        StageError: A server does not start, or has no such tool.
    """
    found: dict[str, catalog.FoundTool] = {}
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


def _found(servers: ToolServers, server: str, name: str, offered: Mapping[str, Any]) -> catalog.FoundTool:
    async def run(arguments: Mapping[str, Any]) -> str:
        text, is_error = await servers.call(server, name, arguments)
        if is_error:
            raise ToolProblem(f"{server}/{name}: {text}")
        return text

    shown = _UNFIT.sub("_", f"{server}_{name}")[:64]
    return catalog.FoundTool(shown, offered["description"], offered["schema"], run)
