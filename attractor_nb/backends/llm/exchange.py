"""One stage's talk with one model: requests, tool calls, and at last an answer.

Loads pydantic-ai, whose agent drives the talk. An answer counts when its stream came to its end; each
request is announced with what it consumed, and the text as it arrives.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic_ai import Agent, NativeOutput, StructuredDict
from pydantic_ai.exceptions import IncompleteToolCall
from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta, ToolCallPart
from pydantic_ai.usage import UsageLimits

from attractor_nb.backends.llm.cache_marks import cache_settings, marked_prompt
from attractor_nb.backends.llm.failures import (
    UNREADABLE,
    CallFailed,
    cut_short,
    failure_of,
    refused,
    unreadable,
)
from attractor_nb.backends.llm.pacing import PacedText
from attractor_nb.backends.llm.prices import usage_of
from attractor_nb.backends.llm.settings import model_settings
from attractor_nb.model.events import ModelCallEnded
from attractor_nb.model.outcome import Usage
from attractor_nb.model.providers import ModelName

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model
    from pydantic_ai.run import AgentRun
    from pydantic_ai.toolsets import AbstractToolset

    from attractor_nb.backends.llm.asking import Request, Target
    from attractor_nb.stage import StageScope

TOOL_RETRIES: Final = 3
"""How often a model may call a tool wrongly, one call after the other."""


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
class Answer:
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
        usage: What the requests consumed so far.
    """

    target: Target
    address: str
    request: Request
    limits: Limits
    scope: StageScope | None
    stream: Callable[[str], None]
    usage: Usage = field(default_factory=Usage)

    async def run(
        self,
        model: Model[Any],
        prompt: str,
        history: Sequence[ModelMessage],
        toolset: AbstractToolset[Any] | None,
    ) -> Answer:
        """Ask, until the model has answered.

        Args:
            model: The target, as pydantic-ai asks it.
            prompt: What to ask.
            history: What the thread has said before.
            toolset: Tools that the model may call.

        Raises:
            Exception: It did not; ``failures.failure_of`` says what that means.
        """
        agent: Agent[None, Any] = Agent(
            model,
            output_type=self._output_type(model, has_tools=toolset is not None),
            instructions=self.request.system_prompt or None,
            retries={"tools": TOOL_RETRIES, "output": 0},
            toolsets=[toolset] if toolset is not None else None,
        )
        is_talk = toolset is not None or bool(history) or (self.scope is not None and bool(self.scope.thread))
        async with agent.iter(
            marked_prompt(prompt, self.target.provider, is_talk=is_talk),
            message_history=list(history) or None,
            model_settings=cast(
                "Any", {**self._settings(model), **cache_settings(self.target.provider, is_talk=is_talk)}
            ),
            usage_limits=UsageLimits(request_limit=self.limits.requests),
            infer_name=False,
        ) as run:
            async for node in run:
                if Agent.is_model_request_node(node):
                    if self.scope is not None:
                        self.scope.check_spending()
                    response = await self._ask(node, run)
                    if not any(isinstance(part, ToolCallPart) for part in response.parts):
                        return self._answer(response, run)
        raise CallFailed(cut_short(self.target))  # it ended without an answer

    def _answer(self, response: ModelResponse, run: AgentRun[None, Any]) -> Answer:
        text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
        return Answer(text, response.finish_reason == "length", run.all_messages())

    async def _ask(self, node: Any, run: AgentRun[None, Any]) -> ModelResponse:
        """Make one request and read its answer to the end; announce what came of it."""
        began = time.monotonic()
        response: ModelResponse | None = None
        try:
            response = await self._received(node, run)
            self._check(response)
        except Exception as error:
            failure = failure_of(error, self.target, self.address)
            said = failure.error.message if failure else type(error).__name__
            self._announce(began, None if response is None else self._counted(response), "", said)
            raise
        self._announce(began, self._counted(response), str(response.finish_reason), "")
        return response

    async def _received(self, node: Any, run: AgentRun[None, Any]) -> ModelResponse:
        """Read an answer to the end of its stream, and hand its text on as it arrives."""
        paced = PacedText(self.stream)
        try:
            async with node.stream(run.ctx) as stream:
                async for event in stream:
                    paced.add(_text_of(event))
                return stream.response
        except UNREADABLE as error:  # here alone: from a tool it is a mistake of ours
            raise CallFailed(unreadable(self.target, error)) from error
        finally:
            paced.flush()

    def _check(self, response: ModelResponse) -> None:
        """Refuse an answer that is none.

        Raises:
            CallFailed: It has no end, or the model refused.
            IncompleteToolCall: It was cut off within a call of a tool.
        """
        match response.finish_reason:
            case None | "error":
                raise CallFailed(cut_short(self.target))
            case "content_filter":
                details = response.provider_details or {}
                raise CallFailed(refused(self.target, str(details.get("refusal") or response.text or "")))
            case "length" if any(isinstance(part, ToolCallPart) for part in response.parts):
                raise IncompleteToolCall("the limit of tokens was reached within a call of a tool")
            case _:
                return

    def _counted(self, response: ModelResponse) -> Usage:
        """What a request consumed, added to the talk's."""
        own = usage_of(ModelName(self.target.model, self.target.provider), response.usage)
        self.usage = self.usage + own
        return own

    def _announce(self, began: float, usage: Usage | None, finish: str, error: str) -> None:
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
                thread=self.scope.thread,
            )
        )

    def _settings(self, model: Model[Any]) -> dict[str, Any]:
        return model_settings(
            self.request,
            self.target.provider,
            model.profile,
            read_seconds=self.limits.read_seconds,
            request_seconds=self.limits.request_seconds,
        )

    def _output_type(self, model: Model[Any], *, has_tools: bool) -> Any:
        """Text, or an object of the node's schema where the provider binds a model to one.

        Not beside tools, which some providers do not allow; the prompt asks for the object all the same.
        """
        schema = self.request.schema
        if schema is None or has_tools or not model.profile.get("supports_json_schema_output", False):
            return str
        return NativeOutput(StructuredDict(dict(schema), name=str(schema.get("title") or "verdict")))


def _text_of(event: object) -> str:
    """The piece of text that an event of a stream brings, or empty."""
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return event.part.content
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return event.delta.content_delta
    return ""
