"""One stage's talk with one model: requests, tool calls, and at last an answer.

Loads pydantic-ai. A node without tools asks the model directly, with one request; an agent of pydantic-ai
drives the talk of one that has some. An answer counts when its stream came to its end; each request is
announced with what it consumed, and the text as it arrives.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic_ai import Agent
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import IncompleteToolCall
from pydantic_ai.messages import (
    BinaryContent,
    InstructionPart,
    ModelRequest,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.usage import UsageLimits

from attractor_nb.backends.llm.media import refused_kind
from attractor_nb.backends.llm.pacing import PacedText
from attractor_nb.backends.llm.prices import usage_of, worst_case
from attractor_nb.backends.llm.provider_failures import (
    UNREADABLE,
    CallFailed,
    Ending,
    cut_short,
    ending_of,
    error_type_of,
    failure_of,
    not_shown,
    refused,
    too_slow,
    unreadable,
)
from attractor_nb.backends.llm.request_settings import bound_object, cache_settings, marked_prompt, model_settings
from attractor_nb.model.calls.attachment import attachment_tokens
from attractor_nb.model.calls.call_content import request_file
from attractor_nb.model.calls.providers import ModelName
from attractor_nb.model.calls.tokens import estimated_tokens
from attractor_nb.model.events import ModelCallEnded, ModelCallWaiting, RunWarning
from attractor_nb.model.outcome import Usage
from attractor_nb.model.surrogates import whole

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from pydantic_ai.messages import ModelMessage, ModelResponse, UserContent
    from pydantic_ai.models import Model
    from pydantic_ai.toolsets import AbstractToolset

    from attractor_nb.backends.llm.model_requests import Request, Target
    from attractor_nb.backends.llm.rate_gates import Passage, RateGates
    from attractor_nb.stage import StageScope

ASSUMED_ANSWER_TOKENS: Final = 1000
"""Of an answer whose request sets no limit, for the rate of tokens; it is settled with what came."""
TOOL_RETRIES: Final = 3
"""How often a model may call a tool wrongly, one call after the other."""
_RESPONSE: Final = attrgetter("response")


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a talk.

    Attributes:
        read_seconds: How long a server may be silent.
        request_seconds: How long one request may take in all.
        requests: How many requests a stage may make of a model.
    """

    read_seconds: float
    request_seconds: float
    requests: int


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What a model answered.

    Attributes:
        text: All of its text; empty when it said nothing.
        is_truncated: It ended at the token limit.
        messages: The whole conversation, earlier messages included.
    """

    text: str
    is_truncated: bool
    messages: Sequence[ModelMessage]


@dataclass(slots=True)
class Exchange:
    """A talk with one model.

    Attributes:
        target: Who is asked.
        address: Where it is, or empty for the provider's own place.
        request: What the node asks for.
        limits: Bounds.
        scope: The stage that asks; None outside a run.
        stream: Given the text as it arrives.
        gates: Hold requests back where the target has rates.
        tools: Names of the tools that the model gets.
        usage: What the requests consumed so far.
    """

    target: Target
    address: str
    request: Request
    limits: Limits
    scope: StageScope | None
    stream: Callable[[str], None]
    gates: RateGates
    tools: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)

    async def ask(self, model: Model[Any], prompt: str, history: Sequence[ModelMessage]) -> ModelAnswer:
        """Ask once, without tools.

        Args:
            model: The target, as pydantic-ai asks it.
            history: What the thread has said before.

        Raises:
            Exception: It did not answer; ``failures.failure_of`` says what that means.
        """
        instructions = self.request.system_prompt
        is_talk = bool(history) or (self.scope is not None and bool(self.scope.thread))
        content = marked_prompt(prompt, self.target.provider, is_talk=is_talk)
        asked = UserPromptPart(self._with_attachments(content, model))
        messages = [*history, ModelRequest([asked], instructions=instructions or None)]
        parameters = ModelRequestParameters(
            instruction_parts=[InstructionPart(instructions)] if instructions else [],
            **bound_object(self.request.schema, model.profile),
        )
        opened = model_request_stream(
            model,
            messages,
            model_settings=cast("Any", self._settings(model, is_talk=is_talk)),
            model_request_parameters=parameters,
        )
        response = await self._ask(opened, StreamedResponse.get, messages)
        return self._answer(response, [*messages, response])

    async def ask_with_tools(
        self, agent: Agent[None, str], prompt: str, history: Sequence[ModelMessage], toolset: AbstractToolset[Any]
    ) -> ModelAnswer:
        """Ask, call the tools that the model asks for, and ask again, until it has answered.

        The answer is not bound to the node's schema: some providers do not allow that beside tools, and the
        prompt asks for the object all the same.

        Args:
            agent: Asks the target (``agent_of``).
            history: What the thread has said before.
            toolset: Tools that the model may call.

        Raises:
            Exception: It did not answer; ``failures.failure_of`` says what that means.
        """
        async with agent.iter(
            self._with_attachments(prompt, cast("Model[Any]", agent.model)),
            message_history=list(history) or None,
            instructions=self.request.system_prompt or None,
            model_settings=cast("Any", self._settings(cast("Model[Any]", agent.model), is_talk=True)),
            usage_limits=UsageLimits(request_limit=self.limits.requests),
            toolsets=[toolset],
            infer_name=False,
        ) as run:
            async for node in run:
                if Agent.is_model_request_node(node):
                    sent = [*run.all_messages(), node.request]
                    response = await self._ask(node.stream(run.ctx), _RESPONSE, sent)
                    if not any(isinstance(part, ToolCallPart) for part in response.parts):
                        return self._answer(response, run.all_messages())
        raise CallFailed(cut_short(self.target))  # it ended without an answer

    def _with_attachments(self, prompt: str | list[UserContent], model: Model[Any]) -> str | list[UserContent]:
        """A prompt, and what the stage attaches behind it.

        Raises:
            CallFailed: The model is not shown such things.
        """
        attachments = () if self.scope is None else self.scope.attachments
        if not attachments:
            return prompt
        kind = refused_kind(cast("Any", model.profile), (each.media_type for each in attachments))
        if kind:
            raise CallFailed(not_shown(self.target, kind))
        shown = [BinaryContent(each.data, media_type=each.media_type) for each in attachments]
        return [*([prompt] if isinstance(prompt, str) else prompt), *shown]

    def _answer(self, response: ModelResponse, messages: Sequence[ModelMessage]) -> ModelAnswer:
        text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
        return ModelAnswer(text, _ending(response) is Ending.TRUNCATED, messages)

    async def _ask(
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
        passage = await self._let_through(messages) if self.target.rates else None
        began = time.monotonic()
        self._record(messages)
        response: ModelResponse | None = None
        try:
            response = await self._received(opened, read)
            self._check(response)
        except Exception as error:  # announced, whatever it is, and raised again
            failure = failure_of(error, self.target, self.address)
            said = failure.error.message if failure else type(error).__name__
            usage = None if response is None else self._counted(response, messages, passage)
            self._announce(began, usage, error=said, error_type=error_type_of(error))
            raise
        finish = str(response.finish_reason or _raw_reason(response))
        self._announce(began, self._counted(response, messages, passage), finish)
        return response

    async def _let_through(self, messages: Sequence[ModelMessage]) -> Passage:
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
                async for event in stream:
                    paced.add(_text_of(event))
                response = read(stream)
                _make_whole(response)
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
        """Refuse an answer that is none, and warn of one whose end nobody knows.

        Raises:
            CallFailed: It has no end, or the model refused.
            IncompleteToolCall: It was cut off within a call of a tool.
        """
        match _ending(response):
            case Ending.BROKEN:
                raise CallFailed(cut_short(self.target))
            case Ending.REFUSED:
                details = response.provider_details or {}
                raise CallFailed(refused(self.target, str(details.get("refusal") or response.text or "")))
            case Ending.TRUNCATED if any(isinstance(part, ToolCallPart) for part in response.parts):
                raise IncompleteToolCall("the limit of tokens was reached within a call of a tool")
            case Ending.UNKNOWN if self.scope is not None:
                node, reason = self.scope.node_id, _raw_reason(response) or response.finish_reason
                said = (
                    f"{node}: {self.target} says that its answer ended with {reason!r}; "
                    "this word is not known, and the answer is taken for whole"
                )
                self.scope.announce(RunWarning(message=said, node=node))
            case _:
                return

    def _counted(self, response: ModelResponse, messages: Sequence[ModelMessage], passage: Passage | None) -> Usage:
        """What a request consumed, added to the talk's; our estimate where the server does not say."""
        counted: Any = response.usage
        is_estimated = not (counted.input_tokens or counted.output_tokens)
        if is_estimated:
            counted = Usage(tokens_of(messages), tokens_of([response]))
        own = usage_of(ModelName(self.target.model, self.target.provider), counted, is_estimated=is_estimated)
        self.usage = self.usage + own
        if passage is not None:
            passage.settle(own.total_tokens)
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
        self, began: float, usage: Usage | None, finish: str = "", *, error: str = "", error_type: str = ""
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
            )
        )

    def _settings(self, model: Model[Any], *, is_talk: bool) -> dict[str, Any]:
        provider = self.target.provider
        settings = model_settings(self.request, provider, model.profile, read_seconds=self.limits.read_seconds)
        return {**settings, **cache_settings(provider, is_talk=is_talk)}


def agent_of(model: Model[Any]) -> Agent[None, str]:
    """An agent that asks a model; what differs from stage to stage it is told when it is asked."""
    return Agent(model, retries={"tools": TOOL_RETRIES, "output": 0})


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


def _ending(response: ModelResponse) -> Ending:
    if response.state != "complete":
        return Ending.BROKEN
    return ending_of(response.finish_reason, _raw_reason(response))


def _raw_reason(response: ModelResponse) -> str:
    """Why an answer ended, in its provider's own word; empty when it does not say."""
    return str((response.provider_details or {}).get("finish_reason") or "")


def _make_whole(response: ModelResponse) -> None:
    """Join or replace halves of characters, in the parts themselves: an agent goes on with these."""
    for part in response.parts:
        if isinstance(part, TextPart | ThinkingPart):
            part.content = whole(part.content)
        elif isinstance(part, ToolCallPart) and isinstance(part.args, str):
            part.args = whole(part.args)


def _text_of(event: object) -> str:
    """The piece of text that an event of a stream brings, or empty."""
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return event.part.content
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return event.delta.content_delta
    return ""
