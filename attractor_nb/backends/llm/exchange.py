"""One stage's talk with one model: requests, tool calls, and at last an answer.

Loads pydantic-ai. A node without tools asks the model directly, with one request; an agent of pydantic-ai
drives the talk of one that has some. What a request costs, and who is told of it, is not known here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic_ai import Agent
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import BinaryContent, InstructionPart, ModelRequest, ToolCallPart, UserPromptPart
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.usage import UsageLimits

from attractor_nb.backends.llm.media import refused_kind
from attractor_nb.backends.llm.message_contents import answer_ending, answer_text
from attractor_nb.backends.llm.provider_failures import CallFailed, Ending, cut_short, not_shown, thought_too_long
from attractor_nb.backends.llm.request_settings import (
    bound_object,
    cache_settings,
    marked_prompt,
    model_settings,
    unasked_total,
)
from attractor_nb.model.calls.reasoning import part_reasoning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai.messages import ModelMessage, ModelResponse, UserContent
    from pydantic_ai.models import Model
    from pydantic_ai.run import AgentRun
    from pydantic_ai.toolsets import AbstractToolset

    from attractor_nb.backends.llm.metered_requests import MeteredRequests

TOOL_RETRIES: Final = 3
"""How often a model may call a tool wrongly, one call after the other."""
_RESPONSE: Final = attrgetter("response")


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What a model answered."""

    text: str  #: All of its text, with the reasoning that stands in it; empty when it said nothing.
    is_truncated: bool  #: It ended at the token limit.
    messages: Sequence[ModelMessage]  #: The whole conversation, earlier messages included.


@dataclass(frozen=True, slots=True)
class Exchange:
    """A talk with one model."""

    requests: MeteredRequests  #: Makes its requests, and knows who is asked, what for and within which bounds.

    async def ask(self, model: Model[Any], prompt: str, history: Sequence[ModelMessage]) -> ModelAnswer:
        """Ask once, without tools.

        Args:
            model: The target, as pydantic-ai asks it.
            history: What the thread has said before.
        """
        instructions, scope = self.requests.request.system_prompt, self.requests.scope
        is_talk = bool(history) or (scope is not None and bool(scope.thread))
        content = marked_prompt(prompt, self.requests.target.provider, is_talk=is_talk)
        asked = UserPromptPart(self._with_attachments(content, model))
        messages = [*history, ModelRequest([asked], instructions=instructions or None)]
        parameters = ModelRequestParameters(
            instruction_parts=[InstructionPart(instructions)] if instructions else [],
            **bound_object(self.requests.request.schema, model.profile),
        )
        opened = model_request_stream(
            model,
            messages,
            model_settings=cast("Any", self._settings(model, is_talk=is_talk)),
            model_request_parameters=parameters,
        )
        response = await self.requests.make(opened, StreamedResponse.get, messages)
        return self._answer(response, [*messages, response])

    async def ask_with_tools(
        self, agent: Agent[None, str], prompt: str, history: Sequence[ModelMessage], toolset: AbstractToolset[Any]
    ) -> ModelAnswer:
        """Ask, call the tools that the model asks for, and ask again, until it has answered.

        The answer is not bound to the node's schema: some providers do not allow that beside tools, and the
        prompt asks for the object all the same. What the run is told meanwhile goes with the next request; where
        the model has answered by then, it is asked once more.

        Args:
            agent: Asks the target (``agent_of``).
            history: What the thread has said before.
            toolset: Tools that the model may call.
        """
        scope = self.requests.scope
        if scope is None:
            return await self._talk(agent, prompt, history, toolset)
        scope.reach = "request"
        try:
            return await self._talk(agent, prompt, history, toolset)
        finally:  # with nothing awaited since the last look: what is told from here on, the next prompt carries
            scope.reach = ""

    async def _talk(
        self, agent: Agent[None, str], prompt: str, history: Sequence[ModelMessage], toolset: AbstractToolset[Any]
    ) -> ModelAnswer:
        content = self._with_attachments(prompt, cast("Model[Any]", agent.model))
        messages, usage, scope = list(history), None, self.requests.scope
        while True:
            async with agent.iter(
                content,
                message_history=messages or None,
                instructions=self.requests.request.system_prompt or None,
                model_settings=cast("Any", self._settings(cast("Model[Any]", agent.model), is_talk=True)),
                usage_limits=UsageLimits(request_limit=self.requests.limits.requests),
                usage=usage,
                toolsets=[toolset],
                infer_name=False,
            ) as run:
                answer = await self._answered(run)
                messages, usage = list(answer.messages), run.usage
            content = "" if scope is None else scope.more_instructions()
            if not content:
                return answer

    async def _answered(self, run: AgentRun[None, str]) -> ModelAnswer:
        """Make requests and call tools until the model has answered; each request says what the run was told."""
        scope = self.requests.scope
        async for node in run:
            if not Agent.is_model_request_node(node):
                continue
            if told := "" if scope is None else scope.more_instructions():
                node.request = replace(node.request, parts=[*node.request.parts, UserPromptPart(told)])
            sent = [*run.all_messages(), node.request]
            response = await self.requests.make(node.stream(run.ctx), _RESPONSE, sent)
            if not any(isinstance(part, ToolCallPart) for part in response.parts):
                return self._answer(response, run.all_messages())
        raise CallFailed(cut_short(self.requests.target))  # it ended without an answer

    def _with_attachments(self, prompt: str | list[UserContent], model: Model[Any]) -> str | list[UserContent]:
        """A prompt, and what the stage attaches behind it."""
        scope = self.requests.scope
        attachments = () if scope is None else scope.attachments
        if not attachments:
            return prompt
        kind = refused_kind(cast("Any", model.profile), (each.media_type for each in attachments))
        if kind:
            raise CallFailed(not_shown(self.requests.target, kind))
        shown = [BinaryContent(each.data, media_type=each.media_type) for each in attachments]
        return [*([prompt] if isinstance(prompt, str) else prompt), *shown]

    def _answer(self, response: ModelResponse, messages: Sequence[ModelMessage]) -> ModelAnswer:
        text, is_truncated = answer_text(response), answer_ending(response) is Ending.TRUNCATED
        if is_truncated and not part_reasoning(text).answer.strip():
            raise CallFailed(thought_too_long(self.requests.target))
        return ModelAnswer(text, is_truncated, messages)

    def _settings(self, model: Model[Any], *, is_talk: bool) -> dict[str, Any]:
        provider, read_seconds = self.requests.target.provider, self.requests.limits.read_seconds
        settings = model_settings(self.requests.request, provider, model.profile, read_seconds=read_seconds)
        return unasked_total({**settings, **cache_settings(provider, is_talk=is_talk)}, model.settings)


def agent_of(model: Model[Any]) -> Agent[None, str]:
    """An agent that asks a model; what differs from stage to stage it is told when it is asked."""
    return Agent(model, retries={"tools": TOOL_RETRIES, "output": 0})
