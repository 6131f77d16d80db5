"""Lines read at a terminal, without blocking the event loop, and forms filled in by them.

A pipe or terminal is read when the loop reports input. A file is read at once, and a stream without a file
descriptor (a text in memory) is read directly.
"""

from __future__ import annotations

import asyncio
import codecs
import io
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TextIO

from attractor_nb.decisions.gate_choices import check_form, expected, value_of_text
from attractor_nb.errors import AnswerRefused
from attractor_nb.maybe_async import call
from attractor_nb.model.texts import shown

if TYPE_CHECKING:
    from attractor_nb.model.question import Form, FormField

MAX_LINES: Final = 10
"""Wrong lines after which a form is given up: a pipe that repeats itself must end."""
AskField = Callable[["FormField"], Awaitable[str | None]]
"""Asks for a field: the line, or None when there are no more."""

CHUNK_BYTES = 4096


async def fill_in(form: Form, ask: AskField, tell: Callable[[str], None]) -> dict[str, Any] | None:
    """The checked values of the form; None when the input ends, or is wrong too many times.

    An empty line leaves out an optional field. When the form does not accept all fields together, the wrong
    ones are asked for again.
    """
    values: dict[str, Any] = {}
    wrong = 0
    waiting = list(form.fields)
    while waiting:
        entry = waiting.pop(0)
        line = await ask(entry)
        if line is None:
            tell("\nno more input: the question is skipped")
            return None
        try:
            _take(entry, line, values)
            if not waiting:
                check_form(form, values)
        except AnswerRefused as refused:
            wrong += 1
            if wrong >= MAX_LINES:
                tell("the form was abandoned")
                return None
            for name, words in refused.fields.items():
                tell(shown(f"  {name}: {words}" if name else f"  {words}"))
            at_fault = [each for each in form.fields if each.name in refused.fields]
            waiting = [*(at_fault or form.fields), *waiting]
    return values


def _take(entry: FormField, line: str, values: dict[str, Any]) -> None:
    """Keep what a line means; raises AnswerRefused when it means nothing."""
    values.pop(entry.name, None)
    if line.strip():
        values[entry.name] = value_of_text(entry, line)
    elif entry.is_required:
        raise AnswerRefused(f"{entry.name} needs a value", fields={entry.name: "needs a value"})


def field_prompt(entry: FormField) -> str:
    """Prompt of a field: ``Score (a whole number, at least 0)``."""
    words = expected(entry)
    if entry.kind.value == "texts":
        words = f"{words}, several with commas"
    if not entry.is_required:
        default = "nothing" if entry.default is None else entry.default
        words = f"{words}; an empty line: {default}"
    about = f", {entry.words}" if entry.words else ""
    return f"{entry.title or entry.name}{about} ({words})"


class LineInput:
    """Reads lines of a stream, and buffers input after a line for the next one."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._buffer = ""
        self._is_at_end = False
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    async def read_line(self) -> str | None:
        """The next line without its end; None when there are no more. Can be cancelled."""
        try:
            descriptor = self._stream.fileno()
        except (AttributeError, io.UnsupportedOperation):
            line = self._stream.readline()
            return line.rstrip("\r\n") if line else None
        while "\n" not in self._buffer and not self._is_at_end:
            data = await self._read_available(descriptor)
            self._buffer += self._decoder.decode(data, final=not data)
            self._is_at_end = not data
        line, separator, self._buffer = self._buffer.partition("\n")
        return line.rstrip("\r") if line or separator else None

    async def _read_available(self, descriptor: int) -> bytes:
        loop = asyncio.get_running_loop()
        readable: asyncio.Future[None] = loop.create_future()
        try:
            loop.add_reader(descriptor, lambda: readable.done() or readable.set_result(None))
        except PermissionError:  # a plain file: always readable
            return os.read(descriptor, CHUNK_BYTES)
        except NotImplementedError:  # the loop of Windows knows sockets only
            return (await call(self._stream.readline)).encode()
        try:
            await readable
        finally:
            loop.remove_reader(descriptor)
        return os.read(descriptor, CHUNK_BYTES)
