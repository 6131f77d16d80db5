"""The requests of one talk: each waits for its turn, is paid for, recorded, read to its end and announced.

Loads pydantic-ai. An answer counts when its stream is complete. What a request says, and whether another
one follows, is not known here.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic_ai.exceptions import IncompleteToolCall
from pydantic_ai.messages import (
    BinaryContent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ToolCallPart,
)

from attractor_nb.backends.llm.provider_failures import (
    UNREADABLE,
    CallFailed,
    Ending,
    cut_short,
    ending_of,
    error_type_of,
    failure_of,
    refused,
    too_slow,
    unreadable,
)
from attractor_nb.model.calls.call_content import request_file
from attractor_nb.model.calls.messages import attachment_tokens, estimated_tokens
from attractor_nb.model.calls.providers import PROVIDERS, ModelName, known_provider
from attractor_nb.model.events import ModelCallEnded, ModelCallWaiting, RunWarning
from attractor_nb.model.outcome import Usage
from attractor_nb.model.texts import ends_in_half, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from pydantic_ai.messages import ModelMessage, ModelResponse

    from attractor_nb.backends.llm.model_requests import Request, Target
    from attractor_nb.backends.llm.rate_gates import Permit, RateGates
    from attractor_nb.stage import StageScope


ASSUMED_ANSWER_TOKENS: Final = 1000
"""Of an answer whose request sets no limit, for the rate of tokens; it is settled with what came."""

MAX_NAME_CHARACTERS: Final = 200
"""Of a model's name, as a server says it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a talk."""

    read_seconds: float  #: Longest silence of a server.
    request_seconds: float  #: Time limit of one request in all.
    requests: int  #: Most requests of a stage to one model.


