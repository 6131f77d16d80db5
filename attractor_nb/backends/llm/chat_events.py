"""Chat completions as OpenAI streams them, made from what other servers send in their place.

Servers that speak the interface loosely ignore ``stream=true`` and answer with one completion or with a JSON object a
line, send a whole ``message`` where an event has a ``delta``, number parallel tool calls all with 0, count tokens with
null, -1 or 10^30, or report a failure in a line of its own under status 200. Clients see nothing in any of these, or
lose what the server said.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.model.bounded_json import read_bounded_json
from attractor_nb.model.outcome import MAX_COUNT

if TYPE_CHECKING:
    from collections.abc import Iterator

_DATA, _ERROR, _END = b"data:", b"error:", b"data: [DONE]\n\n"
_LOOSE: Final = re.compile(rb'"message"|"tool_calls"|"usage"\s*:\s*\{')
"""Parts of an event that may need a change; an event without them is passed on unchanged."""
_SHOWN: Final = 300


class ChatEvents:
    """The lines of one streamed completion."""

    def __init__(self) -> None:
        self._rest = b""
        self._calls: dict[int, _Calls] = {}

    def take(self, piece: bytes) -> bytes:
        """Take a piece of the stream and return the lines that it completes, changed where they must be."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        return b"".join(self._line(line) + b"\n" for line in lines)

    def end(self) -> bytes:
        """Return the last line of a stream that ended without a line break."""
        return self._line(self._rest) if self._rest else b""

    def whole(self, body: bytes) -> bytes:
        """The events of an answer that was not streamed: one JSON object, or one a line."""
        found = list(_objects(body))
        if not found:
            words = body.decode("utf-8", "replace").strip()
            found = [{"error": {"message": words[:_SHOWN] or "the answer is empty"}}]
        return b"".join(b"data: " + _written(self._chunk(each)) + b"\n\n" for each in found) + _END

    def _line(self, line: bytes) -> bytes:
        if line.startswith(_ERROR):
            said = line[len(_ERROR) :].strip()
            found = next(_objects(said), None) or {"message": said.decode("utf-8", "replace")[:_SHOWN]}
            return b"data: " + _written(found if "error" in found else {"error": found}) + b"\n"
        if not line.startswith(_DATA) or not _LOOSE.search(line):
            return line
        event = next(_objects(line[len(_DATA) :]), None)
        return line if event is None else b"data: " + _written(self._chunk(event))

    def _chunk(self, event: dict[str, Any]) -> dict[str, Any]:
        """An event with a delta in each choice, an index for each tool call, and a usage that counts or none."""
        usage: object = event.get("usage")
        if isinstance(usage, dict) and not _is_counted(cast("dict[str, Any]", usage)):
            del event["usage"]
        choices: object = event.get("choices")
        if not isinstance(choices, list):
            return event
        for choice in cast("list[object]", choices):
            if not isinstance(choice, dict):
                continue
            parts = cast("dict[str, Any]", choice)
            if "delta" not in parts and isinstance(parts.get("message"), dict):
                parts["delta"] = parts.pop("message")
                event["object"] = "chat.completion.chunk"
            delta = parts.get("delta")
            if isinstance(delta, dict):
                self._number(parts.get("index"), cast("dict[str, Any]", delta).get("tool_calls"))
        return event

    def _number(self, choice: object, calls: object) -> None:
        """Give two tool calls of a choice that share an index an index each; a piece without an id belongs to the last.

        Args:
            choice: The index of the choice.
            calls: The pieces of tool calls in an event.
        """
        if not isinstance(calls, list):
            return
        known = self._calls.setdefault(choice if isinstance(choice, int) else 0, _Calls())
        for call in cast("list[object]", calls):
            if isinstance(call, dict):
                parts = cast("dict[str, Any]", call)
                parts["index"] = known.index_of(parts.get("id"), parts.get("index"))


class _Calls:
    """The tool calls of a choice."""

    def __init__(self) -> None:
        self._by_id: dict[str, int] = {}
        self._latest: dict[object, int] = {}
        """The index of the last call that came with an index."""

    def index_of(self, name: object, sent: object) -> int:
        free = max(self._by_id.values(), default=-1) + 1
        if not isinstance(name, str) or not name:
            return self._latest.get(sent, sent if isinstance(sent, int) else max(0, free - 1))
        if name not in self._by_id:
            is_free = isinstance(sent, int) and sent not in self._by_id.values()
            self._by_id[name] = cast("int", sent) if is_free else free
        self._latest[sent] = self._by_id[name]
        return self._by_id[name]


def _is_counted(usage: dict[str, Any]) -> bool:
    counts = [usage.get(key) for key in ("prompt_tokens", "completion_tokens")]
    return all(type(count) is int and 0 <= count <= MAX_COUNT for count in counts)


def _objects(text: bytes) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text, which is one or has one on each line; none of one that has anything else."""
    try:
        found = [read_bounded_json(text)]
    except ValueError:
        try:
            found = [read_bounded_json(line) for line in text.split(b"\n") if line.strip()]
        except ValueError:
            return
    if all(isinstance(each, dict) for each in found):
        yield from cast("list[dict[str, Any]]", found)


def _written(event: dict[str, Any]) -> bytes:
    return json.dumps(event).encode("ascii")
