"""One stage's talk with one model: requests, tool calls, and at last an answer.

Loads pydantic-ai. A node without tools asks the model directly, with one request; an agent of pydantic-ai
drives the conversation of one that has some. It knows neither the cost of a request nor who is notified of it.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic_ai import Agent
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import BinaryContent, CachePoint, InstructionPart, ModelRequest, ToolCallPart, UserPromptPart
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.usage import UsageLimits

from attractor_nb.backends.llm.metered_requests import MeteredRequests, answer_ending, answer_text
from attractor_nb.backends.llm.model_requests import Request, refused_kind
from attractor_nb.backends.llm.provider_failures import CallFailed, Ending, cut_short, not_shown, thought_too_long
from attractor_nb.model.calls.call_content import stable_length
from attractor_nb.model.calls.messages import CHARACTERS_PER_TOKEN
from attractor_nb.model.calls.model_options import KNOWN, is_taken
from attractor_nb.model.calls.providers import PROVIDERS
from attractor_nb.model.calls.reasoning import part_reasoning

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pydantic_ai.messages import ModelMessage, ModelResponse, UserContent
    from pydantic_ai.models import Model
    from pydantic_ai.run import AgentRun
    from pydantic_ai.toolsets import AbstractToolset


TOOL_RETRIES: Final = 3
"""Most wrong tool calls in a row."""
_RESPONSE: Final = attrgetter("response")


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """The answer of a model."""

    text: str  #: All of its text, with the reasoning that is in it; empty when it said nothing.
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
    """An agent for a model; each call passes the settings of its stage."""
    return Agent(model, retries={"tools": TOOL_RETRIES, "output": 0})


# A model's request: options, the schema of the answer, caching by the provider (spec 2.6).
#
# The model's profile decides its reasoning and its options.
#
# Writing to a cache costs a quarter more than sending, reading from it a tenth: a part that is never sent again is
# not marked. Other providers detect repeated prefixes by themselves: it is enough that a prompt begins with its
# stable part.

EFFORTS: Final = ("low", "medium", "high")
_THINKING_BUDGETS: Final = {"low": 2048, "medium": 10_000, "high": 16_384}
"""Tokens that Anthropic's models think for where their thinking has a budget, which is part of the limit."""
_COOL_THINKERS: Final = frozenset(entry.name for entry in PROVIDERS if entry.is_cool_thinker)

_NAMED: Final = ("properties", "$defs")

MARKING: Final = frozenset(entry.name for entry in PROVIDERS if entry.is_marking)
LEAST_CHARACTERS: Final = 1024 * CHARACTERS_PER_TOKEN
"""About the least that they keep."""

RUNNING_TOTAL: Final[Any] = {"openai_continuous_usage_stats": True}
"""Settings of a chat model: what a later chunk says of usage replaces what an earlier one said.

Many servers repeat the total so far with each chunk, unasked. OpenAI's own says it once.
"""
_ASKED_FOR_USAGE: Final = {"stream_options": {"include_usage": True}}


def model_settings(
    request: Request, provider: str, profile: Mapping[str, Any], *, read_seconds: float
) -> dict[str, Any]:
    """Settings of a call, by pydantic-ai's names.

    Temperature and thinking exclude each other with some providers. There a written effort goes before a
    temperature, and a temperature before the default effort.

    Args:
        request: What the node asks for.
        provider: Whose model it is.
        profile: What the model can do.
        read_seconds: How long a server may be silent.
    """
    settings: dict[str, Any] = {
        "max_retries": 0,  # the engine's retries are the only ones (ruling 13)
        "timeout": read_seconds,
    }
    others = {name: value for name, value in request.extra.items() if name not in KNOWN and is_taken(name, provider)}
    settings.update((KNOWN[name][0], value) for name, value in request.extra.items() if name in KNOWN)
    if others:
        settings["extra_body"] = others
    if request.max_tokens is not None:
        settings["max_tokens"] = request.max_tokens
    effort = _effort(request, provider, profile)
    if effort is not None:
        settings["thinking"] = effort
    is_thinking = bool(effort) and provider in _COOL_THINKERS
    if request.temperature is not None and not is_thinking:
        settings["temperature"] = request.temperature
    return settings


