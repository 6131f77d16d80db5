"""An MCP server of the standard library alone, over stdin and stdout, that does what its argument says."""

import json
import os
import sys
import time
from pathlib import Path

MODE = sys.argv[1]
RESOURCE = {"uri": "file:///notes.txt", "mimeType": "text/plain", "text": "remember the milk"}
BLOB = {"uri": "file:///logo.png", "mimeType": "image/png", "blob": "AAAA"}
LINK = {"type": "resource_link", "uri": "https://example.org/report.pdf", "name": "report"}
CONTENTS = {
    "resource": [{"type": "text", "text": "Found:"}, {"type": "resource", "resource": RESOURCE}],
    "large": [{"type": "resource", "resource": {**RESOURCE, "text": "x" * 300_000}}],
    "blob": [{"type": "resource", "resource": BLOB}],
    "link": [LINK],
    "surrogate": [{"type": "text", "text": "a\ud800b"}],
}


def write(message):
    """Write a message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def initialized(params):
    """Return the answer to ``initialize``."""
    if MODE == "refuses":
        return {"error": {"code": -32000, "message": "the licence has expired"}}
    version = "1999-01-01" if MODE == "old" else params["protocolVersion"]
    info = {"name": "odd", "version": "1"}
    return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}}


def main():
    """Serve until the input ends."""
    if pids := os.environ.get("SERVER_PIDS"):
        with Path(pids).open("a") as file:
            file.write(f"{os.getpid()}\n")
    if MODE == "slow":
        time.sleep(1000)
    for line in sys.stdin:
        message = json.loads(line)
        if message["method"] == "initialize":
            write({"id": message["id"], **initialized(message["params"])})
            if MODE == "refuses":
                return
        elif message["method"] == "tools/list":
            schema = {} if MODE == "schemaless" else {"type": "object"}
            write({"id": message["id"], "result": {"tools": [{"name": "get", "inputSchema": schema}]}})
        elif message["method"] == "tools/call":
            write({"id": message["id"], "result": {"content": CONTENTS[MODE]}})


if __name__ == "__main__":
    main()