@dataclass(slots=True)
class MeteredRequests:
    """Makes the requests of a talk with one model."""

    target: Target  #: The model that is asked.
    address: str  #: Its address, or empty for that of the provider.
    request: Request  #: The request of the node.
    limits: Limits  #: Bounds.
    scope: StageScope | None  #: The stage that asks; None outside a run.
    stream: Callable[[str], None]  #: Given the text as it arrives.
    gates: RateGates  #: Hold requests back where the target has rates.
    tools: tuple[str, ...] = ()  #: Names of the tools that the model gets.
    usage: Usage = field(default_factory=Usage)  #: Usage of the requests so far.
    _open: Any = None
    """The stream of the request under way, once its server has answered."""

    async def make(
        self,
        opened: AbstractAsyncContextManager[Any],
        read: Callable[[Any], ModelResponse],
        messages: Sequence[ModelMessage],
    ) -> ModelResponse:
        """Make one request once there is money for it, and read its answer to the end.

        Args:
            opened: Makes the request, and gives its stream.
            read: Gives a stream's response.
            messages: What is sent.
        """
        if self.scope is None or not self.scope.is_bounded:
            return await self._paid(opened, read, messages)
        async with self.scope.paying(self._most(messages)):
            return await self._paid(opened, read, messages)

    async def _paid(
        self,
        opened: AbstractAsyncContextManager[Any],
        read: Callable[[Any], ModelResponse],
        messages: Sequence[ModelMessage],
    ) -> ModelResponse:
        """Make a request and read its answer to the end; announce what came of it."""
        permit = await self._let_through(messages) if self.target.rates else None
        began = time.monotonic()
        self._record(messages)
        response: ModelResponse | None = None
        self._open = None
        try:
            response = await self._received(opened, read)
            self._check(response)
        except asyncio.CancelledError:  # of a stage that ran out of time: what was read was paid for
            with contextlib.suppress(*UNREADABLE):
                if self._open is not None:
                    usage = self._counted(read(self._open), messages, permit)
                    self._announce(began, usage, error="it was cut off", error_type="cancelled")
            raise
        except Exception as error:  # announced, whatever it is, and raised again
            failure = failure_of(error, self.target, self.address)
            message = failure.error.message if failure else type(error).__name__
            usage = None if response is None else self._counted(response, messages, permit)
            self._announce(began, usage, error=message, error_type=error_type_of(error))
            raise
        finish = str(response.finish_reason or raw_reason(response))
        answered_by = (response.model_name or "")[:MAX_NAME_CHARACTERS]
        self._announce(began, self._counted(response, messages, permit), finish, answered_by=answered_by)
        return response

    async def _let_through(self, messages: Sequence[ModelMessage]) -> Permit:
        """Wait until the rates of the provider allow another request."""
        received = ASSUMED_ANSWER_TOKENS if self.request.max_tokens is None else self.request.max_tokens
        endpoint = self.target.endpoint
        account = self.target.provider if endpoint is None else endpoint.key_env
        gate = self.gates.gate(account, self.address)
        return await gate.enter(self.target.rates, tokens_of(messages) + received, self._tell_of_wait)

    def _tell_of_wait(self, seconds: float) -> None:
        if self.scope is not None:
            model, rates = str(self.target), str(self.target.rates)
            self.scope.announce(ModelCallWaiting(**self.scope.place, model=model, seconds=seconds, rates=rates))

    async def _received(
        self, opened: AbstractAsyncContextManager[Any], read: Callable[[Any], ModelResponse]
    ) -> ModelResponse:
        """Read an answer to the end of its stream, and hand its text on as it arrives."""
        paced = PacedText(self.stream)
        limit = asyncio.timeout(self.limits.request_seconds)
        try:
            async with limit, opened as stream:
                self._open = stream
                async for event in stream:
                    paced.add(text_of(event))
                response = read(stream)
                make_whole(response)
                return response
        except UNREADABLE as error:  # here alone: from a tool it is our own bug
            raise CallFailed(unreadable(self.target, error)) from error
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise CallFailed(too_slow(self.target, self.address, self.limits.request_seconds)) from error
        finally:
            paced.end()

    def _check(self, response: ModelResponse) -> None:
        """Refuse an empty answer, and warn of one whose end is unknown."""
        match answer_ending(response):
            case Ending.BROKEN:
                raise CallFailed(cut_short(self.target))
            case Ending.REFUSED:
                details = response.provider_details or {}
                raise CallFailed(refused(self.target, str(details.get("refusal") or response.text or "")))
            case Ending.TRUNCATED if any(isinstance(part, ToolCallPart) for part in response.parts):
                raise IncompleteToolCall("the limit of tokens was reached within a call of a tool")
            case Ending.UNKNOWN if self.scope is not None:
                node, reason = self.scope.node_id, raw_reason(response) or response.finish_reason
                message = (
                    f"{node}: {self.target} says that its answer ended with {reason!r}; "
                    "this end marker is unknown, and the answer is treated as complete"
                )
                self.scope.announce(RunWarning(message=message, node=node))
            case _:
                return

    def _counted(self, response: ModelResponse, messages: Sequence[ModelMessage], permit: Permit | None) -> Usage:
        """The usage of a request, added to that of the conversation; an estimate if the server does not report it."""
        counted: Any = response.usage
        is_estimated = not (counted.input_tokens or counted.output_tokens)
        if is_estimated:
            counted = Usage(tokens_of(messages), tokens_of([response]))
        own = usage_of(ModelName(self.target.model, self.target.provider), counted, is_estimated=is_estimated)
        self.usage = self.usage + own
        if permit is not None:
            permit.settle(own.total_tokens)
        return own

    def _record(self, messages: Sequence[ModelMessage]) -> None:
        """Write what is asked before it is: a process that is killed meanwhile has asked anyway."""
        if self.scope is None:
            return
        compose, number = partial(self._plain, list(messages)), 1
        while not self.scope.files.create_deferred(request_file(number), compose):
            number += 1

    def _most(self, messages: Sequence[ModelMessage]) -> Usage:
        """The most that a request can consume, by estimate."""
        name = ModelName(self.target.model, self.target.provider)
        return worst_case(name, tokens_of(messages), self.request.max_tokens)

    def _plain(self, messages: Sequence[ModelMessage]) -> str:
        """A request as JSON: who is asked, and how; no keys, and of messages their size."""
        most = self._most(messages)
        plain = {
            **self.request.to_plain(),
            "model": str(self.target),
            "address": self.address,
            "tools": list(self.tools),
            "messages": len(messages),
            "attachments": [each.facts() for each in self.scope.attachments] if self.scope else [],
            "estimated_input_tokens": most.input_tokens,
            "at_most_usd": most.cost_usd,
        }
        return (
            json.dumps({name: value for name, value in plain.items() if value not in ("", None, [])}, indent=2) + "\n"
        )

    def _announce(
        self,
        began: float,
        usage: Usage | None,
        finish: str = "",
        *,
        error: str = "",
        error_type: str = "",
        answered_by: str = "",
    ) -> None:
        if self.scope is None:
            return
        self.scope.announce(
            ModelCallEnded(
                **self.scope.place,
                model=str(self.target),
                duration=time.monotonic() - began,
                usage=usage,
                finish=finish,
                error=error,
                error_type=error_type,
                thread=self.scope.thread,
                answered_by=answered_by,
            )
        )


