"""A server on loopback that answers as providers do, or do not: what it says to each request is scripted.

It speaks the streamed forms of OpenAI's chat completions and responses, Anthropic's messages and Google's
generateContent, by the path that is asked. A reply is written once and sent in each form.
"""

import json
import socket
import socketserver
import struct
import threading
from dataclasses import dataclass, field

WORDS = 3
"""A text arrives in so many pieces at most."""


@dataclass(frozen=True)
class Reply:
    """The reaction of the server to one request.

    Attributes:
        text: What the model says.
        pieces: The same in pieces of one's own.
        tool_calls: ``(name, arguments)`` of the tools that it asks for.
        finish: ``stop``, ``length``, ``refusal``, another word as it is, or empty: the stream never says why
            it ends.
        usage: Tokens in and out; None: it does not say.
        running: Each chunk says the usage so far, as some servers do; in OpenAI's form alone.
        cached: How many of those in came from a cache.
        status, headers, error: An error page in place of a stream: its status, its headers, its message.
        error_type: The provider's word for the error, beside its message.
        raw: The body in place of a stream, as it is.
        content_type: Of a stream or a body.
        ends: ``well``; ``cut``: the connection is closed in the middle; ``reset``; ``hang``: nothing more
            comes; ``short``: the stream ends well as HTTP, and its last events are missing.
        after: How many events are sent before it ends otherwise than well.
        model: Who answers, in OpenAI's form; empty: who was asked.
    """

    text: str = ""
    pieces: tuple = ()
    tool_calls: tuple = ()
    finish: str = "stop"
    usage: tuple | None = (11, 7)
    running: bool = False
    cached: int = 0
    status: int = 200
    headers: dict = field(default_factory=dict)
    error: str = ""
    error_type: str = ""
    raw: bytes | None = None
    content_type: str = "text/event-stream"
    ends: str = "well"
    after: int = 2
    model: str = ""


@dataclass
class Asked:
    """A request that came: where, with what headers, and what it held."""

    path: str
    headers: dict
    body: dict
    gone: threading.Event = field(default_factory=threading.Event)
    """The client has closed the connection before it was answered."""

    @property
    def shape(self):
        return shape_of(self.path)


def shape_of(path):
    if path.endswith("/chat/completions"):
        return "openai"
    if path.endswith("/responses"):
        return "responses"
    return "anthropic" if path.startswith("/v1/messages") else "google"


class ScriptedServer:
    """Answers each request with the next reply of its script; the last one is repeated.

    Args:
        replies: The script.
        choose: What gives the reply to a request in place of a script, where several come at once.
    """

    def __init__(self, *replies, choose=None):
        self.replies = list(replies) or [Reply("Hello")]
        self._choose = choose or (lambda _: self.replies[min(len(self.asked), len(self.replies) - 1)])
        self.asked = []
        self.came = threading.Condition()
        self._closing = threading.Event()
        self._server = None

    def __enter__(self):
        outer = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                outer._handle(self.request)

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True
            block_on_close = False

        self._server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def address(self):
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def base_url(self, shape):
        """The address as a provider's client wants it."""
        return f"{self.address}/v1" if shape in {"openai", "responses"} else self.address

    def wait_for(self, count):
        """Wait until so many requests have come."""
        with self.came:
            assert self.came.wait_for(lambda: len(self.asked) >= count, 60)
            return self.asked[count - 1]

    def _handle(self, connection):
        while (asked := _read(connection)) is not None:
            with self.came:
                reply = self._choose(asked)
                self.asked.append(asked)
                self.came.notify_all()
            if not self._answer(connection, asked, reply):
                return

    def _answer(self, connection, asked, reply):
        """Send a reply; whether the connection can be used again."""
        try:
            if reply.error or reply.status != 200:
                _send_page(connection, reply.status, _error_body(asked.shape, reply), reply.headers)
                return True
            if reply.raw is not None:
                _send_page(connection, 200, reply.raw, {"content-type": reply.content_type, **reply.headers})
                return True
            return self._stream(connection, asked, reply)
        except OSError:
            asked.gone.set()
            return False

    def _stream(self, connection, asked, reply):
        events = EVENTS[asked.shape](asked, reply)
        if reply.ends != "well":
            events = events[: reply.after]
        is_silent = reply.ends in {"hang", "reset", "cut"} and not reply.after
        if not is_silent:
            head = f"HTTP/1.1 200 OK\r\ncontent-type: {reply.content_type}\r\ntransfer-encoding: chunked\r\n\r\n"
            connection.sendall(head.encode())
        for event in events:
            connection.sendall(b"%x\r\n%s\r\n" % (len(event), event))
        if reply.ends in {"well", "short"}:
            connection.sendall(b"0\r\n\r\n")
            return True
        if reply.ends == "hang":
            self._hang(connection, asked)
        elif reply.ends == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False

    def _hang(self, connection, asked):
        """Say nothing more, until the other side goes or the server is closed."""
        connection.settimeout(0.05)
        while not self._closing.is_set():
            try:
                if not connection.recv(1024):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        asked.gone.set()


