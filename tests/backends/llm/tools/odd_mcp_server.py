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
# By mode: the schema of the results, and the structured content.
OUTPUTS = {
    "regex": ({"type": "object", "properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "a" * 34 + "!"}),
    "refs": (
        {
            "$ref": "#/$defs/d0",
            "$defs": {
                **{f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(26)},
                "d26": {"type": "object"},
            },
        },
        {"a": 1},
    ),
    "kept": ({"type": "object", "required": ["a"]}, {"a": 1}),
    "broken": ({"type": "object", "required": ["a"]}, {"b": 1}),
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
            tool = {"name": "get", "inputSchema": schema}
            if MODE in OUTPUTS:
                tool["outputSchema"] = {"type": "object", **OUTPUTS[MODE][0]}
            write({"id": message["id"], "result": {"tools": [tool]}})
        elif message["method"] == "tools/call" and MODE in OUTPUTS:
            content = [{"type": "text", "text": "found"}]
            write({"id": message["id"], "result": {"content": content, "structuredContent": OUTPUTS[MODE][1]}})
        elif message["method"] == "tools/call":
            write({"id": message["id"], "result": {"content": CONTENTS[MODE]}})


if __name__ == "__main__":
    main()