# Coalescing of streamed text: many small pieces become fewer.
#
# A model emits a token at a time, and each piece is an event for all observers. A character that arrives in two
# halves is passed on whole.

PACE_SECONDS: Final = 0.05
"""No more than one piece in this time; what waits is handed on when it is over."""


class PacedText:
    """Hands text on at a pace. It belongs to the running loop."""

    def __init__(self, hand_on: Callable[[str], None], *, seconds: float = PACE_SECONDS) -> None:
        self._hand_on = hand_on
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._waiting: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._next_at = 0.0

    def add(self, text: str) -> None:
        """Take a piece: handed on now, or with those that come until the pace allows it."""
        if not text:
            return
        self._waiting.append(text)
        if self._timer is None:
            left = self._next_at - self._loop.time()
            if left <= 0:
                self.flush()
            else:
                self._timer = self._loop.call_later(left, self.flush)

    def flush(self) -> None:
        """Hand on what waits; half a character waits for the other half."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting:
            text = "".join(self._waiting)
            self._waiting.clear()
            if ends_in_half(text):
                self._waiting.append(text[-1])
                text = text[:-1]
            self._hand(text)

    def end(self) -> None:
        """Hand on whatever waits: no tail is lost."""
        self.flush()
        self._hand("".join(self._waiting))
        self._waiting.clear()

    def _hand(self, text: str) -> None:
        if text:
            self._next_at = self._loop.time() + self._seconds
            self._hand_on(whole(text))


# Messages, answers and events of pydantic-ai: text, the reason of an answer's end, estimated tokens.
#
# Loads pydantic-ai.


def tokens_of(messages: Sequence[ModelMessage]) -> int:
    """Our estimate for messages, the instructions of the last one included."""
    texts: list[str] = []
    shown = 0
    for part in (part for one in messages for part in one.parts):
        content: Any = getattr(part, "content", "") or getattr(part, "args", "")
        if isinstance(content, list):  # text with marks for a cache between its parts
            pieces = cast("list[Any]", content)
            content = "".join(each for each in pieces if isinstance(each, str))
            files = (each for each in pieces if isinstance(each, BinaryContent))
            shown += sum(attachment_tokens(each.media_type, len(each.data)) for each in files)
        texts.append(str(content))
    instructions = getattr(messages[-1], "instructions", None) if messages else None
    return estimated_tokens("".join([*texts, instructions or ""])) + shown


def answer_ending(response: ModelResponse) -> Ending:
    """The normalized reason why an answer ended."""
    details = response.provider_details or {}
    if details.get("refusal"):
        return Ending.REFUSED
    reason = details.get("finish_reason")
    is_unreadable = response.finish_reason is None and reason is not None and not isinstance(reason, str)
    if response.state != "complete" or is_unreadable:
        return Ending.BROKEN
    return ending_of(response.finish_reason, raw_reason(response))


def raw_reason(response: ModelResponse) -> str:
    """The provider's own reason why an answer ended; empty if it gives none."""
    return str((response.provider_details or {}).get("finish_reason") or "")


def make_whole(response: ModelResponse) -> None:
    """Join or replace halves of characters, in the parts themselves: an agent continues these."""
    for part in response.parts:
        if isinstance(part, TextPart | ThinkingPart):
            part.content = whole(part.content)
        elif isinstance(part, ToolCallPart) and isinstance(part.args, str):
            part.args = whole(part.args)


def is_marked_reasoning(part: object) -> bool:
    """True if a part is reasoning that was in the text between marks, and pydantic-ai has cut out already."""
    return isinstance(part, ThinkingPart) and part.id == "content" and not part.signature


def answer_text(response: ModelResponse) -> str:
    """All of an answer's text, with the reasoning in it as it came, between its marks."""
    pieces: list[str] = []
    for part in response.parts:
        if isinstance(part, TextPart):
            pieces.append(part.content)
        elif isinstance(part, ThinkingPart) and is_marked_reasoning(part):
            pieces.append(f"<think>{part.content}</think>\n")
    return "".join(pieces)


def text_of(event: object) -> str:
    """The piece of text that an event of a stream brings, or empty."""
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return event.part.content
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return event.delta.content_delta
    return ""


# The cost of model calls, by the price list of genai-prices (extra ``llm``).
#
# An estimate by list price. A model that is not on the list has no price, which is not zero. The address of a server
# does not count: a proxy has the prices of the provider whose models it serves.

