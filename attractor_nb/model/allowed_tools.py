"""The `allowed_tools` attribute: built-in tools, own functions, tools of MCP servers (spec 9.7). Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from attractor_nb.model.vocabulary.attribute_table import AGENT_TOOLS
from attractor_nb.model.vocabulary.value_forms import comma_list, parse_duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.model.graph import Graph

SERVER_PREFIX: Final = "mcp:"
ALL_TOOLS: Final = "*"
SERVER_FIELDS: Final = ("command", "env", "url", "headers", "timeout")
"""Settings `mcp.NAME.…` of a server in a graph."""
SERVER_AUTHORITY: Final = ("command", "env", "url", "headers")
"""Settings that decide which program is started, which server is asked, and which variables they get."""
DEFAULT_SECONDS: Final = 120.0
"""Default time limit of a tool of a server."""
TOOL_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
"""Valid name of a function as a tool: providers accept no other."""
_HEADER: Final = re.compile(r"([A-Za-z0-9!#%&'*+.^_`|~-]+)\s*:\s*([^$]*)\$(?:\{(\w+)\}|(\w+))([^$]*)\Z")
_OWN_HEADERS: Final = frozenset(
    {"accept", "accept-encoding", "connection", "content-length", "content-type", "host", "transfer-encoding"}
)
"""Headers that the client sets itself, besides those that begin with `mcp-`."""
CLAUDE_TOOLS: Final = frozenset(
    {"Bash", "Edit", "Glob", "Grep", "LS", "MultiEdit", "NotebookEdit", "NotebookRead", "Read", "Task", "TodoWrite"}
    | {"WebFetch", "WebSearch", "Write"}
)
"""Tool names of the agent `claude`: graphs written for it name them, also with a pattern, `Bash(git:*)`."""
_PATTERN: Final = re.compile(r"([A-Za-z]+)(?:\([^()\x00-\x1f]*\))?\Z")
_SERVER_ATTRIBUTE: Final = re.compile(r"mcp\.([A-Za-z_][A-Za-z0-9_]*)\.(\w+)\Z")


class AllowedTools(msgspec.Struct, frozen=True):
    """The words of an `allowed_tools`, by what they name."""

    built_in: tuple[str, ...] = ()  #: Of `read`, `write`, `list` and `run`.
    own: tuple[str, ...] = ()  #: Names that can only be those of the caller's own functions.
    served: tuple[tuple[str, str], ...] = ()  #: Of each MCP server the tools, in their order; `*` for all of it.
    wrong: tuple[str, ...] = ()  #: Words that name nothing at all, such as `mcp:files`.
    agents: tuple[str, ...] = ()  #: Names of tools of an agent of the command line, such as `Read` and `Bash(git:*)`.


_NOTHING: Final = AllowedTools()


def read_allowed_tools(text: str) -> AllowedTools:
    """The words of an `allowed_tools`.

    >>> read_allowed_tools("read, lookup, mcp:files/*")
    AllowedTools(built_in=('read',), own=('lookup',), served=(('files', '*'),), wrong=(), agents=())
    >>> read_allowed_tools("Read, Bash(git:*)").agents
    ('Read', 'Bash(git:*)')
    """
    if not text:
        return _NOTHING
    words = list(dict.fromkeys(comma_list(text)))
    served = {word: _served(word) for word in words if word.startswith(SERVER_PREFIX)}
    others = [word for word in words if not word.startswith(SERVER_PREFIX)]
    agents = [word for word in others if agent_tool(word) in CLAUDE_TOOLS]
    own = [word for word in others if word not in AGENT_TOOLS and word not in agents]
    return AllowedTools(
        tuple(word for word in others if word in AGENT_TOOLS),
        tuple(word for word in own if TOOL_NAME.match(word)),
        tuple(entry for entry in served.values() if entry is not None),
        (
            *(word for word in own if not TOOL_NAME.match(word)),
            *(word for word, entry in served.items() if entry is None),
        ),
        tuple(agents),
    )


def agent_tool(word: str) -> str:
    """The tool of an agent that a word names, without its pattern; empty for another word.

    >>> agent_tool("Bash(git:*)"), agent_tool("mcp:files/*")
    ('Bash', '')
    """
    found = _PATTERN.match(word)
    return found[1] if found else ""


def _served(word: str) -> tuple[str, str] | None:
    server, slash, tool = word.removeprefix(SERVER_PREFIX).partition("/")
    return (server.strip(), tool.strip()) if slash and server.strip() and tool.strip() else None


class ServerDeclaration(msgspec.Struct, frozen=True):
    """An MCP server as a graph declares it: with a command or with an address."""

    name: str  #: Its name, the middle of `mcp.NAME.command`.
    command: str  #: The command that starts it, for the shell; empty for a server that has an address.
    variables: tuple[str, ...]  #: Names of environment variables that its command gets beside those of every command.
    timeout_seconds: float  #: Time limit of one of its tools.
    url: str = ""  #: The address at which it answers over HTTP.
    headers: str = ""  #: The headers that it gets, as they are written.


class ServerHeader(msgspec.Struct, frozen=True):
    """A header of HTTP whose value comes from an environment variable."""

    name: str  #: Its name.
    before: str  #: Text before the variable's value.
    variable: str  #: The name of the variable.
    after: str = ""  #: Text after it.


def read_headers(text: str) -> tuple[ServerHeader, ...]:
    """The headers that a graph says, with commas between.

    >>> read_headers("Authorization: Bearer $FILES_TOKEN")
    (ServerHeader(name='Authorization', before='Bearer ', variable='FILES_TOKEN', after=''),)
    """
    made: dict[str, ServerHeader] = {}
    for entry in comma_list(text):
        found = _HEADER.match(entry)
        if found is None or not entry.isascii() or not entry.isprintable():
            raise ValueError(f'has "{entry}", which is not a header with one variable')
        name = found[1].lower()
        if name in _OWN_HEADERS or name.startswith("mcp-"):
            raise ValueError(f'has the header "{found[1]}", which the client writes itself')
        if name in made:
            raise ValueError(f'has the header "{found[1]}" twice')
        made[name] = ServerHeader(found[1], found[2], found[3] or found[4], found[5].rstrip())
    return tuple(made.values())


def header_variables(text: str) -> tuple[str, ...]:
    """The environment variables that headers name; of headers that are wrong, none."""
    try:
        return tuple(dict.fromkeys(header.variable for header in read_headers(text)))
    except ValueError:
        return ()


def server_attribute(name: str) -> tuple[str, str] | None:
    """The server and the field that an attribute's name means; None for any other attribute.

    >>> server_attribute("mcp.files.command"), server_attribute("mcp.files"), server_attribute("label")
    (('files', 'command'), None, None)
    """
    found = _SERVER_ATTRIBUTE.match(name)
    return (found[1], found[2]) if found else None


def declared_servers(graph: Graph) -> Mapping[str, ServerDeclaration]:
    """The MCP servers that a graph declares, by name, in the order of its text."""
    declaring = ("command", "url")
    names = [found[0] for name in graph.attrs if (found := server_attribute(name)) and found[1] in declaring]
    made = {name: _declared(graph, name) for name in names}
    return {name: server for name, server in made.items() if server.command or server.url}


def _declared(graph: Graph, name: str) -> ServerDeclaration:
    command, url, headers, given, time = (
        graph.get(f"mcp.{name}.{field}", str, "").strip() for field in ("command", "url", "headers", "env", "timeout")
    )
    timeout = parse_duration(time)
    seconds = DEFAULT_SECONDS if timeout is None else timeout.seconds
    return ServerDeclaration(name, command, comma_list(given), seconds, url, headers)