def unasked_total(settings: Mapping[str, Any], own: Mapping[str, Any] | None) -> dict[str, Any]:
    """Settings of a call with which no server is asked for a running total: OpenAI's refuses to be.

    >>> unasked_total({"extra_body": {"a": 1}}, RUNNING_TOTAL)
    {'extra_body': {'stream_options': {'include_usage': True}, 'a': 1}}
    >>> unasked_total({"timeout": 1}, None)
    {'timeout': 1}

    Args:
        settings: Those of the call.
        own: Those of the model.
    """
    if not own or not RUNNING_TOTAL.keys() <= own.keys():
        return dict(settings)
    return {**settings, "extra_body": {**_ASKED_FOR_USAGE, **settings.get("extra_body", {})}}


def _effort(request: Request, provider: str, profile: Mapping[str, Any]) -> str | bool | None:
    """The reasoning effort of the model. False to turn it off, None for a model without reasoning."""
    if not profile.get("supports_thinking", False):
        return None
    is_always = bool(profile.get("thinking_always_enabled", False))
    is_cool = request.temperature is not None and provider in _COOL_THINKERS
    if is_cool and not request.is_effort_asked and not is_always:
        return False
    if provider != "anthropic" or profile.get("anthropic_supports_adaptive_thinking", False):
        return request.effort
    limit = request.max_tokens
    fitting = [
        word
        for word in EFFORTS[: EFFORTS.index(request.effort) + 1 if request.effort in EFFORTS else 0]
        if limit is None or _THINKING_BUDGETS[word] < limit
    ]
    return fitting[-1] if fitting else False


def bound_object(schema: Mapping[str, Any] | None, profile: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of a request that bind its answer to an object; none where nothing is asked or can be done.

    Providers hold strictly to a schema whose objects are closed: then every property is there, and no other.
    One with open objects is sent as it is, for closing them would forbid what they are for.

    Args:
        schema: JSON Schema of an object.
        profile: What the model can do.
    """
    if schema is None or not profile.get("supports_json_schema_output", False):
        return {}
    plain = deepcopy(dict(schema))
    name = str(plain.get("title") or "verdict")
    strict = True if is_closed(plain) else None
    return {
        "output_mode": "native",
        "output_object": OutputObjectDefinition(json_schema=plain, name=name, strict=strict),
        "allow_text_output": False,
    }


def is_closed(schema: object) -> bool:
    """True if each object of a schema has named properties alone, and each list says what is in it.

    >>> is_closed({"type": "object", "properties": {"n": {"type": "integer"}}}), is_closed({"type": "object"})
    (True, False)
    """
    if not isinstance(schema, dict):
        return True
    found = cast("dict[str, Any]", schema)
    if found.get("type") == "object" and (not found.get("properties") or found.get("additionalProperties")):
        return False
    if found.get("type") == "array" and not found.get("items"):
        return False
    if not {"type", "$ref", "anyOf", "enum", "const"} & found.keys():
        return False
    groups: list[Iterable[object]] = [found.get("anyOf", ()), *(found.get(key, {}).values() for key in _NAMED)]
    return is_closed(found.get("items")) and all(is_closed(entry) for group in groups for entry in group)


def cache_settings(provider: str, *, is_talk: bool) -> dict[str, Any]:
    """Settings by which instructions and tools are kept, and of a talk all that was said.

    Args:
        provider: Whose model it is.
        is_talk: More requests follow that begin with this one: of a tool loop, or of a thread.

    >>> cache_settings("anthropic", is_talk=True), cache_settings("openai", is_talk=True)
    ({'cache': True}, {})
    """
    if provider not in MARKING:
        return {}
    return {"cache": True if is_talk else {"messages": False}}


def marked_prompt(prompt: str, provider: str, *, is_talk: bool) -> str | list[UserContent]:
    """A prompt with a mark behind what the prompts of a run share, where that is long enough to be kept.

    Args:
        provider: Whose model is asked.
        is_talk: All of it is kept by the settings already, and a thread keeps its prompts as texts.
    """
    length = 0 if is_talk or provider not in MARKING else stable_length(prompt)
    if length < LEAST_CHARACTERS:
        return prompt
    return [prompt[:length], CachePoint(), prompt[length:]]