UNLIMITED_ANSWER_TOKENS: Final = 16_384
"""Of an answer whose request sets no limit: what providers take by themselves is about that or less."""
_NEVER_USED: Final = frozenset({"web_searches_kcount", "storage_searches_kcount"})
"""Prices of services that our requests never use."""


@cache
def has_prices() -> bool:
    """True if a price list is installed."""
    return importlib.util.find_spec("genai_prices") is not None


def usage_of(name: ModelName, counted: Any, *, is_estimated: bool = False) -> Usage:
    """The usage of a call, with its price.

    Args:
        name: The model.
        counted: As the library counted it; tokens of its caches are part of its input tokens.
        is_estimated: The server did not say, and this is our estimate.
    """
    return Usage(
        counted.input_tokens,
        counted.output_tokens,
        price_of(name, counted),
        1,
        cached_tokens=getattr(counted, "cache_read_tokens", 0) or 0,
        estimated_calls=int(is_estimated),
    )


def price_of(name: ModelName, usage: Any) -> float | None:
    """The price of a call in USD.

    Args:
        name: The model; without a provider it has no price.
        usage: What it consumed: a ``Usage``, or whatever else has ``input_tokens``, ``output_tokens`` and,
            where they are known, tokens of caches, as pydantic-ai's ``RequestUsage`` does.

    Returns:
        The price, or None when it is not known.
    """
    found = _listed(name.model, name.provider) if name.provider and name.model and has_prices() else None
    if found is None:
        return None
    provider, model, rates = found
    read = getattr(usage, "cache_read_tokens", 0) or getattr(usage, "cached_tokens", 0)
    written = getattr(usage, "cache_write_tokens", 0)
    if rates is not None and not (read or written):
        return float((rates[0] * usage.input_tokens + rates[1] * usage.output_tokens) / 1_000_000)
    from genai_prices.types import Usage as Priced  # noqa: PLC0415 - as below

    priced = Priced(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=read or None,
        cache_write_tokens=written or None,
    )
    try:
        calculated = model.calc_price(
            priced, provider, genai_request_timestamp=datetime.now(UTC), auto_update_timestamp=None
        )
    except (LookupError, ValueError):  # counts that the list has no price for
        return None
    return float(calculated.total_price)


def worst_case(name: ModelName, input_tokens: int, max_tokens: int | None) -> Usage:
    """The most that one request can consume: its prompt by estimate, and an answer up to its limit.

    A request without its own limit is taken to answer with ``UNLIMITED_ANSWER_TOKENS``.
    """
    received = UNLIMITED_ANSWER_TOKENS if max_tokens is None else max_tokens
    cost = price_of(name, Usage(input_tokens, received))
    return Usage(input_tokens, received, cost, 1, estimated_calls=1)


@lru_cache(maxsize=32)
def listed_models(provider: str) -> tuple[str, ...]:
    """The models that the price list has of a provider; empty where there is no list, or it has none.

    Args:
        provider: Its name; empty for all whose models a name tells.
    """
    if not has_prices():
        return ()
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - as above

    wanted = known_provider(provider)
    found: list[str] = []
    for ours in [each for each in PROVIDERS if each is wanted or (not provider and each.models)]:
        names = {ours.name, *ours.aliases}
        listed = (each.id for entry in get_snapshot().providers if entry.id in names for each in entry.models)
        found += (model for model in listed if ours.models is None or ours.models.match(model))
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=256)
def _listed(model: str, provider: str) -> tuple[Any, Any, tuple[Decimal, Decimal] | None] | None:
    """A model's provider, the model, and its rates where they never change; None for an unlisted one."""
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - a list of a megabyte, for calls of models alone

    try:
        found_provider, found = get_snapshot().find_provider_model(model, None, provider, None)
    except (LookupError, ValueError):
        return None
    return found_provider, found, _flat_rates(found.prices)


def _flat_rates(prices: Any) -> tuple[Decimal, Decimal] | None:
    """USD for a million tokens in and out; None where time, amount or requests count for the price, too."""
    listed = {
        name: price
        for name, price in getattr(prices, "__dict__", {}).items()
        if price is not None and name not in _NEVER_USED
    }
    sent, received = listed.get("input_mtok"), listed.get("output_mtok")
    if any(not name.endswith("_mtok") for name in listed):
        return None
    return (sent, received) if isinstance(sent, Decimal) and isinstance(received, Decimal) else None
