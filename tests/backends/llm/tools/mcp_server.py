"""A real MCP server of the reference implementation, over stdin and stdout."""

import os
import subprocess
import sys
import time
from pathlib import Path

from mcp.server.mcpserver import MCPServer

server = MCPServer("files")
if pids := os.environ.get("SERVER_PIDS"):
    with Path(pids).open("a") as file:
        file.write(f"{os.getpid()}\n")


@server.tool()
def read_file(path: str) -> str:
    """Read a file.

    Args:
        path: Which.
    """
    return Path(path).read_text()


@server.tool()
def where() -> str:
    """The folder that it works in."""
    return str(Path.cwd())


@server.tool()
def variable(name: str) -> str:
    """A variable of its environment."""
    return os.environ.get(name, "not set")


@server.tool()
def much(characters: int) -> str:
    """So many characters."""
    return "x" * characters


@server.tool()
def slow() -> str:
    """Too late."""
    time.sleep(1000)
    return "at last"


@server.tool()
def leave_child() -> str:
    """Start a process that stays."""
    child = subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return str(child.pid)


@server.tool()
def die() -> str:
    """End without an answer."""
    print("the disk is on fire", file=sys.stderr, flush=True)
    os._exit(7)


if __name__ == "__main__":
    server.run()
