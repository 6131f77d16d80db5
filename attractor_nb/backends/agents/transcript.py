"""What a call of an agent came to: a fold over what its stream said, and what its tokens cost."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

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
from attractor_nb.model.calls.providers import ModelName, read_model
from attractor_nb.model.outcome import MAX_COUNT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attractor_nb.protocols import CommandResult

MAX_ANSWER_CHARACTERS: Final = 4 * 1024 * 1024
"""How much of one message is kept."""
_TAIL_CHARACTERS: Final = 2000
MAX_OPEN_CALLS: Final = 1000
"""How many calls of tools are remembered that have not ended."""
MAX_VALUE_CHARACTERS: Final = 1000
"""How much of an argument, a result or an error an event tells; the agent's log has all of it."""
MAX_ARGUMENTS: Final = 50


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool that has ended, or will not end any more."""

    call: ToolCalled
    began: float  #: When, by the clock of whoever listens.
    result: str = ""  #: The beginning of what the agent was told.
    error: str = ""  #: Why it failed, or empty.

    @property
    def arguments(self) -> dict[str, Any]:
        """What it was called with, cut to what an event tells."""
        return {str(name): _cut(value) for name, value in list(self.call.arguments.items())[:MAX_ARGUMENTS]}


@dataclass(slots=True)
class BackgroundWork:
    """What an agent started that may go on behind its last word: commands, agents of its own."""

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
        """Work began, goes on in the background from now on, or ended."""
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
        """What the agent itself ended was not stopped."""
        known = self._open.pop(work.work_id, None)
        if work.is_stopped and work.work_id not in self._ended_by_agent and len(self._stopped) < MAX_OPEN_CALLS:
            self._stopped.append((known.what if known else "") or work.what or work.work_id)

    @property
    def is_going_on(self) -> bool:
        """Whether some goes on in the background."""
        return any(work.is_background for work in self._open.values())

    def problem(self) -> str:
        """What is wrong with it at the end; empty when all of it was done."""
        unfinished = [work.what or work.work_id for work in self._open.values() if work.is_background]
        if self._stopped:
            return f"background work was stopped before it was done: {_cut_text('; '.join(self._stopped))}"
        return f"background work was not done: {_cut_text('; '.join(unfinished))}" if unfinished else ""


@dataclass(slots=True)
class Transcript:
    """What the stream has said so far."""

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
        """Whether it has said its last word, and nothing after it."""
        return self._is_over

    @property
    def is_waiting(self) -> bool:
        """Whether it may still hear of work that goes on in the background."""
        return self._work.is_going_on

    @property
    def consumed(self) -> tuple[Tokens, ...]:
        """What its messages have consumed, as far as they say it, for a call that never says the whole."""
        return tuple(self._consumed.values())

    @property
    def is_against_itself(self) -> bool:
        """Whether it has reported what makes it no success, whatever else it has said (ruling 47)."""
        is_final = self.complaint is not None and self.complaint.is_final
        return is_final or (self.ended is not None and self.ended.is_failure) or bool(self._work.problem())

    @property
    def says_what_is_wrong(self) -> bool:
        """Whether it has complained of anything."""
        return self.complaint is not None or self.is_against_itself

    def failure(self, result: CommandResult) -> AgentFailure:
        """What the agent said about its failure: at its end, else on the way, else on stderr."""
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
        """Whether a text goes on with the message before it, or is that message, whole at last."""
        return self._is_open and (not written.is_whole or written.text.startswith(self.answer))

    def news(self, written: TextWritten) -> str:
        """What of a text has not been said yet: a message that came in pieces comes once more as a whole."""
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
            return None  # of a call that nobody saw there is nothing to tell
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
        model: The model of tokens that name none; empty when nobody knows it.
        tokens: What was consumed.
    """
    from attractor_nb.backends.llm.prices import price_of  # noqa: PLC0415 - agents need no library of models

    prices = [price_of(priced_model(provider, part.model or model), part) for part in tokens]
    known = [price for price in prices if price is not None]
    return sum(known) if known and len(known) == len(prices) else None


def priced_model(provider: str, model: str) -> ModelName:
    """The model as the price list names it: an agent asks its own maker's, whatever provider was written."""
    return ModelName(read_model(model).model, provider)
