"""The requests of one talk: each waits for its turn, is paid for, recorded, read to its end and announced.

Loads pydantic-ai. An answer counts when its stream came to its end. What a request says, and whether another
one follows, is not known here.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pydantic_ai.exceptions import IncompleteToolCall
from pydantic_ai.messages import ToolCallPart

from attractor_nb.backends.llm.message_contents import answer_ending, make_whole, raw_reason, text_of, tokens_of
from attractor_nb.backends.llm.pacing import PacedText
from attractor_nb.backends.llm.prices import usage_of, worst_case
from attractor_nb.backends.llm.provider_failures import (
    UNREADABLE,
    CallFailed,
    Ending,
    cut_short,
    error_type_of,
    failure_of,
    refused,
    too_slow,
    unreadable,
)
from attractor_nb.model.calls.call_content import request_file
from attractor_nb.model.calls.providers import ModelName
from attractor_nb.model.events import ModelCallEnded, ModelCallWaiting, RunWarning
from attractor_nb.model.outcome import Usage

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

    read_seconds: float  #: How long a server may be silent.
    request_seconds: float  #: How long one request may take in all.
    requests: int  #: How many requests a stage may make of a model.


@dataclass(slots=True)
class MeteredRequests:
    """Makes the requests of a talk with one model."""

    target: Target  #: Who is asked.
    address: str  #: Where it is, or empty for the provider's own place.
    request: Request  #: What the node asks for.
    limits: Limits  #: Bounds.
    scope: StageScope | None  #: The stage that asks; None outside a run.
    stream: Callable[[str], None]  #: Given the text as it arrives.
    gates: RateGates  #: Hold requests back where the target has rates.
    tools: tuple[str, ...] = ()  #: Names of the tools that the model gets.
    usage: Usage = field(default_factory=Usage)  #: What the requests consumed so far.
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
        """Wait until the rates of who is asked allow another request."""
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
        except UNREADABLE as error:  # here alone: from a tool it is a mistake of ours
            raise CallFailed(unreadable(self.target, error)) from error
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise CallFailed(too_slow(self.target, self.address, self.limits.request_seconds)) from error
        finally:
            paced.end()

    def _check(self, response: ModelResponse) -> None:
        """Refuse an answer that is none, and warn of one whose end nobody knows."""
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
                    "this word is not known, and the answer is taken for whole"
                )
                self.scope.announce(RunWarning(message=message, node=node))
            case _:
                return

    def _counted(self, response: ModelResponse, messages: Sequence[ModelMessage], permit: Permit | None) -> Usage:
        """What a request consumed, added to the talk's; our estimate where the server does not say."""
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
        """Write what is asked before it is: whoever is killed meanwhile has asked all the same."""
        if self.scope is None:
            return
        compose, number = partial(self._plain, list(messages)), 1
        while not self.scope.files.create_deferred(request_file(number), compose):
            number += 1

    def _most(self, messages: Sequence[ModelMessage]) -> Usage:
        """What a request can consume at most, by estimate."""
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