def _read(connection):
    """The next request of a connection; None when there is none."""
    data = b""
    try:
        while b"\r\n\r\n" not in data:
            piece = connection.recv(65536)
            if not piece:
                return None
            data += piece
        head, body = data.split(b"\r\n\r\n", 1)
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        while len(body) < int(headers.get("content-length", 0)):
            body += connection.recv(65536)
    except OSError:
        return None
    return Asked(first.split(" ")[1], headers, json.loads(body or b"{}"))


def _send_page(connection, status, body, headers):
    lines = {"content-type": "application/json", "content-length": str(len(body)), **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    connection.sendall(f"HTTP/1.1 {status} X\r\n{head}\r\n".encode("latin-1") + body)


def _error_body(shape, reply):
    if reply.raw is not None:
        return reply.raw
    message = reply.error or "no"
    if shape == "google":
        error = {"code": reply.status, "message": message, "status": reply.error_type.upper()}
    else:
        error = {"message": message, "type": reply.error_type or "some_error"}
        if shape in {"openai", "responses"}:
            error["code"] = reply.error_type or None
    return json.dumps({"type": "error", "error": error} if shape == "anthropic" else {"error": error}).encode()


def _pieces(reply):
    if reply.pieces:
        return reply.pieces
    words = reply.text.split(" ")
    step = max(1, -(-len(words) // WORDS))
    pieces = [" ".join(words[place : place + step]) for place in range(0, len(words), step)]
    return [piece if place == 0 else f" {piece}" for place, piece in enumerate(pieces) if piece or place]


def _data(event, name=""):
    return (f"event: {name}\n" if name else "").encode() + b"data: " + json.dumps(event).encode() + b"\n\n"


def _openai(asked, reply):
    frame = {"id": "chat-1", "object": "chat.completion.chunk", "created": 0}
    frame["model"] = reply.model or asked.body["model"]

    def choice(delta, reason=None):
        sent, received = reply.usage or (0, 0)
        total = {"prompt_tokens": sent, "completion_tokens": received, "total_tokens": sent + received}
        said = {"usage": total} if reply.running else {}
        return _data({**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}], **said})

    if reply.finish == "refusal":
        events = [choice({"role": "assistant", "refusal": reply.text})]
    else:
        events = [choice({"role": "assistant", "content": piece}) for piece in _pieces(reply)]
    for place, (name, arguments) in enumerate(reply.tool_calls):
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {
            "index": place,
            "id": f"call-{len(asked.body['messages'])}-{place}",
            "type": "function",
            "function": function,
        }
        events.append(choice({"role": "assistant", "tool_calls": [call]}))
    reason = "tool_calls" if reply.tool_calls else {"refusal": "stop"}.get(reply.finish, reply.finish)
    if reason:
        events.append(choice({}, reason))
    if reply.usage:
        sent, received = reply.usage
        usage = {"prompt_tokens": sent, "completion_tokens": received, "total_tokens": sent + received}
        usage |= {"prompt_tokens_details": {"cached_tokens": reply.cached}} if reply.cached else {}
        events.append(_data({**frame, "choices": [], "usage": usage}))
    return [*events, b"data: [DONE]\n\n"]


def _responses(asked, reply):
    page = {
        "id": "resp-1", "object": "response", "created_at": 0, "model": asked.body["model"], "output": [],
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "status": "in_progress",
    }  # fmt: skip
    events = [{"type": "response.created", "response": page}]
    output = []
    if reply.text or reply.pieces:
        kind = "refusal" if reply.finish == "refusal" else "output_text"
        part = {"type": kind, "refusal": ""} if kind == "refusal" else {"type": kind, "text": "", "annotations": []}
        item = {"id": "msg-1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
        place = {"item_id": "msg-1", "output_index": 0, "content_index": 0}
        said = "".join(_pieces(reply))
        whole = {**part, "refusal" if kind == "refusal" else "text": said}
        done = {**item, "status": "completed", "content": [whole]}
        delta = "response.refusal.delta" if kind == "refusal" else "response.output_text.delta"
        more = {} if kind == "refusal" else {"logprobs": []}
        events += [
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.content_part.added", "part": part, **place},
            *({"type": delta, "delta": piece, **more, **place} for piece in _pieces(reply)),
            {"type": "response.content_part.done", "part": whole, **place},
            {"type": "response.output_item.done", "output_index": 0, "item": done},
        ]
        output.append(done)
    for number, (name, arguments) in enumerate(reply.tool_calls):
        call = {
            "id": f"item-{number}", "type": "function_call", "name": name, "arguments": "", "status": "in_progress",
            "call_id": f"call-{len(asked.body['input'])}-{number}",
        }  # fmt: skip
        place = {"item_id": call["id"], "output_index": len(output)}
        done = {**call, "arguments": json.dumps(arguments), "status": "completed"}
        events += [
            {"type": "response.output_item.added", "output_index": len(output), "item": call},
            {"type": "response.function_call_arguments.delta", "delta": done["arguments"], **place},
            {"type": "response.output_item.done", "output_index": len(output), "item": done},
        ]
        output.append(done)
    ending = {"output": output, "status": "completed"}
    if reply.usage:
        sent, received = reply.usage
        ending["usage"] = {
            "input_tokens": sent, "output_tokens": received, "total_tokens": sent + received,
            "input_tokens_details": {"cached_tokens": reply.cached}, "output_tokens_details": {"reasoning_tokens": 0},
        }  # fmt: skip
    if reply.finish == "length":
        ending |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    if reply.finish:
        events.append({"type": f"response.{ending['status']}", "response": {**page, **ending}})
    return [_data({**event, "sequence_number": number}, event["type"]) for number, event in enumerate(events)]


def _anthropic(asked, reply):
    sent, received = reply.usage or (0, 0)
    used = {"input_tokens": sent - reply.cached, "output_tokens": 0, "cache_read_input_tokens": reply.cached}
    message = {
        "id": "message-1", "type": "message", "role": "assistant", "model": asked.body["model"], "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": used,
    }  # fmt: skip
    events = [{"type": "message_start", "message": message}]
    blocks = []
    if (reply.text or reply.pieces) and reply.finish != "refusal":
        blocks.append(
            ({"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in _pieces(reply)])
        )
    for place, (name, arguments) in enumerate(reply.tool_calls):
        call = {"type": "tool_use", "id": f"call-{len(asked.body['messages'])}-{place}", "name": name, "input": {}}
        blocks.append((call, [{"type": "input_json_delta", "partial_json": json.dumps(arguments)}]))
    for index, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    reason = {"stop": "end_turn", "length": "max_tokens", "refusal": "refusal"}.get(reply.finish, reply.finish or None)
    reason = "tool_use" if reply.tool_calls else reason
    if reason:
        delta = {"stop_reason": reason, "stop_sequence": None}
        events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": received}})
    events.append({"type": "message_stop"})
    return [_data(event, event["type"]) for event in events]


def _google(_, reply):
    def candidate(parts, **more):
        return {"candidates": [{"index": 0, "content": {"role": "model", "parts": parts}, **more}]}

    events = [candidate([{"text": piece}]) for piece in _pieces(reply)]
    events += [candidate([{"functionCall": {"name": name, "args": arguments}}]) for name, arguments in reply.tool_calls]
    known = {"stop": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}
    reason = known.get(reply.finish, reply.finish or None)
    last = candidate([{"text": ""}], **({"finishReason": reason} if reason else {}))
    if reply.usage:
        sent, received = reply.usage
        last["usageMetadata"] = {
            "promptTokenCount": sent,
            "candidatesTokenCount": received,
            "totalTokenCount": sent + received,
            **({"cachedContentTokenCount": reply.cached} if reply.cached else {}),
        }
    return [_data(event) for event in [*events, last]]


EVENTS = {"openai": _openai, "responses": _responses, "anthropic": _anthropic, "google": _google}
