"""A request as a model takes it: options, the answer's schema, what a provider may keep (spec 2.6).

What a model thinks with, and what it takes beside, its profile says.

Writing to a cache costs a quarter more than sending, reading from it a tenth: what nobody will send again is
not marked. Other providers know prefixes again by themselves; for them it is enough that a prompt begins
with what stays the same.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic_ai.messages import CachePoint
from pydantic_ai.output import OutputObjectDefinition

from attractor_nb.model.calls.model_options import KNOWN, is_taken
from attractor_nb.model.calls.prompt_sections import stable_length
from attractor_nb.model.calls.tokens import CHARACTERS_PER_TOKEN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic_ai.messages import UserContent

    from attractor_nb.backends.llm.model_requests import Request

EFFORTS: Final = ("low", "medium", "high")
_THINKING_BUDGETS: Final = {"low": 2048, "medium": 10_000, "high": 16_384}
"""Tokens that Anthropic's models think for where their thinking has a budget, which is part of the limit."""
_COOL_THINKERS: Final = frozenset({"openai", "anthropic", "azure", "bedrock"})
"""Whose models take no temperature while they think."""

_NAMED: Final = ("properties", "$defs")

MARKING: Final = frozenset({"anthropic"})
"""Providers that keep what is marked."""
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
    """How hard the model thinks; False for not at all, None where it cannot."""
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
    """Whether each object of a schema has named properties alone, and each list says what is in it.

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
