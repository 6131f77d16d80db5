"""JSON objects out of a stream of text, a line each, whatever else is in it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.backends.agents.agent_events import plain_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_LINE_CHARACTERS: Final = 4 * 1024 * 1024
"""A longer line is dropped: no answer is that long, and it would be kept in memory."""


class ObjectLines:
    r"""Takes a stream in pieces and gives the objects in it.

    What is no object (a warning, a progress bar, half a line at the end) is passed over.

    >>> lines = ObjectLines()
    >>> list(lines.feed('{"type": "a"}\nhm\n{"ty')), list(lines.feed('pe": "b"}\n'))
    ([{'type': 'a'}], [{'type': 'b'}])
    """

    def __init__(self, *, max_characters: int = MAX_LINE_CHARACTERS) -> None:
        """Begin.

        Args:
            max_characters: How long a line may be.
        """
        self._max_characters = max_characters
        self._pending: list[str] = []
        self._length = 0
        self.dropped = 0
        """How many lines were too long."""

    def feed(self, text: str) -> Iterator[Mapping[str, Any]]:
        """Take the next piece; the objects that are whole by now."""
        *lines, rest = text.split("\n")
        for line in lines:
            self._add(line)
            yield from self.finish()
        self._add(rest)

    def finish(self) -> Iterator[Mapping[str, Any]]:
        """The object in what is left, if it is one: the last line of a stream need not be ended."""
        line, self._pending = "".join(self._pending), []
        if self._length > self._max_characters:
            self.dropped += 1
            line = ""
        self._length = 0
        if (found := _object(line)) is not None:
            yield found

    def _add(self, piece: str) -> None:
        self._length += len(piece)
        if self._length > self._max_characters:
            self._pending = []
        elif piece:
            self._pending.append(piece)


def _object(line: str) -> Mapping[str, Any] | None:
    line = plain_text(line).strip()
    if not line.startswith("{"):
        return None
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else None
