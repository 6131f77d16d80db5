"""Takes what an agent writes while it works: text, calls of tools and its log go where they belong."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from attractor_nb.backends.agents.agent_events import (
    AgentEvent,
    Began,
    Complained,
    Consumed,
    Ended,
    TextWritten,
    Tokens,
    ToolAnswered,
    ToolCalled,
    WorkBegan,
    WorkEnded,
    plain_text,
)
from attractor_nb.backends.agents.agent_failures import AgentFailure, FailureKind
from attractor_nb.model.bounded_json import read_bounded_json
from attractor_nb.model.calls.providers import ModelName, read_model
from attractor_nb.model.events import ModelCallEnded, ToolCallEnded
from attractor_nb.model.outcome import MAX_COUNT, Usage
from attractor_nb.processes import CommandOutput

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence

    from attractor_nb.backends.agents.dialects import Dialect
    from attractor_nb.protocols import CommandResult
    from attractor_nb.stage import StageScope


LOG_NAME: Final = "agent.jsonl"
MAX_LOG_BYTES: Final = 1_000_000
"""Of what an agent writes, in its log; the rest is left out, and a last line says so. Recordings take no
larger file."""
_PIECES: Final = ('{"type":"stream_event"', '{"type": "stream_event"')
_MAX_UNLOGGED_CHARACTERS: Final = 100_000
MAX_TOOL_EVENTS: Final = 1000
"""Most tool calls that an attempt announces; the log has all."""

MAX_LINE_CHARACTERS: Final = 4 * 1024 * 1024
"""A longer line is dropped: no answer is that long, and it would be kept in memory."""


class Listener:
    """Listens to one call of an agent."""

    def __init__(self, dialect: Dialect, scope: StageScope | None, now: Callable[[], float]) -> None:
        """Begin to listen.

        Args:
            dialect: What the lines mean.
            scope: The stage's; None outside a run, where nothing is announced.
            now: A clock, in seconds.
        """
        self.transcript = Transcript()
        self._lines = ObjectLines()
        self._dialect = dialect
        self._scope = scope
        self._now = now
        self._began = now()
        self._room = MAX_LOG_BYTES
        self._announced = 0
        self._has_output = False
        self._unlogged = ""
        self.moved = asyncio.Event()
        """Set whenever what it says changes how long it may continue (``answer_grace``)."""

    @property
    def grace_seconds(self) -> float | None:
        """The seconds that the agent may continue. None before its final message."""
        if not self.transcript.is_over:
            return None
        return WORK_GRACE_SECONDS if self.transcript.is_waiting else ANSWER_GRACE_SECONDS

    @property
    def dropped_lines(self) -> int:
        """Lines that were too long to be read."""
        return self._lines.dropped

    def no_end(self) -> str:
        """The problem of an agent that ended well without reporting a result."""
        if self.transcript.is_empty:
            what = f"ended with exit code 0, but its output is not that of {self._dialect.title}"
        else:
            what = "ended with exit code 0, but without a result: its output is cut off"
        dropped = f"; {self.dropped_lines} lines were too long to be read" if self.dropped_lines else ""
        return f"{self._dialect.name} {what}{dropped}"

    def take(self, channel: str, text: str) -> None:
        """Take a piece of output (``processes.local.OutputListener``)."""
        if channel != "stdout":
            if self._scope is not None:
                self._scope.stream(plain_text(text), channel)
            return
        self._log(text)
        for line in self._lines.feed(text):
            self._take_line(line)

    def finish(self) -> None:
        """Nothing more comes: read the last line, and give up calls of tools that have not ended."""
        for line in self._lines.finish():
            self._take_line(line)
        self._log("", is_last=True)
        for call in self.transcript.open_calls():
            self._announce_tool(call)

    def announce_call(self, *, usage: Usage | None, finish: str = "", error: str = "", model: str = "") -> None:
        """Announce the call itself, with its result."""
        if self._scope is None:
            return
        self._scope.announce(
            ModelCallEnded(
                **self._facts(self._scope),
                model=f"{self._dialect.name}:{self.transcript.model or model}".removesuffix(":"),
                duration=self._now() - self._began,
                usage=usage,
                finish=finish,
                error=error,
                thread=self._scope.thread,
            )
        )

    def _take_line(self, line: Mapping[str, Any]) -> None:
        for event in self._dialect.read(line):
            self._tell(event)

    def _tell(self, event: AgentEvent) -> None:
        if isinstance(event, TextWritten):
            self._stream(event)
        was_over = self.transcript.is_over
        if (call := self.transcript.take(event, self._now())) is not None:
            self._announce_tool(call)
        if was_over or self.transcript.is_over:
            self.moved.set()

    def _stream(self, written: TextWritten) -> None:
        if self._scope is None:
            return
        is_next = self._has_output and not self.transcript.goes_on(written)
        self._has_output = True
        text = self.transcript.news(written)
        self._scope.stream(f"\n\n{text}" if is_next else text)

    def _announce_tool(self, call: ToolCall) -> None:
        self._announced += 1
        if self._scope is None or self._announced > MAX_TOOL_EVENTS:
            return
        self._scope.announce(
            ToolCallEnded(
                **self._facts(self._scope),
                tool=call.call.tool,
                call_id=call.call.call_id,
                arguments=call.arguments,
                duration=self._now() - call.began,
                result=call.result,
                error=call.error,
            )
        )

    def _log(self, text: str, *, is_last: bool = False) -> None:
        """Keep whole lines, without pieces of messages: these come whole, and would leave no room."""
        if self._scope is None or self._room <= 0:
            return
        *lines, self._unlogged = (self._unlogged + text).split("\n")
        text = "".join(f"{line}\n" for line in lines if not line.startswith(_PIECES))
        if is_last or len(self._unlogged) > _MAX_UNLOGGED_CHARACTERS:
            text, self._unlogged = text + self._unlogged, ""
        if not text:
            return
        data = text.encode("utf-8", "backslashreplace")
        piece, self._room = data[: self._room].decode("utf-8", "ignore"), self._room - len(data)
        if self._room <= 0:
            piece += f'\n{{"left_out": "what {self._dialect.name} wrote after this"}}\n'
        self._scope.files.append_text(LOG_NAME, piece)

    @staticmethod
    def _facts(scope: StageScope) -> dict[str, Any]:
        return {"name": scope.node_id, "index": scope.index, "visit": scope.visit, "attempt": scope.attempt}


class ObjectLines:
    r"""Takes a stream in pieces and gives the objects in it.

    What is not an object (a warning, a progress bar, half a line at the end) is passed over.

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
        """Number of lines that were too long."""

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
    """The object of a line; None for a line without one, and for one that says a key twice (ruling 47)."""
    line = plain_text(line).strip()
    if not line.startswith("{"):
        return None
    sizes = (0, 0)

    def made(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal sizes
        found = dict(pairs)
        sizes = len(pairs), len(found)  # the whole object is made last
        return found

    try:
        value: Any = read_bounded_json(line, object_pairs_hook=made)
    except ValueError:
        return None
    is_clear = isinstance(value, dict) and sizes[0] == sizes[1]
    return cast("Mapping[str, Any]", value) if is_clear else None


# The result of an agent's call: a fold over its stream, and the cost of its tokens.

MAX_ANSWER_CHARACTERS: Final = 4 * 1024 * 1024
"""Longest part of one message that is kept."""
_TAIL_CHARACTERS: Final = 2000
MAX_OPEN_CALLS: Final = 1000
"""Most unfinished tool calls that are remembered."""
MAX_VALUE_CHARACTERS: Final = 1000
"""Longest part of an argument, a result or an error in an event; the agent's log has all of it."""
MAX_ARGUMENTS: Final = 50


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool that has ended, or will not end any more."""

    call: ToolCalled
    began: float  #: When, by the clock of the listener.
    result: str = ""  #: The beginning of what the agent was told.
    error: str = ""  #: Reason of the failure, or empty.

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the call, cut to the size of an event."""
        return {str(name): _cut(value) for name, value in list(self.call.arguments.items())[:MAX_ARGUMENTS]}


@dataclass(slots=True)
class BackgroundWork:
    """Work of an agent that may continue after its final message: commands, agents of its own."""

    _open: dict[str, WorkBegan] = field(default_factory=dict[str, WorkBegan])
    _stopped: list[str] = field(default_factory=list[str])
    _calls: set[str] = field(default_factory=set[str])
    _ended_by_agent: set[str] = field(default_factory=set[str])

    def called(self, call: ToolCalled) -> None:
        """A tool was called, which may start work or end it."""
        if call.is_background and len(self._calls) < MAX_OPEN_CALLS:
            self._calls.add(call.call_id)
        if call.ends_work and len(self._ended_by_agent) < MAX_OPEN_CALLS:
            self._ended_by_agent.add(call.ends_work)
            self._open.pop(call.ends_work, None)

    def take(self, work: WorkBegan | WorkEnded) -> None:
        """Work began, runs in the background from now on, or ended."""
        if isinstance(work, WorkBegan):
            self._began(work)
        else:
            self._ended(work)

    def _began(self, work: WorkBegan) -> None:
        known = self._open.get(work.work_id)
        is_background = work.is_background or work.call_id in self._calls
        if known is not None:
            self._open[work.work_id] = replace(known, is_background=known.is_background or is_background)
        elif len(self._open) < MAX_OPEN_CALLS:
            self._open[work.work_id] = replace(work, is_background=is_background)

    def _ended(self, work: WorkEnded) -> None:
        """Note the end of work. Work that the agent itself ended does not count as stopped."""
        known = self._open.pop(work.work_id, None)
        if work.is_stopped and work.work_id not in self._ended_by_agent and len(self._stopped) < MAX_OPEN_CALLS:
            self._stopped.append((known.what if known else "") or work.what or work.work_id)

    @property
    def is_going_on(self) -> bool:
        """True if some is still running in the background."""
        return any(work.is_background for work in self._open.values())

    def problem(self) -> str:
        """The problem with the work at the end; empty if all of it was done."""
        unfinished = [work.what or work.work_id for work in self._open.values() if work.is_background]
        if self._stopped:
            return f"background work was stopped before it was done: {_cut_text('; '.join(self._stopped))}"
        return f"background work was not done: {_cut_text('; '.join(unfinished))}" if unfinished else ""


@dataclass(slots=True)
class Transcript:
    """The state of the stream so far."""

    session: str = ""  #: The session's id, or empty.
    model: str = ""  #: The model, or empty.
    answer: str = ""  #: The last message.
    complaint: Complained | None = None  #: The last thing that went wrong; one that is final stays.
    ended: Ended | None = None  #: The agent's own word on how it ended; None while it has not said it.
    is_empty: bool = True  #: It has said nothing at all.
    #: The tools that it was not allowed to call, each as often as it tried.
    denied: list[str] = field(default_factory=list[str])
    _is_open: bool = False
    _calls: dict[str, tuple[ToolCalled, float]] = field(default_factory=dict[str, "tuple[ToolCalled, float]"])
    _work: BackgroundWork = field(default_factory=BackgroundWork)
    _consumed: dict[str, Tokens] = field(default_factory=dict[str, Tokens])
    _is_over: bool = False

    @property
    def is_over(self) -> bool:
        """True if it has said its last word, and nothing after it."""
        return self._is_over

    @property
    def is_waiting(self) -> bool:
        """True if it may still hear of work that is running in the background."""
        return self._work.is_going_on

    @property
    def consumed(self) -> tuple[Tokens, ...]:
        """The tokens that its messages report, for a call that never reports a total."""
        return tuple(self._consumed.values())

    @property
    def is_against_itself(self) -> bool:
        """True if it has reported what makes it no success, whatever else it has said (ruling 47)."""
        is_final = self.complaint is not None and self.complaint.is_final
        return is_final or (self.ended is not None and self.ended.is_failure) or bool(self._work.problem())

    @property
    def says_what_is_wrong(self) -> bool:
        """True if it has complained of anything."""
        return self.complaint is not None or self.is_against_itself

    def failure(self, result: CommandResult) -> AgentFailure:
        """The failure as the agent reported it: at its end, else before it, else on stderr."""
        ended, complaint = self.ended or Ended(), self.complaint or Complained("")
        kind = ended.kind or complaint.kind
        if ended.error and complaint.message not in ended.error:
            return AgentFailure(ended.error, ended.status, result.exit_code, ended.kind)  # before was something else
        words = ended.error or complaint.message
        if not words and not result.exit_code and (words := self._work.problem()):
            kind = FailureKind.UNKNOWN  # a command's own words say nothing of the agent
        if not words:
            source = result.stderr.strip() or (result.stdout.strip() if self.is_empty else "")
            words = plain_text(source)[-_TAIL_CHARACTERS:]
        return AgentFailure(words, ended.status or complaint.status, result.exit_code, kind)

    def take(self, event: AgentEvent, now: float) -> ToolCall | None:
        """Take what was said.

        Args:
            now: When.

        Returns:
            The call of a tool that ended with it, if one did.
        """
        self.is_empty = False
        if isinstance(event, TextWritten | ToolCalled | Ended):
            self._is_over = isinstance(event, Ended)
        match event:
            case Began():
                self.session = event.session or self.session
                self.model = event.model or self.model
            case TextWritten():
                self._say(event)
            case ToolCalled():
                self._is_open = False
                self._work.called(event)
                if len(self._calls) < MAX_OPEN_CALLS:
                    self._calls[event.call_id] = (event, now)
            case ToolAnswered():
                return self._answered(event, now)
            case _:
                self._take_report(event)
        return None

    def _take_report(self, report: WorkBegan | WorkEnded | Consumed | Complained | Ended) -> None:
        """Take what it says about itself."""
        match report:
            case WorkBegan() | WorkEnded():
                self._work.take(report)
            case Consumed():
                self._consume(report)
            case Complained():
                self.complaint = self.complaint if self.complaint and self.complaint.is_final else report
            case Ended():
                self._end(report)

    def goes_on(self, written: TextWritten) -> bool:
        """True if a text continues the message before it, or is that message, whole at last."""
        return self._is_open and (not written.is_whole or written.text.startswith(self.answer))

    def news(self, written: TextWritten) -> str:
        """The new part of a text: a message that came in pieces comes once more as a whole."""
        return written.text[len(self.answer) :] if written.is_whole and self.goes_on(written) else written.text

    def open_calls(self) -> list[ToolCall]:
        """The calls that have not ended. Forgets them."""
        calls, self._calls = self._calls, {}
        return [ToolCall(call, began, error="the agent ended before it did") for call, began in calls.values()]

    def _consume(self, consumed: Consumed) -> None:
        """A message says it again and again; what it says at last counts."""
        named = consumed.message or next(reversed(self._consumed), "")
        if named in self._consumed or len(self._consumed) < MAX_OPEN_CALLS:
            self._consumed[named] = more_of(self._consumed.get(named), consumed.tokens)

    def _end(self, ended: Ended) -> None:
        """Take its last word. A later one takes no failure back."""
        if self.ended is not None and self.ended.is_failure and not ended.is_failure:
            failed = self.ended
            ended = replace(ended, is_failure=True, error=failed.error, status=failed.status, kind=failed.kind)
        self.ended = ended
        self.denied += ended.denied
        if ended.text is not None:
            self.answer = ended.text[:MAX_ANSWER_CHARACTERS]

    def _say(self, written: TextWritten) -> None:
        text = self.answer + self.news(written) if self.goes_on(written) else written.text
        self.answer = text[:MAX_ANSWER_CHARACTERS]
        self._is_open = not written.is_whole

    def _answered(self, answer: ToolAnswered, now: float) -> ToolCall | None:
        self._is_open = False
        known = self._calls.pop(answer.call_id, None)
        call = answer.called or (known[0] if known else None)
        if answer.is_denied and len(self.denied) < MAX_OPEN_CALLS:
            self.denied.append((call.tool if call else "") or "a tool")
        if call is None:
            return None  # a call that was not announced has no end to announce
        return ToolCall(call, known[1] if known else now, _cut_text(answer.result), _cut_text(answer.error))


def more_of(known: Tokens | None, tokens: Tokens) -> Tokens:
    """The larger of each count: one that is left out later was none the less consumed."""
    if known is None:
        return tokens
    return Tokens(
        known.model or tokens.model,
        max(known.input_tokens, tokens.input_tokens),
        max(known.output_tokens, tokens.output_tokens),
        max(known.cache_read_tokens, tokens.cache_read_tokens),
    )


def _cut(value: Any) -> Any:
    """A short JSON value; a long or nested one as the beginning of its text."""
    if isinstance(value, str):
        return _cut_text(plain_text(value))
    if value is None or isinstance(value, bool) or (isinstance(value, int | float) and abs(value) <= MAX_COUNT):
        return value
    try:
        return _cut_text(plain_text(json.dumps(value, ensure_ascii=False)))
    except (ValueError, RecursionError):
        return ""


def _cut_text(text: str) -> str:
    return text if len(text) <= MAX_VALUE_CHARACTERS else f"{text[:MAX_VALUE_CHARACTERS]}…"


def listed_price(provider: str, model: str, tokens: Sequence[Tokens]) -> float | None:
    """The list price in USD; None where the price of any part is not known.

    Args:
        provider: Whose models they are.
        model: The model of tokens that name none; empty when it is unknown.
        tokens: What was consumed.
    """
    from attractor_nb.backends.llm.metered_requests import price_of  # noqa: PLC0415 - agents need no library of models

    prices = [price_of(priced_model(provider, part.model or model), part) for part in tokens]
    known = [price for price in prices if price is not None]
    return sum(known) if known and len(known) == len(prices) else None


def priced_model(provider: str, model: str) -> ModelName:
    """The model as the price list names it: an agent asks its own maker's, whatever provider was written."""
    return ModelName(read_model(model).model, provider)


# The grace of an agent that has sent its final message and does not exit; after that it is ended (ruling 47).
#
# Its final message is its answer, and its reported usage counts.

ANSWER_GRACE_SECONDS: Final = 5.0
"""Between its last word and its end: it keeps its session, and ends its servers."""
WORK_GRACE_SECONDS: Final = 600.0
"""The same while work of its own is running in the background, of which it may still hear."""


class SaysWhenOver(Protocol):
    """A listener to an agent that knows its remaining grace.

    Attributes:
        grace_seconds: Seconds that it may continue from then. None before its final message.
    """

    moved: asyncio.Event  #: Set whenever ``grace_seconds`` begins anew, or is no longer.

    @property
    def grace_seconds(self) -> float | None:
        """As above."""
        ...


async def ended_in_grace(work: Coroutine[Any, Any, CommandResult], agent: SaysWhenOver) -> tuple[CommandResult, bool]:
    """Await an agent's end, at most for its grace once it has said its last word.

    Args:
        work: Runs it; cancelling ends it and all that it started.
        agent: Says when it is over.

    Returns:
        How it ended, and whether it had to be ended: then the exit code is 0, for it says nothing.
    """
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            agent.moved.clear()
            moved = asyncio.ensure_future(agent.moved.wait())
            try:
                waited = {task, moved}
                done, _ = await asyncio.wait(waited, timeout=agent.grace_seconds, return_when=asyncio.FIRST_COMPLETED)
            finally:
                moved.cancel()
            if not done:
                break
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
    return (CommandOutput(0, "", ""), True) if task.cancelled() else (task.result(), False)
