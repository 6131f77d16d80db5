"""A small MCP server over streamable HTTP on loopback, of the standard library alone, that a test steers."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOOLS = [{"name": "get", "description": "Get it.", "inputSchema": {"type": "object"}}]


POLL = "id: 1\nretry: 0\ndata:\n\n"
"""A stream that ends at once, and is to be asked for again at once."""


class HttpMcpServer:
    """Answers as JSON or as SSE, with sessions.

    Attributes:
        asked: Method of HTTP, headers in small letters, and method of MCP, of each request.
        forget: How many calls of tools are answered as if their session were forgotten.
        refusal: Status and body of each answer but those of ``forget``; None for none.
        drops: How many calls of tools are answered with the end of their connection.
        hangs: The methods of MCP, or ``DELETE``, that are never answered.
        content: What a tool answers.
        body: What stands in place of an answer of a tool, or None.
        streams: What each GET is answered with, the last one for ever; without any, streams are refused. A tool is then
            answered with a stream that ends at once, to be asked for again.
        encoding: The content encoding that an answer of a tool claims; empty for none.
    """

    def __init__(self, *, sse=False, key=""):
        self.asked = []
        self.sessions = []
        self.forget = 0
        self.refusal = None
        self.drops = 0
        self.hangs = set()
        self.body = None
        self.streams = []
        self.encoding = ""
        self.content = [{"type": "text", "text": "got it"}]
        self.sse = sse
        self.key = key
        self.released = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                message = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.answer(self, message)

            def do_GET(self):
                outer.note(self, "")
                if not outer.streams:
                    outer.send(self, 405, b"", "text/plain")
                    return
                text = outer.streams.pop(0) if len(outer.streams) > 1 else outer.streams[0]
                outer.send(self, 200, text.encode(), "text/event-stream")

            def do_DELETE(self):
                outer.note(self, "")
                if "DELETE" in outer.hangs:
                    outer.released.wait()
                outer.send(self, 200, b"", "text/plain")

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/mcp"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        """End it, and all that hangs."""
        self.released.set()
        self.http.shutdown()
        self.http.server_close()

    @property
    def methods(self):
        """The methods of MCP that were asked, in order; of HTTP where there is none."""
        return [method or verb for verb, _, method in self.asked]

    def note(self, handler, method):
        """Keep what was asked."""
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.asked.append((handler.command, headers, method))
        return headers

    def send(self, handler, status, body, kind, **headers):
        """Send an answer."""
        handler.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(body)), **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    def answer(self, handler, message):
        """Answer a message of the client."""
        method = message["method"]
        headers = self.note(handler, method)
        if method in self.hangs:
            self.released.wait()
        if method == "tools/call" and self.drops:
            self.drops -= 1
            handler.close_connection = True
            return
        if method == "tools/call" and self.forget:
            self.forget -= 1
            self.send(handler, 404, b'{"error": "session not found"}', "application/json")
            return
        if self.key and headers.get("authorization") != f"Bearer {self.key}":
            self.send(handler, 401, b'{"error": {"message": "the key is not valid"}}', "application/json")
            return
        if self.refusal is not None:
            self.send(handler, self.refusal[0], self.refusal[1], "text/plain")
            return
        if "id" not in message:
            self.send(handler, 202, b"", "text/plain")
            return
        if method != "initialize" and headers.get("mcp-session-id") not in self.sessions:
            self.send(handler, 400, b"no session", "text/plain")
            return
        self._result(handler, message["id"], method, message.get("params") or {})

    def _result(self, handler, number, method, params):
        more = {}
        if method == "initialize":
            self.sessions.append(f"session-{len(self.sessions) + 1}")
            more = {"mcp-session-id": self.sessions[-1]}
            info = {"name": "small", "version": "1"}
            result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
        else:
            result = {"tools": TOOLS} if method == "tools/list" else {"content": self.content}
        if method == "tools/call" and self.encoding:
            more = {"content-encoding": self.encoding}
        if method == "tools/call" and self.body is not None:
            self.send(handler, 200, self.body, "application/json")
            return
        if method == "tools/call" and self.streams:
            self.send(handler, 200, POLL.encode(), "text/event-stream")
            return
        body = json.dumps({"jsonrpc": "2.0", "id": number, "result": result})
        if self.sse:
            note = json.dumps(
                {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}}
            )
            text = f": hello\n\nevent: message\ndata: {note}\n\nevent: message\ndata: {body}\n\n"
            self.send(handler, 200, text.encode(), "text/event-stream", **more)
        else:
            self.send(handler, 200, body.encode(), "application/json", **more)
